// The hops of one phase of one lane, round by round, without a list of them.
//
// Positions wait in the round of their next hop (a linked list per round). A circulating phase has the same
// hops in every round, so its first stands for all; a concurrent one has all its hops in one.
#pragma once

#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast {

class Rounds {
 public:
  Rounds(const Phase&, int positions);

  int count() const { return all_at_once_ ? 1 : phase_->rounds; }
  /// How often the hops of a round happen.
  int repeats() const { return phase_->flow == Flow::circulating ? phase_->rounds : 1; }

  /// Calls visit(position, hop) for every hop of the round, always in the same order.
  template <class Visit>
  void each(int round, Visit visit) const {
    if (all_at_once_) {
      for (Position v = 0; v < positions_; ++v) {
        const int sends = phase_->shape->sends(*phase_, v);
        const int hops = phase_->flow == Flow::circulating && sends > 0 ? 1 : sends;
        for (int j = 0; j < hops; ++j) visit(v, phase_->shape->send(*phase_, v, j));
      }
      return;
    }
    for (Position v = first_[static_cast<std::size_t>(round)]; v >= 0; v = following_[static_cast<std::size_t>(v)])
      for (int j = next_hop_[static_cast<std::size_t>(v)]; j < end_hop_[static_cast<std::size_t>(v)]; ++j) {
        const Hop hop = phase_->shape->send(*phase_, v, j);
        if (hop.round != round) break;
        visit(v, hop);
      }
  }
  /// Moves every position of the round on to the round of its next hop.
  void leave(int round);

 private:
  void wait(Position);

  const Phase* phase_;
  int positions_;
  bool all_at_once_;
  std::vector<Position> first_;      // by round, or -1
  std::vector<Position> following_;  // by position, or -1
  std::vector<int> next_hop_, end_hop_;
};

}  // namespace collcast
