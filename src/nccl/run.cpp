#include "collcast/nccl/run.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "nccl/run_constants.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

constexpr double unlimited = 1e18;
constexpr double us = 1e-6;

std::size_t index(Protocol p) { return static_cast<std::size_t>(p); }
std::size_t row_of(const Communicator& c) { return static_cast<std::size_t>(generation(c)); }

double payload(Protocol p) { return p == Protocol::ll ? 0.5 : p == Protocol::ll128 ? 15.0 / 16 : 1.0; }

/// Payload of one slot: an eighth of the connection's buffer.
double slot(const Environment& e, Protocol p) {
  const Bytes buffer = p == Protocol::ll ? e.ll_buffer : p == Protocol::ll128 ? e.ll128_buffer : e.simple_buffer;
  return static_cast<double>(buffer.value()) / 8 * payload(p);
}

/// Of a calibration: what a node's links carry.
double link_factor(const Communicator& c, Protocol p) {
  return p == Protocol::ll ? c.factors.ll : p == Protocol::ll128 ? c.factors.ll128 : c.factors.simple;
}

/// What bounds a run of one protocol; bytes of payload per second, seconds.
struct Limits {
  double channel = 0;             ///< threads of one channel, per operation
  double gpu = unlimited;         ///< links of a GPU inside its node
  double nics = unlimited;        ///< of a node together
  double ll_network = unlimited;  ///< LL through a NIC, per channel
  double hop = 0, network_hop = 0;
  double start = 0;
  const char* gpu_name = "NVLink";
};

Limits limits(const Communicator& c, Protocol p, bool tree) {
  const std::size_t i = index(p), g = row_of(c);
  Limits out;
  const double simple = fitted::simple_channel[g];
  const double ll = fitted::ll_multiple * tuned::ll_total[g][0] / fitted::channels_of_a_node[g];
  out.channel = 1e9 * (p == Protocol::ll ? ll : p == Protocol::ll128 ? fitted::ll128_share * simple : simple);
  if (c.ranks_per_node > 1) {
    const double searched = c.ring.channels * c.ring.inside.value() * fitted::pcie_efficiency;
    out.gpu = (c.nvlink ? c.gpu_rate.value() * fitted::nvlink_efficiency : searched) * payload(p);
    out.gpu *= link_factor(c, p);
    out.gpu_name = c.nvlink ? "NVLink" : "PCIe";
  }
  if (c.nodes > 1) {
    const bool is_ll = p == Protocol::ll;
    out.nics = c.nics * c.nic_rate.value() * fitted::nic_efficiency * c.factors.network *
               (is_ll ? fitted::ll_nic_payload : payload(p));
    if (is_ll) out.ll_network = fitted::ll_network_channel * 1e9;
  }
  out.hop = us * c.factors.hop * (c.nvlink ? fitted::nvlink_hop[i] : fitted::pcie_hop[i]);
  const double factor = tree && p != Protocol::simple ? fitted::tree_to_ring_hop : 1;
  out.network_hop = c.factors.network_hop * (us * fitted::network_hop[i] * factor + c.network_latency.count());
  out.start = us * c.factors.launch * (fitted::launch + fitted::start[i]);
  return out;
}

/// The longest of several times, by name.
struct Load {
  double seconds;
  const char* name;
};
Load longest(std::initializer_list<Load> loads) {
  return *std::max_element(loads.begin(), loads.end(),
                           [](const Load& a, const Load& b) { return a.seconds < b.seconds; });
}

Run finished(double start, double latency, const Load& data, double chunk, double loops) {
  return {Seconds(start), Seconds(latency), Seconds(data.seconds), data.name, Volume(chunk), loops};
}

/// Broadcast and reduce: a chain on which several calls are under way; the busiest rank moves every chunk once.
Run run_chain(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan.protocol, false);
  const double of_channel = static_cast<double>(size.value()) / plan.channels;
  const double most = slot(c.environment, plan.protocol);
  const double chunks = std::max(1.0, std::ceil(of_channel / most)), chunk = std::min(of_channel, most);
  const double all = chunk * plan.channels;
  Load data = longest({{chunk / l.channel, "channels"},
                       {all / l.gpu, l.gpu_name},
                       {all / l.nics, "NIC"},
                       {chunk / l.ll_network, "messages"}});
  data.seconds *= chunks;
  return finished(l.start, l.hop, data, chunk, chunks);
}

/// One loop around the ring: every rank has a chunk for each position. R hops of a chunk, R + 1 operations of a block,
/// as the last one only receives. A step waits for the first slice of the chunk before, so that a loop takes the longer
/// of its data and one walk around with a slice's data.
struct Loop {
  Load data;
  double bytes = 0;  ///< the data's time without the gaps between messages
  double walk = 0;
};

