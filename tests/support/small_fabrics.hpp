// Fabrics for tests, built as a user's machine would be, sized in a line.
#pragma once

#include <vector>

#include "collcast/topology/fabric.hpp"

namespace collcast::test {

/// One host per node, joined by `network`.
Fabric teaching_fabric(int ranks, NetworkSpec network);
/// Links i -> i+1 and back around, each `bandwidth`.
Fabric ring_fabric(int ranks, Bandwidth bandwidth, Seconds latency);
/// Every rank on one switch; a route is an up link and a down link.
Fabric star_fabric(int ranks, Bandwidth bandwidth, Seconds latency);

/// Ranks and switches of one node as vertices 0 ... ranks-1, ranks ...; every cable is two links.
struct Cable {
  int a = 0, b = 0;
  Bandwidth bandwidth{};
  Seconds latency{};
};
Fabric cabled_fabric(int ranks, int switches, const std::vector<Cable>& cables);

/// Every link slower by a factor of 1 to 2 of its own.
Fabric with_unequal_links(const Fabric& fabric);

}  // namespace collcast::test
