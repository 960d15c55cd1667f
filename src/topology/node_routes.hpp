// The ways inside one node: endpoint to endpoint, endpoint to port and port to endpoint, found once.
//
// A way costs, per hop, latency + 1 MiB / bandwidth in whole picoseconds (Dijkstra, Boost.Graph): a size at
// which both terms of today's links weigh something, between the latency-bound and the bandwidth-bound
// ends. Whole picoseconds make equal ways exactly equal. Among ways of equal cost the one with
// fewest hops wins, then, from its end backwards, the one through the device with the lowest number; the
// order in which links stand in a file decides nothing.
// Left out: ways do not see load, and equal ways through two switches are not used side by side (a file
// describes switch planes that are striped over as one device).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "node_plan.hpp"

namespace collcast::topology {

/// Links of a node, as 2 * cable + direction.
using NodeLink = std::uint32_t;
using Way = std::span<const NodeLink>;

/// rows x columns ways in one array. An empty way means there is none (or from a device to itself).
class WayTable {
 public:
  explicit WayTable(int columns) : columns_(columns) {}
  /// Ways are added row by row.
  void add(Way way);
  Way at(int row, int column) const {
    const std::size_t cell =
        static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column);
    return Way(links_).subspan(ends_[cell], ends_[cell + 1] - ends_[cell]);
  }

 private:
  int columns_;
  std::vector<std::uint32_t> ends_{0};
  std::vector<NodeLink> links_;
};

/// The ports an endpoint may leave and enter its node by: the nearest ones. Endpoints that share a set are
/// spread over it evenly. As many lanes as there are endpoints keep to that spread, since a collective sends the
/// traffic of each of them through another endpoint; the next as many are moved on by one port.
struct NearestPorts {
  std::vector<std::vector<int>> sets;  ///< each ascending
  struct Place {
    int set = 0;
    int entry = 0;  ///< of the set: turn t of n sharers begins at floor(t * size / n)
  };
  std::vector<Place> of_endpoint;

  std::span<const int> of(int endpoint) const { return sets[set_index(endpoint)]; }
  int pick(int endpoint, int lane) const {
    const std::vector<int>& set = sets[set_index(endpoint)];
    const auto entry = static_cast<std::size_t>(of_endpoint[static_cast<std::size_t>(endpoint)].entry);
    return set[(entry + static_cast<std::size_t>(lane) / of_endpoint.size()) % set.size()];
  }

 private:
  std::size_t set_index(int endpoint) const {
    return static_cast<std::size_t>(of_endpoint[static_cast<std::size_t>(endpoint)].set);
  }
};

struct NodeRoutes {
  WayTable between;  ///< endpoint x endpoint
  WayTable out;      ///< endpoint x port
  WayTable in;       ///< port x endpoint
  NearestPorts nearest;
  bool ports_are_endpoints = false;  ///< the network attaches to the endpoints themselves

  bool joined(int from, int to) const { return from == to || !between.at(from, to).empty(); }
  bool reaches(int endpoint, int port) const {
    return ports_are_endpoints ? endpoint == port : !out.at(endpoint, port).empty();
  }
};

/// What of one node has failed.
struct Failures {
  std::vector<bool> cables;  ///< by cable of the node; empty: none
  std::vector<bool> ports;   ///< by port, whose cable to the network has; empty: none

  bool cable(std::size_t number) const { return number < cables.size() && cables[number]; }
  bool port(int number) const {
    return static_cast<std::size_t>(number) < ports.size() && ports[static_cast<std::size_t>(number)];
  }
};

/// Ways that avoid what has failed; a port that has is nobody's nearest.
NodeRoutes route_node(const NodePlan&, const Failures& = {});

/// Fabric::with_ways: puts these ways between endpoints in the place of the cheapest.
void take_ways(const NodePlan&, std::span<const Fabric::WayInNode>, NodeRoutes&);

}  // namespace collcast::topology
