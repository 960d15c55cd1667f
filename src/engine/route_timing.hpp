// What a route costs one message that has it to itself.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "collcast/topology/fabric.hpp"
#include "engine/progress.hpp"

namespace collcast::engine {

struct RouteTiming {
  double bandwidth = std::numeric_limits<double>::infinity();  ///< smallest of the links
  Ticks latency = 0;                                           ///< sum of the links', rounded up once
};

inline RouteTiming time_route(std::span<const Link> links, std::span<const LinkId> route) {
  RouteTiming timing;
  Seconds latency{};
  for (const LinkId id : route) {
    latency += links[id.value()].latency;
    timing.bandwidth = std::min(timing.bandwidth, links[id.value()].bandwidth.value());
  }
  timing.latency = ticks(latency);
  return timing;
}

/// Until the last byte has left, at a rate in bytes per second; infinite where there is no link.
inline Ticks time_alone(double bandwidth, Volume size) {
  if (std::isinf(bandwidth)) return 0;
  return ticks_to_move(to_move(size.value()), grains_per_tick(bandwidth));
}

}  // namespace collcast::engine
