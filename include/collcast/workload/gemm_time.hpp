// What the time of a matrix product is made of, for steps and for whoever holds them against measured products.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "collcast/workload/config.hpp"

namespace collcast {

/// Bytes that C[m, n] = A[m, k] B[k, n] moves at least: each operand read once, its 16-bit result written once; a
/// weight gradient is added to an fp32 buffer. `bytes_per_element`: of the operands, half of one with nvfp4.
Volume gemm_bytes(const GemmShape&, std::optional<GemmPass>, double bytes_per_element);

/// overhead + max(flops/(compute*peak), bytes/(memory*bandwidth)), for any kernel.
struct Roofline {
  Seconds overhead{}, compute{}, memory{};
  Seconds total() const { return overhead + std::max(compute, memory); }
};
Roofline roofline(const KernelEfficiency&, FlopRate peak, Bandwidth memory, Flops, Volume);
/// Of a product.
Roofline roofline(const KernelEfficiency&, FlopRate peak, Bandwidth memory, const GemmShape&, Volume);

}  // namespace collcast
