// What a table of measured products cannot say: times below what its GPU could compute or move at its best, and
// repeats of one product that have nothing to do with each other.
#pragma once

#include <string>
#include <vector>

#include "collcast/scenario/gemm_table.hpp"

namespace collcast {

/// Rates of the data sheet of the GPU that was measured.
struct MeasuredGpu {
  FlopRate peak{};
  Bandwidth memory_bandwidth{};
};

/// Of the rows of `dtype`; `path` is that of the rates, for messages.
Diagnostics impossible_rows(const std::vector<GemmRow>&, const std::string& dtype, const MeasuredGpu&,
                            const std::string& file, const std::string& path);

}  // namespace collcast
