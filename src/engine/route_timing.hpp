// What a route costs one message that has it to itself.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "collcast/topology/fabric.hpp"
#include "engine/ticks.hpp"

namespace collcast::engine {

struct RouteTiming {
  double bandwidth = std::numeric_limits<double>::infinity();  ///< smallest of the links
  Ticks latency = 0;                                           ///< sum of the links', rounded up once
  Ticks alone = 0;                                             ///< from the start until the last byte has left
};

inline RouteTiming time_route(std::span<const Link> links, std::span<const LinkId> route, Volume size) {
  RouteTiming timing;
  Seconds latency{};
  for (const LinkId id : route) {
    latency += links[id.value()].latency;
    timing.bandwidth = std::min(timing.bandwidth, links[id.value()].bandwidth.value());
  }
  timing.latency = ticks(latency);
  timing.alone = ticks(size / Bandwidth(timing.bandwidth));
  return timing;
}

}  // namespace collcast::engine
