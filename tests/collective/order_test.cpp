// Channels leave a node by different rails.
#include "collective/order.hpp"

#include <catch2/catch.hpp>

#include "support/patterns.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

using Order = std::vector<int>;

Order order(Arrangement arrangement, int channel, std::optional<int> root = std::nullopt,
            const std::vector<int>& node_of = node_blocks(3, 4)) {
  return channel_order(node_runs(node_of, static_cast<int>(node_of.size())), arrangement, root, channel, 4);
}

}  // namespace

TEST_CASE("a snake crosses between nodes at equal local indices") {
  //                                        node 0         node 1, reversed  node 2
  CHECK(order(Arrangement::snake, 0) == Order{0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11});
  CHECK(order(Arrangement::snake, 1) == Order{1, 2, 3, 0, 4, 7, 6, 5, 9, 10, 11, 8});
  for (int channel = 0; channel < 4; ++channel) {
    const Order o = order(Arrangement::snake, channel);
    CHECK(o[3] % 4 == o[4] % 4);
    CHECK(o[7] % 4 == o[8] % 4);
    CHECK(o[3] % 4 == (channel + 3) % 4);  // another rail per channel
  }
}

TEST_CASE("fewer channels than ranks of a node are spread evenly over these") {
  const NodeRuns runs = node_runs(node_blocks(2, 8), 16);
  // Three channels over eight ranks: floor(8c/3) = 0, 2, 5.
  for (const auto& [channel, first] : {std::pair{1, 2}, std::pair{2, 5}})
    CHECK(channel_order(runs, Arrangement::snake, std::nullopt, channel, 3).front() == first);
  // More channels than ranks go around: channel 9 begins where channel 1 does.
  CHECK(channel_order(runs, Arrangement::snake, std::nullopt, 9, 10) ==
        channel_order(runs, Arrangement::snake, std::nullopt, 1, 10));
}

TEST_CASE("with an even number of nodes the ring also closes on one rail") {
  for (int channel = 0; channel < 3; ++channel) {
    Order o = order(Arrangement::snake, channel, std::nullopt, node_blocks(4, 3));
    if (o.empty()) continue;
    CHECK(o.front() % 3 == o.back() % 3);
  }
}

TEST_CASE("the root comes first, and its node") {
  for (const Arrangement a : {Arrangement::snake, Arrangement::rotated, Arrangement::aligned})
    for (int channel = 0; channel < 4; ++channel)
      for (int root = 0; root < 12; ++root) {
        const Order o = order(a, channel, root);
        REQUIRE((o.empty() || o.front() == root));
        if (o.empty()) continue;
        for (std::size_t i = 1; i < 4; ++i) CHECK(o[i] / 4 == root / 4);
      }
}

TEST_CASE("on one node every channel of a rooted ring goes around from the root, neighbour by neighbour") {
  for (const int channel : {0, 1, 2, 3})
    CHECK(channel_order(node_runs({}, 8), Arrangement::snake, 3, channel, 4) == Order{3, 4, 5, 6, 7, 0, 1, 2});
}

TEST_CASE("aligned orders pair equal local indices across nodes") {
  for (int channel = 0; channel < 4; ++channel) {
    const Order o = order(Arrangement::aligned, channel, 6);  // local index 2 of node 1
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(o[i] % 4 == o[i + 4] % 4);
      CHECK(o[i] % 4 == o[i + 8] % 4);
    }
  }
}

TEST_CASE("one channel on one node is the identity, which is not stored") {
  CHECK(channel_order(node_runs({}, 5), Arrangement::snake, std::nullopt, 0, 1).empty());
  CHECK(channel_order(node_runs({}, 5), Arrangement::rotated, 0, 0, 1).empty());
}

TEST_CASE("interleaved nodes keep the order of the group, turned to the root") {
  CHECK(order(Arrangement::snake, 1, 2, {0, 1, 0, 1}) == Order{2, 3, 0, 1});
}
