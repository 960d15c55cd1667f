#include "workload/schedules/interleaved.hpp"

#include <algorithm>
#include <cmath>

namespace collcast::workload {

int InterleavedOrder::warm_up(int stage) const {
  return std::min(2 * (stages_ - 1 - stage) + (chunks_ - 1) * stages_, forwards());
}

Turn InterleavedOrder::forward(int k) const {
  const int round = k / (stages_ * chunks_), first = round * stages_;
  // The last round has what is left.
  const int together = std::min(stages_, micro_batches_ - first), within = k % (stages_ * chunks_);
  return {false, first + within % together, within / together};
}

Turn InterleavedOrder::backward(int k) const {
  const Turn same = forward(k);
  return {true, same.micro_batch, chunks_ - 1 - same.chunk};
}

Turn InterleavedOrder::turn(int stage, int n) const {
  const int warm = warm_up(stage), all = forwards();
  if (n < warm) return forward(n);
  if (n >= 2 * all - warm) return backward(n - all);
  const int pair = (n - warm) / 2;
  return (n - warm) % 2 == 0 ? forward(warm + pair) : backward(pair);
}

namespace {

/// The order gone through: each stage's turns one after the other, each stage's messages of a direction too.
class InterleavedWalk {
 public:
  InterleavedWalk(const ChunkedStages& in, int micro_batches)
      : in_(in),
        order_(in.stages, in.chunks, micro_batches),
        stages_(static_cast<std::size_t>(in.stages)),
        backward_ends_(in.times.size()) {
    chunk_of_.reserve(at(order_.forwards()));
    for (int k = 0; k < order_.forwards(); ++k) chunk_of_.push_back(order_.forward(k).chunk);
    for (int i = 0; i < in.stages; ++i) stages_[at(i)].warm_up = order_.warm_up(i);
  }

  /// When the last backward of each chunk has ended.
  const std::vector<Seconds>& run() {
    const int turns = 2 * order_.forwards();
    int left = in_.stages * turns;
    while (left > 0) {
      const int before = left;
      for (int i = 0; i < in_.stages; ++i)
        for (Stage& s = stages_[at(i)]; s.done < turns && take(i, next(s)); ++s.done) --left;
      check(left < before, "an interleaved order never waits for itself");
    }
    return backward_ends_;
  }

 private:
  /// Messages in the order in which they come and are used.
  class Queue {
   public:
    bool empty() const { return next_ == all_.size(); }
    void push(Seconds one) { all_.push_back(one); }
    Seconds pop() {
      const Seconds one = all_[next_++];
      if (empty()) {
        all_.clear();
        next_ = 0;
      }
      return one;
    }

   private:
    std::vector<Seconds> all_;
    std::size_t next_ = 0;
  };
  struct Stage {
    int done = 0, warm_up = 0;
    Seconds free{};
    Seconds wire[2]{};  ///< when the last message on, and back, has come
    Queue arrivals[2];  ///< that it has not used yet, activations and gradients
  };
  struct ChunkTurn {
    bool backward = false;
    int chunk = 0;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// As InterleavedOrder::turn has it, whichever micro-batch's.
  ChunkTurn next(const Stage& s) const {
    const int n = s.done, warm = s.warm_up, all = order_.forwards();
    const auto forward = [&](int k) { return ChunkTurn{false, chunk_of_[at(k)]}; };
    const auto backward = [&](int k) { return ChunkTurn{true, in_.chunks - 1 - chunk_of_[at(k)]}; };
    if (n < warm) return forward(n);
    if (n >= 2 * all - warm) return backward(n - all);
    const int pair = (n - warm) / 2;
    return (n - warm) % 2 == 0 ? forward(warm + pair) : backward(pair);
  }

