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

bool ChannelOrders::equal() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [&](const std::map<int, int>& gpus) { return gpus.size() == nodes_.front().size(); });
}

std::vector<int> ChannelOrders::of_node(int node, const Graph& graph, int channel) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  std::vector<int> out;
  if (!graph.order.empty()) {
    const std::vector<int>& order = graph.order[static_cast<std::size_t>(channel) % graph.order.size()];
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

namespace {

/// The channel of the search with which this one changes NICs, whose order it has on every other node, so that it comes
/// in on the rail that it went out on [src/graph/connect.cc, connectRings with crossNic]. Itself, where there is none.
int other_of_pair(const Graph& graph, int channel) {
  const auto count = graph.nics.size(), at = static_cast<std::size_t>(channel) % std::max<std::size_t>(1, count);
  const auto other = at ^ 1;
  if (other >= count || graph.nics[at].in == graph.nics[at].out) return channel;
  const bool change = graph.nics[at].out == graph.nics[other].in && graph.nics[at].in == graph.nics[other].out;
  return change ? static_cast<int>(other) : channel;
}

}  // namespace

std::vector<int> ChannelOrders::ring(const Graph& graph, int channel) const {
  std::vector<int> out;
  for (int node = 0; node < nodes(); ++node) {
    const std::vector<int> there = of_node(node, graph, node % 2 == 0 ? channel : other_of_pair(graph, channel));
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
