#include "workload/schedules/automatic_order.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "workload/schedules/zero_bubble.hpp"

namespace collcast::workload {

namespace {

/// The questions that are tried both ways.
struct Habit {
  bool eager = false;       ///< a forward is begun though the next gradient comes before its end
  bool makes_room = false;  ///< weight gradients make room for a forward whose turn it is, before a gradient goes
};

constexpr Seconds never{std::numeric_limits<double>::infinity()};

/// All stages in the order of time: a stage that is free takes a turn, or waits for the next message that is under way,
/// or for one to be sent.
class Scheduler {
 public:
  Scheduler(PipelineSchedule schedule, const ChunkedStages& in, std::span<const double> kept, int micro_batches,
            Habit habit)
      : in_(in),
        kept_(kept),
        micro_batches_(micro_batches),
        most_(most_held(schedule, in.stages)),
        habit_(habit),
        stages_(static_cast<std::size_t>(in.stages)) {
    Seconds longest{};
    for (const StageTime& time : in.times) longest = std::max(longest, time.whole());
    // Sums in another order differ in their last bits.
    slack_ = 1e-9 * longest;
    for (int i = 0; i < in.stages; ++i) {
      stages_[at(i)].in_flight = most_in_flight(schedule, in.stages, i, micro_batches);
      later_.emplace(Seconds{}, i);
    }
    stages_.front().activations.assign(at(micro_batches), Seconds{});
  }

  Orders run() {
    while (!later_.empty()) {
      const auto [time, i] = later_.top();
      later_.pop();
      Stage& s = stages_[at(i)];
      s.awake = true;
      if (s.weights == micro_batches_) continue;
      step(i, std::max(time, s.free));
    }
    Orders orders;
    for (Stage& s : stages_) {
      check(s.weights == micro_batches_, "every stage comes to its last weight gradients");
      orders.push_back(std::move(s.order));
    }
    return orders;
  }

 private:
  enum class Choice { forward, backward, weights, wait };

  struct Stage {
    std::vector<Turn> order;
    int forwards = 0, backwards = 0, weights = 0;  ///< done
    int in_flight = 0;                             ///< at most
    bool was_backward = false;
    bool awake = true;                            ///< has its next look under way
    Seconds free{}, idle{};                       ///< idle: between its turns
    Seconds wire[2]{};                            ///< when its last message on, and back, has come
    std::vector<Seconds> activations, gradients;  ///< arrivals
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool last(int i) const { return i + 1 == in_.stages; }

  Seconds next_activation(const Stage& s) const {
    const std::size_t n = at(s.forwards);
    return n < s.activations.size() ? s.activations[n] : never;
  }
  Seconds next_gradient(int i, const Stage& s) const {
    if (s.backwards == micro_batches_) return never;
    if (last(i)) return s.forwards > s.backwards ? Seconds{} : never;
    const std::size_t n = at(s.backwards);
    return n < s.gradients.size() ? s.gradients[n] : never;
  }
  double held(int i, const Stage& s) const {
    return s.forwards - s.backwards + kept_[at(i)] * (s.backwards - s.weights);
  }
  bool has_room(int i, const Stage& s) const {
    return s.forwards - s.backwards < s.in_flight && held(i, s) + 1 <= most_ + 1e-9;
  }
  /// Where weight gradients need more than the activations whose place they take.
  bool backward_has_room(int i, const Stage& s) const {
    return s.backwards == s.weights || held(i, s) - 1 + kept_[at(i)] <= most_ + 1e-9;
  }

  void step(int i, Seconds now) {
    Stage& s = stages_[at(i)];
    const Seconds activation = s.forwards < micro_batches_ && has_room(i, s) ? next_activation(s) : never;
    const Seconds gradient = next_gradient(i, s);
    switch (choose(i, now, activation, gradient)) {
      case Choice::forward:
        return take(i, now, {false, s.forwards++, 0});
      case Choice::backward:
        return take(i, now, {true, s.backwards++, 0});
      case Choice::weights:
        return take(i, now, {true, s.weights++, 0, true});
      case Choice::wait: {
        Seconds next = never;
        for (const Seconds one : {activation, gradient})
          if (one > now) next = std::min(next, one);
        s.awake = next != never;
        if (s.awake) later_.emplace(next, i);
      }
    }
  }

