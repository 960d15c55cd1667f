#include "collcast/nccl/channels.hpp"

#include <algorithm>
#include <numeric>

#include "collcast/collective/in_order_tree.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/collnet.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

/// NCCL fills the first place that is free.
void add_below(TreePlace& place, int child) { *std::find(place.down.begin(), place.down.end(), -1) = child; }

std::vector<TreePlace> joined(const std::vector<std::vector<int>>& chains, int ranks) {
  std::vector<TreePlace> out(static_cast<std::size_t>(ranks));
  const auto at = [&](int rank) -> TreePlace& { return out[static_cast<std::size_t>(rank)]; };
  const auto head = [&](int node) { return chains[static_cast<std::size_t>(node)].front(); };
  for (const std::vector<int>& chain : chains)
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      at(chain[i + 1]).up = chain[i];
      add_below(at(chain[i]), chain[i + 1]);
    }
  const int nodes = static_cast<int>(chains.size());
  for (int x = 0; x < nodes; ++x)
    for (int j = 0; j < InOrderTree::children(nodes, x); ++j) {
      const int child = head(InOrderTree::child(nodes, x, j));
      at(child).up = head(x);
      add_below(at(head(x)), child);
    }
  return out;
}

/// Ranks that have each head.
std::vector<std::vector<int>> heads(const ChannelOrders& orders, const Graph& graph, const std::vector<int>& channels) {
  std::vector<std::vector<int>> out;
  for (const int channel : channels) {
    std::vector<int>& ranks = out.emplace_back();
    for (int node = 0; node < orders.nodes(); ++node) ranks.push_back(orders.from_head(node, graph, channel).front());
  }
  return out;
}

std::vector<int> chain(const ChannelOrders& orders, const Graph& chains, int channel) {
  std::vector<int> out;
  for (int node = 0; node < orders.nodes(); ++node) {
    const std::vector<int> there = orders.of_node(node, chains, channel);
    out.insert(out.end(), there.begin(), there.end());
  }
  return out;
}

}  // namespace

int Channel::root() const {
  const auto found = std::find_if(tree.begin(), tree.end(), [](const TreePlace& one) { return one.up < 0; });
  return static_cast<int>(found - tree.begin());
}

Channels channels(const Fabric& fabric, const Group& group, const Communicator& c) {
  const ChannelOrders orders(fabric, group);
  Channels out;
  for (int channel = 0; channel < c.channels; ++channel)
    out.all.push_back({orders.ring(c.ring, channel),
                       joined(orders.tree(c.tree, channel, on_second_tree(c.tree, channel)), group.size())});
  if (c.nvls && c.nvls_channels > 0) {
    std::vector<int> each(static_cast<std::size_t>(c.nvls->channels));
    std::iota(each.begin(), each.end(), 0);
    out.nvls_heads = heads(orders, *c.nvls, each);
  }
  if (!c.collnet) return out;
  if (c.collnet->direct)
    out.collnet_heads = heads(orders, *c.collnet->direct, collnet_head_channels(c, Algorithm::collnet_direct));
  for (int channel = 0; channel < c.channels; ++channel)
    out.collnet_chains.push_back(chain(orders, c.collnet->chain, channel));
  return out;
}

}  // namespace collcast::nccl
