#include "workload/zero_bubble_v.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <utility>

namespace collcast::workload {

namespace {

/// The turns of a stage one after the other.
class Order {
 public:
  Order(int all, int micro_batches) : all_(all), micro_batches_(micro_batches) {
    turns_.reserve(6 * static_cast<std::size_t>(micro_batches));
  }

  void forward(int chunk) {
    int& next = forwards_[at(chunk)];
    if (next < all_) add({false, next++, chunk});
  }
  void backward(int chunk) {
    const Turn turn{true, backwards_[at(chunk)]++, chunk};
    add(turn);
    waiting_.push_back({true, turn.micro_batch, chunk, true});
  }
  void weights() {
    add(waiting_.front());
    waiting_.pop_front();
  }
  bool waiting() const { return !waiting_.empty(); }
  std::vector<Turn> take() { return std::move(turns_); }

 private:
  static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }
  void add(const Turn& turn) {
    if (turn.micro_batch < micro_batches_) turns_.push_back(turn);
  }

  int all_, micro_batches_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::deque<Turn> waiting_;  ///< for their weight gradients
  std::vector<Turn> turns_;
};

int slices(int stages) { return 2 * stages; }

/// The order gone through: each stage's turns one after the other, each stage's messages of a direction too.
class WalkOfV {
 public:
  WalkOfV(const ChunkedStages& in, int micro_batches)
      : in_(in), stages_(static_cast<std::size_t>(in.stages)), weights_ends_(in.times.size()) {
    for (int i = 0; i < in.stages; ++i) stages_[at(i)].order = zero_bubble_v_order(in.stages, i, micro_batches);
  }

  /// When the last weight gradients of each chunk are done.
  const std::vector<Seconds>& run() {
    for (bool more = true; more;) {
      more = false;
      for (int i = 0; i < in_.stages; ++i)
        for (Stage& s = stages_[at(i)]; s.done < s.order.size() && take(i, s.order[s.done]); ++s.done) more = true;
    }
    for (const Stage& s : stages_) check(s.done == s.order.size(), "a V order never waits for itself");
    return weights_ends_;
  }

 private:
  struct Stage {
    std::vector<Turn> order;
    std::size_t done = 0;
    Seconds free{};
    Seconds wire[2]{};  ///< when the last message down the stages, and up, has come
    /// Activations and gradients of each chunk that it has not used yet: it uses them as they come.
    std::deque<Seconds> arrivals[2][2];
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// False if what it waits for is not there yet.
  bool take(int i, const Turn& turn) {
    Stage& s = stages_[at(i)];
    const StageTime time = in_.of(i, turn.chunk);
    if (turn.weights) {
      s.free += time.weights;
      weights_ends_[at(i * in_.chunks + turn.chunk)] = s.free;
      return true;
    }
    const bool begins = i == 0 && turn.chunk == (turn.backward ? 1 : 0);
    if (!begins) {
      std::deque<Seconds>& arrivals = s.arrivals[turn.chunk][turn.backward ? 1 : 0];
      if (arrivals.empty()) return false;
      s.free = std::max(s.free, arrivals.front());
      arrivals.pop_front();
    }
    s.free += turn.backward ? time.backward : time.forward;
    send(i, turn);
    return true;
  }

  void send(int i, const Turn& turn) {
    const std::optional<ChunkPlace> to = next_in_v(in_.stages, i, turn);
    if (!to) return;
    Stage& s = stages_[at(i)];
    Seconds arrival = s.free;
    if (to->stage != i) {
      Seconds& wire = s.wire[to->stage > i ? 0 : 1];
      arrival = wire = std::max(wire, s.free) + in_.transfer[at(std::min(i, to->stage))];
      if (in_.blocking) s.free = wire;
    }
    stages_[at(to->stage)].arrivals[to->chunk][turn.backward ? 1 : 0].push_back(arrival);
  }

