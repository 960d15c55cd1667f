// What a plan cuts its data into and what bounds its run: said once, for the closed form and for the simulation.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "collcast/nccl/tuning.hpp"
#include "nccl/run_constants.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

inline constexpr double us = 1e-6;

/// What the rate of a node's NICs is called.
inline const char* nics_name(const Communicator& c) { return c.nics.by_pcie ? "PCIe to the NICs" : "NIC"; }

inline std::size_t row_of(const Communicator& c) { return static_cast<std::size_t>(generation(c)); }

/// Payload of one slot: an eighth of the connection's buffer.
double slot(const Environment&, Protocol);
/// Of NVLS, of one head and channel, unless a tree takes whole slots [src/transport/nvls.cc].
inline constexpr double most_nvls_chunk = 131072;

/// All nodes have as many ranks.
inline bool nodes_alike(const Communicator& c) { return c.most_on_a_node * c.nodes == c.ranks; }

/// The longest of several times, by name.
struct Load {
  double seconds;
  const char* name;
};
Load longest(std::initializer_list<Load>);

/// What bounds a run of one protocol; bytes of payload per second, seconds.
struct Limits {
  double channel = 0;             ///< threads of one channel, per operation
  double gpu = unlimited;         ///< links of a GPU inside its node
  double data_sheet = 0;          ///< of these, where they are NVLinks
  double nics = unlimited;        ///< of a node together, as far as channels use them
  double nics_used = 1;           ///< of the node's, that part: as far as the one with most channels lets them be busy
  double ll_network = unlimited;  ///< LL through a NIC, per channel, beyond the first pass
  double hop = 0, network_hop = 0;
  double hop_of_chunk = 0;  ///< of `network_hop`, what is in proportion to a small chunk
  double start = 0;
  double first_pass = 0;   ///< bytes that a channel's threads move at once, whose time the hop has
  double first_round = 1;  ///< of the latency before a ring's loops run on, what is seen
  double own_copy = 0;     ///< of one channel's threads, of what a ring's last operation received
  const char* gpu_name = "NVLink";
  const char* nics_name = "NIC";
};
/// Of a step's time for a chunk, what its hop inside the node already has.
inline double within_hop(const Limits& l, double chunk) {
  return std::min(fitted::ll_within_hop * std::min(chunk, l.first_pass), 0.9 * l.hop * l.channel) / l.channel;
}
/// Seconds of a chunk under LL on its way through a NIC, beyond the first pass.
inline double through_network(const Limits& l, double chunk) {
  return (chunk - fitted::ll_within_network_hop * std::min(chunk, l.first_pass)) / l.ll_network;
}
/// Of a hop between nodes, what is in proportion to a chunk of so many bytes, and the whole hop.
inline double hop_of_chunk(const Limits& l, double chunk) {
  return l.hop_of_chunk * std::min(1.0, chunk / fitted::whole_hop_chunk);
}
inline double network_hop(const Limits& l, double chunk) {
  return l.network_hop - l.hop_of_chunk + hop_of_chunk(l, chunk);
}
/// `start` grows with the plan's channels.
Limits limits(const Communicator&, const Plan&, bool tree);
/// The same of rings and chains: of straight NVLinks a GPU has those alone that their channels go over.
Limits ring_limits(const Communicator&, const Plan&);
/// Seconds that a host takes for a call, which are seen where its GPUs are done before.
double host_time(const Communicator&, CollectiveKind);

/// Steps of a ring are this many sends of a chunk; `out` of them cross nodes.
struct Hops {
  double all = 0, out = 0;
};
Hops ring_hops(const Communicator&, CollectiveKind);
/// NICs of a node among which it has the load of a ring's channels, or of trees' messages.
inline double nics_of_rings(const Communicator& c) { return c.nics.uneven ? c.nics.uneven->of_rings : c.nics.count; }
inline double nics_of_trees(const Communicator& c) { return c.nics.uneven ? c.nics.uneven->of_trees : c.nics.count; }
inline double relief_of_trees(const Communicator& c) { return c.nics.uneven ? c.nics.uneven->relief_of_trees : 1; }
/// Channels of the NIC that has most of them, of so many that share a plan's; UnevenNics' are the quotient of two whole
/// numbers, which rounding may make less.
inline double channels_of_a_nic(const Plan& plan, double nics) {
  return std::max(1.0, std::ceil(plan.channels / std::max(1.0, nics) - 1e-9));
}
inline double channels_of_a_nic(const Communicator& c, const Plan& plan) {
  return channels_of_a_nic(plan, nics_of_rings(c));
}
/// Messages cross the host's bridge on their way to a NIC.
inline bool over_host(const Communicator& c) { return c.ring.type_between >= PathType::phb; }
/// Channels whose messages wait for each other. Over the host's bridge all that a GPU's proxy has, which sends some and
/// takes in as many others.
double channels_in_line(const Communicator&, const Plan&);
/// Seconds that one message of each channel through a NIC takes because a proxy posts them one by one.
double message_gap(const Communicator&, const Plan&);
/// The same of a ring's loop with chunks of `chunk` bytes, beyond the messages that fit in the slots.
double message_gaps(const Communicator&, const Plan&, double hops, double chunk);

