// Laws that hold for every simulation, on random machines and schedules.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "collcast/engine/engine.hpp"
#include "engine/random_cases.hpp"
#include "engine/times.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// Calls `law` with random machines, schedules and ways of sharing.
template <class Law>
void for_random_cases(int cases, Law law) {
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases); ++seed)
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo}) {
      INFO("seed " << seed << ", sharing " << static_cast<int>(sharing));
      Dice dice(seed);
      const Fabric fabric = random_fabric(dice);
      const Schedule schedule = random_schedule(dice, fabric);
      law(fabric, schedule, run(fabric, schedule, sharing));
    }
}

std::vector<LinkId> route(const Fabric& fabric, const Transfer& t) {
  std::vector<LinkId> links;
  fabric.route(t.from, t.to, t.lane, links);
  return links;
}

std::vector<double> bytes_over_links(const Fabric& fabric, const Pattern& pattern) {
  std::vector<double> bytes(fabric.links().size());
  for (const Lane& lane : pattern.lanes)
    for (const Phase& phase : lane.phases)
      for (Position v = 0; v < pattern.size(); ++v)
        for (int j = 0; j < phase.shape->sends(phase, v); ++j) {
          const Hop hop = phase.shape->send(phase, v, j);
          const Transfer t{pattern.rank(lane, v), pattern.rank(lane, hop.peer), {}, lane.route_lane};
          for (const LinkId link : route(fabric, t))
            bytes[link.value()] += (lane.block * static_cast<double>(hop.blocks)).value();
        }
  return bytes;
}

}  // namespace

TEST_CASE("bytes are conserved: every link carries what is routed over it") {
  for_random_cases(300, [](const Fabric& fabric, const Schedule& schedule, const Timeline& timeline) {
    std::vector<double> expected(fabric.links().size());
    for (std::uint32_t i = 0; i < schedule.size(); ++i)
      if (const auto* t = std::get_if<Transfer>(&schedule.work(OpId(i))))
        for (const LinkId link : route(fabric, *t)) expected[link.value()] += t->size.value();
    for (std::size_t l = 0; l < expected.size(); ++l)
      REQUIRE(timeline.links[l].carried.value() == Approx(expected[l]).epsilon(1e-12));
  });
}

TEST_CASE("bytes of exchanges are conserved") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    const Fabric fabric = random_fabric(dice);
    const Pattern pattern = random_pattern(dice, fabric);
    const Timeline timeline = run(fabric, pattern);
    const std::vector<double> expected = bytes_over_links(fabric, pattern);
    for (std::size_t l = 0; l < expected.size(); ++l)
      REQUIRE(timeline.links[l].carried.value() == Approx(expected[l]).epsilon(1e-12));
    REQUIRE(timeline.counters.messages == traffic(pattern).messages);
  }
}

TEST_CASE("no link is over its capacity, in no window of time") {
  for_random_cases(300, [](const Fabric& fabric, const Schedule& schedule, const Timeline& timeline) {
    struct Use {
      SimTime start, left;
      double bytes;
    };
    std::vector<std::vector<Use>> uses(fabric.links().size());
    for (std::uint32_t i = 0; i < schedule.size(); ++i)
      if (const auto* t = std::get_if<Transfer>(&schedule.work(OpId(i))))
        for (const LinkId link : route(fabric, *t))
          uses[link.value()].push_back({timeline.ops[i].start, timeline.ops[i].left, t->size.value()});
    for (std::size_t l = 0; l < uses.size(); ++l) {
      const double capacity = fabric.links()[l].bandwidth.value();
      for (const Use& from : uses[l])
        for (const Use& to : uses[l]) {
          double bytes = 0;  // of all transfers that begin and end within the window
          for (const Use& use : uses[l])
            if (use.start >= from.start && use.left <= to.left) bytes += use.bytes;
          const double window = std::max(0.0, to_seconds(to.left - from.start).count());
          REQUIRE(bytes <= capacity * window * (1 + 1e-12) + 1e-9);
        }
      REQUIRE(timeline.links[l].carried.value() <=
              capacity * to_seconds(timeline.links[l].busy).count() * (1 + 1e-12) + 1e-9);
    }
  });
}

TEST_CASE("nothing starts before what it waits for is over, and everything ends after it starts") {
  for_random_cases(300, [](const Fabric&, const Schedule& schedule, const Timeline& timeline) {
    for (std::uint32_t i = 0; i < schedule.size(); ++i) {
      const Interval& op = timeline.ops[i];
      REQUIRE(op.start <= op.left);
      REQUIRE(op.left <= op.finish);
      REQUIRE(op.finish <= timeline.finish);
      for (const After& edge : schedule.after(OpId(i))) {
        const Interval& before = timeline.ops[edge.op.value()];
        REQUIRE(op.start >= (edge.until == Until::left ? before.left : before.finish));
      }
    }
  });
}

