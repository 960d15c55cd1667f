#include "workload/plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workload/kernels.hpp"
#include "workload/parameters.hpp"
#include "workload/segments.hpp"

namespace collcast::workload {

namespace {

Seconds sum(const std::vector<Stretch>& stretches) {
  Seconds total{};
  for (const Stretch& p : stretches) total += p.time;
  return total;
}

/// Of the stretches of one micro-batch that compute, or of those that do not.
Seconds time_of(const StagePlan& stage, bool computes) {
  Seconds total{};
  for (const Unit& u : stage.units)
    for (const std::vector<Stretch>* stretches : {&stage.work(u).forward, &stage.work(u).backward})
      for (const Stretch& s : *stretches)
        if (s.computes() == computes) total += s.time;
  return total;
}

/// The collectives of one stage: each kind and size is priced once and counted.
class StagePricing {
 public:
  StagePricing(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time, int stage)
      : in_(in), fabric_(fabric), time_(time), groups_(groups_of(in.layout, rank_at(in.layout, {0, stage, 0, 0, 0}))) {}

  Rank rank() const { return groups_.rank; }

  /// `times` of them per rank and step.
  Seconds tp(CollectiveKind kind, double bytes, std::int64_t times) {
    return price(Dimension::tp, kind, groups_.tp, bytes, times);
  }
  Seconds dp(CollectiveKind kind, double bytes, std::int64_t times) {
    return price(Dimension::dp, kind, groups_.dp, bytes, times);
  }
  /// Between the first and the last stage.
  Seconds tied(double bytes) {
    const auto ends = [&](const Group& pp) { return Group::listed({pp[0], pp[in_.layout.pp - 1]}); };
    std::vector<Group> alongside;
    for (const Group& pp : groups_alongside(in_.layout, fabric_, Dimension::pp, groups_.pp))
      alongside.push_back(ends(pp));
    return add({Dimension::dp,
                "embedding all_reduce",
                {CollectiveKind::all_reduce, ends(groups_.pp), whole(bytes), 0, std::move(alongside)},
                {},
                {},
                1});
  }

  std::vector<CollectiveCost> costs;
  Diagnostics errors;

 private:
  Seconds price(Dimension dimension, CollectiveKind kind, const Group& group, double bytes, std::int64_t times) {
    if (group.size() == 1 || times == 0) return {};
    for (CollectiveCost& c : costs) {
      if (c.dimension != dimension || c.request.kind != kind || c.request.size != whole(bytes)) continue;
      c.count += times;
      return c.time;
    }
    return add({dimension,
                std::string(to_string(dimension)) + " " + std::string(to_string(kind)),
                {kind, group, whole(bytes), 0, groups_alongside(in_.layout, fabric_, dimension, group)},
                {},
                {},
                times});
  }

  Seconds add(CollectiveCost cost) {
    const Result<Seconds> time = time_(cost.request);
    if (!time) {
      append(errors, time.errors());
      return {};
    }
    cost.time = *time;
    costs.push_back(std::move(cost));
    return costs.back().time;
  }

  const StepInputs& in_;
  const Fabric& fabric_;
  const CollectiveTime& time_;
  RankGroups groups_;
};

class StageMaker {
 public:
  StageMaker(const StepInputs& in, StagePricing& pricing, int stage)
      : in_(in),
        pricing_(pricing),
        stage_(stage),
        micro_batches_(in.batch.micro_batches(in.layout)),
        message_(tp_bytes(in)) {}

  StagePlan make() {
    plan_.rank = pricing_.rank();
    add_units();
    add_buckets();
    if (in_.model.tied_embeddings && in_.layout.pp > 1 && (has_embedding(in_, stage_) || has_head(in_, stage_)))
      plan_.tied_embedding = pricing_.tied(tied_bytes(in_));
    plan_.optimizer = optimizer_operations(in_, stage_);
    if (in_.options.optimizer && in_.options.zero >= 1)
      plan_.gather = pricing_.dp(CollectiveKind::all_gather, gathered_bytes(in_, stage_), 1);
    return std::move(plan_);
  }

