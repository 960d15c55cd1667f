#include "nccl/ring_loop.hpp"

#include <algorithm>

namespace collcast::nccl {

namespace {

/// By uneven NICs, until the last of all chunks that a ring's channel sends through the busiest one is there: by LL and
/// LL128, whose chunks are not halved, nothing hides its hop behind them.
double last_through_nic(const Communicator& c, const Limits& l, const Plan& plan, double hops, double chunk) {
  if (!c.nics.uneven || ring_slices(plan.protocol) > 1) return 0;
  const double lines = through_network(l, chunk);
  return hops * std::max(lines, chunk * plan.channels / l.nics) + network_hop(l, chunk) +
         std::min(lines, chunk / ring_channel(l, hops));
}

}  // namespace

RingLoop ring_loop(const Communicator& c, CollectiveKind kind, const Plan& plan, const Limits& l, double chunk,
                   double longest_chunk) {
  const Hops way = ring_hops(c, kind);
  const double hops = way.all, out = way.out;
  // A loop waits for the one before over all hops but one, each loop for another's: of many loops by uneven NICs,
  // the mean of all those ways. Even ones are measured, with the longest.
  const double later_out = c.nics.uneven ? std::min(out, hops * c.nodes / c.ranks) : out;
  const double over_leaves = c.spines ? c.spines->ring_share * out : 0;
  const int slices = ring_slices(plan.protocol);
  // Hops that cross no NIC do not take its time; but where nodes have unlike numbers, some have few others. By lines
  // that is said by last_through_nic().
  Limits within = l;
  if (nodes_alike(c) || (c.nics.uneven && slices == 1)) within.nics = unlimited;
  const auto latency_of = [&](double crossing) {
    return (hops - crossing) * l.hop + crossing * network_hop(l, longest_chunk);
  };
  const auto walk_of = [&](double crossing) {
    const double links = (hops - crossing) * ring_links(within, hops, chunk, plan).seconds / hops +
                         crossing * ring_links(l, hops, chunk, plan).seconds / hops;
    return latency_of(crossing) - (hops - crossing) * within_hop(l, chunk) + links / slices +
           crossing * through_network(l, chunk);
  };
  const Load bytes = ring_load(l, hops, chunk, plan);
  const double gaps = message_gaps(c, plan, hops, chunk);
  const Load spines{ring_spines(c, kind, plan, hops, chunk), spines_name};
  // What a send over a spine takes longer than others between nodes.
  const double others = ring_links(l, hops, chunk, plan).seconds + hops * through_network(l, chunk);
  const double of_spines = over_leaves * std::max(0.0, spines.seconds - others) / hops;
  // And over the slowest link of a node.
  const PcieLoads::Slowest& slowest = c.gpu.over_pcie.of_ring;
  const double of_slowest = slowest.hop * chunk * plan.channels / pcie_share(c, plan.protocol);
  const double longer = of_spines + hops * slowest.count * std::max(0.0, of_slowest - others / hops);
  const Load links = longest({bytes, spines, ring_pcie(c, kind, plan, hops, chunk)});
  const double walk = std::max(walk_of(out) + longer / slices, last_through_nic(c, l, plan, hops, chunk));
  return {.data = longest({links, {gaps, "messages"}}),
          .latency = Seconds(latency_of(out)),
          .bytes = Seconds(bytes.seconds),
          .gaps = Seconds(gaps),
          .walk = Seconds(walk),
          .later_walk = Seconds(walk_of(later_out) + longer / slices),
          .without_gaps = Seconds(std::max(links.seconds, walk))};
}

Seconds until_first_round(const Communicator& c, CollectiveKind kind, const Plan& plan, const Limits& l,
                          const RingLoop& first) {
  const int slices = ring_slices(plan.protocol);
  const double hops = ring_hops(c, kind).all;
  const Seconds until = std::min(l.first_round * first.latency, first.bytes * (1 - 1.0 / slices)) +
                        (slices > 1 ? fitted::first_slice * first.bytes / (hops * slices) : Seconds());
  // Where the channels of a proxy wait for each other, the last one's first message goes after all the others'.
  const Seconds last_in_line(over_host(c) ? message_gap(c, plan) * (1 - 1 / channels_in_line(c, plan)) : 0);
  const Seconds idle = std::max(Seconds(), first.gaps - first.without_gaps);
  return std::max(Seconds(), until - idle) + last_in_line;
}

}  // namespace collcast::nccl
