#include "workload/ratio_remedies.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "collcast/workload/search.hpp"
#include "workload/changes.hpp"
#include "workload/forecast.hpp"

namespace collcast::workload {

namespace {

/// Of a layer of the stage; nothing where it has none, or there is no price.
std::optional<double> ratio_of(const StepInputs& in, const Fabric& fabric, int stage, const CollectiveTime& time) {
  const Result<StageRequests> asked = stage_requests(in, fabric, time, stage);
  if (!asked) return {};
  const Rank rank = rank_at(in.layout, {0, stage, 0, 0, 0});
  const StagePlan plan = make_stage(in, fabric, stage, rank, {}, asked->usual);
  if (shown_layer(plan) == nullptr) return {};
  return compute_to_communication(layer_times(plan));
}

class Raising {
 public:
  explicit Raising(const StepInputs& in) : in_(in) {}

  std::vector<Change> all() && {
    orders();
    experts();
    exchanges();
    degrees();
    return std::move(all_);
  }

 private:
  template <class Set>
  void offer(bool possible, Values values, Set set) {
    if (!possible) return;
    Change change{std::move(values), in_};
    set(change.in);
    all_.push_back(std::move(change));
  }

  void orders() {
    for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp})
      offer(order != in_.layout.order, {{"layout.order", std::string(to_string(order))}},
            [order](StepInputs& in) { in.layout.order = order; });
  }

  void exchanges() {
    const ContextExchange other =
        in_.layout.cp_exchange == ContextExchange::ring ? ContextExchange::ulysses : ContextExchange::ring;
    offer(in_.layout.cp > 1, {{"layout.cp_exchange", std::string(to_string(other))}},
          [other](StepInputs& in) { in.layout.cp_exchange = other; });
    offer(in_.layout.cp > 1 && !in_.options.overlap_cp, {{"training.overlap_cp", "true"}},
          [](StepInputs& in) { in.options.overlap_cp = true; });
    offer(in_.model.experts.count > 0 && !in_.options.overlap_ep, {{"training.overlap_ep", "true"}},
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
    offer(l.expert_tp() > 1, whole, [ep](StepInputs& in) {
      in.layout.etp = 1;
      in.layout.ep = ep;
      if (in.layout.tp > 1) in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    });
    for (int times = 2; l.ep % times == 0; times *= 2)
      offer(true, {{"layout.ep", std::to_string(l.ep / times)}}, [times](StepInputs& in) { in.layout.ep /= times; });
  }

  /// The same GPUs as more replicas.
  void degrees() {
    for (const Degree& smaller : {tp_degree, cp_degree})
      for (int times = 2; in_.layout.*smaller.value % times == 0; times *= 2)
        if (std::optional<Change> change = traded(in_, smaller, dp_degree, times)) all_.push_back(std::move(*change));
  }

  const StepInputs& in_;
  std::vector<Change> all_;
};

struct Raised {
  Values values;
  double ratio;
  std::string text() const {
    return text_of(values) + " (" + (ratio > 0 ? ratio_text(ratio) : "nothing to wait for") + ")";
  }
  /// Without communication there is no ratio, and none that is better.
  bool enough() const { return ratio == 0 || ratio >= 2; }
};

}  // namespace

std::string ratio_text(double ratio) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%.2f", ratio);
  return number.data();
}

std::string what_would_raise(const StepInputs& in, const Fabric& fabric, int stage, const CollectiveTime& time) {
  constexpr std::size_t most_named = 3;
  constexpr double worth_saying = 1.1;
  const std::string links = "a faster link between these GPUs";
  const std::optional<double> now = ratio_of(in, fabric, stage, time);
  if (!now) return links + " would raise it";
  const bool fits = peak_memory(in, fabric.ranks_per_node()).fits();
  std::vector<Raised> raised;
  for (const Change& change : Raising(in).all()) {
    if (!check_step(change.in, fabric.rank_count(), {}).empty() || !check_memory(change.in, {}).empty()) continue;
    if (fits && !peak_memory(change.in, fabric.ranks_per_node()).fits()) continue;
    const std::optional<double> ratio = ratio_of(change.in, fabric, stage, time);
    if (ratio && (*ratio == 0 || *ratio >= worth_saying * *now)) raised.push_back({change.values, *ratio});
  }
  if (raised.empty()) return "none of the changes tried raises it; " + links + " would";
  if (std::ranges::none_of(raised, &Raised::enough)) {
    const auto best = std::ranges::max_element(raised, {}, &Raised::ratio);
    return best->text() + " raises it most of the changes tried; " + links + " would, too";
  }
  std::ranges::stable_sort(raised, {}, [](const Raised& one) { return !one.enough(); });
  if (raised.size() > most_named) raised.resize(most_named);
  std::string out = raised.front().text();
  for (std::size_t i = 1; i < raised.size(); ++i) out += (i + 1 < raised.size() ? ", " : " or ") + raised[i].text();
  return out + " would raise it";
}

}  // namespace collcast::workload
