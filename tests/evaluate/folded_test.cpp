// Patterns whose positions are folded into classes take what they take unfolded, to the last picosecond.
#include "collcast/engine/folded.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "evaluate/group_patterns.hpp"
#include "sample_requests.hpp"
#include "support/patterns.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

namespace {

/// One GPU of every node from `first` on; beside it, if `all`, those of the other GPUs.
CollectiveRequest across(const Fabric& fabric, CollectiveKind kind, Bytes size, bool all) {
  const int per_node = fabric.ranks_per_node(), nodes = fabric.rank_count() / per_node;
  CollectiveRequest r{kind, Group::strided(Rank(0), per_node, nodes), size, 0, {}};
  for (int gpu = 1; all && gpu < per_node; ++gpu)
    r.alongside.push_back(Group::strided(Rank(static_cast<std::uint32_t>(gpu)), per_node, nodes));
  return r;
}

CollectiveRequest whole(const Fabric& fabric, CollectiveKind kind, Bytes size) {
  return {kind, first_ranks(fabric.rank_count()), size, 0, {}};
}

Fabric with_slow_link(const Fabric& fabric, std::size_t link) {
  std::vector<Link> links(fabric.links().begin(), fabric.links().end());
  Link& slow = links[link % links.size()];
  slow.bandwidth = Bandwidth(slow.bandwidth.value() * 0.6);
  return fabric.with_links(std::move(links));
}

struct Seen {
  int folded = 0, left = 0;
};

/// Folded, if it can be, as spelled out to the engine position by position.
void compare(const Fabric& fabric, const std::vector<Pattern>& patterns, Seen& seen,
             Sharing sharing = Sharing::max_min) {
  const auto folded = simulate_folded(fabric, patterns, {sharing});
  if (!folded) {
    ++seen.left;
    return;
  }
  ++seen.folded;
  REQUIRE(*folded);
  Schedule schedule;
  std::vector<OpId> first;
  std::int64_t messages = 0;
  for (const Pattern& pattern : patterns) {
    first.push_back(schedule.add_exchange(pattern));
    messages += traffic(pattern).messages;
  }
  const Timeline plain = simulate(fabric, schedule, {sharing}).value();
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    SimTime finish{};
    for (int i = 0; i < patterns[p].size(); ++i)
      finish = std::max(finish, plain.ops[first[p].value() + static_cast<std::uint32_t>(i)].finish);
    CHECK((*folded)->finish[p] == finish);
  }
  CHECK((*folded)->messages == messages);
  CHECK((*folded)->stepped < messages);
  CHECK((*folded)->classes * 4 <= (*folded)->positions);
}

void compare_all(const Fabric& fabric, Seen& seen) {
  for (const CollectiveKind kind : {all_reduce, all_gather, reduce_scatter, broadcast, alltoall})
    for (const std::int64_t bytes : {std::int64_t{5}, std::int64_t{1} << 26})
      for (const CollectiveRequest& r : {across(fabric, kind, Bytes(bytes), false),
                                         across(fabric, kind, Bytes(bytes), true), whole(fabric, kind, Bytes(bytes))})
        for (const AlgorithmInfo& info : algorithms())
          for (const int chunks : {1, 3})
            for (const int channels : {1, 2}) {
              const auto patterns = group_patterns(fabric, r, {info.name, chunks, channels, {}});
              if (!patterns) continue;
              INFO(info.name << " " << to_string(kind) << " " << bytes << " bytes, " << patterns->size() << " groups");
              compare(fabric, *patterns, seen);
            }
}

}  // namespace

TEST_CASE("what is folded takes what it takes unfolded, to the last picosecond, whatever the algorithm") {
  Seen seen;
  for (const Fabric& fabric :
       {star_fabric(16, Bandwidth(10e9), Seconds(2e-6)), ring_fabric(17, Bandwidth(10e9), Seconds(0)),
        pods(18, true, 2), pods(18, false, 2), pods(16, true, 5)}) {
    compare_all(fabric, seen);
    compare_all(with_slow_link(fabric, 5), seen);
  }
  CHECK(seen.folded > 500);
  CHECK(seen.left > 500);
}

TEST_CASE("both directions of a ring are one position each, and a slow link tells those near it from others") {
  // 64 hosts on one switch: a host's two sends share its link up, its two receives the one down.
  const Fabric fabric = star_fabric(64, Bandwidth(10e9), Seconds(1e-6));
  const auto patterns =
      group_patterns(fabric, whole(fabric, all_reduce, Bytes(1 << 26)), {"bidirectional_ring", 1, 1, {}}).value();
  const auto run = simulate_folded(fabric, patterns);
  REQUIRE(run);
  CHECK((*run)->positions == 128);
  CHECK((*run)->classes == 2);
  CHECK((*run)->messages == 2 * 64 * 2 * 63);
  CHECK((*run)->stepped == 2 * 2 * 63);
  // Both directions take half of N/k bytes for 2 (k-1) rounds, at half of the link's rate each; two links a hop.
  const double round = (1 << 26) / 64.0 / 10e9 + 2 * 1e-6;
  CHECK(to_seconds((*run)->finish.front()).count() == Approx(2 * 63 * round).epsilon(1e-9));

  // How far a position is from the slow link is how soon it notices: every one is for itself.
  CHECK_FALSE(simulate_folded(with_slow_link(fabric, 5), patterns));
}

TEST_CASE("a root's link is met by many of a class, and is not folded") {
  const Fabric fabric = star_fabric(64, Bandwidth(10e9), Seconds(0));
  const auto patterns = group_patterns(fabric, whole(fabric, gather, Bytes(1 << 20)), {"naive", 1, 1, {}}).value();
  CHECK_FALSE(simulate_folded(fabric, patterns));
}

TEST_CASE("links that are taken in turn are not folded, links that nobody shares are") {
  const Fabric fabric = star_fabric(32, Bandwidth(10e9), Seconds(0));
  const auto patterns =
      group_patterns(fabric, whole(fabric, all_reduce, Bytes(1 << 20)), {"bidirectional_ring", 1, 1, {}}).value();
  CHECK_FALSE(simulate_folded(fabric, patterns, {Sharing::fifo}));
  Seen seen;
  compare(fabric, patterns, seen, Sharing::none);
  CHECK(seen.folded == 1);
}

TEST_CASE("a folded run that is ended from outside fails, one ended before it begins is no folded run") {
  const Fabric fabric = star_fabric(32, Bandwidth(10e9), Seconds(0));
  const auto patterns =
      group_patterns(fabric, whole(fabric, all_reduce, Bytes(1 << 20)), {"bidirectional_ring", 1, 1, {}}).value();
  int asked = 0;
  const auto ended_at = [&](int last) {
    asked = 0;
    return simulate_folded(fabric, patterns,
                           {Sharing::max_min, [&, last](const EngineProgress&) { return ++asked != last; }});
  };
  REQUIRE(ended_at(-1));
  const int times = asked;  // the last time by the run itself
  REQUIRE(ended_at(times));
  CHECK_FALSE(*ended_at(times));
  CHECK_FALSE(ended_at(1));
}
