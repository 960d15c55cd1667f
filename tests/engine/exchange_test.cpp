// Exchanges on links of their own take the textbook's time, to the engine's round-ups.
//
// alpha = route latency, tau = time of one chunk, R rounds, c chunks. Every message rounds its tau and
// every arrival its alpha up by less than 1 ps, so a chain of R rounds of c chunks is at most 2*R*c ps late.
#include <catch2/catch.hpp>

#include <utility>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/times.hpp"
#include "support/dice.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

void check_time(SimTime simulated, double formula_s, double messages_in_a_row) {
  const double formula_ps = formula_s * 1e12;
  CHECK(static_cast<double>(ps(simulated)) >= formula_ps * (1 - 1e-14));
  CHECK(static_cast<double>(ps(simulated)) <= formula_ps * (1 + 1e-14) + 2 * messages_in_a_row);
}

constexpr double rate = 7e9;

}  // namespace

TEST_CASE("ring: (R-1) max(c tau, tau + alpha) + c tau + alpha") {
  for (const int k : {2, 3, 5, 8, 13})
    for (const int c : {1, 2, 7})
      for (const double alpha : {0.0, 5e-7, 1e-3})
        for (const double bytes : {1.0, 1000.0, 1e6 + 1}) {
          CAPTURE(k, c, alpha, bytes);
          const Fabric fabric = ring_fabric(k, Bandwidth(rate), Seconds(alpha));
          const double tau = bytes / k / c / rate, rounds = 2 * (k - 1);
          check_time(run(fabric, ring_all_reduce(k, Volume(bytes), c)).finish,
                     (rounds - 1) * std::max(c * tau, tau + alpha) + c * tau + alpha, rounds * c);
        }
}

TEST_CASE("chain: R (tau + alpha) + (c-1) tau; without latency N (S+k-2) / (S B)") {
  for (const int k : {2, 3, 8, 33})
    for (const int c : {1, 2, 64})
      for (const double alpha : {0.0, 5e-7})
        for (const double bytes : {1.0, 1e6 + 1}) {
          CAPTURE(k, c, alpha, bytes);
          const Fabric fabric = ring_fabric(k, Bandwidth(rate), Seconds(alpha));
          const double tau = bytes / c / rate;
          check_time(run(fabric, chain_broadcast(k, Volume(bytes), c)).finish, (k - 1) * (tau + alpha) + (c - 1) * tau,
                     k - 1 + c);
        }
}

TEST_CASE("naive broadcast: the root's link carries (k-1) N") {
  const int k = 9;
  const Fabric fabric = star_fabric(k, Bandwidth(rate), Seconds(1e-6));
  // The last of k-1 copies leaves after (k-1) N/B and has two latencies to go; likewise all at once, when
  // k-1 copies share the root's port.
  for (const Flow flow : {Flow::sequential, Flow::concurrent})
    check_time(run(fabric, pattern_of(k, {phase_of(fan_out_shape, flow, k)}, Volume(1e6))).finish,
               (k - 1) * 1e6 / rate + 2e-6, k);
}

TEST_CASE("binomial broadcast: one message and one latency per round") {
  // On a switch, the root's port sends in every round and nothing else is slower: log2(8) = 3 rounds.
  const Fabric fabric = star_fabric(8, Bandwidth(rate), Seconds(1e-6));
  check_time(run(fabric, pattern_of(8, {phase_of(tree_down_shape, Flow::forwarding, 8)}, Volume(1e6))).finish,
             3 * (1e6 / rate + 2e-6), 3);
}

TEST_CASE("recursive doubling: one message and one latency per round, rounds as phases") {
  const Fabric fabric = star_fabric(8, Bandwidth(rate), Seconds(1e-6));
  std::vector<Phase> phases;
  for (const int distance : {1, 2, 4}) phases.push_back(phase_of(xor_shape, Flow::sequential, 8, distance));
  check_time(run(fabric, pattern_of(8, phases, Volume(1e6))).finish, 3 * (1e6 / rate + 2e-6), 3);
}

TEST_CASE("more phases than 16 bits count are walked one by one, and the exchange ends") {
  // Two ranks swap a block of 7 bytes in each of 65,537 phases: 1 ns each at 7 GB/s.
  const Fabric fabric = ring_fabric(2, Bandwidth(rate), Seconds(0));
  const Pattern pattern = pattern_of(2, std::vector<Phase>((1 << 16) + 1, ring_phase(2, 1)), Volume(7));
  EngineOptions options;
  std::int64_t messages = 0;
  options.watch = [&](const EngineProgress& now) { return (messages = now.messages) <= 2 * 65537; };
  Schedule s;
  s.add_exchange(pattern);
  const Result<Timeline> timeline = simulate(fabric, s, options);
  REQUIRE(timeline.ok());
  CHECK(ps(timeline->finish) == std::int64_t{65537} * 1000);
}

TEST_CASE("two rings over the same links take twice the bandwidth term") {
  const int k = 4;
  const Fabric fabric = ring_fabric(k, Bandwidth(rate), Seconds(0));
  Schedule s;
  s.add_exchange(ring_all_reduce(k, Volume(1e6)));
  s.add_exchange(ring_all_reduce(k, Volume(1e6)));
  check_time(run(fabric, s).finish, 2 * (2 * (k - 1) * 1e6 / k / rate), 2 * (k - 1));
}