  const ChunkedStages& in_;
  std::vector<Stage> stages_;
  std::vector<Seconds> weights_ends_;
};

/// The formula; blocking messages are part of their sender's turns.
PipelineTerms formula_of_v(const ChunkedStages& in, int micro_batches) {
  PipelineTerms terms;
  std::vector<StageTime> stages;
  for (int i = 0; i < in.stages; ++i) stages.push_back(in.of(i));
  Seconds c{};
  for (std::size_t i = 0; i < in.transfer.size(); ++i) {
    if (!in.blocking) {
      c += in.transfer[i];
      continue;
    }
    // Each of the two sends the other an activation and a gradient.
    for (StageTime* of : {&stages[i], &stages[i + 1]}) {
      of->forward += in.transfer[i];
      of->backward += in.transfer[i];
    }
  }
  const auto slowest = std::max_element(stages.begin(), stages.end(),
                                        [](const StageTime& a, const StageTime& b) { return a.whole() < b.whole(); });
  Seconds f{}, b{}, w{};
  for (const StageTime& s : stages) {
    terms.work += s.whole();
    if (&s == &*slowest) continue;
    f += s.forward;
    b += s.backward;
    w += s.weights;
  }
  terms.first = terms.last = static_cast<int>(slowest - stages.begin());
  terms.window_work = slowest->whole();
  // Down the stages, and up.
  terms.transfers = 2 * c;
  terms.ends = std::max({f / 2 + 5 * c, b / 2 + 5 * c, w / 2 + 3 * c, f - b / 2 + 3 * c, f - w + 4 * c,
                         (f + b) / 2 - w + 6 * c, b - w + 6 * c});
  terms.rest = micro_batches * terms.window_work + terms.ends - terms.work - 2 * terms.transfers;
  return terms;
}

}  // namespace

std::vector<Turn> zero_bubble_v_order(int stages, int stage, int micro_batches) {
  const int all = std::max(micro_batches, slices(stages)), behind = stages - 1 - stage;
  Order order(all, micro_batches);
  for (int n = 0; n < 2 * behind; ++n) order.forward(0);
  for (int n = 0; n <= stage; ++n) {
    order.forward(0);
    order.forward(1);
  }
  for (int n = 0; n < behind; ++n) {
    order.backward(1);
    order.weights();
    order.forward(1);
  }
  for (int n = 0; n < all - stages; ++n) {
    order.backward(1);
    order.weights();
    order.forward(0);
    order.backward(0);
    order.weights();
    order.forward(1);
  }
  for (int n = 0; n <= stage; ++n) {
    order.backward(1);
    order.backward(0);
  }
  for (int n = 0; n < behind; ++n) {
    order.weights();
    order.backward(0);
  }
  while (order.waiting()) order.weights();
  return order.take();
}

std::optional<ChunkPlace> next_in_v(int stages, int stage, const Turn& turn) {
  const int slice = (turn.chunk == 0 ? stage : slices(stages) - 1 - stage) + (turn.backward ? -1 : 1);
  if (slice < 0 || slice == slices(stages)) return std::nullopt;
  return slice < stages ? ChunkPlace{slice, 0} : ChunkPlace{slices(stages) - 1 - slice, 1};
}

Pipeline run_zero_bubble_v(const ChunkedStages& in, int micro_batches) {
  const auto stages = static_cast<std::size_t>(in.stages);
  check(in.chunks == 2 && in.times.size() == 2 * stages && in.transfer.size() + 1 == stages,
        "times of both chunks of a V, a transfer between two stages");
  Pipeline out{formula_of_v(in, micro_batches), std::vector<Seconds>(stages), std::vector<Seconds>(2 * stages)};
  WalkOfV walk(in, micro_batches);
  const std::vector<Seconds>& ends = walk.run();
  const Seconds end = *std::max_element(ends.begin(), ends.end());
  // Of sums in another order the last bits differ: that is none.
  if (const Seconds more = end - out.terms.total(); std::abs(more.count()) > 1e-12 * end.count())
    out.terms.order = more;
  // A stage ends with the weight gradients of its chunk 0.
  for (std::size_t i = 0; i < stages; ++i) {
    out.ahead[i] = end - ends[2 * i];
    out.later[2 * i + 1] = ends[2 * i] - ends[2 * i + 1];
  }
  return out;
}

}  // namespace collcast::workload
