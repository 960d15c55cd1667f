// What would make a layout fit where none does, by memory alone.
#pragma once

#include <vector>

#include "collcast/planner/plan.hpp"

namespace collcast::planner {

/// What the search was kept to, ZeRO, and more GPUs, in this order: each alone, as far as it makes a layout fit.
std::vector<NearMiss> near_misses(const PlanInputs&, const Fabric&);

}  // namespace collcast::planner
