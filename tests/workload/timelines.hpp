// The simulated timeline of a step's plan.
#pragma once

#include "collcast/engine/engine.hpp"
#include "workload/plan.hpp"

namespace collcast::test {

Timeline timeline(const workload::StepPlan&, const Fabric&);
Seconds simulated(const workload::StepPlan&, const Fabric&);
/// On cluster(4): for plans whose operations take no links.
Timeline timeline(const workload::StepPlan&);
Seconds simulated(const workload::StepPlan&);

}  // namespace collcast::test
