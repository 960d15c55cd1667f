// The network between equal nodes: star, torus or leaf/spine. Regular, so its links are numbered by a
// formula and its routes are computed from the two ends, never stored.
//
// A *port* is a device that the network attaches to: NIC p of a node, or the node's endpoint itself. Each
// class answers, for its links numbered from 0 (cable c is links 2c and 2c+1, its two directions):
//   cables, link(cable), ends(cable)   for building and naming; the ends in the direction of link 2c
//   rails_apart                        port p of a node reaches only port p of other nodes
//   rails_meet                         other ports of these could be reached, by_receivers_rail or not
//   walk(from, to, lane, visit)        visit(link) along the route of two distinct ports, O(hops)
// Left out: load and hashing; failures are detours.hpp's. Equal ways are told apart by the lane
// (docs/decisions/0002-rails-and-lanes.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "node_plan.hpp"

namespace collcast::topology {

struct Port {
  int node = 0;
  int index = 0;  ///< within the attached group
};

/// Devices of a fabric are numbered node by node; the network's switches follow.
using DeviceId = std::int64_t;

/// How the nodes meet the network.
struct Attachment {
  int nodes = 1;
  int devices_per_node = 1;
  DeviceRange ports;

  std::int64_t port_count() const { return std::int64_t{nodes} * ports.count; }
  std::int64_t number(Port p) const { return std::int64_t{p.node} * ports.count + p.index; }
  Port port(std::int64_t number) const {
    return {static_cast<int>(number / ports.count), static_cast<int>(number % ports.count)};
  }
  template <class Visit>
  void each_port_of(const std::vector<int>& of_nodes, Visit&& visit) const {
    for (const int node : of_nodes)
      for (int p = 0; p < ports.count; ++p) visit(number({node, p}));
  }
  DeviceId device(Port p) const { return std::int64_t{p.node} * devices_per_node + ports.first + p.index; }
  DeviceId first_switch() const { return std::int64_t{nodes} * devices_per_node; }
};

using Ends = std::pair<DeviceId, DeviceId>;

class Star {
 public:
  Star(const StarNetwork& spec, Attachment attachment) : spec_(spec), attachment_(attachment) {}

  std::int64_t cables() const { return attachment_.port_count(); }
  Link link(std::int64_t) const { return {spec_.bandwidth, spec_.latency, LinkKind::network}; }
  Ends ends(std::int64_t cable) const {
    return {attachment_.device(attachment_.port(cable)), attachment_.first_switch()};
  }
  std::int64_t switches() const { return 1; }
  std::string switch_name(std::int64_t) const { return "switch"; }
  bool rails_apart() const { return spec_.by_receivers_rail; }
  bool rails_meet() const { return true; }

  /// Ascending, as the nodes: those that a way between two of them may take.
  template <class Visit>
  void each_cable_of(const std::vector<int>& nodes, Visit&& visit) const {
    attachment_.each_port_of(nodes, visit);
  }

  template <class Visit>
  void walk(Port from, Port to, int, Visit&& visit) const {
    visit(2 * attachment_.number(from));
    visit(2 * attachment_.number(to) + 1);
  }

 private:
  StarNetwork spec_;
  Attachment attachment_;
};

/// Nodes in row-major order: the last dimension varies fastest, and routes correct it first. With several
/// ports per node each port has a torus of its own.
class Torus {
 public:
  Torus(const TorusNetwork&, Attachment);

  std::int64_t cables() const { return cables_; }
  Link link(std::int64_t) const { return {spec_.bandwidth, spec_.latency, LinkKind::network}; }
  Ends ends(std::int64_t cable) const;
  std::int64_t switches() const { return 0; }
  std::string switch_name(std::int64_t) const;
  bool rails_apart() const { return true; }
  bool rails_meet() const { return false; }

  /// The way of fewest hops over cables that are `usable`, for where the regular one is not; nothing where there is
  /// none. Among equal ways the one that the dimensions of a regular way come first in.
  std::vector<std::int64_t> around(Port from, Port to, const std::function<bool(std::int64_t)>& usable) const;

  /// Dimension by dimension, the shorter way around; exactly half way around an even lane goes up.
  template <class Visit>
  void walk(Port from, Port to, int lane, Visit&& visit) const {
    int at = from.node;
    for (std::size_t d = dimensions_.size(); d-- > 0;) {
      const Dimension& dimension = dimensions_[d];
      const int size = dimension.size;
      const int now = coordinate(at, dimension), goal = coordinate(to.node, dimension);
      const int ahead = goal >= now ? goal - now : goal - now + size;
      const bool up = spec_.wrap ? ahead < size - ahead || (ahead == size - ahead && lane % 2 == 0) : goal > now;
      const int steps = up ? ahead : (size - ahead) % size;
      for (int s = 0; s < steps; ++s) {
        const int next = neighbour(at, dimension, up);
        visit(up ? 2 * cable_up_from(at, dimension, from.index) : 2 * cable_up_from(next, dimension, from.index) + 1);
        at = next;
      }
    }
  }

