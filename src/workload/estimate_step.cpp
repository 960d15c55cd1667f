#include "workload/estimate_step.hpp"

#include <algorithm>

namespace collcast::workload {

namespace {

/// From the end of the stage's last backward to the end of its last bucket.
GradientTerms gradient_tail(const StagePlan& stage, bool overlap) {
  // Backward time after each unit's backward is over.
  std::vector<Seconds> left(stage.units.size());
  for (std::size_t u = 1; u < stage.units.size(); ++u)
    left[u] = left[u - 1] + stage.work(stage.units[u - 1]).backward_time();
  GradientTerms tail;
  Seconds queued{};
  for (auto b = stage.buckets.rbegin(); b != stage.buckets.rend(); ++b) {
    queued += b->time;
    const Seconds hidden = overlap ? left[b->unit] : Seconds{};
    if (queued - hidden <= tail.buckets - tail.left) continue;
    tail.buckets = queued;
    tail.left = hidden;
  }
  return tail;
}

/// The pipeline, and what transfers add to it; returns by how much each stage's last backward ends before the pipeline.
std::vector<Seconds> add_pipeline(const StepPlan& plan, ClosedForm& form) {
  std::vector<StageTime> free;
  for (const StagePlan& stage : plan.stages) free.push_back(stage.time());
  const std::vector<Seconds> none(plan.transfer.size());
  const Seconds without = pipeline_terms(plan.schedule, free, none, plan.micro_batches).total();
  Pipeline pipeline;
  if (plan.overlap_pp) {
    pipeline = run_pipeline(plan.schedule, free, plan.transfer, plan.micro_batches);
  } else {
    std::vector<StageTime> blocked = free;
    for (std::size_t i = 0; i < plan.transfer.size(); ++i) {
      blocked[i].forward += plan.transfer[i];
      blocked[i + 1].backward += plan.transfer[i];
    }
    pipeline = run_pipeline(plan.schedule, blocked, none, plan.micro_batches);
    // The message that a stage ends with is none of its backward.
    for (std::size_t i = 0; i < plan.transfer.size(); ++i) pipeline.ahead[i + 1] += plan.transfer[i];
  }
  form.pipeline = pipeline.terms;
  form.transfers = form.pipeline.total() - without;
  return std::move(pipeline.ahead);
}

/// When the gradients of every stage are exchanged, after the end of the pipeline.
GradientTerms exposed_gradients(const StepPlan& plan, const std::vector<Seconds>& ahead) {
  GradientTerms longest, end;
  Seconds tied{};
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    GradientTerms terms = gradient_tail(stage, plan.overlap_dp);
    terms.stage = static_cast<int>(i);
    terms.ahead = ahead[i];
    if (terms.exposed() > longest.exposed()) longest = terms;
    const bool at_end = i == 0 || i + 1 == plan.stages.size();
    if (at_end && terms.exposed() > end.exposed()) end = terms;
    tied = std::max(tied, stage.tied_embedding);
  }
  end.tied = tied;
  return end.exposed() > longest.exposed() ? end : longest;
}

}  // namespace

StepEstimate estimate_step(const StepPlan& plan) {
  StepEstimate e;
  e.terms.gradients = exposed_gradients(plan, add_pipeline(plan, e.terms));
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    if (stage.optimizer_time() + stage.gather <= e.terms.optimizer + e.terms.gather) continue;
    e.terms.update_stage = static_cast<int>(i);
    e.terms.optimizer = stage.optimizer_time();
    e.terms.gather = stage.gather;
  }
  e.total = e.terms.total();

  const StagePlan& slowest = plan.stages[plan.slowest()];
  const int m = plan.micro_batches;
  e.breakdown.compute = m * slowest.compute_time();
  e.breakdown.tp_exposed = m * slowest.tp_time();
  e.breakdown.pp_exposed = e.terms.transfers;
  e.breakdown.dp_exposed = e.terms.gradients.exposed() + slowest.gather;
  e.breakdown.optimizer = slowest.optimizer_time();
  // What is left; sums in another order may leave a few ulps below zero.
  e.breakdown.bubble = std::max(Seconds{}, e.total - e.breakdown.total());
  // Without a pipeline nothing is left, but for the rounding of sums.
  if (e.breakdown.bubble < 1e-13 * e.total) e.breakdown.bubble = Seconds{};
  return e;
}

}  // namespace collcast::workload

namespace collcast {

Seconds GradientTerms::exposed() const { return std::max(buckets - left - ahead, Seconds{}) + tied; }

}  // namespace collcast
