// A run that cannot end says which operation and why; it never ends silently with work left over.
#include <catch2/catch.hpp>

#include "collcast/engine/engine.hpp"
#include "engine/times.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;
using Catch::Matchers::Contains;

namespace {
std::string failure(const Fabric& fabric, const Schedule& schedule, Sharing sharing = Sharing::max_min) {
  const Result<Timeline> timeline = simulate(fabric, schedule, {sharing});
  return timeline ? "ran" : to_text(timeline.errors());
}
// 2^62 bytes at 1 B/s: 4.6e18 s.
constexpr double huge = 4.611686018427388e18;
}  // namespace

TEST_CASE("a time past the clock's end names the operation") {
  const Fabric fabric = ring_fabric(3, Bandwidth(1), Seconds(0));
  Schedule s;
  s.add(Compute{Rank(2), Seconds(1e7)}, {}, {"layer 3", "forward"});
  CHECK_THAT(failure(fabric, s), Contains("operation 0 'layer 3' (compute of rank 2)") && Contains("106 days"));

  Schedule t;
  t.add(Delay{Seconds(1)});
  t.add(Transfer{Rank(0), Rank(1), Volume(huge)});
  for (const Sharing sharing : {Sharing::max_min, Sharing::fifo, Sharing::none})
    CHECK_THAT(failure(fabric, t, sharing), Contains("operation 1 (transfer from rank 0 to rank 1)"));

  Schedule e;
  e.add_exchange(ring_all_reduce(3, Volume(huge)));
  CHECK_THAT(failure(fabric, e), Contains("rank 0's part of ring"));
}

TEST_CASE("messages between ranks that no link joins any more are an error that names both, not free") {
  const Fabric sound = ring_fabric(3, Bandwidth(1e9), Seconds(0));
  std::vector<Link> links(sound.links().begin(), sound.links().end());
  for (Link& link : links) link.bandwidth = Bandwidth(0);
  const Fabric fabric = sound.with_links(std::move(links));
  Schedule alone;
  alone.add(Delay{Seconds(1)});
  alone.add(Transfer{Rank(0), Rank(1), Volume(1)});
  for (const Sharing sharing : {Sharing::max_min, Sharing::fifo, Sharing::none})
    CHECK_THAT(failure(fabric, alone, sharing),
               Contains("operation 1 (transfer from rank 0 to rank 1): no links join rank 0 and rank 1"));
  const Pattern ring = ring_all_reduce(3, Volume(3e3));
  Schedule exchange;
  exchange.add_exchange(ring);
  CHECK_THAT(failure(fabric, exchange), Contains("'s part of ring): no links join rank"));
  CHECK_FALSE(recurrence(fabric, ring).has_value());
}

