#include "workload/schedules/order_walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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
  Walk(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders)
      : Walk(schedule, in, orders, each_alone(orders.size()), nullptr) {}
  Walk(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders, std::vector<Team> teams,
       const TurnClock* clock)
      : schedule_(schedule),
        in_(in),
        orders_(orders),
        teams_(std::move(teams)),
        clock_(clock),
        stages_(orders.size()),
        chunk_ends_(in.times.size()) {
    for (const std::vector<Turn>& order : orders)
      for (const Turn& turn : order) micro_batches_ = std::max(micro_batches_, at(turn.micro_batch) + 1);
    ways_.reserve(2 * in.times.size());
    for (int stage = 0; at(stage) < stages_.size(); ++stage)
      for (int chunk = 0; chunk < in.chunks; ++chunk)
        for (const bool backward : {false, true}) ways_.push_back(way_of(stage, {backward, 0, chunk}));
    arrivals_.assign(ways_.size() * micro_batches_, none);
  }

  void run() {
    for (bool more = true; more;) {
      more = false;
      for (const Team& team : teams_)
        while (take(team)) more = true;
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
    Seconds wire[2]{};  ///< when the last message on, and back, has come
  };
  /// Of the forwards or backwards of a chunk of a stage.
  struct Way {
    bool begins = false;  ///< they wait for nobody
    bool sends = false;   ///< to those at `to`,
    std::size_t to = 0;
    bool crosses = false;  ///< which are another stage's:
    std::size_t wire = 0;  ///< by the link on or back,
    Seconds transfer{};    ///< in that time
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  std::size_t number(int stage, int chunk, bool backward) const {
    return 2 * (at(stage) * at(in_.chunks) + at(chunk)) + (backward ? 1 : 0);
  }
  Way way_of(int stage, const Turn& turn) const {
    Way way;
    way.begins = begins(schedule_, in_.stages, in_.chunks, stage, turn);
    const std::optional<ChunkPlace> to = next_place(schedule_, in_.stages, in_.chunks, stage, turn);
    if (!to) return way;
    way.sends = true;
    way.to = number(to->stage, to->chunk, turn.backward);
    way.crosses = to->stage != stage;
    if (!way.crosses) return way;
    const bool on = goes_on(schedule_, stage, *to, turn);
    way.wire = on ? 0 : 1;
    way.transfer = in_.transfer[at(on ? stage : to->stage)];
    return way;
  }

  /// Of activations and gradients, when they come to a turn; none: not yet.
  Seconds& arrival(std::size_t way, const Turn& turn) { return arrivals_[way * micro_batches_ + at(turn.micro_batch)]; }

  /// When a turn has its input.
  Seconds input(int stage, const Turn& turn) {
    const std::size_t way = number(stage, turn.chunk, turn.backward);
    return turn.weights || ways_[way].begins ? Seconds{} : arrival(way, turn);
  }

  /// The next turn of a team: false if it is through, or what it waits for is not there yet.
  bool take(const Team& team) {
    const std::vector<Turn>& order = orders_[team.front()];
    const std::size_t n = stages_[team.front()].done;
    if (n == order.size()) return false;
    const Turn& turn = order[n];
    taken_.clear();
    for (const std::size_t i : team) {
      const int stage = static_cast<int>(i);
      Seconds ready = input(stage, turn);
      if (turn.with_next) ready = std::max(ready, input(stage, order[n + 1]));
      if (ready == none) return false;
      taken_.push_back({stage, std::max(stages_[i].free, ready), {}});
    }
    if (clock_ != nullptr) (*clock_)(turn, taken_);
    for (const TakenTurn& one : taken_) end(one, turn, n);
    return true;
  }

  void end(const TakenTurn& taken, const Turn& turn, std::size_t n) {
    const std::size_t i = at(taken.stage);
    Stage& s = stages_[i];
    if (n == 0) s.begin = taken.begin;
    s.free = clock_ != nullptr ? taken.end.sent : taken.begin + time_of(in_.of(taken.stage, turn.chunk), turn);
    chunk_ends_[i * at(in_.chunks) + at(turn.chunk)] = s.free;
    // Of a pair both send in the end.
    if (n > 0 && orders_[i][n - 1].with_next) send(taken.stage, orders_[i][n - 1]);
    if (!turn.weights && !turn.with_next) send(taken.stage, turn);
    if (clock_ != nullptr) s.free = std::max(s.free, taken.end.free);
    ++s.done;
  }

  void send(int i, const Turn& turn) {
    const Way& way = ways_[number(i, turn.chunk, turn.backward)];
    if (!way.sends) return;
    Stage& s = stages_[at(i)];
    Seconds came = s.free;
    if (way.crosses) {
      Seconds& wire = s.wire[way.wire];
      came = wire = std::max(wire, s.free) + way.transfer;
      if (in_.blocking) s.free = wire;
    }
    arrival(way.to, turn) = came;
  }

  PipelineSchedule schedule_;
  const ChunkedStages& in_;
  const Orders& orders_;
  std::vector<Team> teams_;
  const TurnClock* clock_;
  std::vector<TakenTurn> taken_;
  std::size_t micro_batches_ = 0;
  std::vector<Stage> stages_;
  std::vector<Seconds> chunk_ends_;
  std::vector<Way> ways_;          // by stage, chunk and direction
  std::vector<Seconds> arrivals_;  // the same, by micro-batch
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

std::vector<Team> each_alone(std::size_t stages) {
  std::vector<Team> teams;
  for (std::size_t i = 0; i < stages; ++i) teams.push_back({i});
  return teams;
}

std::vector<StageSpan> stage_spans(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders) {
  return spans_of(Walk(schedule, in, orders), orders.size());
}

std::vector<StageSpan> stage_spans(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders,
                                   const std::vector<Team>& teams, const TurnClock& clock) {
  return spans_of(Walk(schedule, in, orders, teams, &clock), orders.size());
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
