#include "workload/rank_prices.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace collcast::workload {

namespace {

using Numbers = std::vector<std::uint32_t>;

/// Kinds of groups that a stage's prices are of.
std::array<GroupOf, 9> priced_groups() {
  return {groups_along(Dimension::tp),
          groups_along(Dimension::cp),
          groups_along(Dimension::ep),
          groups_along(Dimension::pp),
          expert_tp_group,
          shard_group,
          shard_copies,
          replica_group,
          expert_replica_group};
}

constexpr std::uint32_t untouched = ~std::uint32_t{0};

/// By rank the first rank of its group, where a fault's node is in it or in a group that shares a node with it.
Numbers touched_groups(const ParallelLayout& layout, const FaultyMachine& machine, GroupOf group_of) {
  const auto world = static_cast<std::uint32_t>(layout.world());
  Numbers first(world);
  for (std::uint32_t r = 0; r < world; ++r) first[r] = group_of(layout, Rank(r))[0].value();
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
          const CollectiveTime& time)
      : in_(in),
        machine_(machine),
        base_(base),
        joins_(joins),
        time_(time),
        world_(static_cast<std::uint32_t>(in.layout.world())) {}

  Result<RankPrices> run() {
    out_.never_less = is_never_less();
    find_paces();
    if (Diagnostics wrong = make_plans(); !wrong.empty()) return wrong;
    if (Diagnostics wrong = make_transfers(); !wrong.empty()) return wrong;
    return std::move(out_);
  }

 private:
  int stage_of(std::uint32_t rank) const { return coordinates(in_.layout, Rank(rank)).pp; }

  OwnPrices own(std::uint32_t rank) const {
    return {
        Rank(rank), machine_.time,
        [this](const CollectiveRequest& request) {
          const auto is_near = [&](const Group& group) {
            for (int i = 0; i < group.size(); ++i)
              if (machine_.touched[machine_.healthy->node_of(group[i]).value()]) return true;
            return false;
          };
          return !machine_.touched.empty() &&
                 (is_near(request.group) || std::any_of(request.alongside.begin(), request.alongside.end(), is_near));
        },
        is_never_less()};
  }

  /// Unlike faults, other nodes and links that vary may be faster.
  bool is_never_less() const { return !machine_.is_placed && machine_.varies < 0; }

  /// In a pass a rank keeps the pace of the slowest GPU of its TP, CP and EP groups.
  void find_paces() {
    for (const double speed : machine_.speed) out_.paces.push_back({speed, speed});
    for (const Numbers* group : {&joins_.tp, &joins_.cp, &joins_.ep}) {
      std::vector<double> slowest(world_, 1);
      for (std::uint32_t r = 0; r < world_; ++r)
        slowest[(*group)[r]] = std::min(slowest[(*group)[r]], machine_.speed[r]);
      for (std::uint32_t r = 0; r < world_; ++r)
        out_.paces[r].slowest = std::min(out_.paces[r].slowest, slowest[(*group)[r]]);
    }
  }

  /// One plan for ranks of equal times; those without a fault near them have the base's.
  Diagnostics make_plans() {
    using Key = std::tuple<int, double, double, Numbers>;
    std::map<Key, std::size_t> by_key;
    std::map<std::pair<int, std::vector<double>>, std::size_t> by_times;
    std::vector<Numbers> touched;
    if (!machine_.touched.empty())
      for (const GroupOf group_of : priced_groups()) touched.push_back(touched_groups(in_.layout, machine_, group_of));
    for (std::uint32_t r = 0; r < world_; ++r) {
      Numbers groups;
      for (const Numbers& of_kind : touched) groups.push_back(of_kind[r]);
      const auto [found, is_new] =
          by_key.emplace(Key{stage_of(r), out_.paces[r].own, out_.paces[r].slowest, groups}, 0);
      if (is_new) {
        Result<StagePlan> plan = make_stage(in_, *machine_.healthy, time_, stage_of(r), out_.paces[r], own(r));
        if (!plan) return plan.errors();
        const auto [same, is_other] = by_times.emplace(std::pair(stage_of(r), times_of(*plan)), out_.plans.size());
        if (is_other) {
          out_.plans.push_back(std::move(plan).value());
          out_.stage_of_plan.push_back(static_cast<std::size_t>(stage_of(r)));
        }
        found->second = same->second;
      }
      out_.plan_of.push_back(found->second);
    }
    return {};
  }

  /// By TP group; all its ranks have the same.
  Diagnostics make_transfers() {
    out_.transfer.resize(world_);
    for (std::uint32_t r = 0; r < world_; ++r) {
      const auto stage = static_cast<std::size_t>(stage_of(r));
      if (stage >= base_.transfer.size()) continue;
      const std::uint32_t first = groups_of(in_.layout, Rank(r)).tp[0].value();
      if (first != r) {
        out_.transfer[r] = out_.transfer[first];
        continue;
      }
      out_.transfer[r] = base_.transfer[stage];
      if (machine_.touched.empty()) continue;
      const Result<Transfer> own_way = make_transfer(in_, *machine_.healthy, time_, static_cast<int>(stage), own(r));
      if (!own_way) return own_way.errors();
      out_.transfer[r] = own_way->time;
      out_.slowest_message.resize(base_.transfer.size());
      if (own_way->message.time > out_.slowest_message[stage].time) out_.slowest_message[stage] = own_way->message;
    }
    return {};
  }

  const StepInputs& in_;
  const FaultyMachine& machine_;
  const StepPlan& base_;
  const RankJoins& joins_;
  const CollectiveTime& time_;
  std::uint32_t world_;
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
                               const RankJoins& joins, const CollectiveTime& time) {
  return Pricing(in, machine, base, joins, time).run();
}

}  // namespace collcast::workload