  /// False if what it waits for is not there yet.
  bool take(int i, const ChunkTurn& turn) {
    Stage& s = stages_[at(i)];
    const bool begins = turn.backward ? i + 1 == in_.stages && turn.chunk + 1 == in_.chunks : i == 0 && turn.chunk == 0;
    if (!begins) {
      Queue& arrivals = s.arrivals[turn.backward ? 1 : 0];
      if (arrivals.empty()) return false;
      s.free = std::max(s.free, arrivals.pop());
    }
    const StageTime time = in_.of(i, turn.chunk);
    s.free += turn.backward ? time.backward : time.forward;
    if (turn.backward) backward_ends_[at(i * in_.chunks + turn.chunk)] = s.free;
    send(i, turn);
    return true;
  }

  void send(int i, const ChunkTurn& turn) {
    const int last = in_.stages - 1;
    const bool round = turn.backward ? i == 0 : i == last;
    const int chunk = !round ? turn.chunk : turn.backward ? turn.chunk - 1 : turn.chunk + 1;
    if (chunk < 0 || chunk == in_.chunks) return;
    const int to = turn.backward ? (i == 0 ? last : i - 1) : (i == last ? 0 : i + 1);
    Stage& s = stages_[at(i)];
    Seconds& wire = s.wire[turn.backward ? 1 : 0];
    wire = std::max(wire, s.free) + in_.transfer[at(turn.backward ? to : i)];
    if (in_.blocking) s.free = wire;
    stages_[at(to)].arrivals[turn.backward ? 1 : 0].push(wire);
  }

  const ChunkedStages& in_;
  InterleavedOrder order_;
  std::vector<int> chunk_of_;  // of each forward
  std::vector<Stage> stages_;
  std::vector<Seconds> backward_ends_;
};

/// The formula; blocking messages are part of their sender's turns.
PipelineTerms formula(const ChunkedStages& in, int micro_batches) {
  PipelineTerms terms;
  const int last = in.stages - 1, ways = static_cast<int>(in.transfer.size());
  std::vector<Seconds> work;
  for (int i = 0; i <= last; ++i) {
    const StageTime time = in.of(i);
    work.push_back(time.forward + time.backward);
  }
  for (int i = 0; i < ways; ++i) {
    // The way round is taken once less: the last chunk sends none on, the first none back.
    const Seconds all = in.transfer[static_cast<std::size_t>(i)] * (i == last ? in.chunks - 1 : in.chunks);
    if (in.blocking) {
      work[static_cast<std::size_t>(i)] += all;
      work[static_cast<std::size_t>(i == last ? 0 : i + 1)] += all;
    } else {
      terms.transfers += all;
    }
  }
  const auto slowest = std::max_element(work.begin(), work.end());
  for (const Seconds w : work) terms.work += w;
  terms.first = terms.last = static_cast<int>(slowest - work.begin());
  terms.window_work = *slowest;
  terms.rest = *slowest * micro_batches + (terms.work - *slowest) / in.chunks - terms.work;
  return terms;
}

}  // namespace

Pipeline run_interleaved(const ChunkedStages& in, int micro_batches) {
  const auto stages = static_cast<std::size_t>(in.stages), chunks = static_cast<std::size_t>(in.chunks);
  check(in.times.size() == stages * chunks && in.transfer.size() == (chunks > 1 ? stages : stages - 1),
        "times of every chunk, a transfer between two stages, and one round with chunks");
  Pipeline out{formula(in, micro_batches), std::vector<Seconds>(stages), std::vector<Seconds>(stages * chunks)};
  InterleavedWalk walk(in, micro_batches);
  const std::vector<Seconds>& ends = walk.run();
  const Seconds end = ends.front();
  // Of sums in another order the last bits differ: that is none.
  if (const Seconds more = end - out.terms.total(); std::abs(more.count()) > 1e-12 * end.count())
    out.terms.order = more;
  for (std::size_t i = 0; i < stages; ++i) {
    out.ahead[i] = end - ends[i * chunks];
    for (std::size_t c = 0; c < chunks; ++c) out.later[i * chunks + c] = ends[i * chunks] - ends[i * chunks + c];
  }
  return out;
}

}  // namespace collcast::workload
