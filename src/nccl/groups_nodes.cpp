#include "nccl/groups_nodes.hpp"

#include <algorithm>

#include "nccl/terms.hpp"

namespace collcast::nccl {

GroupsNodes by_node(const Fabric& fabric, const Group& group) {
  GroupsNodes out;
  for (int i = 0; i < group.size(); ++i) {
    const Rank rank = group[i];
    out[fabric.node_of(rank)].push_back(gpu_in_node(fabric, rank));
  }
  for (auto& [node, gpus] : out) std::sort(gpus.begin(), gpus.end());
  return out;
}

std::vector<std::vector<int>> unlike_nodes(const GroupsNodes& nodes) {
  std::vector<std::vector<int>> out;
  for (const auto& [node, gpus] : nodes)
    if (std::find(out.begin(), out.end(), gpus) == out.end()) out.push_back(gpus);
  return out;
}

}  // namespace collcast::nccl
