#include "workload/faults/faulty_plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "workload/faults/rank_classes.hpp"
#include "workload/sharded_walk.hpp"

namespace collcast::workload {

namespace {

using Numbers = std::vector<std::uint32_t>;

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
      own.back().time = own.back().beside = own.back().slowed = own.back().spared = Seconds{};
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
      longer(own[n].slowed, from[n].slowed);
      longer(own[n].beside, from[n].beside);
    }
    if (own.empty() || !own.back().waits_for_host()) return;
    own.back().time = Seconds{};
    own.back().time = std::max(Seconds{}, end - length(own));
  });
  for (std::size_t w = 0; w < plan.works.size(); ++w) {
    longer(plan.works[w].gather, other.works[w].gather);
    longer(plan.works[w].reduce, other.works[w].reduce);
  }
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) longer(plan.buckets[b].time, other.buckets[b].time);
  const Seconds updated = std::max(plan.optimizer_time(), other.optimizer_time());
  for (std::size_t o = 0; o < plan.optimizer.size(); ++o) longer(plan.optimizer[o].time, other.optimizer[o].time);
  for (Operation& op : plan.optimizer)
    if (op.is_wait()) op.time -= std::min(op.time, plan.optimizer_time() - updated);
  longer(plan.tied_embedding, other.tied_embedding);
  longer(plan.gather, other.gather);
  for (std::size_t c = 0; c < plan.collectives.size() && c < other.collectives.size(); ++c)
    if (other.collectives[c].time > plan.collectives[c].time) plan.collectives[c] = other.collectives[c];
}

/// The classes with what they take in one period.
class PeriodMaker {
 public:
  /// Takes the plans out of `prices`.
  PeriodMaker(const StepInputs& in, const RankJoins& joins, const Folding& folding, RankPrices& prices)
      : in_(in),
        joins_(joins),
        folding_(folding),
        prices_(prices),
        world_(static_cast<std::uint32_t>(in.layout.world())) {}

  ClassedPlan make(const StepPlan& base, bool tied) {
    all_.plan = base;
    all_.plans = std::move(prices_.plans);
    for (std::size_t c = 0; c < folding_.first.size(); ++c) {
      const Rank first = folding_.first[c];
      const std::size_t r = first.value();
      all_.classes.push_back(
          {coordinates(in_.layout, first).pp, first, folding_.ranks[c], prices_.paces[r].own, prices_.plan_of[r]});
    }
    make_stages();
    if (tied) tie();
    slow_down();
    return std::move(all_);
  }

 private:
  void make_stages() {
    all_.stages.resize(all_.plan.stages.size());
    for (std::size_t c = 0; c < all_.classes.size(); ++c)
      all_.stages[static_cast<std::size_t>(all_.classes[c].stage)].classes.push_back(c);
    for (const auto& [group, join] :
         {std::pair(&joins_.tp, &StageClasses::tp), std::pair(&joins_.cp, &StageClasses::cp),
          std::pair(&joins_.ep, &StageClasses::ep), std::pair(&joins_.dp, &StageClasses::dp),
          std::pair(&joins_.shard, &StageClasses::shard)})
      add_joins(*group, join);
    for (std::size_t i = 0; i < all_.plan.transfer.size(); ++i) add_messages(i);
  }

  /// The sets of classes that groups are made of; a class is in one of each kind.
  void add_joins(const Numbers& group, std::vector<Join> StageClasses::*joins) {
    std::map<std::uint32_t, Join> members;  // by group, of those with a class's first rank
    for (const Rank first : folding_.first) members[group[first.value()]];
    for (std::uint32_t r = 0; r < world_; ++r) {
      const auto found = members.find(group[r]);
      if (found != members.end()) found->second.push_back(folding_.class_of[r]);
    }
    for (auto& [number, join] : members) {
      std::sort(join.begin(), join.end());
      join.erase(std::unique(join.begin(), join.end()), join.end());
      std::vector<Join>& of_stage = all_.stages[static_cast<std::size_t>(all_.classes[join.front()].stage)].*joins;
      if (std::find(of_stage.begin(), of_stage.end(), join) == of_stage.end()) of_stage.push_back(join);
    }
    for (StageClasses& stage : all_.stages) std::sort((stage.*joins).begin(), (stage.*joins).end());
  }

