// What a simulation costs, counted: events and rates that were set, of the shapes that bench/ times. A number here
// changes only in a commit that says why; time itself is for bench/run, whose ratios say what an event costs.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "collcast/engine/engine.hpp"
#include "engine/times.hpp"
#include "support/dice.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// 4:1, leaves of 32 hosts under 8 spines.
Fabric fat_tree(int hosts) {
  LeafSpineNetwork network;
  network.rail_optimized = false;
  network.nodes_per_leaf = 32;
  network.spines = 8;
  network.oversubscription = 4;
  network.bandwidth = gb_per_s(10);
  return teaching_fabric(hosts, network);
}

/// A ring through the ranks in any order.
Pattern ring_in_any_order(int size, int rounds) {
  Pattern out = pattern_of(size, {ring_phase(size, rounds)}, Volume(1 << 20));
  std::vector<Rank> ranks;
  for (const int rank : Dice(1).permutation(size)) ranks.emplace_back(static_cast<std::uint32_t>(rank));
  out.group = Group::listed(std::move(ranks));
  return out;
}

/// Each of `senders` has ten messages of unequal sizes for one more host, one after the other.
Schedule into_one_host(int senders, int weights = 1) {
  Dice dice(1);
  Schedule schedule;
  for (int sender = 0; sender < senders; ++sender) {
    OpId before = schedule.add(Delay{Seconds(0)});
    const TrafficClass traffic(0, static_cast<std::uint16_t>(1 + sender % weights));
    for (int message = 0; message < 10; ++message) {
      const After after{before, Until::finished};
      const Volume bytes(std::floor(1e6 * dice.between(0.5, 1.5)));
      before = schedule.add(Transfer{Rank(static_cast<std::uint32_t>(sender)),
                                     Rank(static_cast<std::uint32_t>(senders)), bytes, 0, traffic},
                            {&after, 1});
    }
  }
  return schedule;
}

EngineCounters of_pattern(const Fabric& fabric, const Pattern& pattern, Sharing sharing) {
  return simulate(fabric, pattern, {sharing}).value().counters;
}

void check_counters(const EngineCounters& seen, std::int64_t messages, std::int64_t events, std::int64_t rates) {
  CHECK(seen.messages == messages);
  CHECK(seen.events == events);
  CHECK(seen.rate_updates == rates);
}

}  // namespace

TEST_CASE("a message of a ring on links of its own is one event, and its rate is set nowhere") {
  const Pattern ring = ring_all_reduce(256, Volume(256 << 20));
  const std::int64_t messages = 2 * 255 * 256;
  check_counters(of_pattern(ring_fabric(256, gb_per_s(10), Seconds(1e-6)), ring, Sharing::max_min), messages,
                 messages + 256, 0);  // the last of each rank is told as it comes
  check_counters(of_pattern(with_unequal_links(ring_fabric(256, gb_per_s(10), Seconds(0))), ring, Sharing::max_min),
                 messages, messages, 0);
}

TEST_CASE("flows of one bottleneck cost as a pool, whatever their number") {
  for (const int senders : {16, 256}) {
    INFO(senders);
    const Fabric star = star_fabric(senders + 1, gb_per_s(10), Seconds(0));
    const Timeline timeline = simulate(star, into_one_host(senders), {Sharing::max_min}).value();
    std::set<SimTime> instants;
    for (const Interval& op : timeline.ops) instants.insert(op.left);
    // One rate at time 0, where the delays end, and one at each instant at which a message leaves, but the last.
    const std::int64_t rates = std::ssize(instants) - 1;
    CHECK(timeline.counters.messages == senders * 10);
    CHECK(timeline.counters.rate_updates == rates);
    // An event each, and one that no longer holds: the first message to begin anew ends before the one that was next.
    CHECK(timeline.counters.events == rates + 1);
  }
}

TEST_CASE("flows of a few weights on one bottleneck cost a rate for each weight, whatever their number") {
  for (const int senders : {16, 256}) {
    INFO(senders);
    const Fabric star = star_fabric(senders + 1, gb_per_s(10), Seconds(0));
    const EngineCounters seen = simulate(star, into_one_host(senders, 4), {Sharing::max_min}).value().counters;
    CHECK(seen.messages == senders * 10);
    CHECK(seen.rate_updates <= 4 * seen.messages);
  }
}

TEST_CASE("an oversubscribed fat tree touches the flows that a change can reach") {
  const Fabric fabric = fat_tree(256);
  // Counted, not derived: a gate. From nothing it would be tens of rates for each of the 2,048 messages
  // (docs/decisions/0021-levels.md), and every new rate puts an event in the queue.
  check_counters(of_pattern(fabric, ring_in_any_order(256, 8), Sharing::max_min), 256 * 8, 5006, 5940);
  check_counters(of_pattern(fabric, ring_in_any_order(256, 8), Sharing::fifo), 256 * 8, 2048, 0);
}
