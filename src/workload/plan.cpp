#include "workload/plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "workload/gradient_exchange.hpp"
#include "workload/layer/adapters.hpp"
#include "workload/layer/kernels.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"
#include "workload/layer/share.hpp"
#include "workload/layer/token_dispatch.hpp"
#include "workload/serving/drafts.hpp"
#include "workload/sharded_walk.hpp"
#include "workload/slowdown.hpp"
#include "workload/stretches.hpp"
#include "workload/ways.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

namespace {

/// The collectives of one stage: each kind and size is priced once and counted.
class StagePricing {
 public:
  StagePricing(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time, int stage)
      : in_(in), fabric_(fabric), time_(&time), stage_(stage), rank_(first_of(in, stage)), asked_by_(rank_) {
    take_exchanges(stage);
  }
  /// Of a rank whose collectives are known, in the order in which they are asked for.
  StagePricing(const StepInputs& in, const Fabric& fabric, int stage, Rank rank,
               const std::vector<CollectiveCost>& known)
      : in_(in), fabric_(fabric), known_(&known), stage_(stage), rank_(first_of(in, stage)), asked_by_(rank) {
    take_exchanges(stage);
  }

  Rank rank() const { return asked_by_; }
  /// Of the bytes of all experts' rows, as priced last.
  double dispatched() const { return dispatched_; }

  /// `times` of them per rank and step.
  PricedTime tp(CollectiveKind kind, double bytes, std::int64_t times) {
    return price(Dimension::tp, kind, groups_along(Dimension::tp), bytes, times);
  }
  PricedTime cp(CollectiveKind kind, double bytes, std::int64_t times) {
    PricedTime priced = price(Dimension::cp, kind, groups_along(Dimension::cp), bytes, times);
    if (const int cost = priced.uses.collectives[0]; cost != Uses::none)
      priced.slows = messages_slow(costs[static_cast<std::size_t>(cost)].request.group, fabric_);
    return priced;
  }
  PricedTime experts(const ExpertExchange& exchange, std::int64_t times) {
    if (exchange.within_expert)
      return price(Dimension::ep, exchange.kind, expert_tp_group, exchange.bytes, times, "expert tp");
    const auto share = [this](const Group& group) { return dispatched_share(in_, fabric_, group); };
    const GroupOf along = groups_along(Dimension::ep);
    const PricedTime priced = price(Dimension::ep, exchange.kind, along, exchange.bytes, times, {}, share);
    const int cost = priced.uses.collectives[0];
    dispatched_ =
        share(cost == Uses::none ? along(in_.layout, rank_) : costs[static_cast<std::size_t>(cost)].request.group);
    return priced;
  }
  /// Gradients, so many as kept: summed over those who have the same.
  PricedTime reduce(double kept, std::int64_t times) { return reduce(gradients_, kept, times); }
  PricedTime reduce_experts(double kept, std::int64_t times) { return reduce(expert_gradients_, kept, times); }
  /// Weights that are split over the shards.
  PricedTime gather(double bytes, std::int64_t times) { return among(gather_of(bytes, false), false, times); }
  PricedTime gather_experts(double bytes, std::int64_t times) { return among(gather_of(bytes, true), true, times); }
  /// Between the first and the last stage.
  PricedTime tied(double bytes) {
    const auto ends = [this](const Group& pp) { return Group::listed({pp[0], pp[in_.layout.pp - 1]}); };
    const GroupOf along = groups_along(Dimension::pp);
    return add({Dimension::dp, "embedding all_reduce", {}, {}, {}, 1}, whole(bytes), along, [=, this](Rank rank) {
      std::vector<Group> alongside;
      const Group own = along(in_.layout, rank);
      for (const Group& pp : groups_alongside(in_.layout, fabric_, along, own)) alongside.push_back(ends(pp));
      return CollectiveRequest{CollectiveKind::all_reduce, ends(own), whole(bytes), 0, std::move(alongside)};
    });
  }

  std::vector<CollectiveCost> costs;
  std::vector<StageRequest> requests;  ///< one each; good as long as this lives
  Diagnostics errors;

 private:
  void take_exchanges(int stage) {
    if (in_.serving) return;
    gradients_ = GradientExchange(in_, stage, false);
    expert_gradients_ = GradientExchange(in_, stage, true);
  }

