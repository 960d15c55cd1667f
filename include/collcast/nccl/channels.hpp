// The channels that run, over all ranks: what NCCL_DEBUG=INFO prints of a communicator, and what programs
// (collcast/nccl/program.hpp) send along.
//
// Rings pass the nodes one after the other, in each of them the GPUs as the search has them; two that change NICs with
// each other change their orders on every other node. Trees are chains in the nodes below a binary tree over the nodes'
// first GPUs: the search's channels have one such tree, their copies the other of NCCL's pair [src/graph/connect.cc,
// trees.cc of v2.28.9]. Left out: NCCL's balanced trees (pattern 1), whose first child over nodes hangs below the
// second GPU of a chain.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

/// Neighbours in a tree, as indices into the group; -1: none.
struct TreePlace {
  int up = -1;
  std::array<int, 3> down{-1, -1, -1};  ///< the next GPU of the chain first, then heads of other nodes
};

/// One of Communicator::channels.
struct Channel {
  std::vector<int> ring;        ///< indices into the group in their order
  std::vector<TreePlace> tree;  ///< of each index
  int root() const;             ///< of the tree
};

/// All of a communicator.
struct Channels {
  std::vector<Channel> all;                     ///< Communicator::channels
  std::vector<std::vector<int>> nvls_heads;     ///< of each head the indices that have it, node by node; empty: no NVLS
  std::vector<std::vector<int>> collnet_heads;  ///< the same of CollNet direct; empty: it is not there
  std::vector<std::vector<int>> collnet_chains;  ///< of each channel the indices, node by node from its NIC on
};
/// Of the group that the communicator is of.
Channels channels(const Fabric&, const Group&, const Communicator&);

/// The patterns of a search, each with its channels through GPUs and NICs of the first node, as NCCL_DEBUG=INFO prints
/// them with NCCL_DEBUG_SUBSYS=GRAPH. Below a pattern, which NCCL does not print there, the way to a NIC that is not
/// among its GPU's nearest: PXN and the like.
std::vector<std::string> graph_lines(const Communicator&);

/// What rank `rank` of the group prints of the channels that run, and what rank 0 does: heads of NVLS, the rings, the
/// rank's neighbours in rings and trees, numbers of channels. Of a longer list of ranks the first `most`, and how many
/// more there are.
std::vector<std::string> channel_lines(const Communicator&, const Channels&, int rank, int most = 64);

}  // namespace collcast::nccl
