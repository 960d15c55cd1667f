#include "workload/ratio_remedies.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "collcast/base/units.hpp"
#include "collcast/workload/search.hpp"
#include "workload/aligned.hpp"
#include "workload/changes.hpp"
#include "workload/estimate_step.hpp"
#include "workload/forecast.hpp"
#include "workload/gradient_exchange.hpp"

namespace collcast::workload {

namespace {

/// Of a layer of the stage that has the most work in this layout, whose price is that of the layers alone; 0: nothing
/// is communicated.
std::optional<double> ratio_of(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const Result<StepPlan> plan = make_units(in, fabric, time);
  if (!plan) return {};
  return compute_to_communication(layer_times(with_shown_layer(*plan, plan->slowest())));
}

/// What a forecast tells of the step.
struct ByForm {
  double exposed = 0;   ///< a share
  Seconds of_sample{};  ///< what the step takes over its samples
};
/// Nothing where there is no price.
std::optional<ByForm> by_form(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const Result<StepPlan> plan = make_plan(in, fabric, time);
  if (!plan) return {};
  const StepEstimate estimate = estimate_step(*plan);
  return ByForm{exposed_share(estimate.breakdown), estimate.total / in.batch.global_batch};
}

/// What the stage with the most work is busy for: the price of layers alone, and a step takes no less. Sums in another
/// order may be a few ulps apart.
Seconds least_of_sample(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const Result<StepPlan> plan = make_units(in, fabric, time);
  if (!plan) return {};
  const StagePlan& most = plan->stages[plan->slowest()];
  const Seconds work = most.compute_time() + most.tp_time() + most.cp_time() + most.ep_time();
  return plan->micro_batches * work / in.batch.global_batch * (1 - 1e-12);
}

/// Whether stages reduce gradients each for itself that could at the same time.
bool can_be_aligned(StepInputs in) {
  if (in.options.align_grad_reduce) return false;
  in.options.align_grad_reduce = true;
  return aligns_gradients(in);
}

/// Nothing for what is no step.
std::optional<MemoryUse> memory_of(const StepInputs& in, const Fabric& fabric) {
  if (!check_step(in, fabric.rank_count(), {}).empty()) return {};
  return countable_peak_memory(in, fabric.ranks_per_node());
}

class Raising {
 public:
  Raising(const StepInputs& in, const Fabric& fabric) : in_(in), fabric_(fabric), to_(in) {}

  std::vector<Change> of_layer() && {
    orders();
    experts();
    exchanges();
    degrees();
    return std::move(to_).all();
  }
  std::vector<Change> of_server() && {
    orders();
    experts();
    replicas_of_a_part();
    to_.offer(traded(in_, tp_degree, pp_degree));
    batches_served();
    std::vector<Change> changes = std::move(to_).all();
    for (Change& one : changes) one.in.serving->cut(one.in.layout);
    return changes;
  }
  std::vector<Change> of_step() && {
    orders();
    overlap();
    sharding();
    experts();
    exchanges();
    degrees();
    fewer_replicas();
    larger_batches();
    return std::move(to_).all();
  }

 private:
  void orders() {
    for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp})
      to_.offer(order != in_.layout.order, {{"layout.order", std::string(to_string(order))}},
                [order](StepInputs& in) { in.layout.order = order; });
  }

  void exchanges() {
    const ContextExchange other =
        in_.layout.cp_exchange == ContextExchange::ring ? ContextExchange::ulysses : ContextExchange::ring;
    to_.offer(in_.layout.cp > 1, {{"layout.cp_exchange", std::string(to_string(other))}},
              [other](StepInputs& in) { in.layout.cp_exchange = other; });
    to_.offer(in_.layout.cp > 1 && !in_.options.overlap_cp, {{"training.overlap_cp", "true"}},
              [](StepInputs& in) { in.options.overlap_cp = true; });
    to_.offer(in_.model.experts.count > 0 && !in_.options.overlap_ep, {{"training.overlap_ep", "true"}},
              [](StepInputs& in) { in.options.overlap_ep = true; });
  }