/// Around a ring: `full` loops of chunks of `most` bytes and one of `rest`.
struct Loops {
  double most = 0, full = 0, rest = 0;
};
Loops loops_of(const Communicator&, Bytes size, const Plan&);

/// Pieces of a ring's chunk that go on one by one.
inline int ring_slices(Protocol p) { return p == Protocol::simple ? 2 : 1; }
/// What threads, links and NICs take for a loop with chunks of `chunk` bytes.
Load ring_links(const Limits&, double hops, double chunk, const Plan&);
/// Links between leaves and spines, for that loop.
double ring_spines(const Communicator&, CollectiveKind, const Plan&, double hops, double chunk);
/// Of what links of PCIe and between sockets have by the machine's file, the payload that a run reaches: what is
/// reached of NCCL's number, or what a calibration has beyond it, up to all.
double pcie_share(const Communicator&, Protocol);
double pcie_share_of_pairs(const Communicator&, const Plan&);
/// The busiest of those links, for that loop.
Load ring_pcie(const Communicator&, CollectiveKind, const Plan&, double hops, double chunk);
/// The data's time of that loop: the same, or that of a proxy's lines of LL.
Load ring_load(const Limits&, double hops, double chunk, const Plan&);
/// What a channel's threads and a GPU's links reach of their rates, as the copy of what came last follows.
double ring_channel(const Limits&, double hops);
double ring_gpu(const Limits&, double hops, const Plan&);

/// Of a call's data.
inline double of_channel(Bytes size, const Plan& plan) { return static_cast<double>(size.value()) / plan.channels; }
/// Of a channel's data: full ones and a rest. Per byte they count as so many of the mean size; on its way the first
/// does.
struct Chunks {
  double count = 1, chunk = 0;
  double first = 0;
  static Chunks of(double all, double most) {
    const double count = std::max(1.0, std::ceil(all / most));
    return {count, all / count, std::min(all, most)};
  }
};
Chunks chain_chunks(const Communicator&, Bytes size, const Plan&);
/// Of a chain's channels, which under LL may have few threads.
Limits chain_limits(const Communicator&, const Plan&, const Chunks&);
/// Seconds of a call of a chain beyond the busiest rank's chunks.
double chain_latency(const Communicator&, const Limits&, const Plan&, const Chunks&);
Chunks tree_chunks(const Communicator&, Bytes size, const Plan&);

/// Payload under a protocol of what a line of the network carries, without what a host in front of it costs.
double of_line(const Communicator&, Protocol);
/// Seconds of so many bytes of payload over the busiest link between a leaf and a spine, of which lines carry that
/// share.
double over_spines(const Communicator&, double bytes, double of_line);
/// Of the first `count`; 0: nothing passes spines.
inline double first_of(const std::vector<double>& busiest, int count) {
  const std::size_t all = busiest.size();
  return all == 0 ? 0 : busiest[std::min(all, static_cast<std::size_t>(std::max(1, count))) - 1];
}
inline double first_of(const SpineLoad& load, int count) { return first_of(load.busiest, count); }
inline constexpr const char* spines_name = "uplinks of leaves";
/// What so many NICs of a node carry together, bytes of payload per second.
double network_rate(const Communicator&, Protocol, double nics);
/// Bytes of an all-reduce per second that these NICs allow whatever the algorithm, as each node sends 2(n-1)/n of them.
double most_across_nodes(const Communicator&, Protocol, double nics);