 private:
  void add_units() {
    const int layers = in_.model.layers / in_.layout.pp, chunks = in_.layout.vpp, of_chunk = layers / chunks;
    const auto gradients = [&](const RankParameters& p) { return in_.options.gradient_bytes * p.total(); };
    const TransformerConfig& m = in_.model;
    const int tp = in_.layout.tp;
    if (has_embedding(in_, stage_)) {
      plan_.units.push_back({UnitKind::embedding, "embedding", plan_.works.size(), 0});
      plan_.works.push_back(work(embedding_segments(in_), 1, gradients(embedding_parameters(m, tp))));
    }
    for (int i = 0; i < layers; ++i) {
      const int chunk = i / of_chunk, slice = chunk * in_.layout.pp + stage_;
      plan_.units.push_back(
          {UnitKind::layer, "L" + std::to_string(slice * of_chunk + i % of_chunk), plan_.works.size(), chunk});
    }
    plan_.works.push_back(work(layer_segments(in_), layers, gradients(layer_parameters(m, tp))));
    if (has_head(in_, stage_)) {
      plan_.units.push_back({UnitKind::head, "head", plan_.works.size(), chunks - 1});
      const bool shares = m.tied_embeddings && in_.layout.pp == 1;
      plan_.works.push_back(work(head_segments(in_), 1, gradients(head_parameters(m, tp, shares))));
      const Seconds reduction =
          pricing_.tp(CollectiveKind::all_reduce, loss_bytes(in_), loss_reductions * micro_batches_);
      if (in_.layout.tp > 1)
        plan_.works.back().forward.push_back({"loss all_reduce", Category::tp, loss_reductions * reduction});
    }
  }

  UnitWork work(const Segments& segments, int units, double gradients) {
    UnitWork w{stretches(segments.forward, units), stretches(segments.backward, units), gradients};
    return w;
  }

  std::vector<Stretch> stretches(const std::vector<Segment>& segments, int units) {
    std::vector<Stretch> result;
    for (const Segment& s : segments) {
      Seconds compute{};
      for (const Operation& op : s.operations) compute += op.time;
      const std::string name = s.category == Category::recompute ? "recompute " + s.name : s.name;
      if (!s.operations.empty()) result.push_back({name, s.category, compute});
      if (s.then)
        result.push_back({name + " " + std::string(to_string(*s.then)), Category::tp,
                          pricing_.tp(*s.then, message_, std::int64_t{units} * micro_batches_)});
    }
    return result;
  }

  void add_buckets() {
    if (in_.layout.dp == 1) return;
    std::vector<double> gradients;
    for (const Unit& u : plan_.units) gradients.push_back(plan_.work(u).gradients);
    const double size = static_cast<double>(in_.options.bucket.value());
    const BucketFill fill = fill_buckets(gradients, size);
    const CollectiveKind kind = in_.options.zero >= 1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    const Seconds full_time = pricing_.dp(kind, size, fill.full);
    const Seconds rest_time = pricing_.dp(kind, fill.rest, fill.rest > 0 ? 1 : 0);
    for (const std::size_t unit : fill.unit)
      plan_.buckets.push_back({unit, std::ssize(plan_.buckets) < fill.full ? full_time : rest_time});
  }

  const StepInputs& in_;
  StagePricing& pricing_;
  int stage_;
  std::int64_t micro_batches_;
  double message_;
  StagePlan plan_;
};

/// A boundary's messages: the slowest, because a stage goes on when all its ranks have theirs.
Result<CollectiveCost> boundary(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time, int stage) {
  CollectiveCost slowest{Dimension::pp, "pp sendrecv", {}, {}, {}, 0};
  for (CollectiveRequest& request : stage_messages(in.layout, fabric, stage, whole(stage_message_bytes(in)))) {
    const Result<Seconds> one = time(request);
    if (!one) return one.errors();
    if (slowest.request.group.size() > 0 && *one <= slowest.time) continue;
    slowest.time = *one;
    slowest.request = std::move(request);
  }
  return slowest;
}

/// The messages of each stage to and from its neighbours.
Diagnostics add_transfers(StepPlan& plan, const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const std::size_t stages = plan.stages.size();
  std::vector<CollectiveCost> boundaries;
  for (std::size_t i = 0; i + (plan.chunks > 1 ? 0 : 1) < stages; ++i) {
    Result<CollectiveCost> cost = boundary(in, fabric, time, static_cast<int>(i));
    if (!cost) return cost.errors();
    plan.transfer.push_back(cost->time);
    boundaries.push_back(std::move(cost).value());
  }
  for (std::size_t i = 0; i < stages && stages > 1; ++i) {
    CollectiveCost cost = boundaries[std::min(i, stages - 2)];
    // A stage at an end sends one way only, and between chunks round to the other end.
    const bool at_end = i == 0 || i + 1 == stages;
    cost.count = std::int64_t{at_end ? 1 : 2} * plan.micro_batches * plan.chunks;
    plan.stages[i].collectives.push_back(std::move(cost));
    if (!at_end || plan.chunks == 1) continue;
    CollectiveCost round = boundaries.back();
    round.name = "pp sendrecv round";
    round.count = std::int64_t{plan.micro_batches} * (plan.chunks - 1);
    plan.stages[i].collectives.push_back(std::move(round));
  }
  return {};
}

}  // namespace

Seconds UnitWork::forward_time() const { return sum(forward); }
Seconds UnitWork::backward_time() const { return sum(backward); }

StageTime StagePlan::time() const {
  StageTime t;
  for (const Unit& u : units) {
    t.forward += work(u).forward_time();
    t.backward += work(u).backward_time();
  }
  return t;
}

StageTime StagePlan::time(int chunk) const {
  StageTime t;
  for (const Unit& u : units) {
    if (u.chunk != chunk) continue;
    t.forward += work(u).forward_time();
    t.backward += work(u).backward_time();
  }
  return t;
}

Seconds StagePlan::compute_time() const { return time_of(*this, true); }
Seconds StagePlan::tp_time() const { return time_of(*this, false); }

Seconds StagePlan::optimizer_time() const {
  Seconds total{};
  for (const Operation& op : optimizer) total += op.time;
  return total;
}

std::size_t StepPlan::slowest() const {
  std::size_t slowest = 0;
  Seconds most{};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageTime t = stages[i].time();
    if (t.forward + t.backward <= most) continue;
    most = t.forward + t.backward;
    slowest = i;
  }
  return slowest;
}

