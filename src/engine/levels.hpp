// Max-min fair rates kept up to date: a change costs what it changes.
//
// A link's *level* is the rate at which it stops the flows that no other link stops before; infinite if it stops none.
// A flow's rate is the lowest level on its route, and a level follows from the rates below it:
//
//   level(l) = (capacity(l) - sum of v over flows with v < level(l)) / number of the others,
//              v(f, l) = lowest level of the other links that f crosses
//
// so levels are settled from the lowest up. When flows come and go, the levels of their links are worked out anew;
// where one differs from what the others were told it waits in a heap by the lower of the two. The first of the heap is
// settled and told to the links that its flows cross, of which those with a higher level may differ now, and so on:
// nothing below the first can change any more, since a change of v between two values changes a level only above the
// lower of them. What is not reached keeps its level. A level that went down is final when it is told; one that went up
// may be told again when a lower one follows. A link that one flow has for itself has its capacity as its level.
//
// The arithmetic is that of WaterFilling, operation by operation, so the rates are the same doubles.
// This is change propagation in the order of Dijkstra's algorithm, as Ramalingam and Reps, "An incremental algorithm
// for a generalization of the shortest-path problem" (1996), have it for shortest paths.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/shared_links.hpp"

namespace collcast::engine {

class Levels {
 public:
  explicit Levels(const SharedLinks& links) : links_(links) {}
  /// After the links have begun, once.
  void begin();

  /// Settles all levels after flows have come to `changed` links or left them, and lists in touched() the flows whose
  /// rate may have changed. False if flows of several priorities meet, or of other weights than 1, or if more than
  /// `visits` flows had to be looked at: then levels that can be reached from `changed` are to be set by the caller.
  bool settle(std::span<const std::uint32_t> changed, std::size_t visits);
  std::span<const std::uint32_t> touched() const { return touched_; }
  double rate(std::uint32_t flow) const;

  void set(std::uint32_t link, double level) { states_[link] = {level, level}; }
  /// Flows of several priorities, or of weights, are on it or near it.
  void forget(std::uint32_t link) { states_[link] = {unknown, std::numeric_limits<double>::infinity()}; }

 private:
  static constexpr double unknown = -1;

  struct State {
    double told = 0;   ///< level that the other links reckon with
    double right = 0;  ///< as it follows from theirs
  };
  struct Waiting {
    double key;
    std::uint32_t link;
    bool operator<(const Waiting& other) const { return key > other.key; }  // the lowest key is the heap's top
  };
  bool work_out(std::uint32_t link);
  double level_by_others(double capacity);
  void reconsider(std::uint32_t link);
  void tell(std::uint32_t link);
  void tell_flow(std::uint32_t flow, std::uint32_t link, double lower);
  void touch(std::uint32_t flow);
  void drop_what_waits();

  const SharedLinks& links_;
  std::vector<State> states_;  ///< by link
  std::vector<Waiting> heap_;
  std::vector<double> others_;  ///< v of the flows of the link that is worked out
  std::vector<std::uint32_t> to_reconsider_;
  std::vector<std::uint64_t> reached_;     ///< by link: when it was last put into to_reconsider_
  std::vector<std::uint64_t> touched_at_;  ///< by flow
  std::vector<std::uint32_t> touched_;
  std::uint64_t telling_ = 0, settling_ = 0;
  std::size_t visits_left_ = 0;
  bool gives_up_ = false;

 public:
  static constexpr std::size_t bytes_per_link = sizeof(State) + sizeof(std::uint64_t);
};

}  // namespace collcast::engine
