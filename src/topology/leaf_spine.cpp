// Two switch levels: numbering and uplink rates; and the choice of network.
//
// A leaf is built for a whole pod, so its uplinks do not shrink when fewer nodes are populated:
//   uplink = ports * bandwidth / (oversubscription * spines),  ports = nodes_per_leaf * (ports of a node on
//   this leaf: 1 on rails, else all)
#include <fmt/format.h>

#include <algorithm>

#include "network.hpp"

namespace collcast {

double ports_of_leaf(const LeafSpineNetwork& network, int of_node) {
  return double(network.nodes_per_leaf) * (network.rail_optimized ? 1 : of_node);
}

double widest_oversubscription(const LeafSpineNetwork& network, int ports_of_node) {
  return std::min(1.0, ports_of_leaf(network, ports_of_node) / network.spines);
}

}  // namespace collcast

namespace collcast::topology {

LeafSpine::LeafSpine(const LeafSpineNetwork& spec, Attachment attachment) : spec_(spec), attachment_(attachment) {
  pods_ = static_cast<int>((std::int64_t{attachment_.nodes} + spec.nodes_per_leaf - 1) / spec.nodes_per_leaf);
  leaves_per_pod_ = spec.rail_optimized ? attachment_.ports.count : 1;
  if (spec.spines > 0)
    uplink_bandwidth_ =
        spec.bandwidth * ports_of_leaf(spec, attachment_.ports.count) / (spec.oversubscription * spec.spines);
}

Link LeafSpine::link(std::int64_t cable) const {
  if (cable < attachment_.port_count()) return {spec_.bandwidth, spec_.latency, LinkKind::network};
  return {uplink_bandwidth_, spec_.spine_latency, LinkKind::network};
}

Ends LeafSpine::ends(std::int64_t cable) const {
  if (cable < attachment_.port_count()) {
    const Port port = attachment_.port(cable);
    return {attachment_.device(port), attachment_.first_switch() + leaf(port)};
  }
  const std::int64_t up = cable - attachment_.port_count();
  return {attachment_.first_switch() + up / spec_.spines, attachment_.first_switch() + leaves() + up % spec_.spines};
}

std::string LeafSpine::switch_name(std::int64_t number) const {
  return number < leaves() ? fmt::format("leaf{}", number) : fmt::format("spine{}", number - leaves());
}

namespace {

struct MakeNetwork {
  Attachment attachment;
  Network operator()(std::monostate) const { return NoNetwork(); }
  Network operator()(const StarNetwork& spec) const { return Star(spec, attachment); }
  Network operator()(const TorusNetwork& spec) const { return Torus(spec, attachment); }
  Network operator()(const LeafSpineNetwork& spec) const { return LeafSpine(spec, attachment); }
};

}  // namespace

Network make_network(const NetworkSpec& spec, Attachment attachment) {
  return std::visit(MakeNetwork{attachment}, spec);
}

}  // namespace collcast::topology