// Half a gigabyte and seconds for the machine alone: run by the ctest engine_long.
TEST_CASE("a machine of a million links simulates what goes over five of them", "[.][long]") {
  const Fabric fabric = star_fabric(500'000, Bandwidth(1e9), Seconds(0));
  REQUIRE(fabric.links().size() == 1'000'000);
  Schedule s;
  for (std::uint32_t r = 0; r < 4; ++r) s.add(Transfer{Rank(100'000 * r), Rank(499'999), Volume(1e6)});
  // Four flows of 1 MB into one link of 1 GB/s.
  CHECK(to_seconds(run(fabric, s).finish).count() == Approx(4e-3));
}

TEST_CASE("times add up past the clock's end too") {
  Schedule s;
  OpId last = s.add(Delay{Seconds(9e6)});
  last = s.add(Delay{Seconds(9e6)}, std::vector<After>{{last}});
  const Fabric fabric = ring_fabric(3, Bandwidth(1), Seconds(0));
  CHECK_THAT(failure(fabric, s), Contains("operation 1 (delay)"));
  CHECK(critical_path(fabric, s) == SimTime::max());
}

TEST_CASE("a transfer that was too slow only while it had to share is no failure") {
  // At half rate it would end after 1.2e7 s, past the clock; the other one leaves after 2 s.
  const Fabric fabric = ring_fabric(3, Bandwidth(1e6), Seconds(0));
  Schedule s;
  s.add(Transfer{Rank(0), Rank(1), Volume(6e12)});  // 6e6 s alone, 1.2e7 s at half rate
  s.add(Transfer{Rank(0), Rank(1), Volume(1e6)});
  // Half rate for 2 s, in which 1 MB of each goes; the rest alone: 2 s + (6e12 - 1e6)/1e6 s.
  CHECK(to_seconds(run(fabric, s).finish).count() == Approx(2 + 6e6 - 1));
}

TEST_CASE("an exchange whose sends and receives do not match says who waits for what") {
  Shape short_of_one = ring_shape;
  short_of_one.receives = [](const Phase& phase, Position) { return phase.rounds + 1; };
  Pattern pattern = pattern_of(3, {ring_phase(3, 2)}, Volume(10));
  pattern.lanes[0].phases[0].shape = &short_of_one;
  Schedule s;
  s.add(Delay{});
  s.add_exchange(pattern, {}, 0, {"grads", "dp"});
  const std::string text = failure(ring_fabric(3, Bandwidth(1), Seconds(0)), s);
  CHECK_THAT(text, Contains("operation 1 'grads' (rank 0's part of ring) never finished"));
  CHECK_THAT(text, Contains("2 of 2 messages sent, 2 of 3 received"));
  // All three wait, for a message that nobody has to send: no circle.
  CHECK_THAT(text, Contains("(rank 1's part of ring) never finished") && Contains("(rank 2's part of ring)") &&
                       !Contains("in a circle"));
}

TEST_CASE("ranks that wait for each other's messages before they send are told as a circle, and what is behind them") {
  Shape polite = ring_shape;  // everyone sends once it has received
  polite.send = [](const Phase& phase, Position v, int round) {
    Hop hop = ring_shape.send(phase, v, round);
    hop.after = 1;
    return hop;
  };
  Pattern pattern = pattern_of(6, {phase_of(ring_shape, Flow::forwarding, 6)}, Volume(10));
  pattern.lanes[0].phases[0].shape = &polite;
  Schedule s;
  const OpId first = s.add_exchange(pattern);
  for (std::uint32_t r = 0; r < 6; ++r)
    s.add(Compute{Rank(r), Seconds(1)}, std::vector<After>{{OpId(first.value() + r)}});
  const std::string text = failure(ring_fabric(6, Bandwidth(1), Seconds(0)), s);
  CHECK_THAT(text, Contains("operation 3 (rank 3's part of ring) never finished; ring lane 0 phase 0: 0 of 1 messages "
                            "sent, 0 of 1 received") &&
                       Contains("and 2 more") && Contains("6 operations behind them never began"));
  // Each waits for the one before it on the ring.
  CHECK_THAT(text, Contains("in a circle: operation 0 (rank 0's part of ring) waits for operation 5 (rank 5's part of "
                            "ring) waits for operation 4"));
}

TEST_CASE("a watch is asked while connections open: every rank to every other is one instant") {
  constexpr int ranks = 2048;
  const Fabric fabric = star_fabric(ranks, Bandwidth(1e9), Seconds(0));
  const Pattern pattern = pattern_of(ranks, {phase_of(everyone_shape, Flow::concurrent, ranks)}, Volume(1));
  EngineOptions options;
  int asked = 0;
  // Before anything, within the first 2,048 ranks, then never again.
  options.watch = [&](const EngineProgress& done) {
    CHECK(done.messages == 0);
    return ++asked < 2;
  };
  REQUIRE_FALSE(simulate(fabric, pattern, options).ok());
  CHECK(asked == 2);
}

TEST_CASE("more messages than can be counted are refused") {
  const Fabric fabric = ring_fabric(3, Bandwidth(1), Seconds(0));
  Schedule s;
  s.add_exchange(pattern_of(3, {ring_phase(3, 1 << 20)}, Volume(1), 1 << 20));
  CHECK_THAT(failure(fabric, s), Contains("2^32 messages"));
}

TEST_CASE("a watch ends what takes no time at all: a million messages without bytes are one instant") {
  const Fabric fabric = ring_fabric(64, Bandwidth(1e9), Seconds(0));
  const Pattern pattern = ring_all_reduce(64, Volume(0), 128);
  EngineOptions options;
  int asked = 0;
  options.watch = [&](const EngineProgress& done) {
    CHECK(done.now == SimTime{});
    return ++asked < 10;
  };
  const Result<Timeline> ended = simulate(fabric, pattern, options);
  REQUIRE_FALSE(ended.ok());
  CHECK(asked == 10);
  options.watch = [&](const EngineProgress&) { return true; };
  CHECK(simulate(fabric, pattern, options).value().counters.messages == 2 * 63 * 64 * 128);
}

TEST_CASE("a watch sees a simulation grow, changes nothing, and ends it") {
  const Fabric fabric = ring_fabric(8, Bandwidth(7e9), Seconds(1e-6));
  const Pattern pattern = ring_all_reduce(8, Volume(1e9), 4096);
  std::int64_t messages = -1;
  SimTime now{};
  int asked = 0;
  EngineOptions options;
  options.watch = [&](const EngineProgress& done) {
    CHECK(done.messages >= messages);
    CHECK(done.now >= now);
    messages = done.messages;
    now = done.now;
    return ++asked > 0;
  };
  const Timeline watched = simulate(fabric, pattern, options).value();
  const Timeline alone = simulate(fabric, pattern).value();
  CHECK(asked > 5);
  CHECK(messages > 0);
  CHECK(messages <= watched.counters.messages);
  CHECK(watched.finish == alone.finish);
  CHECK(watched.counters.events == alone.counters.events);

  asked = 0;
  options.watch = [&](const EngineProgress&) { return ++asked < 3; };
  const Result<Timeline> ended = simulate(fabric, pattern, options);
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.errors().front().message.find("ended from outside after") != std::string::npos);
  CHECK(asked == 3);
  CHECK_FALSE(recurrence(fabric, pattern, [](const EngineProgress&) { return false; }));
  CHECK(recurrence(fabric, pattern, [](const EngineProgress&) { return true; })->finish ==
        recurrence(fabric, pattern)->finish);
}
