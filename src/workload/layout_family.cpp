// A plan of few stretches, filled anew for each choice.
//
// For sums a pass of a unit is four stretches: computing, and what is exposed of TP, CP and EP. Buckets that one unit
// completes become one: only the first of them to be full can decide when the exchange ends. Stages at equal places of
// the machine, with equal ends, are one kind and priced once.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "collcast/evaluate/symmetry.hpp"
#include "collcast/workload/search.hpp"
#include "workload/estimate_step.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/layer/kernels.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"
#include "workload/layer/token_dispatch.hpp"
#include "workload/plan.hpp"
#include "workload/slowdown.hpp"
#include "workload/stretches.hpp"
#include "workload/ways.hpp"
#include "workload/wire.hpp"

namespace collcast {

namespace {

using namespace workload;

constexpr std::size_t at(UnitKind kind) { return static_cast<std::size_t>(kind); }

/// What depends on micro-batch, sequence parallelism and recomputation alone.
struct Kernels {
  LayoutChoice choice;
  std::array<Segments, unit_kinds> units;
};

bool same_kernels(const LayoutChoice& a, const LayoutChoice& b, const TrainingOptions& options) {
  if (casts_depend_on_zero(options) && a.zero != b.zero) return false;
  return a.micro_batch == b.micro_batch && a.sequence_parallel == b.sequence_parallel && a.recompute == b.recompute;
}

/// A group and its neighbours at the front of the machine; only the size of what it exchanges is open.
using Site = CollectiveRequest;

bool same_ranks(const Group& a, const Group& b) {
  if (a.is_strided() && b.is_strided())
    return a.size() == b.size() && a.stride() == b.stride() && (a.size() == 0 || a[0] == b[0]);
  return a.ranks() == b.ranks();
}
bool same_site(const Site& a, const Site& b) {
  return same_ranks(a.group, b.group) && std::ranges::equal(a.alongside, b.alongside, same_ranks);
}

/// Of a stage's groups of one kind, by the ways in which they lie; the slowest counts.
using Sites = std::vector<std::size_t>;

/// Stages that price alike.
struct StageKind {
  int stage = 0;  ///< the first of them
  Sites tp, cp, ep, expert_tp;
  std::map<GroupOf, Sites> replicas;  ///< of those who have the same parameters
  std::vector<bool> cp_slows;         ///< its kernels, by site of `cp`
  std::vector<double> dispatched;     ///< of the bytes of dispatch and combine, by site of `ep`
  struct Layer {
    UnitKind kind = UnitKind::layer;
    int chunk = 0;
    friend bool operator==(const Layer&, const Layer&) = default;
  };
  std::vector<Layer> layers;
  bool has_embedding = false, has_head = false;
  std::vector<UnitKind> units;  ///< of which each work is
  /// Of gradients that share a group.
  struct Buckets {
    std::vector<std::int64_t> full;  ///< by unit of the stage
    double size = 0;                 ///< bytes of each of these
    std::size_t rest_unit = 0;       ///< that completes the last bucket
    double rest = 0;                 ///< bytes of it; 0: there is none
  };
  /// By ZeRO stage, of 2 of each chunk; filled when it is first asked for.
  std::array<std::optional<std::vector<Buckets>>, 3> buckets, expert_buckets;
  GradientExchange gradients, expert_gradients;
  std::array<Seconds, 4> optimizer{};                             ///< by ZeRO stage
  std::array<std::shared_ptr<const UnitWork>, unit_kinds> works;  ///< as priced last
};

}  // namespace

class LayoutFamily::State {
 public:
  State(const StepInputs& base, const Fabric& fabric, const CollectiveTime& time) : in_(base), time_(time) {
    plan_.schedule = in_.layout.schedule;
    plan_.chunks = in_.layout.chunks();
    plan_.overlap_dp = in_.options.overlap_dp;
    plan_.align_gradients = in_.options.align_grad_reduce;
    plan_.overlap_pp = in_.options.overlap_pp;
    plan_.reshard = in_.options.reshard_after_forward;
    plan_.delayed = in_.options.delayed_all_reduce;
    const int stages = in_.layout.pp;
    for (int i = 0; i < stages; ++i) add_stage(fabric, i);
    const int boundaries = plan_.goes_round() ? stages : stages - 1;
    for (int i = 0; i < boundaries; ++i) add_boundary(fabric, i);
    plan_.transfer.resize(static_cast<std::size_t>(boundaries));
    if (sums_tied_gradients(in_) && in_.options.embedding_and_logits) add_tied(fabric);
  }

