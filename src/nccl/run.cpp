#include "collcast/nccl/run.hpp"

#include <algorithm>
#include <cmath>

#include "nccl/limits.hpp"

namespace collcast::nccl {

namespace {

Run finished(double start, double latency, const Load& data, double chunk, double loops) {
  return {Seconds(start), Seconds(latency), Seconds(data.seconds), data.name, Volume(chunk), loops};
}

/// Broadcast and reduce: a chain on which several calls are under way; the busiest rank moves every chunk once, and of
/// the way through the chain what the slots do not cover is seen at each call.
Run run_chain(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = chain_limits(c, plan);
  const Chunks cut = chain_chunks(c, size, plan);
  const auto [chunks, chunk] = cut;
  const double all = chunk * plan.channels;
  Load data = longest({{chunk / l.channel, "channels"},
                       {all / l.gpu, l.gpu_name},
                       {all / l.nics, l.nics_name},
                       {through_network(l, chunk), "messages"}});
  data.seconds *= chunks;
  return finished(l.start, chain_latency(c, l, plan, cut), data, chunk, chunks);
}

/// One loop around the ring: every rank has a chunk for each position. R hops of a chunk, R + 1 operations of a block,
/// as the last one only receives. A step waits for the first slice of the chunk before, so that a loop takes the longer
/// of its data and one walk around with a slice's data.
struct Loop {
  Load data;
  double bytes = 0;  ///< the data's time without the gaps between messages
  double gaps = 0;   ///< theirs
  double walk = 0;
};

Run run_ring(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan, false);
  const Hops way = ring_hops(c, kind);
  const double hops = way.all, out = way.out;
  const int slices = ring_slices(plan.protocol);
  const double latency = (hops - out) * l.hop + out * l.network_hop;
  const auto loop_of = [&](double chunk) {
    const Load bytes = ring_load(l, hops, chunk, plan);
    const double gaps = message_gaps(c, plan, hops, chunk);
    return Loop{longest({bytes, {gaps, "messages"}}), bytes.seconds, gaps,
                latency - (hops - out) * within_hop(l, chunk) + ring_links(l, hops, chunk, plan).seconds / slices +
                    out * through_network(l, chunk)};
  };
  const auto [most, full, rest] = loops_of(c, size, plan);
  const Loop large = loop_of(most), last = loop_of(rest);
  Load data{0, full > 0 ? large.data.name : last.data.name};
  double waits = 0;
  const auto add = [&](const Loop& loop, double times) {
    data.seconds += times * loop.data.seconds;
    waits += times * std::max(0.0, loop.walk - loop.data.seconds);
  };
  if (full > 0) add(large, full);
  if (rest > 0) add(last, 1);
  const Loop& first = full > 0 ? large : last;
  waits += until_first_round(c, plan, l, latency, hops, first.bytes, first.gaps);
  return finished(l.start, waits, data, full > 0 ? most : rest, full + (rest > 0 ? 1 : 0));
}

/// Up a chain in the node, over the double tree and down again: the block's threads are split between up and down.
Run run_tree(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan, true);
  const Chunks cut = tree_chunks(c, size, plan);
  const int levels = tree_levels(c.nodes);
  const double inside = c.ranks_per_node - 1;
  const double most = tree_rate(c, plan), threads = tree_threads(plan.protocol);
  Load data = longest({{cut.chunk / (threads * l.channel), "channels"},
                       {cut.chunk * plan.channels / most, tree_rate_name(c, plan)},
                       {tree_sends(c) * cut.chunk * plan.channels / l.gpu, l.gpu_name},
                       {c.nodes == 1 ? 0 : through_network(l, cut.chunk), "messages"},
                       {tree_messages(c) * message_gap(c, plan), "messages"}});
  data.seconds *= cut.count;
  // LL and LL128 go on line by line inside a node; a NIC's message is the whole chunk under either.
  const double stops = 2 * levels + (plan.protocol == Protocol::simple ? 2 * inside : 1);
  const double way = 2 * (inside * l.hop + levels * l.network_hop) + stops * cut.chunk / l.channel +
                     2 * levels * through_network(l, cut.chunk);
  return finished(l.start, way, data, cut.chunk, cut.count);
}

/// Of one head and channel: smaller while there are too few of them for all heads [src/enqueue.cc].
double nvls_tree_chunk(const Communicator& c, double bytes, double together) {
  const bool whole_slots = c.environment.version > 0 && c.environment.version < fitted::first_small_nvls_tree_chunk;
  double chunk = c.nodes >= 4 ? 65536 : whole_slots ? slot(c.environment, Protocol::simple) : most_nvls_chunk;
  if (chunk > 262144 && bytes < 32 * together * chunk) chunk = 262144;
  if (chunk > most_nvls_chunk && bytes < 16 * together * chunk) chunk = most_nvls_chunk;
  if (chunk > 65536 && bytes < 4 * together * chunk) chunk = 65536;
  if (chunk > 32768 && bytes < together * chunk) chunk = 32768;
  return chunk;
}

