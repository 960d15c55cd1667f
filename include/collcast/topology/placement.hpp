// Which nodes of a machine a job has: as a scheduler gives them, not as they stand in the description.
//
// Between nodes of a leaf/spine network the way depends on which leaf they are on, so the order decides which groups
// cross the spines and which meet there.
#pragma once

#include <string>
#include <vector>

#include "collcast/topology/fabric.hpp"

namespace collcast {

struct Placement {
  std::vector<int> nodes = {};  ///< the job's node i is the machine's nodes[i]
  bool random = false;          ///< instead: any nodes of the machine, in any order
  int seed = 1;                 ///< of that
  Location where = {};          ///< of the nodes
  /// Nodes are not those of the machine, in its order.
  bool any() const { return random || !nodes.empty(); }
};

/// "nodes 3, 0, 2, 1", "random nodes, seed 7".
std::string to_text(const Placement&);

/// The machine with a job's `needed` nodes placed on it (Fabric::placed); as it is without a placement. Nodes that it
/// does not have, that are named twice or that are too few are diagnostics.
Result<Fabric> with_placement(const Fabric&, const Placement&, int needed);

}  // namespace collcast
