// A plan of few stretches, filled anew for each choice.
//
// A unit's kernels run one after the other and so do its collectives, so for sums a unit is two stretches a pass:
// computing and communicating. Buckets that one unit completes become one: only the first of them to be full can decide
// when the exchange ends. Stages at equal places of the machine, with equal ends, are one kind and priced once.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "collcast/evaluate/symmetry.hpp"
#include "collcast/workload/search.hpp"
#include "workload/estimate_step.hpp"
#include "workload/parameters.hpp"
#include "workload/plan.hpp"
#include "workload/segments.hpp"

namespace collcast {

namespace {

using namespace workload;

/// What a pass of a unit does for one micro-batch, before its collectives have a price.
struct PassSums {
  Seconds kernels{};
  int gathers = 0, reductions = 0;  ///< all_gather; reduce_scatter, or all_reduce without sequence parallelism
};
struct UnitSums {
  PassSums forward, backward;
};

PassSums sums(const std::vector<Segment>& segments) {
  PassSums p;
  for (const Segment& s : segments) {
    for (const Operation& op : s.operations) p.kernels += op.time;
    if (s.then) ++(*s.then == CollectiveKind::all_gather ? p.gathers : p.reductions);
  }
  return p;
}
UnitSums sums(const Segments& s) { return {sums(s.forward), sums(s.backward)}; }

constexpr std::size_t unit_kinds = 3;
constexpr std::size_t at(UnitKind kind) { return static_cast<std::size_t>(kind); }

/// What depends on micro-batch, sequence parallelism and recomputation alone.
struct Kernels {
  LayoutChoice choice;
  std::array<UnitSums, unit_kinds> units;
};

bool same_kernels(const LayoutChoice& a, const LayoutChoice& b) {
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

/// Stages that price alike.
struct StageKind {
  int stage = 0;  ///< the first of them
  std::size_t tp = 0, dp = 0;
  bool has_embedding = false, has_head = false;
  std::vector<UnitKind> units;         ///< of which each work is
  std::vector<std::int64_t> buckets;   ///< full ones by unit of the stage
  std::size_t rest_unit = 0;           ///< that completes the last bucket
  double rest = 0;                     ///< bytes of it; 0: there is none
  std::array<Seconds, 2> optimizer{};  ///< without and with a distributed one
  std::array<Seconds, unit_kinds> forward_compute{}, forward_tp{}, backward_compute{}, backward_tp{};
};

}  // namespace

class LayoutFamily::State {
 public:
  State(const StepInputs& base, const Fabric& fabric, const CollectiveTime& time) : in_(base), time_(time) {
    plan_.schedule = in_.layout.schedule;
    plan_.chunks = in_.layout.vpp;
    plan_.overlap_dp = in_.options.overlap_dp;
    plan_.overlap_pp = in_.options.overlap_pp;
    const int stages = in_.layout.pp;
    for (int i = 0; i < stages; ++i) add_stage(fabric, i);
    const int boundaries = plan_.chunks > 1 ? stages : stages - 1;
    for (int i = 0; i < boundaries; ++i) add_boundary(fabric, i);
    plan_.transfer.resize(static_cast<std::size_t>(boundaries));
    if (in_.model.tied_embeddings && stages > 1 && in_.options.embedding_and_logits) add_tied(fabric);
  }

  Result<LayoutEstimate> estimate(const LayoutChoice& choice) {
    put(choice, in_);
    errors_.clear();
    fill(choice);
    if (!errors_.empty()) return std::exchange(errors_, {});
    const StepEstimate e = estimate_step(plan_);
    return LayoutEstimate{e.total, e.breakdown};
  }

 private:
  std::size_t site(Site place) {
    const auto found = std::ranges::find_if(sites_, [&](const Site& s) { return same_site(s, place); });
    if (found != sites_.end()) return static_cast<std::size_t>(found - sites_.begin());
    sites_.push_back(std::move(place));
    prices_.emplace_back();
    return sites_.size() - 1;
  }

  std::size_t site(const Fabric& fabric, Dimension dimension, const Group& group) {
    return site(moved_to_front(
        fabric, {CollectiveKind::all_reduce, group, {}, 0, groups_alongside(in_.layout, fabric, dimension, group)}));
  }