  Result<LayoutEstimate> estimate(const LayoutChoice& choice) {
    put(choice, in_);
    errors_.clear();
    fill(choice);
    if (!errors_.empty()) return std::exchange(errors_, {});
    const StepEstimate e = estimate_step(plan_);
    return LayoutEstimate{e.total, e.breakdown, plan_.made()};
  }

 private:
  std::size_t site(Site place) {
    const auto found = std::ranges::find_if(sites_, [&](const Site& s) { return same_site(s, place); });
    if (found != sites_.end()) return static_cast<std::size_t>(found - sites_.begin());
    sites_.push_back(std::move(place));
    prices_.emplace_back();
    return sites_.size() - 1;
  }

  Sites sites(const Fabric& fabric, GroupOf group_of, int stage) {
    Sites out;
    for (const Way& way : ways_of(in_.layout, fabric, group_of, stage)) {
      const Group group = group_of(in_.layout, way.rank);
      out.push_back(site(moved_to_front(
          fabric, {CollectiveKind::all_reduce, group, {}, 0, groups_alongside(in_.layout, fabric, group_of, group)})));
    }
    return out;
  }

  void add_stage(const Fabric& fabric, int stage) {
    StageKind kind;
    kind.stage = stage;
    if (in_.layout.tp > 1) kind.tp = sites(fabric, groups_along(Dimension::tp), stage);
    if (in_.layout.cp > 1) kind.cp = sites(fabric, groups_along(Dimension::cp), stage);
    for (const std::size_t s : kind.cp) kind.cp_slows.push_back(messages_slow(sites_[s].group, fabric));
    const auto among = [&](GroupOf group_of) { kind.replicas.emplace(group_of, sites(fabric, group_of, stage)); };
    if (in_.layout.replicas() > 1) among(replica_group);
    if (in_.layout.shards() > 1) among(shard_group);
    if (in_.layout.shard_copies() > 1) among(shard_copies);
    if (in_.layout.ep > 1) {
      const GroupOf along = groups_along(Dimension::ep);
      kind.ep = sites(fabric, along, stage);
      for (const Way& way : ways_of(in_.layout, fabric, along, stage))
        kind.dispatched.push_back(dispatched_share(in_, fabric, along(in_.layout, way.rank)));
    }
    if (in_.model.experts.count > 0 && in_.layout.expert_tp() > 1)
      kind.expert_tp = sites(fabric, expert_tp_group, stage);
    if (experts_exchange()) {
      among(expert_replica_group);
      // Otherwise only choices without ZeRO can come.
      const bool whole = shards_have_all_experts(in_.layout);
      if (whole && expert_shards(in_.layout) > 1) among(expert_shard_group);
      if (whole && expert_shard_copies(in_.layout) > 1) among(expert_copies_group);
    }
    for (const StageLayer& layer : layers_of_stage(in_, stage))
      kind.layers.push_back({unit_of(kind_of_layer(in_, layer.number)), layer.chunk});
    kind.has_embedding = has_embedding(in_, stage);
    kind.has_head = has_head(in_, stage);
    const auto found = std::ranges::find_if(kinds_, [&](const StageKind& k) {
      return k.tp == kind.tp && k.cp == kind.cp && k.ep == kind.ep && k.dispatched == kind.dispatched &&
             k.expert_tp == kind.expert_tp && k.replicas == kind.replicas && k.layers == kind.layers &&
             k.has_embedding == kind.has_embedding && k.has_head == kind.has_head;
    });
    kind_of_stage_.push_back(static_cast<std::size_t>(found - kinds_.begin()));
    if (found == kinds_.end()) {
      add_units(kind);
      kinds_.push_back(std::move(kind));
    }
    add_blank_stage(kinds_[kind_of_stage_.back()]);
  }

  void add_boundary(const Fabric& fabric, int stage) {
    Sites sites;
    for (const Way& way : message_ways(in_.layout, fabric, stage))
      for (const CollectiveRequest& message : stage_messages(in_.layout, fabric, stage, {}, way.rank))
        sites.push_back(site(moved_to_front(fabric, message)));
    std::ranges::sort(sites);
    sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
    const auto found = std::ranges::find(boundaries_, sites);
    kind_of_boundary_.push_back(static_cast<std::size_t>(found - boundaries_.begin()));
    if (found == boundaries_.end()) boundaries_.push_back(std::move(sites));
  }