Run run_ring(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan.protocol, false);
  const double rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double hops = rounds * (c.ranks - 1);
  const double slices = plan.protocol == Protocol::simple ? 2 : 1;
  const double out = c.nodes == 1 ? 0 : std::min(hops, rounds * c.nodes);  // of one chunk's way
  const double latency = (hops - out) * l.hop + out * l.network_hop;
  const double gap = c.nodes == 1 ? 0 : std::max(0.0, hops - fitted::slots) * fitted::message_gap * us;
  const auto loop_of = [&](double chunk) {
    const double all = chunk * plan.channels;
    const Load bytes = longest({{(hops + 1) * chunk / l.channel, "channels"},
                                {hops * all / l.gpu, l.gpu_name},
                                {hops * all / l.nics, "NIC"},
                                {hops * chunk / l.ll_network, "messages"}});
    return Loop{longest({bytes, {gap, "messages"}}), bytes.seconds,
                latency + bytes.seconds / slices + out * chunk / l.ll_network};
  };
  // Simple: half of the buffer is a chunk; else a slot.
  const double most = slot(c.environment, plan.protocol) * (plan.protocol == Protocol::simple ? 4 : 1);
  const double of_channel = static_cast<double>(size.value()) / plan.channels;
  const double full = std::floor(of_channel / (most * c.ranks));
  const double rest = of_channel / c.ranks - full * most;
  const Loop large = loop_of(most), last = loop_of(rest);
  Load data{0, full > 0 ? large.data.name : last.data.name};
  double waits = 0;
  const auto add = [&](const Loop& loop, double times) {
    data.seconds += times * loop.data.seconds;
    waits += times * std::max(0.0, loop.walk - loop.data.seconds);
  };
  if (full > 0) add(large, full);
  if (rest > 0) add(last, 1);
  // Until the first chunk has come round, or the first slice where that is sooner.
  waits += std::min(latency, (full > 0 ? large : last).bytes * (1 - 1 / slices));
  return finished(l.start, waits, data, std::min(most, of_channel / c.ranks), full + (rest > 0 ? 1 : 0));
}

/// LL128 in trees halves its chunk while there are too few of them to fill the tree.
double tree_chunk(const Communicator& c, Bytes size, const Plan& plan) {
  double chunk = slot(c.environment, plan.protocol);
  if (plan.protocol != Protocol::ll128) return chunk;
  chunk = std::min(chunk, static_cast<double>(size.value()) / plan.channels);
  const double depth = 1 + floor_log2(c.nodes) + 0.1 * c.ranks_per_node;
  const auto few = [&](double factor) {
    return static_cast<double>(size.value()) / (plan.channels * chunk) < factor * depth / c.ranks_per_node;
  };
  while (chunk > 131072 && few(64)) chunk /= 2;
  while (chunk > 32768 && few(16)) chunk /= 2;
  return chunk;
}

/// Up a chain in the node, over the double tree and down again: the block's threads are split between up and down.
Run run_tree(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan.protocol, true);
  const double of_channel = static_cast<double>(size.value()) / plan.channels;
  const double chunks = std::max(1.0, std::ceil(of_channel / tree_chunk(c, size, plan)));
  const double chunk = of_channel / chunks;
  const int levels = floor_log2(c.nodes);
  const double inside = c.ranks_per_node - 1;
  const std::size_t g = row_of(c), scale = scale_of(c);
  const double speed = (c.nodes <= 2 ? c.tree.inside : c.tree.between).value();
  // NCCL's own limit of a tree, both directions: half of it is the algorithm's.
  double most =
      0.5 * fitted::tree_efficiency * c.tree.channels * std::min(0.92 * speed, 1e9 * tuned::tree_per_channel[g][scale]);
  most *= c.nodes == 1 ? link_factor(c, plan.protocol) : c.factors.network;
  if (plan.protocol == Protocol::ll128) most *= c.nodes == 1 ? 7.0 / 9 : 120.0 / 128;
  if (plan.protocol == Protocol::ll) most /= 3.8;
  const double threads = plan.protocol == Protocol::simple ? 0.5 : 0.6;
  Load data = longest({{chunk / (threads * l.channel), "channels"},
                       {chunk * plan.channels / most, c.nodes == 1 ? l.gpu_name : "NIC"},
                       {c.nodes == 1 ? 0 : chunk / l.ll_network, "messages"}});
  data.seconds *= chunks;
  const double way = 2 * (inside * l.hop + levels * l.network_hop) + 2 * (inside + levels) * chunk / l.channel +
                     2 * levels * chunk / l.ll_network;
  return finished(l.start, way, data, chunk, chunks);
}

