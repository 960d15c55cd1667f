// Some nodes of a machine as a machine of their own: the same ways over the same links in the same order.
#include <catch2/catch.hpp>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

std::vector<std::vector<int>> some_nodes(int nodes) {
  std::vector<std::vector<int>> sets;
  for (unsigned pick = 1; pick < 1U << nodes; ++pick) {
    std::vector<int> set;
    for (int n = 0; n < nodes; ++n)
      if ((pick >> n & 1U) != 0) set.push_back(n);
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace

TEST_CASE("a part has the ways of the whole, over links of the same names, numbers and order") {
  const std::pair<TopologySpec, int> machines[] = {{teaching(star()), 5},
                                                   {teaching(plain_leaves(2, 2, 1.5)), 5},
                                                   {dgx(star()), 3},
                                                   {dgx(rails(2, 3, 2)), 5},
                                                   {dgx(rails(4, 0, 1)), 3},
                                                   {dgx(plain_leaves(2, 2, 1)), 4},
                                                   {pcie_box(rails(2, 2, 1)), 4}};
  for (const auto& [spec, nodes] : machines) {
    const Fabric whole = build(spec, nodes);
    const int per_node = whole.ranks_per_node();
    for (const std::vector<int>& set : some_nodes(nodes)) {
      const Fabric part = whole.part(set).value();
      REQUIRE(part.rank_count() == static_cast<int>(set.size()) * per_node);
      CHECK(part.links().size() <= whole.links().size());
      std::vector<LinkId> of_whole(part.links().size(), LinkId(~0U));
      const auto in_whole = [&](int rank) {
        return set[static_cast<std::size_t>(rank / per_node)] * per_node + rank % per_node;
      };
      for (int from = 0; from < part.rank_count(); ++from)
        for (int to = 0; to < part.rank_count(); ++to)
          for (const int lane : {0, 1, 5}) {
            const std::vector<LinkId> here = links_of(part, from, to, lane);
            const std::vector<LinkId> there = links_of(whole, in_whole(from), in_whole(to), lane);
            REQUIRE(here.size() == there.size());
            for (std::size_t i = 0; i < here.size(); ++i) {
              of_whole[here[i].value()] = there[i];
              REQUIRE(part.link_name(here[i]) == whole.link_name(there[i]));
              REQUIRE(part.links()[here[i].value()].bandwidth == whole.links()[there[i].value()].bandwidth);
              REQUIRE(part.links()[here[i].value()].latency == whole.links()[there[i].value()].latency);
            }
          }
      LinkId last(0);
      for (const LinkId link : of_whole) {
        if (link == LinkId(~0U)) continue;  // on no way
        CHECK(last <= link);
        last = link;
      }
    }
  }
}

TEST_CASE("nodes of a torus, and of a machine whose links differ, are no machine of their own") {
  const Fabric ring = build(teaching(torus({}, true)), 6);
  CHECK_FALSE(ring.part({0, 1}));
  CHECK(ring.part({4})->rank_count() == 1);
  const Fabric whole = build(dgx(star()), 3);
  CHECK(whole.is_as_built());
  std::vector<Link> links(whole.links().begin(), whole.links().end());
  links[3].bandwidth = links[3].bandwidth * 0.5;
  const Fabric slow = whole.with_links(links);
  CHECK_FALSE(slow.is_as_built());
  CHECK_FALSE(slow.part({0, 1}));
  CHECK_FALSE(whole.with_drives(2, gb_per_s(10), {0, 1}).part({0, 1}));
}
