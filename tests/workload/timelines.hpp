// Plans of given times, and the simulated timeline of a step's plan.
#pragma once

#include <string>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "workload/plan.hpp"
#include "workload/schedules/pipeline.hpp"
#include "workload/timeline.hpp"

namespace collcast::test {

/// A latency and a rate in bytes per second, whatever the collective.
CollectiveTime priced(double latency, double rate = 100e9);
/// Of inputs that must be sound, on cluster(8); 10 us and 100 GB/s whatever the collective.
workload::StepPlan planned(const StepInputs&, const CollectiveTime& = priced(10e-6));
/// The stage's collective called `name`; fails the test if there is none.
const CollectiveCost& cost(const workload::StagePlan&, const std::string& name);
/// Each of the operations, which the longest chain has some of, is rounded up by less than a picosecond.
double rounding(const workload::StepPlan&);
double flops(const std::vector<Operation>&);

/// Stages of one unit each; weight gradients are a part of their own where they take time. `transfer` by boundary.
workload::StepPlan stages(PipelineSchedule, const std::vector<workload::StageTime>&, std::vector<Seconds> transfer,
                          int micro_batches);

/// `p` of them alike.
/// Of stages with chunks, one unit a chunk.
workload::StepPlan plan_of_chunks(PipelineSchedule, const workload::ChunkedStages&, int micro_batches);
/// `whole`: of both chunks of a stage.
workload::ChunkedStages equal_halves(int p, const workload::StageTime& whole, Seconds transfer);
workload::StepPlan equal_stages(PipelineSchedule, const workload::StageTime&, Seconds transfer, int p,
                                int micro_batches);

/// With what collectives of DP slow.
Timeline run(const workload::StepSchedule&, const Fabric&);
Timeline timeline(const workload::StepPlan&, const Fabric&);
Seconds simulated(const workload::StepPlan&, const Fabric&);
/// On cluster(4): for plans whose operations take no links.
Timeline timeline(const workload::StepPlan&);
Seconds simulated(const workload::StepPlan&);
/// From the first turn to the last of each stage, messages apart.
std::vector<Seconds> stage_spans(const workload::StepPlan&);

}  // namespace collcast::test
