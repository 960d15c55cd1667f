#include "workload/zero_bubble.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

namespace collcast::workload {

namespace {

int depth(PipelineSchedule schedule) { return schedule == PipelineSchedule::zb_h2 ? 2 : 1; }

/// The order gone through: each stage's turns one after the other, each stage's messages of a direction too.
class Walk {
 public:
  Walk(PipelineSchedule schedule, std::span<const StageTime> stages, std::span<const Seconds> transfer,
       int micro_batches)
      : times_(stages), transfer_(transfer), stages_(stages.size()) {
    const int count = static_cast<int>(stages.size());
    for (int i = 0; i < count; ++i) stages_[at(i)].order = zero_bubble_order(schedule, count, i, micro_batches);
  }

  /// When the last turn of each stage has ended.
  std::vector<Seconds> run() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < stages_.size(); ++i)
        for (Stage& s = stages_[i]; s.done < s.order.size() && take(i, s.order[s.done]); ++s.done) more = true;
    }
    std::vector<Seconds> ends;
    for (const Stage& s : stages_) {
      check(s.done == s.order.size(), "a zero-bubble order never waits for itself");
      ends.push_back(s.free);
    }
    return ends;
  }

 private:
  struct Stage {
    std::vector<Turn> order;
    std::size_t done = 0;
    Seconds free{};
    Seconds wire[2]{};                ///< when the last message on, and back, has come
    std::deque<Seconds> arrivals[2];  ///< activations and gradients that it has not used yet
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// False if what it waits for is not there yet.
  bool take(std::size_t i, const Turn& turn) {
    Stage& s = stages_[i];
    if (turn.weights) {
      s.free += times_[i].weights;
      return true;
    }
    const bool begins = turn.backward ? i + 1 == stages_.size() : i == 0;
    if (!begins) {
      std::deque<Seconds>& arrivals = s.arrivals[turn.backward ? 1 : 0];
      if (arrivals.empty()) return false;
      s.free = std::max(s.free, arrivals.front());
      arrivals.pop_front();
    }
    s.free += turn.backward ? times_[i].backward : times_[i].forward;
    send(i, turn.backward);
    return true;
  }

  void send(std::size_t i, bool back) {
    if (back ? i == 0 : i + 1 == stages_.size()) return;
    Stage& s = stages_[i];
    Seconds& wire = s.wire[back ? 1 : 0];
    wire = std::max(wire, s.free) + transfer_[back ? i - 1 : i];
    stages_[back ? i - 1 : i + 1].arrivals[back ? 1 : 0].push_back(wire);
  }

  std::span<const StageTime> times_;
  std::span<const Seconds> transfer_;
  std::vector<Stage> stages_;
};

PipelineTerms formula(PipelineSchedule schedule, std::span<const StageTime> stages, std::span<const Seconds> transfer,
                      int micro_batches) {
  PipelineTerms terms;
  Seconds fill{};  // of the bubble, by the weight gradients of the others
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    terms.work += stages[i].whole();
    if (stages[i].whole() > stages[slowest].whole()) slowest = i;
  }
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (i != slowest) fill += (depth(schedule) + 1) * stages[i].weights;
  for (const Seconds c : transfer) terms.transfers += c;
  terms.first = terms.last = static_cast<int>(slowest);
  terms.window_work = stages[slowest].whole();
  terms.filled = fill;
  const Seconds messages = (schedule == PipelineSchedule::zb_h1 ? 4 : 2) * terms.transfers;
  const Seconds bubble = std::max(terms.work - terms.window_work - fill + messages, Seconds{});
  terms.rest = micro_batches * terms.window_work + bubble - terms.work - 2 * terms.transfers;
  return terms;
}

}  // namespace

std::vector<Turn> zero_bubble_order(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  const int warm_up = std::min(micro_batches, depth(schedule) * (stages - 1 - stage)), lag = depth(schedule) * stage;
  std::vector<Turn> order;
  order.reserve(3 * static_cast<std::size_t>(micro_batches));
  for (int k = 0; k < warm_up; ++k) order.push_back({false, k, 0});
  int weights = 0;
  for (int k = 0; k < micro_batches; ++k) {
    if (warm_up + k < micro_batches) order.push_back({false, warm_up + k, 0});
    order.push_back({true, k, 0});
    if (k >= lag) order.push_back({true, weights++, 0, true});
  }
  while (weights < micro_batches) order.push_back({true, weights++, 0, true});
  return order;
}

Pipeline run_zero_bubble(PipelineSchedule schedule, std::span<const StageTime> stages,
                         std::span<const Seconds> transfer, int micro_batches) {
  Pipeline out{formula(schedule, stages, transfer, micro_batches), {}, {}};
  const std::vector<Seconds> ends = Walk(schedule, stages, transfer, micro_batches).run();
  const Seconds end = *std::max_element(ends.begin(), ends.end());
  // Of sums in another order the last bits differ: that is none.
  if (const Seconds more = end - out.terms.total(); std::abs(more.count()) > 1e-12 * end.count())
    out.terms.order = more;
  for (const Seconds stage : ends) out.ahead.push_back(end - stage);
  return out;
}

}  // namespace collcast::workload
