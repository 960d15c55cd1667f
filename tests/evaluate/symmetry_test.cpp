// The fastest alone is choose()'s first, and a request costs the same wherever the machine looks the same.
#include "collcast/evaluate/symmetry.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "agreement/answers.hpp"
#include "collcast/evaluate/prepared.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

namespace {

/// Nodes of 4 GPUs on a switch, a NIC per two GPUs, in pods of 3 nodes.
Fabric pods(int nodes, bool rails, int spines) {
  const auto link = [](const char* from, const char* to, Wiring wiring, double rate, double latency) {
    LinkGroup group;
    group.from = from;
    group.to = to;
    group.wiring = wiring;
    group.kind = LinkKind::pcie;
    group.bandwidth = Bandwidth(rate);
    group.latency = Seconds(latency);
    return group;
  };
  TopologySpec spec;
  spec.name = "pods";
  spec.devices = {
      {"gpu", DeviceKind::gpu, 4, {}}, {"nvswitch", DeviceKind::nvswitch, 1, {}}, {"nic", DeviceKind::nic, 2, {}}};
  spec.links = {link("gpu", "nvswitch", Wiring::all, 200e9, 300e-9), link("gpu", "nic", Wiring::spread, 30e9, 250e-9)};
  spec.network_devices = "nic";
  LeafSpineNetwork net;
  net.rail_optimized = rails;
  net.nodes_per_leaf = 3;
  net.spines = spines;
  net.oversubscription = 2;
  net.bandwidth = Bandwidth(25e9);
  net.latency = Seconds(500e-9);
  net.spine_latency = Seconds(200e-9);
  spec.network = net;
  const auto fabric = Fabric::build(spec, nodes);
  REQUIRE(to_text(fabric.errors()) == "");
  return fabric.value();
}

std::vector<Fabric> machines() {
  return {pods(9, true, 2), pods(9, false, 2), cluster_fabric(6, 4, Bandwidth(300e9), Bandwidth(25e9), Seconds(1e-6)),
          ring_fabric(12, Bandwidth(10e9), Seconds(1e-6)), star_fabric(12, Bandwidth(10e9), Seconds(2e-6))};
}

std::uint32_t last_rank(const CollectiveRequest& r) {
  std::uint32_t last = 0;
  for (int i = 0; i < r.group.size(); ++i) last = std::max(last, r.group[i].value());
  for (const Group& g : r.alongside)
    for (int i = 0; i < g.size(); ++i) last = std::max(last, g[i].value());
  return last;
}

/// Strided and listed groups, alone and beside others, of many sizes.
std::vector<CollectiveRequest> requests(const Fabric& fabric, int count) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<CollectiveRequest> all;
  while (static_cast<int>(all.size()) < count) {
    const int size = 2 + below(5), stride = 1 + below(5);
    const int span = (size - 1) * stride + 1;
    if (span > fabric.rank_count()) continue;
    const auto first = static_cast<std::uint32_t>(below(fabric.rank_count() - span + 1));
    const CollectiveKind kinds[] = {all_reduce, all_gather, reduce_scatter, broadcast};
    CollectiveRequest r{
        kinds[below(4)], Group::strided(Rank(first), stride, size), Bytes(std::int64_t{1} << below(31)), 0, {}};
    if (stride > 1 && first + static_cast<std::uint32_t>(span) < static_cast<std::uint32_t>(fabric.rank_count()))
      r.alongside.push_back(Group::strided(Rank(first + 1), stride, size));
    if (below(3) == 0) r.group = Group::listed({r.group[1], r.group[0]});
    if (below(3) == 0 && !r.alongside.empty()) r.alongside.clear();
    all.push_back(std::move(r));
  }
  return all;
}

}  // namespace

TEST_CASE("the fastest alone is the first of all choices") {
  for (const Fabric& fabric : machines())
    for (const CollectiveRequest& r : requests(fabric, 60)) {
      const std::vector<Choice> choices = choose(fabric, r, {}).value();
      const Choice& first = choices.front();
      const Choice alone = fastest(fabric, r, {}).value();
      CHECK(alone.options.algorithm == first.options.algorithm);
      CHECK(alone.options.chunks == first.options.chunks);
      CHECK(alone.options.channels == first.options.channels);
      CHECK(alone.pattern.chunks == first.pattern.chunks);
      CHECK(alone.estimate.total == first.estimate.total);
      CHECK(by_estimate(fabric, {})(r).value() == first.estimate.total);
      for (const Choice& c : choices) CHECK(least_time(fabric, {&c.pattern, 1}) <= estimate(fabric, c.pattern).total);
    }
}

