// The way of a tree's first chunk (limits.hpp).
#include <algorithm>

#include "collcast/nccl/run.hpp"
#include "nccl/limits.hpp"
#include "nccl/nic_loads.hpp"

namespace collcast::nccl {

double line_of_a_nic(const Communicator& c, const Limits& l) { return l.nics / l.nics_used / c.nics.count; }

double tree_message(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut) {
  return c.nodes == 1 ? 0 : first_tree_channels(c, plan) * cut.chunk / line_of_a_nic(c, l);
}

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
  // On one node over the slowest links of PCIe and between sockets longer than that; between nodes, where each hop has
  // what its own links take, over all of the chain; and to a NIC than through it.
  const PcieLoads& pcie = c.gpu.over_pcie;
  const double at_once = plan.channels / pcie_share(c, plan.protocol), lines = through_network(l, chunk);
  const double slowest = pcie.of_chain.count * std::max(0.0, pcie.of_chain.hop * piece * at_once - of_link);
  const double own = moved + lines + hop_of_chunk(l, chunk), message = tree_message(c, l, plan, cut);
  const double through_nic = std::max(own, chunk * plan.channels / l.nics);
  // Half of the channels are on the other tree, whose messages come the other way; lines come down while others go up.
  const double longer_to_nic = (by_line ? 0.5 : 1) * std::max(0.0, pcie.to_nic * chunk * at_once / 2 - through_nic);
  const auto seconds = [&](const TreeWay& way) {
    // LL and LL128 go on line by line inside a node; a NIC's message is the whole chunk under either.
    const double inside = (by_line ? 1 : 2 * way.inside) * moved;
    const double part = c.most_on_a_node > 1 ? way.inside / (c.most_on_a_node - 1) : 0;
    const double longer = c.nodes > 1 ? part * pcie.along_chain * piece * at_once : way.inside > 0 ? slowest : 0;
    const double links = 2 * (way.inside * shared + longer);
    // What each channel's own chunk takes through a NIC is counted below.
    const double nics = 2 * std::max(0.0, way.messages * message - way.levels * own);
    // Of what is shared the busiest GPU's or NIC's own is in the data, between nodes a half.
    const double further = std::max(0.0, links - inside) + nics;
    return 2 * (way.inside * l.hop + way.levels * network_hop(l, chunk)) + inside +
           std::max(0.0, further - (c.nodes > 1 ? 0.5 : 1) * each) + 2 * way.levels * (moved + lines + longer_to_nic);
  };
  double longest_way = 0;
  for (const TreeWay& way : tree_ways(c, plan)) longest_way = std::max(longest_way, seconds(way));
  return longest_way;
}

}  // namespace collcast::nccl
