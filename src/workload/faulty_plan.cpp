#include "workload/faulty_plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "workload/rank_classes.hpp"

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

/// Times of a plan, to tell equal ones.
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

/// Calls visit(stretches of a, stretches of b) for each pass.
template <class A, class Visit>
void for_passes(A& a, const StagePlan& b, Visit visit) {
  for (std::size_t w = 0; w < a.works.size(); ++w) {
    visit(a.works[w].forward, b.works[w].forward);
    visit(a.works[w].backward, b.works[w].backward);
    visit(a.works[w].weights, b.works[w].weights);
    visit(a.works[w].whole_backward, b.works[w].whole_backward);
    visit(a.works[w].whole_weights, b.works[w].whole_weights);
  }
}

/// Slow ranks have no launches to wait for where fast ones have: a wait of no length makes their passes alike.
void align(StagePlan& plan, const StagePlan& like) {
  for_passes(plan, like, [](std::vector<Stretch>& own, const std::vector<Stretch>& other) {
    for (std::size_t n = own.size(); n < other.size(); ++n) {
      own.push_back(other[n]);
      own.back().time = own.back().beside = Seconds{};
    }
  });
}

/// The longer of each time. A pass waits for launches what is left until the longer one's end: who computes longer
/// waits less.
void take_longer(StagePlan& plan, const StagePlan& other) {
  const auto longer = [](Seconds& a, Seconds b) { a = std::max(a, b); };
  for_passes(plan, other, [&](std::vector<Stretch>& own, const std::vector<Stretch>& from) {
    const Seconds end = std::max(length(own), length(from));
    for (std::size_t n = 0; n < own.size(); ++n) {
      longer(own[n].time, from[n].time);
      longer(own[n].beside, from[n].beside);
    }
    if (own.empty() || own.back().name != launch_wait_name) return;
    own.back().time = Seconds{};
    own.back().time = std::max(Seconds{}, end - length(own));
  });
  for (std::size_t w = 0; w < plan.works.size(); ++w) {
    longer(plan.works[w].gather, other.works[w].gather);
    longer(plan.works[w].reduce, other.works[w].reduce);
  }
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) longer(plan.buckets[b].time, other.buckets[b].time);
  for (std::size_t o = 0; o < plan.optimizer.size(); ++o) longer(plan.optimizer[o].time, other.optimizer[o].time);
  longer(plan.tied_embedding, other.tied_embedding);
  longer(plan.gather, other.gather);
  for (std::size_t c = 0; c < plan.collectives.size() && c < other.collectives.size(); ++c)
    if (other.collectives[c].time > plan.collectives[c].time) plan.collectives[c] = other.collectives[c];
}

class Maker {
 public:
  Maker(const StepInputs& in, const FaultyMachine& machine, const CollectiveTime& time)
      : in_(in), machine_(machine), time_(time), world_(static_cast<std::uint32_t>(in.layout.world())) {}

  Result<ClassedPlan> make(Fold fold_by) {
    Result<StepPlan> base = make_plan(in_, *machine_.healthy, time_);
    if (!base) return base.errors();
    all_.plan = std::move(base).value();
    joins_ = joins_of(in_.layout, in_.options.zero);
    find_paces();
    if (Diagnostics wrong = make_plans(); !wrong.empty()) return wrong;
    if (Diagnostics wrong = make_transfers(); !wrong.empty()) return wrong;
    align_plans();
    classify(fold_by);
    slow_down();
    return std::move(all_);
  }

 private:
  int stage_of(std::uint32_t rank) const { return coordinates(in_.layout, Rank(rank)).pp; }

  OwnPrices own(std::uint32_t rank) const {
    return {
        Rank(rank), machine_.time, [this](const CollectiveRequest& request) {
          const auto is_near = [&](const Group& group) {
            for (int i = 0; i < group.size(); ++i)
              if (machine_.touched[machine_.healthy->node_of(group[i]).value()]) return true;
            return false;
          };
          return !machine_.touched.empty() &&
                 (is_near(request.group) || std::any_of(request.alongside.begin(), request.alongside.end(), is_near));
        }};
  }

