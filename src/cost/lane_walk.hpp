// The hops of a lane in the order in which they would come up if nobody were in anyone's way.
//
// A hop's *moment* is when its first chunk could start on links of its own; who has nothing to wait for in a phase is
// already in the next one. (The rounds that an algorithm counts in are not that: the leaves of a tree all begin at
// once.) Hops of one moment are looked at together, then those that waited for them come up. Nothing is stored
// per message; beside the positions only the receives of forwarding phases.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast {

/// Of the first chunk and of the last.
struct ChunkTimes {
  double first = 0, last = 0;
  void join(const ChunkTimes& other);
  ChunkTimes later(double by) const { return {first + by, last + by}; }
};

/// As it comes, and as it would on links of its own.
struct HopTimes {
  ChunkTimes shared, alone;
  void join(const HopTimes& other);
  HopTimes later(double by) const { return {shared.later(by), alone.later(by)}; }
};

/// A hop that has come up.
struct Step {
  int lane = 0;  ///< among all lanes of all patterns
  int phase = 0;
  Position from = 0;
  Hop hop;
  HopTimes start;  ///< when its first and last chunk can start; of a ring, when the member and when the last came
};

struct Served {
  HopTimes left;
  double latency = 0;
};

/// The positions of a lane on their way through its phases.
class LaneWalk {
 public:
  /// Moment -> (lane, position). Moments that differ by less than the rounding of sums are one.
  using Queue = std::map<double, std::vector<std::pair<int, Position>>>;

  LaneWalk(const Pattern&, const Lane&, int lane_index);
  void begin(Queue&);

  /// Calls visit(step) for what the position does now: its next hop, all of them at once (concurrent), or one that
  /// stands for all (circulating).
  template <class Visit>
  void each(Position v, Visit visit) const {
    const State& state = states_[at(v)];
    const Phase& phase = lane_->phases[at(state.phase)];
    const int end = phase.flow == Flow::concurrent ? phase.shape->sends(phase, v) : state.next_hop + 1;
    for (int j = state.next_hop; j < end; ++j)
      visit(Step{index_, state.phase, v, phase.shape->send(phase, v, j), state.start});
  }
  /// A step's time is known. Not for rings.
  void serve(const Step&, const Served&);
  /// So are those of all that the position did in this moment: it goes on, if it can.
  void leave(Position, Queue&);
  /// Something may have come that the position waited for.
  void go_on(Position, Queue&);
  /// The ring of `member` has come round.
  void come_round(int phase, Position member, const HopTimes& end, Queue&);

  const Phase& phase(int number) const { return lane_->phases[at(number)]; }
  const Pattern& pattern() const { return *pattern_; }
  const Lane& lane() const { return *lane_; }
  /// When the last position was through with each phase; once the queue is empty.
  std::span<const double> phase_ends() const { return phase_ends_; }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
  struct State {
    int phase = 0, next_hop = 0;
    bool queued = false;
    HopTimes left;   // the previous hop's; on entering a phase, when that was
    HopTimes start;  // of the hop that is queued
  };
  struct Receives {  // of one position in one phase
    int expected = 0, arrived = 0;
    std::size_t begin = 0;  // its slots, forwarding only
    HopTimes last;
  };
  struct Slot {
    bool arrived = false;
    HopTimes time;
  };
  struct Stage {
    std::vector<Receives> receives;
    std::vector<Slot> slots;
    std::vector<int> gathered;  // circulating: members of a ring that have come, at its first
  };
  bool queue_next(Position, Queue&);
  void gather(Position, Queue&);

  const Pattern* pattern_;
  const Lane* lane_;
  int index_;
  std::vector<State> states_;
  std::vector<Stage> stages_;  // by phase
  std::vector<double> phase_ends_;
};

/// Equal for times that differ by rounding only.
double moment(double time);

}  // namespace collcast
