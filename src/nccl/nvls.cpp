#include "nccl/nvls.hpp"

#include <algorithm>
#include <set>

namespace collcast::nccl {

namespace {

/// Of one head and channel: smaller while there are too few of them for all heads [src/enqueue.cc].
double nvls_chunk(double most, double bytes, double together) {
  double chunk = most;
  if (bytes < 64 * together * chunk && chunk > 65536) chunk = 65536;
  if (bytes < 8 * together * chunk && chunk > 32768) chunk = 32768;
  if (bytes < 2 * together * chunk && chunk > 16384) chunk = 16384;
  return chunk;
}

double bytes_of(std::optional<Bytes> size, double otherwise) {
  return size ? static_cast<double>(size->value()) : otherwise;
}

/// Small where NCCL believes an all_reduce over the network's reduction to be slow; no more than a slot, whatever the
/// variable says [src/enqueue.cc].
double most_chunk(const Communicator& c) {
  const double most =
      std::min(slot(c.environment, Protocol::simple), bytes_of(c.environment.nvls_chunk, most_nvls_chunk));
  if (c.nodes == 1) return most;
  constexpr double slow = 150e9;  // bytes per second
  const double believed = todays_nvls_rates(c, CollectiveKind::all_reduce, Algorithm::nvls).believed;
  return believed < slow ? std::min(most, 32768.0) : most;
}

/// The same of a tree over nodes [src/enqueue.cc].
double nvls_tree_chunk(const Communicator& c, double bytes, double together) {
  const bool whole_slots =
      c.environment.launch.version > 0 && c.environment.launch.version < fitted::first_small_nvls_tree_chunk;
  double chunk =
      bytes_of(c.environment.nvls_chunk, whole_slots ? slot(c.environment, Protocol::simple) : most_nvls_chunk);
  chunk = std::min(chunk, bytes_of(c.environment.nvls_tree_chunk, c.nodes >= 4 ? 65536 : chunk));
  if (chunk > 262144 && bytes < 32 * together * chunk) chunk = 262144;
  if (chunk > most_nvls_chunk && bytes < 16 * together * chunk) chunk = most_nvls_chunk;
  if (chunk > 65536 && bytes < 4 * together * chunk) chunk = 65536;
  if (chunk > 32768 && bytes < together * chunk) chunk = 32768;
  return chunk;
}

/// Fewer channels than NCCL takes by itself are no faster each: a guess, as no measurement has fewer.
double nvls_share(const Communicator& c, const Plan& plan) {
  return std::min(1.0, static_cast<double>(plan.channels) / usual_nvls_channels(c));
}

double nvls_start_time(const Communicator& c) { return us * c.factors.launch * fitted::launch[row_of(c)]; }

double nvls_tree_hop(const Communicator& c) {
  const double ll = us * fitted::network_hop[0], beyond = us * fitted::nvls_tree_hop - ll;
  return c.factors.network_hop * (ll + c.network_latency.count()) + c.factors.simple_network_hop * beyond;
}

/// Seconds that a loop's flags of so many heads take, where chunks are smaller than those that NCCL's rate is of.
double nvls_flags(const Communicator& c, double heads, double chunk) {
  return us * c.factors.hop * fitted::nvls_flags[row_of(c)] * heads * std::max(0.0, 1 - chunk / most_nvls_chunk);
}

/// What the nodes of a tree reach between them, bytes of payload per second: what NICs are booked for, and beyond two
/// nodes, whose cap is below what they reach, no more than NCCL's cap on so many heads as it keeps busy.
struct Between {
  double rate;
  const char* name;
};
Between nvls_tree_network(const Communicator& c, const NvlsRates& rates) {
  const double cap =
      c.nodes == 2 ? unlimited : std::min(1.0, fitted::most_nvls_tree_heads / c.nvls->channels) * rates.cap;
  return {std::min(rates.booked, cap) * c.factors.network,
          cap < rates.booked ? "NCCL's cap on an NVLS tree's head" : nics_name(c)};
}

/// Of a node: those of heads, and no more than rings have, which of a rack are fewer than its heads.
double nics_of_tree(const Communicator& c) { return std::clamp(nics_of_heads(c), 1, std::max(1, c.nics.count)); }

/// Seconds that one chunk of each head and channel takes as a NIC's messages.
double nvls_tree_messages(const Communicator& c, const Plan& plan) {
  const double of_a_nic = static_cast<double>(plan.channels) * c.nvls->channels / nics_of_tree(c);
  return tree_messages(c) * of_a_nic * us * c.factors.message_gap * fitted::nvls_tree_message_gap;
}

/// Seconds of a loop's chunks of all heads on links between leaves and spines, and what the way up and down of one of
/// them has beyond a NIC's.
struct SpineTimes {
  double loop = 0, way = 0;
};
SpineTimes spines_of(const Communicator& c, const Plan& plan, double chunk, double of_nics) {
  if (!c.spines) return {};
  const double message = over_spines(c, chunk * plan.channels / 2, of_line(c, plan.protocol));
  const double busiest = first_of(c.spines->nvls_trees, 1);
  return {busiest * message, 2 * c.spines->nvls_tree_way * std::max(0.0, message - of_nics / tree_messages(c) / 2)};
}

NvlsRates rates_of(const Communicator& c, CollectiveKind kind, const Plan& plan) {
  NvlsRates out = todays_nvls_rates(c, kind, plan.algorithm);
  check(out.inside > 0, "a plan is of NCCL's table");
  out.inside = out.inside * c.factors.simple * nvls_share(c, plan);
  return out;
}

}  // namespace

int nics_of_heads(const Communicator& c) {
  std::set<int> nics;
  for (const ChannelNics& one : c.nvls->nics) nics.insert(one.in);
  return nics.empty() ? std::clamp(c.nics.count, 1, c.nvls->channels) : static_cast<int>(nics.size());
}

/// What a node has to scatter, reduce and gather of a loop's chunks fills a pipe, then flows at the rate that NCCL's
/// tuning has for it today. However little a loop has, every head is signalled.
NvlsRun nvls_run(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const NvlsRates rates = rates_of(c, kind, plan);
  const double bytes = static_cast<double>(size.value()), heads = c.nvls->channels, together = plan.channels * heads;
  const double chunk = nvls_chunk(most_chunk(c), bytes, together), loop = chunk * together, loops = bytes / loop;
  const double flags = nvls_flags(c, heads, chunk);
  const double full = loop / rates.inside;
  NvlsRun out;
  out.start = nvls_start_time(c);
  out.before = us * c.factors.hop * fitted::nvls_start;
  out.filling = fitted::nvls_fill * (std::min(1.0, loops) * full + flags);
  out.data = {loops * full + std::max(1.0, loops) * flags, "NVLink"};
  out.chunk = chunk;
  out.loops = loops;
  out.inside = out.data.seconds;
  return out;
}

/// The same in each node, and a tree over the nodes, whose levels fill one after the other.
NvlsRun nvls_tree_run(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const NvlsRates rates = rates_of(c, kind, plan);
  const Between between = nvls_tree_network(c, rates);
  const double bytes = static_cast<double>(size.value());
  const double believed = std::min(rates.inside, between.rate);
  const double together = plan.channels * c.nvls->channels, chunk = nvls_tree_chunk(c, bytes, together);
  const double loop = chunk * together;
  const Load network = longest({{loop / between.rate, between.name},
                                {loop / most_across_nodes(c, plan.protocol, nics_of_tree(c)), nics_name(c)},
                                {nvls_tree_messages(c, plan), "messages"}});
  const Load full = longest({{loop / rates.inside, "NVLink"}, network});
  const SpineTimes spines = spines_of(c, plan, chunk, network.seconds);
  // Fitted trees are of boxes, whose heads' flags are in what was fitted; a rack has more heads.
  const double flags = nvls_flags(c, std::max(0.0, c.nvls->channels - fitted::nvls_tree_heads), chunk);
  NvlsRun out;
  out.start = nvls_start_time(c);
  out.before = us * c.factors.hop * fitted::nvls_tree_start + fitted::nvls_fill * flags;
  out.loops = bytes / loop;
  out.levels = tree_levels(c.nodes);
  // The fitted filling goes with the logarithm that NCCL counts with: on 5 and 10 nodes by a tenth nearer.
  const int counted = floor_log2(c.nodes);
  out.hop = nvls_tree_hop(c);
  // What waits for messages meanwhile hides as much of the filling.
  const double idle = bytes * (full.seconds / loop - 1 / believed);
  out.filling = std::max(0.0, fitted::nvls_tree_fill * counted * (std::min(bytes, loop) / believed) - idle);
  out.filling += std::min(1.0, out.loops) * spines.way;
  out.chunk = chunk;
  out.inside = bytes / rates.inside + std::max(1.0, out.loops) * flags;
  out.between = out.loops * network.seconds;
  out.data = longest({{out.inside, "NVLink"}, {out.between, network.name}, {out.loops * spines.loop, spines_name}});
  return out;
}

}  // namespace collcast::nccl
