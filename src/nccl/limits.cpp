#include "nccl/limits.hpp"

#include <algorithm>
#include <cmath>

#include "collcast/collective/in_order_tree.hpp"
#include "collcast/nccl/run.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/nic_loads.hpp"

namespace collcast::nccl {

namespace {

double payload(Protocol p) { return p == Protocol::ll ? 0.5 : p == Protocol::ll128 ? 15.0 / 16 : 1.0; }

/// Microseconds for each channel that a call starts.
double channel_start(const Environment& e, Protocol p) {
  const bool old = p != Protocol::simple && e.launch.version > 0 && e.launch.version < fitted::first_quick_version;
  return old ? fitted::old_channel_start : fitted::channel_start;
}

/// Of a calibration: what a node's links carry.
double link_factor(const Communicator& c, Protocol p) {
  return p == Protocol::ll ? c.factors.ll : p == Protocol::ll128 ? c.factors.ll128 : c.factors.simple;
}

/// Of a calibration: what PCIe carries on the furthest way that a ring takes inside a node.
double way_factor(const Communicator& c) {
  if (c.nvlink) return 1;
  const bool bridged = c.ring.type_inside >= PathType::phb, between_sockets = c.ring.type_inside >= PathType::sys;
  return (bridged ? c.factors.host_bridge : 1) * (between_sockets ? c.factors.sockets : 1);
}

/// Of PCIe, what a GPU's ring reaches by NCCL's search, bytes per second of data on the wire.
/// A graph's file may say more than a slot carries.
double pcie_searched(const Communicator& c) {
  const double slot = c.gpu.pcie.value() > 0 ? c.gpu.pcie.value() : unlimited;
  return std::min(c.ring.together().inside.value(), slot) * fitted::pcie_efficiency;
}
double pcie_reached(const Communicator& c) { return pcie_searched(c) * way_factor(c); }

/// LL, GB/s of one channel's threads.
double ll_channel(std::size_t generation) {
  return fitted::ll_multiple * tuned::ll_total[generation][0] / fitted::channels_of_a_node[generation];
}

/// Simple and LL128 in trees halve their chunk while there are too few of them to fill the tree [src/enqueue.cc].
double tree_chunk(const Communicator& c, Bytes size, const Plan& plan) {
  double chunk = slot(c.environment, plan.protocol);
  if (plan.protocol == Protocol::ll) return chunk;
  if (plan.protocol == Protocol::simple) {
    const int hops = c.ranks_per_node - 1 + floor_log2(c.nodes);
    const auto fewer = [&](int than) { return std::floor(of_channel(size, plan) / chunk) < than; };
    while (fewer(8 * hops) && chunk > 131072) chunk /= 2;
    while (fewer(4 * hops) && chunk > 65536) chunk /= 2;
    while (fewer(hops) && chunk > 32768) chunk /= 2;
    return chunk;
  }
  chunk = std::min(chunk, static_cast<double>(size.value()) / plan.channels);
  const double depth = 1 + floor_log2(c.nodes) + 0.1 * mean_on_a_node(c);
  const auto few = [&](double factor) {
    return static_cast<double>(size.value()) / (plan.channels * chunk) < factor * depth / mean_on_a_node(c);
  };
  while (chunk > 131072 && few(64)) chunk /= 2;
  while (chunk > 32768 && few(16)) chunk /= 2;
  return chunk;
}

}  // namespace

double slot(const Environment& e, Protocol p) {
  const Bytes buffer = p == Protocol::ll ? e.ll_buffer : p == Protocol::ll128 ? e.ll128_buffer : e.simple_buffer;
  return static_cast<double>(buffer.value()) / 8 * payload(p);
}

double network_rate(const Communicator& c, Protocol p, double nics) {
  const double reached = over_host(c) ? fitted::nic_over_host : fitted::nic_efficiency;
  const double line = nics * c.nics.rate.value() * reached * c.factors.network;
  return line * (p == Protocol::ll ? fitted::ll_nic_payload : payload(p));
}

double of_line(const Communicator& c, Protocol p) {
  return fitted::nic_efficiency * c.factors.network * (p == Protocol::ll ? fitted::ll_nic_payload : payload(p));
}

double over_spines(const Communicator& c, double bytes, double of_line) {
  return c.spines ? bytes / (c.spines->uplink.value() * of_line) : 0;
}

double pcie_share(const Communicator& c, Protocol p) {
  const double carried = fitted::pcie_efficiency * link_factor(c, p) * way_factor(c);
  return std::clamp(carried, fitted::pcie_efficiency, 1.0) * payload(p);
}

Load ring_pcie(const Communicator& c, CollectiveKind kind, const Plan& plan, double hops, double chunk) {
  const PcieLoads& loads = c.gpu.over_pcie;
  const std::vector<double>& busiest = kind == CollectiveKind::broadcast ? loads.broadcasts
                                       : kind == CollectiveKind::reduce  ? loads.reduces
                                                                         : loads.rings;
  return {first_of(busiest, plan.channels) * hops * chunk / pcie_share(c, plan.protocol), "PCIe"};
}

double ring_spines(const Communicator& c, CollectiveKind kind, const Plan& plan, double hops, double chunk) {
  if (!c.spines) return 0;
  const SpineLoad& load = kind == CollectiveKind::broadcast ? c.spines->broadcasts
                          : kind == CollectiveKind::reduce  ? c.spines->reduces
                                                            : c.spines->rings;
  return over_spines(c, first_of(load, plan.channels) * hops * chunk, of_line(c, plan.protocol));
}

double tree_spines(const Communicator& c, const Plan& plan, const Chunks& cut) {
  return c.spines ? over_spines(c, first_of(c.spines->trees, plan.channels) * cut.chunk, of_line(c, plan.protocol)) : 0;
}

FactorsOfLineRate factors_of_line_rate(const Communicator& c) {
  const double links = c.nvlink                 ? 1 / fitted::nvlink_efficiency[row_of(c)]
                       : c.gpu.pcie.value() > 0 ? c.gpu.pcie.value() / pcie_searched(c)
                                                : unlimited;
  return {links, 1 / (over_host(c) ? fitted::nic_over_host : fitted::nic_efficiency)};
}

double most_across_nodes(const Communicator& c, Protocol p, double nics) {
  return c.nodes == 1 ? unlimited : network_rate(c, p, nics) * c.nodes / (2 * (c.nodes - 1));
}

namespace {

/// What the network takes is of every protocol; what a protocol takes beyond LL is its own, of GPU, proxy and memory.
struct NetworkHop {
  double network = 0, protocol = 0;
  double ll = 0;  ///< of the network's, what LL takes of GPU and proxy, without a calibration
};
NetworkHop network_hop(const Communicator& c, Protocol p, bool tree) {
  const auto fitted_hop = [&](Protocol of) {
    const auto i = static_cast<std::size_t>(of);
    return us * fitted::network_hop[i] * (tree ? fitted::tree_to_ring_hop[i] : 1);
  };
  const double ll = fitted_hop(Protocol::ll), beyond = fitted_hop(p) - ll;
  const double own = p == Protocol::simple  ? c.factors.simple_network_hop
                     : p == Protocol::ll128 ? c.factors.ll128_network_hop
                                            : 1;
  return {c.factors.network_hop * (ll + c.network_latency.count()), own * beyond, ll};
}

}  // namespace

Limits limits(const Communicator& c, const Plan& plan, bool tree) {
  const Protocol p = plan.protocol;
  const std::size_t i = static_cast<std::size_t>(p), g = row_of(c);
  Limits out;
  out.channel = 1e9 * (p == Protocol::ll      ? ll_channel(g)
                       : p == Protocol::ll128 ? fitted::ll128_channel[g]
                                              : fitted::simple_channel[g]);
  if (c.most_on_a_node > 1) {
    out.data_sheet = c.gpu.nvlink.value();
    out.gpu = (c.nvlink ? out.data_sheet * fitted::nvlink_efficiency[g] : pcie_reached(c)) * payload(p);
    out.gpu *= link_factor(c, p);
    out.gpu_name = c.nvlink ? "NVLink" : "PCIe";
  }
  out.first_round = c.nodes == 1 ? fitted::first_round[g] : fitted::first_round_between;
  if (c.nodes > 1) {
    const double nics = tree ? c.nics.count : nics_of_rings(c);
    out.nics_used = std::min(1.0, plan.channels / (nics * channels_of_a_nic(plan, nics)));
    out.nics = network_rate(c, p, nics) * out.nics_used;
    out.nics_name = nics_name(c);
    if (p == Protocol::ll) out.ll_network = c.factors.ll_proxy * fitted::ll_network_channel * 1e9;
  }
  const double nvlink = p == Protocol::simple ? fitted::nvlink_simple_hop[g] : fitted::nvlink_hop[i];
  // Through the host's memory no hop is quicker than a write over NVLink, nor over PCIe between GPUs that have NVLinks
  // to others; what PCIe's hops were fitted on are cards without any.
  const double least_hop = c.environment.peer_access && !c.gpu.has_nvlinks ? 0 : nvlink;
  out.hop = us * c.factors.hop * (c.nvlink ? nvlink : std::max(fitted::pcie_hop[i], least_hop));
  if (p == Protocol::ll) out.first_pass = 8.0 * plan.threads;
  out.own_copy = p == Protocol::simple ? 1e9 * fitted::own_copy : out.channel;
  const NetworkHop between = network_hop(c, p, tree);
  out.network_hop = between.network + between.protocol;
  if (p == Protocol::simple) {
    // However small a chunk, GPUs pass it on as inside a node.
    const double least = std::max(0.0, out.hop - between.ll);
    out.hop_of_chunk = std::max(0.0, between.protocol - least);
  }
  out.start = us * (c.factors.launch * (fitted::launch[g] + fitted::start[i]) +
                    c.factors.channel * channel_start(c.environment, p) * (plan.channels - 1));
  return out;
}

Limits ring_limits(const Communicator& c, const Plan& plan) {
  Limits out = limits(c, plan, false);
  if (!c.nvlink) return out;
  out.gpu *= c.gpu.ring_links;
  out.data_sheet *= c.gpu.ring_links;
  return out;
}

double host_time(const Communicator& c, CollectiveKind kind) {
  double out = fitted::host;
  if (c.environment.launches_groups() && c.most_on_a_node > 1) {
    out = fitted::group_launch + fitted::group_launch_per_gpu * c.most_on_a_node;
    const int peers = kind == CollectiveKind::sendrecv ? 1 : c.ranks - 1;
    if (is_point_to_point(kind)) out += fitted::group_pairs + fitted::group_pairs_per_peer * peers;
  }
  return us * c.factors.host * out;
}

Load longest(std::initializer_list<Load> loads) {
  return *std::max_element(loads.begin(), loads.end(),
                           [](const Load& a, const Load& b) { return a.seconds < b.seconds; });
}

namespace {

/// Of so many hops in a row, fewer than once around the ring, as many as can be between nodes: one by the last rank of
/// each.
int most_between_nodes(const Communicator& c, int hops) {
  if (hops == 0) return 0;
  if (nodes_alike(c)) return (hops + c.most_on_a_node - 1) / c.most_on_a_node;
  std::vector<int> last;  // twice around
  for (int node = 0, ranks = 0; node < 2 * c.nodes; ++node)
    last.push_back((ranks += c.ranks_of_nodes[static_cast<std::size_t>(node % c.nodes)]) - 1);
  std::ptrdiff_t most = 0;
  for (auto first = last.begin(), end = first; first != last.begin() + c.nodes; ++first) {
    while (end != last.end() && *end < *first + hops) ++end;
    most = std::max(most, end - first);
  }
  return static_cast<int>(most);
}

}  // namespace

Hops ring_hops(const Communicator& c, CollectiveKind kind) {
  const int all = (kind == CollectiveKind::all_reduce ? 2 : 1) * (c.ranks - 1);
  if (c.nodes == 1) return {static_cast<double>(all), 0};
  const int out = all / c.ranks * c.nodes + most_between_nodes(c, all % c.ranks);
  return {static_cast<double>(all), static_cast<double>(out)};
}

double channels_in_line(const Communicator& c, const Plan& plan) {
  if (!over_host(c)) return channels_of_a_nic(c, plan);
  const double proxies = std::clamp(c.nics.count, 1, c.most_on_a_node);
  return std::min<double>(plan.channels, 2 * std::ceil(plan.channels / proxies));
}

double message_gap(const Communicator& c, const Plan& plan) {
  if (c.nodes == 1) return 0;
  const double one = over_host(c) ? fitted::message_gap_over_host : fitted::message_gap;
  return us * c.factors.message_gap * one * (plan.protocol == Protocol::ll ? fitted::ll_message : 1) *
         channels_in_line(c, plan);
}

double message_gaps(const Communicator& c, const Plan& plan, double hops, double chunk) {
  if (plan.protocol != Protocol::simple) return std::max(0.0, hops - fitted::slots) * message_gap(c, plan);
  // Two slices of two slots each; not below a 32nd of a slice's slots [src/device/prims_simple.h].
  const double least = 2 * slot(c.environment, plan.protocol) / 32;
  return std::max(0.0, hops - fitted::slots / 4) * (chunk > least ? 2 : 1) * message_gap(c, plan);
}

Loops loops_of(const Communicator& c, Bytes size, const Plan& plan) {
  // Simple: half of the buffer is a chunk; else a slot.
  const double most = slot(c.environment, plan.protocol) * (plan.protocol == Protocol::simple ? 4 : 1);
  const double full = std::floor(of_channel(size, plan) / (most * c.ranks));
  return {most, full, of_channel(size, plan) / c.ranks - full * most};
}

double ring_channel(const Limits& l, double hops) { return hops / (hops / l.channel + 1 / l.own_copy); }

double ring_gpu(const Limits& l, double hops, const Plan& plan) {
  // Lines of LL and LL128 are copied while others are under way.
  if (plan.protocol != Protocol::simple) return l.gpu;
  return hops / (hops / l.gpu + 1 / (l.own_copy * plan.channels));
}

Load ring_links(const Limits& l, double hops, double chunk, const Plan& plan) {
  const double moved = hops * chunk, all = moved * plan.channels;
  // A NIC sends on while the threads copy what came last.
  return longest({{moved / ring_channel(l, hops), "channels"},
                  {all / ring_gpu(l, hops, plan), l.gpu_name},
                  {all / l.nics, l.nics_name}});
}

Load ring_load(const Limits& l, double hops, double chunk, const Plan& plan) {
  return longest({ring_links(l, hops, chunk, plan), {hops * through_network(l, chunk), "messages"}});
}

Chunks tree_chunks(const Communicator& c, Bytes size, const Plan& plan) {
  return Chunks::of(of_channel(size, plan), tree_chunk(c, size, plan));
}

namespace {

/// What is reached of trees' number, as NCCL books it from its search, and of the cap that it sets itself on their
/// channels; bytes per second. Each has its own share, so that what links have more is never less until the cap holds.
/// By today's constants whatever the version, as links are no slower for what an older one believed of them.
struct TreeNumber {
  double booked = 0, cap = 0;
};
TreeNumber tree_number(const Communicator& c, Protocol p) {
  const bool of_two = c.nodes == 2 && p == Protocol::simple;
  const double of_booked = of_two ? fitted::tree_efficiency_of_two : fitted::tree_efficiency;
  const double of_cap = of_two ? fitted::tree_cap_of_two[row_of(c)] : fitted::tree_efficiency;
  const double relief = c.nics.hold_trees ? relief_of_trees(c) : 1;
  const Graph::Together all = c.tree.together();
  return {relief * of_booked * tuned::tree_of_bus * (c.nodes <= 2 ? all.inside : all.between).value(),
          c.tree.channels * of_cap * 1e9 * tuned::tree_per_channel[row_of(c)][scale_of(c)]};
}

}  // namespace

double tree_rate(const Communicator& c, const Plan& plan) {
  const TreeNumber number = tree_number(c, plan.protocol);
  // Half of NCCL's number, which counts both directions, is the algorithm's.
  double most = 0.5 * std::min(number.booked, number.cap);
  most *= link_factor(c, plan.protocol);
  if (plan.protocol == Protocol::ll128) most *= c.nodes == 1 ? tuned::tree_ll128 : tuned::tree_ll128_between;
  if (plan.protocol == Protocol::ll) most /= tuned::tree_ll_divisor;
  return std::min(most, most_across_nodes(c, plan.protocol, nics_of_trees(c)));
}

double tree_nics(const Communicator& c, const Plan& plan, const Chunks& cut) {
  // On one node the rate is that of GPUs that send up and down; of two GPUs each does one of them.
  const double most = (c.nodes == 1 ? 2 / c.gpu.tree_sends : tree_share(c, plan)) * tree_rate(c, plan);
  return cut.chunk * plan.channels / most;
}

namespace {

/// What a chunk of each channel takes of links and NICs, whichever is busiest.
Load tree_links(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut, double messages) {
  return longest({{tree_nics(c, plan, cut), tree_rate_name(c, plan)},
                  {c.gpu.tree_sends * cut.chunk * plan.channels / l.gpu, l.gpu_name},
                  {messages * message_gap(c, plan), "messages"}});
}

/// And of a channel's own threads and lines.
Load tree_lines(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut) {
  return longest({{cut.chunk / (tree_threads(plan.protocol) * l.channel), "channels"},
                  {c.nodes == 1 ? 0 : through_network(l, cut.chunk), "messages"}});
}

Load load_with(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut, double messages) {
  const double pcie = first_of(c.gpu.over_pcie.trees, plan.channels) * cut.chunk / pcie_share(c, plan.protocol);
  return longest({tree_lines(c, l, plan, cut),
                  tree_links(c, l, plan, cut, messages),
                  {tree_spines(c, plan, cut), spines_name},
                  {pcie, "PCIe"}});
}

/// On its way a chunk waits for the messages of both trees alike.
double messages_on_the_way(const Communicator& c) { return tree_messages(c) / relief_of_trees(c); }

}  // namespace

Load tree_load(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut) {
  return load_with(c, l, plan, cut, busiest_tree_messages(c, plan));
}

Load first_tree_load(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut) {
  return load_with(c, l, plan, cut, messages_on_the_way(c));
}

double tree_way_up_alone(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut) {
  if (c.nodes == 1) return 0;
  const double hop = network_hop(l, cut.chunk) + cut.chunk / l.channel + through_network(l, cut.chunk);
  const double links = tree_links(c, l, plan, cut, messages_on_the_way(c)).seconds,
               lines = tree_lines(c, l, plan, cut).seconds;
  // As much quicker as half of the links' load lets a channel be.
  const double share = std::clamp(2 * (1 - lines / links), 0.0, 1.0);
  return share * std::min(hop, (cut.count - 1) / 2 * links);
}

double tree_port(const Communicator& c, const Limits& l, const Plan& plan) {
  return c.nodes == 1 ? std::min(2 * tree_rate(c, plan), l.gpu) : unlimited;
}

double tree_drive(const Communicator& c, const Limits& l, const Plan& plan) {
  // A GPU of the chain sends up and down, but on a node of two.
  return (c.nodes == 1 && c.most_on_a_node == 2 ? 1 : 2) * tree_threads(plan.protocol) * l.channel;
}

int tree_pieces(const Communicator& c, const Plan& plan, const Chunks& cut) {
  if (plan.protocol == Protocol::simple) return 1;
  // KiBs, of which a node's GPUs hide all but one. Fewer where there are many chunks over several nodes, whose number
  // hides the same but for long chains, for which a simulation takes more: a tenth of a second's messages else.
  constexpr double most = 16, most_in_all = 90'000;
  const double messages = 2 * cut.count * plan.channels * c.ranks;
  const double wanted = c.nodes == 1 ? cut.chunk / 1024 : std::min(cut.chunk / 1024, most_in_all / messages);
  return static_cast<int>(std::clamp(wanted, 1.0, most));
}

const char* tree_rate_name(const Communicator& c, const Plan& plan) {
  if (c.nodes > 1 && tree_rate(c, plan) >= most_across_nodes(c, plan.protocol, nics_of_trees(c))) return nics_name(c);
  if (const TreeNumber number = tree_number(c, plan.protocol); number.cap < number.booked)
    return "NCCL's cap on a tree's channel";
  if (c.nodes > 1 && c.nics.hold_trees) return nics_name(c);
  return c.nvlink ? "NVLink" : "PCIe";
}

std::vector<TreeWay> tree_ways(const Communicator& c, const Plan& plan) {
  const auto way_of = [&](int place, double inside) {
    TreeWay out{inside};
    for (int x = place; x > 0; x = InOrderTree::parent(c.nodes, x), ++out.levels)
      out.messages += InOrderTree::children(c.nodes, InOrderTree::parent(c.nodes, x));
    return out;
  };
  std::vector<TreeWay> out;
  for (const bool second : {false, true}) {
    if (second && (nodes_alike(c) || plan.channels <= c.tree.channels)) break;
    for (int place = 0; place < c.nodes; ++place) {
      const int node = second ? in_second_tree(c.nodes, place) : place;
      out.push_back(way_of(place, c.ranks_of_nodes[static_cast<std::size_t>(node)] - 1.0));
    }
  }
  return out;
}

double tree_threads(Protocol p) { return p == Protocol::simple ? 0.5 : 0.6; }

namespace {

Bandwidth to_peers(const PairRates& rates, CollectiveKind kind) {
  if (kind == CollectiveKind::sendrecv) return rates.next;
  if (kind == CollectiveKind::alltoall) return rates.all;
  return kind == CollectiveKind::scatter ? rates.scatter : rates.gather;
}

/// Payload of sends and receives, of what a NIC's line has; `one_way`: each NIC sends or takes in, none does both.
double pairs_of_line(const Communicator& c, const Plan& plan, bool one_way) {
  return (one_way ? fitted::nic_efficiency : fitted::p2p_nic_efficiency) * c.factors.network *
         (plan.protocol_between == Protocol::ll ? fitted::ll_nic_payload : 1);
}

/// Where nodes have unlike GPUs, or these unlike numbers of NICs: the rank that has most to do with its peers, and the
/// NIC that most goes through.
Exchange exchange_of_unlike(const Communicator& c, CollectiveKind kind, double bytes, const Plan& plan) {
  const bool to_next = kind == CollectiveKind::sendrecv, all_send = kind == CollectiveKind::alltoall;
  const bool scatters = kind == CollectiveKind::scatter;
  const int fewest = *std::min_element(c.ranks_of_nodes.begin(), c.ranks_of_nodes.end());
  Exchange out;
  out.per_peer = to_next ? bytes : bytes / c.ranks;
  out.local_peers =
      to_next ? (c.pairs.next.inside ? 1 : 0) : (all_send ? c.most_on_a_node : c.pairs.loads.front().ranks_of_root) - 1;
  out.remote_peers = to_next ? 1 : c.ranks - (all_send ? fewest : c.pairs.loads.front().ranks_of_root);
  out.own_bytes = to_next ? 0 : out.per_peer;
  out.to_peers = to_peers(c.gpu.pair_rates, kind);
  out.turns = std::clamp(plan.channels_between * static_cast<int>(out.remote_peers), 1, c.pairs.nics_of_gpu);
  const PairLoads& loads = c.pairs.loads[static_cast<std::size_t>(out.turns - 1)];
  out.lanes = loads.lanes;
  // Straight NVLinks' rates have them.
  if (c.nvswitch && (all_send || scatters)) out.relayed_peers = all_send ? loads.relayed : loads.relayed_of_root;
  const PairLoads::Busiest& busiest = to_next    ? loads.next
                                      : all_send ? loads.alltoall
                                      : scatters ? loads.scatter
                                                 : loads.gather;
  out.nics = 1;
  out.own_nics = all_send ? loads.fewest_nics : out.remote_peers / busiest.nic;
  out.nic_bytes = out.per_peer * busiest.nic;
  const bool one_way = to_next && !c.pairs.next.both_ways && c.pairs.nics > 1 && !over_host(c);
  const double line = c.pairs.nic_rate.value(), way = c.pairs.gpu_rate.value() * busiest.nic / busiest.way;
  out.of_line = pairs_of_line(c, plan, one_way);
  out.nics_rate = out.of_line * std::min(line, way);
  out.nics_name = way < line ? "PCIe to the NICs" : nics_name(c);
  return out;
}

/// Where all nodes have the same GPUs.
Exchange exchange_of_alike(const Communicator& c, CollectiveKind kind, double bytes, const Plan& plan) {
  const bool to_next = kind == CollectiveKind::sendrecv;
  const double per_node = c.ranks_per_node, others = c.ranks - per_node;
  Exchange out;
  out.per_peer = to_next ? bytes : bytes / c.ranks;
  out.local_peers = to_next ? (c.pairs.next.inside ? 1 : 0) : per_node - 1;
  out.remote_peers = to_next ? (c.pairs.next.between ? 1 : 0) : others;
  out.own_bytes = to_next ? 0 : out.per_peer;
  out.to_peers = to_peers(c.gpu.pair_rates, kind);
  if (out.remote_peers == 0) return out;
  out.turns = std::min(c.pairs.nics_of_gpu, plan.channels_between * static_cast<int>(out.remote_peers));
  out.lanes = out.turns;
  const double all_nics = c.pairs.nics * out.turns / c.pairs.nics_of_gpu;
  // Of PXN: what leaves by the NICs of other rails goes to the GPUs beside them.
  const double relayed = c.pairs.relayed ? others * (1 - std::min(1.0, out.turns / all_nics)) : 0;
  const bool all_send = kind == CollectiveKind::alltoall;
  // A root sends by all rails with PXN, and takes in by its own.
  const bool by_all = all_send || (kind == CollectiveKind::scatter && relayed > 0);
  // Straight NVLinks' rates have them.
  if (by_all && c.nvswitch) out.relayed_peers = relayed;
  out.nics = by_all ? all_nics : out.turns;
  out.own_nics = by_all && !all_send ? all_nics : out.turns;
  const double senders = all_send ? per_node : to_next ? c.pairs.next.messages : 1;
  out.nic_bytes = out.per_peer * out.remote_peers * senders;
  // In the order of ranks the first of several on a node receives and the last sends: each NIC one way, where they have
  // one each.
  const bool one_way = to_next && !c.pairs.next.both_ways && c.pairs.nics > 1 && !over_host(c);
  out.of_line = pairs_of_line(c, plan, one_way);
  const double lines = out.nics * c.pairs.nic_rate.value();
  const double ways = (by_all ? per_node : senders) * c.pairs.gpu_rate.value();
  out.nics_rate = out.of_line * std::min(lines, ways);
  out.nics_name = ways < lines ? "PCIe to the NICs" : nics_name(c);
  return out;
}

double parts_over_pcie(const PcieLoads& loads, CollectiveKind kind) {
  if (kind == CollectiveKind::sendrecv) return loads.next;
  if (kind == CollectiveKind::alltoall) return loads.alltoall;
  return kind == CollectiveKind::scatter ? loads.scatter : loads.gather;
}

}  // namespace

Exchange exchange_of(const Communicator& c, CollectiveKind kind, double bytes, const Plan& plan) {
  Exchange out =
      !c.pairs.loads.empty() ? exchange_of_unlike(c, kind, bytes, plan) : exchange_of_alike(c, kind, bytes, plan);
  out.over_pcie = parts_over_pcie(c.gpu.over_pcie, kind);
  return out;
}

namespace {

/// Of NVLink, what sends and receives reach: with one peer as a ring, with several less while each has channels of its
/// own, as those of near peers are done before others.
double p2p_nvlink(const Communicator& c, const Exchange& e, const Plan& plan) {
  const double reached = fitted::nvlink_efficiency[row_of(c)];
  if (e.local_peers < 2) return reached;
  const bool shared = plan.channels * (e.local_peers + 1) > c.p2p_channels;
  return reached * (shared ? fitted::p2p_shared : fitted::p2p_apart);
}

/// Seconds that the threads of a pair's channels to another node take, or a proxy for their lines of LL.
double pair_threads(const Communicator& c, const Exchange& e, const Plan& plan) {
  if (e.remote_peers <= 0) return 0;
  if (plan.protocol_between == Protocol::ll)
    return e.per_peer / (plan.channels_between * 1e9 *
                         std::min(ll_channel(row_of(c)), c.factors.ll_proxy * fitted::ll_network_channel));
  const double channels = 1 + fitted::p2p_network_further * (plan.channels_between - 1);
  return e.per_peer / (channels * fitted::p2p_network_channel * 1e9);
}

/// Seconds that a GPU's channels take for all of its parts; over PCIe its slot has it. Across nodes under Simple they
/// are seen where a variable leaves fewer than NCCL has: those are enough.
double all_threads(const Communicator& c, const Exchange& e, const Plan& plan) {
  const bool seen = c.nodes == 1 || c.environment.max_p2p_channels.has_value();
  if (!seen && (e.local_peers <= 0 || plan.protocol != Protocol::ll)) return 0;
  if (e.local_peers > 0 && !c.nvlink && c.environment.peer_access) return 0;
  const bool copies = e.own_bytes > 0 && c.nodes == 1;
  // Of a sendrecv a rank has one peer.
  const double remote = e.own_bytes > 0 || e.local_peers <= 0 ? e.remote_peers : 0;
  const double local = e.local_peers + (copies ? 1 : 0);
  const auto of_parts = [&](double parts, Protocol p) {
    return parts * e.per_peer / (1e9 * (p == Protocol::ll ? ll_channel(row_of(c)) : fitted::p2p_channel[row_of(c)]));
  };
  const double channels = std::min<double>(c.p2p_channels, plan.channels * local + plan.channels_between * remote);
  const double own = of_parts(local * (copies ? fitted::p2p_own_part : 1), plan.protocol);
  return (own + of_parts(remote, plan.protocol_between)) / channels;
}

}  // namespace

double pcie_share_of_pairs(const Communicator& c, const Plan& plan) {
  const bool flags = plan.protocol == Protocol::ll && (c.nodes == 1 || plan.protocol_between == Protocol::ll);
  return pcie_share(c, flags ? Protocol::ll : Protocol::simple);
}

PointToPoint point_to_point(const Communicator& c, const Exchange& e, const Plan& plan) {
  PointToPoint out;
  const double carried = link_factor(c, plan.protocol) * payload(plan.protocol);
  if (c.nvlink) out.reached = carried * p2p_nvlink(c, e, plan);
  out.local = e.to_peers.value() * (c.nvlink ? out.reached : carried * fitted::pcie_efficiency * way_factor(c));
  out.threads = all_threads(c, e, plan);
  if (c.nodes == 1 && out.threads > 0 && plan.protocol == Protocol::simple)
    out.last_piece =
        std::min(e.per_peer / plan.channels, slot(c.environment, plan.protocol)) / (fitted::p2p_own_copy * 1e9);
  out.pair = pair_threads(c, e, plan);
  out.pcie = e.per_peer * e.over_pcie / pcie_share_of_pairs(c, plan);
  const double ranks_per_nic = !c.pairs.loads.empty()
                                   ? std::max(1.0, c.pairs.loads[static_cast<std::size_t>(e.turns - 1)].ranks_of_nic)
                               : c.pairs.nics > 0 ? std::max(1.0, static_cast<double>(c.ranks_per_node) / c.pairs.nics)
                                                  : 1;
  out.gaps = us * std::max(0.0, e.remote_peers / e.own_nics - fitted::slots) * fitted::p2p_message_gap * ranks_per_nic;
  out.start =
      us * c.factors.launch * c.factors.point_to_point_launch *
      (fitted::launch[row_of(c)] + fitted::p2p_launch + (plan.protocol == Protocol::simple ? fitted::p2p_simple : 0));
  out.latency_inside = us * fitted::p2p_per_peer * e.local_peers;
  if (e.remote_peers > 0) {
    out.way_between =
        c.factors.network_hop * (c.network_latency + (c.pairs.relayed ? Seconds() : c.across_rails)).count();
    out.latency_between = c.factors.network_hop * us * fitted::network_hop[0] + out.way_between;
  }
  return out;
}

}  // namespace collcast::nccl