  void add_units(StageKind& kind) {
    if (kind.has_embedding) kind.units.push_back(UnitKind::embedding);
    for (const LayerKind layer : layer_kinds())
      if (std::ranges::find(kind.layers, unit_of(layer), &StageKind::Layer::kind) != kind.layers.end())
        kind.units.push_back(unit_of(layer));
    if (kind.has_head) kind.units.push_back(UnitKind::head);
    kind.gradients = GradientExchange(in_, kind.stage, false);
    kind.expert_gradients = GradientExchange(in_, kind.stage, true);
    for (const int zero : {0, 1, 2, 3}) {
      in_.options.zero = zero;
      for (const Operation& op : optimizer_operations(in_, kind.stage))
        kind.optimizer[static_cast<std::size_t>(zero)] += op.time;
    }
  }

  std::vector<StageKind::Buckets> buckets_of(int stage, double UnitParameters::*parameters) const {
    const std::size_t units = unit_parameters(in_, stage).size();
    std::vector<StageKind::Buckets> all;
    for (const BucketFill& fill : stage_buckets(in_, stage, parameters)) {
      StageKind::Buckets out;
      out.full.assign(units, 0);
      for (std::int64_t b = 0; b < fill.full; ++b) ++out.full[fill.unit[static_cast<std::size_t>(b)]];
      out.size = fill.size;
      out.rest = fill.rest;
      if (fill.rest > 0) out.rest_unit = fill.unit.back();
      all.push_back(std::move(out));
    }
    return all;
  }

  /// Units of a stage, whose work is filled in for each choice.
  void add_blank_stage(const StageKind& kind) {
    StagePlan stage;
    const auto add = [&](UnitKind unit, int chunk) {
      const auto work = std::ranges::find(kind.units, unit) - kind.units.begin();
      stage.units.push_back({unit, "", static_cast<std::size_t>(work), chunk});
    };
    if (kind.has_embedding) add(UnitKind::embedding, 0);
    for (const StageKind::Layer& layer : kind.layers) add(layer.kind, layer.chunk);
    if (kind.has_head) add(UnitKind::head, plan_.chunks - 1);
    stage.works.resize(kind.units.size());
    stage.optimizer.resize(1);
    plan_.stages.push_back(std::move(stage));
  }

  void add_tied(const Fabric& fabric) {
    const GroupOf along = groups_along(Dimension::pp);
    const auto ends = [&](const Group& g) { return Group::listed({g[0], g[in_.layout.pp - 1]}); };
    Sites sites;
    for (const Way& way : ways_of(in_.layout, fabric, along, 0)) {
      const Group pp = along(in_.layout, way.rank);
      Site place{CollectiveKind::all_reduce, ends(pp), {}, 0, {}};
      for (const Group& other : groups_alongside(in_.layout, fabric, along, pp)) place.alongside.push_back(ends(other));
      sites.push_back(site(moved_to_front(fabric, place)));
    }
    tied_ = price(sites, CollectiveKind::all_reduce, tied_bytes(in_));
    tied_errors_ = std::exchange(errors_, {});
  }

  Seconds price(const Sites& sites, CollectiveKind kind, double size) {
    Seconds slowest{};
    for (const std::size_t site : sites) slowest = std::max(slowest, price(site, kind, size));
    return slowest;
  }
  Seconds price(std::size_t site, CollectiveKind kind, double size) {
    const Bytes bytes = whole(size);
    for (const Price& p : prices_[site])
      if (p.kind == kind && p.bytes == bytes) return p.time;
    CollectiveRequest request = sites_[site];
    request.kind = kind;
    request.size = bytes;
    const Result<Seconds> time = time_(request);
    if (!time) {
      errors_.insert(errors_.end(), time.errors().begin(), time.errors().end());
      return {};
    }
    prices_[site].push_back({kind, bytes, *time});
    return *time;
  }

