// Backwards from the hop that is there last: its last chunk waited for the one before, or for its own first; a chunk
// starts when its sender's previous hop has left, or when it has come there itself.
#include "collcast/cost/chain.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cost/rounding.hpp"
#include "cost/walked.hpp"

namespace collcast {
namespace {

/// A hop of the chain, and which of its chunks the chain is about.
struct Joint {
  const Walked* hop = nullptr;
  bool last = true;
};

/// Of each position of a lane the hops that begin or end there, in their order.
using HopsAt = std::map<std::pair<int, Position>, std::vector<const Walked*>>;

/// What had to be over at `time` for a chunk to start.
Joint before(const HopsAt& hops, const Walked& hop, double time, bool last) {
  for (const Walked* other : hops.at({hop.lane, hop.from})) {
    if (other == &hop) continue;
    const bool sent = other->from == hop.from, came = other->to == hop.from;
    for (const bool of_last : {last, !last}) {
      const double left = of_last ? other->left.last : other->left.first;
      if ((came && same_but_rounding(left + other->latency, time)) || (sent && same_but_rounding(left, time)))
        return {other, of_last};
    }
  }
  return {};
}

}  // namespace

std::vector<ChainHop> longest_chain(const Fabric& fabric, const Pattern& pattern, std::size_t phase) {
  const std::vector<Walked> all = walk_hops(fabric, pattern);
  std::vector<const Walked*> hops;
  HopsAt hops_at;
  for (const Walked& hop : all) {
    if (hop.phase != static_cast<int>(phase)) continue;
    hops.push_back(&hop);
    hops_at[{hop.lane, hop.from}].push_back(&hop);
    hops_at[{hop.lane, hop.to}].push_back(&hop);
  }
  std::vector<ChainHop> out;
  if (hops.empty()) return out;
  const auto there = [](const Walked* hop) { return hop->left.last + hop->latency; };
  Joint at{*std::max_element(hops.begin(), hops.end(),
                             [&](const Walked* a, const Walked* b) { return there(a) < there(b); }),
           true};
  while (at.hop != nullptr && out.size() < hops.size()) {
    const Walked& hop = *at.hop;
    const Lane& lane = pattern.lanes[static_cast<std::size_t>(hop.lane)];
    // The last chunk comes a tau after its start at the soonest; else it queued behind the first.
    const bool waited =
        at.last && hop.start.last > hop.start.first && same_but_rounding(hop.left.last, hop.start.last + hop.tau);
    const double start = waited ? hop.start.last : hop.start.first, end = at.last ? hop.left.last : hop.left.first;
    using enum ChainHop::Part;
    const auto part = pattern.chunks == 1 ? whole : waited ? last_chunk : at.last ? all_chunks : first_chunk;
    out.push_back({pattern.rank(lane, hop.from), pattern.rank(lane, hop.to), part, Seconds(start), Seconds(end - start),
                   Seconds(hop.tau * (part == all_chunks ? pattern.chunks : 1)), Seconds(hop.latency)});
    at = start > 0 ? before(hops_at, hop, start, waited) : Joint{};
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace collcast
