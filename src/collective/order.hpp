// In which order a channel's lane visits the ranks of a group.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "collective/algorithm.hpp"

namespace collcast {

/// The group as runs of equal node.
struct NodeRuns {
  std::vector<int> begin;  ///< first group index of each run, and the size of the group
  bool contiguous = true;  ///< no node appears in two runs

  int nodes() const { return static_cast<int>(begin.size()) - 1; }
  int size(int node) const { return begin[static_cast<std::size_t>(node) + 1] - begin[static_cast<std::size_t>(node)]; }
  /// Ranks on every node, or 0 where they differ or a node appears in two runs.
  int per_node() const;
};
/// `node_of` may be empty: one node.
NodeRuns node_runs(std::span<const int> node_of, int ranks);

/// Position -> group index; the root, if any, at position 0 and its node first. Where a node appears in two
/// runs the group's own order is kept and only turned to begin with the root. Empty: the identity.
/// `channel` is one of `channels`.
std::vector<int> channel_order(const NodeRuns&, Arrangement, std::optional<int> root, int channel, int channels);

}  // namespace collcast
