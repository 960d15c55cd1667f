// What NCCL's search finds for CollNet, a reduction in the network [src/graph/search.cc of v2.28.9, graphs 2 and 4].
//
// Chains are trees (pattern 3): as many as rings, in a node from the GPU beside a NIC past all others. Direct (pattern
// 6) has a channel for each head, a GPU that is beside a NIC of its own, to which all others of the node send: a head
// books v on its own links and v / (n - 1) on those of the n - 1 others, both ways. Both are doubled and raised inside
// nodes as trees are. Left out: graph 4 without an NVSwitch, which NCCL searches for and never takes.
#pragma once

#include "nccl/search.hpp"

namespace collcast::nccl {

/// GPUs of a node that direct has at most (NCCL_MAX_DIRECT_ARITY and the GPU itself).
inline constexpr int most_direct_gpus = 8;

/// Of the GPUs of one of several nodes; `trees`: that the search finds for them.
Collnet search_collnet(const System&, const std::vector<int>& gpus, const Graph& trees);

}  // namespace collcast::nccl
