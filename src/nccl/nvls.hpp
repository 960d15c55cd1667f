// What NVLS cuts its data into and what bounds it: said once, for the closed form and for the simulation.
//
// Every head adds up its part of all GPUs of the node in the switch and hands the sum out by multicast, loop by loop of
// a chunk for each head and channel; in an NVLS tree the heads of the nodes add up and hand on over the network
// between.
#pragma once

#include "nccl/limits.hpp"

namespace collcast::nccl {

/// Seconds, bytes. T = start + before + filling + data.
struct NvlsRun {
  double start = 0;
  double before = 0;   ///< the first chunk moves, inside a node
  double filling = 0;  ///< of the pipe: what a run takes beyond the data of its busiest resource
  Load data{};         ///< all loops by that resource
  double chunk = 0;    ///< of one head and channel, the last one may be less
  double loops = 1;    ///< of a chunk for each of them, not whole
  double inside = 0;   ///< what a node's links take for all loops
  double between = 0;  ///< of a tree: what the network takes for all loops
  double levels = 0;   ///< of a tree, one way
  double hop = 0;      ///< of a tree: from node to node
};
NvlsRun nvls_run(const Communicator&, CollectiveKind, Bytes size, const Plan&);
NvlsRun nvls_tree_run(const Communicator&, CollectiveKind, Bytes size, const Plan&);

/// Over several nodes: of a node, those that its heads have.
int nics_of_heads(const Communicator&);

}  // namespace collcast::nccl
