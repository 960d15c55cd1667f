#include "collcast/evaluate/nodes.hpp"

#include <algorithm>

namespace collcast {

std::vector<int> node_of_each(const Fabric& fabric, const Group& group) {
  std::vector<int> nodes;
  for (int i = 0; i < group.size(); ++i) nodes.push_back(static_cast<int>(fabric.node_of(group[i]).value()));
  return nodes;
}

std::vector<NodeId> nodes_of(const Fabric& fabric, const Group& group) {
  std::vector<NodeId> nodes;
  for (int i = 0; i < group.size(); ++i) nodes.push_back(fabric.node_of(group[i]));
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

int node_count(const Fabric& fabric, const Group& group) { return static_cast<int>(nodes_of(fabric, group).size()); }

int most_nodes_of(const Fabric& fabric, const std::vector<Group>& groups) {
  int most = 0;
  for (const Group& group : groups) most = std::max(most, node_count(fabric, group));
  return most;
}

bool is_on_one_node(const Fabric& fabric, const Group& group) {
  for (int i = 1; i < group.size(); ++i)
    if (fabric.node_of(group[i]) != fabric.node_of(group[0])) return false;
  return true;
}

}  // namespace collcast
