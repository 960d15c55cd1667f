// Of a communicator, what NCCL's formulas count with.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "collcast/nccl/communicator.hpp"
#include "nccl/tuning_constants.hpp"

namespace collcast::nccl {

inline constexpr double unlimited = 1e18;

inline tuned::Generation generation(const Communicator& c) { return tuned::generation_of(c.compute_capability); }
/// Column of tuned::PerScale.
inline std::size_t scale_of(const Communicator& c) { return c.nodes == 1 ? 0 : c.nodes == 2 ? 1 : 2; }
/// Ranks, no whole number where nodes have unlike numbers of them; hops of chains NCCL counts by ranks_per_node.
inline double mean_on_a_node(const Communicator& c) { return static_cast<double>(c.ranks) / c.nodes; }
inline int floor_log2(int value) { return static_cast<int>(std::bit_width(static_cast<unsigned>(value))) - 1; }
/// From the root of NCCL's binary trees over nodes down to the farthest leaf: 3 nodes are 0, 2, 1. NCCL's tuning, and
/// how it cuts chunks, goes by the logarithm rounded down; so does what fills an NVLS tree.
inline int tree_levels(int nodes) { return nodes < 2 ? 0 : floor_log2(nodes - 1) + 1; }

/// Channels of NVLS where no variable says otherwise: 16 on Hopper, 24 on Blackwell in one NVLink domain, else 32
/// [src/transport/nvls.cc].
inline int usual_nvls_channels(const Communicator& c) {
  return c.compute_capability < 100 ? 16 : c.nodes == 1 ? 24 : 32;
}

/// Of NVLS and its tree, size over time by the newest constants of NCCL that are known here, bytes per second: what
/// the switch has for heads inside their node, over nodes what NICs are booked for, and of a tree NCCL's cap; and what
/// NCCL itself believes of all of them, by the speed that its search has inside.
struct NvlsRates {
  double inside = 0, booked = 0, cap = 0;
  double believed = 0;
};
NvlsRates todays_nvls_rates(const Communicator&, CollectiveKind, Algorithm);

/// All channels pass the GPUs in one order, as NCCL's search prefers, by whatever NICs: not where they enter nodes
/// beside different GPUs, nor over straight NVLinks [src/graph/search.cc, sameChannels].
inline bool in_one_order(const std::vector<std::vector<int>>& orders) {
  return std::ranges::all_of(orders, [&](const auto& order) { return order == orders.front(); });
}
/// Rings' on every node.
inline bool channels_alike(const Communicator& c) {
  return in_one_order(c.ring.order) &&
         std::ranges::all_of(c.ring.elsewhere, [](const NodeChannels& other) { return in_one_order(other.order); });
}

/// Number of a rank's GPU in its node.
inline int gpu_in_node(const Fabric& fabric, Rank rank) {
  return static_cast<int>(rank.value()) % fabric.ranks_per_node();
}

/// From which a channel of the search leaves its node: a ring's last; trees come and go by their first.
inline int leaving_gpu(const Graph& graph, std::size_t channel) {
  const std::vector<int>& order = graph.order[channel];
  return graph.pattern == GraphPattern::ring ? order.back() : order.front();
}

/// The first of a search's channels: their orders and NICs.
inline void keep_first(std::size_t channels, std::vector<std::vector<int>>& order, std::vector<ChannelNics>& nics) {
  if (order.size() > channels) order.resize(channels);
  if (nics.size() > channels) nics.resize(channels);
}

inline bool is_intel(CpuFamily cpu) {
  return cpu == CpuFamily::intel_broadwell || cpu == CpuFamily::intel_skylake ||
         cpu == CpuFamily::intel_sapphire_rapids || cpu == CpuFamily::intel_emerald_rapids;
}

}  // namespace collcast::nccl