  void add_stage(const Fabric& fabric, int stage) {
    const RankGroups groups = groups_of(in_.layout, rank_at(in_.layout, {0, stage, 0, 0, 0}));
    StageKind kind;
    kind.stage = stage;
    if (in_.layout.tp > 1) kind.tp = site(fabric, Dimension::tp, groups.tp);
    if (in_.layout.dp > 1) kind.dp = site(fabric, Dimension::dp, groups.dp);
    kind.has_embedding = has_embedding(in_, stage);
    kind.has_head = has_head(in_, stage);
    const auto found = std::ranges::find_if(kinds_, [&](const StageKind& k) {
      return k.tp == kind.tp && k.dp == kind.dp && k.has_embedding == kind.has_embedding && k.has_head == kind.has_head;
    });
    kind_of_stage_.push_back(static_cast<std::size_t>(found - kinds_.begin()));
    if (found == kinds_.end()) {
      add_units(kind);
      kinds_.push_back(std::move(kind));
    }
    add_blank_stage(kinds_[kind_of_stage_.back()]);
  }

  void add_boundary(const Fabric& fabric, int stage) {
    std::vector<std::size_t> sites;
    for (const CollectiveRequest& message : stage_messages(in_.layout, fabric, stage, {}))
      sites.push_back(site(moved_to_front(fabric, message)));
    std::ranges::sort(sites);
    sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
    const auto found = std::ranges::find(boundaries_, sites);
    kind_of_boundary_.push_back(static_cast<std::size_t>(found - boundaries_.begin()));
    if (found == boundaries_.end()) boundaries_.push_back(std::move(sites));
  }

  void add_units(StageKind& kind) {
    const TransformerConfig& m = in_.model;
    const int tp = in_.layout.tp, layers = m.layers / in_.layout.pp;
    std::vector<double> gradients;
    const auto unit = [&](const RankParameters& p) { gradients.push_back(in_.options.gradient_bytes * p.total()); };
    if (kind.has_embedding) {
      kind.units.push_back(UnitKind::embedding);
      unit(embedding_parameters(m, tp));
    }
    kind.units.push_back(UnitKind::layer);
    for (int i = 0; i < layers; ++i) unit(layer_parameters(m, tp));
    if (kind.has_head) {
      kind.units.push_back(UnitKind::head);
      unit(head_parameters(m, tp, m.tied_embeddings && in_.layout.pp == 1));
    }
    if (in_.layout.dp > 1) {
      const BucketFill fill = fill_buckets(gradients, static_cast<double>(in_.options.bucket.value()));
      kind.buckets.assign(gradients.size(), 0);
      for (std::int64_t b = 0; b < fill.full; ++b) ++kind.buckets[fill.unit[static_cast<std::size_t>(b)]];
      kind.rest = fill.rest;
      if (fill.rest > 0) kind.rest_unit = fill.unit.back();
    }
    for (const int zero : {0, 1}) {
      in_.options.zero = zero;
      for (const Operation& op : optimizer_operations(in_, kind.stage))
        kind.optimizer[static_cast<std::size_t>(zero)] += op.time;
    }
  }

  /// Units and stretches of a stage, all of length 0.
  void add_blank_stage(const StageKind& kind) {
    const std::vector<Stretch> pass{{"", Category::forward, {}}, {"", Category::tp, {}}};
    StagePlan stage;
    for (const UnitKind unit : kind.units) {
      const int count = unit == UnitKind::layer ? in_.model.layers / in_.layout.pp : 1, chunks = plan_.chunks;
      for (int i = 0; i < count; ++i) {
        const int chunk = unit == UnitKind::layer ? i / (count / chunks) : unit == UnitKind::head ? chunks - 1 : 0;
        stage.units.push_back({unit, "", stage.works.size(), chunk});
      }
      stage.works.push_back({pass, pass, 0});
    }
    stage.optimizer.resize(1);
    plan_.stages.push_back(std::move(stage));
  }

  void add_tied(const Fabric& fabric) {
    const Group pp = groups_of(in_.layout, rank_at(in_.layout, {})).pp;
    const auto ends = [&](const Group& g) { return Group::listed({g[0], g[in_.layout.pp - 1]}); };
    Site place{CollectiveKind::all_reduce, ends(pp), {}, 0, {}};
    for (const Group& other : groups_alongside(in_.layout, fabric, Dimension::pp, pp))
      place.alongside.push_back(ends(other));
    tied_ = price(site(moved_to_front(fabric, place)), CollectiveKind::all_reduce, tied_bytes(in_));
    tied_errors_ = std::exchange(errors_, {});
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
      if (same_kernels(w->choice, choice)) return *w;
    kernels_.push_back({choice, {UnitSums{}, sums(layer_segments(in_)), UnitSums{}}});
    if (in_.options.embedding_and_logits) {
      kernels_.back().units[at(UnitKind::embedding)] = sums(embedding_segments(in_));
      kernels_.back().units[at(UnitKind::head)] = sums(head_segments(in_));
    }
    return kernels_.back();
  }

