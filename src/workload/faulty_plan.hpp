// The plan of a step on a machine with faults: prices and paces rank by rank, and the classes of ranks that follow.
#pragma once

#include <vector>

#include "workload/classed_plan.hpp"

namespace collcast::workload {

struct FaultyMachine {
  const Fabric* healthy = nullptr;
  std::vector<double> speed;   ///< of the GPU of each rank
  std::vector<bool> touched;   ///< nodes whose ranks' ways may differ; empty: none
  const CollectiveTime* time;  ///< on the faulty links
};

enum class Fold { alike_once, every_rank };
/// `time`: without faults. `inputs` has passed check_step.
Result<ClassedPlan> make_classed_plan(const StepInputs& inputs, const FaultyMachine&, const CollectiveTime& time,
                                      Fold = Fold::alike_once);

}  // namespace collcast::workload