double StepPlan::operations() const {
  double total = 0;
  for (const StagePlan& stage : stages) {
    for (const Unit& u : stage.units)
      total += static_cast<double>(stage.work(u).forward.size() + stage.work(u).backward.size()) * micro_batches;
    total += static_cast<double>(stage.buckets.size());
  }
  return total;
}

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(std::ceil(bytes))); }

double tp_bytes(const StepInputs& in) {
  return KernelTimer(in).precision().activation * (static_cast<double>(in.batch.sequence) * in.batch.micro_batch) *
         in.model.hidden;
}

double loss_bytes(const StepInputs& in) { return 4 * (static_cast<double>(in.batch.sequence) * in.batch.micro_batch); }

double stage_message_bytes(const StepInputs& in) {
  return tp_bytes(in) / (in.layout.sequence_parallel ? in.layout.tp : 1);
}

double tied_bytes(const StepInputs& in) {
  return in.options.gradient_bytes * embedding_parameters(in.model, in.layout.tp).sharded;
}

double gathered_bytes(const StepInputs& in, int stage) {
  return KernelTimer(in).precision().activation * stage_parameters(in, stage).total();
}

BucketFill fill_buckets(std::span<const double> gradients, double size) {
  double total = 0;
  for (const double g : gradients) total += g;
  BucketFill fill;
  fill.full = static_cast<std::int64_t>(total / size);
  fill.rest = total - static_cast<double>(fill.full) * size;
  const auto buckets = static_cast<std::size_t>(fill.full + (fill.rest > 0 ? 1 : 0));
  double ready = 0, wanted = std::min(size, total);
  for (std::size_t u = gradients.size(); u-- > 0;) {
    ready += gradients[u];
    // The last unit completes whatever is left, also where the sum's rounding says otherwise.
    while (fill.unit.size() < buckets && (wanted <= ready || u == 0)) {
      fill.unit.push_back(u);
      wanted = std::min(size * static_cast<double>(fill.unit.size() + 1), total);
    }
  }
  return fill;
}

Result<StepPlan> make_plan(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  StepPlan plan;
  plan.schedule = in.layout.schedule;
  plan.micro_batches = in.batch.micro_batches(in.layout);
  plan.chunks = in.layout.vpp;
  plan.overlap_dp = in.options.overlap_dp;
  plan.overlap_pp = in.options.overlap_pp;
  Diagnostics errors;
  for (int stage = 0; stage < in.layout.pp; ++stage) {
    StagePricing pricing(in, fabric, time, stage);
    plan.stages.push_back(StageMaker(in, pricing, stage).make());
    plan.stages.back().collectives = std::move(pricing.costs);
    append(errors, pricing.errors);
  }
  if (!errors.empty()) return errors;
  if (Diagnostics wrong = add_transfers(plan, in, fabric, time); !wrong.empty()) return wrong;
  return plan;
}

}  // namespace collcast::workload