  PricedTime reduce(const GradientExchange& exchange, double kept, std::int64_t times) {
    PricedTime all;
    for (const double bytes : exchange.sent(kept))
      for (const ReplicaCollective& one : reductions_of(in_, bytes, exchange.of_experts))
        all = all + among(one, exchange.of_experts, times);
    return all;
  }
  PricedTime among(const ReplicaCollective& one, bool experts, std::int64_t times) {
    if (one.group_of == nullptr) return {};
    return price(Dimension::dp, one.kind, one.group_of, one.bytes, times, experts ? "expert dp" : "");
  }

  /// `of`: whose collective it is, if not the dimension's. `share`: of the bytes, what a group sends; without it, all.
  PricedTime price(Dimension dimension, CollectiveKind kind, GroupOf group_of, double bytes, std::int64_t times,
                   std::string of = {}, std::function<double(const Group&)> share = {}) {
    const Group group = group_of(in_.layout, rank_);
    if (group.size() == 1 || times == 0 || !(bytes > 0)) return {};
    if (of.empty()) of = to_string(dimension);
    std::string name = of + " " + std::string(to_string(kind));
    for (std::size_t i = 0; i < costs.size(); ++i) {
      CollectiveCost& c = costs[i];
      if (c.name != name || asked_[i] != whole(bytes) || c.request.group.size() != group.size()) continue;
      c.count += times;
      return priced(i);
    }
    return add({dimension, std::move(name), {}, {}, {}, times}, whole(bytes), group_of, [=, this](Rank rank) {
      Group of_rank = group_of(in_.layout, rank);
      std::vector<Group> alongside = groups_alongside(in_.layout, fabric_, group_of, of_rank);
      const Bytes size = whole(share ? bytes * share(of_rank) : bytes);
      return CollectiveRequest{kind, std::move(of_rank), size, 0, std::move(alongside)};
    });
  }

  /// `asked`: of all that is sent, by which it is known again.
  PricedTime add(CollectiveCost cost, Bytes asked, GroupOf group_of, std::function<CollectiveRequest(Rank)> request) {
    if (known_ != nullptr) {
      check(costs.size() < known_->size(), "all ranks of a stage ask for the same collectives");
      const CollectiveCost& known = (*known_)[costs.size()];
      cost.request = known.request;
      cost.time = known.time;
      cost.groups = known.groups;
      cost.slowest_groups = known.slowest_groups;
    } else {
      if (Diagnostics wrong = price_slowest(cost, ways(group_of), request); !wrong.empty()) {
        append(errors, wrong);
        return {};
      }
      requests.push_back({group_of, std::move(request)});
    }
    costs.push_back(std::move(cost));
    asked_.push_back(asked);
    return priced(costs.size() - 1);
  }

  Diagnostics price_slowest(CollectiveCost& cost, const std::vector<Way>& all,
                            const std::function<CollectiveRequest(Rank)>& request) const {
    SlowestWay slowest(cost);
    for (const Way& way : all) {
      CollectiveRequest one = request(way.rank);
      const Result<Seconds> time = (*time_)(one);
      if (!time) return time.errors();
      slowest.take(std::move(one), *time, way.groups);
    }
    slowest.finish();
    return {};
  }

  const std::vector<Way>& ways(GroupOf group_of) {
    const auto [found, is_new] = ways_.try_emplace(group_of);
    if (is_new) found->second = ways_of(in_.layout, fabric_, group_of, stage_);
    return found->second;
  }

  PricedTime priced(std::size_t i) const {
    return {costs[i].time, {{static_cast<int>(i), Uses::none, Uses::none, Uses::none}, 1}};
  }

  static Rank first_of(const StepInputs& in, int stage) { return rank_at(in.layout, {0, stage, 0, 0, 0}); }

  const StepInputs& in_;
  const Fabric& fabric_;
  const CollectiveTime* time_ = nullptr;
  const std::vector<CollectiveCost>* known_ = nullptr;
  int stage_;
  Rank rank_, asked_by_;
  std::map<GroupOf, std::vector<Way>> ways_;
  std::vector<Bytes> asked_;  // by cost
  GradientExchange gradients_, expert_gradients_;
  double dispatched_ = 1;
};

class StageMaker {
 public:
  StageMaker(const StepInputs& in, StagePricing& pricing, int stage, Pace pace = {})
      : in_(in), pricing_(pricing), stage_(stage), pace_(pace), micro_batches_(in.batch.passes(in.layout)) {}

