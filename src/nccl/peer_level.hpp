// What NCCL_P2P_LEVEL changes: which GPUs of a node reach each other's memory.
//
// NCCL does so along paths that are no worse than a level, PXB unless the variable has another [src/graph/paths.cc,
// ncclTopoCheckP2p]. LOC is NCCL_P2P_DISABLE=1. Of other levels those count that leave no pair of a group what some
// had; where some keep it, or some have it that had not, the forecast goes on as without, which is warned of.
#pragma once

#include <vector>

#include "collcast/nccl/environment.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

enum class PeerAccess { as_usual, none, of_others };

/// Between these GPUs of a node.
PeerAccess peer_access(const System&, const std::vector<int>& gpus, PathType level);
/// Between all of a node; as usual where it has no GPUs that NCCL knows.
PeerAccess peer_access(const TopologySpec&, const Environment&);

}  // namespace collcast::nccl
