// The network's part of check_spec.hpp: where it attaches, and whether its shape fits the nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "check_spec.hpp"
#include "network.hpp"

namespace collcast::topology {

namespace {

/// Says what is wrong with one kind of network; `where` is the network's place.
struct CheckNetwork {
  int nodes;
  const Location& where;
  Diagnostics& out;

  void report(std::string message, std::string hint) const {
    out.push_back({where, std::move(message), std::move(hint)});
  }

  void operator()(std::monostate) const {}

  void operator()(const StarNetwork& star) const {
    check_link_numbers("the star network", star.bandwidth, star.latency, where, out);
  }

  void operator()(const TorusNetwork& torus) const {
    check_link_numbers("the torus network", torus.bandwidth, torus.latency, where, out);
    if (torus.dims.empty()) return;
    double product = 1;  // exact as far as it matters: nodes is below 2^53
    for (const int size : torus.dims) {
      if (size < 1) return report(fmt::format("a torus dimension of {}", size), "1 or more");
      product *= size;
    }
    if (product != nodes)
      report(fmt::format("torus dimensions [{}] hold {} nodes, not {}", fmt::join(torus.dims, ", "), product, nodes),
             "their product is the number of nodes");
  }

  void operator()(const LeafSpineNetwork& net) const {
    check_link_numbers("the leaf/spine network", net.bandwidth, net.latency, where, out);
    if (!(net.spine_latency.count() >= 0) || !std::isfinite(net.spine_latency.count()))
      report("the leaf/spine network has no valid spine latency", "a time of 0 or more, such as 500ns");
    if (!(net.oversubscription > 0) || !std::isfinite(net.oversubscription))
      report(fmt::format("an oversubscription of {}", net.oversubscription),
             "down over up bandwidth of a leaf: 1 for non-blocking, more for oversubscribed");
    if (net.spines < 0) report(fmt::format("{} spines", net.spines), "0 (rails only) or more");
    if (net.nodes_per_leaf < 1)
      report(fmt::format("{} nodes per leaf", net.nodes_per_leaf), "1 or more");
    else if (net.spines == 0 && nodes > net.nodes_per_leaf)
      report(fmt::format("{} nodes with {} per leaf and no spines: nothing joins node0 and node{}", nodes,
                         net.nodes_per_leaf, net.nodes_per_leaf),
             fmt::format("spines, or at most {} nodes", net.nodes_per_leaf));
  }
};

}  // namespace

void check_attachment(const TopologySpec& spec, Diagnostics& out) {
  if (spec.devices.empty()) return;  // which is the error
  const DeviceGroup* group = find_group(spec, spec.network_devices);
  if (group == nullptr)
    out.push_back({spec.network_where,
                   spec.network_devices.empty()
                       ? std::string("the network attaches to no devices")
                       : fmt::format("the network attaches to no devices '{}'", spec.network_devices),
                   expected_one_of(spec.network_devices, group_names(spec))});
  else if (is_transit(group->kind))
    out.push_back({spec.network_where,
                   fmt::format("the network attaches to '{}' of kind {}", group->name, to_string(group->kind)),
                   "a device group of kind nic, or the endpoints themselves"});
}

void check_network(const TopologySpec& spec, int nodes, const Location& nodes_asked_at, Diagnostics& out) {
  if (std::holds_alternative<std::monostate>(spec.network)) {
    if (nodes > 1)
      out.push_back({nodes_asked_at, fmt::format("{} nodes of '{}', which has no network", nodes, spec.name),
                     "a network (star, torus or leaf_spine) that joins the nodes, or 1 node"});
    return;
  }
  check_attachment(spec, out);
  // A wrong number of nodes has been reported; one node fits every shape that is right in itself.
  std::visit(CheckNetwork{nodes < 1 ? 1 : nodes, spec.network_where, out}, spec.network);
}

}  // namespace collcast::topology
