// In what a server's products can be computed, and what of a step is computed in what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collcast/workload/config.hpp"

namespace collcast {

/// What the precision of inference can be: training's, and weights of four bits.
std::vector<std::string> serving_precisions();

/// What the linear layers compute in: of int4, whose weights alone are small, bf16.
std::string linear_precision(const TrainingOptions&);

/// Whether the linear layers read elements of fewer bytes than are computed: those of fp8 and fp4. No precision has
/// none.
bool has_narrow_products(std::string_view precision);

}  // namespace collcast
