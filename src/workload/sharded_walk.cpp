#include "workload/sharded_walk.hpp"

#include <algorithm>

namespace collcast::workload {

namespace {

bool turns_back(std::span<const Turn> order) {
  if (order.size() % 2 != 0) return false;
  for (std::size_t n = 0; n < order.size(); n += 2) {
    const Turn &on = order[n], &back = order[n + 1];
    if (on.backward || !back.backward || on.micro_batch != back.micro_batch) return false;
  }
  return true;
}

/// By the order of the stage: with chunks each backward has one of another chunk before it, split ones have turns of
/// their own for weight gradients. A built-in order that does not turn back shows that with two micro-batches.
bool turns_back(PipelineSchedule schedule, const Orders& own, int stages, int chunks, int micro_batches,
                std::size_t stage) {
  if (chunks > 1 || splits_backward(schedule)) return false;
  if (is_own(schedule)) return turns_back(own[stage]);
  return turns_back(stage_order(schedule, stages, static_cast<int>(stage), std::min(micro_batches, 2), chunks));
}

}  // namespace

bool turns_back(const StepPlan& plan, std::size_t stage) {
  return turns_back(plan.schedule, plan.own_orders, static_cast<int>(plan.stages.size()), plan.chunks,
                    plan.micro_batches, stage);
}

bool turns_back(const StepInputs& in, int stage) {
  const ParallelLayout& l = in.layout;
  return turns_back(l.schedule, l.own ? l.own->orders : Orders(), l.pp, l.chunks(), in.batch.passes(l),
                    static_cast<std::size_t>(stage));
}

bool stays_whole(const StepPlan& plan) { return plan.stages.size() > 1 || !turns_back(plan, 0); }
bool stays_whole(const StepInputs& in) { return in.layout.pp > 1 || !turns_back(in, 0); }

bool gathers_ahead(const StepPlan& plan) {
  return plan.zero == 3 && !plan.reshard && plan.overlap_dp && stays_whole(plan);
}

std::vector<std::size_t> units_in_first_use(const StagePlan& stage, std::span<const Turn> order) {
  std::vector<std::size_t> units;
  std::vector<int> seen;
  for (const Turn& turn : order) {
    if (turn.backward || turn.weights || std::ranges::find(seen, turn.chunk) != seen.end()) continue;
    seen.push_back(turn.chunk);
    for (std::size_t u = 0; u < stage.units.size(); ++u)
      if (stage.units[u].chunk == turn.chunk) units.push_back(u);
    if (units.size() == stage.units.size()) break;
  }
  return units;
}

TurnExchanges::TurnExchanges(const StepPlan& plan, std::size_t stage, std::span<const Turn> order)
    : gathers_(plan.zero == 3),
      reshards_(plan.reshard),
      once_(!plan.reshard && stays_whole(plan)),
      turns_back_(turns_back(plan, stage)),
      no_sync_(plan.no_sync),
      splits_(splits_backward(plan.schedule)),
      to_come_(static_cast<std::size_t>(plan.chunks)),
      gathered_(static_cast<std::size_t>(plan.chunks)) {
  for (const Turn& turn : order)
    if (makes_gradients(turn)) ++to_come_[static_cast<std::size_t>(turn.chunk)];
}

bool TurnExchanges::makes_gradients(const Turn& turn) const {
  return splits_ ? turn.weights || turn.whole : turn.backward;
}

TurnExchange TurnExchanges::next(const Turn& turn) {
  const auto chunk = static_cast<std::size_t>(turn.chunk);
  TurnExchange out;
  if (makes_gradients(turn)) out.reduces = --to_come_[chunk] == 0 || !no_sync_;
  if (!gathers_ || turn.weights) return out;
  out.gathers = reshards_ || (!turn.backward && !(once_ && gathered_[chunk]));
  out.first_stays = turn.backward && turns_back_;
  if (!turn.backward) gathered_[chunk] = true;
  return out;
}

std::vector<Team> teams_of(const StepPlan& plan) {
  const std::size_t stages = plan.stages.size();
  if (plan.zero < 2 || !from_both_ends(plan.schedule)) return each_alone(stages);
  std::vector<Team> teams;
  for (std::size_t i = 0; i < stages / 2; ++i) teams.push_back({i, stages - 1 - i});
  return teams;
}

bool exchanges_by_turns(const StepPlan& plan) {
  const bool alike = plan.stages.size() == 1 && plan.schedule == PipelineSchedule::one_f_one_b;
  return plan.zero >= 2 && (plan.no_sync || !alike);
}

namespace {

/// Of a stage, from the time on that is counted from: when a turn has computed, when what it exchanges is over too.
struct TurnTimes {
  Seconds sent{}, free{};
  SlowedParts slowed;
};

/// Of the work of a unit in a pass: what it computes, whatever is exchanged beside it.
struct PassWork {
  Seconds time{};
  const std::vector<Stretch>* detail = nullptr;
};

PassWork work_of(const UnitWork& unit, const Turn& turn, bool weights) {
  const UnitWork& detail = unit.in_detail();
  if (weights) return {length(unit.weights_of(turn.whole)), &detail.weights_of(turn.whole)};
  if (turn.backward) return {length(unit.backward_of(turn.whole)), &detail.backward_of(turn.whole)};
  return {unit.forward_time(), &detail.forward};
}

/// A turn of stages that exchange with each other in it: of one stage, or of a pair that holds the same slices. Each
/// computes for itself, and what they exchange begins when all of them have come to it.
class TurnTimer {
 public:
  TurnTimer(const StepPlan& plan, const Team& team, bool slows) : plan_(plan), slows_(slows) {
    for (const std::size_t i : team) sides_.push_back({&plan.stages[i], {}, {}});
  }

