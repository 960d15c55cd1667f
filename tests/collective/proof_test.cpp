// Every algorithm does what its kind promises: every group size up to 33, every kind, several roots, channels
// and node layouts; larger groups by sampling.
#include <catch2/catch.hpp>

#include <random>

#include "support/patterns.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

std::string proof(const CollectiveRequest& r, const CollectiveOptions& o) {
  const Result<Pattern> pattern = make_pattern(r, o);
  if (!pattern) return to_text(pattern.errors());
  std::string text;
  for (const std::string& finding : prove(*pattern, r.kind, r.root)) text += finding + "\n";
  return text;
}

std::vector<int> roots(CollectiveKind kind, int k) {
  if (!rooted(kind) || k == 1) return {0};
  if (k == 2) return {0, 1};
  return {0, k / 2, k - 1};
}

}  // namespace

TEST_CASE("every algorithm keeps its promise for every group size up to 33") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds)
      for (int k = 1; k <= 33; ++k)
        for (const int root : roots(kind, k))
          for (const int channels : {1, 2, 4}) {
            if (channels > 1 && kind == CollectiveKind::alltoall && k > 12) continue;  // k^3 sets a lane
            const int chunks = std::vector{1, 2, 3, 7}[static_cast<std::size_t>(k % 4)];
            INFO(a.name << " " << to_string(kind) << " k=" << k << " root=" << root << " channels=" << channels);
            CHECK(proof(request(kind, k, 1 << 20, root), options(a.name, chunks, channels)) == "");
          }
}

TEST_CASE("every algorithm keeps its promise on groups that span nodes, from every root") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds)
      for (const auto& [nodes, per_node] : {std::pair{1, 4}, {2, 1}, {2, 2}, {3, 2}, {4, 3}, {3, 5}, {5, 1}, {2, 8}})
        for (int root = 0; root < (rooted(kind) ? nodes * per_node : 1); ++root)
          for (const int channels : {1, 2, 4}) {
            INFO(a.name << " " << to_string(kind) << " nodes=" << nodes << "x" << per_node << " root=" << root
                        << " channels=" << channels);
            CHECK(proof(request(kind, nodes * per_node, 1 << 20, root),
                        options(a.name, 2, channels, node_blocks(nodes, per_node))) == "");
          }
}

TEST_CASE("unequal and interleaved nodes are no obstacle to algorithms that do not need regular ones") {
  for (const AlgorithmInfo& a : algorithms()) {
    if (a.name == "hierarchical") continue;
    for (const CollectiveKind kind : a.kinds)
      for (const std::vector<int>& node_of : {std::vector{0, 0, 0, 1, 2, 2, 2}, std::vector{0, 1, 0, 1, 0, 1, 0}})
        for (const int root : roots(kind, 7)) {
          INFO(a.name << " " << to_string(kind) << " root=" << root);
          CHECK(proof(request(kind, 7, 1000, root), options(a.name, 1, 3, node_of)) == "");
        }
  }
}

TEST_CASE("larger groups, sampled") {
  const unsigned seed = 20240607;
  std::mt19937 random(seed);
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds) {
      const bool cubic = kind == CollectiveKind::alltoall;
      for (int sample = 0; sample < 3; ++sample) {
        const int k = 34 + static_cast<int>(random() % (cubic ? 30 : 120));
        const int root = rooted(kind) ? static_cast<int>(random()) % k : 0;
        INFO("seed " << seed << ": " << a.name << " " << to_string(kind) << " k=" << k << " root=" << std::abs(root));
        CHECK(proof(request(kind, k, 1 << 20, std::abs(root)), options(a.name)) == "");
      }
    }
}
