// The nodes that a group is on, and its GPUs there.
#pragma once

#include <map>
#include <vector>

#include "collcast/schedule/group.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast::nccl {

/// GPUs of the group in each node that it is on, numbered in the node.
using GroupsNodes = std::map<NodeId, std::vector<int>>;

GroupsNodes by_node(const Fabric&, const Group&);

/// The sets of GPUs that nodes have of the group, each once.
std::vector<std::vector<int>> unlike_nodes(const GroupsNodes&);

}  // namespace collcast::nccl
