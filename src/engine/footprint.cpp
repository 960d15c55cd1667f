// The state of a pattern's run, counted from the same numbers that the run is set up from (exchanges.hpp,
// connections.hpp, shared_links.hpp). Left out: pools, a few bytes per flow of one bottleneck.
#include "collcast/engine/footprint.hpp"

#include <algorithm>
#include <bit>
#include <variant>
#include <vector>

#include "collcast/base/units.hpp"
#include "collcast/engine/engine.hpp"
#include "engine/circle.hpp"
#include "engine/connections.hpp"
#include "engine/event.hpp"
#include "engine/exchanges.hpp"
#include "engine/exclusive_links.hpp"
#include "engine/forwarding.hpp"
#include "engine/max_min.hpp"
#include "engine/rank_kernels.hpp"
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
    size.connections += sends_in_turn(phase.flow) ? std::min(sends, 1) : sends;
    size.counters += phase.flow == Flow::forwarding ? receives : 1;
  }
  return size;
}

/// Links of the routes of some hundred positions of a phase, on average; of each another hop, as the first of an
/// every-to-every goes next door and the others round half a ring.
double links_of_a_route(const Fabric& fabric, const Pattern& pattern, const Lane& lane, const Phase& phase) {
  constexpr int most = 256;
  double links = 0, hops = 0;
  std::vector<LinkId> route;
  for (Position v = 0; v < pattern.size(); v += std::max(1, pattern.size() / most)) {
    const std::int64_t sends = phase.shape->sends(phase, v);
    if (sends == 0) continue;
    route.clear();
    const Hop hop = phase.shape->send(phase, v, static_cast<int>(sends * v / pattern.size()));
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

/// What each of them takes.
struct Costs {
  double connection =
      sizeof(Connection) + sizeof(ConnectionRoute) + Exchanges::bytes_per_send + sizeof(Event) + 2 * sizeof(Due);
  double crossing = sizeof(Crossing), link = Connections::bytes_per_link;

  explicit Costs(bool alone) {
    if (alone) return;  // else links may be shared: flows are listed
    connection += MaxMinLinks::bytes_per_flow + sizeof(Event);
    crossing += sizeof(SharedLinks::OnLink);
    link += sizeof(SharedLinks::LinkState) + MaxMinLinks::bytes_per_link + sizeof(LinkUse);
  }
  double of(const RunSize& size) const {
    constexpr double walker = Exchanges::bytes_per_walker + 2 * sizeof(std::uint32_t) + sizeof(Ticks);
    return size.connections * connection + size.crossings * crossing + size.walkers * walker +
           size.counters * Exchanges::bytes_per_counter;
  }
};

/// The same, but for routes that nobody looks at and that are longer than most; not of a torus.
RunSize with_long_routes(const Pattern& pattern) {
  constexpr double links_of_a_long_route = 64;
  RunSize size;
  for (const Lane& lane : pattern.lanes) {
    double connections = 0;
    for (const Phase& phase : lane.phases) {
      const PhaseSize at_once = size_of(phase, pattern.size());
      connections = std::max(connections, at_once.connections);
      size.counters += at_once.counters;
    }
    size.connections += connections;
    size.crossings += connections * links_of_a_long_route;
    size.walkers += pattern.size();
  }
  return size;
}

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

double bytes_of(const Fabric& fabric, std::span<const Pattern> patterns, const Costs& costs) {
  double bytes = static_cast<double>(fabric.links().size()) * costs.link;
  for (const Pattern& pattern : patterns) bytes += costs.of(size_of(fabric, pattern));
  return bytes;
}

/// At most, as vectors grow: half as much again, and two and a half times the lists of links, which are doubled.
Bytes at_most(const Fabric& fabric, std::span<const Pattern> patterns) {
  Costs costs(false);
  costs.crossing *= 2.5 / 1.5;
  return whole(1.5 * bytes_of(fabric, patterns, costs));
}

/// Of the set's collectives, the one that takes most, by kind of group. One that no group of the kind runs has no
/// pattern of it.
double largest(const Fabric& fabric, const Programs& all, std::uint32_t set, std::size_t kind, const Costs& costs) {
  double most = 0;
  for (const Collective& collective : all.collectives)
    if (collective.set == set && kind < collective.patterns.size() && collective.patterns[kind] < all.patterns.size())
      most = std::max(most, costs.of(size_of(fabric, all.patterns[collective.patterns[kind]])));
  return most;
}

}  // namespace

Bytes footprint(const Fabric& fabric, std::span<const Pattern> patterns) {
  const Costs costs(patterns.size() == 1 && has_recurrence(fabric, patterns.front()));
  return whole(bytes_of(fabric, patterns, costs));
}

Bytes recurrence_footprint(const Fabric& fabric, const Pattern& pattern) {
  double most = 0;
  for (const Lane& lane : pattern.lanes)
    for (const Phase& phase : lane.phases) {
      double wires = 0, receives = 0;
      for (Position v = 0; v < pattern.size(); ++v) {
        wires += phase.ways(v);
        receives += phase.shape->receives(phase, v);
      }
      double bytes = wires * sizeof(Wire);
      if (phase.flow == Flow::circulating) bytes += wires * Circle::bytes_per_wire(pattern.chunks);
      if (phase.flow == Flow::forwarding)
        bytes += wires * Forwarding::bytes_per_wire + receives * Forwarding::bytes_per_receive +
                 pattern.size() * static_cast<double>(Forwarding::bytes_per_position);
      most = std::max(most, bytes);
    }
  const double entries = 2.0 * pattern.size() * sizeof(Ticks);
  return whole(static_cast<double>(fabric.links().size()) * sizeof(LinkUser) + entries + most);
}

Diagnostic lacks_memory(const std::string& what, Bytes needed, Bytes room) {
  return {{std::string(memory_place)},
          "to simulate " + what + " takes about " + format_bytes(needed) + " of memory, more than the " +
              format_bytes(room) + " that there is room for",
          "expected --method estimate, fewer ranks, or a larger --memory-limit"};
}

std::optional<Diagnostic> lacks_memory(const Fabric& fabric, std::span<const Pattern> patterns, Bytes room) {
  if (room == unlimited_memory) return std::nullopt;
  const Costs costs(false);
  double bound = static_cast<double>(fabric.links().size()) * costs.link;
  for (const Pattern& pattern : patterns)
    bound += costs.of(with_long_routes(pattern)) + static_cast<double>(recurrence_footprint(fabric, pattern).value());
  if (!std::holds_alternative<TorusNetwork>(fabric.spec().network) && whole(2.5 * bound) <= room) return std::nullopt;
  const bool by_recurrence = patterns.size() == 1 && has_recurrence(fabric, patterns.front());
  const Bytes needed = by_recurrence
                           ? whole(1.5 * static_cast<double>(recurrence_footprint(fabric, patterns.front()).value()))
                           : at_most(fabric, patterns);
  if (needed <= room) return std::nullopt;
  const std::string among = std::to_string(patterns.front().size()) + " ranks";
  return lacks_memory(patterns.front().algorithm + " among " + among +
                          (patterns.size() > 1 ? " beside " + std::to_string(patterns.size() - 1) + " others" : ""),
                      needed, room);
}

Bytes footprint(const Fabric& fabric, const Programs& all) {
  const Costs costs(false);
  const double ranks = all.ranks();
  double bytes = static_cast<double>(fabric.links().size()) * (costs.link + sizeof(std::uint32_t));  // with its owner
  bytes += ranks * (all.streams() + all.channels) * sizeof(std::uint32_t);
  if (all.slows()) bytes += ranks * static_cast<double>(RankKernels::bytes_per_rank().value());
  for (std::uint32_t set = 0; set < all.sets.size(); ++set) {
    std::vector<double> groups;  // by kind
    const std::uint32_t count = all.sets[set].groups(all.ranks());
    for (std::uint32_t g = 0; g < count; ++g) {
      const std::size_t kind = all.sets[set].kind_of.empty() ? 0 : all.sets[set].kind_of[g];
      groups.resize(std::max(groups.size(), kind + 1));
      ++groups[kind];
    }
    for (std::size_t kind = 0; kind < groups.size(); ++kind)
      bytes += groups[kind] * largest(fabric, all, set, kind, costs);
  }
  const auto sends = [](const Instruction& i) { return std::holds_alternative<instruction::Send>(i.what); };
  for (const Program& program : all.programs)
    for (const auto& stream : program.streams)
      if (std::any_of(stream.begin(), stream.end(), sends)) {
        const auto of = std::count(all.of_rank.begin(), all.of_rank.end(), &program - all.programs.data());
        bytes += static_cast<double>(of) * (costs.connection + 4 * costs.crossing);
      }
  return whole(bytes);
}

}  // namespace collcast
