// NCCL's tree as neighbours: chains inside the nodes, below a binary tree over the nodes' heads.
//
// Members count node by node, the head first; nodes may have unlike numbers of them. A chain goes from the head to the
// node's last; a head sends to the heads below it first. What has reached the root turns round at once, chunk by chunk,
// so that chunks already come down while others still go up.
#pragma once

#include <span>

#include "collcast/schedule/pattern.hpp"

namespace collcast::nccl {

/// All-reduce over nodes of so many members each: a phase of blocks of width 1.
Phase tree_phase(std::span<const int> members_of_nodes);

}  // namespace collcast::nccl
