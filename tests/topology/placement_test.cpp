// A job's nodes anywhere on a machine: the ways are those between the machine's own ranks.
#include "collcast/topology/placement.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

#include "../support/dice.hpp"
#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;
using Catch::Matchers::Contains;

namespace {

Placement on_nodes(std::vector<int> nodes) { return {std::move(nodes), false, 1, {"s.yaml", 3, 9}}; }

std::vector<int> order_of(const Fabric& fabric) {
  std::vector<int> nodes;
  for (int node = 0; node < fabric.nodes(); ++node) {
    const Rank first(static_cast<std::uint32_t>(node * fabric.ranks_per_node()));
    nodes.push_back(static_cast<int>(fabric.on_machine(first).value()) / fabric.ranks_per_node());
  }
  return nodes;
}

}  // namespace

TEST_CASE("a placed job has the ways of the machine's ranks that it is on") {
  const std::pair<TopologySpec, int> machines[] = {{teaching(star()), 5},
                                                   {teaching(plain_leaves(2, 2, 1.5)), 5},
                                                   {dgx(rails(2, 3, 2)), 5},
                                                   {dgx(plain_leaves(2, 2, 1)), 4}};
  Dice dice(1);
  for (const auto& [spec, nodes] : machines)
    for (int round = 0; round < 5; ++round) {
      const Fabric machine = build(spec, nodes);
      const std::vector<int> order = dice.permutation(nodes);
      const Fabric job = machine.placed(order);
      CHECK(order_of(job) == order);
      CHECK(job.is_placed());
      CHECK(!machine.is_placed());
      for (int from = 0; from < job.rank_count(); ++from)
        for (int to = 0; to < job.rank_count(); ++to)
          for (const int lane : {0, 1, 5}) {
            const auto there = [&](int rank) {
              return static_cast<int>(job.on_machine(Rank(static_cast<std::uint32_t>(rank))).value());
            };
            REQUIRE(links_of(job, from, to, lane) == links_of(machine, there(from), there(to), lane));
          }
    }
}

TEST_CASE("nodes that are not named follow in their order") {
  CHECK(order_of(build(teaching(star()), 5).placed({3, 1})) == std::vector<int>{3, 1, 0, 2, 4});
}

TEST_CASE("random nodes are a permutation by seed") {
  const Fabric machine = build(teaching(star()), 40);
  const auto drawn = [&](int seed) { return order_of(with_placement(machine, {{}, true, seed, {}}, 40).value()); };
  std::vector<int> sorted = drawn(1);
  CHECK(sorted == drawn(1));
  CHECK(sorted != drawn(2));
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> all(40);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  // Of 400 fair draws each node is first ten times on the mean, standard deviation 3.1: one that never is, or more than
  // 26 times (five deviations), would be there in one of five hundred tries.
  std::vector<int> first(40);
  for (int seed = 0; seed < 400; ++seed) ++first[static_cast<std::size_t>(drawn(seed).front())];
  CHECK(*std::min_element(first.begin(), first.end()) >= 1);
  CHECK(*std::max_element(first.begin(), first.end()) <= 26);
}

TEST_CASE("no placement leaves the machine as it is") {
  CHECK(!with_placement(build(teaching(star()), 4), {}, 4)->is_placed());
}

TEST_CASE("nodes that the machine has not, twice or too few are told where they are named, all at once") {
  const Fabric machine = build(teaching(star()), 4);
  const Result<Fabric> wrong = with_placement(machine, on_nodes({0, 4, 0}), 4);
  REQUIRE(!wrong);
  const std::string text = to_text(wrong.errors());
  CHECK_THAT(text, Contains("s.yaml:3:9") && Contains("node 4 is not of this machine, which has 4") &&
                       Contains("expected nodes from 0 to 3"));
  CHECK_THAT(text, Contains("node 0 is placed twice"));
  CHECK_THAT(text, Contains("3 nodes are placed, the job needs 4"));
}

TEST_CASE("a placement is told in few words") {
  CHECK(to_text(on_nodes({3, 0})) == "nodes 3, 0");
  CHECK(to_text(Placement{{}, true, 7, {}}) == "random nodes, seed 7");
  std::vector<int> many(20);
  std::iota(many.begin(), many.end(), 0);
  CHECK_THAT(to_text(on_nodes(many)), Contains("14, 15 ... (20 nodes)"));
}