/// NCCL's own limit of a tree, one direction, and no more than the NICs carry.
double tree_rate(const Communicator&, const Plan&);
/// A chunk of each channel through the busiest NIC, seconds.
double tree_nics(const Communicator&, const Plan&, const Chunks&);
/// A chunk of each channel over links between leaves and spines.
double tree_spines(const Communicator&, const Plan&, const Chunks&);
/// A chunk of each channel past the busiest rank and NIC, behind others; and the first one.
Load tree_load(const Communicator&, const Limits&, const Plan&, const Chunks&);
Load first_tree_load(const Communicator&, const Limits&, const Plan&, const Chunks&);
/// Seconds that a simulated tree over nodes gains while what goes up has a NIC to itself, as nothing comes down yet: a
/// hop between nodes, and no more than half of the further chunks take. The closed form, which was fitted to measured
/// trees, has no such gain.
double tree_way_up_alone(const Communicator&, const Limits&, const Plan&, const Chunks&);
/// What a GPU of a tree over one node sends, up and down together, bytes per second; of several nodes the NICs are
/// slower, by which chunks come one after the other.
double tree_port(const Communicator&, const Limits&, const Plan&);
/// What a channel's threads of a GPU send, up and down together, bytes per second.
double tree_drive(const Communicator&, const Limits&, const Plan&);
/// Of a tree's chunk, which go on one by one inside a node: under LL and LL128, whose lines do.
int tree_pieces(const Communicator&, const Plan&, const Chunks&);
/// Seconds that a chunk, a tree's first, takes up the longest way to the root and down again, beyond the busiest rank's
/// chunks.
double tree_latency(const Communicator&, const Limits&, const Plan&, const Chunks&);
/// From the end of a node's chain up to the root: hops inside the node, levels of the tree over nodes, and messages
/// that pass NICs one after the other meanwhile, as a node's children are sent to at once.
struct TreeWay {
  double inside = 0, levels = 0, messages = 0;
};
/// What a NIC of several nodes carries of a protocol, bytes of payload per second.
double line_of_a_nic(const Communicator&, const Limits&);
/// What NICs take by their line for a chunk of each channel of one tree, which are there at once; seconds.
double tree_message(const Communicator&, const Limits&, const Plan&, const Chunks&);
/// What holds that rate: NCCL's cap on a tree's channel, or the links that its search booked.
const char* tree_rate_name(const Communicator&, const Plan&);
/// Messages of a tree's chunk through a NIC, the mean of both trees: an inner node sends up and twice down in one and
/// is a leaf of the other. Of three nodes it has one below it.
inline double tree_messages(const Communicator& c) { return c.nodes == 2 ? 1 : c.nodes == 3 ? 1.5 : 2; }
/// Messages of a chunk by the node that has most of them in one tree.
inline double most_tree_messages(const Communicator& c) { return std::min(c.nodes - 1, 3); }
/// Of a channel's threads, either direction's share.
double tree_threads(Protocol);
/// Those of which one is the longest. Calls of few channels have one of the two trees only.
std::vector<TreeWay> tree_ways(const Communicator&, const Plan&);

/// What one rank exchanges: with peers on its node and on others.
struct Exchange {
  double per_peer = 0, local_peers = 0, remote_peers = 0;
  double own_bytes = 0;      ///< that stay on the rank
  Bandwidth to_peers{};      ///< of a GPU to those on its node
  double relayed_peers = 0;  ///< of the remote ones, reached over a GPU beside another NIC
  double nic_bytes = 0;      ///< through the NICs of a node
  double nics = 0;           ///< how many those are
  double nics_rate = 0;      ///< of them together, bytes per second
  const char* nics_name = "NIC";
  int lanes = 1;         ///< of a pair, by which its channels go by NICs in turn
  int turns = 1;         ///< NICs of one rank that these are, at the most
  double of_line = 1;    ///< payload of what lines of the network carry
  double own_nics = 1;   ///< that send for this one rank, by PXN too
  double over_pcie = 0;  ///< of PcieLoads
};
Exchange exchange_of(const Communicator&, CollectiveKind, double bytes, const Plan&);

/// What bounds it, and its latencies; seconds, bytes per second.
struct PointToPoint {
  double local = 0;    ///< rate of a GPU's links inside its node, of the busiest where pairs have unlike ones
  double reached = 1;  ///< of what links of NVLink have
  double threads = 0;  ///< the channels' time, where a GPU needs more than there are
  double pair = 0;     ///< the time of one pair's channels, on different nodes
  double pcie = 0;     ///< of all parts over the busiest link of PCIe or between sockets
  double gaps = 0;     ///< between messages that NICs post one by one
  double start = 0, latency_inside = 0, latency_between = 0;
  double way_between = 0;  ///< of latency_between, what is on the network
  double last_piece = 0;   ///< until the last piece is in its place
};
PointToPoint point_to_point(const Communicator&, const Exchange&, const Plan&);

}  // namespace collcast::nccl