  void add_messages(std::size_t i) {
    const std::size_t to = (i + 1) % all_.stages.size();
    for (const Join& join : all_.stages[i].tp) {
      const Rank first = all_.classes[join.front()].first;
      Coordinates at = coordinates(in_.layout, first);
      at.pp = static_cast<int>(to);
      const std::size_t peer = folding_.class_of[rank_at(in_.layout, at).value()];
      const std::vector<Join>& there = all_.stages[to].tp;
      const auto found = std::find_if(there.begin(), there.end(), [&](const Join& other) {
        return std::find(other.begin(), other.end(), peer) != other.end();
      });
      check(found != there.end(), "a class is in a TP group");
      all_.stages[i].next.push_back({static_cast<std::size_t>(found - there.begin()), prices_.transfer[first.value()]});
    }
  }

  void tie() {
    for (const std::size_t front : all_.stages.front().classes) {
      Coordinates at = coordinates(in_.layout, all_.classes[front].first);
      at.pp = in_.layout.pp - 1;
      const std::size_t back = folding_.class_of[rank_at(in_.layout, at).value()];
      all_.tied.push_back({front, back, std::max(all_.of(front).tied_embedding, all_.of(back).tied_embedding)});
    }
  }

  /// As add_transfers tells it: of the boundary behind the stage, of the last stage's before it, and of the way round.
  void slow_message(CollectiveCost& cost, std::size_t stage) const {
    if (prices_.slowest_message.empty() || cost.request.kind != CollectiveKind::sendrecv) return;
    const bool round = cost.name != prices_.slowest_message.front().name;
    const std::size_t boundary =
        round ? prices_.slowest_message.size() - 1 : std::min(stage, all_.plan.stages.size() - 2);
    if (prices_.never_less && prices_.slowest_message[boundary].time <= cost.time) return;
    cost.time = prices_.slowest_message[boundary].time;
    cost.request = prices_.slowest_message[boundary].request;
    cost.groups = cost.slowest_groups = 0;  // ranks have their own here
  }

  /// What the closed form sees: each stage as its slowest ranks.
  void slow_down() {
    std::vector<bool> seen(all_.stages.size());
    for (std::size_t p = 0; p < all_.plans.size(); ++p) {
      const std::size_t stage = prices_.stage_of_plan[p];
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
    for (std::size_t i = 0; i < all_.plan.transfer.size(); ++i) {
      if (!all_.stages[i].next.empty()) all_.plan.transfer[i] = Seconds{};
      for (const StageClasses::Message& message : all_.stages[i].next)
        all_.plan.transfer[i] = std::max(all_.plan.transfer[i], message.time);
    }
  }

  const StepInputs& in_;
  const RankJoins& joins_;
  const Folding& folding_;
  RankPrices& prices_;
  std::uint32_t world_;
  ClassedPlan all_;
};

class Maker {
 public:
  Maker(const StepInputs& in, std::span<const FaultyMachine> periods, const CollectiveTime& time)
      : in_(in), periods_(periods), time_(time), world_(static_cast<std::uint32_t>(in.layout.world())) {}

  Result<std::vector<ClassedPlan>> make(Fold fold_by, const GoesOn& goes_on) {
    const Result<StepPlan> base = make_plan(in_, *periods_.front().healthy, time_);
    if (!base) return base.errors();
    joins_ = joins_of(in_.layout, in_.options.zero);
    for (const FaultyMachine& machine : periods_) {
      Result<RankPrices> prices = price_ranks(in_, machine, *base, joins_, time_, goes_on);
      if (!prices) return prices.errors();
      prices_.push_back(std::move(prices).value());
    }
    align_plans();
    const bool tied = has_tied();
    const Folding folding =
        fold_by == Fold::every_rank ? unfolded(in_.layout) : fold(in_.layout, joins_, kinds(), tied);
    std::vector<ClassedPlan> out;
    for (RankPrices& prices : prices_) out.push_back(PeriodMaker(in_, joins_, folding, prices).make(*base, tied));
    return out;
  }

