// Of chains, broadcast and reduce, what chunks and channels take (limits.hpp): a channel's data goes in whole slots and
// a rest. What each byte takes is that of the mean chunk; what goes around, waiting for its way, is the first one.
#include <algorithm>

#include "collcast/nccl/run.hpp"
#include "nccl/limits.hpp"

namespace collcast::nccl {

Chunks chain_chunks(const Communicator& c, Bytes size, const Plan& plan) {
  return Chunks::of(of_channel(size, plan), slot(c.environment, plan.protocol));
}

namespace {

/// Seconds that a chunk takes of a GPU's threads under LL: as many passes as its threads need, which a load's latency
/// holds and not what they move.
double ll_passes(const Communicator& c, const Limits& l, double chunk) {
  return us * fitted::ll_pass[row_of(c)] * chunk / l.first_pass;
}

/// Of the way around all nodes, what a call waits for.
double loops_per_call(const Communicator& c, const Plan& plan) {
  if (c.chain_waits.empty()) return 0;
  const std::size_t channels = std::min(c.chain_waits.size(), static_cast<std::size_t>(plan.channels));
  return c.chain_waits[channels - 1];
}

}  // namespace

Limits chain_limits(const Communicator& c, const Plan& plan, const Chunks& cut) {
  Limits out = ring_limits(c, plan);
  if (plan.protocol != Protocol::ll) return out;
  const double passes = ll_passes(c, out, cut.chunk);
  if (c.nodes == 1) {
    out.channel = std::min(out.channel, cut.chunk / passes);
    return out;
  }
  // Between nodes each chunk but a call's first waits for its lines, too.
  out.channel = cut.chunk / (passes + (1 - 1 / cut.count) * cut.chunk / out.channel);
  out.ll_network = unlimited;
  return out;
}

double chain_latency(const Communicator& c, const Limits& l, const Plan& plan, const Chunks& cut) {
  const bool by_line = plan.protocol != Protocol::simple;
  const double handshake = (by_line ? 1 : fitted::chain_hops) * l.hop, loops = loops_per_call(c, plan);
  if (loops == 0) return handshake;
  const double moved = plan.protocol == Protocol::ll ? ll_passes(c, l, cut.first) : cut.first / l.channel;
  const double between = network_hop(l, cut.first) + moved + cut.first * plan.channels / l.nics;
  return handshake + loops * ((c.ranks - c.nodes) * (l.hop + (by_line ? 0 : moved)) + c.nodes * between);
}

}  // namespace collcast::nccl
