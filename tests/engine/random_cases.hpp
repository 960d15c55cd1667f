// Small random machines, schedules and patterns, drawn so that the awkward cases are common: equal rates
// and unequal ones, ties in time, zero bytes, one byte, no latency, priorities, ranks that talk to themselves.
#pragma once

#include <random>

#include "collcast/schedule/schedule.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast::test {

/// Draws the same numbers on every compiler (the distributions of <random> need not).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// 0 ... sides-1
  int roll(int sides) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(sides)); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[roll(static_cast<int>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

Fabric random_fabric(Dice& dice);
/// Compute, delays and transfers among the fabric's ranks; each after up to three earlier ones.
Schedule random_schedule(Dice& dice, const Fabric& fabric);
/// One to three lanes of one to three phases of any shape over some of the fabric's ranks.
Pattern random_pattern(Dice& dice, const Fabric& fabric);

}  // namespace collcast::test