  /// A forward of one of the stages that begins while weights are gathered until `gathered`, each unit's until what
  /// `whole` says of it.
  TurnTimes forward_beside(std::size_t side, const Turn& turn, Seconds begin, std::span<const Seconds> whole,
                           Seconds gathered) {
    Side& s = sides_[side];
    s.at = begin;
    s.slowed = {};
    busy_.assign(1, {Seconds{}, gathered});
    for (std::size_t u = 0; u < s.stage->units.size(); ++u) {
      if (s.stage->units[u].chunk != turn.chunk) continue;
      s.at = std::max(s.at, whole[u]);
      compute(s, u, turn, false);
    }
    return {s.at - begin, s.at - begin, s.slowed};
  }

  /// `begins`: of each stage, counted from the first of them.
  std::vector<TurnTimes> times(const Turn& turn, const TurnExchange& exchange, std::span<const Seconds> begins) {
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      sides_[s].at = begins[s];
      sides_[s].slowed = {};
    }
    exchanged_ = {};
    busy_.clear();
    const bool split = splits_backward(plan_.schedule);
    if (turn.weights || !turn.whole) pass(turn, turn.weights, exchange, exchange.reduces && (turn.weights || !split));
    if (turn.whole) {
      pass(turn, false, exchange, false);
      pass(turn, true, {}, exchange.reduces);
    }
    std::vector<TurnTimes> out;
    for (const Side& s : sides_) out.push_back({s.at, std::max(s.at, exchanged_), s.slowed});
    return out;
  }

 private:
  struct Side {
    const StagePlan* stage = nullptr;
    Seconds at{};  ///< the end so far of computing
    SlowedParts slowed;
  };

  void pass(const Turn& turn, bool weights, const TurnExchange& exchange, bool reduces) {
    // Stages that hold the same slices have the same units.
    const StagePlan& any = *sides_.front().stage;
    std::vector<std::size_t> units;
    for (std::size_t u = 0; u < any.units.size(); ++u)
      if (any.units[u].chunk == turn.chunk) units.push_back(u);
    if (turn.backward) std::reverse(units.begin(), units.end());
    if (units.empty()) return;
    if (plan_.zero == 3)
      pass_units(units, turn, weights, exchange, reduces);
    else
      pass_buckets(units, turn, weights, reduces);
  }

  static const UnitWork& work(const Side& side, std::size_t unit) { return side.stage->work(side.stage->units[unit]); }

  template <class Time>
  Seconds longest(Time time) const {
    Seconds most{};
    for (const Side& s : sides_) most = std::max(most, time(*s.stage));
    return most;
  }

  /// Of the DP stream, for all: when they have computed what they have, and what was exchanged before is over.
  void exchange(Seconds time) {
    Seconds begin = exchanged_;
    for (const Side& s : sides_) begin = std::max(begin, s.at);
    exchanged_ = begin + time;
    if (!slows_) return;
    if (!busy_.empty() && busy_.back().end == begin)
      busy_.back().end = exchanged_;
    else
      busy_.push_back({begin, exchanged_});
  }

