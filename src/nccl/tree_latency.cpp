// The way of a tree's first chunk (limits.hpp).
#include <algorithm>

#include "collcast/nccl/run.hpp"
#include "nccl/limits.hpp"

namespace collcast::nccl {

double tree_latency(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& all) {
  const Chunks cut{all.count, all.first, all.first};
  const double chunk = cut.chunk;
  const bool by_line = plan.protocol != Protocol::simple;
  const double moved = chunk / l.channel, piece = chunk / tree_pieces(c, plan, cut),
               each = first_tree_load(c, l, plan, cut).seconds;
  // All channels' first chunks, of LL and LL128 pieces, come up a chain at once, over links that they share; a piece's
  // hop has what threads take for it.
  const double of_link = piece * plan.channels / tree_port(c, l, plan);
  const double shared = by_line ? std::max(0.0, of_link - piece / tree_drive(c, l, plan)) : of_link;
  // Over the slowest links of PCIe and between sockets longer than that, where it is one node, and to a NIC than
  // through it.
  const PcieLoads& pcie = c.gpu.over_pcie;
  const double at_once = plan.channels / pcie_share(c, plan.protocol), lines = through_network(l, chunk);
  const double longer =
      c.nodes > 1 ? 0 : pcie.of_chain.count * std::max(0.0, pcie.of_chain.hop * piece * at_once - of_link);
  const double through_nic =
      std::max(moved + lines + (by_line ? 0 : hop_of_chunk(l, chunk)), chunk * plan.channels / l.nics);
  // Half of the channels are on the other tree, whose messages come the other way; lines come down while others go up.
  const double longer_to_nic = (by_line ? 0.5 : 1) * std::max(0.0, pcie.to_nic * chunk * at_once / 2 - through_nic);
  const auto seconds = [&](const TreeWay& way) {
    // LL and LL128 go on line by line inside a node; a NIC's message is the whole chunk under either.
    const double stops = by_line ? 1 : 2 * way.inside;
    // Of what is shared the busiest GPU's own is in the data.
    return 2 * (way.inside * l.hop + way.levels * network_hop(l, chunk)) +
           std::max(stops * moved, 2 * (way.inside * shared + (way.inside > 0 ? longer : 0)) - each) +
           2 * way.levels * (moved + lines + longer_to_nic);
  };
  double longest_way = 0;
  for (const TreeWay& way : tree_ways(c, plan)) longest_way = std::max(longest_way, seconds(way));
  return longest_way;
}

}  // namespace collcast::nccl