TEST_CASE("no operation is faster than alone") {
  for_random_cases(300, [](const Fabric& fabric, const Schedule& schedule, const Timeline& timeline) {
    for (std::uint32_t i = 0; i < schedule.size(); ++i)
      if (const auto* t = std::get_if<Transfer>(&schedule.work(OpId(i))); t && t->from != t->to) {
        const Path path = fabric.path(t->from, t->to, t->lane);
        REQUIRE(timeline.ops[i].left - timeline.ops[i].start >= to_picoseconds(t->size / path.bandwidth));
        REQUIRE(timeline.ops[i].finish - timeline.ops[i].left == to_picoseconds(path.latency));
      }
  });
}

TEST_CASE("no simulation is faster than its critical path") {
  int slower = 0;
  for_random_cases(300, [&](const Fabric& fabric, const Schedule& schedule, const Timeline& timeline) {
    REQUIRE(timeline.finish >= critical_path(fabric, schedule));
    slower += timeline.finish > critical_path(fabric, schedule) ? 1 : 0;
  });
  CHECK(slower > 100);  // links are shared often enough for this to mean something
}

TEST_CASE("more bandwidth or less latency never slows what is alone on its links") {
  std::vector<Pattern> patterns{ring_all_reduce(5, Volume(1e6), 3), chain_broadcast(5, Volume(1e6), 4)};
  for (const Pattern& pattern : patterns) {
    SimTime before = SimTime::max();
    for (const double rate : {1e9, 1.1e9, 2e9, 1e10, 1e12}) {
      const SimTime now = run(ring_fabric(5, Bandwidth(rate), Seconds(1e-6)), pattern).finish;
      CHECK(now < before);
      before = now;
    }
    for (const double latency : {9e-7, 1e-8, 1e-9, 0.0}) {
      const SimTime now = run(ring_fabric(5, Bandwidth(1e12), Seconds(latency)), pattern).finish;
      CHECK(now < before);
      before = now;
    }
  }
}

TEST_CASE("the same input gives the same bytes") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo, Sharing::none}) {
      Dice dice(seed);
      const Fabric fabric = random_fabric(dice);
      Schedule schedule = random_schedule(dice, fabric);
      schedule.add_exchange(random_pattern(dice, fabric));
      const Timeline a = run(fabric, schedule, sharing), b = run(fabric, schedule, sharing);
      REQUIRE(std::memcmp(a.ops.data(), b.ops.data(), a.ops.size() * sizeof(Interval)) == 0);
      REQUIRE(std::memcmp(a.links.data(), b.links.data(), a.links.size() * sizeof(LinkUse)) == 0);
      REQUIRE(a.counters.events == b.counters.events);
      REQUIRE(a.counters.rate_updates == b.counters.rate_updates);
    }
}

TEST_CASE("times do not depend on the order in which independent operations were added") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed)
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo}) {
      INFO("seed " << seed << ", sharing " << static_cast<int>(sharing));
      Dice dice(seed);
      const Fabric fabric = random_fabric(dice);
      std::vector<Transfer> transfers;
      for (int i = 0; i < 12; ++i) {
        const auto rank = [&] { return Rank(static_cast<std::uint32_t>(dice.roll(fabric.rank_count()))); };
        const Rank from = rank(), to = rank();
        transfers.push_back({from, to, Volume(1000.0 * (1 + i)), 0, dice.roll(2)});
      }
      Schedule there, back;
      for (std::size_t i = 0; i < transfers.size(); ++i) {
        there.add(transfers[i]);
        back.add(transfers[transfers.size() - 1 - i]);
      }
      const Timeline a = run(fabric, there, sharing), b = run(fabric, back, sharing);
      for (std::size_t i = 0; i < transfers.size(); ++i)
        REQUIRE(a.ops[i].finish == b.ops[transfers.size() - 1 - i].finish);
    }
}

TEST_CASE("computes of one stream follow each other, streams run side by side") {
  const Fabric fabric = ring_fabric(2, Bandwidth(1e9), Seconds(0));
  Schedule s;
  const StreamId compute = s.add_stream({"compute", Rank(0)}), tp = s.add_stream({"tp", Rank(0)});
  s.add(compute, Compute{Rank(0), Seconds(3e-6)});
  s.add(compute, Compute{Rank(0), Seconds(4e-6)});
  s.add(tp, Transfer{Rank(0), Rank(1), Volume(5e3)});  // 5 us
  const Timeline timeline = run(fabric, s);
  CHECK(ps(timeline.ops[1].start) == us(3));
  CHECK(ps(timeline.ops[1].finish) == us(7));
  CHECK(ps(timeline.ops[2].finish) == us(5));
  CHECK(ps(timeline.finish) == us(7));
}