  /// A unit's pass, with what runs beside it.
  void compute(Side& side, std::size_t unit, const Turn& turn, bool weights) {
    const PassWork of = work_of(work(side, unit), turn, weights);
    Seconds slowed{};
    if (slows_ && !busy_.empty() && busy_.back().end > side.at) {
      const SlowedParts parts = end_of_pass(*of.detail, side.at, busy_).slowed;
      side.slowed += parts;
      slowed = parts.total();
    }
    side.at += of.time + slowed;
  }

  void pass_units(const std::vector<std::size_t>& units, const Turn& turn, bool weights, const TurnExchange& exchanges,
                  bool reduces) {
    const auto gather = [&](std::size_t n) {
      if (!exchanges.gathers || weights || n >= units.size()) return;
      const Seconds time = longest(
          [&](const StagePlan& stage) { return stage.work(stage.units[units[n]]).gather_before(turn.backward); });
      if (time > Seconds{}) exchange(time);
    };
    const auto reduce = [&](std::size_t n) {
      if (!reduces) return;
      const Seconds time = longest([&](const StagePlan& stage) { return stage.work(stage.units[units[n]]).reduce; });
      if (time > Seconds{}) exchange(time);
    };
    if (!exchanges.first_stays) gather(0);
    for (std::size_t n = 0; n < units.size(); ++n) {
      for (Side& side : sides_) side.at = std::max(side.at, exchanged_);
      if (plan_.overlap_dp) {
        if (n > 0) reduce(n - 1);
        gather(n + 1);
      }
      for (Side& side : sides_) compute(side, units[n], turn, weights);
      if (plan_.overlap_dp) continue;
      reduce(n);
      gather(n + 1);
    }
    if (plan_.overlap_dp) reduce(units.size() - 1);
  }

  void pass_buckets(const std::vector<std::size_t>& units, const Turn& turn, bool weights, bool reduces) {
    const std::vector<Bucket>& buckets = sides_.front().stage->buckets;
    const auto fill = [&](std::size_t b) {
      exchange(longest([&](const StagePlan& stage) { return stage.buckets[b].time; }));
    };
    std::size_t b = 0;
    for (const std::size_t unit : units) {
      for (Side& side : sides_) compute(side, unit, turn, weights);
      for (; reduces && plan_.overlap_dp && b < buckets.size(); ++b) {
        if (sides_.front().stage->units[buckets[b].unit].chunk != turn.chunk) continue;
        if (buckets[b].unit < unit) break;
        fill(b);
      }
    }
    if (!reduces || plan_.overlap_dp) return;
    for (b = 0; b < buckets.size(); ++b)
      if (sides_.front().stage->units[buckets[b].unit].chunk == turn.chunk) fill(b);
  }

  const StepPlan& plan_;
  bool slows_;
  std::vector<Side> sides_;
  Seconds exchanged_{};     ///< the end so far of the DP stream
  std::vector<Busy> busy_;  ///< what it does, where that slows kernels
};

/// Turns that are alike are timed once.
class TimedTeam {
 public:
  TimedTeam(const StepPlan& plan, const Team& team, const std::vector<Turn>& order, bool slows)
      : slowed(team.size()),
        exchanged(team.size()),
        exchanges_(plan, team.front(), order),
        timer_(plan, team, slows),
        ahead_(gathers_ahead(plan)),
        known_(static_cast<std::size_t>(plan.chunks)) {
    if (!ahead_) return;
    const StagePlan& any = plan.stages[team.front()];
    whole_.resize(any.units.size());
    for (const std::size_t u : units_in_first_use(any, order)) {
      Seconds gather{};
      for (const std::size_t i : team) gather = std::max(gather, plan.stages[i].work(plan.stages[i].units[u]).gather);
      whole_[u] = gathered_ += gather;
    }
  }

  void end(const Turn& turn, std::span<TakenTurn> taken) {
    TurnExchange exchange = exchanges_.next(turn);
    if (ahead_) exchange.gathers = false;
    const auto by_begin = [](const TakenTurn& a, const TakenTurn& b) { return a.begin < b.begin; };
    const Seconds first = std::min_element(taken.begin(), taken.end(), by_begin)->begin;
    const std::vector<TurnTimes>* together = nullptr;
    for (std::size_t s = 0; s < taken.size(); ++s) {
      // All of what is gathered ahead is over before the first turn that exchanges anything.
      const bool beside = taken[s].begin < gathered_;
      if (!beside && together == nullptr) together = &of(turn, exchange, taken, first);
      const TurnTimes times =
          beside ? timer_.forward_beside(s, turn, taken[s].begin, whole_, gathered_) : (*together)[s];
      const Seconds from = beside ? taken[s].begin : first;
      slowed[s] += times.slowed;
      exchanged[s] = from + times.free;
      taken[s].end = {from + times.sent, from + times.free};
    }
  }

