// NCCL's tree as neighbours: chains inside the nodes, below a binary tree over the nodes' heads.
//
// Members count node by node, the head first: member x is number x % g of node x / g, where g is the phase's argument.
// A chain goes from the head to the node's last; a head sends to the heads below it first. What has reached the root
// turns round at once, chunk by chunk, so that chunks already come down while others still go up.
#pragma once

#include "collcast/schedule/pattern.hpp"

namespace collcast::nccl {

/// All-reduce over `nodes` nodes of `per_node` members: a phase of blocks of width 1.
Phase tree_phase(int nodes, int per_node);

}  // namespace collcast::nccl
