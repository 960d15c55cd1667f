#include "workload/faults/rank_prices.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace collcast::workload {

namespace {

using Numbers = std::vector<std::uint32_t>;

constexpr std::uint32_t untouched = ~std::uint32_t{0};

/// By rank the first rank of its group.
Numbers groups_of_kind(const ParallelLayout& layout, GroupOf group_of) {
  Numbers first(static_cast<std::size_t>(layout.world()), untouched);
  for (std::uint32_t r = 0; r < first.size(); ++r) {
    if (first[r] != untouched) continue;
    const Group group = group_of(layout, Rank(r));
    for (int i = 0; i < group.size(); ++i) first[group[i].value()] = group[0].value();
  }
  return first;
}

/// The same, where a fault's node is in it or in a group that shares a node with it.
Numbers touched_groups(const ParallelLayout& layout, const FaultyMachine& machine, GroupOf group_of) {
  Numbers first = groups_of_kind(layout, group_of);
  const auto world = static_cast<std::uint32_t>(first.size());
  const auto spread = [&](const std::vector<bool>& nodes) {
    std::vector<bool> groups(world);
    for (std::uint32_t r = 0; r < world; ++r)
      if (nodes[machine.healthy->node_of(Rank(r)).value()]) groups[first[r]] = true;
    return groups;
  };
  const std::vector<bool> near = spread(machine.touched);
  std::vector<bool> beside(machine.touched.size());
  for (std::uint32_t r = 0; r < world; ++r)
    if (near[first[r]]) beside[machine.healthy->node_of(Rank(r)).value()] = true;
  const std::vector<bool> touched = spread(beside);
  for (std::uint32_t& f : first)
    if (!touched[f]) f = untouched;
  return first;
}

class Pricing {
 public:
  Pricing(const StepInputs& in, const FaultyMachine& machine, const StepPlan& base, const RankJoins& joins,
          const CollectiveTime& time, const GoesOn& goes_on)
      : in_(in),
        machine_(machine),
        base_(base),
        joins_(joins),
        time_(time),
        goes_on_(goes_on),
        world_(static_cast<std::uint32_t>(in.layout.world())),
        never_less_(!machine.is_placed && machine.varies < 0) {}

  Result<RankPrices> run() {
    out_.never_less = never_less_;
    find_paces();
    if (Diagnostics wrong = make_plans(); !wrong.empty()) return wrong;
    if (Diagnostics wrong = make_transfers(); !wrong.empty()) return wrong;
    return std::move(out_);
  }

 private:
  /// A stage's collectives, and what they take for groups that are not as the plan's.
  struct Stage {
    StageRequests asked;
    std::vector<const Numbers*> group;                         ///< by request: by rank its group, where that may differ
    std::vector<std::map<std::uint32_t, CollectiveCost>> own;  ///< by request, by group
  };

  int stage_of(std::uint32_t rank) const { return coordinates(in_.layout, Rank(rank)).pp; }

  bool is_near(const Group& group) const {
    for (int i = 0; i < group.size(); ++i)
      if (machine_.touched[machine_.healthy->node_of(group[i]).value()]) return true;
    return false;
  }
  bool differs(const CollectiveRequest& request) const {
    return is_near(request.group) ||
           std::any_of(request.alongside.begin(), request.alongside.end(), [&](const Group& g) { return is_near(g); });
  }

  /// In a pass a rank keeps the pace of the slowest GPU of its TP, CP and EP groups, and of theirs.
  void find_paces() {
    for (const double speed : machine_.speed) out_.paces.push_back({speed, speed});
    for (bool more = true; more;) {
      more = false;
      for (const Numbers* group : {&joins_.tp, &joins_.cp, &joins_.ep}) {
        std::vector<double> slowest(world_, 1);
        for (std::uint32_t r = 0; r < world_; ++r)
          slowest[(*group)[r]] = std::min(slowest[(*group)[r]], out_.paces[r].slowest);
        for (std::uint32_t r = 0; r < world_; ++r) {
          more = more || slowest[(*group)[r]] < out_.paces[r].slowest;
          out_.paces[r].slowest = slowest[(*group)[r]];
        }
      }
    }
  }

  Diagnostics ask_stages() {
    for (int stage = 0; stage < in_.layout.pp; ++stage) {
      Result<StageRequests> asked = stage_requests(in_, *machine_.healthy, time_, stage);
      if (!asked) return asked.errors();
      Stage one{std::move(asked).value(), {}, {}};
      for (const StageRequest& request : one.asked.requests) {
        const auto [found, is_new] = touched_.try_emplace(request.group_of);
        if (is_new && !machine_.touched.empty()) found->second = touched_groups(in_.layout, machine_, request.group_of);
        one.group.push_back(&found->second);
      }
      one.own.resize(one.group.size());
      stages_.push_back(std::move(one));
    }
    return {};
  }

  /// What a rank's group takes, priced once for all its ranks.
  Result<const CollectiveCost*> cost(Stage& stage, std::size_t i, std::uint32_t rank) {
    const CollectiveCost& usual = stage.asked.usual[i];
    const Numbers& group = *stage.group[i];
    if (group.empty() || group[rank] == untouched) return &usual;
    const auto [found, is_new] = stage.own[i].try_emplace(group[rank], usual);
    if (!is_new) return &found->second;
    if (goes_on_ && !goes_on_()) return ended();
    CollectiveRequest request = stage.asked.requests[i].of(Rank(rank));
    if (!differs(request)) return &found->second;
    const Result<Seconds> time = (*machine_.time)(request);
    if (!time) return time.errors();
    if (never_less_ && *time <= usual.time) return &found->second;
    found->second.time = *time;
    found->second.request = std::move(request);
    found->second.groups = found->second.slowest_groups = 0;
    return &found->second;
  }