/// Multicast in the switch at the rate that NCCL's tuning has for it, after a loop's data has filled the pipe.
Run run_nvls(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const auto table = tuning_table(c, kind, size);
  const auto one = std::find_if(table.begin(), table.end(), [&](const Candidate& t) {
    return t.algorithm == plan.algorithm && t.protocol == plan.protocol;
  });
  check(one != table.end() && one->bandwidth.value() > 0, "a plan is of NCCL's table");
  const bool tree = plan.algorithm == Algorithm::nvls_tree;
  const double bytes = static_cast<double>(size.value());
  const double rate = one->bandwidth.value() * (tree ? c.factors.network : c.factors.simple);
  const double chunk = 128 << 10, loop = chunk * plan.channels * c.nvls->channels;
  const double filling = std::min(bytes, loop) / rate;
  const int levels = tree ? floor_log2(c.nodes) : 0;
  const double fill = tree ? fitted::nvls_tree_fill * levels : fitted::nvls_fill;
  const double hops = 2 * levels * c.factors.network_hop * (us * fitted::nvls_tree_hop + c.network_latency.count());
  return finished(us * c.factors.launch * fitted::launch,
                  us * c.factors.hop * fitted::nvls_start + hops + fill * filling,
                  {bytes / rate, tree ? "NIC" : "NVLink"}, std::min(chunk, bytes), std::max(1.0, bytes / loop));
}

/// One rank per node, log2 of the nodes steps with growing parts.
Run run_pat(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan.protocol, true);
  const double bytes = static_cast<double>(size.value()) * (c.ranks - 1) / c.ranks;
  const double levels = std::ceil(std::log2(c.ranks));
  const Load data = longest({{2 * bytes / (plan.channels * l.channel), "channels"}, {bytes / l.nics, "NIC"}});
  return finished(l.start, levels * l.network_hop, data, std::min(slot(c.environment, plan.protocol), bytes), 1);
}

/// What one rank exchanges: with peers on its node and on others.
struct Exchange {
  double per_peer = 0, local_peers = 0, remote_peers = 0;
  double nic_bytes = 0;  ///< through the NICs of a node
  double nics = 0;       ///< rate of those NICs
  double own_bytes = 0;  ///< that stay on the rank
  double gpu_bytes = 0;  ///< moved by its threads, its own part included
};

Exchange exchange_of(const Communicator& c, CollectiveKind kind, double bytes, const Plan& plan) {
  const double per_node = c.ranks_per_node, others = c.ranks - per_node;
  const double nic = c.nic_rate.value() * fitted::p2p_nic_efficiency * c.factors.network;
  if (kind == CollectiveKind::sendrecv) {
    const double to_peer = std::min(nic, plan.channels * fitted::p2p_network_channel * 1e9);
    return {bytes, per_node > 1 ? 1.0 : 0.0, c.nodes > 1 ? 1.0 : 0.0, bytes, to_peer, 0};
  }
  const double part = bytes / c.ranks;
  if (kind == CollectiveKind::alltoall)
    return {part, per_node - 1, others, part * others * per_node, c.nics * nic, part};
  return {part, per_node - 1, others, part * others, nic, part};  // gather, scatter: the root's
}

Run run_point_to_point(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const Exchange e = exchange_of(c, kind, static_cast<double>(size.value()), plan);
  const bool local = e.local_peers > 0, remote = e.remote_peers > 0;
  const double rate = c.factors.simple * (c.nvlink ? c.gpu_rate.value() * fitted::p2p_nvlink_efficiency
                                                   : c.ring.channels * c.ring.inside.value() * fitted::pcie_efficiency);
  const double ranks_per_nic = c.nics > 0 ? std::max(1.0, static_cast<double>(c.ranks_per_node) / c.nics) : 1;
  // Across nodes all peers together have more channels than a GPU needs.
  const bool by_channel = local && c.nvlink && c.nodes == 1;
  const double channels = std::min(static_cast<double>(c.p2p_channels), plan.channels * e.local_peers);
  const Load data =
      longest({{by_channel ? (e.per_peer * e.local_peers + e.own_bytes / fitted::p2p_own_copy) /
                                 (channels * fitted::p2p_channel[row_of(c)] * 1e9)
                           : 0,
                "channels"},
               {local ? e.per_peer * e.local_peers / rate : 0, c.nvlink ? "NVLink" : "PCIe"},
               {remote ? e.nic_bytes / e.nics : 0, "NIC"},
               {us * std::max(0.0, e.remote_peers - fitted::slots) * fitted::message_gap * ranks_per_nic, "messages"}});
  double latency = us * fitted::p2p_per_peer * e.local_peers;
  if (remote) latency += c.factors.network_hop * (us * fitted::network_hop[0] + c.network_latency.count());
  const double start = us * c.factors.launch * c.factors.point_to_point_launch *
                       (fitted::p2p_launch + (plan.protocol == Protocol::simple ? fitted::p2p_simple : 0));
  return finished(start, latency, data, e.per_peer, 1);
}

}  // namespace

Run run(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  if (c.ranks < 2 || size.value() == 0) return {};
  if (plan.point_to_point) return run_point_to_point(c, kind, size, plan);
  switch (plan.algorithm) {
    case Algorithm::tree:
      return run_tree(c, size, plan);
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return run_nvls(c, kind, size, plan);
    case Algorithm::pat:
      return run_pat(c, size, plan);
    case Algorithm::ring:
      break;
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      check(false, "no plan has an algorithm that is never available");
  }
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) return run_chain(c, size, plan);
  return run_ring(c, kind, size, plan);
}

}  // namespace collcast::nccl
