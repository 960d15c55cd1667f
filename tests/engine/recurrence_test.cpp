// The recurrence is the simulation, wherever it answers; where links may be shared it does not.
#include <catch2/catch.hpp>

#include "collcast/engine/beside.hpp"
#include "engine/random_cases.hpp"
#include "engine/times.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("rings and chains on their own links: the same picosecond as the simulation") {
  for (const int k : {1, 2, 3, 5, 8, 17})
    for (const int c : {1, 2, 3, 10})
      for (const double alpha : {0.0, 3.3e-7, 1e-3})
        for (const double bytes : {0.0, 1.0, 1e6 + 1}) {
          CAPTURE(k, c, alpha, bytes);
          const Fabric ring = ring_fabric(std::max(k, 2), Bandwidth(7e9), Seconds(alpha));
          const Fabric star = star_fabric(std::max(k, 2), Bandwidth(7e9), Seconds(alpha));
          for (const Pattern& pattern : {ring_all_reduce(k, Volume(bytes), c), chain_broadcast(k, Volume(bytes), c)})
            for (const Fabric* fabric : {&ring, &star}) {
              const std::optional<Recurrence> time = recurrence(*fabric, pattern);
              REQUIRE(time.has_value());
              const Timeline timeline = run(*fabric, pattern);
              REQUIRE(time->finish == timeline.finish);
              REQUIRE(time->messages == timeline.counters.messages);
            }
        }
}

TEST_CASE("several phases and lanes on their own links") {
  const Fabric fabric = ring_fabric(6, Bandwidth(7e9), Seconds(1e-6));
  Pattern pattern = pattern_of(6, {ring_phase(6, 5), chain_phase(6), ring_phase(6, 2)}, Volume(12345), 3);
  pattern.lanes.push_back(pattern.lanes[0]);
  pattern.lanes[1].order = {5, 4, 3, 2, 1, 0};
  pattern.lanes[1].block = Volume(777);
  const std::optional<Recurrence> time = recurrence(fabric, pattern);
  REQUIRE(time.has_value());
  CHECK(time->finish == run(fabric, pattern).finish);
}

TEST_CASE("links that two may use at once have no recurrence") {
  const Fabric ring = ring_fabric(6, Bandwidth(7e9), Seconds(1e-6)),
               star = star_fabric(8, Bandwidth(7e9), Seconds(1e-6));
  Pattern twice = ring_all_reduce(6, Volume(600));
  twice.lanes.push_back(twice.lanes[0]);
  CHECK_FALSE(recurrence(ring, twice));  // two lanes, one link
  CHECK_FALSE(recurrence(star, pattern_of(8, {phase_of(fan_in_shape, Flow::sequential, 8)}, Volume(1))));  // incast
  CHECK_FALSE(recurrence(star, pattern_of(8, {phase_of(fan_out_shape, Flow::concurrent, 8)}, Volume(1))));
  CHECK(recurrence(star, pattern_of(8, {phase_of(fan_out_shape, Flow::sequential, 8)}, Volume(1))));  // in turn
}

TEST_CASE("a time that the clock might not reach is left to the simulation") {
  CHECK_FALSE(recurrence(ring_fabric(4, Bandwidth(1), Seconds(0)), ring_all_reduce(4, Volume(4e18))));
}

TEST_CASE("random patterns: the recurrence equals the simulation wherever it answers") {
  int answered = 0, declined = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    const Fabric fabric = random_fabric(dice);
    const Pattern pattern = random_pattern(dice, fabric);
    const std::optional<Recurrence> time = recurrence(fabric, pattern);
    (time ? answered : declined) += 1;
    if (!time) continue;
    const Timeline timeline = run(fabric, pattern);
    REQUIRE(time->finish == timeline.finish);
    REQUIRE(time->messages == timeline.counters.messages);
    REQUIRE(timeline.counters.rate_updates == 0);
    REQUIRE(time->finish == run(fabric, pattern, Sharing::none).finish);
  }
  CHECK(answered > 300);
  CHECK(declined > 300);
}

TEST_CASE("a steady state is not worked out again, and ends at the same picosecond") {
  std::int64_t stepped = 0, messages = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    const int k = 2 + dice.roll(9);
    const Fabric equal = ring_fabric(k, Bandwidth(7e9), Seconds(dice.pick({0.0, 1e-6, 2.5e-5})));
    std::vector<Link> links(equal.links().begin(), equal.links().end());
    const int unlike = dice.roll(3);  // none, some of two kinds, all
    for (Link& link : links) {
      const double factor = unlike == 0 ? 1 : unlike == 1 ? dice.pick({1.0, 0.5}) : dice.between(0.2, 1);
      link.bandwidth = Bandwidth(link.bandwidth.value() * factor);
      if (unlike == 2) link.latency = Seconds(dice.between(0, 5e-5));
    }
    const Fabric fabric = equal.with_links(std::move(links));
    const int chunks = 1 + dice.roll(400), few = 1 + dice.roll(9), rounds = 1 + dice.roll(300);
    for (const Pattern& pattern : {chain_broadcast(k, Volume(1e7), chunks), ring_all_reduce(k, Volume(1e7), few),
                                   pattern_of(k, {ring_phase(k, rounds)}, Volume(1e6), few),
                                   pattern_of(k, {chain_phase(k), ring_phase(k, rounds)}, Volume(1e6), few)}) {
      const std::optional<Recurrence> time = recurrence(fabric, pattern);
      REQUIRE(time.has_value());
      const Timeline timeline = run(fabric, pattern);
      REQUIRE(time->finish == timeline.finish);
      REQUIRE(time->messages == timeline.counters.messages);
      REQUIRE(time->stepped <= time->messages);
      stepped += time->stepped;
      messages += time->messages;
    }
  }
  CHECK(stepped < messages / 2);
}

TEST_CASE("a long pipeline costs what its filling costs") {
  const Pattern pattern = chain_broadcast(64, Volume(1e12), 1 << 20);
  const std::optional<Recurrence> time = recurrence(ring_fabric(64, Bandwidth(7e9), Seconds(1e-6)), pattern);
  REQUIRE(time.has_value());
  CHECK(time->messages == 63LL << 20);
  CHECK(time->stepped < 100'000);
  // 2^20 + 62 messages one after the other, each rounded up to a picosecond, and 63 latencies.
  CHECK(to_seconds(time->finish).count() == Approx(((1 << 20) + 62) * (1e12 / (1 << 20) / 7e9) + 63e-6).margin(1.1e-6));
}

TEST_CASE(
    "patterns beside one another that share no link take what they take alone; others are left to the simulation") {
  int answered = 0, declined = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    const Fabric fabric = random_fabric(dice);
    const std::vector<Pattern> patterns{random_pattern(dice, fabric), random_pattern(dice, fabric)};
    const std::optional<Recurrence> time =
        recurrence_beside(fabric, patterns[0], std::span<const Pattern>(patterns).subspan(1));
    (time ? answered : declined) += 1;
    if (!time) continue;
    Schedule both;
    const OpId first = both.add_exchange(patterns[0]);
    both.add_exchange(patterns[1]);
    const Timeline timeline = run(fabric, both);
    SimTime finish{};
    for (int i = 0; i < patterns[0].size(); ++i)
      finish = std::max(finish, timeline.ops[first.value() + static_cast<std::uint32_t>(i)].finish);
    REQUIRE(time->finish == finish);
  }
  CHECK(answered > 50);
  CHECK(declined > 300);
}
