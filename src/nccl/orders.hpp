// The GPUs of a group node by node, in the order in which a channel passes them.
#pragma once

#include <map>
#include <vector>

#include "collcast/nccl/graph.hpp"
#include "collcast/schedule/group.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast::nccl {

/// Group indices by node.
class Orders {
 public:
  Orders(const Fabric&, const Group&);

  int nodes() const { return static_cast<int>(nodes_.size()); }
  /// The machine's numbers of the group's nodes.
  const std::vector<int>& numbers() const { return numbers_; }
  /// As many of the group on each node.
  bool equal() const;
  /// Of one node: the search's order of a channel where it is of just these GPUs, else ascending.
  void append(int node, const Graph&, int channel, std::vector<int>& out) const;
  std::vector<int> ring(const Graph&, int channel) const;

 private:
  std::vector<int> numbers_;
  std::vector<std::map<int, int>> nodes_;  ///< GPU of the node -> group index
};

}  // namespace collcast::nccl
