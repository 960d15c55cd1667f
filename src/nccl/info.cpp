// NCCL_DEBUG=INFO's lines of a communicator, as v2.28 words them: `init.cc`, `src/graph/search.cc, connect.cc,
// rings.cc`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "collcast/nccl/channels.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

bool crosses(const Graph& graph) {
  return std::any_of(graph.nics.begin(), graph.nics.end(), [](const ChannelNics& one) { return one.in != one.out; });
}

/// 2: some channel goes out by another NIC than it came in by, as NCCL_CROSS_NIC=2 lets it where no other fits.
int cross_nic(const Graph& graph, CrossNic allowed) {
  const bool may = graph.pattern == GraphPattern::ring || graph.pattern == GraphPattern::balanced_tree;
  return may && allowed == CrossNic::always ? 1 : crosses(graph) ? 2 : 0;
}

/// NCCL searches NVLS with unlike channels alone.
int same_channels(const Graph& graph) {
  return graph.pattern != GraphPattern::nvls && in_one_order(graph.order) ? 1 : 0;
}

std::string pattern_line(const Graph& graph, CrossNic allowed) {
  return fmt::format("Pattern {}, crossNic {}, nChannels {}, bw {:f}/{:f}, type {}/{}, sameChannels {}",
                     fmt::underlying(graph.pattern), cross_nic(graph, allowed), graph.channels,
                     graph.inside.value() / 1e9, graph.between.value() / 1e9, to_string(graph.type_inside),
                     to_string(graph.type_between), same_channels(graph));
}

std::string channel_line(const Graph& graph, std::size_t channel, bool leaves) {
  const ChannelNics* nics = channel < graph.nics.size() ? &graph.nics[channel] : nullptr;
  const auto net = [&](int number) { return nics != nullptr ? fmt::format(" NET/{}", number) : " NET"; };
  std::string line = fmt::format("{:2} :", channel);
  if (leaves) line += net(nics != nullptr ? nics->in : 0);
  for (const int gpu : graph.order[channel]) line += fmt::format(" GPU/{}", gpu);
  if (leaves) line += net(nics != nullptr ? nics->out : 0);
  return line;
}

/// Ways from GPUs to NICs that are farther than the graph's type says.
std::vector<std::string> far_ways(const Graph& graph) {
  std::set<std::tuple<int, int, PathType>> far;
  for (std::size_t channel = 0; channel < graph.nics.size(); ++channel) {
    const ChannelNics& nics = graph.nics[channel];
    if (nics.way_in > graph.type_between) far.emplace(graph.order[channel].front(), nics.in, nics.way_in);
    if (nics.way_out > graph.type_between) far.emplace(leaving_gpu(graph, channel), nics.out, nics.way_out);
  }
  std::vector<std::string> out;
  for (const auto& [gpu, nic, type] : far) out.push_back(fmt::format("GPU/{} :NET/{} ({})", gpu, nic, to_string(type)));
  return out;
}

void add_graph(const Graph& graph, bool leaves, CrossNic allowed, std::vector<std::string>& out) {
  out.push_back(pattern_line(graph, leaves ? allowed : CrossNic::if_needed));
  for (std::size_t channel = 0; channel < graph.order.size(); ++channel)
    out.push_back(channel_line(graph, channel, leaves && (graph.pattern != GraphPattern::nvls || !graph.nics.empty())));
  for (std::string& line : far_ways(graph)) out.push_back(std::move(line));
}

/// " 0 1 2", each as wide as the longest of all `ranks`.
std::string listed(std::span<const int> numbers, int ranks, int most) {
  const std::size_t width = fmt::formatted_size("{}", ranks - 1);
  std::string out;
  for (const int number : numbers.first(std::min(numbers.size(), static_cast<std::size_t>(most))))
    out += fmt::format(" {:{}}", number, width);
  if (numbers.size() > static_cast<std::size_t>(most))
    out += fmt::format(" ... and {} more", numbers.size() - static_cast<std::size_t>(most));
  return out;
}

