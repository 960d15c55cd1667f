// Steps on machines with faults: the faults, random layouts and machines, and their plans.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../support/dice.hpp"
#include "collcast/engine/engine.hpp"
#include "collcast/workload/faulty_step.hpp"
#include "workload/faults/faulty_plan.hpp"

namespace collcast::test {

MachineFault slow_gpu(int gpu, double compute);
MachineFault slow_link(const std::string& link, double share);

/// Of what must be sound.
FaultyStep forecast_faulty(const StepInputs&, const Fabric&, const std::vector<MachineFault>&, Method = Method::both);
std::vector<workload::ClassedPlan> classed(const StepInputs&, const std::vector<workload::FaultyMachine>& periods,
                                           const CollectiveTime&, workload::Fold);
workload::ClassedPlan classed(const StepInputs&, const workload::FaultyMachine&, const CollectiveTime&, workload::Fold);

struct Ran {
  Timeline timeline;
  std::map<Rank, SimTime> last;  ///< of each class's first rank: the end of its own last operation
};
Ran run(const workload::ClassedPlan&, const Fabric&);

/// The machine of a random case: some slow GPUs, and perhaps slow links near some nodes.
workload::FaultyMachine sick(Dice&, const Fabric&, int world, const CollectiveTime*);
/// 1e-5 s and so on, in another order than groups are numbered: groups near a slow link are not alike.
CollectiveTime unlike();
/// Not all of them sound.
StepInputs random_inputs(Dice&);

}  // namespace collcast::test
