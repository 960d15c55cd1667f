// The nodes of a group: of each rank, each once, how many, whether one alone; and of random groups all four together.
#include "collcast/evaluate/nodes.hpp"

#include <catch2/catch.hpp>

#include <set>

#include "sample_requests.hpp"
#include "support/dice.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("hosts are nodes of one rank: a group is on as many as it has ranks") {
  const Fabric hosts = star_fabric(4, Bandwidth(1e9), Seconds(1e-6));
  const Group all = Group::listed({Rank(3), Rank(0), Rank(2)});
  CHECK(node_of_each(hosts, all) == std::vector<int>{3, 0, 2});
  CHECK(nodes_of(hosts, all) == std::vector<NodeId>{NodeId(0), NodeId(2), NodeId(3)});
  CHECK(node_count(hosts, all) == 3);
  CHECK(!is_on_one_node(hosts, all));
  CHECK(is_on_one_node(hosts, Group::strided(Rank(1), 1, 1)));
}

TEST_CASE("nodes in a group's order, each once, their number, and whether one alone agree") {
  Dice dice(11);
  for (const Fabric& fabric : machines())
    for (int round = 0; round < 40; ++round) {
      const std::vector<int> order = dice.permutation(fabric.rank_count());
      const int size = 1 + dice.roll(fabric.rank_count());
      std::vector<Rank> ranks;
      for (int i = 0; i < size; ++i) ranks.emplace_back(static_cast<std::uint32_t>(order[static_cast<std::size_t>(i)]));
      const Group group = Group::listed(ranks);
      std::vector<int> each;
      std::set<NodeId> once;
      for (const Rank r : ranks) {
        each.push_back(static_cast<int>(r.value()) / fabric.ranks_per_node());
        once.insert(NodeId(r.value() / static_cast<std::uint32_t>(fabric.ranks_per_node())));
      }
      CHECK(node_of_each(fabric, group) == each);
      CHECK(nodes_of(fabric, group) == std::vector<NodeId>(once.begin(), once.end()));
      CHECK(node_count(fabric, group) == static_cast<int>(once.size()));
      CHECK(is_on_one_node(fabric, group) == (once.size() == 1));
    }
}
