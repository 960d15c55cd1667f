#include "workload/exchange_walk.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "workload/aligned.hpp"
#include "workload/slowdown.hpp"

namespace collcast::workload {

namespace {

class ExchangeClock {
 public:
  explicit ExchangeClock(const StepPlan& plan)
      : plan_(plan), aligns_(aligns_gradients(plan)), chunked_(plan.chunked()), stages_(plan.stages.size()) {}

  void begin(const Orders& orders) {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      Stage& s = stages_[i];
      s.plan = &plan_.stages[i];
      s.unit_done.resize(s.plan->units.size());
      s.turns.resize(static_cast<std::size_t>(plan_.chunks));
      for (const Turn& turn : orders[i]) ++s.turns[static_cast<std::size_t>(turn.chunk)];
      s.left = static_cast<int>(orders[i].size());
      s.fills = !plan_.delayed && fills_in_backward(plan_, i);
      if (aligns_ && !s.fills) s.launches.emplace(plan_, i, orders[i]);
      if (!plan_.delayed) continue;
      for (const Bucket& bucket : s.plan->buckets) s.busy += bucket.time;
    }
  }

  void operator()(const Turn& turn, std::span<TakenTurn> taken) {
    for (TakenTurn& one : taken) one.end = end_of(one.stage, turn, one.begin);
  }

  ExchangeWalk result(std::span<const StageSpan> spans) const {
    ExchangeWalk out;
    for (const StageSpan& span : spans) out.end = std::max(out.end, span.end);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const Stage& s = stages_[i];
      GradientTerms terms;
      terms.stage = static_cast<int>(i);
      terms.buckets = s.busy - s.busy_since;
      // The stream may wait for the message that the stage ends with.
      const Seconds behind = std::max(s.busy_since - s.sent, Seconds{});
      terms.left = s.sent + behind - s.busy_since;
      terms.ahead = plan_.zero == 2 ? Seconds{} : out.end - s.sent - behind;
      out.gradients.push_back(terms);
      out.slowed.push_back(s.slowed);
    }
    return out;
  }

 private:
  struct Stage {
    const StagePlan* plan = nullptr;
    std::vector<int> turns;                    ///< to come, by chunk
    int left = 0;                              ///< of all turns
    bool fills = false;                        ///< buckets are reduced as they are full
    std::optional<GradientLaunches> launches;  ///< where they are not
    std::vector<bool> unit_done;
    std::size_t next_bucket = 0;
    Seconds busy_since{}, busy{};  ///< the DP stream: begin and end of what it does
    Seconds sent{};                ///< the end of the last turn that was gone through
    SlowedParts slowed;
  };

  TurnEnd end_of(int stage, const Turn& turn, Seconds begin) {
    Stage& s = stages_[static_cast<std::size_t>(stage)];
    const TurnEnd end = taken(s, stage, turn, begin);
    --s.left;
    if (!s.launches) return end;
    s.sent = end.sent;
    for (const int chunk : s.launches->behind(turn)) launch(s, chunk, end.sent);
    if (s.left > 0) return end;
    const bool blocks = !plan_.overlap_pp && stage > 0;
    const Seconds idle = end.sent + (blocks ? plan_.transfer[static_cast<std::size_t>(stage) - 1] : Seconds{});
    for (const int chunk : s.launches->left()) launch(s, chunk, idle);
    return end;
  }

  TurnEnd taken(Stage& s, int stage, const Turn& turn, Seconds begin) {
    const bool last = --s.turns[static_cast<std::size_t>(turn.chunk)] == 0;
    const bool fills = s.fills && (plan_.zero == 2 ? turn.backward : last);
    if (!fills && s.busy <= begin) {
      const Seconds end = begin + time_of(chunked_.of(stage, turn.chunk), turn);
      return {end, end};
    }
    Seconds end = pass(s, turn, turn.weights, begin, fills && !turn.whole);
    if (turn.whole) end = pass(s, turn, true, end, fills);
    if (plan_.zero != 2 || !turn.backward) return {end, end};
    s.next_bucket = 0;
    s.unit_done.assign(s.unit_done.size(), false);
    return {end, std::max(end, s.busy)};
  }

