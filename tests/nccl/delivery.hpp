// A forwarding phase, proved by itself.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast::test {

/// Runs a forwarding phase on sets of contributions, by the rules of pattern.hpp: a hop goes when its first receives
/// are there, and has what they brought and the sender's own. Members that nothing is due to contribute nothing.
class Delivery {
 public:
  Delivery(const Phase& phase, const std::function<bool(Position)>& contributes) : phase_(phase) {
    for (Position v = 0; v < phase.members; ++v) {
      const auto receives = static_cast<std::size_t>(phase.shape->receives(phase, v));
      arrived_.emplace_back(receives);
      rounds_.emplace_back(receives, -1);
      own_.push_back(contributes(v) ? std::set<Position>{v} : std::set<Position>{});
    }
    std::vector<int> sent(own_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (Position v = 0; v < phase.members; ++v)
        while (sent[at(v)] < phase.shape->sends(phase, v) && goes(v, sent[at(v)])) {
          send(v, sent[at(v)]++);
          moved = true;
        }
    }
    for (Position v = 0; v < phase.members; ++v) CHECK(sent[at(v)] == phase.shape->sends(phase, v));
  }

  /// What has come at last: own and all receives.
  std::set<Position> has(Position v) const { return first(v, arrived_[at(v)].size()); }

 private:
  static std::size_t at(Position v) { return static_cast<std::size_t>(v); }
  bool goes(Position v, int hop) const {
    const auto& all = arrived_[at(v)];
    const int after = phase_.shape->send(phase_, v, hop).after;
    return std::all_of(all.begin(), all.begin() + after, [](const auto& one) { return one.has_value(); });
  }
  std::set<Position> first(Position v, std::size_t count) const {
    std::set<Position> out = own_[at(v)];
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(arrived_[at(v)][i]);
      out.insert(arrived_[at(v)][i]->begin(), arrived_[at(v)][i]->end());
    }
    return out;
  }
  void send(Position v, int hop) {
    const Hop h = phase_.shape->send(phase_, v, hop);
    REQUIRE(h.peer >= 0);
    REQUIRE(h.peer < phase_.members);
    REQUIRE(h.peer != v);
    REQUIRE(h.round < phase_.rounds);
    REQUIRE(static_cast<std::size_t>(h.slot) < arrived_[at(h.peer)].size());
    CHECK(peers_.insert({v, h.peer}).second);
    CHECK(!arrived_[at(h.peer)][at(h.slot)]);
    if (hop > 0) CHECK(h.round >= phase_.shape->send(phase_, v, hop - 1).round);
    if (h.after > 0) CHECK(rounds_[at(v)][at(h.after - 1)] < h.round);
    rounds_[at(h.peer)][at(h.slot)] = h.round;
    const auto& slots = rounds_[at(h.peer)];
    for (int i = 0; i + 1 < static_cast<int>(slots.size()); ++i)
      if (slots[at(i)] >= 0 && slots[at(i + 1)] >= 0) CHECK(slots[at(i)] <= slots[at(i + 1)]);
    arrived_[at(h.peer)][at(h.slot)] = first(v, at(h.after));
  }

  const Phase& phase_;
  std::vector<std::vector<std::optional<std::set<Position>>>> arrived_;
  std::vector<std::vector<int>> rounds_;
  std::vector<std::set<Position>> own_;
  std::set<std::pair<Position, Position>> peers_;
};

}  // namespace collcast::test
