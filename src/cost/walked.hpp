// The hops of a pattern as the closed form has timed them. Only for who asks: nothing else is stored per hop.
#pragma once

#include <vector>

#include "collcast/topology/fabric.hpp"
#include "cost/lane_walk.hpp"

namespace collcast {

struct Walked {
  int lane = 0, phase = 0;
  Position from = 0, to = 0;
  ChunkTimes start, left;  // beside those that it shares links with
  double tau = 0;          // of a chunk on links of its own
  double latency = 0;
};

/// All but those of rings.
std::vector<Walked> walk_hops(const Fabric&, const Pattern&);

}  // namespace collcast
