// How messages that meet on a link share it.
#pragma once

#include <compare>
#include <cstdint>

namespace collcast {

/// Strict priorities, and weights within one: of what those before it leave, a class's message has a part that grows
/// with its weight. Made of a priority alone where weights do not matter.
struct TrafficClass {
  int priority = 0;          ///< lower goes first
  std::uint16_t weight = 1;  ///< 1 to 65,535; max-min sharing only

  constexpr TrafficClass(int of_priority = 0, std::uint16_t of_weight = 1) : priority(of_priority), weight(of_weight) {}
  friend auto operator<=>(const TrafficClass&, const TrafficClass&) = default;
};

}  // namespace collcast
