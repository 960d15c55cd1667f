// Groups at once: those that share no link with a group, not even through others, change nothing for it.
#include "evaluate/meeting.hpp"

#include <catch2/catch.hpp>

#include "collcast/cost/estimate.hpp"
#include "evaluate/group_patterns.hpp"
#include "sample_requests.hpp"
#include "support/patterns.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

namespace {

/// A group of every node's GPU 0, and beside it those of the other GPUs.
CollectiveRequest beside(const Fabric& fabric, CollectiveKind kind, int nodes, Bytes size) {
  const int per_node = fabric.ranks_per_node();
  CollectiveRequest r{kind, Group::strided(Rank(0), per_node, nodes), size, 0, {}};
  for (int gpu = 1; gpu < per_node; ++gpu)
    r.alongside.push_back(Group::strided(Rank(static_cast<std::uint32_t>(gpu)), per_node, nodes));
  return r;
}

}  // namespace

TEST_CASE("who is left out changes neither the closed form nor the simulation, to the last bit") {
  int left_out = 0, kept = 0;
  for (const Fabric& fabric : {pods(9, true, 2), pods(9, false, 2), pods(6, true, 5)})
    for (const CollectiveKind kind : {all_reduce, all_gather, broadcast, alltoall})
      for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{5000}, std::int64_t{1} << 26})
        for (const int nodes : {2, 3, 5, 6})
          for (const AlgorithmInfo& info : algorithms())
            for (const int channels : {1, 2}) {
              const CollectiveRequest r = beside(fabric, kind, nodes, Bytes(bytes));
              const auto all = group_patterns(fabric, r, {info.name, 2, channels, {}});
              if (!all) continue;
              const std::vector<Pattern> met = that_meet_the_first(fabric, *all);
              REQUIRE(met.front().group.ranks() == r.group.ranks());
              (met.size() < all->size() ? left_out : kept) += 1;
              const Estimate one = estimate_first(fabric, met), every = estimate_first(fabric, *all);
              CHECK(one.total == every.total);
              CHECK(one.exact() == every.exact());
              CHECK(simulate_together(fabric, met)->times.front() == simulate_together(fabric, *all)->times.front());
            }
  CHECK(left_out > 50);
  CHECK(kept > 50);
}

TEST_CASE("groups that run together take the same in whatever order they are listed, links taken in turn too") {
  // Ranks 0 and 1 send the same to both groups' third, all at once: who goes first is a tie.
  const Fabric fabric = star_fabric(6, Bandwidth(10e9), Seconds(0));
  const auto naive = [&](std::uint32_t third) {
    return make_pattern({broadcast, Group::listed({Rank(0), Rank(1), Rank(third)}), Bytes(1 << 20), 0, {}},
                        options("naive"))
        .value();
  };
  std::vector<Pattern> patterns{naive(2), naive(3), naive(4), naive(5)};
  for (const Sharing sharing : {Sharing::max_min, Sharing::fifo}) {
    const std::vector<Seconds> times = simulate_together(fabric, patterns, {sharing})->times;
    std::vector<Pattern> turned(patterns.rbegin(), patterns.rend());
    const std::vector<Seconds> other = simulate_together(fabric, turned, {sharing})->times;
    CHECK(std::equal(times.begin(), times.end(), other.rbegin()));
  }
}

TEST_CASE("who meets the first through another one is kept") {
  // GPUs 0 and 1 send by NIC 0, 2 and 3 by NIC 1: groups of GPUs 0 and 1 meet, and one of GPU 1 with GPU 2 joins the
  // latter to them.
  const Fabric fabric = pods(2, true, 2);
  const auto ring = [&](std::uint32_t a, std::uint32_t b) {
    return group_patterns(fabric, {all_reduce, Group::listed({Rank(a), Rank(b)}), Bytes(1000), 0, {}},
                          {"ring", 1, 1, {}})
        ->front();
  };
  CHECK(that_meet_the_first(fabric, {ring(0, 4), ring(2, 6)}).size() == 1);
  CHECK(that_meet_the_first(fabric, {ring(0, 4), ring(1, 5)}).size() == 2);
  CHECK(that_meet_the_first(fabric, {ring(0, 4), ring(2, 6), ring(3, 5)}).size() == 3);
}
