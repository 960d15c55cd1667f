#include "workload/order_walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace collcast::workload {

StageTime ChunkedStages::of(int stage) const {
  StageTime all;
  for (int c = 0; c < chunks; ++c) {
    all.forward += of(stage, c).forward;
    all.backward += of(stage, c).backward;
    all.weights += of(stage, c).weights;
    all.saved += of(stage, c).saved;
  }
  return all;
}

namespace {

class Walk {
 public:
  Walk(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders, const TurnClock* clock = nullptr)
      : schedule_(schedule),
        in_(in),
        orders_(orders),
        clock_(clock),
        stages_(orders.size()),
        chunk_ends_(in.times.size()) {
    for (const std::vector<Turn>& order : orders)
      for (const Turn& turn : order) micro_batches_ = std::max(micro_batches_, at(turn.micro_batch) + 1);
    for (Stage& s : stages_) s.arrivals.assign(2 * at(in.chunks) * micro_batches_, none);
  }

  void run() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < stages_.size(); ++i)
        for (Stage& s = stages_[i]; s.done < orders_[i].size() && take(i, orders_[i][s.done]); ++s.done) more = true;
    }
    for (std::size_t i = 0; i < stages_.size(); ++i)
      check(stages_[i].done == orders_[i].size(), "an order of work never waits for itself");
  }

  /// When the last turn of a stage has ended, and the last of each chunk.
  Seconds end_of(std::size_t stage) const { return stages_[stage].free; }
  Seconds begin_of(std::size_t stage) const { return stages_[stage].begin; }
  const std::vector<Seconds>& chunk_ends() const { return chunk_ends_; }

 private:
  static constexpr Seconds none{std::numeric_limits<double>::infinity()};

  struct Stage {
    std::size_t done = 0;
    Seconds begin{}, free{};
    Seconds wire[2]{};              ///< when the last message on, and back, has come
    std::vector<Seconds> arrivals;  ///< of activations and gradients, by chunk and micro-batch; none: not yet
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  Seconds& arrival(const ChunkPlace& place, const Turn& turn) {
    return stages_[at(place.stage)]
        .arrivals[(2 * at(place.chunk) + (turn.backward ? 1 : 0)) * micro_batches_ + at(turn.micro_batch)];
  }

  /// When a turn has its input.
  Seconds input(int stage, const Turn& turn) {
    if (turn.weights || begins(schedule_, in_.stages, in_.chunks, stage, turn)) return {};
    return arrival({stage, turn.chunk}, turn);
  }

  /// False if what it waits for is not there yet.
  bool take(std::size_t i, const Turn& turn) {
    Stage& s = stages_[i];
    const int stage = static_cast<int>(i);
    Seconds ready = input(stage, turn);
    if (turn.with_next) ready = std::max(ready, input(stage, orders_[i][s.done + 1]));
    if (ready == none) return false;
    s.free = std::max(s.free, ready);
    if (s.done == 0) s.begin = s.free;
    Seconds go_on = s.free;
    if (clock_ != nullptr) {
      const TurnEnd end = (*clock_)(stage, turn, s.free);
      s.free = end.sent;
      go_on = end.free;
    } else {
      s.free += time_of(in_.of(stage, turn.chunk), turn);
    }
    chunk_ends_[i * at(in_.chunks) + at(turn.chunk)] = s.free;
    // Of a pair both send in the end.
    if (s.done > 0 && orders_[i][s.done - 1].with_next) send(stage, orders_[i][s.done - 1]);
    if (!turn.weights && !turn.with_next) send(stage, turn);
    s.free = std::max(s.free, go_on);
    return true;
  }

  void send(int i, const Turn& turn) {
    const std::optional<ChunkPlace> to = next_place(schedule_, in_.stages, in_.chunks, i, turn);
    if (!to) return;
    Stage& s = stages_[at(i)];
    Seconds came = s.free;
    if (to->stage != i) {
      const bool on = goes_on(schedule_, i, *to, turn);
      Seconds& wire = s.wire[on ? 0 : 1];
      came = wire = std::max(wire, s.free) + in_.transfer[at(on ? i : to->stage)];
      if (in_.blocking) s.free = wire;
    }
    arrival(*to, turn) = came;
  }

  PipelineSchedule schedule_;
  const ChunkedStages& in_;
  const Orders& orders_;
  const TurnClock* clock_;
  std::size_t micro_batches_ = 0;
  std::vector<Stage> stages_;
  std::vector<Seconds> chunk_ends_;
};

std::vector<StageSpan> spans_of(Walk walk, std::size_t stages) {
  walk.run();
  std::vector<StageSpan> spans;
  for (std::size_t i = 0; i < stages; ++i) spans.push_back({walk.begin_of(i), walk.end_of(i)});
  return spans;
}

}  // namespace

Seconds time_of(const StageTime& time, const Turn& turn) {
  return turn.weights    ? time.weights
         : turn.whole    ? time.whole_backward()
         : turn.backward ? time.backward
                         : time.forward;
}

std::vector<StageSpan> stage_spans(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders) {
  return spans_of(Walk(schedule, in, orders), orders.size());
}

std::vector<StageSpan> stage_spans(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders,
                                   const TurnClock& clock) {
  return spans_of(Walk(schedule, in, orders, &clock), orders.size());
}

Pipeline with_order(const PipelineTerms& formula, PipelineSchedule schedule, const ChunkedStages& in,
                    const Orders& orders) {
  const std::size_t stages = orders.size(), chunks = static_cast<std::size_t>(in.chunks);
  check(in.times.size() == stages * chunks && in.transfer.size() + 1 >= stages,
        "times of every chunk, a transfer between two stages");
  Pipeline out{formula, std::vector<Seconds>(stages), std::vector<Seconds>(stages * chunks)};
  Walk walk(schedule, in, orders);
  walk.run();
  Seconds end{};
  for (std::size_t i = 0; i < stages; ++i) end = std::max(end, walk.end_of(i));
  // Of sums in another order the last bits differ: that is none.
  if (const Seconds more = end - out.terms.total(); std::abs(more.count()) > 1e-12 * end.count())
    out.terms.order = more;
  for (std::size_t i = 0; i < stages; ++i) {
    out.ahead[i] = end - walk.end_of(i);
    for (std::size_t c = 0; c < chunks; ++c)
      out.later[i * chunks + c] = walk.end_of(i) - walk.chunk_ends()[i * chunks + c];
  }
  return out;
}

}  // namespace collcast::workload
