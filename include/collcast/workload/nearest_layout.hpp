// A layout that works next to one that does not.
#pragma once

#include <string>

#include "collcast/workload/step.hpp"

namespace collcast {

/// "tp 2, pp 4, dp 2": next to what `in` asks for, what check_step accepts on so many ranks. Empty where none is found
/// nearby, or where more is wrong than layout and batch.
std::string nearest_layout(const StepInputs& in, int ranks, const Origins&);

}  // namespace collcast
