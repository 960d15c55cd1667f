#include "nccl/orders.hpp"

#include <algorithm>

namespace collcast::nccl {

Orders::Orders(const Fabric& fabric, const Group& group) {
  std::map<NodeId, std::map<int, int>> nodes;
  for (int i = 0; i < group.size(); ++i)
    nodes[fabric.node_of(group[i])][static_cast<int>(group[i].value()) % fabric.ranks_per_node()] = i;
  for (auto& [node, gpus] : nodes) {
    numbers_.push_back(static_cast<int>(node.value()));
    nodes_.push_back(std::move(gpus));
  }
}

bool Orders::equal() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [&](const std::map<int, int>& gpus) { return gpus.size() == nodes_.front().size(); });
}

void Orders::append(int node, const Graph& graph, int channel, std::vector<int>& out) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  if (!graph.order.empty()) {
    const std::vector<int>& order = graph.order[static_cast<std::size_t>(channel) % graph.order.size()];
    const bool fits = order.size() == gpus.size() &&
                      std::all_of(order.begin(), order.end(), [&](int gpu) { return gpus.contains(gpu); });
    if (fits) {
      for (const int gpu : order) out.push_back(gpus.at(gpu));
      return;
    }
  }
  for (const auto& [gpu, index] : gpus) out.push_back(index);
}

std::vector<int> Orders::ring(const Graph& graph, int channel) const {
  std::vector<int> out;
  for (int node = 0; node < nodes(); ++node) append(node, graph, channel, out);
  return out;
}

}  // namespace collcast::nccl
