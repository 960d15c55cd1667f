// What would make a layout fit where none does, by memory alone, or by degrees that divide nothing.
#pragma once

#include <vector>

#include "collcast/planner/plan.hpp"
#include "planner/pieces.hpp"

namespace collcast::planner {

/// What the search was kept to, ZeRO, optimizer states in the host's memory, and another number of GPUs, in this order:
/// each alone, as far as it makes a layout fit; when stopped, as far as it has come. `any_divides`: some layouts were
/// rejected for their memory alone.
std::vector<NearMiss> near_misses(const PlanInputs&, const Fabric&, bool any_divides, SearchProgress&);

}  // namespace collcast::planner
