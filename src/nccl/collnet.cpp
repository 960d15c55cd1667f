#include "nccl/collnet.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "nccl/nvls.hpp"

namespace collcast::nccl {

namespace {

const Graph& graph_of(const Communicator& c, Algorithm a) {
  return a == Algorithm::nvls ? *c.nvls : a == Algorithm::collnet_direct ? *c.collnet->direct : c.collnet->chain;
}

double nic_rate(const Communicator& c) {
  const double over_host = c.ring.type_between >= PathType::phb ? fitted::nic_over_host : 1;
  return c.nics.rate.value() * std::min(fitted::collnet_nic, over_host) * c.factors.network;
}

/// Of `lanes` heads or channels those that the busiest NIC has.
int most_at_a_nic(const Communicator& c, const Plan& plan, int lanes) {
  std::map<int, int> at;
  int most = 0;
  for (int lane = 0; lane < lanes; ++lane) most = std::max(most, ++at[collnet_nic(c, plan, lane)]);
  return most;
}

/// NCCL halves its chunk while there are too few for the depth [src/enqueue.cc].
double direct_chunk(const Communicator& c, double bytes, double together) {
  constexpr double depth = 2;
  double chunk = slot(c.environment, Protocol::simple);
  while (std::floor(bytes / (together * chunk)) < 64 * depth && chunk > 131072) chunk /= 2;
  while (std::floor(bytes / (together * chunk)) < 8 * depth && chunk > 32768) chunk /= 2;
  return chunk;
}

double chain_chunk(const Communicator& c, double bytes, double channels) {
  const double depth = c.ranks_per_node;
  double chunk = std::min(262144.0, slot(c.environment, Protocol::simple));
  while (std::floor(bytes / (channels * chunk)) < 64 * depth && chunk > 131072) chunk /= 2;
  while (std::floor(bytes / (channels * chunk)) < 8 * depth && chunk > 65536) chunk /= 2;
  while (std::floor(bytes / (channels * chunk)) < depth && chunk > 32768) chunk /= 2;
  return chunk;
}

/// Seconds that a proxy takes to post one chunk of each of a head's `channels`: up to eight are one request
/// [src/transport/coll_net.cc, COLLNET_GROUP_NSUBS].
double gap(const Communicator& c, int channels) {
  constexpr int of_a_request = 8;
  const int requests = (channels + of_a_request - 1) / of_a_request;
  return us * c.factors.message_gap * fitted::message_gap * requests;
}

/// What a head's NIC moves the busier way: its part of the sums; or the other nodes' parts of what is gathered.
double of_a_head(const Communicator& c, CollectiveKind kind, double bytes, int heads) {
  return kind == CollectiveKind::all_reduce ? bytes / heads : bytes * (c.nodes - 1) / c.ranks;
}

/// Of a chunk; seconds.
struct Stages {
  double all = 0;   ///< a GPU's or node's after the other, without the NICs'
  Load both{};      ///< what both ways take of a GPU
  double one = 0;   ///< what either way takes of it
  double hops = 0;  ///< latency inside nodes, there and back
  double ends = 0;  ///< before the busiest GPU's first send and after its last
  Load network{};   ///< the busiest NIC, the busier way
  double ways = 2;  ///< that the chunk is on it, in such times
};

/// The longer of the two pipes (see the file's top).
void add_pipes(const Stages& s, CollnetRun& out) {
  out.inside = s.both.seconds;
  out.network = s.network.seconds;
  const Load slowest = longest({{s.one, s.both.name}, s.network});
  const double first = s.hops + out.network_hop + s.all + s.ways * s.network.seconds;
  const double through = first + (out.count - 1) * slowest.seconds, busy = s.ends + out.count * s.both.seconds;
  out.data = through >= busy ? slowest : s.both;
  out.data.seconds *= out.count;
  out.latency = std::max(through, busy) - out.data.seconds;
}

/// Heads each have all channels of a run.
void add_network(const Communicator& c, CollectiveKind kind, double bytes, const Plan& plan, CollnetRun& out,
                 Stages& stages) {
  const int heads = collnet_heads(c, plan.algorithm), at_a_nic = most_at_a_nic(c, plan, heads);
  out.nic_load = of_a_head(c, kind, bytes, heads) * at_a_nic;
  stages.network =
      longest({{out.nic_load / nic_rate(c) / out.count, nics_name(c)}, {at_a_nic * gap(c, plan.channels), "messages"}});
  if (kind != CollectiveKind::all_reduce) stages.ways = c.nodes / (c.nodes - 1.0);
}

/// What a GPU sends to others of its node, as a share of all data.
double sends_inside(const Communicator& c, CollectiveKind kind, double heads) {
  const double others = c.ranks_per_node - 1;
  if (kind != CollectiveKind::all_reduce) return others / c.ranks_per_node;
  // To every other head its part, and as a head the sum to every other GPU.
  return (heads - 1 + others) / heads;
}

/// Of what a node hands out, the share that comes from others: its own GPUs' parts go while those are on the way.
double from_others(const Communicator& c, CollectiveKind kind) {
  return kind == CollectiveKind::all_gather ? (c.nodes - 1.0) / c.nodes : 1;
}

CollnetRun direct_run(const Communicator& c, CollectiveKind kind, double bytes, const Plan& plan) {
  const Limits l = limits(c, plan, false);
  const double heads = collnet_heads(c, plan.algorithm), together = plan.channels * heads;
  const double chunk = direct_chunk(c, bytes, together);
  CollnetRun out;
  out.start = l.start;
  out.hop = c.ranks_per_node == 1 ? 0 : l.hop;
  out.network_hop = l.network_hop;
  out.count = std::max(1.0, std::ceil(bytes / (together * chunk)));
  out.chunk = bytes / together / out.count;
  Stages stages;
  add_network(c, kind, bytes, plan, out, stages);
  // A head's threads send to the network, or receive from it, too.
  const double sends = sends_inside(c, kind, heads), at_nic = of_a_head(c, kind, bytes, static_cast<int>(heads));
  stages.both = longest(
      {{(sends * bytes + at_nic) / (plan.channels * l.channel), "channels"}, {sends * bytes / l.gpu, l.gpu_name}});
  stages.both.seconds /= out.count;
  const bool two_ways = kind == CollectiveKind::all_reduce;
  stages.all = stages.both.seconds * from_others(c, kind);
  stages.one = two_ways ? stages.both.seconds / 2 : stages.all;
  stages.hops = (two_ways ? 2 : 1) * out.hop;
  stages.ends = out.hop;
  add_pipes(stages, out);
  return out;
}

/// Sends inside the node of the GPU that has most of them over all channels: up and down at an inner one of a chain.
int most_chain_sends(const Communicator& c, const Plan& plan) {
  const std::vector<std::vector<int>>& orders = c.collnet->chain.order;
  std::map<int, int> sends;
  int most = 0;
  for (int channel = 0; channel < plan.channels; ++channel) {
    const std::vector<int>& order = orders[static_cast<std::size_t>(channel) % orders.size()];
    for (std::size_t i = 0; i < order.size(); ++i)
      most = std::max(most, sends[order[i]] += (i > 0 ? 1 : 0) + (i + 1 < order.size() ? 1 : 0));
  }
  return most;
}

CollnetRun chain_run(const Communicator& c, double bytes, const Plan& plan) {
  const Limits l = limits(c, plan, false);
  const double gpus = c.ranks_per_node, of_channel = bytes / plan.channels;
  CollnetRun out;
  out.start = l.start;
  out.hop = l.hop;
  out.network_hop = l.network_hop;
  out.count = std::max(1.0, std::ceil(of_channel / chain_chunk(c, bytes, plan.channels)));
  out.chunk = of_channel / out.count;
  const int at_a_nic = most_at_a_nic(c, plan, plan.channels);
  out.nic_load = of_channel * at_a_nic;
  const double moved = out.chunk / l.channel;
  Stages stages;
  stages.network = longest({{out.nic_load / nic_rate(c) / out.count, nics_name(c)}, {gap(c, at_a_nic), "messages"}});
  // A GPU's threads send up and down; those of the head to the network and from it.
  const double pcie =
      first_of(c.gpu.over_pcie.collnet_chains, plan.channels) * out.chunk / pcie_share(c, plan.protocol);
  stages.both =
      longest({{2 * moved, "channels"}, {most_chain_sends(c, plan) * out.chunk / l.gpu, l.gpu_name}, {pcie, "PCIe"}});
  stages.one = stages.both.seconds / 2;
  stages.all = 2 * gpus * moved;
  stages.hops = 2 * (gpus - 1) * l.hop;
  stages.ends = 2 * (gpus - 1) * (l.hop + moved);
  add_pipes(stages, out);
  return out;
}

/// In the node as on a node alone, whose pipe is full before the network's.
CollnetRun nvls_over_network(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const NvlsRun node = nvls_run(c, kind, size, plan);
  CollnetRun out;
  out.start = node.start;
  out.network_hop = limits(c, plan, false).network_hop;
  out.count = std::max(1.0, std::ceil(node.loops));
  out.chunk = static_cast<double>(size.value()) / plan.channels / c.nvls->channels / out.count;
  out.in_switch = node.before + node.filling;
  Stages stages;
  add_network(c, kind, static_cast<double>(size.value()), plan, out, stages);
  stages.both = {node.inside / out.count, node.data.name};
  stages.all = stages.one = stages.both.seconds * from_others(c, kind);
  stages.hops = stages.ends = out.in_switch;
  add_pipes(stages, out);
  return out;
}

}  // namespace

std::vector<int> collnet_head_channels(const Communicator& c, Algorithm a) {
  const std::vector<std::vector<int>>& orders = graph_of(c, a).order;
  std::vector<int> out, seen;
  for (int channel = 0; channel < std::ssize(orders); ++channel) {
    const int gpu = orders[static_cast<std::size_t>(channel)].front();
    if (std::ranges::find(seen, gpu) != seen.end()) continue;
    seen.push_back(gpu);
    out.push_back(channel);
  }
  return out;
}

int collnet_nic(const Communicator& c, const Plan& plan, int head) {
  const Graph& graph = graph_of(c, plan.algorithm);
  const std::size_t channel =
      plan.algorithm == Algorithm::collnet_chain
          ? static_cast<std::size_t>(head) % graph.order.size()
          : static_cast<std::size_t>(collnet_head_channels(c, plan.algorithm)[static_cast<std::size_t>(head)]);
  return channel < graph.nics.size() ? graph.nics[channel].in : static_cast<int>(channel) % std::max(1, c.nics.count);
}

CollnetRun collnet_run(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const double bytes = static_cast<double>(size.value());
  if (plan.algorithm == Algorithm::nvls) return nvls_over_network(c, kind, size, plan);
  return plan.algorithm == Algorithm::collnet_direct ? direct_run(c, kind, bytes, plan) : chain_run(c, bytes, plan);
}

}  // namespace collcast::nccl
