// Requests and options as tests write them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collcast/collective/collective.hpp"

namespace collcast::test {

inline Group first_ranks(int k) { return Group::strided(Rank(0), 1, k); }

inline CollectiveRequest request(CollectiveKind kind, int ranks, std::int64_t bytes, int root = 0) {
  return {kind, first_ranks(ranks), Bytes(bytes), root, {}};
}

inline CollectiveOptions options(const std::string& algorithm, int chunks = 1, int channels = 1,
                                 std::vector<int> node_of = {}) {
  return {algorithm, chunks, channels, std::move(node_of)};
}

/// `nodes` nodes of `per_node` ranks, in order.
inline std::vector<int> node_blocks(int nodes, int per_node) {
  std::vector<int> result;
  for (int r = 0; r < nodes * per_node; ++r) result.push_back(r / per_node);
  return result;
}

inline bool rooted(CollectiveKind kind) {
  using enum CollectiveKind;
  return kind == broadcast || kind == reduce || kind == gather || kind == scatter;
}

}  // namespace collcast::test