  const Kernels& kernels(const LayoutChoice& choice) {
    for (auto w = kernels_.rbegin(); w != kernels_.rend(); ++w)
      if (same_kernels(w->choice, choice, in_.options)) return *w;
    kernels_.push_back({choice, {}});
    for (const LayerKind layer : layer_kinds())
      if (std::ranges::any_of(
              kinds_, [&](const StageKind& k) { return std::ranges::find(k.units, unit_of(layer)) != k.units.end(); }))
        kernels_.back().units[at(unit_of(layer))] = layer_segments(in_, layer);
    if (in_.options.embedding_and_logits) {
      kernels_.back().units[at(UnitKind::embedding)] = embedding_segments(in_);
      kernels_.back().units[at(UnitKind::head)] = head_segments(in_);
    }
    return kernels_.back();
  }

  void fill(const LayoutChoice& choice) {
    const Kernels& k = kernels(choice);
    for (StageKind& kind : kinds_) price_units(kind, k);
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) fill_stage(plan_.stages[i], kinds_[kind_of_stage_[i]]);
    for (StageKind& kind : kinds_) price_gradients(kind);
    fill_transfers();
    plan_.micro_batches = in_.batch.passes(in_.layout);
    plan_.zero = sharding_stage(in_);
    plan_.no_sync = plan_.zero == 3 && in_.options.no_sync;
    if (tied_) {
      plan_.stages.front().tied_embedding = plan_.stages.back().tied_embedding = *tied_;
      errors_.insert(errors_.end(), tied_errors_.begin(), tied_errors_.end());
    }
    add_orders(plan_, in_);
  }

  /// A stage goes on when all its ranks have their messages.
  void fill_transfers() {
    transfers_.assign(boundaries_.size(), {});
    for (std::size_t b = 0; b < boundaries_.size(); ++b)
      for (const std::size_t s : boundaries_[b])
        transfers_[b] = std::max(transfers_[b], price(s, CollectiveKind::sendrecv, stage_message_bytes(in_)));
    for (std::size_t i = 0; i < plan_.transfer.size(); ++i) {
      plan_.transfer[i] = transfers_[kind_of_boundary_[i]];
      if (!gathers_messages(in_)) continue;
      const StageKind& receiver = kinds_[kind_of_stage_[(i + 1) % plan_.stages.size()]];
      plan_.transfer[i] += price(receiver.tp, CollectiveKind::all_gather, tp_bytes(in_));
    }
  }

  void price_units(StageKind& kind, const Kernels& k) {
    const auto of = [this](int ranks, const Sites& sites, CollectiveKind what, double bytes, int each) {
      if (ranks == 1 || each == 0 || !(bytes > 0)) return PricedTime();
      return PricedTime{price(sites, what, bytes), {}};
    };
    const auto context = [&](CollectiveKind what, double bytes, int each) {
      PricedTime priced = of(in_.layout.cp, kind.cp, what, bytes, each);
      for (std::size_t i = 0; i < kind.cp.size() && priced.time > Seconds{}; ++i) {
        if (price(kind.cp[i], what, bytes) < priced.time) continue;
        priced.slows = kind.cp_slows[i];
        break;
      }
      return priced;
    };
    const auto dispatched = [&](const ExpertExchange& e) {
      Seconds slowest{};
      for (std::size_t i = 0; i < kind.ep.size() && e.bytes > 0; ++i)
        slowest = std::max(slowest, price(kind.ep[i], e.kind, e.bytes * kind.dispatched[i]));
      return PricedTime{slowest, {}};
    };
    const ParallelLayout& l = in_.layout;
    const StretchPrices prices{
        [&](CollectiveKind what, double bytes, int each) { return of(l.tp, kind.tp, what, bytes, each); }, context,
        [&](const ExpertExchange& e) {
          return e.within_expert ? of(l.expert_tp(), kind.expert_tp, e.kind, e.bytes, 1) : dispatched(e);
        },
        false};
    for (const UnitKind unit : kind.units)
      kind.works[at(unit)] =
          std::make_shared<const UnitWork>(unit_work(in_, k.units[at(unit)], unit == UnitKind::head, {}, prices));
  }

  /// A pass in sums: computing, then what is exposed of TP, CP and EP.
  static void sum_up(const std::vector<Stretch>& pass, std::vector<Stretch>& sums) {
    sums.resize(4);
    sums[0].category = Category::forward;
    sums[0].time = Seconds{};
    for (const Stretch& s : pass)
      if (s.computes()) sums[0].time += s.time;
    std::size_t at = 1;
    for (const Category of : {Category::tp, Category::cp, Category::ep}) {
      Stretch& sum = sums[at++];
      sum.category = of;
      sum.time = Seconds{};
      for (const Stretch& s : pass) sum.time += s.exposed(of);
    }
  }

