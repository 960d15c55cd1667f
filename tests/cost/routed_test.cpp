// What a closed form keeps between estimates changes no answer, and equals what it stands for.
#include "collcast/cost/routed.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>

#include "collcast/collective/resize.hpp"
#include "cost/histories.hpp"
#include "cost/hops.hpp"
#include "cost/lane_walk.hpp"
#include "support/patterns.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

void check_same(const Estimate& a, const Estimate& b) {
  CHECK(a.total == b.total);
  CHECK(a.shared == b.shared);
  CHECK(a.drifts == b.drifts);
  REQUIRE(a.phases.size() == b.phases.size());
  for (std::size_t p = 0; p < a.phases.size(); ++p) {
    CHECK(a.phases[p].by_rounds == b.phases[p].by_rounds);
    CHECK(a.phases[p].by_load == b.phases[p].by_load);
    CHECK(a.phases[p].busiest == b.phases[p].busiest);
    CHECK(a.phases[p].busiest_bytes == b.phases[p].busiest_bytes);
    CHECK(a.phases[p].rate == b.phases[p].rate);
    CHECK(a.phases[p].latency == b.phases[p].latency);
  }
}

/// Four ranks on each of three switches, which one slower switch joins.
Fabric three_nodes() {
  std::vector<Cable> cables;
  for (int rank = 0; rank < 12; ++rank) cables.push_back({rank, 12 + rank / 4, Bandwidth(300e9), Seconds(1e-6)});
  for (int node = 0; node < 3; ++node) cables.push_back({12 + node, 15, Bandwidth(25e9), Seconds(2e-6)});
  return cabled_fabric(12, 4, cables);
}

/// Calls visit(fabric, patterns, kind) for every algorithm and kind, alone and two at once, on several machines.
template <class Visit>
void each_case(Visit visit) {
  const std::vector<Fabric> fabrics{three_nodes(), ring_fabric(12, Bandwidth(10e9), Seconds(2e-6)),
                                    star_fabric(12, Bandwidth(10e9), Seconds(0))};
  for (const Fabric& fabric : fabrics)
    for (const AlgorithmInfo& a : algorithms())
      for (const CollectiveKind kind : a.kinds)
        for (const int chunks : {1, 8}) {
          const auto make = [&](std::uint32_t first, int stride, int size) {
            std::vector<int> node_of;
            const Group group = Group::strided(Rank(first), stride, size);
            for (int i = 0; i < size; ++i) node_of.push_back(static_cast<int>(group[i].value()) / 4);
            return make_pattern({kind, group, Bytes(1'000'003), 0, {}}, {a.name, chunks, 2, node_of});
          };
          const auto all = make(0, 1, 12), half = make(0, 2, 6), other = make(1, 2, 6);
          if (all) visit(fabric, std::vector<Pattern>{*all}, kind);
          if (half && other) visit(fabric, std::vector<Pattern>{*half, *other}, kind);
        }
}

}  // namespace

TEST_CASE("routes that are kept and routes that are looked up each time give the same estimate") {
  int cases = 0;
  each_case([&](const Fabric& fabric, const std::vector<Pattern>& patterns, CollectiveKind) {
    const RoutedPatterns kept(fabric, patterns), looked_up(fabric, patterns, 0);
    CHECK(kept.crossings() > 0);
    CHECK(looked_up.crossings() == 0);
    check_same(estimate_first(kept, patterns), estimate_first(looked_up, patterns));
    check_same(estimate_first(kept, patterns), estimate(fabric, patterns).front());
    const LeastTime least = least_time(kept, patterns), other = least_time(looked_up, patterns);
    CHECK(least.load == other.load);
    for (const auto chain : {&LeastTime::far, &LeastTime::crowded}) {
      CHECK((least.*chain).latency == (other.*chain).latency);
      CHECK((least.*chain).load == (other.*chain).load);
    }
    ++cases;
  });
  CHECK(cases > 100);
}

TEST_CASE("the routes of one size serve all sizes, and so does the bound") {
  each_case([](const Fabric& fabric, const std::vector<Pattern>& patterns, CollectiveKind kind) {
    const RoutedPatterns routed(fabric, patterns);
    const LeastTime least = least_time(routed, patterns);
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{1} << 33}) {
      std::vector<Pattern> resized = patterns;
      for (Pattern& p : resized) resize(p, kind, Bytes(bytes));
      const Estimate e = estimate_first(routed, resized);
      check_same(e, estimate_first(fabric, resized));
      CHECK(least.at(static_cast<double>(bytes) / 1'000'003) <= e.total);
    }
  });
}