  StagePlan make_units() && {
    plan_.rank = pricing_.rank();
    add_units();
    plan_.dispatched = pricing_.dispatched();
    return std::move(plan_);
  }
  StagePlan make() && {
    plan_ = std::move(*this).make_units();
    if (in_.serving) return std::move(plan_);
    if (in_.options.zero == 3)
      add_unit_exchanges();
    else
      add_buckets();
    if (sums_tied_gradients(in_) && (has_embedding(in_, stage_) || has_head(in_, stage_)))
      put(pricing_.tied(tied_bytes(in_)), plan_.tied_embedding, plan_.tied_uses);
    plan_.optimizer = optimizer_operations(in_, stage_, pace_.own);
    if (in_.options.optimizer && (in_.options.zero == 1 || in_.options.zero == 2))
      put(pricing_.gather(gathered_bytes(in_, stage_), 1) +
              pricing_.gather_experts(gathered_expert_bytes(in_, stage_), 1),
          plan_.gather, plan_.gather_uses);
    return std::move(plan_);
  }

 private:
  void add_units() {
    const std::vector<StageLayer> layers = layers_of_stage(in_, stage_);
    if (has_embedding(in_, stage_)) {
      plan_.units.push_back({UnitKind::embedding, "embedding", plan_.works.size(), 0});
      plan_.works.push_back(work(embedding_segments(in_), 1));
    }
    // Layers that are alike share their work.
    std::vector<std::pair<LayerKind, std::size_t>> known;
    for (const StageLayer& layer : layers) {
      const LayerKind kind = kind_of_layer(in_, layer.number);
      const auto found = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == kind; });
      const bool is_new = found == known.end();
      const std::size_t of_kind = is_new ? plan_.works.size() : found->second;
      plan_.units.push_back({unit_of(kind), "L" + std::to_string(layer.number), of_kind, layer.chunk});
      if (!is_new) continue;
      known.emplace_back(kind, of_kind);
      const auto alike = std::count_if(layers.begin(), layers.end(), [&](const StageLayer& other) {
        return kind_of_layer(in_, other.number) == kind;
      });
      plan_.works.push_back(work(layer_segments(in_, kind), static_cast<int>(alike)));
    }
    if (has_head(in_, stage_)) {
      plan_.units.push_back({UnitKind::head, "head", plan_.works.size(), in_.layout.chunks() - 1});
      plan_.works.push_back(work(head_segments(in_), 1, true));
      add_drafts();
    }
  }

  void add_drafts() {
    const int drafts = further_drafts(in_);
    if (drafts == 0) return;
    const StepInputs draft = draft_pass(in_);
    for (int i = 0; i < drafts; ++i)
      plan_.units.push_back({UnitKind::draft, "draft", plan_.works.size(), in_.layout.chunks() - 1});
    plan_.works.push_back(
        work(draft, draft_segments(draft, kind_of_layer(in_, in_.model.all_layers() - 1)), drafts, false));
  }

  UnitWork work(const Segments& segments, int units, bool has_loss = false) {
    return work(in_, segments, units, has_loss);
  }
  UnitWork work(const StepInputs& in, const Segments& segments, int units, bool has_loss) {
    const std::int64_t times = std::int64_t{units} * micro_batches_;
    const StretchPrices prices{
        [&](CollectiveKind kind, double bytes, int each) { return pricing_.tp(kind, bytes, times * each); },
        [&](CollectiveKind kind, double bytes, int each) { return pricing_.cp(kind, bytes, times * each); },
        [&](const ExpertExchange& exchange) { return pricing_.experts(exchange, times); }};
    return unit_work(in, segments, has_loss, pace_, prices);
  }

  static void put(const PricedTime& priced, Seconds& time, Uses& uses) {
    time = priced.time;
    uses = priced.uses;
  }

  void add_unit_exchanges() {
    const std::vector<UnitParameters> parameters = unit_parameters(in_, stage_);
    for (std::size_t u = 0; u < plan_.units.size(); ++u) {
      UnitWork& unit = plan_.works[plan_.units[u].work];
      const double weight = gathered_weight_bytes(in_, is_layer(plan_.units[u].kind));
      const double g = in_.options.gradient_bytes;
      const std::int64_t gathers = unit_gathers(in_, stage_, u + 1 == plan_.units.size(), unit.has_backward());
      put(pricing_.gather(weight * parameters[u].used, gathers) +
              pricing_.gather_experts(weight * parameters[u].used_experts, gathers),
          unit.gather, unit.gather_uses);
      put(pricing_.reduce(g * parameters[u].own, reductions(in_)) +
              pricing_.reduce_experts(g * parameters[u].experts, reductions(in_)),
          unit.reduce, unit.reduce_uses);
    }
  }

  /// Gradients fill buckets, those of experts that go their own way buckets of their own; all of them share one stream
  /// and go when they are full.
  void add_buckets() {
    if (in_.layout.replicas() > 1)
      fill(&UnitParameters::own, [&](double bytes, std::int64_t times) { return pricing_.reduce(bytes, times); });
    if (in_.layout.experts_apart() && in_.layout.expert_replicas() > 1)
      fill(&UnitParameters::experts,
           [&](double bytes, std::int64_t times) { return pricing_.reduce_experts(bytes, times); });
    std::stable_sort(plan_.buckets.begin(), plan_.buckets.end(),
                     [](const Bucket& a, const Bucket& b) { return a.unit > b.unit; });
  }

  template <class Reduce>
  void fill(double UnitParameters::*parameters, Reduce reduce) {
    for (const BucketFill& filled : stage_buckets(in_, stage_, parameters)) {
      const PricedTime full = reduce(filled.size, filled.full * reductions(in_));
      const PricedTime rest = reduce(filled.rest, filled.rest > 0 ? reductions(in_) : 0);
      std::int64_t bucket = 0;
      for (const std::size_t unit : filled.unit) {
        const PricedTime& one = bucket++ < filled.full ? full : rest;
        plan_.buckets.push_back({unit, one.time, one.uses});
      }
    }
  }

  const StepInputs& in_;
  StagePricing& pricing_;
  int stage_;
  Pace pace_;
  std::int64_t micro_batches_;
  StagePlan plan_;
};

