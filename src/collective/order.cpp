// Orders of a channel: nodes as the group has them, the local order rotated, so that channels leave a node by
// different rails. Fewer channels than ranks on a node are spread evenly over these, since NICs that are fewer than
// ranks are shared by neighbours; more channels go around again.
//
// In a snake every other node is reversed: the last rank of a node and the first of the next then have the
// same local index, so a ring or chain crosses the network on one rail. With an odd number of nodes the link
// that closes the ring is the one that changes rails.
#include "collective/order.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>

namespace collcast {

int NodeRuns::per_node() const {
  if (!contiguous) return 0;
  for (int node = 1; node < nodes(); ++node)
    if (size(node) != size(0)) return 0;
  return size(0);
}

NodeRuns node_runs(std::span<const int> node_of, int ranks) {
  if (node_of.empty()) return {{0, ranks}, true};
  NodeRuns runs;
  std::set<int> seen;
  for (int i = 0; i < ranks; ++i) {
    const int node = node_of[static_cast<std::size_t>(i)];
    if (i > 0 && node == node_of[static_cast<std::size_t>(i) - 1]) continue;
    runs.begin.push_back(i);
    if (!seen.insert(node).second) runs.contiguous = false;
  }
  runs.begin.push_back(ranks);
  return runs;
}

namespace {

std::vector<int> rotated(int size, int by) {
  std::vector<int> result(static_cast<std::size_t>(size));
  std::iota(result.begin(), result.end(), 0);
  std::rotate(result.begin(), result.begin() + by % size, result.end());
  return result;
}

void to_front(std::vector<int>& order, int value) {
  const auto at = std::find(order.begin(), order.end(), value);
  if (at != order.end()) std::rotate(order.begin(), at, at + 1);
}

int rotation(int size, int channel, int channels) {
  return channels < size ? static_cast<int>(std::int64_t{channel} * size / channels) : channel;
}

std::vector<int> node_by_node(const NodeRuns& runs, Arrangement arrangement, std::optional<int> root, int channel,
                              int channels) {
  const int nodes = runs.nodes();
  int first = 0;
  while (root && *root >= runs.begin[static_cast<std::size_t>(first) + 1]) ++first;
  const int root_local = root ? *root - runs.begin[static_cast<std::size_t>(first)] : -1;

  std::vector<int> order;
  for (int i = 0; i < nodes; ++i) {
    const int node = (first + i) % nodes;
    std::vector<int> locals = rotated(runs.size(node), rotation(runs.size(node), channel, channels));
    if (nodes == 1 && root && arrangement == Arrangement::snake)
      locals = rotated(runs.size(node), root_local);  // no rail to choose: neighbours stay neighbours
    else if (i == 0 || arrangement == Arrangement::aligned)
      to_front(locals, root_local);
    if (arrangement == Arrangement::snake && i % 2 == 1) std::reverse(locals.begin(), locals.end());
    for (const int local : locals) order.push_back(runs.begin[static_cast<std::size_t>(node)] + local);
  }
  return order;
}

}  // namespace

std::vector<int> channel_order(const NodeRuns& runs, Arrangement arrangement, std::optional<int> root, int channel,
                               int channels) {
  std::vector<int> order = runs.contiguous ? node_by_node(runs, arrangement, root, channel, channels)
                                           : rotated(runs.begin.back(), root.value_or(0));
  if (std::is_sorted(order.begin(), order.end())) order.clear();
  return order;
}

}  // namespace collcast
