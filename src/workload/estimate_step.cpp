#include "workload/estimate_step.hpp"

#include <algorithm>
#include <optional>

#include "workload/aligned.hpp"
#include "workload/exchange_walk.hpp"
#include "workload/schedules/automatic_order.hpp"
#include "workload/schedules/dualpipe.hpp"
#include "workload/schedules/dualpipe_v.hpp"
#include "workload/schedules/interleaved.hpp"
#include "workload/schedules/zero_bubble.hpp"
#include "workload/schedules/zero_bubble_v.hpp"
#include "workload/sharded.hpp"
#include "workload/sharded_walk.hpp"

namespace collcast::workload {

namespace {

/// From the end of the stage's last backward to the end of its last bucket. `later`: as Pipeline's, of its chunks.
GradientTerms gradient_tail(const StagePlan& stage, bool splits, bool overlap, std::span<const Seconds> later) {
  // Time from the end of each unit's backward to the stage's last.
  std::vector<Seconds> left(stage.units.size());
  if (!later.empty() && !left.empty()) left.front() = later[static_cast<std::size_t>(stage.units.front().chunk)];
  for (std::size_t u = 1; u < stage.units.size(); ++u) {
    const int chunk = stage.units[u].chunk;
    const bool first = chunk != stage.units[u - 1].chunk;
    left[u] = first ? later[static_cast<std::size_t>(chunk)]
                    : left[u - 1] + (splits ? stage.work(stage.units[u - 1]).weights_time()
                                            : stage.work(stage.units[u - 1]).backward_time());
  }
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

/// Schedules whose order is gone through by with_order: Pipeline's `later` and `ahead` then count the message that a
/// blocked stage ends with.
bool goes_by_turns(PipelineSchedule schedule) { return splits_backward(schedule) || is_own(schedule); }

/// `run` gives the pipeline of stages; what their transfers add is put down too.
template <class Run>
Pipeline with_transfers(ChunkedStages stages, ClosedForm& form, Run run) {
  Pipeline pipeline = run(stages);
  stages.transfer.assign(stages.transfer.size(), {});
  form.pipeline = pipeline.terms;
  form.transfers = form.pipeline.total() - run(stages).terms.total();
  return pipeline;
}

/// Of one's own schedule no formula is known: the work of the slowest stage, and the order gone through adds the rest.
PipelineTerms own_terms(PipelineSchedule schedule, const ChunkedStages& in, int micro_batches) {
  PipelineTerms terms;
  for (int i = 0; i < in.stages; ++i) {
    const Seconds work = in.of(i).whole();
    terms.work += work;
    if (work <= terms.window_work) continue;
    terms.window_work = work;
    terms.first = terms.last = i;
  }
  for (std::size_t i = 0; i < in.transfer.size() && !in.blocking; ++i) {
    // In a V down and up; the way round is taken once less than the others.
    const bool round = static_cast<int>(i) + 1 == in.stages;
    terms.transfers += in.transfer[i] * (goes_in_v(schedule) ? 2 : round ? in.chunks - 1 : in.chunks);
  }
  terms.rest = micro_batches * terms.window_work - terms.work - 2 * terms.transfers;
  return terms;
}

PipelineTerms formula(PipelineSchedule schedule, const ChunkedStages& stages, int micro_batches) {
  if (is_own(schedule)) return own_terms(schedule, stages, micro_batches);
  if (schedule == PipelineSchedule::zb_v) return zero_bubble_v_terms(stages, micro_batches);
  if (from_both_ends(schedule)) return dualpipe_terms(stages, micro_batches);
  if (schedule == PipelineSchedule::dualpipe_v) return dualpipe_v_terms(stages, micro_batches);
  if (made_for_times(schedule)) return automatic_terms(stages, micro_batches);
  return zero_bubble_terms(schedule, stages, micro_batches);
}

/// Zero bubble, and one's own.
Pipeline add_ordered(const StepPlan& plan, ClosedForm& form) {
  const Orders orders = plan.orders();
  return with_transfers(plan.chunked(), form, [&](const ChunkedStages& stages) {
    return with_order(formula(plan.schedule, stages, plan.micro_batches), plan.schedule, stages, orders);
  });
}

/// The pipeline, and what transfers add to it; returns by how much each stage's last backward ends before the pipeline.
Pipeline add_pipeline(const StepPlan& plan, ClosedForm& form) {
  if (goes_by_turns(plan.schedule)) return add_ordered(plan, form);
  if (plan.schedule == PipelineSchedule::interleaved)
    return with_transfers(plan.chunked(), form,
                          [&](const ChunkedStages& stages) { return run_interleaved(stages, plan.micro_batches); });
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
  return pipeline;
}

/// The gradients of the step before, exchanged from the begin of this one on.
GradientTerms delayed_gradients(const StepPlan& plan, Seconds computing) {
  GradientTerms longest;
  longest.delayed = true;
  longest.left = computing;
  Seconds ends{}, tied{};
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    Seconds sum{};
    for (const Bucket& bucket : plan.stages[i].buckets) sum += bucket.time;
    if (i == 0 || i + 1 == plan.stages.size()) ends = std::max(ends, sum);
    tied = std::max(tied, plan.stages[i].tied_embedding);
    if (sum <= longest.buckets) continue;
    longest.buckets = sum;
    longest.stage = static_cast<int>(i);
  }
  longest.buckets = std::max(longest.buckets, tied > Seconds{} ? ends + tied : ends);
  return longest;
}

/// When the gradients of every stage are exchanged, after the end of the pipeline.
/// `walk`: where they slow the kernels beside them.
GradientTerms exposed_gradients(const StepPlan& plan, const Pipeline& pipeline,
                                const std::optional<ExchangeWalk>& walk) {
  GradientTerms longest, end;
  const Seconds tied = std::max(plan.stages.front().tied_embedding, plan.stages.back().tied_embedding);
  const auto chunks = static_cast<std::size_t>(plan.chunks);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    const bool fills = fills_in_backward(plan, i);
    GradientTerms terms =
        walk ? walk->gradients[i]
             : gradient_tail(stage, splits_backward(plan.schedule), fills,
                             chunks > 1 || is_own(plan.schedule) ? std::span(pipeline.later).subspan(i * chunks, chunks)
                                                                 : std::span<const Seconds>());
    terms.stage = static_cast<int>(i);
    if (plan.zero == 2) terms.times = plan.micro_batches;
    if (!walk) terms.ahead = pipeline.ahead[i];
    // Behind it the exchange also waits for the message that the stage's last backward ends with and blocks for.
    if (!walk && !fills && !plan.overlap_pp && i > 0 && !goes_by_turns(plan.schedule))
      terms.ahead -= plan.transfer[i - 1];
    if (terms.exposed() > longest.exposed()) longest = terms;
    if (i > 0 && i + 1 < plan.stages.size()) continue;
    terms.tied = tied;
    if (i == 0 || terms.exchanged() > end.exchanged()) end = terms;
  }
  return tied > Seconds{} && end.exposed() >= longest.exposed() ? end : longest;
}

/// Whether chunks are reduced behind a backward of another.
bool shifts_reductions(const StepPlan& plan) {
  return plan.chunks > 1 && aligns_gradients(plan) &&
         std::ranges::any_of(plan.stages, [](const StagePlan& stage) { return !stage.buckets.empty(); });
}

/// Of the pipeline while gradients are exchanged, where that slows it or is out of step with it.
std::optional<ExchangeWalk> beside_walk(const StepPlan& plan) {
  if (plan.zero == 3 || exchanges_by_turns(plan)) return std::nullopt;
  if (!slows_beside_exchange(plan) && !shifts_reductions(plan)) return std::nullopt;
  return walk_beside_exchange(plan);
}

/// What gathers and reductions of each turn add to the pipeline; returns the slowed parts of its stages.
std::vector<SlowedParts> add_turns(const StepPlan& plan, ClosedForm& form) {
  const Orders orders = plan.orders();
  const ShardedWalk alone = walk_sharded(plan, orders, false);
  form.sharding.by_turns = true;
  form.sharding.turns = std::max(alone.end - form.pipeline.total(), Seconds{});
  if (!slows_beside_turns(plan)) return alone.slowed;
  const ShardedWalk slowed = walk_sharded(plan, orders, true);
  form.slowed = slowed.end - alone.end;
  return slowed.slowed;
}

/// What of the step is left for DP is its part, what is left then for messages theirs: kernels that are slowed beside
/// gathers and reductions fill what would be waiting.
void fit_waiting(const Seconds total, Breakdown& parts) {
  const Seconds dp = parts.dp_exposed, pp = parts.pp_exposed;
  parts.dp_exposed = parts.pp_exposed = {};
  const Seconds idle = std::max(total - parts.total(), Seconds{});
  parts.dp_exposed = std::min(dp, idle);
  parts.pp_exposed = std::min(pp, idle - parts.dp_exposed);
}

}  // namespace

