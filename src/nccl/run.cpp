#include "collcast/nccl/run.hpp"

#include <algorithm>
#include <cmath>

#include "nccl/collnet.hpp"
#include "nccl/limits.hpp"
#include "nccl/nvls.hpp"
#include "nccl/ring_loop.hpp"

namespace collcast::nccl {

namespace {

Run finished(double start, double latency, const Load& data, double chunk, double loops) {
  return {Seconds(start), Seconds(latency), Seconds(data.seconds), data.name, Volume(chunk), loops};
}

/// Broadcast and reduce: a chain on which several calls are under way; the busiest rank moves every chunk once, and of
/// the way through the chain what the slots do not cover is seen at each call.
Run run_chain(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const Chunks cut = chain_chunks(c, size, plan);
  const Limits l = chain_limits(c, plan, cut);
  const double chunk = cut.chunk;
  const double all = chunk * plan.channels;
  Load data = longest({{chunk / l.channel, "channels"},
                       {all / l.gpu, l.gpu_name},
                       {all / l.nics, l.nics_name},
                       {ring_spines(c, kind, plan, 1, chunk), spines_name},
                       ring_pcie(c, kind, plan, 1, chunk),
                       {through_network(l, chunk), "messages"}});
  data.seconds *= cut.count;
  return finished(l.start, chain_latency(c, l, plan, cut), data, cut.first, cut.count);
}

Run run_ring(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const Limits l = ring_limits(c, plan);
  const auto [most, full, rest] = loops_of(c, size, plan);
  const double longest_chunk = full > 0 ? most : rest;
  const RingLoop large = ring_loop(c, kind, plan, l, most, longest_chunk);
  const RingLoop last = ring_loop(c, kind, plan, l, rest, longest_chunk);
  const RingLoop& first = full > 0 ? large : last;
  Load data{0, first.data.name};
  double waits = 0;
  const auto wait = [](const RingLoop& loop, Seconds walk) { return std::max(0.0, walk.count() - loop.data.seconds); };
  const auto add = [&](const RingLoop& loop, double times) {
    data.seconds += times * loop.data.seconds;
    waits += times * wait(loop, loop.later_walk);
  };
  if (full > 0) add(large, full);
  if (rest > 0) add(last, 1);
  waits += wait(first, first.walk) - wait(first, first.later_walk);
  waits += until_first_round(c, kind, plan, l, first).count();
  return finished(l.start, waits, data, longest_chunk, full + (rest > 0 ? 1 : 0));
}

/// Up a chain in the node, over the double tree and down again: the block's threads are split between up and down.
Run run_tree(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan, true);
  const Chunks cut = tree_chunks(c, size, plan);
  Load data = tree_load(c, l, plan, cut);
  // The first chunk's pass is in the way, too. A NIC has chunks of both trees, of which one alone comes first.
  const double first = first_tree_load(c, l, plan, cut).seconds;
  data.seconds = data.seconds * (cut.count - 1) + first * (c.nodes > 1 ? 0.5 : 1);
  return finished(l.start, tree_latency(c, l, plan, cut), data, cut.first, cut.count);
}

/// A loop's chunks through the switch and, of several nodes, over the tree between them.
Run of_nvls(const NvlsRun& r, Bytes size) {
  return finished(r.start, r.before + 2 * r.levels * r.hop + r.filling, r.data,
                  std::min(r.chunk, static_cast<double>(size.value())), std::max(1.0, r.loops));
}

/// Up to the heads of the nodes, through the network that adds up, and down again.
Run of_collnet(const CollnetRun& r) { return finished(r.start, r.latency, r.data, r.chunk, r.count); }

/// Of what a channel has of each rank.
double pat_spines(const Communicator& c, const Plan& plan, double bytes) {
  if (!c.spines) return 0;
  const double part = bytes / plan.channels / c.ranks;
  return over_spines(c, first_of(c.spines->pat, plan.channels) * part, of_line(c, plan.protocol));
}

/// One rank per node, log2 of the nodes steps with growing parts.
Run run_pat(const Communicator& c, Bytes size, const Plan& plan) {
  const Limits l = limits(c, plan, true);
  const double bytes = static_cast<double>(size.value()) * (c.ranks - 1) / c.ranks;
  const double levels = std::ceil(std::log2(c.ranks));
  const Load data = longest({{2 * bytes / (plan.channels * l.channel), "channels"},
                             {bytes / l.nics, l.nics_name},
                             {pat_spines(c, plan, static_cast<double>(size.value())), spines_name}});
  const double part = static_cast<double>(size.value()) / plan.channels / c.ranks;
  const double chunk = std::min(slot(c.environment, plan.protocol), part);
  return finished(l.start, levels * network_hop(l, chunk), data, std::min(slot(c.environment, plan.protocol), bytes),
                  1);
}

/// Parts for one peer that the busiest link between a leaf and a spine has.
double parts_over_spines(const SpineLoads& spines, CollectiveKind kind, int turns) {
  switch (kind) {
    case CollectiveKind::alltoall:
      return first_of(spines.alltoall, turns);
    case CollectiveKind::scatter:
      return first_of(spines.scatter, turns);
    case CollectiveKind::gather:
      return first_of(spines.gather, turns);
    default:
      return first_of(spines.next, turns);
  }
}

Run run_point_to_point(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  const Exchange e = exchange_of(c, kind, static_cast<double>(size.value()), plan);
  const PointToPoint p = point_to_point(c, e, plan);
  const Load data = longest(
      {{std::max(p.threads, p.pair), "channels"},
       {e.local_peers > 0 ? e.per_peer * (e.local_peers + e.relayed_peers) / p.local : 0, c.nvlink ? "NVLink" : "PCIe"},
       {p.pcie, "PCIe"},
       {e.remote_peers > 0 ? e.nic_bytes / e.nics_rate : 0, e.nics_name},
       {c.spines ? over_spines(c, e.per_peer * parts_over_spines(*c.spines, kind, e.lanes), e.of_line) : 0,
        spines_name},
       {p.gaps, "messages"}});
  return finished(p.start, p.latency_inside + p.latency_between + p.last_piece, data, e.per_peer, 1);
}

Run on_gpus(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  if (plan.point_to_point) return run_point_to_point(c, kind, size, plan);
  if (is_collnet(plan.algorithm) || is_nvls_over_network(c, plan.algorithm))
    return of_collnet(collnet_run(c, kind, size, plan));
  switch (plan.algorithm) {
    case Algorithm::tree:
      return run_tree(c, size, plan);
    case Algorithm::nvls:
      return of_nvls(nvls_run(c, kind, size, plan), size);
    case Algorithm::nvls_tree:
      return of_nvls(nvls_tree_run(c, kind, size, plan), size);
    case Algorithm::pat:
      return run_pat(c, size, plan);
    default:
      break;
  }
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) return run_chain(c, kind, size, plan);
  return run_ring(c, kind, size, plan);
}

}  // namespace

Run run(const Communicator& c, CollectiveKind kind, Bytes size, const Plan& plan) {
  if (c.ranks < 2 || size.value() == 0) return {};
  Run out = on_gpus(c, kind, size, plan);
  out.start += Seconds(std::max(0.0, host_time(c, kind) - out.time().count()));
  return out;
}

}  // namespace collcast::nccl
