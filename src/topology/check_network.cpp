// The network's part of check_spec.hpp: where it attaches, and whether its shape fits the nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "check_spec.hpp"
#include "network.hpp"

namespace collcast::topology {

namespace {

/// The place of a key of the network; where it is left out, of the network itself.
const Location* key_place(const TopologySpec& spec, const std::string& key) {
  const Location* own = written(spec, "network." + key);
  const Location* whole = own == nullptr ? written(spec, "network") : own;
  return whole == nullptr ? &spec.where : whole;
}

std::string_view kind_of(const TorusNetwork& grid) {
  if (!grid.wrap) return "mesh";
  return grid.dims.empty() ? "ring" : "torus";
}

/// Says what is wrong with one kind of network.
struct CheckNetwork {
  const TopologySpec& spec;
  int nodes;
  const Location& nodes_asked_at;
  Diagnostics& out;

  void report(const std::vector<const Location*>& decided_by, std::string message, std::string hint) const {
    out.push_back({nearest_place(spec.files, decided_by), std::move(message), std::move(hint)});
  }
  void report(const char* key, std::string message, std::string hint) const {
    report({key_place(spec, key)}, std::move(message), std::move(hint));
  }
  void check_link(const std::string& what, Bandwidth bandwidth, Seconds latency) const {
    check_link_numbers(what, bandwidth, latency, *key_place(spec, "link"), out);
  }

  void operator()(std::monostate) const {}

  void operator()(const StarNetwork& star) const { check_link("the star network", star.bandwidth, star.latency); }

  void operator()(const TorusNetwork& grid) const {
    const std::string_view kind = kind_of(grid);
    check_link(fmt::format("the {} network", kind), grid.bandwidth, grid.latency);
    if (grid.dims.empty()) return;
    double product = 1;  // exact as far as it matters: nodes is below 2^53
    for (const int size : grid.dims) {
      if (size < 1) return report("dims", fmt::format("a {} dimension of {}", kind, size), "1 or more");
      product *= size;
    }
    if (product == nodes) return;
    const std::string asked = product <= most_nodes ? fmt::format(": {0} {1} or nodes.default {1}",
                                                                  spec.teaching ? "--ranks" : "--nodes", product)
                                                    : fmt::format(", at most {}", most_nodes);
    report({key_place(spec, "dims"), &nodes_asked_at},
           fmt::format("{} dimensions [{}] hold {} nodes, not {}", kind, fmt::join(grid.dims, ", "), product, nodes),
           fmt::format("the number of nodes is their product{}; or other dimensions", asked));
  }

  void operator()(const LeafSpineNetwork& net) const {
    check_link("the leaf/spine network", net.bandwidth, net.latency);
    if (!(net.spine_latency.count() >= 0) || !std::isfinite(net.spine_latency.count()))
      report("spine_latency", "the leaf/spine network has no valid spine latency",
             "a time of 0 or more, such as 500ns");
    if (!(net.oversubscription > 0) || !std::isfinite(net.oversubscription))
      report("oversubscription", fmt::format("an oversubscription of {}", net.oversubscription),
             "down over up bandwidth of a leaf: 1 for non-blocking, more for oversubscribed");
    if (net.spines < 0) report("spines", fmt::format("{} spines", net.spines), "0 (rails only) or more");
    if (net.nodes_per_leaf < 1)
      report("nodes_per_leaf", fmt::format("{} nodes per leaf", net.nodes_per_leaf), "1 or more");
    else if (net.spines == 0 && nodes > net.nodes_per_leaf)
      report({key_place(spec, "nodes_per_leaf"), key_place(spec, "spines"), &nodes_asked_at},
             fmt::format("{} nodes with {} per leaf and no spines: nothing joins node0 and node{}", nodes,
                         net.nodes_per_leaf, net.nodes_per_leaf),
             fmt::format("spines, or at most {} nodes", net.nodes_per_leaf));
  }
};

}  // namespace

void check_attachment(const TopologySpec& spec, Diagnostics& out) {
  if (spec.devices.empty()) return;  // which is the error
  const DeviceGroup* group = network_group(spec);
  const Location* attach = key_place(spec, "attach");
  if (group == nullptr)
    out.push_back({*attach,
                   spec.network_devices.empty()
                       ? std::string("the network attaches to no devices")
                       : fmt::format("the network attaches to no devices '{}'", spec.network_devices),
                   expected_one_of(spec.network_devices, group_names(spec))});
  else if (is_transit(group->kind))
    out.push_back({nearest_place(spec.files, {attach, written(spec, fmt::format("node.devices.{}.kind", group->name))}),
                   fmt::format("the network attaches to '{}' of kind {}", group->name, to_string(group->kind)),
                   "a device group of kind nic, or the endpoints themselves"});
}

void check_network(const TopologySpec& spec, int nodes, const Location& nodes_asked_at, Diagnostics& out) {
  if (std::holds_alternative<std::monostate>(spec.network)) {
    if (nodes > 1)
      out.push_back({nodes_asked_at, fmt::format("{} nodes of '{}', which has no network", nodes, spec.name),
                     "a network (star, ring, mesh, torus or leaf_spine) that joins the nodes, or 1 node"});
    return;
  }
  check_attachment(spec, out);
  // A wrong number of nodes has been reported; one node fits every shape that is right in itself.
  std::visit(CheckNetwork{spec, nodes < 1 ? 1 : nodes, nodes_asked_at, out}, spec.network);
}

}  // namespace collcast::topology
