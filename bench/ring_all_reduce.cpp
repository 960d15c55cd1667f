// Ring all-reduce on dedicated links, event-driven: collcast beside SimGrid in one run.
//
// Both build the machine and the schedule and run them; wall time of the whole. SimGrid's rounds are cut
// (`rounds` counter) where the whole would take minutes: its cost per message does not depend on the
// round. Both simulate the cut schedule once, untimed, and must agree, so that a fast wrong answer does not count.
// `ring` has equal links, so that all messages of a round end together; in `unequal_ring` every link is slower by a
// factor drawn from [1, 2], so that hardly two do.
// `hold` is the measure of both: the earliest of as many pending events as there are ranks is taken from a binary heap
// and put back later by an exponential increment.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "cases.hpp"
#include "collcast/engine/engine.hpp"
#include "support/counted_memory.hpp"

namespace {

using namespace collcast;
using namespace bench;

constexpr double link_bandwidth = 10e9;    // bytes/s
constexpr double link_latency = 1e-6;      // s
constexpr std::int64_t slice = 1 << 20;    // bytes per message
constexpr double peer_messages = 400'000;  // at most this many in one SimGrid run

std::vector<int> members(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int peer_rounds(int ranks) { return std::min(2 * (ranks - 1), std::max(1, static_cast<int>(peer_messages / ranks))); }

/// Unequal links have no latency: in SimGrid a sender's next message waits until the last one has arrived, in ours
/// until it has left. Where all links are equal a member waits for what it receives, and nothing differs.
Fabric machine(int ranks, double spread) {
  return ring_machine(ranks, link_bandwidth, spread > 0 ? 0 : link_latency, spread);
}

void ours(benchmark::State& state, double spread) {
  const int ranks = static_cast<int>(state.range(0));
  std::int64_t messages = 0, events = 0;
  std::size_t bytes = 0, allocations = 0;
  for (auto _ : state) {
    const std::size_t bytes_before = test::count_most_bytes_from_now();
    const Fabric fabric = machine(ranks, spread);
    const Pattern pattern = ring_pattern(members(ranks), slice);
    const std::size_t allocations_before = test::counted_memory().allocations;
    const auto timeline = simulate(fabric, pattern);
    allocations += test::counted_memory().allocations - allocations_before;
    bytes = test::counted_memory().most_bytes - bytes_before;
    messages += timeline.value().counters.messages;
    events += timeline.value().counters.events;
  }
  state.counters["bytes/rank"] = static_cast<double>(bytes) / ranks;
  state.counters["allocations/message"] = static_cast<double>(allocations) / static_cast<double>(messages);
  state.counters["messages/s"] = benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
  state.counters["events/message"] = static_cast<double>(events) / static_cast<double>(messages);
}

void peer(benchmark::State& state, double spread) {
  const int ranks = static_cast<int>(state.range(0));
  const int rounds = peer_rounds(ranks);
  const Fabric fabric = machine(ranks, spread);
  const PeerMachine same = as_peer(fabric, members(ranks));
  const auto expected = simulate(fabric, ring_pattern(members(ranks), slice, rounds));
  double messages = 0, bytes = 0;
  for (auto _ : state) {
    const auto run = simgrid_ring(same, {members(ranks), rounds, static_cast<double>(slice)});
    if (!run) {
      state.SkipWithError("SimGrid did not finish");
      break;
    }
    const double ends = to_seconds(expected.value().finish).count();
    if (std::abs(run->simulated_s / ends - 1) > 1e-6) state.SkipWithError("the simulated times differ");
    state.SetIterationTime(run->wall_s);
    messages += static_cast<double>(ranks) * rounds;
    bytes = run->bytes;
  }
  state.counters["bytes/rank"] = bytes / ranks;
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
  state.counters["rounds"] = rounds;
}

void by_recurrence(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const Fabric fabric = machine(ranks, 1);
  const Pattern pattern = ring_pattern(members(ranks), slice);
  double stepped = 0;
  for (auto _ : state) {
    const auto result = recurrence(fabric, pattern);
    stepped = static_cast<double>(result.value().stepped) / static_cast<double>(result->messages);
  }
  state.counters["stepped/message"] = stepped;
  const double messages = static_cast<double>(state.iterations()) * ranks * 2 * (ranks - 1);
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
}

void hold(benchmark::State& state) {
  using Event = std::pair<std::uint64_t, std::uint64_t>;  // time, the rest
  Dice dice(1);
  std::vector<std::uint64_t> increments(1 << 16);
  for (std::uint64_t& increment : increments)
    increment = static_cast<std::uint64_t>(-1e8 * std::log(1 - dice.between(0, 1)));
  std::priority_queue<Event, std::vector<Event>, std::greater<>> heap;
  std::size_t drawn = 0;
  const auto draw = [&] { return increments[drawn++ % increments.size()]; };
  for (std::int64_t i = 0; i < state.range(0); ++i) heap.emplace(draw(), i);
  for (auto _ : state) {
    const Event event = heap.top();
    heap.pop();
    heap.emplace(event.first + draw(), event.second);
  }
  state.counters["holds/s"] = benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->RangeMultiplier(4)->Range(64, 4096)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(ours, ring, 0)->Apply(sizes)->UseRealTime();
BENCHMARK_CAPTURE(peer, ring, 0)->Apply(sizes)->UseManualTime();
BENCHMARK_CAPTURE(ours, unequal_ring, 1)->Apply(sizes)->UseRealTime();
BENCHMARK_CAPTURE(peer, unequal_ring, 1)->Apply(sizes)->UseManualTime();
BENCHMARK(hold)->RangeMultiplier(4)->Range(64, 4096)->UseRealTime();
BENCHMARK(by_recurrence)->RangeMultiplier(8)->Range(1024, 65536)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