TEST_CASE("what was prepared once answers every size as if it had been asked anew") {
  for (const Fabric& fabric : machines())
    for (CollectiveRequest r : requests(fabric, 20)) {
      const PreparedCollective prepared = PreparedCollective::make(fabric, r, {}).value();
      const std::vector<std::string> names = prepared.algorithms();
      for (const std::int64_t bytes :
           {std::int64_t{1}, std::int64_t{5000}, std::int64_t{1} << 20, std::int64_t{3} << 31}) {
        r.size = Bytes(bytes);
        const std::vector<Choice> choices = choose(fabric, r, {}).value();  // each algorithm, whatever it takes
        const Choice first = prepared.fastest(r.size);
        CHECK(first.options.algorithm == choices.front().options.algorithm);
        CHECK(first.options.chunks == choices.front().options.chunks);
        CHECK(first.estimate.total == choices.front().estimate.total);
        REQUIRE(names.size() == choices.size());
        for (std::size_t a = 0; a < names.size(); ++a) {
          const auto one = std::find_if(choices.begin(), choices.end(),
                                        [&](const Choice& c) { return c.options.algorithm == names[a]; });
          REQUIRE(one != choices.end());
          CHECK(prepared.price(a, r.size).estimate.total == one->estimate.total);
          CHECK(prepared.at_least(a, r.size) <= one->estimate.total);
        }
      }
    }
}

TEST_CASE("a named algorithm and fixed chunks are the fastest of one") {
  const Fabric fabric = pods(3, true, 2);
  const CollectiveRequest r{all_reduce, Group::strided(Rank(0), 1, 8), Bytes(1 << 20), 0, {}};
  for (const CollectivePolicy& policy : {CollectivePolicy{"ring", 3, 2}, CollectivePolicy{"tree", 0, 0}}) {
    const Choice alone = fastest(fabric, r, policy).value();
    CHECK(alone.options.algorithm == policy.algorithm);
    CHECK(alone.estimate.total == choose(fabric, r, policy).value().front().estimate.total);
  }
  CHECK_FALSE(fastest(fabric, r, {"nothing", 0, 0}).ok());
  CHECK_FALSE(fastest(fabric, {all_reduce, Group::strided(Rank(8), 1, 8), Bytes(1), 0, {}}, {}).ok());
}

TEST_CASE("a moved request costs the same to the last bit, on a machine that ends with it") {
  int moved = 0;
  for (const Fabric& fabric : machines()) {
    CollectivePolicy calibrated;
    calibrated.base_latency = Seconds(3e-6);
    const CollectiveTime whole = by_estimate(fabric, calibrated), front = by_estimate_at_front(fabric, calibrated);
    for (const CollectiveRequest& r : requests(fabric, 150)) {
      const CollectiveRequest there = moved_to_front(fabric, r);
      CHECK(front(there).value() == whole(r).value());
      CHECK(moved_to_front(fabric, there).group.ranks() == there.group.ranks());
      if (last_rank(there) < last_rank(r)) ++moved;
    }
  }
  CHECK(moved > 100);
}

TEST_CASE("what moves is whole nodes, and in a leaf/spine network whole pods or within one") {
  const auto first = [](const Fabric& fabric, Rank rank, int stride, int size) {
    return moved_to_front(fabric, {all_reduce, Group::strided(rank, stride, size), Bytes(1), 0, {}}).group[0].value();
  };
  const Fabric leaves = pods(9, true, 2);     // 4 ranks a node, 12 a pod
  CHECK(first(leaves, Rank(29), 1, 2) == 1);  // node 7: rank 1 of a node
  CHECK(first(leaves, Rank(16), 4, 2) == 0);  // nodes 4 and 5, one pod
  CHECK(first(leaves, Rank(20), 4, 2) == 8);  // nodes 5 and 6: pods 1 and 2 become 0 and 1
  const Fabric ring = ring_fabric(12, Bandwidth(10e9), Seconds(1e-6));
  CHECK(first(ring, Rank(5), 1, 3) == 5);  // a ring is not cut open
}
