#include "nccl/channel_orders.hpp"

#include <algorithm>

#include "nccl/terms.hpp"

namespace collcast::nccl {

bool on_second_tree(const Graph& tree, int channel) { return channel / std::max(1, tree.channels) % 2 == 1; }

int in_second_tree(int nodes, int x) { return nodes % 2 == 0 ? nodes - 1 - x : (x + 1) % nodes; }

ChannelOrders::ChannelOrders(const Fabric& fabric, const Group& group) {
  std::map<NodeId, std::map<int, int>> nodes;
  for (int i = 0; i < group.size(); ++i) nodes[fabric.node_of(group[i])][gpu_in_node(fabric, group[i])] = i;
  for (auto& [node, gpus] : nodes) {
    numbers_.push_back(static_cast<int>(node.value()));
    nodes_.push_back(std::move(gpus));
  }
}

std::vector<int> ChannelOrders::ranks_of_nodes() const {
  std::vector<int> out;
  for (const std::map<int, int>& gpus : nodes_) out.push_back(static_cast<int>(gpus.size()));
  return out;
}

ChannelOrders::Found ChannelOrders::found(int node, const Graph& graph) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  const auto same = [](int gpu, const auto& one) { return gpu == one.first; };
  for (const NodeChannels& other : graph.elsewhere)
    if (std::ranges::equal(other.gpus, gpus, same)) return {other.order, other.nics};
  return {graph.order, graph.nics};
}

std::vector<int> ChannelOrders::of_node(int node, const Graph& graph, int channel) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  std::vector<int> out;
  if (const auto& orders = found(node, graph).order; !orders.empty()) {
    const std::vector<int>& order = orders[static_cast<std::size_t>(channel) % orders.size()];
    const bool fits = order.size() == gpus.size() &&
                      std::all_of(order.begin(), order.end(), [&](int gpu) { return gpus.contains(gpu); });
    if (fits) {
      for (const int gpu : order) out.push_back(gpus.at(gpu));
      return out;
    }
  }
  for (const auto& [gpu, index] : gpus) out.push_back(index);
  return out;
}

std::optional<ChannelNics> ChannelOrders::nics_of_node(int node, const Graph& graph, int channel) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  const Found here = found(node, graph);
  if (here.nics.empty() || here.nics.size() != here.order.size()) return std::nullopt;
  const auto at = static_cast<std::size_t>(channel) % here.nics.size();
  const std::size_t members = graph.pattern == GraphPattern::nvls ? 1 : gpus.size();
  const bool is_of_gpus = here.order[at].size() == members &&
                          std::ranges::all_of(here.order[at], [&](int gpu) { return gpus.contains(gpu); });
  if (!is_of_gpus) return std::nullopt;
  return here.nics[at];
}

std::vector<int> ChannelOrders::from_head(int node, const Graph& nvls, int head) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  const int gpu = found(node, nvls).order[static_cast<std::size_t>(head)].front();
  std::vector<int> out = of_node(node, Graph{}, 0);
  std::rotate(out.begin(), out.begin() + std::distance(gpus.begin(), gpus.find(gpu)), out.end());
  return out;
}

int ChannelOrders::of_ring(int node, const Graph& graph, int channel) const {
  if (node % 2 == 0) return channel;
  const std::vector<ChannelNics>& nics = found(node, graph).nics;
  const auto at = static_cast<std::size_t>(channel) % std::max<std::size_t>(1, nics.size()), other = at ^ 1;
  if (other >= nics.size() || nics[at].in == nics[at].out) return channel;
  const bool change = nics[at].out == nics[other].in && nics[at].in == nics[other].out;
  return change ? static_cast<int>(other) : channel;
}

std::vector<int> ChannelOrders::ring(const Graph& graph, int channel) const {
  std::vector<int> out;
  for (int node = 0; node < nodes(); ++node) {
    const std::vector<int> there = of_node(node, graph, of_ring(node, graph, channel));
    out.insert(out.end(), there.begin(), there.end());
  }
  return out;
}

std::vector<std::vector<int>> ChannelOrders::tree(const Graph& graph, int channel, bool second) const {
  std::vector<std::vector<int>> out;
  for (int x = 0; x < nodes(); ++x) out.push_back(of_node(second ? in_second_tree(nodes(), x) : x, graph, channel));
  return out;
}

}  // namespace collcast::nccl
