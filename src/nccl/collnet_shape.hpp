// A reduction in the network as neighbours: a tree whose inner members are heads, switches of nodes and the network.
//
// Of one head, or of one channel of chains. Members count node by node: the node's GPUs, the head first; of NVLS what
// adds up and multicasts in the node's switch, and an outlet to each GPU but the head, so that copies go side by side;
// then the network's members, one where each NIC ends, the head's first; other NICs' are idle. The first node's adds up
// over the nodes and hands the sum to the others. An all_reduce goes up this tree and down again; what is gathered goes
// down from the first node's head alone, what is scattered up to it [src/device/all_reduce.h, all_gather.h and
// reduce_scatter.h, RunWorkColl of COLLNET_DIRECT, COLLNET_CHAIN and NVLS].
#pragma once

#include "collcast/collective/collective.hpp"
#include "collcast/schedule/pattern.hpp"

namespace collcast::nccl {

/// How the GPUs of a node reach their head.
enum class InsideNode { direct, chain, by_switch };

/// Members of a node's switch.
constexpr int members_of_switch(InsideNode inside, int gpus) { return inside == InsideNode::by_switch ? gpus : 0; }

/// Over several nodes of `gpus` GPUs and `networks` members of the network; a phase of blocks of width 1. Chains are of
/// all_reduce alone, a switch is between two GPUs at least.
Phase collnet_phase(CollectiveKind, InsideNode, int nodes, int gpus, int networks = 1);

}  // namespace collcast::nccl
