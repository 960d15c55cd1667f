// What a Fabric holds: one node, routed; the network's numbering; and the list of links.
//
// Links are numbered node by node, then the network's; 2c and 2c+1 are the two directions of cable c.
#pragma once

#include <type_traits>

#include "detours.hpp"
#include "network.hpp"
#include "node_routes.hpp"
#include "part.hpp"
#include "reachability.hpp"

namespace collcast {

struct Fabric::Layout {
  TopologySpec spec;
  int nodes = 1;
  topology::NodePlan node;
  topology::NodeRoutes routes;
  topology::Network network;
  std::vector<Link> links;     ///< of the nodes, of the network, then the drives
  int drives = 0;              ///< of a rank: links that only its own lanes use, one after the other
  int drives_of_lane = 1;      ///< of those: one, or one inside the node and others for other nodes
  std::vector<int> ways = {};  ///< with drives: lanes whose ways theirs have, in turn
  std::shared_ptr<const topology::Detours> detours = nullptr;  ///< where cables have failed
  std::shared_ptr<const topology::Part> part = nullptr;        ///< of which machine these are some nodes
  std::shared_ptr<const std::vector<bool>> relays =
      nullptr;  ///< NICs by which a node is left for the receiver's rail, by node; null: all
  struct SaidPorts {
    PortsOfLane nics;
    int turn = 0;  ///< of the lanes that enter by that NIC, which
  };
  std::shared_ptr<const std::vector<std::vector<SaidPorts>>> ports =
      nullptr;  ///< of lanes, in turn, by node; null: as the rule says
  std::shared_ptr<const std::vector<std::vector<int>>> nearest =
      nullptr;  ///< ports by rank, in the order of its lanes; null, and empty ones: as the rule says
  std::shared_ptr<const std::vector<int>> placement =
      nullptr;           ///< nodes of the machine, by the job's; null: as they are
  bool as_built = true;  ///< no link differs from those of other nodes

  std::int64_t first_drive() const {
    return static_cast<std::int64_t>(links.size()) - static_cast<std::int64_t>(drives) * nodes * node.endpoints.count;
  }
  std::int64_t links_per_node() const { return 2 * static_cast<std::int64_t>(node.cables.size()); }
  std::int64_t first_network_link() const { return nodes * links_per_node(); }
  Rank on_machine(Rank rank) const {
    if (placement == nullptr) return rank;
    const auto per_node = static_cast<std::uint32_t>(node.endpoints.count);
    const int there = (*placement)[rank.value() / per_node];
    return Rank(static_cast<std::uint32_t>(there) * per_node + rank.value() % per_node);
  }
  LinkId drive(Rank from, Rank to, int lane) const {
    const auto per_node = static_cast<std::uint32_t>(node.endpoints.count);
    const std::uint32_t other = to.value() / per_node;
    const auto away = static_cast<std::uint32_t>(drives_of_lane - 1);
    const int of_lane = away == 0 || from.value() / per_node == other ? 0 : 1 + static_cast<int>(other % away);
    const std::int64_t number = lane % (drives / drives_of_lane) * drives_of_lane + of_lane;
    return LinkId(static_cast<std::uint32_t>(first_drive() + std::int64_t{from.value()} * drives + number));
  }
  bool leaves_by(int which, int port) const {
    return relays == nullptr || (*relays)[static_cast<std::size_t>(which) * static_cast<std::size_t>(node.ports.count) +
                                          static_cast<std::size_t>(port)];
  }
  int nearest_port(Rank rank, int lane) const {
    const auto per_node = static_cast<std::uint32_t>(node.endpoints.count);
    if (nearest == nullptr || (*nearest)[rank.value()].empty())
      return routes.nearest.pick(static_cast<int>(rank.value() % per_node), lane);
    const std::vector<int>& own = (*nearest)[rank.value()];
    return own[static_cast<std::size_t>(lane) / per_node % own.size()];
  }
  /// Of a node for a lane; -1: those of the rule.
  SaidPorts said_ports(int which, int lane) const {
    if (ports == nullptr) return {};
    return (*ports)[static_cast<std::size_t>(lane) % ports->size()][static_cast<std::size_t>(which)];
  }
  int whole_nodes() const { return part ? part->of_nodes : nodes; }
  int in_whole(int in_part) const { return part ? part->nodes[static_cast<std::size_t>(in_part)] : in_part; }
  /// Where a link starts and where it ends, in the whole machine.
  topology::Ends ends(LinkId) const;
  std::string name(topology::DeviceId) const;

  /// visit(LinkId) for each link of the route, in order. The rules are in docs/decisions/0002-rails-and-lanes.md.
  template <class Visit>
  void walk(Rank from, Rank to, int lane, Visit&& visit) const;

 private:
  template <class Visit>
  void walk_node(int in_node, topology::Way way, Visit&& visit) const {
    const std::int64_t first = in_node * links_per_node();
    for (const topology::NodeLink link : way) visit(LinkId(static_cast<std::uint32_t>(first + link)));
  }
};

template <class Visit>
void Fabric::Layout::walk(Rank from, Rank to, int lane, Visit&& visit) const {
  const auto per_node = static_cast<std::uint32_t>(node.endpoints.count);
  const std::uint32_t ranks = per_node * static_cast<std::uint32_t>(nodes);
  check(from.value() < ranks && to.value() < ranks, "a route joins ranks of its fabric");
  check(lane >= 0, "a lane is 0 or more");
  if (from == to) return;
  from = on_machine(from);
  to = on_machine(to);
  const int said_lane = lane;
  if (drives > 0) {
    visit(drive(from, to, lane));
    lane = ways[static_cast<std::size_t>(lane) % ways.size()];
  }
  if (detours != nullptr) {
    std::vector<LinkId> way;
    detours->way(routes, from, to, lane, way);
    for (const LinkId link : way) visit(link);
    return;
  }
  const int node_from = static_cast<int>(from.value() / per_node), node_to = static_cast<int>(to.value() / per_node);
  const int sender = static_cast<int>(from.value() % per_node), receiver = static_cast<int>(to.value() % per_node);
  if (node_from == node_to && routes.joined(sender, receiver))
    return walk_node(node_from, routes.between.at(sender, receiver), visit);

  std::visit(
      [&](const auto& net) {
        const SaidPorts entered = said_ports(node_to, said_lane);
        const int said_in = entered.nics.in, said_out = said_ports(node_from, said_lane).nics.out;
        const int port_in = said_in >= 0 ? said_in : nearest_port(to, lane);
        const bool by_rule = said_out < 0 || !net.rails_meet();
        const bool same_rail = by_rule && net.rails_apart() && (!net.rails_meet() || leaves_by(node_from, port_in));
        const int port_out = same_rail ? port_in : by_rule ? nearest_port(from, lane) : said_out;
        if (!routes.ports_are_endpoints) walk_node(node_from, routes.out.at(sender, port_out), visit);
        const std::int64_t first = first_network_link();
        // Lanes that enter by NICs of their own have ways of their own: only those of one NIC take turns.
        constexpr bool has_spines = std::is_same_v<std::decay_t<decltype(net)>, topology::LeafSpine>;
        const int way = has_spines && said_in >= 0 ? entered.turn : lane;
        net.walk({in_whole(node_from), port_out}, {in_whole(node_to), port_in}, way, [&](std::int64_t link) {
          visit(LinkId(static_cast<std::uint32_t>(first + (part ? part->link(link) : link))));
        });
        if (!routes.ports_are_endpoints) walk_node(node_to, routes.in.at(port_in, receiver), visit);
      },
      network);
}

}  // namespace collcast