TEST_CASE("a late participant holds up a ring by no more than it is late") {
  const int k = 4;
  const double tau = 1e6 / k / rate, late = 1e-3;
  const Fabric fabric = ring_fabric(k, Bandwidth(rate), Seconds(0));
  Schedule s;
  std::vector<OpId> ready;
  for (int i = 0; i < k; ++i) ready.push_back(s.add(Delay{Seconds(i == 2 ? late : 0)}));
  const OpId first = s.add_exchange(ring_all_reduce(k, Volume(1e6)), ready);
  const Timeline timeline = run(fabric, s);
  // Its chunk has six rounds to go from when it takes part.
  check_time(timeline.finish, late + 2 * (k - 1) * tau, 2 * (k - 1));
  CHECK(ps(timeline.ops[first.value() + 2].start) == us(1000));
  CHECK(ps(timeline.ops[first.value()].start) == 0);
}

TEST_CASE("lanes run side by side, each on its own links") {
  // One lane around each way: half the data each, so half the time.
  const int k = 6;
  const Fabric fabric = ring_fabric(k, Bandwidth(rate), Seconds(0));
  Pattern both = ring_all_reduce(k, Volume(5e5));
  both.lanes.push_back(both.lanes[0]);
  for (int v = k; v-- > 0;) both.lanes[1].order.push_back(v);
  const Timeline timeline = run(fabric, both);
  check_time(timeline.finish, 2 * (k - 1) * 5e5 / k / rate, 2 * (k - 1));
  CHECK(timeline.counters.rate_updates == 0);
  CHECK(timeline.counters.messages == traffic(both).messages);
}

TEST_CASE("nothing to send takes no time") {
  const Fabric fabric = ring_fabric(4, Bandwidth(rate), Seconds(1e-6));
  CHECK(ps(run(fabric, pattern_of(1, {ring_phase(1, 0)}, Volume(100))).finish) == 0);
  CHECK(ps(run(fabric, pattern_of(4, {}, Volume(100))).finish) == 0);
  CHECK(ps(run(fabric, Pattern{"empty", Group::strided(Rank(0), 1, 3), 1, {}}).finish) == 0);
  CHECK(ps(run(fabric, Schedule()).finish) == 0);
}

TEST_CASE("a message without bytes takes its latency") {
  const Fabric fabric = ring_fabric(4, Bandwidth(rate), Seconds(1e-6));
  CHECK(ps(run(fabric, ring_all_reduce(4, Volume(0))).finish) == us(6));  // 6 rounds of 1 us
  Schedule s;
  s.add(Transfer{Rank(0), Rank(2), Volume(0)});    // two links
  s.add(Transfer{Rank(1), Rank(1), Volume(1e6)});  // to itself: no links
  const Timeline timeline = run(fabric, s);
  CHECK(ps(timeline.ops[0].left) == 0);
  CHECK(ps(timeline.ops[0].finish) == us(2));
  CHECK(ps(timeline.ops[1].finish) == 0);
}

TEST_CASE("a ring on links that others want for a while is what it is message by message") {
  // Messages of a ring count as received before they are there where nobody asks: until somebody else gets a link.
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Dice dice(seed);
    const int k = 2 + dice.roll(5);
    const Seconds latency(dice.pick({0.0, 3e-8, 1e-6, 2e-5}));
    Fabric fabric = ring_fabric(k, Bandwidth(rate), latency);
    if (dice.roll(2) == 0) fabric = with_unequal_links(fabric);
    Pattern ring = ring_all_reduce(k, Volume(dice.pick({1.0, 3e3, 1e5}) * k), 1 + dice.roll(4));
    if (dice.roll(3) == 0) ring.lanes[0].phases.push_back(ring.lanes[0].phases[0]);

    Schedule walked, written;
    std::vector<OpId> ready_walked, ready_written;
    for (int i = 0; i < k; ++i) {
      const Delay delay{Seconds(dice.roll(3) * dice.pick({1e-9, 1e-6, 7e-6}))};
      ready_walked.push_back(walked.add(delay));
      ready_written.push_back(written.add(delay));
    }
    const OpId parts = walked.add_exchange(ring, ready_walked);
    const std::vector<OpId> ends = append(written, ring, ready_written);
    std::vector<std::pair<OpId, OpId>> others;
    for (int i = dice.roll(5); i > 0; --i) {
      const Delay delay{Seconds(dice.roll(60) * dice.pick({1e-9, 1e-7, 1e-6}))};
      const auto from = static_cast<std::uint32_t>(dice.roll(k));
      const Transfer transfer{Rank(from), Rank((from + 1) % static_cast<std::uint32_t>(k)),
                              Volume(dice.pick({1.0, 2e3, 1e5})), 0, dice.roll(2)};
      const After of_walked{walked.add(delay)}, of_written{written.add(delay)};
      others.emplace_back(walked.add(transfer, {&of_walked, 1}), written.add(transfer, {&of_written, 1}));
    }
    CAPTURE(seed, k, ring.chunks, latency.count(), others.size());
    const Timeline a = run(fabric, walked), b = run(fabric, written);
    REQUIRE(a.finish == b.finish);
    for (int i = 0; i < k; ++i)
      CHECK(a.ops[parts.value() + static_cast<std::uint32_t>(i)].finish ==
            b.ops[ends[static_cast<std::size_t>(i)].value()].finish);
    for (const auto& [one, other] : others) CHECK(a.ops[one.value()].finish == b.ops[other.value()].finish);
    for (std::size_t l = 0; l < a.links.size(); ++l) CHECK(a.links[l].busy == b.links[l].busy);
  }
}
