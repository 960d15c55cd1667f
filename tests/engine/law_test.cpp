// Laws that hold for every simulation, on random machines and schedules.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

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

namespace {

/// The same work in another order of adding: any in which what an operation waits for has been added before.
struct Reordered {
  Schedule schedule;
  std::vector<OpId> now;  ///< by the operation's number before
};

Reordered reordered(const Schedule& before, Dice& dice) {
  Reordered out;
  const std::size_t count = before.size();
  out.now.assign(count, OpId(0));
  std::vector<bool> added(count, false);
  const auto may_be_added = [&](std::size_t op) {
    for (const After& after : before.after(OpId(static_cast<std::uint32_t>(op))))
      if (!added[after.op.value()]) return false;
    return true;
  };
  // What is added in one go: an operation, or all parts of an exchange.
  std::vector<std::pair<std::size_t, std::size_t>> pieces;
  for (std::size_t op = 0; op < count;) {
    const auto* part = std::get_if<Part>(&before.work(OpId(static_cast<std::uint32_t>(op))));
    const std::size_t size =
        part == nullptr ? 1 : static_cast<std::size_t>(before.exchanges()[part->exchange.value()].pattern.size());
    pieces.emplace_back(op, size);
    op += size;
  }
  while (!pieces.empty()) {
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      bool may = true;
      for (std::size_t op = pieces[i].first; op < pieces[i].first + pieces[i].second; ++op)
        may = may && may_be_added(op);
      if (may) free.push_back(i);
    }
    const std::size_t chosen = free[static_cast<std::size_t>(dice.roll(static_cast<int>(free.size())))];
    const auto [first, size] = pieces[chosen];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(chosen));
    const OpId id(static_cast<std::uint32_t>(first));
    if (const auto* part = std::get_if<Part>(&before.work(id))) {
      const Exchange& exchange = before.exchanges()[part->exchange.value()];
      std::vector<OpId> ready;
      for (std::size_t op = first; op < first + size; ++op)
        for (const After& after : before.after(OpId(static_cast<std::uint32_t>(op))))
          ready.push_back(out.now[after.op.value()]);
      const OpId now = out.schedule.add_exchange(exchange.pattern, ready, exchange.traffic);
      for (std::size_t i = 0; i < size; ++i) out.now[first + i] = OpId(now.value() + static_cast<std::uint32_t>(i));
    } else {
      std::vector<After> after;
      for (const After& edge : before.after(id)) after.push_back({out.now[edge.op.value()], edge.until});
      out.now[first] = out.schedule.add(before.work(id), after);
    }
    for (std::size_t op = first; op < first + size; ++op) added[op] = true;
  }
  return out;
}

/// Of one size each, so that under fifo no two requests differ by their numbers alone.
Schedule with_unlike_sizes(const Schedule& schedule) {
  Schedule out;
  for (std::uint32_t op = 0; op < schedule.size(); ++op) {
    Work work = schedule.work(OpId(op));
    if (auto* transfer = std::get_if<Transfer>(&work); transfer != nullptr && transfer->size.value() > 0)
      transfer->size = Volume(transfer->size.value() + 0.01 * op);
    out.add(work, schedule.after(OpId(op)));
  }
  return out;
}

}  // namespace

TEST_CASE("times do not depend on the order of adding: compute, transfers and exchanges that wait for each other") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo, Sharing::none}) {
      INFO("seed " << seed << ", sharing " << static_cast<int>(sharing));
      Dice dice(seed);
      const Fabric fabric = random_fabric(dice);
      Schedule schedule = with_unlike_sizes(random_schedule(dice, fabric));
      const auto before = static_cast<int>(schedule.size());
      Pattern pattern = random_pattern(dice, fabric);
      for (Lane& lane : pattern.lanes) lane.block = lane.block * 1.0078125;
      std::vector<OpId> ready;
      for (int i = 0; i < pattern.size(); ++i) ready.emplace_back(static_cast<std::uint32_t>(dice.roll(before)));
      const int participants = pattern.size();
      const OpId first = schedule.add_exchange(std::move(pattern), ready);
      for (int i = 0; i < participants; ++i)
        schedule.add(Compute{Rank(0), Seconds(1e-6)},
                     std::vector<After>{{OpId(first.value() + static_cast<std::uint32_t>(i))}});

      const Timeline expected = run(fabric, schedule, sharing);
      const Reordered other = reordered(schedule, dice);
      const Timeline seen = run(fabric, other.schedule, sharing);
      REQUIRE(seen.ops.size() == expected.ops.size());
      for (std::size_t op = 0; op < expected.ops.size(); ++op) {
        const Interval &a = expected.ops[op], &b = seen.ops[other.now[op].value()];
        REQUIRE(a.start == b.start);
        REQUIRE(a.left == b.left);
        REQUIRE(a.finish == b.finish);
      }
      for (std::size_t link = 0; link < expected.links.size(); ++link)
        REQUIRE(expected.links[link].busy == seen.links[link].busy);
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