TEST_CASE("in the bound phases that wait for each other add up, and so do the rounds of a ring") {
  struct Case {
    const char* algorithm;
    CollectiveKind kind;
    int ranks;
  };
  const Fabric fabric = star_fabric(8, Bandwidth(10e9), Seconds(1e-6));
  for (const auto& [algorithm, kind, ranks] :
       {Case{"halving_doubling", CollectiveKind::all_reduce, 2}, Case{"ring", CollectiveKind::all_reduce, 8},
        Case{"ring", CollectiveKind::all_gather, 5}}) {
    CAPTURE(algorithm);
    const Pattern pattern = make_pattern(request(kind, ranks, std::int64_t{1} << 30), {algorithm, 1, 1, {}}).value();
    const Seconds least = least_time(fabric, {&pattern, 1}), time = estimate(fabric, pattern).total;
    CHECK(least <= time);
    CHECK(time <= least * 1.001);
  }
}

TEST_CASE("resizing a pattern makes it the pattern of that size") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds) {
      const auto of = [&](std::int64_t bytes) {
        return make_pattern(request(kind, 8, bytes), {a.name, 1, 3, node_blocks(2, 4)}).value();
      };
      Pattern pattern = of(1);
      const Pattern expected = of(123'456'789);
      resize(pattern, kind, Bytes(123'456'789));
      REQUIRE(pattern.lanes.size() == expected.lanes.size());
      for (std::size_t l = 0; l < pattern.lanes.size(); ++l) CHECK(pattern.lanes[l].block == expected.lanes[l].block);
    }
}

TEST_CASE("walkers come up in the order of their moments, and in that in which they came") {
  std::mt19937 random(11);
  Agenda agenda;
  std::map<double, std::vector<int>> expected;
  std::vector<Walker> due;
  for (int turn = 0, pushed = 0; turn < 20'000; ++turn) {
    if (random() % 3 != 0 && pushed < 12'000) {
      // Few moments, many of them twice in a row.
      const double moment = static_cast<double>(random() % 40 / 2) + (pushed < 6000 ? 0 : 20);
      for (unsigned i = 0; i <= random() % 3; ++i, ++pushed) {
        agenda.push(moment, {0, pushed});
        expected[moment].push_back(pushed);
      }
    } else if (!agenda.empty()) {
      CHECK(agenda.pop(due) == expected.begin()->first);
      REQUIRE(due.size() == expected.begin()->second.size());
      for (std::size_t i = 0; i < due.size(); ++i) CHECK(due[i].position == expected.begin()->second[i]);
      expected.erase(expected.begin());
    }
    REQUIRE(agenda.empty() == expected.empty());
  }
}

TEST_CASE("a moment is the nearest of 40 bits") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const double time = std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 120));
    int exponent = 0;
    const double mantissa = std::frexp(time, &exponent);
    CHECK(moment(time) == std::ldexp(std::round(std::ldexp(mantissa, 40)), exponent - 40));
  }
  CHECK(moment(0) == 0);
}

TEST_CASE("links with the same history meet the same, each as if it had crossings of its own") {
  std::mt19937 random(3);
  constexpr std::uint32_t links = 40;
  Histories histories(links);
  std::vector<Crossings> own(links);
  double now = 0;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 4 == 0) now += static_cast<double>(random() % 3);
    const Histories::Announcement next{now, 1.0 + static_cast<double>(random() % 2), 1};
    histories.announce(next);
    // Links of equal remainder by 5 are crossed together.
    for (auto link = static_cast<std::uint32_t>(random() % 5); link < links; link += 5) {
      histories.add(link);
      own[link].add(next.moment, next.bytes, next.duty);
    }
  }
  std::vector<Crossings> shared = histories.close();
  CHECK(shared.size() == 5);
  for (Crossings& one : own) one.close();
  for (double moment = 0; moment <= now; ++moment)
    for (std::uint32_t link = 0; link < links; ++link)
      for (const double bytes : {1.0, 2.0}) {
        const Crossings::Others a = shared[histories.by_link()[link]].beside(moment, bytes, 0.5 * bytes, 9);
        const Crossings::Others b = own[link].beside(moment, bytes, 0.5 * bytes, 9);
        REQUIRE(a.begun == b.begun);
        REQUIRE(a.earlier == b.earlier);
        REQUIRE(a.later == b.later);
      }
}