  Seconds pass(Stage& s, const Turn& turn, bool weights, Seconds at, bool fills) {
    const std::vector<Unit>& units = s.plan->units;
    for (std::size_t n = 0; n < units.size(); ++n) {
      const std::size_t u = turn.backward ? units.size() - 1 - n : n;
      if (units[u].chunk != turn.chunk) continue;
      const UnitWork& work = s.plan->work(units[u]).in_detail();
      const PassEnd end = end_of_pass(weights         ? work.weights_of(turn.whole)
                                      : turn.backward ? work.backward_of(turn.whole)
                                                      : work.forward,
                                      at, s.busy);
      s.slowed += end.slowed;
      if (fills) fill(s, u, end.last);
      at = end.all;
    }
    return s.sent = at;
  }

  /// One after the other in their order.
  void fill(Stage& s, std::size_t unit, Seconds now) {
    s.unit_done[unit] = true;
    reduce(s, now);
  }

  void launch(Stage& s, int chunk, Seconds now) {
    for (std::size_t u = 0; u < s.unit_done.size(); ++u)
      if (s.plan->units[u].chunk == chunk) s.unit_done[u] = true;
    reduce(s, now);
  }

  void reduce(Stage& s, Seconds now) {
    const std::vector<Bucket>& buckets = s.plan->buckets;
    for (; s.next_bucket < buckets.size() && s.unit_done[buckets[s.next_bucket].unit]; ++s.next_bucket) {
      if (now > s.busy || s.next_bucket == 0) s.busy_since = s.busy = std::max(now, s.busy);
      s.busy += buckets[s.next_bucket].time;
    }
  }

  const StepPlan& plan_;
  bool aligns_;
  ChunkedStages chunked_;
  std::vector<Stage> stages_;
};

}  // namespace

SlowedParts& SlowedParts::operator+=(const SlowedParts& other) {
  compute += other.compute;
  tp += other.tp;
  cp += other.cp;
  ep += other.ep;
  return *this;
}

SlowedParts operator*(int times, SlowedParts one) {
  for (Seconds SlowedParts::*part : {&SlowedParts::compute, &SlowedParts::tp, &SlowedParts::cp, &SlowedParts::ep})
    one.*part *= times;
  return one;
}

namespace {

/// What kernels of that rate take from then on, beside what runs then.
Seconds beside_busy(double rate, Seconds kernels, Seconds from, std::span<const Busy> busy) {
  Seconds time = kernels;
  for (const Busy& one : busy) {
    if (one.end <= from) continue;
    const Seconds before = std::max(one.begin - from, Seconds{});
    if (time <= before) break;
    time = before + beside_collective(rate, time - before, one.end - std::max(one.begin, from));
  }
  return time;
}

}  // namespace

PassEnd end_of_pass(const std::vector<Stretch>& pass, Seconds begin, Seconds busy) {
  const Busy until{begin, busy};
  return end_of_pass(pass, begin, {&until, 1});
}

PassEnd end_of_pass(const std::vector<Stretch>& pass, Seconds begin, std::span<const Busy> busy) {
  PassEnd end{begin, begin, {}};
  Seconds lost{};
  for (const Stretch& s : pass) {
    const Seconds from = end.all;
    Seconds time = s.time;
    if (s.waits_for_host())
      time = std::max(time - lost, Seconds{});
    else if (s.rate < 1)
      time = beside_busy(s.rate, time, from, busy);
    end.last = from + time;
    end.all = from + std::max(time, s.beside);
    if (time == s.time) continue;
    // By what the stretch is longer: what runs beside it hides the rest.
    if (time > s.time) lost += std::max(time, s.beside) - s.length();
    end.slowed.compute += time - s.time;
    const Seconds hidden = std::max(s.beside - s.time, Seconds{}) - std::max(s.beside - time, Seconds{});
    (s.beside_is == Category::tp   ? end.slowed.tp
     : s.beside_is == Category::cp ? end.slowed.cp
                                   : end.slowed.ep) += hidden;
  }
  return end;
}

bool slows_beside_exchange(const StepPlan& plan) {
  if (!plan.overlap_dp) return false;
  for (const StagePlan& stage : plan.stages) {
    if (stage.buckets.empty()) continue;
    for (const UnitWork& work : stage.works)
      if (work.in_detail().is_slowed()) return true;
  }
  return false;
}

ExchangeWalk walk_beside_exchange(const StepPlan& plan) {
  const Orders orders = plan.orders();
  ExchangeClock clock(plan);
  clock.begin(orders);
  const std::vector<StageSpan> spans =
      stage_spans(plan.schedule, plan.chunked(), orders, each_alone(orders.size()), std::ref(clock));
  return clock.result(spans);
}

}  // namespace collcast::workload