StepEstimate estimate_step(const StepPlan& plan) {
  StepEstimate e;
  const Pipeline pipeline = add_pipeline(plan, e.terms);
  const bool by_turns = exchanges_by_turns(plan);
  const std::optional<ExchangeWalk> walk = beside_walk(plan);
  std::vector<SlowedParts> slowed(plan.stages.size());
  if (walk) slowed = walk->slowed;
  if (walk && slows_beside_exchange(plan))
    e.terms.slowed = plan.stages.size() == 1 ? slowed.front().total() : walk->end - pipeline.terms.total();
  if (by_turns)
    slowed = add_turns(plan, e.terms);
  else
    e.terms.gradients = plan.delayed ? delayed_gradients(plan, pipeline.terms.total() + e.terms.slowed)
                                     : exposed_gradients(plan, pipeline, walk);
  if (plan.zero == 3 && !by_turns) {
    const std::vector<ShardedPass> passes = sharded_passes(plan.stages.front(), plan.reshard, plan.overlap_dp);
    e.terms.sharding = sharding_terms(passes, plan.overlap_dp);
    e.terms.sharding.times = plan.micro_batches;
    for (const ShardedPass& pass : passes) slowed.front() += plan.micro_batches * pass.slowed;
    e.terms.slowed = slowed.front().total();
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    if (stage.optimizer_time() + stage.gather <= e.terms.optimizer + e.terms.gather) continue;
    e.terms.update_stage = static_cast<int>(i);
    e.terms.optimizer = stage.optimizer_time();
    e.terms.gather = stage.gather;
  }
  e.total = e.terms.total();

  const std::size_t slowest_stage = plan.slowest();
  const StagePlan& slowest = plan.stages[slowest_stage];
  const int m = plan.micro_batches;
  const SlowedParts& by_dp = slowed[slowest_stage];
  e.slowed_by_dp = by_dp.compute;
  e.breakdown.compute = m * slowest.compute_time() + by_dp.compute;
  e.breakdown.tp_exposed = m * slowest.tp_time() - by_dp.tp;
  e.breakdown.cp_exposed = m * slowest.cp_time() - by_dp.cp;
  e.breakdown.ep_exposed = m * slowest.ep_time() - by_dp.ep;
  e.breakdown.dp_exposed = e.terms.gradients.exposed() + e.terms.sharding.exposed() + slowest.gather;
  e.breakdown.optimizer = slowest.optimizer_time();
  e.breakdown.pp_exposed = e.terms.transfers;
  // Slower kernels fill what would be waiting for messages.
  if (by_turns) {
    fit_waiting(e.total, e.breakdown);
  } else if (e.slowed_by_dp > Seconds{}) {
    const Seconds idle = e.total - e.breakdown.total() + e.terms.transfers;
    e.breakdown.pp_exposed = std::clamp(idle, Seconds{}, e.terms.transfers);
  }
  // What is left; sums in another order may leave a few ulps below zero.
  e.breakdown.bubble = std::max(Seconds{}, e.total - e.breakdown.total());
  // Without a pipeline nothing is left, but for the rounding of sums.
  if (e.breakdown.bubble < 1e-13 * e.total) e.breakdown.bubble = Seconds{};
  return e;
}

}  // namespace collcast::workload

namespace collcast {

Seconds GradientTerms::exchanged() const { return std::max(buckets - left, Seconds{}) - ahead; }

Seconds GradientTerms::exposed() const {
  if (tied > Seconds{}) return std::max(exchanged() + tied, Seconds{});
  return times * std::max(buckets - left - ahead, Seconds{});
}

}  // namespace collcast
