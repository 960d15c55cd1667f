// Times of a finished simulation, as tests write them.
#pragma once

#include <catch2/catch.hpp>

#include "collcast/engine/engine.hpp"

namespace collcast::test {

inline std::int64_t ps(SimTime t) { return t.time_since_epoch().count(); }

/// Fails the test if the simulation did.
inline Timeline run(const Fabric& fabric, const Schedule& schedule, Sharing sharing = Sharing::max_min) {
  Result<Timeline> timeline = simulate(fabric, schedule, {sharing});
  if (!timeline) FAIL(to_text(timeline.errors()));
  return std::move(timeline).value();
}
inline Timeline run(const Fabric& fabric, const Pattern& pattern, Sharing sharing = Sharing::max_min) {
  Schedule schedule;
  schedule.add_exchange(pattern);
  return run(fabric, schedule, sharing);
}

constexpr Bandwidth gb_per_s(double value) { return Bandwidth(value * 1e9); }
constexpr std::int64_t us(std::int64_t value) { return value * 1'000'000; }

}  // namespace collcast::test
