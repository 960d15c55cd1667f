// Which nodes of a machine a group is on: of each rank, each once, how many, whether one alone.
#pragma once

#include <vector>

#include "collcast/schedule/group.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

/// Of each rank, in the group's order.
std::vector<int> node_of_each(const Fabric&, const Group&);
/// Each once, ascending.
std::vector<NodeId> nodes_of(const Fabric&, const Group&);
int node_count(const Fabric&, const Group&);
/// That one of the groups is on; 0: there is none.
int most_nodes_of(const Fabric&, const std::vector<Group>&);
bool is_on_one_node(const Fabric&, const Group&);

}  // namespace collcast