 private:
  /// All of a stage, in any period.
  void align_plans() {
    for (RankPrices& own : prices_)
      for (const RankPrices& other : prices_)
        for (std::size_t a = 0; a < own.plans.size(); ++a)
          for (std::size_t b = 0; b < other.plans.size(); ++b)
            if (own.stage_of_plan[a] == other.stage_of_plan[b]) align(own.plans[a], other.plans[b]);
  }

  bool has_tied() const {
    for (const RankPrices& prices : prices_)
      for (const StagePlan& plan : prices.plans)
        if (plan.tied_embedding > Seconds{}) return true;
    return false;
  }

  /// Ranks whose groups' or messages' times vary with a link: each group draws its own.
  std::vector<bool> varied_ranks() const {
    std::vector<bool> out(world_);
    for (std::size_t p = 0; p < prices_.size(); ++p) {
      if (periods_[p].varies < 0) continue;
      const RankPrices &own = prices_[p], &mean = prices_[static_cast<std::size_t>(periods_[p].varies)];
      std::map<std::pair<std::size_t, std::size_t>, bool> known;
      for (std::uint32_t r = 0; r < world_; ++r) {
        const auto [found, is_new] = known.try_emplace({own.plan_of[r], mean.plan_of[r]}, false);
        if (is_new)
          found->second = times_of(own.plans[found->first.first]) != times_of(mean.plans[found->first.second]);
        if (found->second || own.transfer[r] != mean.transfer[r]) out[r] = true;
      }
    }
    return out;
  }

  /// Ranks are of one kind that take the same in every period.
  Numbers kinds() const {
    using OfPeriod = std::tuple<std::size_t, double, double, std::uint32_t>;
    std::map<std::vector<OfPeriod>, std::uint32_t> known;
    Numbers kind;
    const std::vector<bool> varied = varied_ranks();
    for (std::uint32_t r = 0; r < world_; ++r) {
      std::vector<OfPeriod> key;
      for (std::size_t p = 0; p < prices_.size(); ++p) {
        const bool drawn = varied[r] || (!periods_[p].drawn.empty() && periods_[p].drawn[r]);
        key.emplace_back(prices_[p].plan_of[r], prices_[p].paces[r].own, prices_[p].transfer[r].count(),
                         drawn ? r + 1 : 0);
      }
      kind.push_back(known.emplace(std::move(key), static_cast<std::uint32_t>(known.size())).first->second);
    }
    return kind;
  }

  const StepInputs& in_;
  std::span<const FaultyMachine> periods_;
  const CollectiveTime& time_;
  std::uint32_t world_;
  RankJoins joins_;
  std::vector<RankPrices> prices_;  ///< by period
};

}  // namespace

ClassedPlan as_classes(const StepPlan& plan) {
  ClassedPlan out;
  out.plan = plan;
  out.plans = plan.stages;
  out.stages.resize(plan.stages.size());
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    out.classes.push_back({static_cast<int>(i), plan.stages[i].rank, 1, 1, i});
    const std::vector<Join> alone{{i}};
    out.stages[i] = {{i}, alone, alone, alone, {}, {}, {}};
    if (i < plan.transfer.size()) out.stages[i].next.push_back({0, plan.transfer[i]});
  }
  for (const Team& team : teams_of(plan)) out.stages[team.front()].dp = out.stages[team.front()].shard = {team};
  const Seconds tied = std::max(plan.stages.front().tied_embedding, plan.stages.back().tied_embedding);
  if (tied > Seconds{}) out.tied.push_back({0, plan.stages.size() - 1, tied});
  return out;
}

Result<std::vector<ClassedPlan>> make_classed_plans(const StepInputs& in, std::span<const FaultyMachine> periods,
                                                    const CollectiveTime& time, Fold fold_by, const GoesOn& goes_on) {
  return Maker(in, periods, time).make(fold_by, goes_on);
}

}  // namespace collcast::workload
