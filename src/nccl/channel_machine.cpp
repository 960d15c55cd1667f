#include "nccl/channel_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <type_traits>
#include <variant>

#include "collcast/topology/wiring.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/collnet_machine.hpp"
#include "nccl/groups_nodes.hpp"
#include "nccl/nearest_nics.hpp"
#include "nccl/nvlink_ways.hpp"
#include "nccl/pair_loads.hpp"
#include "nccl/pair_rates.hpp"
#include "nccl/spine_loads.hpp"

namespace collcast::nccl {

namespace {

/// Of one simulation: twenty seconds, by half a second for 500,000 (most_messages_of_trees).
constexpr std::int64_t most_messages = 20'000'000;

/// Endpoints beside the GPUs, on every NVSwitch, that are never what a run waits for.
void add_switch_members(TopologySpec& spec, DeviceGroup& gpus, int members, Seconds latency) {
  for (const DeviceGroup& group : spec.devices) {
    if (group.kind != DeviceKind::nvswitch) continue;
    LinkGroup own{gpus.name, group.name,          Wiring::pairs, {}, LinkKind::direct, Bandwidth(unlimited),
                  latency,   "the switch itself", spec.where};
    for (int member = 0; member < members; ++member)
      for (int at = 0; at < group.count; ++at) own.pairs.emplace_back(gpus.count + member, at);
    spec.links.push_back(std::move(own));
  }
  gpus.count += members;
}

/// Without peer access, whatever joins the GPUs beside PCIe.
void drop_nvlinks(TopologySpec& spec) {
  std::erase_if(spec.links, [](const LinkGroup& link) { return link.kind == LinkKind::nvlink; });
  std::erase_if(spec.devices, [](const DeviceGroup& group) { return group.kind == DeviceKind::nvswitch; });
}

/// Straight NVLinks to GPUs that the group has on no node are not in NCCL's topology: nothing goes through those.
void keep_nvlinks_of(TopologySpec& spec, const std::string& gpu, int count, const std::set<int>& gpus) {
  for (LinkGroup& link : spec.links) {
    if (link.kind != LinkKind::nvlink || link.from != gpu || link.to != gpu) continue;
    link.pairs = wired_pairs(link, count, count);
    link.wiring = Wiring::pairs;
    std::erase_if(link.pairs,
                  [&](const auto& pair) { return !gpus.contains(pair.first) || !gpus.contains(pair.second); });
  }
  std::erase_if(spec.links, [](const LinkGroup& link) { return link.wiring == Wiring::pairs && link.pairs.empty(); });
}

/// Uplinks that are thinner than leaves or NICs carry what their own lines do, of which so much is a NIC's, however
/// much less NICs send; and no more than what NICs send where they are not.
void keep_uplinks(LeafSpineNetwork& network, int nics, Bandwidth full) {
  if (!has_thin_uplinks(network, nics)) return;
  network.oversubscription =
      std::max(widest_oversubscription(network, nics),
               network.oversubscription * std::min(1.0, network.bandwidth.value() / full.value()));
}

/// The machine's description with a port in front of every GPU. Latency sits on the ports and, of hops between nodes,
/// on the NICs' own links; everything else in a node has none.
TopologySpec seen_by_channels(TopologySpec spec, const Rates& r) {
  const auto gpus = std::find_if(spec.devices.begin(), spec.devices.end(),
                                 [](const DeviceGroup& g) { return g.kind == DeviceKind::gpu; });
  const std::string gpu = gpus->name, port = gpu + "-port", nic = spec.network_devices;
  const int count = gpus->count;
  const auto nics_of_node = std::ranges::find(spec.devices, nic, &DeviceGroup::name);
  const int nics = nics_of_node == spec.devices.end() ? 0 : nics_of_node->count;
  if (r.nvlinks_of) keep_nvlinks_of(spec, gpu, count, *r.nvlinks_of);
  for (LinkGroup& link : spec.links) {
    const bool of_nic = link.from == nic || link.to == nic, of_gpu = link.from == gpu || link.to == gpu;
    // What passes no GPU ends at it: ports pass on.
    const bool ends = !r.through_gpus && link.kind == LinkKind::nvlink && link.from == gpu && link.to == gpu;
    for (std::string* end : {&link.from, &link.to})
      if (*end == gpu && !ends) *end = port;
    link.bandwidth = link.bandwidth * (link.kind == LinkKind::nvlink ? r.nvlink : r.pcie);
    if (r.by_receivers_rail && of_gpu && link.kind == LinkKind::pcie) link.bandwidth = link.bandwidth * r.nics_beside;
    link.latency = Seconds(of_nic ? std::max(0.0, r.beyond) / 2 : ends ? r.hop : 0);
  }
  LinkGroup ports{gpu,
                  port,
                  Wiring::pairs,
                  {},
                  LinkKind::direct,
                  Bandwidth(r.port),
                  Seconds(r.hop / 2),
                  "what the links of a GPU reach together",
                  spec.where};
  for (int i = 0; i < count; ++i) ports.pairs.emplace_back(i, i);
  spec.links.push_back(std::move(ports));
  if (r.switch_members > 0) add_switch_members(spec, *gpus, r.switch_members, Seconds(r.switch_link));
  spec.devices.push_back({port, DeviceKind::pcie_switch, count, spec.where});
  std::visit(
      [&](auto& network) {
        using Network = std::decay_t<decltype(network)>;
        if constexpr (!std::is_same_v<Network, std::monostate>) {
          const Bandwidth full = network.bandwidth * r.of_line;
          network.bandwidth = std::min(network.bandwidth, Bandwidth(r.nic));
          if constexpr (std::is_same_v<Network, LeafSpineNetwork>) keep_uplinks(network, nics, full);
          // What a message's post takes of its NIC is no longer on its way, of which the network's is the last part.
          network.latency = std::max(Seconds(), network.latency * r.network + Seconds(std::min(0.0, r.beyond) / 2));
        }
        if constexpr (std::is_same_v<Network, StarNetwork> || std::is_same_v<Network, LeafSpineNetwork>)
          network.by_receivers_rail = r.by_receivers_rail;
        if constexpr (std::is_same_v<Network, LeafSpineNetwork>)
          network.spine_latency =
              std::min(network.spine_latency * r.network,
                       Seconds(std::max(0.0, (r.way + std::min(0.0, r.beyond)) / 2 - network.latency.count())));
      },
      spec.network);
  if (r.reduces) add_network_members(spec, r.way);
  return spec;
}

/// A rank of the group among those of the machine as channels see it, whose nodes may have further ones.
Rank on_machine(const Question& q, const Fabric& machine, Rank rank) {
  const int node = static_cast<int>(q.fabric.node_of(rank).value());
  return Rank(static_cast<std::uint32_t>(node * machine.ranks_per_node() + gpu_in_node(q.fabric, rank)));
}

/// A node is left for the receiver's rail where the group has a GPU beside that rail's NIC, which relays: a
/// communicator's topology has its own GPUs alone [src/graph/topo.cc, ncclTopoTrimXml].
Fabric relayed(const Question& q, const Rates& rates, const Fabric& machine) {
  // A reduction in the network is reached by heads, beside their NICs.
  const int nics = machine.nics_per_node();
  if (!rates.by_receivers_rail || rates.reduces || nics == 0) return machine;
  const GroupsNodes groups_nodes = by_node(q.fabric, q.group);
  if (unlike_nodes(groups_nodes).size() == 1) return machine;
  const System system = system_of(q.fabric.spec(), q.c.compute_capability, q.c.environment);
  std::vector<bool> all(static_cast<std::size_t>(machine.nodes()) * static_cast<std::size_t>(nics));
  for (const auto& [node, gpus] : groups_nodes)
    for (const int gpu : gpus)
      for (const int nic : relayed_nics(system, gpu))
        all[static_cast<std::size_t>(node.value()) * static_cast<std::size_t>(nics) + static_cast<std::size_t>(nic)] =
            true;
  return machine.with_relays(std::move(all));
}

/// Over NVLink a GPU passes on what others send to the NIC beside it (PXN), if not what they send each other.
bool relays_over_nvlinks(const Question& q) {
  return q.c.nodes > 1 && q.c.nvlink && (q.plan.point_to_point ? q.c.pairs.relayed : q.c.environment.relays());
}

/// Where some pairs of GPUs have no NVLink: which ways NCCL has for them. Over several nodes all NVLinks stay, by which
/// GPUs reach NICs that are beside others; under NCCL_NVB_DISABLE=1 those of the group's GPUs, by which these do.
Rates with_nvlink_ways(const Question& q, Rates rates) {
  if (!lacks_nvlinks(q.fabric.spec())) return rates;
  const bool through_gpus = q.c.environment.sends_through_gpus();
  rates.through_gpus = through_gpus || relays_over_nvlinks(q);
  // What pairs send by others' rails goes to GPUs of the group, which alone are in NCCL's topology.
  const bool by_the_group = q.plan.point_to_point && q.c.pairs.relayed;
  if (q.c.nodes > 1 && through_gpus && !by_the_group) return rates;
  rates.nvlinks_of.emplace();
  // Where GPUs are reached over PCIe the closed form has none of them over NVLink.
  if (through_gpus || q.c.nvlink)
    for (int i = 0; i < q.group.size(); ++i) rates.nvlinks_of->insert(gpu_in_node(q.fabric, q.group[i]));
  return rates;
}

/// The search's channels that a run has; none where those do not say by which NICs they go.
const Graph* graph_of(const Question& q) {
  if (q.plan.point_to_point) return nullptr;
  switch (q.plan.algorithm) {
    case Algorithm::ring:
      return &q.c.ring;
    case Algorithm::tree:
    case Algorithm::pat:
      return &q.c.tree;
    case Algorithm::nvls_tree:
      return &*q.c.nvls;
    default:
      return nullptr;
  }
}

/// The GPUs that the group has of every node; none where nodes have unlike ones.
std::vector<int> gpus_of_each_node(const Question& q) {
  std::map<NodeId, std::set<int>> of_nodes;
  for (int i = 0; i < q.group.size(); ++i)
    of_nodes[q.fabric.node_of(q.group[i])].insert(gpu_in_node(q.fabric, q.group[i]));
  const std::set<int>& first = of_nodes.begin()->second;
  if (std::ranges::any_of(of_nodes, [&](const auto& one) { return one.second != first; })) return {};
  return {first.begin(), first.end()};
}

/// Pairs without an NVLink of their own, which go through the GPU that NCCL has for it, of several that are as good;
/// where there is none, on one node or because none does, over PCIe and not over several NVLinks.
Fabric by_nvlink_ways(const Question& q, const Fabric& machine) {
  if (!q.c.nvlink || q.c.nvswitch || !lacks_nvlinks(q.fabric.spec())) return machine;
  const System system = system_of(q.fabric.spec(), q.c.compute_capability, q.c.environment);
  std::vector<int> gpus = gpus_of_each_node(q);
  if (!system.through_gpus) {
    gpus.resize(static_cast<std::size_t>(system.gpus));
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  std::vector<Fabric::WayInNode> ways;
  for (const int from : gpus)
    for (const int to : gpus) {
      if (from == to) continue;
      const NvlinkWay found = nvlink_way(system, gpus, from, to);
      if (found.type == PathType::nvb)
        ways.push_back({from, to, found.hops.front().second});
      else if (found.type != PathType::nvl && (q.c.nodes == 1 || !system.through_gpus))
        ways.push_back({from, to, -1});
    }
  return machine.with_ways(ways);
}

/// Without peer access GPUs of a node write to the host's memory and read from it.
Fabric by_host_memory(const Question& q, const Fabric& machine) {
  if (q.c.environment.peer_access) return machine;
  std::vector<Fabric::WayInNode> ways;
  for (int from = 0; from < machine.ranks_per_node(); ++from)
    for (int to = 0; to < machine.ranks_per_node(); ++to)
      if (from != to) ways.push_back({from, to, -2});
  return machine.with_ways(ways);
}

/// Sends and receives by the NICs that NCCL has for them.
Fabric by_nics_of_pairs(const Question& q, const Rates& rates, const Fabric& machine) {
  if (!q.plan.point_to_point || q.c.nodes == 1 || machine.nics_per_node() == 0) return machine;
  const System system = system_of(q.fabric.spec(), q.c.compute_capability, q.c.environment);
  std::vector<std::vector<int>> nics = nics_of_ranks(system, q.fabric, q.group, rates.nics_of_gpu);
  std::vector<std::vector<int>> all(static_cast<std::size_t>(machine.rank_count()));
  for (int i = 0; i < q.group.size(); ++i)
    all[on_machine(q, machine, q.group[i]).value()] = std::move(nics[static_cast<std::size_t>(i)]);
  return machine.with_nearest(std::move(all));
}

/// By which NICs rings, trees and heads of NVLS trees pass nodes: those that each node's own search found, like nodes
/// or not. A channel's number says which, and whether a rank is the first of its node there, never its peer; to a NIC
/// that is not beside it a rank has the same one through another GPU, or the host [src/graph/search.cc,
/// ncclTopoGetNetDev]. Only sends and receives, which no graph has, go by the receiver's rail.
Fabric by_searched_nics(const Question& q, const Graph& graph, const Fabric& machine) {
  const ChannelOrders orders(q.fabric, q.group);
  std::vector<std::vector<Fabric::PortsOfLane>> ports(
      static_cast<std::size_t>(std::max(1, graph.channels)),
      std::vector<Fabric::PortsOfLane>(static_cast<std::size_t>(machine.nodes())));
  int channel = 0;
  for (std::vector<Fabric::PortsOfLane>& of_nodes : ports) {
    for (int node = 0; node < orders.nodes(); ++node) {
      const int own = q.plan.algorithm == Algorithm::ring ? orders.of_ring(node, graph, channel) : channel;
      if (const auto nics = orders.nics_of_node(node, graph, own))
        of_nodes[static_cast<std::size_t>(orders.numbers()[static_cast<std::size_t>(node)])] = {nics->in, nics->out};
    }
    ++channel;
  }
  return machine.with_ports(std::move(ports));
}

/// Lanes of the machine that reach a CollNet chain's end on the first node by the NIC that the search found; where it
/// found none that is near, the lanes of their own numbers.
std::vector<int> ways_of_chains(const Question& q, const Graph& chain, const Fabric& machine) {
  const ChannelOrders orders(q.fabric, q.group);
  std::vector<int> out;
  for (int channel = 0; channel < std::max(1, chain.channels); ++channel) {
    out.push_back(channel);
    if (static_cast<std::size_t>(channel) >= chain.nics.size() || machine.nics_per_node() == 0) continue;
    const int nic = chain.nics[static_cast<std::size_t>(channel)].in;
    const Rank first = on_machine(q, machine, q.group[orders.of_node(0, chain, channel).front()]);
    // A rank's next NIC is that of so many lanes further.
    for (int turn = 0; turn < machine.nics_per_node(); ++turn) {
      const int lane = channel + turn * machine.ranks_per_node();
      if (machine.nic_of(first, lane) != nic) continue;
      out.back() = lane;
      break;
    }
  }
  return out;
}

/// With the drives and the NICs of a run's channels.
Fabric with_channels(const Question& q, const Rates& rates, const Fabric& machine) {
  const Graph* const graph = graph_of(q);
  std::vector<int> ways(static_cast<std::size_t>(graph == nullptr ? 1 : std::max(1, graph->channels)));
  std::iota(ways.begin(), ways.end(), 0);
  if (graph == nullptr && q.c.collnet) ways = ways_of_chains(q, q.c.collnet->chain, machine);
  const Fabric by_nics =
      graph != nullptr && machine.nics_per_node() > 0 ? by_searched_nics(q, *graph, machine) : machine;
  if (!(rates.drive > 0)) return by_nics;
  const bool apart = rates.between > 0;
  return by_nics.with_drives(
      q.plan.channels, Bandwidth(rates.drive), std::move(ways),
      apart ? std::optional(Fabric::DrivesBetweenNodes{Bandwidth(rates.between), rates.ways}) : std::nullopt);
}

}  // namespace

Rates rates_of(const Question& q, const Limits& l, double chunk) {
  const Communicator& c = q.c;
  Rates out;
  const double share = c.nvlink ? l.gpu / l.data_sheet : 1;
  out.nvlink = c.most_on_a_node > 1 && c.nvlink ? share : 1;
  out.pcie = c.nvlink ? 1 : pcie_share(c, q.plan.protocol);
  out.port = l.gpu;
  out.hop = l.hop - within_hop(l, chunk);
  if (c.nodes > 1) {
    // Of uneven NICs the lines of each channel are its own matter, else all of a NIC's.
    const double lines = c.nics.uneven ? unlimited : channels_of_a_nic(q.c, q.plan) * chunk / through_network(l, chunk);
    out.nic = std::min(l.nics / l.nics_used / nics_of_rings(c), lines);
    out.of_line = of_line(c, q.plan.protocol);
    out.network = c.factors.network_hop;
    out.way = c.factors.network_hop * c.network_latency.count();
    out.beyond = network_hop(l, chunk) - c.factors.network_hop * c.network_latency.count() - out.hop;
  }
  return out;
}

Result<Fabric> machine_of_channels(const Question& q, const Rates& rates) {
  TopologySpec spec = q.fabric.spec();
  if (!q.c.environment.peer_access) drop_nvlinks(spec);
  const Result<Fabric> machine =
      Fabric::build(seen_by_channels(std::move(spec), with_nvlink_ways(q, rates)), q.fabric.nodes());
  if (!machine) return machine.errors();
  const Fabric joined = by_host_memory(q, by_nvlink_ways(q, relayed(q, rates, by_nics_of_pairs(q, rates, *machine))));
  return with_channels(q, rates, joined);
}

Result<Program> assembled(const Question& q, const Rates& rates, Pattern pattern, double start) {
  if (const Traffic all = traffic(pattern); all.messages > most_messages)
    return Diagnostic{
        {},
        fmt::format("{} messages at {} bytes, and up to {} are simulated", all.messages, q.size.value(), most_messages),
        "expected a smaller group or size"};
  Result<Fabric> machine = machine_of_channels(q, rates);
  if (!machine) return machine.errors();
  return Program{
      std::move(machine).value(), std::move(pattern), {}, 1, Seconds(start), Seconds(host_time(q.c, q.kind)), false};
}

}  // namespace collcast::nccl
