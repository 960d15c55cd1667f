// Reduction and multicast inside a switch as neighbours: NVLS, and its tree over nodes.
//
// Of one head. Members count node by node: the head, the node's other GPUs, then of the switch what adds up, what
// multicasts, and an outlet to each of those GPUs, so that copies go side by side. In a node every GPU sends to the
// adder, which sends the sum to the head; the head sends what is due to all to the multicast, and the outlets to every
// GPU. Over several nodes the heads add up and hand down along NCCL's tree in between [src/device/all_reduce.h,
// RunWorkColl of NVLS and of NVLS_TREE].
#pragma once

#include <span>

#include "collcast/collective/collective.hpp"
#include "collcast/schedule/pattern.hpp"

namespace collcast::nccl {

/// Members of a node beside its GPUs.
constexpr int switch_members(int gpus) { return 2 + gpus; }

/// All_reduce, or, on one node, all_gather or reduce_scatter, over nodes of so many GPUs each; a phase of blocks of
/// width 1.
Phase switch_phase(CollectiveKind, std::span<const int> gpus_of_nodes);

}  // namespace collcast::nccl
