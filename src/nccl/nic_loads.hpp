// How busy the channels of nodes with unlike GPUs have their NICs: each node's go by what its own search found, but all
// run as many as the node that found fewest.
#pragma once

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

/// of_rings, of_trees and relief_of_trees of a communicator that has its channels; as they are where nodes are alike,
/// or NICs are not said.
void put_loads_of_unlike(const Fabric&, const Group&, Communicator&);

}  // namespace collcast::nccl