  void fill_stage(StagePlan& stage, const StageKind& kind) {
    for (std::size_t i = 0; i < kind.units.size(); ++i) {
      const UnitWork& from = *kind.works[at(kind.units[i])];
      UnitWork& unit = stage.works[i];
      sum_up(from.forward, unit.forward);
      sum_up(from.backward, unit.backward);
      sum_up(from.weights, unit.weights);
      unit.detail = kind.works[at(kind.units[i])];
      unit.whole_backward.clear();
      unit.whole_weights.clear();
      if (from.whole_backward.empty()) continue;
      sum_up(from.whole_backward, unit.whole_backward);
      sum_up(from.whole_weights, unit.whole_weights);
    }
    stage.optimizer[0].time = kind.optimizer[static_cast<std::size_t>(in_.options.zero)];
  }

  /// Of gradients, so many as kept: summed over those who have the same.
  Seconds reduction(const StageKind& kind, const GradientExchange& exchange, double kept) {
    Seconds time{};
    for (const double bytes : exchange.sent(kept))
      for (const ReplicaCollective& one : reductions_of(in_, bytes, exchange.of_experts)) time += among(kind, one);
    return time;
  }
  Seconds among(const StageKind& kind, const ReplicaCollective& one) {
    const auto found = kind.replicas.find(one.group_of);
    return found != kind.replicas.end() && one.bytes > 0 ? price(found->second, one.kind, one.bytes) : Seconds{};
  }
  Seconds gather(const StageKind& kind, double bytes, double of_experts) {
    return among(kind, gather_of(bytes, false)) + among(kind, gather_of(of_experts, true));
  }
  /// Of experts that go their own way.
  bool experts_exchange() const { return in_.layout.experts_apart() && in_.layout.expert_replicas() > 1; }

  /// ZeRO-3: units by themselves.
  void price_unit_exchanges(const StageKind& kind) {
    const std::vector<UnitParameters> parameters = unit_parameters(in_, kind.stage);
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      if (&kinds_[kind_of_stage_[i]] != &kind) continue;
      StagePlan& stage = plan_.stages[i];
      stage.buckets.clear();
      stage.gather = {};
      for (std::size_t u = 0; u < stage.units.size(); ++u) {
        UnitWork& unit = stage.works[stage.units[u].work];
        const double weight = gathered_weight_bytes(in_, is_layer(stage.units[u].kind));
        const double g = in_.options.gradient_bytes;
        unit.gather = gather(kind, weight * parameters[u].used, weight * parameters[u].used_experts);
        unit.reduce = reduction(kind, kind.gradients, g * parameters[u].own) +
                      reduction(kind, kind.expert_gradients, g * parameters[u].experts);
      }
    }
  }

  /// Buckets and gather of a kind's stages.
  void price_gradients(StageKind& kind) {
    if (in_.layout.replicas() == 1 && !experts_exchange()) return;
    if (in_.options.zero == 3) return price_unit_exchanges(kind);
    Seconds update{};
    if (in_.options.zero >= 1 && in_.options.optimizer)
      update = gather(kind, gathered_bytes(in_, kind.stage), gathered_expert_bytes(in_, kind.stage));
    buckets_.clear();
    const auto zero = static_cast<std::size_t>(in_.options.zero);
    if (in_.layout.replicas() > 1)
      add_buckets(kind.stage, &UnitParameters::own, kind.buckets[zero],
                  [&](double bytes) { return reduction(kind, kind.gradients, bytes); });
    if (experts_exchange())
      add_buckets(kind.stage, &UnitParameters::experts, kind.expert_buckets[zero],
                  [&](double bytes) { return reduction(kind, kind.expert_gradients, bytes); });
    std::ranges::stable_sort(buckets_, [](const Bucket& a, const Bucket& b) { return a.unit > b.unit; });
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      if (&kinds_[kind_of_stage_[i]] != &kind) continue;
      plan_.stages[i].buckets = buckets_;
      plan_.stages[i].gather = update;
    }
  }

  template <class Reduce>
  void add_buckets(int stage, double UnitParameters::*parameters, std::optional<std::vector<StageKind::Buckets>>& known,
                   Reduce reduce) {
    if (!known) known = buckets_of(stage, parameters);
    for (const StageKind::Buckets& one : *known) add_buckets(one, reduce);
  }

  template <class Reduce>
  void add_buckets(const StageKind::Buckets& fill, Reduce reduce) {
    const auto any_full = std::ranges::any_of(fill.full, [](std::int64_t n) { return n > 0; });
    const Seconds full = any_full ? reduce(fill.size) : Seconds{};
    const Seconds rest = fill.rest > 0 ? reduce(fill.rest) : Seconds{};
    for (std::size_t u = fill.full.size(); u-- > 0;) {
      const bool last = fill.rest > 0 && u == fill.rest_unit;
      if (fill.full[u] > 0 || last)
        buckets_.push_back({u, static_cast<double>(fill.full[u]) * full + (last ? rest : Seconds{})});
    }
  }

  struct Price {
    CollectiveKind kind{};
    Bytes bytes{};
    Seconds time{};
  };

  StepInputs in_;
  const CollectiveTime& time_;
  std::vector<Site> sites_;
  std::vector<std::vector<Price>> prices_;  // by site
  std::vector<StageKind> kinds_;
  std::vector<std::size_t> kind_of_stage_;
  std::vector<Sites> boundaries_;  // alike ones once: sites of their messages
  std::vector<std::size_t> kind_of_boundary_;
  std::vector<Seconds> transfers_;  // by kind of boundary
  std::optional<Seconds> tied_;
  Diagnostics tied_errors_;
  std::vector<Kernels> kernels_;
  std::vector<Bucket> buckets_;
  StepPlan plan_;
  Diagnostics errors_;
};