/// A boundary's messages: the slowest, because a stage goes on when all its ranks have theirs.
Result<CollectiveCost> boundary(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time, int stage,
                                std::optional<Rank> of = {}) {
  CollectiveCost cost{Dimension::pp, "pp sendrecv", {}, {}, {}, 0};
  SlowestWay slowest(cost);
  for (const Way& way : of ? std::vector<Way>{{*of, 1}} : message_ways(in.layout, fabric, stage)) {
    CollectiveCost of_way;
    for (CollectiveRequest& request :
         stage_messages(in.layout, fabric, stage, whole(stage_message_bytes(in)), way.rank)) {
      const Result<Seconds> one = time(request);
      if (!one) return one.errors();
      if (of_way.request.group.size() > 0 && *one <= of_way.time) continue;
      of_way.time = *one;
      of_way.request = std::move(request);
    }
    slowest.take(std::move(of_way.request), of_way.time, way.groups);
  }
  slowest.finish();
  return cost;
}

/// What the ranks of a receiving stage do with their shares of a message: the TP group there of the rank `of`, else the
/// slowest.
Result<CollectiveCost> message_gather(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time, int stage,
                                      std::optional<Rank> of = {}) {
  CollectiveCost cost{Dimension::pp, "pp all_gather", {}, {}, {}, 0};
  if (!gathers_messages(in)) return cost;
  SlowestWay slowest(cost);
  for (const Way& way :
       of ? std::vector<Way>{{*of, 1}} : ways_of(in.layout, fabric, groups_along(Dimension::tp), stage)) {
    CollectiveRequest request = message_gather_request(in, fabric, stage, way.rank);
    const Result<Seconds> one = time(request);
    if (!one) return one.errors();
    slowest.take(std::move(request), *one, way.groups);
  }
  slowest.finish();
  return cost;
}

