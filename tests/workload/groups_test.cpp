// Ranks and coordinates are a bijection, and the groups of a dimension partition the world.
#include "collcast/workload/groups.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// Every layout of degrees 1 to 4 in each dimension, in all orders.
template <class Use>
void every_small_layout(Use use) {
  for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp})
    for (int tp = 1; tp <= 4; ++tp)
      for (int pp = 1; pp <= 4; ++pp)
        for (int dp = 1; dp <= 4; ++dp)
          for (int cp = 1; cp <= 2; ++cp)
            for (int ep = 1; ep <= dp; ++ep) {
              if (dp % ep != 0) continue;
              ParallelLayout l = layout(tp, pp, dp);
              l.cp = cp;
              l.ep = ep;
              l.order = order;
              use(l);
            }
}

}  // namespace

TEST_CASE("512 GPUs as TP 8 x PP 8 x DP 8: the groups of GPU 0") {
  const RankGroups g = groups_of(layout(8, 8, 8), Rank(0));
  CHECK(values(g.tp) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(values(g.pp) == std::vector<std::uint32_t>{0, 8, 16, 24, 32, 40, 48, 56});
  CHECK(values(g.dp) == std::vector<std::uint32_t>{0, 64, 128, 192, 256, 320, 384, 448});
}

TEST_CASE("512 GPUs in Megatron's order: replicas are neighbours, stages are 64 apart") {
  ParallelLayout l = layout(8, 8, 8);
  l.order = RankOrder::tp_cp_ep_dp_pp;
  const RankGroups g = groups_of(l, Rank(0));
  CHECK(values(g.tp) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(values(g.dp) == std::vector<std::uint32_t>{0, 8, 16, 24, 32, 40, 48, 56});
  CHECK(values(g.pp) == std::vector<std::uint32_t>{0, 64, 128, 192, 256, 320, 384, 448});
}

TEST_CASE("512 GPUs with TP strewn: replicas are neighbours, TP ranks are 64 apart") {
  ParallelLayout l = layout(8, 8, 8);
  l.order = RankOrder::dp_pp_tp;
  const RankGroups g = groups_of(l, Rank(0));
  // rank = dp + 8 (pp + 8 tp)
  CHECK(values(g.dp) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(values(g.pp) == std::vector<std::uint32_t>{0, 8, 16, 24, 32, 40, 48, 56});
  CHECK(values(g.tp) == std::vector<std::uint32_t>{0, 64, 128, 192, 256, 320, 384, 448});
  // Experts are spread over neighbours in DP, and each is split over the TP ranks.
  l.ep = 4;
  CHECK(values(groups_of(l, Rank(0)).ep) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(values(expert_tp_group(l, Rank(1))) == std::vector<std::uint32_t>{1, 65, 129, 193, 257, 321, 385, 449});
  CHECK(values(expert_replica_group(l, Rank(1))) == std::vector<std::uint32_t>{1, 5});
}

TEST_CASE("coordinates and ranks are a bijection, in all orders") {
  every_small_layout([](const ParallelLayout& l) {
    for (int r = 0; r < l.world(); ++r) {
      const Rank rank(static_cast<std::uint32_t>(r));
      const Coordinates c = coordinates(l, rank);
      REQUIRE((c.tp < l.tp && c.pp < l.pp && c.dp < l.dp && c.cp < l.cp && c.ep < l.ep));
      REQUIRE(rank_at(l, c) == rank);
    }
  });
}

TEST_CASE("the groups of each dimension partition the world") {
  every_small_layout([](const ParallelLayout& l) {
    for (const auto& [dimension, degree] :
         {std::pair{&RankGroups::tp, l.tp}, std::pair{&RankGroups::pp, l.pp}, std::pair{&RankGroups::dp, l.dp}}) {
      std::set<Rank> seen;
      for (int r = 0; r < l.world(); ++r) {
        // Each group once, when its first rank comes.
        const Rank rank(static_cast<std::uint32_t>(r));
        const Group group = groups_of(l, rank).*dimension;
        if (group[0] != rank) continue;
        REQUIRE(group.size() == degree);
        for (const Rank member : group.ranks()) REQUIRE(seen.insert(member).second);
      }
      REQUIRE(static_cast<int>(seen.size()) == l.world());
    }
  });
}

TEST_CASE("a rank is in each of its groups, which differ in one coordinate only") {
  every_small_layout([](const ParallelLayout& l) {
    for (int r = 0; r < l.world(); ++r) {
      const RankGroups g = groups_of(l, Rank(static_cast<std::uint32_t>(r)));
      const Coordinates own = coordinates(l, g.rank);
      const auto varies = [&](const Group& group, int Coordinates::*dimension) {
        const std::vector<Rank> ranks = group.ranks();
        REQUIRE(std::count(ranks.begin(), ranks.end(), g.rank) == 1);
        for (const Rank other : ranks) {
          Coordinates c = coordinates(l, other);
          c.*dimension = own.*dimension;
          c.ep = own.ep;
          REQUIRE(rank_at(l, c) == g.rank);
        }
      };
      varies(g.tp, &Coordinates::tp);
      varies(g.pp, &Coordinates::pp);
      varies(g.dp, &Coordinates::dp);
      varies(g.cp, &Coordinates::cp);
      REQUIRE(g.ep.size() == l.ep);
      // With CP an EP group goes through its ranks first (Megatron's order): it stays within the TP rank and the stage.
      for (const Rank other : g.ep.ranks()) {
        const Coordinates c = coordinates(l, other);
        REQUIRE((c.tp == own.tp && c.pp == own.pp));
      }
      if (l.cp == 1) varies(g.ep, &Coordinates::dp);
    }
  });
}