/// The same within a node [src/enqueue.cc].
double nvls_chunk(double bytes, double together) {
  double chunk = most_nvls_chunk;
  if (bytes < 64 * together * chunk) chunk = 65536;
  if (bytes < 8 * together * chunk && chunk > 32768) chunk = 32768;
  if (bytes < 2 * together * chunk && chunk > 16384) chunk = 16384;
  return chunk;
}

/// Fewer channels than NCCL takes by itself are no faster each: a guess, as no measurement has fewer.
double nvls_share(const Communicator& c, const Plan& plan) {
  return std::min(1.0, static_cast<double>(plan.channels) / usual_nvls_channels(c));
}

double nvls_start_time(const Communicator& c) { return us * c.factors.launch * fitted::launch[row_of(c)]; }

/// Multicast in the switch: what it has to scatter, reduce and gather of a loop's chunks fills a pipe, then flows at
/// the rate that NCCL's tuning has for it today. However little a loop has, every head is signalled.
Run run_nvls(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const NvlsRates rates = todays_nvls_rates(c, kind, plan.algorithm);
  check(rates.inside > 0, "a plan is of NCCL's table");
  const double bytes = static_cast<double>(size.value()), heads = c.nvls->channels, together = plan.channels * heads;
  const double chunk = nvls_chunk(bytes, together), loop = chunk * together, loops = bytes / loop;
  const double flags = us * c.factors.hop * fitted::nvls_flags[row_of(c)] * heads * (1 - chunk / most_nvls_chunk);
  const double full = loop / (rates.inside * c.factors.simple * nvls_share(c, plan));
  return finished(nvls_start_time(c),
                  us * c.factors.hop * fitted::nvls_start + fitted::nvls_fill * (std::min(1.0, loops) * full + flags),
                  {loops * full + std::max(1.0, loops) * flags, "NVLink"}, std::min(chunk, bytes),
                  std::max(1.0, loops));
}

/// The same in each node, and a tree over the nodes, whose levels fill one after the other.
Run run_nvls_tree(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const NvlsRates rates = todays_nvls_rates(c, kind, plan.algorithm);
  check(rates.inside > 0, "a plan is of NCCL's table");
  const double bytes = static_cast<double>(size.value());
  const double inside = rates.inside * c.factors.simple * nvls_share(c, plan), between = nvls_tree_network(c, rates);
  const double believed = std::min(inside, between);
  const double together = plan.channels * c.nvls->channels;
  const double chunk = nvls_tree_chunk(c, bytes, together);
  const double loop = chunk * together;
  const Load full = longest({{loop / inside, "NVLink"},
                             {loop / between, nvls_tree_network_name(c, rates)},
                             {loop / most_across_nodes(c, plan.protocol), nics_name(c)},
                             {nvls_tree_messages(c, plan), "messages"}});
  const double filling = std::min(bytes, loop) / believed;
  const int levels = floor_log2(c.nodes);
  // What waits for messages meanwhile hides as much of the filling.
  const double idle = bytes * (full.seconds / loop - 1 / believed);
  return finished(nvls_start_time(c),
                  us * c.factors.hop * fitted::nvls_tree_start + 2 * levels * nvls_tree_hop(c) +
                      std::max(0.0, fitted::nvls_tree_fill * levels * filling - idle),
                  {bytes * full.seconds / loop, full.name}, std::min(chunk, bytes), std::max(1.0, bytes / loop));
}

/// One rank per node, log2 of the nodes steps with growing parts.
Run run_pat(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan, true);
  const double bytes = static_cast<double>(size.value()) * (c.ranks - 1) / c.ranks;
  const double levels = std::ceil(std::log2(c.ranks));
  const Load data = longest({{2 * bytes / (plan.channels * l.channel), "channels"}, {bytes / l.nics, l.nics_name}});
  return finished(l.start, levels * l.network_hop, data, std::min(slot(c.environment, plan.protocol), bytes), 1);
}

Run run_point_to_point(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const Exchange e = exchange_of(c, kind, static_cast<double>(size.value()), plan);
  const PointToPoint p = point_to_point(c, e, plan);
  const Load data =
      longest({{p.threads, "channels"},
               {e.local_peers > 0 ? e.per_peer * e.local_peers / p.local : 0, c.nvlink ? "NVLink" : "PCIe"},
               {e.remote_peers > 0 ? e.nic_bytes / e.nics : 0, nics_name(c)},
               {p.gaps, "messages"}});
  return finished(p.start, p.latency_inside + p.latency_between + p.last_piece, data, e.per_peer, 1);
}

Run on_gpus(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  if (plan.point_to_point) return run_point_to_point(c, kind, size, plan);
  switch (plan.algorithm) {
    case Algorithm::tree:
      return run_tree(c, size, plan);
    case Algorithm::nvls:
      return run_nvls(c, kind, size, plan);
    case Algorithm::nvls_tree:
      return run_nvls_tree(c, kind, size, plan);
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

}  // namespace

Run run(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  if (c.ranks < 2 || size.value() == 0) return {};
  Run out = on_gpus(c, kind, size, plan);
  out.start += Seconds(std::max(0.0, host_time(c) - out.time().count()));
  return out;
}

}  // namespace collcast::nccl
