// The plan of a step on a machine with faults: prices and paces rank by rank, and the classes of ranks that follow.
//
// Faults that begin or end cut the step into periods, each a machine of its own. Classes are the same in all of them:
// ranks that are alike in every period.
#pragma once

#include <span>
#include <vector>

#include "workload/faults/classed_plan.hpp"
#include "workload/faults/rank_prices.hpp"

namespace collcast::workload {

enum class Fold { alike_once, every_rank };
/// By period. `time`: without faults. `inputs` has passed check_step. Where `goes_on` says no it fails.
Result<std::vector<ClassedPlan>> make_classed_plans(const StepInputs& inputs, std::span<const FaultyMachine> periods,
                                                    const CollectiveTime& time, Fold = Fold::alike_once,
                                                    const GoesOn& goes_on = {});

}  // namespace collcast::workload