  static Diagnostics ended() { return {{{}, "stopped while ranks were priced", "expected a longer --time-limit"}}; }

  /// One plan for ranks of equal times; those without a fault near them have the base's.
  Diagnostics make_plans() {
    if (Diagnostics wrong = ask_stages(); !wrong.empty()) return wrong;
    using Key = std::tuple<int, double, double, std::vector<double>>;
    std::map<Key, std::size_t> by_key;
    std::map<std::pair<int, std::vector<double>>, std::size_t> by_times;
    for (std::uint32_t r = 0; r < world_; ++r) {
      Stage& stage = stages_[static_cast<std::size_t>(stage_of(r))];
      std::vector<const CollectiveCost*> costs;
      std::vector<double> times;
      for (std::size_t i = 0; i < stage.group.size(); ++i) {
        const Result<const CollectiveCost*> one = cost(stage, i, r);
        if (!one) return one.errors();
        costs.push_back(*one);
        times.push_back((*one)->time.count());
      }
      const auto [found, is_new] =
          by_key.emplace(Key{stage_of(r), out_.paces[r].own, out_.paces[r].slowest, std::move(times)}, 0);
      if (is_new) found->second = plan_of(r, costs, by_times);
      out_.plan_of.push_back(found->second);
    }
    return {};
  }

  /// One that is there already, where a time makes no difference to it.
  std::size_t plan_of(std::uint32_t rank, const std::vector<const CollectiveCost*>& costs,
                      std::map<std::pair<int, std::vector<double>>, std::size_t>& by_times) {
    std::vector<CollectiveCost> own;
    for (const CollectiveCost* one : costs) own.push_back(*one);
    StagePlan plan = make_stage(in_, *machine_.healthy, stage_of(rank), Rank(rank), out_.paces[rank], own);
    const auto [same, is_other] = by_times.emplace(std::pair(stage_of(rank), times_of(plan)), out_.plans.size());
    if (is_other) {
      out_.plans.push_back(std::move(plan));
      out_.stage_of_plan.push_back(static_cast<std::size_t>(stage_of(rank)));
    }
    return same->second;
  }

  /// By TP group; all its ranks have the same.
  Diagnostics make_transfers() {
    out_.transfer.resize(world_);
    const Numbers tp = groups_of_kind(in_.layout, groups_along(Dimension::tp));
    std::vector<Transfer> usual;
    for (std::size_t stage = 0; stage < base_.transfer.size() && !machine_.touched.empty(); ++stage) {
      Result<Transfer> one = make_transfer(in_, *machine_.healthy, time_, static_cast<int>(stage));
      if (!one) return one.errors();
      usual.push_back(std::move(one).value());
    }
    for (std::uint32_t r = 0; r < world_; ++r) {
      const auto stage = static_cast<std::size_t>(stage_of(r));
      if (stage >= base_.transfer.size()) continue;
      out_.transfer[r] = tp[r] != r ? out_.transfer[tp[r]] : base_.transfer[stage];
      if (tp[r] != r || machine_.touched.empty()) continue;
      if (goes_on_ && !goes_on_()) return ended();
      Result<Transfer> own = transfer_of(Rank(r), static_cast<int>(stage), usual[stage]);
      if (!own) return own.errors();
      out_.transfer[r] = own->time;
      out_.slowest_message.resize(base_.transfer.size());
      if (own->message.time > out_.slowest_message[stage].time) out_.slowest_message[stage] = own->message;
    }
    return {};
  }

  Result<Transfer> transfer_of(Rank rank, int stage, const Transfer& usual) const {
    const std::vector<CollectiveRequest> messages =
        stage_messages(in_.layout, *machine_.healthy, stage, whole(stage_message_bytes(in_)), rank);
    if (std::none_of(messages.begin(), messages.end(), [&](const auto& one) { return differs(one); })) return usual;
    Result<Transfer> here = make_transfer(in_, *machine_.healthy, *machine_.time, stage, rank);
    if (!here) return here.errors();
    return !never_less_ || here->time > usual.time ? here : usual;
  }

  const StepInputs& in_;
  const FaultyMachine& machine_;
  const StepPlan& base_;
  const RankJoins& joins_;
  const CollectiveTime& time_;
  const GoesOn& goes_on_;
  std::uint32_t world_;
  bool never_less_;  ///< unlike faults, other nodes and links that vary may be faster
  std::map<GroupOf, Numbers> touched_;
  std::vector<Stage> stages_;
  RankPrices out_;
};

}  // namespace

std::vector<double> times_of(const StagePlan& plan) {
  std::vector<double> out;
  const auto add = [&](Seconds time) { out.push_back(time.count()); };
  for (const UnitWork& work : plan.works) {
    for (const std::vector<Stretch>* pass :
         {&work.forward, &work.backward, &work.weights, &work.whole_backward, &work.whole_weights}) {
      for (const Stretch& s : *pass) add(s.time), add(s.beside);
      out.push_back(-1);  // an end that no time is
    }
    add(work.gather);
    add(work.reduce);
  }
  for (const Bucket& bucket : plan.buckets) add(bucket.time);
  for (const Operation& op : plan.optimizer) add(op.time);
  add(plan.tied_embedding);
  add(plan.gather);
  return out;
}

Result<RankPrices> price_ranks(const StepInputs& in, const FaultyMachine& machine, const StepPlan& base,
                               const RankJoins& joins, const CollectiveTime& time, const GoesOn& goes_on) {
  return Pricing(in, machine, base, joins, time, goes_on).run();
}

}  // namespace collcast::workload
