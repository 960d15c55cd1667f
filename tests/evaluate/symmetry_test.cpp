// The fastest alone is choose()'s first, and a request costs the same wherever the machine looks the same.
#include "collcast/evaluate/symmetry.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "agreement/answers.hpp"
#include "collcast/evaluate/prepared.hpp"
#include "evaluate/smaller_machines.hpp"
#include "sample_requests.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

namespace {

std::uint32_t last_rank(const CollectiveRequest& r) {
  std::uint32_t last = 0;
  for (int i = 0; i < r.group.size(); ++i) last = std::max(last, r.group[i].value());
  for (const Group& g : r.alongside)
    for (int i = 0; i < g.size(); ++i) last = std::max(last, g[i].value());
  return last;
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

TEST_CASE("a machine that ends with a request is one of few, however many requests end elsewhere") {
  const Fabric whole = star_fabric(100, Bandwidth(10e9), Seconds(1e-6));
  SmallerMachines machines(whole);
  std::set<const Fabric*> seen;
  int smaller = 0;
  for (int nodes = 1; nodes <= whole.nodes(); ++nodes) {
    const Fabric& one = machines.of(nodes);
    CHECK(one.nodes() >= nodes);
    if (seen.insert(&one).second && &one != &whole) smaller += one.nodes();
  }
  CHECK(seen.size() == 8);  // of 1, 2, 4 ... 64 nodes, and the whole
  CHECK(smaller == 127);
}

TEST_CASE("a price that is ended from outside is ended before anything is looked up") {
  const Fabric fabric = star_fabric(100, Bandwidth(10e9), Seconds(1e-6));
  int asked = 0;
  const CollectiveTime time = by_estimate_at_front(fabric, {"ring", 1, 1}, {[&] { return ++asked > 1; }});
  const CollectiveRequest r{all_reduce, Group::strided(Rank(0), 1, 8), Bytes(1 << 20), 0, {}};
  const Result<Seconds> ended = time(r);
  REQUIRE_FALSE(ended);
  CHECK(asked == 1);
  CHECK(time(r).value() == by_estimate(fabric, {"ring", 1, 1})(r).value());
}
