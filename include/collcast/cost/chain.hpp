// Which hops a phase's closed form sums up: the chain that ends last, each hop waiting for the one before.
#pragma once

#include <vector>

#include "collcast/schedule/pattern.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

struct ChainHop {
  enum class Part { whole, first_chunk, last_chunk, all_chunks };
  Rank from, to;
  Part part = Part::whole;
  Seconds start{};    ///< from the start of the collective
  Seconds takes{};    ///< until it has left, beside those that it shares links with
  Seconds alone{};    ///< the same on links of its own
  Seconds latency{};  ///< of its route
};

/// In the order of time, back to the hop that waits for nothing in the phase. Empty for rings, whose rounds are alike.
std::vector<ChainHop> longest_chain(const Fabric&, const Pattern&, std::size_t phase);

}  // namespace collcast