  /// Whole experts on each rank, and fewer ranks for all of them.
  void experts() {
    const ParallelLayout& l = in_.layout;
    if (in_.model.experts.count == 0) return;
    Values whole{{"layout.etp", "1"}};
    const int ep = std::min(l.ep * l.expert_tp(), in_.model.experts.count);
    if (ep != l.ep) whole.emplace_back("layout.ep", std::to_string(ep));
    if (l.tp > 1 && l.order != RankOrder::tp_cp_ep_dp_pp)
      whole.emplace_back("layout.order", std::string(to_string(RankOrder::tp_cp_ep_dp_pp)));
    to_.offer(l.expert_tp() > 1, whole, [ep](StepInputs& in) {
      in.layout.etp = 1;
      in.layout.ep = ep;
      if (in.layout.tp > 1) in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    });
    for (int times = 2; l.ep % times == 0; times *= 2)
      to_.offer(true, {{"layout.ep", std::to_string(l.ep / times)}},
                [times](StepInputs& in) { in.layout.ep /= times; });
  }

  /// The same GPUs as more replicas, or more stages.
  void degrees() {
    for (const Degree& larger : {dp_degree, pp_degree})
      for (const Degree& smaller : {tp_degree, cp_degree})
        for (int times = 2; in_.layout.*smaller.value % times == 0; times *= 2)
          to_.offer(traded(in_, smaller, larger, times));
  }

  /// The same GPUs and sequences as more replicas, each of a part of the batch.
  void replicas_of_a_part() {
    const int batch = in_.serving->batch;
    for (int times = 2; in_.layout.tp % times == 0 && batch % times == 0; times *= 2)
      if (std::optional<Change> change = traded(in_, tp_degree, dp_degree, times)) {
        change->in.serving->batch = batch / times;
        change->values.emplace_back("inference.batch", std::to_string(batch / times));
        to_.offer(std::move(*change));
      }
  }

  void batches_served() {
    for (int times = 2; times <= 8; times *= 2)
      to_.offer(in_.serving->batch <= std::numeric_limits<int>::max() / times,
                {{"inference.batch", std::to_string(std::int64_t{times} * in_.serving->batch)}},
                [times](StepInputs& in) { in.serving->batch *= times; });
  }

  void overlap() {
    const TrainingOptions& o = in_.options;
    to_.offer(!o.overlap_dp, {{"training.overlap_dp", "true"}}, [](StepInputs& in) { in.options.overlap_dp = true; });
    to_.offer(can_be_aligned(in_), {{"training.align_grad_reduce", "true"}},
              [](StepInputs& in) { in.options.align_grad_reduce = true; });
    to_.offer(in_.layout.pp > 1 && !o.overlap_pp, {{"training.overlap_pp", "true"}},
              [](StepInputs& in) { in.options.overlap_pp = true; });
    to_.offer(o.gradient_bytes > 2 && !o.communication.gradients && o.compression.method == CompressionMethod::none,
              {{"training.communication.gradients", "bf16"}},
              [](StepInputs& in) { in.options.communication.gradients = WireFormat::bf16; });
  }

  /// Weights gathered and gradients reduced less often, or inside nodes.
  void sharding() {
    const TrainingOptions& o = in_.options;
    const ParallelLayout& l = in_.layout;
    to_.offer(o.zero == 3 && o.reshard_after_forward, {{"training.reshard_after_forward", "false"}},
              [](StepInputs& in) { in.options.reshard_after_forward = false; });
    to_.offer(o.zero == 3 && !o.no_sync, {{"training.no_sync", "true"}},
              [](StepInputs& in) { in.options.no_sync = true; });
    const int inside = std::max(1, fabric_.ranks_per_node() / l.tp);
    to_.offer(o.zero >= 2 && l.dp_shard == 0 && inside > 1 && inside < l.dp && l.dp % inside == 0,
              {{"layout.dp_shard", std::to_string(inside)}}, [inside](StepInputs& in) { in.layout.dp_shard = inside; });
    for (int zero = 1; zero < o.zero; ++zero)
      offer_with_room({{"training.zero", std::to_string(zero)}}, [zero](StepInputs& in) { in.options.zero = zero; });
  }