/// As rank 0 prints it: from itself.
std::vector<int> from_first(std::vector<int> ring) {
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), 0), ring.end());
  return ring;
}

std::string ring_line(const Channel& channel, int number, int rank) {
  const std::vector<int>& ring = channel.ring;
  const std::size_t at = static_cast<std::size_t>(std::find(ring.begin(), ring.end(), rank) - ring.begin());
  return fmt::format("Ring {:02} : {} -> {} -> {}", number, ring[(at + ring.size() - 1) % ring.size()], rank,
                     ring[(at + 1) % ring.size()]);
}

std::string trees_line(std::span<const Channel> all, int rank) {
  std::string out = "Trees";
  for (std::size_t number = 0; number < all.size(); ++number) {
    const TreePlace& place = all[number].tree[static_cast<std::size_t>(rank)];
    out += fmt::format(" [{}] {}->{}->{}", number, fmt::join(place.down, "/"), rank, place.up);
  }
  return out;
}

/// As rank `rank` prints where it stands in every chain, and of direct, whose channels are alike, in one channel. The
/// network counts as one rank more.
void add_collnet(const Communicator& c, const Channels& channels, int rank, int most, std::vector<std::string>& out) {
  int number = 0;
  for (const std::vector<int>& head : channels.collnet_heads)
    out.push_back(fmt::format("CollNet Head {:2}:{}", number++, listed(head, c.ranks, most)));
  if (channels.collnet_chains.empty()) return;
  const auto of_node = [&c](int node) { return c.ranks_of_nodes[static_cast<std::size_t>(node)]; };
  std::string chains = "Connected Collnet Chains ";
  number = 0;
  for (const std::vector<int>& chain : channels.collnet_chains) {
    const auto at = static_cast<int>(std::ranges::find(chain, rank) - chain.begin());
    int in_node = at, node = 0;
    while (in_node >= of_node(node)) in_node -= of_node(node++);
    const bool last = in_node + 1 == of_node(node);
    chains += fmt::format(" [{}] {}->{}->{}", number++, last ? -1 : chain[static_cast<std::size_t>(at + 1)], rank,
                          in_node == 0 ? c.ranks : chain[static_cast<std::size_t>(at - 1)]);
  }
  out.push_back(std::move(chains));
}

}  // namespace

std::vector<std::string> graph_lines(const Communicator& c) {
  std::vector<std::string> out;
  const bool leaves = c.nodes > 1;
  const CrossNic allowed = c.environment.cross_nic;
  add_graph(c.ring, leaves, allowed, out);
  add_graph(c.tree, leaves, allowed, out);
  if (c.collnet) add_graph(c.collnet->chain, leaves, CrossNic::never, out);
  if (c.collnet && c.collnet->direct) add_graph(*c.collnet->direct, leaves, CrossNic::never, out);
  if (c.nvls) add_graph(*c.nvls, leaves, allowed, out);
  return out;
}

std::vector<std::string> channel_lines(const Communicator& c, const Channels& channels, int rank, int most) {
  std::vector<std::string> out;
  int number = 0;
  for (const std::vector<int>& head : channels.nvls_heads)
    out.push_back(fmt::format("NVLS Head {:2}:{}", number++, listed(head, c.ranks, most)));
  number = 0;
  for (const Channel& channel : channels.all)
    out.push_back(
        fmt::format("Channel {:02}/{:02} :{}", number++, c.channels, listed(from_first(channel.ring), c.ranks, most)));
  number = 0;
  for (const Channel& channel : channels.all) out.push_back(ring_line(channel, number++, rank));
  out.push_back(trees_line(channels.all, rank));
  add_collnet(c, channels, rank, most, out);
  out.push_back(
      fmt::format("{} coll channels, {} collnet channels, {} nvls channels, {} p2p channels, {} p2p channels per peer",
                  c.channels, c.collnet ? c.channels : 0, c.nvls_channels, c.p2p_channels, c.p2p_channels_per_peer));
  return out;
}

}  // namespace collcast::nccl