 private:
  struct Dimension {
    int size = 1;
    int stride = 1;                ///< distance of neighbours in node numbers
    std::int64_t first_cable = 0;  ///< per port
  };
  int coordinate(int node, const Dimension& d) const { return node / d.stride % d.size; }
  int neighbour(int node, const Dimension& d, bool up) const {
    const int at = coordinate(node, d);
    const int to = up ? (at + 1 == d.size ? 0 : at + 1) : (at == 0 ? d.size - 1 : at - 1);
    return node + (to - at) * d.stride;
  }
  /// The cable from `node` to the next one up. Without wrap the last node of a line has none.
  std::int64_t cable_up_from(int node, const Dimension& d, int port) const {
    const int block = node / (d.stride * d.size);
    const int index = spec_.wrap ? node : node - block * d.stride;
    return (d.first_cable + index) * attachment_.ports.count + port;
  }

  TorusNetwork spec_;
  Attachment attachment_;
  std::vector<Dimension> dimensions_;
  std::int64_t cables_ = 0;
};

/// Cables: every port to its leaf, then every leaf to every spine.
class LeafSpine {
 public:
  LeafSpine(const LeafSpineNetwork&, Attachment);

  std::int64_t cables() const { return attachment_.port_count() + leaves() * spec_.spines; }
  Link link(std::int64_t cable) const;
  Ends ends(std::int64_t cable) const;
  std::int64_t leaves() const { return std::int64_t{pods_} * leaves_per_pod_; }
  std::int64_t spines() const { return spec_.spines; }
  std::int64_t switches() const { return leaves() + spines(); }
  std::string switch_name(std::int64_t) const;
  bool is_uplink(std::int64_t cable) const { return cable >= attachment_.port_count(); }
  bool rails_apart() const { return spec_.by_receivers_rail || !rails_meet(); }
  bool rails_meet() const { return !spec_.rail_optimized || spec_.spines > 0; }

  template <class Visit>
  void each_cable_of(const std::vector<int>& nodes, Visit&& visit) const {
    attachment_.each_port_of(nodes, visit);
    std::int64_t last = -1;
    for (const int node : nodes) {
      const std::int64_t pod = node / spec_.nodes_per_leaf;
      if (pod == last) continue;
      last = pod;
      for (std::int64_t leaf = pod * leaves_per_pod_; leaf < (pod + 1) * leaves_per_pod_; ++leaf)
        for (std::int64_t spine = 0; spine < spec_.spines; ++spine) visit(uplink(leaf, spine));
    }
  }

  /// Between leaves: spine = (number of the destination's port on its leaf + lane) mod spines.
  template <class Visit>
  void walk(Port from, Port to, int lane, Visit&& visit) const {
    const std::int64_t leaf_from = leaf(from), leaf_to = leaf(to);
    visit(2 * attachment_.number(from));
    if (leaf_from != leaf_to) {
      const std::int64_t spine = (place_on_leaf(to) + lane) % spec_.spines;
      visit(2 * uplink(leaf_from, spine));
      visit(2 * uplink(leaf_to, spine) + 1);
    }
    visit(2 * attachment_.number(to) + 1);
  }

 private:
  std::int64_t leaf(Port p) const {
    const std::int64_t pod = p.node / spec_.nodes_per_leaf;
    return spec_.rail_optimized ? pod * leaves_per_pod_ + p.index : pod;
  }
  std::int64_t place_on_leaf(Port p) const {
    const std::int64_t node = p.node % spec_.nodes_per_leaf;
    return spec_.rail_optimized ? node : node * attachment_.ports.count + p.index;
  }
  std::int64_t uplink(std::int64_t leaf, std::int64_t spine) const {
    return attachment_.port_count() + leaf * spec_.spines + spine;
  }

  LeafSpineNetwork spec_;
  Attachment attachment_;
  int pods_ = 1, leaves_per_pod_ = 1;
  Bandwidth uplink_bandwidth_{};
};

/// A machine of one node.
class NoNetwork {
 public:
  std::int64_t cables() const { return 0; }
  Link link(std::int64_t) const { return {}; }
  Ends ends(std::int64_t) const { return {}; }
  std::int64_t switches() const { return 0; }
  std::string switch_name(std::int64_t) const { return {}; }
  bool rails_apart() const { return true; }
  bool rails_meet() const { return false; }
  template <class Visit>
  void walk(Port, Port, int, Visit&&) const {
    check(false, "a route leaves a node only where there is a network");
  }
};

using Network = std::variant<NoNetwork, Star, Torus, LeafSpine>;

Network make_network(const NetworkSpec&, Attachment);

}  // namespace collcast::topology