  /// Where it does not fit also with what makes room for it.
  template <class Set>
  void offer_with_room(const Values& values, Set set) {
    to_.offer(true, values, set);
    StepInputs alone = in_;
    set(alone);
    const std::optional<MemoryUse> use = memory_of(alone, fabric_);
    to_.offer(use && !use->fits() && in_.options.recompute != Recompute::full,
              both(values, {{"training.recompute", "full"}}), [&](StepInputs& in) {
                set(in);
                in.options.recompute = Recompute::full;
              });
  }

  void fewer_replicas() {
    for (const Degree& larger : {tp_degree, pp_degree})
      for (int times = 2; times <= 8; times *= 2) to_.offer(traded(in_, dp_degree, larger, times));
  }

  void larger_batches() {
    for (int times = 2; times <= 4; times *= 2)
      offer_with_room({{"batch.micro_batch", std::to_string(times * in_.batch.micro_batch)}},
                      [times](StepInputs& in) { in.batch.micro_batch *= times; });
    for (int times = 2; times <= 8; times *= 2)
      to_.offer(in_.batch.global_batch <= std::numeric_limits<int>::max() / times,
                {{"batch.global_batch", std::to_string(std::int64_t{times} * in_.batch.global_batch)}},
                [times](StepInputs& in) { in.batch.global_batch *= times; });
  }

  const StepInputs& in_;
  const Fabric& fabric_;
  Offers to_;
};

/// Of all stages together; a server's passes are few.
double turns_of(const StepInputs& in) {
  if (in.serving) return 0;
  const double each = in.layout.chunks() * (splits_backward(in.layout.schedule) ? 3.0 : 2.0);
  return each * in.layout.pp * in.batch.passes(in.layout);
}

/// Which changes are tried, one after the other: those that can be, and fit the memory where the step itself does.
/// A forecast takes as long as its schedule has turns, so all together have a million of them, or four times the
/// step's own; those that need more than is left are left out.
class Trials {
 public:
  Trials(const StepInputs& in, const Fabric& fabric)
      : fabric_(fabric),
        fits_(peak_memory(in, fabric.ranks_per_node()).fits()),
        turns_left_(std::max(1e6, 4 * turns_of(in))) {}

  bool has(const Change& change) {
    if (!check_step(change.in, fabric_.rank_count(), {}).empty()) return false;
    if (turns_of(change.in) > turns_left_) {
      ++left_out_;
      return false;
    }
    const std::optional<MemoryUse> use = countable_peak_memory(change.in, fabric_.ranks_per_node());
    if (!use || (fits_ && !use->fits())) return false;
    turns_left_ -= turns_of(change.in);
    return true;
  }
  int left_out() const { return left_out_; }

 private:
  const Fabric& fabric_;
  bool fits_;
  double turns_left_;
  int left_out_ = 0;
};

constexpr double worth_saying = 1.1;

/// A change that was tried, and what is said of it.
struct Tried {
  Values values;
  double better;  ///< the more the better
  bool enough;
  std::string said;
  std::string text() const { return text_of(values) + " (" + said + ")"; }
};

constexpr std::ptrdiff_t most_named = 3;
/// What is tried behind them would not be named.
bool are_all_named(const std::vector<Tried>& tried) {
  return std::ranges::count_if(tried, &Tried::enough) == most_named;
}

/// "... would raise it": up to three, those first that are enough; where none is, the best. `which` of the changes
/// tried they are, if not all.
std::string offered(std::vector<Tried> tried, const std::string& verb, const std::string& links, int left_out,
                    const std::string& which = {}) {
  const std::string untried = left_out > 0 ? " (not tried: " + std::to_string(left_out) + " of long schedules)" : "";
  const std::string does = verb + "s it", all = "of the changes tried" + which + untried;
  if (tried.empty()) return "none " + all + " " + does + "; " + links + " would";
  if (std::ranges::none_of(tried, &Tried::enough))
    return std::ranges::max_element(tried, {}, &Tried::better)->text() + " " + does + " most " + all + "; " + links +
           " would, too";
  std::ranges::stable_sort(tried, {}, [](const Tried& one) { return !one.enough; });
  tried.erase(tried.begin() + std::min(std::ssize(tried), most_named), tried.end());
  std::string out = tried.front().text();
  for (std::size_t i = 1; i < tried.size(); ++i) out += (i + 1 < tried.size() ? ", " : " or ") + tried[i].text();
  return out + " would " + verb + " it" + untried;
}

}  // namespace

