#include "cost/rounds.hpp"

namespace collcast {

Rounds::Rounds(const Phase& phase, int positions)
    : phase_(&phase),
      positions_(positions),
      all_at_once_(phase.flow == Flow::circulating || phase.flow == Flow::concurrent) {
  if (all_at_once_) return;
  const auto size = static_cast<std::size_t>(positions);
  first_.assign(static_cast<std::size_t>(phase.rounds), -1);
  following_.assign(size, -1);
  next_hop_.assign(size, 0);
  for (Position v = 0; v < positions; ++v) end_hop_.push_back(phase.shape->sends(phase, v));
  for (Position v = positions - 1; v >= 0; --v) wait(v);
}

void Rounds::wait(Position v) {
  const auto p = static_cast<std::size_t>(v);
  if (next_hop_[p] >= end_hop_[p]) return;
  Position& first = first_[static_cast<std::size_t>(phase_->shape->send(*phase_, v, next_hop_[p]).round)];
  following_[p] = first;
  first = v;
}

void Rounds::leave(int round) {
  if (all_at_once_) return;
  for (Position v = first_[static_cast<std::size_t>(round)]; v >= 0;) {
    const auto p = static_cast<std::size_t>(v);
    const Position next = following_[p];
    while (next_hop_[p] < end_hop_[p] && phase_->shape->send(*phase_, v, next_hop_[p]).round == round) ++next_hop_[p];
    wait(v);
    v = next;
  }
}

}  // namespace collcast