  /// In a pass a rank keeps the pace of the slowest GPU of its TP, CP and EP groups.
  void find_paces() {
    for (const double speed : machine_.speed) paces_.push_back({speed, speed});
    for (const Numbers* group : {&joins_.tp, &joins_.cp, &joins_.ep}) {
      std::vector<double> slowest(world_, 1);
      for (std::uint32_t r = 0; r < world_; ++r)
        slowest[(*group)[r]] = std::min(slowest[(*group)[r]], machine_.speed[r]);
      for (std::uint32_t r = 0; r < world_; ++r) paces_[r].slowest = std::min(paces_[r].slowest, slowest[(*group)[r]]);
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
      const auto [found, is_new] = by_key.emplace(Key{stage_of(r), paces_[r].own, paces_[r].slowest, groups}, 0);
      if (is_new) {
        Result<StagePlan> plan = make_stage(in_, *machine_.healthy, time_, stage_of(r), paces_[r], own(r));
        if (!plan) return plan.errors();
        const auto [same, is_other] = by_times.emplace(std::pair(stage_of(r), times_of(*plan)), all_.plans.size());
        if (is_other) {
          all_.plans.push_back(std::move(plan).value());
          stage_of_plan_.push_back(static_cast<std::size_t>(stage_of(r)));
        }
        found->second = same->second;
      }
      plan_of_.push_back(found->second);
    }
    return {};
  }

  /// By TP group; all its ranks have the same.
  Diagnostics make_transfers() {
    transfer_.resize(world_);
    for (std::uint32_t r = 0; r < world_; ++r) {
      const auto stage = static_cast<std::size_t>(stage_of(r));
      if (stage >= all_.plan.transfer.size()) continue;
      const std::uint32_t first = groups_of(in_.layout, Rank(r)).tp[0].value();
      if (first != r) {
        transfer_[r] = transfer_[first];
        continue;
      }
      transfer_[r] = all_.plan.transfer[stage];
      if (machine_.touched.empty()) continue;
      const Result<Transfer> own_way = make_transfer(in_, *machine_.healthy, time_, static_cast<int>(stage), own(r));
      if (!own_way) return own_way.errors();
      transfer_[r] = own_way->time;
      slowest_message_.resize(all_.plan.transfer.size());
      if (own_way->message.time > slowest_message_[stage].time) slowest_message_[stage] = own_way->message;
    }
    return {};
  }

  void align_plans() {
    for (std::size_t a = 0; a < all_.plans.size(); ++a)
      for (std::size_t b = 0; b < all_.plans.size(); ++b)
        if (stage_of_plan_[a] == stage_of_plan_[b]) align(all_.plans[a], all_.plans[b]);
  }

  void classify(Fold fold_by) {
    std::map<std::tuple<std::size_t, double, double>, std::uint32_t> kinds;
    Numbers kind;
    for (std::uint32_t r = 0; r < world_; ++r)
      kind.push_back(kinds
                         .emplace(std::tuple(plan_of_[r], paces_[r].own, transfer_[r].count()),
                                  static_cast<std::uint32_t>(kinds.size()))
                         .first->second);
    const bool tied = std::any_of(all_.plans.begin(), all_.plans.end(),
                                  [](const StagePlan& plan) { return plan.tied_embedding > Seconds{}; });
    const Folding folding = fold_by == Fold::every_rank ? unfolded(in_.layout) : fold(in_.layout, joins_, kind, tied);
    for (std::size_t c = 0; c < folding.first.size(); ++c) {
      const std::uint32_t first = folding.first[c].value();
      all_.classes.push_back({stage_of(first), folding.first[c], folding.ranks[c], paces_[first].own, plan_of_[first]});
    }
    make_stages(folding);
    if (tied) tie(folding);
  }

  void make_stages(const Folding& folding) {
    all_.stages.resize(all_.plan.stages.size());
    for (std::size_t c = 0; c < all_.classes.size(); ++c)
      all_.stages[static_cast<std::size_t>(all_.classes[c].stage)].classes.push_back(c);
    for (const auto& [group, join] :
         {std::pair(&joins_.tp, &StageClasses::tp), std::pair(&joins_.cp, &StageClasses::cp),
          std::pair(&joins_.ep, &StageClasses::ep), std::pair(&joins_.dp, &StageClasses::dp),
          std::pair(&joins_.shard, &StageClasses::shard)})
      add_joins(folding, *group, join);
    for (std::size_t i = 0; i < all_.plan.transfer.size(); ++i) add_messages(folding, i);
  }

  /// The sets of classes that groups are made of; a class is in one of each kind.
  void add_joins(const Folding& folding, const Numbers& group, std::vector<Join> StageClasses::*joins) {
    std::map<std::uint32_t, Join> members;  // by group, of those with a class's first rank
    for (const Rank first : folding.first) members[group[first.value()]];
    for (std::uint32_t r = 0; r < world_; ++r) {
      const auto found = members.find(group[r]);
      if (found != members.end()) found->second.push_back(folding.class_of[r]);
    }
    for (auto& [number, join] : members) {
      std::sort(join.begin(), join.end());
      join.erase(std::unique(join.begin(), join.end()), join.end());
      std::vector<Join>& of_stage = all_.stages[static_cast<std::size_t>(all_.classes[join.front()].stage)].*joins;
      if (std::find(of_stage.begin(), of_stage.end(), join) == of_stage.end()) of_stage.push_back(join);
    }
    for (StageClasses& stage : all_.stages) std::sort((stage.*joins).begin(), (stage.*joins).end());
  }

