#include "workload/estimate_step.hpp"

#include <algorithm>

namespace collcast::workload {

namespace {

/// From the end of the stage's last backward to the end of its last bucket.
Seconds gradient_tail(const StagePlan& stage, bool overlap) {
  // Backward time after each unit's backward is over.
  std::vector<Seconds> left(stage.units.size());
  for (std::size_t u = 1; u < stage.units.size(); ++u)
    left[u] = left[u - 1] + stage.work(stage.units[u - 1]).backward_time();
  Seconds tail{}, queued{};
  for (auto b = stage.buckets.rbegin(); b != stage.buckets.rend(); ++b) {
    queued += b->time;
    tail = std::max(tail, overlap ? queued - left[b->unit] : queued);
  }
  return tail;
}

struct PipelineTime {
  Seconds total{}, transfers{};  ///< transfers: what they add to the total
};

PipelineTime pipeline(const StepPlan& plan) {
  std::vector<StageTime> free;
  for (const StagePlan& stage : plan.stages) free.push_back(stage.time());
  const std::vector<Seconds> none(plan.transfer.size());
  const Seconds without = pipeline_time(plan.schedule, free, none, plan.micro_batches);
  Seconds with{};
  if (plan.overlap_pp) {
    with = pipeline_time(plan.schedule, free, plan.transfer, plan.micro_batches);
  } else {
    std::vector<StageTime> blocked = free;
    for (std::size_t i = 0; i < plan.transfer.size(); ++i) {
      blocked[i].forward += plan.transfer[i];
      blocked[i + 1].backward += plan.transfer[i];
    }
    with = pipeline_time(plan.schedule, blocked, none, plan.micro_batches);
  }
  return {with, with - without};
}

/// When the gradients of every stage are exchanged, after the end of the pipeline.
Seconds exposed_gradients(const StepPlan& plan) {
  Seconds exposed{}, ahead{}, ends{}, tied{};
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    const Seconds after = gradient_tail(stage, plan.overlap_dp) - ahead;
    exposed = std::max(exposed, after);
    if (i == 0 || i + 1 == plan.stages.size()) ends = std::max(ends, after);
    tied = std::max(tied, stage.tied_embedding);
    ahead += stage.time().backward;
    if (i < plan.transfer.size()) ahead += plan.transfer[i];
  }
  return std::max(exposed, ends + tied);
}

}  // namespace

StepEstimate estimate_step(const StepPlan& plan) {
  const PipelineTime pipe = pipeline(plan);
  const Seconds exposed = exposed_gradients(plan);
  Seconds update{};
  for (const StagePlan& stage : plan.stages) update = std::max(update, stage.optimizer_time() + stage.gather);

  const StagePlan& slowest = plan.stages[plan.slowest()];
  const int m = plan.micro_batches;
  StepEstimate e;
  e.total = pipe.total + exposed + update;
  e.breakdown.compute = m * slowest.compute_time();
  e.breakdown.tp_exposed = m * slowest.tp_time();
  e.breakdown.pp_exposed = pipe.transfers;
  e.breakdown.dp_exposed = exposed + slowest.gather;
  e.breakdown.optimizer = slowest.optimizer_time();
  // What is left; sums in another order may leave a few ulps below zero.
  e.breakdown.bubble = std::max(Seconds{}, e.total - e.breakdown.total());
  return e;
}

}  // namespace collcast::workload