  Choice choose(int i, Seconds now, Seconds activation, Seconds gradient) const {
    const Stage& s = stages_[at(i)];
    const bool forward = activation <= now + slack_, backward = gradient <= now + slack_,
               waits = s.weights < s.backwards;
    if (backward && !backward_has_room(i, s)) return Choice::weights;
    // A forward that is over before the next gradient comes is always begun.
    const bool fits = gradient >= now + in_.of(i, 0).forward - slack_;
    if (s.backwards == 0) {
      if (backward) return Choice::backward;
      return forward && (habit_.eager || fits) ? Choice::forward : Choice::wait;
    }
    if (s.backwards == micro_batches_) return Choice::weights;
    const bool turn_of_forward = s.was_backward && s.forwards < micro_batches_;
    if (turn_of_forward && forward) return Choice::forward;
    if (turn_of_forward && habit_.makes_room && waits && !has_room(i, s)) return Choice::weights;
    if (backward) return Choice::backward;
    if (forward && (habit_.eager || fits)) return Choice::forward;
    if (waits && fills(i, now, std::min(activation, gradient))) return Choice::weights;
    return forward && gradient == never ? Choice::forward : Choice::wait;
  }

  /// Weight gradients that are over before `next`, or else hold this stage up less than the one that waited longest.
  bool fills(int i, Seconds now, Seconds next) const {
    if (next >= now + in_.of(i, 0).weights - slack_) return true;
    const Seconds waited = stages_[at(i)].idle + (next - now);
    return std::all_of(stages_.begin(), stages_.end(),
                       [&](const Stage& other) { return waited >= other.idle - slack_; });
  }

  void take(int i, Seconds now, const Turn& turn) {
    Stage& s = stages_[at(i)];
    const StageTime time = in_.of(i, 0);
    if (!s.order.empty()) s.idle += now - s.free;
    s.free = now + (turn.weights ? time.weights : turn.backward ? time.backward : time.forward);
    s.order.push_back(turn);
    if (!turn.weights) {
      s.was_backward = turn.backward;
      send(i, turn, now);
    }
    later_.emplace(s.free, i);
  }

  void send(int i, const Turn& turn, Seconds now) {
    if (turn.backward ? i == 0 : last(i)) return;
    Stage& s = stages_[at(i)];
    const int to = turn.backward ? i - 1 : i + 1;
    Seconds& wire = s.wire[turn.backward ? 1 : 0];
    wire = std::max(wire, s.free) + in_.transfer[at(std::min(i, to))];
    if (in_.blocking) s.free = wire;
    Stage& receiver = stages_[at(to)];
    (turn.backward ? receiver.gradients : receiver.activations).push_back(wire);
    if (receiver.awake) return;
    receiver.awake = true;
    later_.emplace(std::max(now, receiver.free), to);
  }

