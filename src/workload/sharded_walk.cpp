#include "workload/sharded_walk.hpp"

#include <algorithm>

namespace collcast::workload {

bool turns_back(PipelineSchedule schedule, int stages, int stage) {
  return schedule == PipelineSchedule::one_f_one_b && stage + 1 == stages;
}

bool stays_whole(PipelineSchedule schedule, int stages) {
  return stages > 1 || schedule != PipelineSchedule::one_f_one_b;
}

bool gathers_ahead(const StepPlan& plan) {
  return plan.zero == 3 && !plan.reshard && plan.overlap_dp &&
         stays_whole(plan.schedule, static_cast<int>(plan.stages.size()));
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
      once_(!plan.reshard && stays_whole(plan.schedule, static_cast<int>(plan.stages.size()))),
      turns_back_(turns_back(plan.schedule, static_cast<int>(plan.stages.size()), static_cast<int>(stage))),
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

bool exchanges_by_turns(const StepPlan& plan) {
  return plan.zero >= 2 && (plan.no_sync || stays_whole(plan.schedule, static_cast<int>(plan.stages.size())));
}

namespace {

/// From the begin of a turn: when it has computed, when what it exchanges is over too.
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

class TurnTimer {
 public:
  TurnTimer(const StepPlan& plan, const StagePlan& stage, bool slows) : plan_(plan), stage_(stage), slows_(slows) {}

  /// A forward that begins while weights are gathered until `gathered`, each unit's until what `whole` says of it.
  TurnTimes forward_beside(const Turn& turn, Seconds begin, std::span<const Seconds> whole, Seconds gathered) {
    at_ = begin;
    slowed_ = {};
    for (std::size_t u = 0; u < stage_.units.size(); ++u) {
      if (stage_.units[u].chunk != turn.chunk) continue;
      at_ = std::max(at_, whole[u]);
      compute(u, turn, false, gathered);
    }
    return {at_ - begin, at_ - begin, slowed_};
  }

  TurnTimes time(const Turn& turn, const TurnExchange& exchange) {
    at_ = busy_ = {};
    slowed_ = {};
    const bool split = splits_backward(plan_.schedule);
    if (turn.weights || !turn.whole) pass(turn, turn.weights, exchange, exchange.reduces && (turn.weights || !split));
    if (turn.whole) {
      pass(turn, false, exchange, false);
      pass(turn, true, {}, exchange.reduces);
    }
    return {at_, std::max(at_, busy_), slowed_};
  }

 private:
  void pass(const Turn& turn, bool weights, const TurnExchange& exchange, bool reduces) {
    std::vector<std::size_t> units;
    for (std::size_t u = 0; u < stage_.units.size(); ++u)
      if (stage_.units[u].chunk == turn.chunk) units.push_back(u);
    if (turn.backward) std::reverse(units.begin(), units.end());
    if (units.empty()) return;
    if (plan_.zero == 3)
      pass_units(units, turn, weights, exchange, reduces);
    else
      pass_buckets(units, turn, weights, reduces);
  }

  const UnitWork& work(std::size_t unit) const { return stage_.work(stage_.units[unit]); }

  /// A unit's pass from at_ on, with what runs beside it until `beside`.
  void compute(std::size_t unit, const Turn& turn, bool weights, Seconds beside) {
    const PassWork of = work_of(work(unit), turn, weights);
    Seconds slowed{};
    if (slows_ && beside > at_) {
      const SlowedParts parts = end_of_pass(*of.detail, at_, beside).slowed;
      slowed_ += parts;
      slowed = parts.total();
    }
    at_ += of.time + slowed;
  }

  void pass_units(const std::vector<std::size_t>& units, const Turn& turn, bool weights, const TurnExchange& exchange,
                  bool reduces) {
    const auto gather = [&](std::size_t n) {
      return exchange.gathers && !weights && n < units.size() ? work(units[n]).gather : Seconds{};
    };
    const auto reduce = [&](std::size_t n) { return reduces ? work(units[n]).reduce : Seconds{}; };
    if (!exchange.first_stays) busy_ = std::max(at_, busy_) + gather(0);
    for (std::size_t n = 0; n < units.size(); ++n) {
      at_ = std::max(at_, busy_);
      const Seconds next = gather(n + 1);
      if (!plan_.overlap_dp) {
        compute(units[n], turn, weights, at_);
        busy_ = at_ + reduce(n) + next;
        continue;
      }
      busy_ = at_ + (n > 0 ? reduce(n - 1) : Seconds{}) + next;
      compute(units[n], turn, weights, busy_);
    }
    if (plan_.overlap_dp) busy_ = std::max(at_, busy_) + reduce(units.size() - 1);
  }

  void pass_buckets(const std::vector<std::size_t>& units, const Turn& turn, bool weights, bool reduces) {
    const std::vector<Bucket>& buckets = stage_.buckets;
    std::size_t b = 0;
    for (const std::size_t unit : units) {
      compute(unit, turn, weights, busy_);
      for (; reduces && plan_.overlap_dp && b < buckets.size(); ++b) {
        if (stage_.units[buckets[b].unit].chunk != turn.chunk) continue;
        if (buckets[b].unit < unit) break;
        busy_ = std::max(at_, busy_) + buckets[b].time;
      }
    }
    if (!reduces || plan_.overlap_dp) return;
    busy_ = at_;
    for (const Bucket& bucket : buckets)
      if (stage_.units[bucket.unit].chunk == turn.chunk) busy_ += bucket.time;
  }

  const StepPlan& plan_;
  const StagePlan& stage_;
  bool slows_;
  Seconds at_{}, busy_{};  ///< of computing, and of the DP stream: the end so far
  SlowedParts slowed_;
};

/// Turns of a stage that are alike are timed once.
class TimedStage {
 public:
  TimedStage(const StepPlan& plan, std::size_t stage, const std::vector<Turn>& order, bool slows)
      : exchanges_(plan, stage, order), timer_(plan, plan.stages[stage], slows), ahead_(gathers_ahead(plan)) {
    if (!ahead_) return;
    const StagePlan& units = plan.stages[stage];
    whole_.resize(units.units.size());
    for (const std::size_t u : units_in_first_use(units, order))
      whole_[u] = gathered_ += units.work(units.units[u]).gather;
  }

  TurnEnd end(const Turn& turn, Seconds begin) {
    TurnExchange exchange = exchanges_.next(turn);
    if (ahead_) exchange.gathers = false;
    const TurnTimes times =
        begin < gathered_ ? timer_.forward_beside(turn, begin, whole_, gathered_) : of(turn, exchange);
    slowed += times.slowed;
    exchanged_ = begin + times.free;
    return {begin + times.sent, begin + times.free};
  }

  Seconds exchanged() const { return exchanged_; }
  SlowedParts slowed;

 private:
  struct Known {
    Turn turn;
    TurnExchange exchange;
    TurnTimes times;
  };

  const TurnTimes& of(Turn turn, const TurnExchange& exchange) {
    turn.micro_batch = 0;
    turn.with_next = false;
    for (const Known& known : known_)
      if (known.turn == turn && known.exchange == exchange) return known.times;
    known_.push_back({turn, exchange, timer_.time(turn, exchange)});
    return known_.back().times;
  }

  TurnExchanges exchanges_;
  TurnTimer timer_;
  bool ahead_;
  std::vector<Seconds> whole_;  ///< of weights that are gathered ahead: when a unit's are there,
  Seconds gathered_{};          ///< and all
  std::vector<Known> known_;
  Seconds exchanged_{};
};

}  // namespace

ShardedWalk walk_sharded(const StepPlan& plan, bool slows) {
  const Orders orders = plan.orders();
  std::vector<TimedStage> stages;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) stages.emplace_back(plan, i, orders[i], slows);
  const TurnClock clock = [&](int stage, const Turn& turn, Seconds begin) {
    return stages[static_cast<std::size_t>(stage)].end(turn, begin);
  };
  ShardedWalk out;
  for (const StageSpan& span : stage_spans(plan.schedule, plan.chunked(), orders, clock))
    out.end = std::max(out.end, span.end);
  const Seconds tied = std::max(plan.stages.front().tied_embedding, plan.stages.back().tied_embedding);
  if (tied > Seconds{})
    out.end = std::max(out.end, std::max(stages.front().exchanged(), stages.back().exchanged()) + tied);
  for (const TimedStage& stage : stages) out.slowed.push_back(stage.slowed);
  return out;
}

}  // namespace collcast::workload