LayoutFamily::LayoutFamily(const StepInputs& base, const Fabric& fabric, const CollectiveTime& time)
    : state_(std::make_unique<State>(base, fabric, time)) {}
LayoutFamily::~LayoutFamily() = default;
LayoutFamily::LayoutFamily(LayoutFamily&&) noexcept = default;
LayoutFamily& LayoutFamily::operator=(LayoutFamily&&) noexcept = default;

Result<LayoutEstimate> LayoutFamily::estimate(const LayoutChoice& choice) { return state_->estimate(choice); }

std::string_view to_string(SearchValues values) { return values == SearchValues::all ? "all" : "usual"; }

PipelineSchedule schedule_of(const LayoutChoice& choice, PipelineSchedule base) {
  if (base == PipelineSchedule::gpipe || is_own(base) || (splits_backward(base) && choice.vpp == 1)) return base;
  return choice.vpp > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b;
}

namespace {

void put_server(const LayoutChoice& choice, StepInputs& in) {
  Serving& s = *in.serving;
  if (choice.batch > 0) s.batch = choice.batch;
  s.micro_batches = s.batch / choice.micro_batch;
  s.cut_by_stages = false;
  // More than int holds is refused by the planner: too_many_sequences.
  in.batch.global_batch = static_cast<int>(
      std::min<std::int64_t>(std::int64_t{s.batch} * std::max(choice.dp, 1), std::numeric_limits<int>::max()));
}

}  // namespace

int dp_shard_of(const LayoutChoice& choice, const ParallelLayout& base) {
  if (base.dp_shard <= 0) return base.dp_shard;
  const int dp = std::max(choice.dp, 1);
  int shard = std::min(base.dp_shard, dp);
  while (dp % shard != 0) --shard;
  return shard;
}

int etp_of(const LayoutChoice& choice, const StepInputs& base) {
  if (base.serving) return choice.etp;
  if (base.layout.etp <= 0) return base.layout.etp;
  const std::int64_t ranks = std::int64_t{choice.tp} * choice.cp * std::max(choice.dp, 1);
  return static_cast<int>(std::gcd<std::int64_t>(base.layout.etp, ranks));
}

void put(const LayoutChoice& choice, StepInputs& in) {
  in.layout.tp = choice.tp;
  in.layout.pp = choice.pp;
  in.layout.dp = choice.dp;
  in.layout.cp = choice.cp;
  in.layout.ep = choice.ep;
  in.layout.etp = etp_of(choice, in);
  in.layout.dp_shard = dp_shard_of(choice, in.layout);
  in.layout.vpp = choice.vpp;
  in.layout.schedule = schedule_of(choice, in.layout.schedule);
  in.layout.sequence_parallel = choice.sequence_parallel;
  in.batch.micro_batch = choice.micro_batch;
  in.options.recompute = choice.recompute;
  in.options.zero = choice.zero;
  if (in.serving) put_server(choice, in);
}

}  // namespace collcast
