// Builds a Fabric in three steps, each of which may end in diagnostics: the form of the spec, its size, the reach
// of its ranks. What is left then is numbering.
#include "collcast/topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "collcast/topology/footprint.hpp"
#include "layout.hpp"

namespace collcast {

namespace {

using topology::Attachment;
using topology::Cable;
using topology::Network;
using topology::NodePlan;

/// No machine comes near: 2^26 cables are 3 GiB of links.
constexpr std::int64_t most_parts = std::int64_t{1} << 26;

Diagnostics check_total(const TopologySpec& spec, const NodePlan& node, const Network& network, int nodes,
                        const Location& nodes_at) {
  const std::int64_t in_nodes = nodes * static_cast<std::int64_t>(node.devices.size() + node.cables.size());
  const std::int64_t between = std::visit([](const auto& n) { return n.cables() + n.switches(); }, network);
  if (in_nodes + between <= most_parts) return {};
  return {{nodes_at,
           fmt::format("{} nodes of '{}' come to {} devices and cables", nodes, spec.name, in_nodes + between),
           fmt::format("at most {}", most_parts)}};
}

/// Of the number of nodes that counts where none is asked for.
const Location& default_place(const TopologySpec& spec) {
  for (const char* path : {"nodes.default", "nodes"})
    if (const Location* place = topology::written(spec, path)) return *place;
  return spec.where;
}

std::vector<Link> list_links(const NodePlan& node, const Network& network, int nodes) {
  const auto between = std::visit([](const auto& n) { return n.cables(); }, network);
  std::vector<Link> links;
  links.reserve(2 * (static_cast<std::size_t>(nodes) * node.cables.size() + static_cast<std::size_t>(between)));
  for (int n = 0; n < nodes; ++n)
    for (const Cable& cable : node.cables) links.insert(links.end(), 2, cable.link);
  std::visit(
      [&](const auto& net) {
        for (std::int64_t c = 0; c < between; ++c) links.insert(links.end(), 2, net.link(c));
      },
      network);
  return links;
}

}  // namespace

std::optional<Bytes> footprint(const TopologySpec& spec, int nodes) {
  if (nodes == 0) nodes = spec.default_nodes;
  if (!topology::check_form(spec, nodes, {}).empty()) return std::nullopt;
  const NodePlan node = topology::plan_node(spec);
  const Network network =
      topology::make_network(spec.network, Attachment{nodes, static_cast<int>(node.devices.size()), node.ports});
  if (!check_total(spec, node, network, nodes, {}).empty()) return std::nullopt;
  const std::int64_t between = std::visit([](const auto& n) { return n.cables(); }, network);
  const std::int64_t cables = nodes * static_cast<std::int64_t>(node.cables.size()) + between;
  return Bytes(2 * cables * static_cast<std::int64_t>(sizeof(Link)));
}

Fabric::Fabric(std::shared_ptr<const Layout> layout) : layout_(std::move(layout)) {}

Result<Fabric> Fabric::build(const TopologySpec& spec, int nodes, const Location& asked_at) {
  if (nodes == 0) nodes = spec.default_nodes;
  const Location& nodes_at = asked_at.file.empty() ? default_place(spec) : asked_at;
  if (Diagnostics wrong = topology::check_form(spec, nodes, nodes_at); !wrong.empty()) return wrong;

  NodePlan node = topology::plan_node(spec);
  const Network network =
      topology::make_network(spec.network, Attachment{nodes, static_cast<int>(node.devices.size()), node.ports});
  if (Diagnostics wrong = check_total(spec, node, network, nodes, nodes_at); !wrong.empty()) return wrong;

  // Routes are final from here on.
  topology::NodeRoutes routes = topology::route_node(node);
  if (Diagnostics wrong = topology::check_reachable(spec, node, routes, network, nodes); !wrong.empty())
    return with_extending_files(std::move(wrong), spec.files);

  std::vector<Link> links = list_links(node, network, nodes);
  return Fabric(std::make_shared<const Layout>(
      Layout{spec, nodes, std::move(node), std::move(routes), network, std::move(links)}));
}

int Fabric::nodes() const { return layout_->nodes; }
int Fabric::ranks_per_node() const { return layout_->node.endpoints.count; }
int Fabric::rank_count() const { return nodes() * ranks_per_node(); }
int Fabric::nics_per_node() const { return layout_->routes.ports_are_endpoints ? 0 : layout_->node.ports.count; }
int Fabric::nic_of(Rank rank, int lane) const {
  check(nics_per_node() > 0 && lane >= 0, "the rank is reached by NICs");
  const int node = static_cast<int>(on_machine(rank).value()) / ranks_per_node();
  if (const int said = layout_->said_ports(node, lane).nics.in; said >= 0) return said;
  if (layout_->drives > 0) lane = layout_->ways[static_cast<std::size_t>(lane) % layout_->ways.size()];
  return layout_->nearest_port(on_machine(rank), lane);
}
std::span<const Link> Fabric::links() const { return layout_->links; }

Fabric Fabric::with_links(std::vector<Link> links) const {
  check(links.size() == layout_->links.size(), "as many links as before");
  check(layout_->part == nullptr && !is_placed(), "links are changed before a part is taken, or nodes are placed");
  bool fails = false;
  for (const Link& link : links) fails = fails || !(link.bandwidth.value() > 0);
  Layout other = *layout_;
  other.links = std::move(links);
  other.detours = nullptr;
  other.as_built = false;
  if (fails) other.detours = std::make_shared<topology::Detours>(other.node, other.network, other.nodes, other.links);
  return Fabric(std::make_shared<const Layout>(std::move(other)));
}
Fabric Fabric::with_drives(int lanes, Bandwidth rate, std::vector<int> ways,
                           std::optional<DrivesBetweenNodes> between_nodes) const {
  check(layout_->drives == 0, "a fabric has drives once");
  check(lanes > 0 && !ways.empty() && rate.value() > 0, "drives have a number, ways and a rate");
  Layout other = *layout_;
  check(!between_nodes || (between_nodes->ways > 0 && between_nodes->rate.value() > 0),
        "drives between nodes have a number and a rate");
  other.drives_of_lane = between_nodes ? 1 + between_nodes->ways : 1;
  other.drives = lanes * other.drives_of_lane;
  other.as_built = false;
  other.ways = std::move(ways);
  const auto count = static_cast<std::size_t>(lanes) * static_cast<std::size_t>(rank_count());
  other.links.reserve(other.links.size() + count * static_cast<std::size_t>(other.drives_of_lane));
  for (std::size_t i = 0; i < count; ++i) {
    other.links.push_back({rate, Seconds(0), LinkKind::direct});
    if (between_nodes)
      other.links.insert(other.links.end(), static_cast<std::size_t>(between_nodes->ways),
                         Link{between_nodes->rate, Seconds(0), LinkKind::direct});
  }
  return Fabric(std::make_shared<const Layout>(std::move(other)));
}

Fabric Fabric::with_relays(std::vector<bool> nics) const {
  check(layout_->part == nullptr && !is_placed(), "relays are said before a part is taken, or nodes are placed");
  check(nics.size() == static_cast<std::size_t>(nodes()) * static_cast<std::size_t>(nics_per_node()), "of each NIC");
  Layout other = *layout_;
  other.relays = std::make_shared<const std::vector<bool>>(std::move(nics));
  other.as_built = false;
  return Fabric(std::make_shared<const Layout>(std::move(other)));
}

Fabric Fabric::with_ports(std::vector<std::vector<PortsOfLane>> of_lanes) const {
  check(layout_->part == nullptr && !is_placed(), "ports are said before a part is taken, or nodes are placed");
  check(!of_lanes.empty() && nics_per_node() > 0, "ports are NICs of lanes");
  for (const std::vector<PortsOfLane>& of_nodes : of_lanes)
    check(of_nodes.size() == static_cast<std::size_t>(nodes()), "of each node");
  std::vector<std::vector<Layout::SaidPorts>> said(of_lanes.size());
  std::map<std::pair<std::size_t, int>, int> turns;  // by node and NIC
  for (std::size_t lane = 0; lane < of_lanes.size(); ++lane)
    for (std::size_t node = 0; node < of_lanes[lane].size(); ++node) {
      const PortsOfLane& nics = of_lanes[lane][node];
      said[lane].push_back({nics, turns[{node, nics.in}]++});
    }
  Layout other = *layout_;
  other.ports = std::make_shared<const std::vector<std::vector<Layout::SaidPorts>>>(std::move(said));
  other.as_built = false;
  return Fabric(std::make_shared<const Layout>(std::move(other)));
}

Fabric Fabric::with_ways(std::span<const WayInNode> ways) const {
  for (const WayInNode& way : ways)
    check(std::min(way.from, way.to) >= 0 && std::max({way.from, way.to, way.through}) < ranks_per_node(),
          "ways join endpoints of a node");
  Layout other = *layout_;
  topology::take_ways(other.node, ways, other.routes);
  return Fabric(std::make_shared<const Layout>(std::move(other)));
}

Fabric Fabric::with_nearest(std::vector<std::vector<int>> of_ranks) const {
  check(layout_->part == nullptr && !is_placed() && layout_->detours == nullptr, "NICs are said of a whole machine");
  check(of_ranks.size() == static_cast<std::size_t>(rank_count()), "of each rank");
  for (const std::vector<int>& nics : of_ranks)
    for (const int nic : nics) check(nic >= 0 && nic < nics_per_node(), "nearest are NICs of a node");
  Layout other = *layout_;
  other.nearest = std::make_shared<const std::vector<std::vector<int>>>(std::move(of_ranks));
  other.as_built = false;
  return Fabric(std::make_shared<const Layout>(std::move(other)));
}

Fabric Fabric::placed(const std::vector<int>& nodes) const {
  check(layout_->part == nullptr, "a machine is placed before a part is taken");
  check(layout_->placement == nullptr, "a machine is placed once");
  const auto count = static_cast<std::size_t>(layout_->nodes);
  std::vector<bool> taken(count);
  for (const int node : nodes) {
    check(node >= 0 && node < layout_->nodes && !taken[static_cast<std::size_t>(node)], "nodes of it, each once");
    taken[static_cast<std::size_t>(node)] = true;
  }
  std::vector<int> all = nodes;
  all.reserve(count);
  for (std::size_t node = 0; node < count; ++node)
    if (!taken[node]) all.push_back(static_cast<int>(node));
  Layout other = *layout_;
  other.placement = std::make_shared<const std::vector<int>>(std::move(all));
  return Fabric(std::make_shared<const Layout>(std::move(other)));
}

bool Fabric::is_placed() const { return layout_->placement != nullptr; }

Rank Fabric::on_machine(Rank rank) const {
  check(rank.value() < static_cast<std::uint32_t>(rank_count()), "a rank of this fabric");
  return layout_->on_machine(rank);
}

bool Fabric::is_as_built() const { return layout_->as_built; }

std::optional<Fabric> Fabric::part(std::vector<int> nodes) const {
  check(layout_->part == nullptr, "a part is taken of a whole machine");
  check(!nodes.empty() && nodes.front() >= 0 && nodes.back() < layout_->nodes, "a part has nodes of the machine");
  if (!layout_->as_built) return std::nullopt;
  const auto per_node = static_cast<std::ptrdiff_t>(layout_->links_per_node());
  const auto first_of_network = static_cast<std::size_t>(layout_->first_network_link());
  auto part = topology::part_of(layout_->network, std::move(nodes), layout_->nodes);
  if (part == nullptr) return std::nullopt;
  std::vector<Link> links;
  links.reserve(part->nodes.size() * static_cast<std::size_t>(per_node) + 2 * part->cables.size());
  for (std::size_t n = 0; n < part->nodes.size(); ++n)
    links.insert(links.end(), layout_->links.begin(), layout_->links.begin() + per_node);
  for (const std::uint32_t cable : part->cables)
    links.insert(links.end(), 2, layout_->links[first_of_network + 2 * std::size_t{cable}]);
  Layout layout{layout_->spec,   static_cast<int>(part->nodes.size()), layout_->node, layout_->routes, layout_->network,
                std::move(links)};
  layout.part = std::move(part);
  return Fabric(std::make_shared<const Layout>(std::move(layout)));
}

const TopologySpec& Fabric::spec() const { return layout_->spec; }

NodeId Fabric::node_of(Rank rank) const {
  check(rank.value() < static_cast<std::uint32_t>(rank_count()), "a rank of this fabric");
  return NodeId(rank.value() / static_cast<std::uint32_t>(ranks_per_node()));
}

void Fabric::route(Rank from, Rank to, int lane, std::vector<LinkId>& out) const {
  layout_->walk(from, to, lane, [&out](LinkId link) { out.push_back(link); });
}

Path Fabric::path(Rank from, Rank to, int lane) const {
  Path path{Seconds(0), Bandwidth(std::numeric_limits<double>::infinity())};
  layout_->walk(from, to, lane, [&](LinkId id) {
    const Link& link = layout_->links[id.value()];
    path.latency += link.latency;
    path.bandwidth = std::min(path.bandwidth, link.bandwidth);
  });
  return path;
}

topology::Ends Fabric::Layout::ends(LinkId link) const {
  const std::int64_t number = link.value();
  topology::Ends ends;
  if (number < first_network_link()) {
    const std::int64_t in_node = in_whole(static_cast<int>(number / links_per_node()));
    const std::int64_t first = in_node * static_cast<std::int64_t>(node.devices.size());
    const Cable& cable = node.cables[static_cast<std::size_t>(number % links_per_node() / 2)];
    ends = {first + cable.from, first + cable.to};
  } else {
    std::int64_t cable = (number - first_network_link()) / 2;
    if (part) cable = part->cables[static_cast<std::size_t>(cable)];
    ends = std::visit([&](const auto& net) { return net.ends(cable); }, network);
  }
  if (number % 2 == 1) std::swap(ends.first, ends.second);
  return ends;
}

std::string Fabric::Layout::name(topology::DeviceId device) const {
  const auto per_node = static_cast<std::int64_t>(node.devices.size());
  if (device < whole_nodes() * per_node)
    return topology::device_name(spec, node, static_cast<int>(device / per_node), static_cast<int>(device % per_node));
  return std::visit([&](const auto& net) { return net.switch_name(device - whole_nodes() * per_node); }, network);
}

bool Fabric::joins_leaf_to_spine(LinkId link) const {
  check(link.value() < layout_->links.size(), "a link of this fabric");
  const auto* tree = std::get_if<topology::LeafSpine>(&layout_->network);
  const std::int64_t number = link.value();
  if (tree == nullptr || number < layout_->first_network_link() || number >= layout_->first_drive()) return false;
  const std::int64_t cable = (number - layout_->first_network_link()) / 2;
  return tree->is_uplink(layout_->part ? layout_->part->cables[static_cast<std::size_t>(cable)] : cable);
}

Fabric::NodesOfLink Fabric::nodes_of(LinkId link) const {
  check(link.value() < layout_->first_drive(), "a link of the machine");
  const auto node = [&](topology::DeviceId device) -> std::optional<int> {
    const auto number = device / static_cast<std::int64_t>(layout_->node.devices.size());
    return number < layout_->whole_nodes() ? std::optional(static_cast<int>(number)) : std::nullopt;
  };
  const auto [from, to] = layout_->ends(link);
  return {node(from), node(to)};
}

std::string Fabric::link_name(LinkId link) const {
  check(link.value() < layout_->links.size(), "a link of this fabric");
  if (const std::int64_t drive = link.value() - layout_->first_drive(); drive >= 0) {
    const Rank rank(static_cast<std::uint32_t>(drive / layout_->drives));
    const auto local = rank.value() % static_cast<std::uint32_t>(ranks_per_node());
    const std::int64_t of_lane = drive % layout_->drives_of_lane;
    return fmt::format("{}, lane {}{}",
                       topology::device_name(layout_->spec, layout_->node, static_cast<int>(node_of(rank).value()),
                                             layout_->node.endpoints.first + static_cast<int>(local)),
                       drive % layout_->drives / layout_->drives_of_lane,
                       of_lane == 0 ? std::string() : fmt::format(" to other nodes, way {}", of_lane - 1));
  }
  const auto [from, to] = layout_->ends(link);
  return layout_->name(from) + " -> " + layout_->name(to);
}

}  // namespace collcast