  using Look = std::pair<Seconds, int>;  ///< at what time which stage looks what there is to do
  const ChunkedStages& in_;
  std::span<const double> kept_;
  int micro_batches_;
  double most_;
  Habit habit_;
  Seconds slack_{};
  std::vector<Stage> stages_;
  std::priority_queue<Look, std::vector<Look>, std::greater<>> later_;
};

/// Whether an order holds no more than it may.
bool has_room(PipelineSchedule schedule, const Orders& orders, std::span<const double> kept) {
  const double most = most_held(schedule, static_cast<int>(orders.size()));
  for (std::size_t i = 0; i < orders.size(); ++i) {
    double held = 0;
    int waiting = 0;
    for (const Turn& turn : orders[i]) {
      waiting += turn.weights ? -1 : turn.backward ? 1 : 0;
      held += turn.weights ? -kept[i] : turn.backward ? kept[i] - 1 : 1;
      // One may always wait for its weight gradients.
      if (held > most + 1e-9 && !(turn.backward && waiting == 1)) return false;
    }
  }
  return true;
}

/// H1 or H2 of all stages.
Orders fixed_orders(PipelineSchedule fixed, int stages, int micro_batches) {
  Orders orders;
  for (int i = 0; i < stages; ++i) orders.push_back(zero_bubble_order(fixed, stages, i, micro_batches));
  return orders;
}

/// 1F1B whose weight gradients follow each backward.
Orders plain_orders(int stages, int micro_batches) {
  Orders orders;
  for (int i = 0; i < stages; ++i) {
    std::vector<Turn>& plain = orders.emplace_back();
    for (const Turn& turn : stage_order(PipelineSchedule::one_f_one_b, stages, i, micro_batches)) {
      plain.push_back(turn);
      if (turn.backward) plain.push_back({true, turn.micro_batch, 0, true});
    }
  }
  return orders;
}

PipelineSchedule fixed_of(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_2p ? PipelineSchedule::zb_h2 : PipelineSchedule::zb_h1;
}

/// All that are tried for these times: the known ones that have room, then those of each habit.
template <class Offer>
void offer_orders(PipelineSchedule schedule, const ChunkedStages& in, std::span<const double> kept, int micro_batches,
                  Offer offer) {
  for (Orders known :
       {fixed_orders(fixed_of(schedule), in.stages, micro_batches), plain_orders(in.stages, micro_batches)})
    if (has_room(schedule, known, kept)) offer(std::move(known));
  for (const Habit habit : {Habit{false, true}, Habit{false, false}, Habit{true, true}, Habit{true, false}})
    offer(Scheduler(schedule, in, kept, micro_batches, habit).run());
}

/// The longest stage from its first turn to its last, and when all are over.
std::pair<Seconds, Seconds> length(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders) {
  std::pair<Seconds, Seconds> most{};
  for (const StageSpan& span : stage_spans(schedule, in, orders))
    most = {std::max(most.first, span.end - span.begin), std::max(most.second, span.end)};
  return most;
}

}  // namespace

int most_held(PipelineSchedule schedule, int stages) {
  return schedule == PipelineSchedule::zb_2p ? 2 * stages : stages;
}

int most_in_flight(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  return std::min({micro_batches, most_held(schedule, stages), 2 * (stages - stage)});
}

Orders automatic_orders(PipelineSchedule schedule, const ChunkedStages& in, std::span<const double> kept,
                        int micro_batches) {
  check(in.chunks == 1 && kept.size() == in.times.size(), "a chunk a stage, and of each what it keeps");
  Orders best;
  std::pair<Seconds, Seconds> shortest{never, never};
  const auto offer = [&](Orders orders) {
    const std::pair<Seconds, Seconds> tried = length(schedule, in, orders);
    // Of sums in another order the last bits differ: the first of equals.
    const bool shorter = tried.first < (1 - 1e-12) * shortest.first;
    const bool over_first = tried.first <= (1 + 1e-12) * shortest.first && tried.second < (1 - 1e-12) * shortest.second;
    if (!shorter && !over_first) return;
    shortest = tried;
    best = std::move(orders);
  };
  offer_orders(schedule, in, kept, micro_batches, offer);
  return best;
}

Orders automatic_orders(PipelineSchedule schedule, const ChunkedStages& computing, const ExchangingTurns& exchanging,
                        std::span<const double> kept, int micro_batches) {
  check(computing.chunks == 1 && kept.size() == computing.times.size(), "a chunk a stage, and of each what it keeps");
  Orders best;
  Seconds first = never;
  const auto offer = [&](Orders orders) {
    const Seconds end = exchanging.end(orders);
    // The first of equals, as above.
    if (end >= (1 - 1e-12) * first) return;
    first = end;
    best = std::move(orders);
  };
  // What holds less first.
  if (schedule == PipelineSchedule::zb_2p) {
    for (const ChunkedStages* times : {&exchanging.times, &computing})
      offer_orders(PipelineSchedule::zb_1p, *times, kept, micro_batches, offer);
    // H1 may have no room in p.
    if (Orders h1 = fixed_orders(PipelineSchedule::zb_h1, computing.stages, micro_batches);
        has_room(schedule, h1, kept))
      offer(std::move(h1));
  }
  for (const ChunkedStages* times : {&exchanging.times, &computing})
    offer_orders(schedule, *times, kept, micro_batches, offer);
  return best;
}

PipelineTerms automatic_terms(const ChunkedStages& in, int micro_batches) {
  PipelineTerms terms;
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < in.times.size(); ++i) {
    terms.work += in.times[i].whole();
    if (in.times[i].whole() > in.times[slowest].whole()) slowest = i;
  }
  for (std::size_t i = 0; i + 1 < in.times.size(); ++i) terms.ends += in.times[i].forward + in.transfer[i];
  if (!in.blocking)
    for (const Seconds c : in.transfer) terms.transfers += c;
  terms.first = terms.last = static_cast<int>(slowest);
  terms.window_work = in.times[slowest].whole();
  terms.rest = micro_batches * terms.window_work + terms.ends - terms.work - 2 * terms.transfers;
  return terms;
}

}  // namespace collcast::workload