std::string ratio_text(double ratio) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%.2f", ratio);
  return number.data();
}

std::string share_text(double share) { return format_count(std::round(100 * share)) + " %"; }

std::string what_would_raise(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const std::string links = "a faster link between these GPUs";
  const std::optional<double> now = ratio_of(in, fabric, time);
  const std::optional<ByForm> step = by_form(in, fabric, time);
  if (!now || !step) return links + " would raise it";
  std::vector<Tried> raised;
  bool slower = false;
  Trials trials(in, fabric);
  for (const Change& change : Raising(in, fabric).of_layer()) {
    if (are_all_named(raised)) break;
    if (!trials.has(change)) continue;
    const std::optional<double> ratio = ratio_of(change.in, fabric, time);
    // Without communication there is no ratio, and none that is better.
    const bool none = ratio == 0;
    if (!ratio || (!none && *ratio < worth_saying * *now)) continue;
    const std::optional<ByForm> then = by_form(change.in, fabric, time);
    if (!then) continue;
    if (then->of_sample >= step->of_sample) {
      slower = true;
      continue;
    }
    raised.push_back({change.values, none ? std::numeric_limits<double>::max() : *ratio, none || *ratio >= 2,
                      none ? "nothing to wait for" : ratio_text(*ratio)});
  }
  return offered(std::move(raised), "raise", links, trials.left_out(), slower ? " that make the step shorter" : "");
}

std::string what_would_raise_served(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const std::string links = "a faster link between these GPUs";
  const Result<StepResult> now = estimate_serving(in, fabric, time);
  if (!now) return links + " would raise it";
  std::vector<Tried> raised;
  Trials trials(in, fabric);
  for (const Change& change : Raising(in, fabric).of_server()) {
    if (are_all_named(raised)) break;
    if (!trials.has(change)) continue;
    const Result<StepResult> then = estimate_serving(change.in, fabric, time);
    if (!then || then->tokens_per_s_per_gpu < now->tokens_per_s_per_gpu) continue;
    const double ratio = then->compute_to_communication;
    const bool none = ratio == 0;
    if (!none && ratio < worth_saying * now->compute_to_communication) continue;
    raised.push_back({change.values, none ? std::numeric_limits<double>::max() : ratio, none || ratio >= 2,
                      none ? "nothing to wait for" : ratio_text(ratio)});
  }
  return offered(std::move(raised), "raise", links, trials.left_out());
}

double exposed_share(const Breakdown& b) {
  const Seconds all = b.tp_exposed + b.pp_exposed + b.cp_exposed + b.ep_exposed + b.dp_exposed;
  return b.total() > Seconds{} ? all / b.total() : 0;
}

std::string what_would_lower(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const std::string links = "a faster link between these GPUs";
  const std::optional<ByForm> now = by_form(in, fabric, time);
  if (!now) return links + " would lower it";
  std::vector<Tried> lowered;
  Trials trials(in, fabric);
  for (const Change& change : Raising(in, fabric).of_step()) {
    if (are_all_named(lowered)) break;
    if (!trials.has(change) || least_of_sample(change.in, fabric, time) >= now->of_sample) continue;
    const std::optional<ByForm> then = by_form(change.in, fabric, time);
    if (!then || then->exposed * worth_saying > now->exposed || then->of_sample >= now->of_sample) continue;
    lowered.push_back({change.values, -then->exposed, then->exposed <= most_exposed, share_text(then->exposed)});
  }
  return offered(std::move(lowered), "lower", links, trials.left_out());
}

