// The state of a pattern's run, counted from the same numbers that the run is set up from (exchanges.hpp,
// connections.hpp, shared_links.hpp). Left out: pools, a few bytes per flow of one bottleneck.
#include "collcast/engine/footprint.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "engine/connections.hpp"
#include "engine/event.hpp"
#include "engine/exchanges.hpp"
#include "engine/max_min.hpp"
#include "engine/shared_links.hpp"

namespace collcast {

namespace {

using namespace engine;

/// What of a phase exists at once, over all positions.
struct PhaseSize {
  double connections = 0, counters = 0;
};

PhaseSize size_of(const Phase& phase, int positions) {
  PhaseSize size;
  for (Position v = 0; v < positions; ++v) {
    const int sends = phase.shape->sends(phase, v), receives = phase.shape->receives(phase, v);
    const bool one_by_one = phase.flow == Flow::circulating || phase.flow == Flow::sequential;
    size.connections += one_by_one ? std::min(sends, 1) : sends;
    size.counters += phase.flow == Flow::forwarding ? receives : 1;
  }
  return size;
}

/// Links of the routes of some hundred positions of a phase, on average.
double links_of_a_route(const Fabric& fabric, const Pattern& pattern, const Lane& lane, const Phase& phase) {
  constexpr int most = 256;
  double links = 0, hops = 0;
  std::vector<LinkId> route;
  for (Position v = 0; v < pattern.size(); v += std::max(1, pattern.size() / most)) {
    if (phase.shape->sends(phase, v) == 0) continue;
    route.clear();
    const Hop hop = phase.shape->send(phase, v, 0);
    fabric.route(pattern.rank(lane, v), pattern.rank(lane, hop.peer), lane.route_lane, route);
    links += static_cast<double>(std::bit_ceil(route.size()));  // as blocks are
    ++hops;
  }
  return hops > 0 ? links / hops : 0;
}

/// Of a pattern's run: without the links.
struct RunSize {
  double connections = 0, crossings = 0, counters = 0, walkers = 0;
};

RunSize size_of(const Fabric& fabric, const Pattern& pattern) {
  RunSize size;
  for (const Lane& lane : pattern.lanes) {
    double connections = 0, crossings = 0;
    for (const Phase& phase : lane.phases) {
      const PhaseSize at_once = size_of(phase, pattern.size());
      connections = std::max(connections, at_once.connections);
      crossings = std::max(crossings, at_once.connections * links_of_a_route(fabric, pattern, lane, phase));
      size.counters += at_once.counters;
    }
    size.connections += connections;
    size.crossings += crossings;
    size.walkers += pattern.size();
  }
  return size;
}

}  // namespace

Bytes footprint(const Fabric& fabric, std::span<const Pattern> patterns) {
  const bool alone = patterns.size() == 1 && has_recurrence(fabric, patterns.front());
  double per_connection =
      sizeof(Connection) + sizeof(ConnectionRoute) + Exchanges::bytes_per_send + sizeof(Event) + 2 * sizeof(Due);
  double per_crossing = sizeof(Crossing), per_link = Connections::bytes_per_link;
  if (!alone) {  // links may be shared: flows are listed
    per_connection += MaxMinLinks::bytes_per_flow + sizeof(Event);
    per_crossing += sizeof(SharedLinks::OnLink);
    per_link += sizeof(SharedLinks::LinkState) + MaxMinLinks::bytes_per_link + sizeof(LinkUse);
  }
  const double per_walker = Exchanges::bytes_per_walker + 2 * sizeof(std::uint32_t) + sizeof(Ticks);
  double bytes = static_cast<double>(fabric.links().size()) * per_link;
  for (const Pattern& pattern : patterns) {
    const RunSize size = size_of(fabric, pattern);
    bytes += size.connections * per_connection + size.crossings * per_crossing + size.walkers * per_walker +
             size.counters * Exchanges::bytes_per_counter;
  }
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace collcast
