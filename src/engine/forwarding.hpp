// The recurrence of a forwarding phase: chunk by chunk, and without chunks once every hop grows as it will for ever.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/wire.hpp"

namespace collcast::engine {

/// A phase of forwarding hops, chunk by chunk.
class Forwarding {
 public:
  /// Wires in round order; `slots`: first receive by position; `entry`: when positions enter the phase.
  Forwarding(std::vector<Wire>& wires, const std::vector<std::size_t>& slots, const std::vector<Ticks>& entry)
      : wires_(wires),
        slots_(slots),
        entry_(entry),
        arrived_(slots.back()),
        sender_(slots.back()),
        turn_(entry.size()) {
    std::vector<std::size_t> last(entry.size(), none);
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      sender_[slot(wires_[i].hop.peer, wires_[i].hop.slot)] = i;
      before_hop_.push_back(std::exchange(last[static_cast<std::size_t>(wires_[i].from)], i));
    }
  }

  /// What it takes beside the wires.
  static constexpr std::size_t bytes_per_wire = sizeof(std::size_t) + sizeof(Ticks),
                               bytes_per_receive = sizeof(Ticks) + sizeof(std::size_t),
                               bytes_per_position = sizeof(std::size_t) + sizeof(Ticks) + sizeof(std::size_t);

  void step() {
    turn_ = entry_;
    before_.clear();
    for (Wire& w : wires_) {
      before_.push_back(w.left);
      const auto from = static_cast<std::size_t>(w.from);
      Ticks start = std::max(turn_[from], w.left);
      for (int s = 0; s < w.hop.after; ++s) start = std::max(start, arrived_[slot(w.from, s)]);
      w.left = turn_[from] = start + w.alone;
      arrived_[slot(w.hop.peer, w.hop.slot)] = w.left + w.latency;
    }
  }

  /// After the third chunk or later: whether every hop will go on growing by as much per chunk as it has last.
  bool is_steady() const {
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      const Wire& w = wires_[i];
      bool holds = before_[i] + w.alone == w.left;
      const auto look_at = [&](std::size_t other, Ticks term) {
        holds |= term + w.alone == w.left && growth(other) == growth(i);
        return growth(other) <= growth(i);
      };
      if (before_hop_[i] != none && !look_at(before_hop_[i], wires_[before_hop_[i]].left)) return false;
      for (int s = 0; s < w.hop.after; ++s) {
        const std::size_t other = sender_[slot(w.from, s)];
        if (!look_at(other, wires_[other].left + wires_[other].latency)) return false;
      }
      if (!holds) return false;
    }
    return true;
  }
  void go_on(int chunks) {
    for (std::size_t i = 0; i < wires_.size(); ++i) before_[i] = growth(i);
    for (std::size_t i = 0; i < wires_.size(); ++i) wires_[i].left += chunks * before_[i];
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  std::size_t slot(Position v, int s) const {
    return slots_[static_cast<std::size_t>(v)] + static_cast<std::size_t>(s);
  }
  Ticks growth(std::size_t i) const { return wires_[i].left - before_[i]; }

  std::vector<Wire>& wires_;
  const std::vector<std::size_t>& slots_;
  const std::vector<Ticks>& entry_;
  std::vector<Ticks> arrived_;           ///< by receive
  std::vector<std::size_t> sender_;      ///< by receive: the wire
  std::vector<std::size_t> before_hop_;  ///< by wire: the same position's one before
  std::vector<Ticks> before_;            ///< by wire: `left` of the chunk before
  std::vector<Ticks> turn_;              ///< by position: when its hop before has sent the chunk
};

}  // namespace collcast::engine
