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
  Grains to_move = 0;                                          ///< until the last byte has left
  Ticks alone = 0;                                             ///< how long that takes
};

inline RouteTiming time_route(std::span<const Link> links, std::span<const LinkId> route, Volume size) {
  RouteTiming timing;
  Seconds latency{};
  for (const LinkId id : route) {
    latency += links[id.value()].latency;
    timing.bandwidth = std::min(timing.bandwidth, links[id.value()].bandwidth.value());
  }
  timing.latency = ticks(latency);
  if (route.empty()) return timing;
  timing.to_move = to_move(size.value());
  timing.alone = ticks_to_move(timing.to_move, grains_per_tick(timing.bandwidth));
  return timing;
}

}  // namespace collcast::engine