/// The messages of each stage to and from its neighbours, and what it does with those that it receives.
Diagnostics add_transfers(StepPlan& plan, const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const std::size_t stages = plan.stages.size();
  std::vector<CollectiveCost> boundaries;
  for (std::size_t i = 0; i + (plan.goes_round() ? 0 : 1) < stages; ++i) {
    Result<CollectiveCost> cost = boundary(in, fabric, time, static_cast<int>(i));
    if (!cost) return cost.errors();
    const Result<CollectiveCost> gather = message_gather(in, fabric, time, static_cast<int>((i + 1) % stages));
    if (!gather) return gather.errors();
    plan.transfer.push_back(cost->time + gather->time);
    boundaries.push_back(std::move(cost).value());
  }
  for (std::size_t i = 0; i < stages && stages > 1; ++i) {
    CollectiveCost cost = boundaries[std::min(i, stages - 2)];
    // A stage at an end sends one way only, and between chunks round to the other end.
    const bool at_end = i == 0 || i + 1 == stages;
    const bool one_way = at_end || in.serving;
    cost.count = std::int64_t{one_way ? 1 : 2} * plan.micro_batches * plan.chunks;
    std::int64_t received = in.serving && i == 0 ? 0 : cost.count;
    plan.stages[i].collectives.push_back(std::move(cost));
    if (at_end && plan.goes_round()) {
      CollectiveCost round = boundaries.back();
      round.name = "pp sendrecv round";
      round.count = std::int64_t{plan.micro_batches} * (plan.chunks - 1);
      received += round.count;
      plan.stages[i].collectives.push_back(std::move(round));
    }
    if (!gathers_messages(in) || received == 0) continue;
    Result<CollectiveCost> gather = message_gather(in, fabric, time, static_cast<int>(i));
    if (!gather) return gather.errors();
    plan.stages[i].collectives.push_back(std::move(gather).value());
    plan.stages[i].collectives.back().count = received;
  }
  return {};
}

}  // namespace

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(std::ceil(bytes))); }

double tp_bytes(const StepInputs& in) {
  return KernelTimer(in).precision().activation * Share(in).tokens * in.model.hidden;
}

double loss_bytes(const StepInputs& in) { return 4 * Share(in).tokens; }

double stage_message_bytes(const StepInputs& in) { return tp_bytes(in) / in.layout.tp; }

CollectiveRequest message_gather_request(const StepInputs& in, const Fabric& fabric, int stage,
                                         std::optional<Rank> of) {
  Coordinates at = of ? coordinates(in.layout, *of) : Coordinates{};
  at.pp = stage;
  const Group tp = groups_of(in.layout, rank_at(in.layout, at)).tp;
  return {CollectiveKind::all_gather, tp, whole(tp_bytes(in)), 0,
          groups_alongside(in.layout, fabric, groups_along(Dimension::tp), tp)};
}

bool gathers_messages(const StepInputs& in) { return in.layout.tp > 1 && !in.layout.sequence_parallel; }

bool sums_tied_gradients(const StepInputs& in) {
  const bool both_have_it = in.model.tied_embeddings || in.model.mtp_layers > 0;
  return both_have_it && !in.layout.ends_together() && !is_frozen(in.options);
}

double tied_bytes(const StepInputs& in) {
  return in.options.gradient_bytes * embedding_parameters(in.model, in.layout.tp).sharded;
}

double gathered_bytes(const StepInputs& in, int stage) {
  const RankParameters held = trained_parameters(in, stage);
  const double apart = in.layout.experts_apart() ? held.experts : 0, all = held.total() - apart;
  if (!in.options.communication.parameters) return KernelTimer(in).precision().activation * all;
  const double ends = parameter_terms(in, stage).trained_ends();
  return gathered_weight_bytes(in, false) * ends + gathered_weight_bytes(in, true) * (all - ends);
}

double gathered_expert_bytes(const StepInputs& in, int stage) {
  if (!in.layout.experts_apart()) return 0;
  return gathered_weight_bytes(in, true) * trained_parameters(in, stage).experts;
}

int sharding_stage(const StepInputs& in) {
  return in.layout.replicas() > 1 || in.layout.expert_replicas() > 1 ? in.options.zero : 0;
}

bool gathers_once(const StepInputs& in) {
  return in.options.zero == 3 && !in.options.reshard_after_forward && stays_whole(in);
}

std::int64_t reductions(const StepInputs& in) { return reduces_each_pass(in) ? in.batch.passes(in.layout) : 1; }

std::int64_t unit_gathers(const StepInputs& in, int stage, bool last_unit, bool has_backward) {
  const bool reshards = in.options.reshard_after_forward;
  if (gathers_once(in)) return 1;
  const bool again = reshards && has_backward && !(last_unit && turns_back(in, stage));
  return std::int64_t{in.batch.passes(in.layout)} * (again ? 2 : 1);
}

