// How much of the rows of tokens, one for each of their experts, goes over the wire (TrainingOptions::
// moe_token_dispatcher). All-to-all sends each of them. Flex, as Megatron-Core calls dispatchers such as DeepEP and
// HybridEP, sends a token once to every node that has experts of it, and there once to every such rank; on its way back
// what a rank's experts give is summed up before it is sent, and on a node before it leaves it:
//
//   P(X)     that a token goes to some expert of the set X: it takes g of G groups, and K of their g E/G experts, all
//            of them alike
//   one node sum of P(rank) ranks get it, where K rows would be sent
//   several  a rank's part of what a node sends to others is the sum of P(other node), of what it gets P(node) (e -
//   n)/n
//            with n of e ranks in it, where either would be K (e - n)/e: the busiest of all nodes' over the busiest
//
// A share of 1 is what the all-to-all sends; it goes at the all-to-all's rate, which is that of the network where there
// are several nodes: on a network that is as fast as NVLink the share is too small. Source:
// github.com/deepseek-ai/DeepEP (README, normal kernels); DeepSeek-V3, arXiv 2412.19437, section 3.2.2. Left out: what
// a node forwards over NVLink, which takes less than the network does and runs beside it; SMs and launches of the
// dispatcher's kernels.
#pragma once

#include "collcast/topology/fabric.hpp"
#include "collcast/workload/groups.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// Of the bytes of dispatch, and of combine, among the ranks of an EP group: 1 with TokenDispatcher::alltoall.
double dispatched_share(const StepInputs&, const Fabric&, const Group& ep);

/// That a token goes to one of the experts that `in_group` counts by group, of those that are in any.
double chance_of_any(const Experts&, const std::vector<int>& in_group);

}  // namespace collcast::workload
