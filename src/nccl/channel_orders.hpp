// In which order a communicator's channels pass the ranks of its nodes: what programs run and what is printed.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "collcast/nccl/graph.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast::nccl {

/// Whether a running channel is on the second of the trees over nodes: the search's channels are on the first, their
/// copies on the second, and so on in turn [src/graph/connect.cc, ncclTopoPostset].
bool on_second_tree(const Graph& tree, int channel);

/// In place x of the second tree is this one of `nodes` nodes: the first mirrored, or of an odd number shifted by one,
/// so that it has another root [src/graph/trees.cc, ncclGetDtree].
int in_second_tree(int nodes, int x);

/// Group indices by node, in the order in which a channel's GPUs stand there.
class ChannelOrders {
 public:
  ChannelOrders(const Fabric&, const Group&);

  int nodes() const { return static_cast<int>(nodes_.size()); }
  /// The machine's numbers of the group's nodes.
  const std::vector<int>& numbers() const { return numbers_; }
  /// Ranks on each.
  std::vector<int> ranks_of_nodes() const;
  /// Of one node: the search's order of a channel there, ascending where it is not of just these GPUs.
  std::vector<int> of_node(int node, const Graph&, int channel) const;
  /// Of one node: by which NICs the search has that channel, or head of NVLS, there; nothing where it says none, or is
  /// not of these GPUs.
  std::optional<ChannelNics> nics_of_node(int node, const Graph&, int channel) const;
  /// Of one node: its GPUs ascending, from the one on and around that has this head of NVLS.
  std::vector<int> from_head(int node, const Graph& nvls, int head) const;
  /// The channel of a node's own search with which a ring passes it: on every other node that with which this one
  /// changes NICs, so that it comes in on the rail that it went out on [src/graph/connect.cc, ncclTopoPostset: of nodes
  /// that themselves found crossNic 2].
  int of_ring(int node, const Graph&, int channel) const;
  /// Node after node.
  std::vector<int> ring(const Graph&, int channel) const;
  /// The chains of the nodes, in the places that the nodes have in the InOrderTree over them.
  std::vector<std::vector<int>> tree(const Graph&, int channel, bool second) const;

 private:
  struct Found {
    const std::vector<std::vector<int>>& order;
    const std::vector<ChannelNics>& nics;
  };
  /// What the search found where a node has these GPUs.
  Found found(int node, const Graph&) const;

  std::vector<int> numbers_;
  std::vector<std::map<int, int>> nodes_;  ///< GPU of the node -> group index
};

}  // namespace collcast::nccl
