// The hops of all lanes in the order in which they would come up if nobody were in anyone's way.
//
// A hop's *moment* is when its first chunk could start on links of its own; who has nothing to wait for in a phase is
// already in the next one. (The rounds that an algorithm counts in are not that: the leaves of a tree all begin at
// once.) Hops of one moment are looked at together, then those that waited for them come up. Nothing is stored
// per message; beside the positions only the receives of forwarding phases.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/hops.hpp"

namespace collcast {

/// Of the first chunk and of the last.
struct ChunkTimes {
  double first = 0, last = 0;
  void join(const ChunkTimes& other) {
    first = first < other.first ? other.first : first;
    last = last < other.last ? other.last : last;
  }
  ChunkTimes later(double by) const { return {first + by, last + by}; }
};

/// As it comes, and as it would on links of its own.
struct HopTimes {
  ChunkTimes shared, alone;
  void join(const HopTimes& other) {
    shared.join(other.shared);
    alone.join(other.alone);
  }
  HopTimes later(double by) const { return {shared.later(by), alone.later(by)}; }
};

/// A position of one of the lanes.
struct Walker {
  int lane = 0;
  Position position = 0;
};

/// A hop that has come up.
struct Step {
  int lane = 0;  ///< among all lanes of all patterns
  int phase = 0;
  Position from = 0;
  Sent sent;
  HopTimes start;  ///< when its first and last chunk can start; of a ring, when the member and when the last came
};

/// Who comes up when. Moments that differ by less than the rounding of sums are one.
///
/// Those of one moment mostly come one after the other: what is ordered is runs of equal moment.
class Agenda {
 public:
  bool empty() const { return runs_.empty(); }
  void push(double moment, Walker walker);
  /// Takes all of the least moment, in the order in which they came, and says which that is.
  double pop(std::vector<Walker>& out);

 private:
  struct Run {
    double moment = 0;
    std::size_t begin = 0, end = 0;  // of walkers_
  };
  static bool after(const Run& a, const Run& b) {
    return a.moment != b.moment ? a.moment > b.moment : a.begin > b.begin;
  }
  void order_last();
  void close_up();

  std::vector<Run> runs_;        // a heap, the least first
  bool open_ = false;            // the last is not in its place yet: more may come
  std::vector<Walker> walkers_;  // and gaps, which runs that are over have left
  std::size_t waiting_ = 0;
};

/// The positions on their way through the phases of their lanes.
class LaneWalk {
 public:
  explicit LaneWalk(const Hops&);
  void begin(Agenda&);

  const Phase& phase(const Walker& w) const { return hops_.stage(w.lane, state(w).phase).phase; }
  /// Of the hop that has come up.
  const HopTimes& start(const Walker& w) const { return state(w).start; }
  /// Calls visit(step) for what the position does now: its next hop, all of them at once (concurrent), or one that
  /// stands for all (circulating). A step's links are good until the next one.
  template <class Visit>
  void each(const Walker& w, Visit visit) {
    const State& state = this->state(w);
    const Phase& phase = hops_.stage(w.lane, state.phase).phase;
    const int end = phase.flow == Flow::concurrent ? hops_.cell(w.lane, state.phase, w.position).sends : state.next + 1;
    for (int j = state.next; j < end; ++j)
      visit(
          Step{w.lane, state.phase, w.position, hops_.sent(w.lane, state.phase, w.position, j, scratch_), state.start});
  }
  /// A step's first and last chunk have left. Not for rings.
  void serve(const Step&, const HopTimes& left);
  /// So has all that the position did in this moment: it goes on, if it can.
  void leave(const Walker&, Agenda&);
  /// Something may have come that the position waited for.
  void go_on(const Walker&, Agenda&);
  /// The ring of `member` has come round.
  void come_round(const Walker& member, const HopTimes& end, Agenda&);

  /// When the last position of a lane was through with a phase; once the agenda is empty.
  double phase_end(std::size_t lane, std::size_t phase) const {
    return phase_ends_[hops_.lanes()[lane].first_stage + phase];
  }

 private:
  struct State {
    int phase = 0, next = 0;
    bool queued = false;
    HopTimes left;   // the previous hop's; on entering a phase, when that was
    HopTimes start;  // of the hop that is queued
  };
  struct Receives {  // of one position in one phase
    int arrived = 0;
    int gathered = 0;  // circulating: members of the ring that have come, at its first
    HopTimes last;
  };
  struct Slot {
    bool arrived = false;
    HopTimes time;
  };

 public:
  static constexpr std::size_t bytes_per_position = sizeof(State), bytes_per_cell = sizeof(Receives),
                               bytes_per_slot = sizeof(Slot);

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
  State& state(const Walker& w) { return states_[hops_.lanes()[at(w.lane)].first_position + at(w.position)]; }
  const State& state(const Walker& w) const {
    return states_[hops_.lanes()[at(w.lane)].first_position + at(w.position)];
  }
  bool queue_next(const Walker&, Agenda&);
  void gather(const Walker&, Agenda&);

  const Hops& hops_;
  std::vector<State> states_;       // by lane and position
  std::vector<Receives> receives_;  // by cell
  std::vector<Slot> slots_;
  std::vector<double> phase_ends_;  // by stage
  Hops::Scratch scratch_;
};

/// Equal for times that differ by rounding only.
double moment(double time);

}  // namespace collcast
