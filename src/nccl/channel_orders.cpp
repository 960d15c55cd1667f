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

namespace {

/// What the search found where a node has these GPUs (and their group indices).
const std::vector<std::vector<int>>& orders_among(const std::map<int, int>& gpus, const Graph& graph) {
  const auto same = [](int gpu, const auto& one) { return gpu == one.first; };
  for (const NodeChannels& other : graph.elsewhere)
    if (std::ranges::equal(other.gpus, gpus, same)) return other.order;
  return graph.order;
}

}  // namespace

std::vector<int> ChannelOrders::of_node(int node, const Graph& graph, int channel) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  std::vector<int> out;
  if (const auto& orders = orders_among(gpus, graph); !orders.empty()) {
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

std::vector<int> ChannelOrders::from_head(int node, const Graph& nvls, int head) const {
  const std::map<int, int>& gpus = nodes_[static_cast<std::size_t>(node)];
  const int gpu = orders_among(gpus, nvls)[static_cast<std::size_t>(head)].front();
  std::vector<int> out = of_node(node, Graph{}, 0);
  std::rotate(out.begin(), out.begin() + std::distance(gpus.begin(), gpus.find(gpu)), out.end());
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