std::vector<BucketFill> stage_buckets(const StepInputs& in, int stage, double UnitParameters::*parameters) {
  std::vector<double> gradients;
  for (const UnitParameters& unit : unit_parameters(in, stage))
    gradients.push_back(in.options.gradient_bytes * unit.*parameters);
  const double size = bucket_of(in, std::accumulate(gradients.begin(), gradients.end(), 0.0));
  if (in.options.zero < 2 || in.layout.chunks() == 1) return {fill_buckets(gradients, size)};
  std::vector<std::size_t> begins(static_cast<std::size_t>(in.layout.chunks()) + 1, 0);
  begins[1] = has_embedding(in, stage) ? 1 : 0;
  for (const StageLayer& layer : layers_of_stage(in, stage)) ++begins[static_cast<std::size_t>(layer.chunk) + 1];
  for (std::size_t c = 1; c < begins.size(); ++c) begins[c] += begins[c - 1];
  begins.back() = gradients.size();
  std::vector<BucketFill> all;
  for (std::size_t c = 0; c + 1 < begins.size(); ++c) {
    all.push_back(fill_buckets(std::span(gradients).subspan(begins[c], begins[c + 1] - begins[c]), size));
    for (std::size_t& unit : all.back().unit) unit += begins[c];
  }
  return all;
}

BucketFill fill_buckets(std::span<const double> gradients, double size) {
  double total = 0;
  for (const double g : gradients) total += g;
  BucketFill fill;
  fill.size = size;
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

namespace {

/// All but its stages.
StepPlan without_stages(const StepInputs& in) {
  StepPlan plan;
  plan.schedule = in.layout.schedule;
  plan.micro_batches = in.batch.passes(in.layout);
  plan.chunks = in.layout.chunks();
  plan.overlap_dp = in.options.overlap_dp;
  plan.align_gradients = in.options.align_grad_reduce;
  plan.overlap_pp = in.options.overlap_pp;
  plan.zero = sharding_stage(in);
  plan.reshard = in.options.reshard_after_forward;
  plan.no_sync = plan.zero == 3 && in.options.no_sync;
  plan.delayed = in.options.delayed_all_reduce;
  return plan;
}

/// `make` of each stage.
Diagnostics add_stages(StepPlan& plan, StagePlan (StageMaker::*make)() &&, const StepInputs& in, const Fabric& fabric,
                       const CollectiveTime& time) {
  Diagnostics errors;
  for (int stage = 0; stage < in.layout.pp; ++stage) {
    StagePricing pricing(in, fabric, time, stage);
    plan.stages.push_back((StageMaker(in, pricing, stage).*make)());
    plan.stages.back().collectives = std::move(pricing.costs);
    append(errors, pricing.errors);
  }
  return errors;
}

}  // namespace

Result<StepPlan> make_units(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  StepPlan plan = without_stages(in);
  if (Diagnostics wrong = add_stages(plan, &StageMaker::make_units, in, fabric, time); !wrong.empty()) return wrong;
  return plan;
}

Result<StepPlan> make_priced_plan(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  StepPlan plan = without_stages(in);
  if (Diagnostics wrong = add_stages(plan, &StageMaker::make, in, fabric, time); !wrong.empty()) return wrong;
  if (Diagnostics wrong = add_transfers(plan, in, fabric, time); !wrong.empty()) return wrong;
  return plan;
}

Result<StepPlan> make_plan(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  Result<StepPlan> plan = make_priced_plan(in, fabric, time);
  if (!plan) return plan;
  StepPlan ordered = std::move(plan).value();
  add_orders(ordered, in);
  return ordered;
}

Result<StageRequests> stage_requests(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time,
                                     int stage) {
  const auto pricing = std::make_shared<StagePricing>(in, fabric, time, stage);
  StageMaker(in, *pricing, stage).make();
  if (!pricing->errors.empty()) return pricing->errors;
  StageRequests out;
  out.usual = std::move(pricing->costs);
  for (StageRequest& one : pricing->requests)
    out.requests.push_back({one.group_of, [pricing, of = std::move(one.of)](Rank rank) { return of(rank); }});
  return out;
}

StagePlan make_stage(const StepInputs& in, const Fabric& fabric, int stage, Rank rank, Pace pace,
                     const std::vector<CollectiveCost>& costs) {
  StagePricing pricing(in, fabric, stage, rank, costs);
  StagePlan plan = StageMaker(in, pricing, stage, pace).make();
  plan.collectives = std::move(pricing.costs);
  return plan;
}

Result<Transfer> make_transfer(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time, int stage,
                               std::optional<Rank> of) {
  Result<CollectiveCost> cost = boundary(in, fabric, time, stage, of);
  if (!cost) return cost.errors();
  const Result<CollectiveCost> gather = message_gather(in, fabric, time, (stage + 1) % in.layout.pp, of);
  if (!gather) return gather.errors();
  const Seconds both = cost->time + gather->time;
  return Transfer{both, std::move(cost).value()};
}

}  // namespace collcast::workload