  std::vector<SlowedParts> slowed;  ///< by stage of the team
  std::vector<Seconds> exchanged;   ///< until when, in the last turn

 private:
  struct Known {
    Turn turn;
    TurnExchange exchange;
    std::vector<TurnTimes> times;
  };

  const std::vector<TurnTimes>& of(Turn turn, const TurnExchange& exchange, std::span<const TakenTurn> taken,
                                   Seconds first) {
    begins_.clear();
    for (const TakenTurn& one : taken) begins_.push_back(one.begin - first);
    turn.micro_batch = 0;
    turn.with_next = false;
    // How much later one begins than the other is hardly ever the same twice.
    if (std::any_of(begins_.begin(), begins_.end(), [](Seconds s) { return s > Seconds{}; }))
      return apart_ = timer_.times(turn, exchange, begins_);
    std::vector<Known>& of_chunk = known_[static_cast<std::size_t>(turn.chunk)];
    for (const Known& known : of_chunk)
      if (known.turn == turn && known.exchange == exchange) return known.times;
    of_chunk.push_back({turn, exchange, timer_.times(turn, exchange, begins_)});
    return of_chunk.back().times;
  }

  TurnExchanges exchanges_;
  TurnTimer timer_;
  bool ahead_;
  std::vector<Seconds> whole_;             ///< of weights that are gathered ahead: when a unit's are there,
  Seconds gathered_{};                     ///< and all
  std::vector<std::vector<Known>> known_;  ///< by chunk
  std::vector<TurnTimes> apart_;
  std::vector<Seconds> begins_;
};

}  // namespace

ShardedWalk walk_sharded(const StepPlan& plan, bool slows) { return walk_sharded(plan, plan.orders(), slows); }

ShardedWalk walk_sharded(const StepPlan& plan, const Orders& orders, bool slows) {
  const std::vector<Team> teams = teams_of(plan);
  std::vector<TimedTeam> timed;
  std::vector<std::size_t> team_of(plan.stages.size());
  for (const Team& team : teams) {
    for (const std::size_t i : team) team_of[i] = timed.size();
    timed.emplace_back(plan, team, orders[team.front()], slows);
  }
  const TurnClock clock = [&](const Turn& turn, std::span<TakenTurn> taken) {
    timed[team_of[static_cast<std::size_t>(taken.front().stage)]].end(turn, taken);
  };
  ShardedWalk out;
  for (const StageSpan& span : stage_spans(plan.schedule, plan.chunked(), orders, teams, clock))
    out.end = std::max(out.end, span.end);
  out.slowed.resize(plan.stages.size());
  std::vector<Seconds> exchanged(plan.stages.size());
  for (std::size_t t = 0; t < teams.size(); ++t)
    for (std::size_t s = 0; s < teams[t].size(); ++s) {
      out.slowed[teams[t][s]] = timed[t].slowed[s];
      exchanged[teams[t][s]] = timed[t].exchanged[s];
    }
  const Seconds tied = std::max(plan.stages.front().tied_embedding, plan.stages.back().tied_embedding);
  if (tied > Seconds{}) out.end = std::max(out.end, std::max(exchanged.front(), exchanged.back()) + tied);
  return out;
}

bool slows_beside_turns(const StepPlan& plan) {
  return plan.overlap_dp && std::ranges::any_of(plan.stages, [](const StagePlan& stage) {
           return std::ranges::any_of(stage.works, [](const UnitWork& work) { return work.in_detail().is_slowed(); });
         });
}

ChunkedStages exchanging_times(const StepPlan& plan) {
  check(plan.chunks == 1 && splits_backward(plan.schedule), "a chunk a stage, and weight gradients by themselves");
  ChunkedStages out = plan.chunked();
  const TurnExchange gathers{plan.zero == 3 && plan.reshard}, reduces{false, false, !plan.no_sync};
  const bool slows = slows_beside_turns(plan);
  const Seconds at_once{};
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    TurnTimer timer(plan, {i}, slows);
    const auto taken = [&](const Turn& turn, const TurnExchange& exchange) {
      return timer.times(turn, exchange, {&at_once, 1}).front().free;
    };
    out.times[i].forward = taken({false, 0, 0}, gathers);
    out.times[i].backward = taken({true, 0, 0}, gathers);
    out.times[i].weights = taken({true, 0, 0, true}, reduces);
  }
  return out;
}

}  // namespace collcast::workload
