// What no GPU does: more FLOPs than its data sheet says. Kernels whose times are wrong give such steps, and so does a
// peak that is too low.
#pragma once

#include <optional>
#include <string>

#include "collcast/workload/step.hpp"

namespace collcast {

/// What is said of an MFU or HFU above 100 % of the data sheet's peak, with what may be wrong.
std::optional<std::string> impossible_rate(const StepInputs&, double mfu, double hfu);

}  // namespace collcast