namespace {

/// "training.overlap_dp: false (2 %) or ...": those changes by which the step is shorter by at least half a percent,
/// with how much; empty: none is.
std::string shorter_by(const std::vector<Change>& changes, const StepInputs& in, const Fabric& fabric,
                       const CollectiveTime& time) {
  constexpr double least = 0.005;
  const std::optional<ByForm> now = by_form(in, fabric, time);
  if (!now) return {};
  std::string shorter;
  Trials trials(in, fabric);
  for (const Change& change : changes) {
    if (!trials.has(change)) continue;
    const std::optional<ByForm> then = by_form(change.in, fabric, time);
    const double share = then ? 1 - then->of_sample / now->of_sample : 0;
    if (share >= least)
      shorter += (shorter.empty() ? "" : " or ") + text_of(change.values) + " (" + share_text(share) + ")";
  }
  return shorter;
}

}  // namespace

std::optional<std::string> slower_beside_backward(const StepInputs& in, const Fabric& fabric,
                                                  const CollectiveTime& time) {
  if (!in.options.overlap_dp || in.layout.pp == 1 || !exchanges_gradients(in)) return {};
  Offers to(in);
  to.offer(can_be_aligned(in), {{"training.align_grad_reduce", "true"}},
           [](StepInputs& other) { other.options.align_grad_reduce = true; });
  to.offer(true, {{"training.overlap_dp", "false"}}, [](StepInputs& other) { other.options.overlap_dp = false; });
  const std::string shorter = shorter_by(std::move(to).all(), in, fabric, time);
  if (shorter.empty()) return {};
  return "what gradients slow beside the backward adds up along the stages to more than they hide there; " + shorter +
         " would shorten the step";
}

std::optional<std::string> slower_by_overlap_tp(const StepInputs& in, const Fabric& fabric,
                                                const CollectiveTime& time) {
  if (in.options.overlap_tp == TpOverlap::none || in.layout.tp == 1) return {};
  Offers to(in);
  for (const TpOverlap other : {TpOverlap::none, TpOverlap::backward})
    to.offer(other < in.options.overlap_tp, {{"training.overlap_tp", std::string(to_string(other))}},
             [other](StepInputs& changed) { changed.options.overlap_tp = other; });
  const std::string shorter = shorter_by(std::move(to).all(), in, fabric, time);
  if (shorter.empty()) return {};
  return std::string(in.options.overlap_tp == TpOverlap::ring
                         ? "overlap_tp ring cuts products into pieces and sends messages, which takes longer here than "
                           "it hides; "
                         : "overlap_tp slows kernels here by more than it hides; ") +
         shorter + " would shorten the step";
}

std::vector<std::string> slower_by_narrow_formats(const StepInputs& in, const Fabric& fabric,
                                                  const CollectiveTime& time) {
  std::vector<std::string> said;
  const auto say = [&](const std::string& what, const std::vector<Change>& changes) {
    if (changes.empty()) return;
    const std::string shorter = shorter_by(changes, in, fabric, time);
    if (!shorter.empty()) said.push_back(what + "; " + shorter + " would shorten the step");
  };
  const std::string& precision = in.options.precision;
  Offers wider(in);
  for (const char* other : {"fp8", "bf16"})
    wider.offer(precision == "fp4" || (precision == "fp8" && precision != other), {{"training.precision", other}},
                [other](StepInputs& changed) { changed.options.precision = other; });
  say("precision " + precision + " takes longer here than a wider one", std::move(wider).all());
  using Format = std::optional<WireFormat> CommunicationFormats::*;
  for (const auto& [key, format] : {std::pair<std::string, Format>{"tp_gather", &CommunicationFormats::tp_gather},
                                    {"tp_reduce", &CommunicationFormats::tp_reduce},
                                    {"ep_dispatch", &CommunicationFormats::ep_dispatch},
                                    {"ep_combine", &CommunicationFormats::ep_combine},
                                    {"parameters", &CommunicationFormats::parameters}}) {
    Offers as_computed(in);
    as_computed.offer(
        in.options.communication.*format == WireFormat::fp8, {{"training.communication." + key, "bf16"}},
        [format = format](StepInputs& changed) { changed.options.communication.*format = WireFormat::bf16; });
    say(key + " in fp8 takes longer to cast here than it saves on the way", std::move(as_computed).all());
  }
  return said;
}

}  // namespace collcast::workload
