#include "nccl/nic_loads.hpp"

#include <algorithm>
#include <optional>

#include "collcast/collective/in_order_tree.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/limits.hpp"
#include "nccl/pair_loads.hpp"

namespace collcast::nccl {

namespace {

/// Of one node.
struct Loads {
  LoadsByNic in, out, messages;
};

/// Of each node its place in a tree over all.
std::vector<int> places(int nodes, bool second) {
  std::vector<int> out(static_cast<std::size_t>(nodes));
  for (int x = 0; x < nodes; ++x) out[static_cast<std::size_t>(second ? in_second_tree(nodes, x) : x)] = x;
  return out;
}

/// Of one node whose places in both trees these are; nothing where a channel has no NICs.
std::optional<Loads> loads_of(const ChannelOrders& orders, const Communicator& c, int node, int first, int second) {
  Loads out;
  for (int channel = 0; channel < c.channels; ++channel) {
    const auto ring = orders.nics_of_node(node, c.ring, orders.of_ring(node, c.ring, channel));
    const auto tree = orders.nics_of_node(node, c.tree, channel);
    if (!ring || !tree) return std::nullopt;
    ++out.in[ring->in];
    ++out.out[ring->out];
    const int place = on_second_tree(c.tree, channel) ? second : first;
    out.messages[tree->in] += (place > 0 ? 1 : 0) + InOrderTree::children(orders.nodes(), place);
  }
  return out;
}

}  // namespace

namespace {

/// On like nodes the search's channels may share NICs unevenly, too: of a DGX-1's first five GPUs without ways through
/// others two of three rings end at the fifth, beside whose NIC they go out.
bool evenly_on_nics(const Communicator& c) {
  LoadsByNic in, out;
  for (const ChannelNics& one : c.ring.nics) {
    ++in[one.in];
    ++out[one.out];
  }
  return std::max(busiest(in), busiest(out)) * c.nics.count <= static_cast<double>(c.ring.nics.size());
}

}  // namespace

std::optional<UnevenNics> uneven_nics(const Fabric& fabric, const Group& group, const Communicator& c) {
  if (c.nodes == 1 || c.ring.channels < 1) return std::nullopt;
  if (c.ring.elsewhere.empty() && evenly_on_nics(c)) return std::nullopt;
  const ChannelOrders orders(fabric, group);
  const std::vector<int> first = places(c.nodes, false), second = places(c.nodes, true);
  double channels = 0, messages = 0;
  for (int node = 0; node < c.nodes; ++node) {
    const auto at = static_cast<std::size_t>(node);
    const auto loads = loads_of(orders, c, node, first[at], second[at]);
    if (!loads) return std::nullopt;
    channels = std::max({channels, busiest(loads->in), busiest(loads->out)});
    messages = std::max(messages, busiest(loads->messages));
  }
  const double of_trees = tree_messages(c);
  return UnevenNics{c.channels / channels, of_trees * c.channels / messages,
                    std::max(1.0, of_trees * channels / messages)};
}

namespace {

/// Of the NIC that has most, channels on each of the two trees.
struct OfTrees {
  double first = 0, second = 0;
};
OfTrees channels_of_trees(const Communicator& c, const Plan& plan) {
  int first = 0;
  for (int channel = 0; channel < plan.channels; ++channel) first += on_second_tree(c.tree, channel) ? 0 : 1;
  return {std::ceil(1.0 * first / c.nics.count), std::ceil(1.0 * (plan.channels - first) / c.nics.count)};
}

/// Messages of a chunk of each of its channels.
double messages_of_a_nic(const Communicator& c, const Plan& plan) {
  const OfTrees channels = channels_of_trees(c, plan);
  const double one = most_tree_messages(c), both = 2 * tree_messages(c);
  return one * channels.first + (both - one) * channels.second;
}

}  // namespace

double busiest_tree_messages(const Communicator& c, const Plan& plan) {
  if (c.nics.uneven || c.nics.count == 0) return tree_messages(c) / relief_of_trees(c);
  return messages_of_a_nic(c, plan) / channels_of_a_nic(plan, c.nics.count);
}

double first_tree_channels(const Communicator& c, const Plan& plan) {
  if (c.nics.uneven || c.nics.count == 0) return channels_of_a_nic(plan, nics_of_trees(c)) / 2;
  return channels_of_trees(c, plan).first;
}

double tree_share(const Communicator& c, const Plan& plan) {
  if (c.nodes == 1 || c.nics.count == 0) return 1;
  const double even = plan.channels / nics_of_trees(c);
  if (c.nics.uneven) return std::min(1.0, even);
  return std::min(1.0, tree_messages(c) * even / messages_of_a_nic(c, plan));
}

}  // namespace collcast::nccl