  void fill(const LayoutChoice& choice) {
    const Kernels& k = kernels(choice);
    for (StageKind& kind : kinds_) price_units(kind, k);
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) fill_stage(plan_.stages[i], kinds_[kind_of_stage_[i]]);
    for (const StageKind& kind : kinds_) price_gradients(kind);
    fill_transfers();
    plan_.micro_batches = in_.batch.micro_batches(in_.layout);
    if (tied_) {
      plan_.stages.front().tied_embedding = plan_.stages.back().tied_embedding = *tied_;
      errors_.insert(errors_.end(), tied_errors_.begin(), tied_errors_.end());
    }
  }

  /// A stage goes on when all its ranks have their messages.
  void fill_transfers() {
    transfers_.assign(boundaries_.size(), {});
    for (std::size_t b = 0; b < boundaries_.size(); ++b)
      for (const std::size_t s : boundaries_[b])
        transfers_[b] = std::max(transfers_[b], price(s, CollectiveKind::sendrecv, stage_message_bytes(in_)));
    for (std::size_t i = 0; i < plan_.transfer.size(); ++i) plan_.transfer[i] = transfers_[kind_of_boundary_[i]];
  }

  void price_units(StageKind& kind, const Kernels& k) {
    Seconds gather{}, reduction{}, loss{};
    if (in_.layout.tp > 1) {
      const bool sp = in_.layout.sequence_parallel;
      if (sp) gather = price(kind.tp, CollectiveKind::all_gather, tp_bytes(in_));
      reduction = price(kind.tp, sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, tp_bytes(in_));
      if (kind.has_head) loss = loss_reductions * price(kind.tp, CollectiveKind::all_reduce, loss_bytes(in_));
    }
    const auto tp = [&](const PassSums& p) { return p.gathers * gather + p.reductions * reduction; };
    for (const UnitKind unit : kind.units) {
      const std::size_t part = at(unit);
      const UnitSums& u = k.units[part];
      kind.forward_compute[part] = u.forward.kernels;
      kind.forward_tp[part] = tp(u.forward) + (unit == UnitKind::head ? loss : Seconds{});
      kind.backward_compute[part] = u.backward.kernels;
      kind.backward_tp[part] = tp(u.backward);
    }
  }

  void fill_stage(StagePlan& stage, const StageKind& kind) {
    for (std::size_t i = 0; i < kind.units.size(); ++i) {
      const std::size_t part = at(kind.units[i]);
      UnitWork& unit = stage.works[i];
      unit.forward[0].time = kind.forward_compute[part];
      unit.forward[1].time = kind.forward_tp[part];
      unit.backward[0].time = kind.backward_compute[part];
      unit.backward[1].time = kind.backward_tp[part];
    }
    stage.optimizer[0].time = kind.optimizer[in_.options.zero >= 1 ? 1 : 0];
  }

  /// Buckets and gather of a kind's stages.
  void price_gradients(const StageKind& kind) {
    if (in_.layout.dp == 1) return;
    const bool sharded = in_.options.zero >= 1;
    const CollectiveKind reduce = sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    const auto any_full = std::ranges::any_of(kind.buckets, [](std::int64_t n) { return n > 0; });
    const double size = static_cast<double>(in_.options.bucket.value());
    const Seconds full = any_full ? price(kind.dp, reduce, size) : Seconds{};
    const Seconds rest = kind.rest > 0 ? price(kind.dp, reduce, kind.rest) : Seconds{};
    const Seconds gather = sharded && in_.options.optimizer
                               ? price(kind.dp, CollectiveKind::all_gather, gathered_bytes(in_, kind.stage))
                               : Seconds{};
    buckets_.clear();
    for (std::size_t u = kind.buckets.size(); u-- > 0;) {
      const bool last = kind.rest > 0 && u == kind.rest_unit;
      if (kind.buckets[u] > 0 || last)
        buckets_.push_back({u, static_cast<double>(kind.buckets[u]) * full + (last ? rest : Seconds{})});
    }
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      if (&kinds_[kind_of_stage_[i]] != &kind) continue;
      plan_.stages[i].buckets = buckets_;
      plan_.stages[i].gather = gather;
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
  std::vector<std::vector<std::size_t>> boundaries_;  // alike ones once: sites of their messages
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

PipelineSchedule schedule_of(const LayoutChoice& choice, PipelineSchedule base) {
  if (base == PipelineSchedule::gpipe) return base;
  return choice.vpp > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b;
}

void put(const LayoutChoice& choice, StepInputs& in) {
  in.layout.tp = choice.tp;
  in.layout.pp = choice.pp;
  in.layout.dp = choice.dp;
  in.layout.vpp = choice.vpp;
  in.layout.schedule = schedule_of(choice, in.layout.schedule);
  in.layout.sequence_parallel = choice.sequence_parallel;
  in.batch.micro_batch = choice.micro_batch;
  in.options.recompute = choice.recompute;
  in.options.zero = choice.zero;
}

}  // namespace collcast