  void add_messages(const Folding& folding, std::size_t i) {
    const std::size_t to = (i + 1) % all_.stages.size();
    for (const Join& join : all_.stages[i].tp) {
      const Rank first = all_.classes[join.front()].first;
      Coordinates at = coordinates(in_.layout, first);
      at.pp = static_cast<int>(to);
      const std::size_t peer = folding.class_of[rank_at(in_.layout, at).value()];
      const std::vector<Join>& there = all_.stages[to].tp;
      const auto found = std::find_if(there.begin(), there.end(), [&](const Join& other) {
        return std::find(other.begin(), other.end(), peer) != other.end();
      });
      check(found != there.end(), "a class is in a TP group");
      all_.stages[i].next.push_back({static_cast<std::size_t>(found - there.begin()), transfer_[first.value()]});
    }
  }

  void tie(const Folding& folding) {
    for (const std::size_t front : all_.stages.front().classes) {
      Coordinates at = coordinates(in_.layout, all_.classes[front].first);
      at.pp = in_.layout.pp - 1;
      const std::size_t back = folding.class_of[rank_at(in_.layout, at).value()];
      all_.tied.push_back({front, back, std::max(all_.of(front).tied_embedding, all_.of(back).tied_embedding)});
    }
  }

  /// As add_transfers tells it: of the boundary behind the stage, of the last stage's before it, and of the way round.
  void slow_message(CollectiveCost& cost, std::size_t stage) const {
    if (slowest_message_.empty()) return;
    const bool round = cost.name != slowest_message_.front().name;
    const std::size_t boundary = round ? slowest_message_.size() - 1 : std::min(stage, all_.plan.stages.size() - 2);
    if (slowest_message_[boundary].time <= cost.time) return;
    cost.time = slowest_message_[boundary].time;
    cost.request = slowest_message_[boundary].request;
  }

  /// What the closed form sees: each stage as its slowest ranks.
  void slow_down() {
    std::vector<bool> seen(all_.stages.size());
    for (std::size_t p = 0; p < all_.plans.size(); ++p) {
      const std::size_t stage = stage_of_plan_[p];
      if (seen[stage]) {
        take_longer(all_.plan.stages[stage], all_.plans[p]);
        continue;
      }
      // The messages of the base are in its list of collectives, those of a stage of its own are not.
      std::vector<CollectiveCost> told = std::move(all_.plan.stages[stage].collectives);
      all_.plan.stages[stage] = all_.plans[p];
      for (CollectiveCost& cost : told) {
        if (cost.dimension != Dimension::pp) continue;
        slow_message(cost, stage);
        all_.plan.stages[stage].collectives.push_back(std::move(cost));
      }
      seen[stage] = true;
    }
    for (std::size_t i = 0; i < all_.plan.transfer.size(); ++i)
      for (const StageClasses::Message& message : all_.stages[i].next)
        all_.plan.transfer[i] = std::max(all_.plan.transfer[i], message.time);
  }

  const StepInputs& in_;
  const FaultyMachine& machine_;
  const CollectiveTime& time_;
  std::uint32_t world_;
  RankJoins joins_;
  std::vector<Pace> paces_;                      ///< by rank
  std::vector<std::size_t> plan_of_;             ///< by rank
  std::vector<std::size_t> stage_of_plan_;       ///< by plan
  std::vector<Seconds> transfer_;                ///< by rank, to the next stage
  std::vector<CollectiveCost> slowest_message_;  ///< by boundary; empty: as the plan's
  ClassedPlan all_;
};

}  // namespace

ClassedPlan as_classes(const StepPlan& plan) {
  ClassedPlan out;
  out.plan = plan;
  out.plans = plan.stages;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    out.classes.push_back({static_cast<int>(i), plan.stages[i].rank, 1, 1, i});
    const std::vector<Join> alone{{i}};
    out.stages.push_back({{i}, alone, alone, alone, alone, alone, {}});
    if (i < plan.transfer.size()) out.stages.back().next.push_back({0, plan.transfer[i]});
  }
  const Seconds tied = std::max(plan.stages.front().tied_embedding, plan.stages.back().tied_embedding);
  if (tied > Seconds{}) out.tied.push_back({0, plan.stages.size() - 1, tied});
  return out;
}

Result<ClassedPlan> make_classed_plan(const StepInputs& in, const FaultyMachine& machine, const CollectiveTime& time,
                                      Fold fold_by) {
  return Maker(in, machine, time).make(fold_by);
}

}  // namespace collcast::workload
