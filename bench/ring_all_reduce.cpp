// Ring all-reduce, event-driven, dedicated links: collcast beside SimGrid in one run.
//
// Both build the machine and the schedule and run them; wall time of the whole. SimGrid's rounds are cut
// (`rounds` counter) where the whole would take minutes: its cost per message does not depend on the
// round. The simulated time per round is compared, so that a fast wrong answer does not count.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "collcast/collective/collective.hpp"
#include "collcast/engine/engine.hpp"
#include "simgrid_ring.hpp"

namespace {

using namespace collcast;

constexpr double link_bandwidth = 10e9;    // bytes/s
constexpr double link_latency = 1e-6;      // s
constexpr std::int64_t slice = 1 << 20;    // bytes per message
constexpr double peer_messages = 400'000;  // at most this many in one SimGrid run

/// R rounds of a circulating phase with one chunk: R*(alpha + tau), style law.
double expected_s(int rounds) { return rounds * (link_latency + static_cast<double>(slice) / link_bandwidth); }

void collcast_ring(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  std::int64_t messages = 0, events = 0;
  for (auto _ : state) {
    TopologySpec ring;
    ring.name = "ring";
    ring.devices = {{"gpu", DeviceKind::gpu, 1, {}}};
    ring.network_devices = "gpu";
    ring.network = TorusNetwork{{}, true, Bandwidth(link_bandwidth), Seconds(link_latency)};
    const auto fabric = Fabric::build(ring, ranks);
    const CollectiveRequest request{
        CollectiveKind::all_reduce, Group::strided(Rank(0), 1, ranks), Bytes(slice * ranks), 0, {}};
    const auto pattern = make_pattern(request, {"ring", 1, 1, {}});
    const auto timeline = simulate(fabric.value(), pattern.value());
    const double finish = to_seconds(timeline.value().finish).count();
    if (std::abs(finish / expected_s(2 * (ranks - 1)) - 1) > 1e-6) state.SkipWithError("wrong simulated time");
    messages += timeline.value().counters.messages;
    events += timeline.value().counters.events;
  }
  state.counters["messages/s"] = benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
  state.counters["events/message"] = static_cast<double>(events) / static_cast<double>(messages);
}

void simgrid_peer(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const int rounds = std::min(2 * (ranks - 1), std::max(1, static_cast<int>(peer_messages / ranks)));
  double messages = 0;
  for (auto _ : state) {
    const auto run = bench::simgrid_ring(ranks, rounds, static_cast<double>(slice), link_bandwidth, link_latency);
    if (!run) {
      state.SkipWithError("SimGrid did not finish");
      break;
    }
    if (std::abs(run->simulated_s / expected_s(rounds) - 1) > 1e-6) state.SkipWithError("wrong simulated time");
    state.SetIterationTime(run->wall_s);
    messages += run->messages;
  }
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
  state.counters["rounds"] = rounds;
}

BENCHMARK(collcast_ring)->RangeMultiplier(4)->Range(64, 4096)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(simgrid_peer)->RangeMultiplier(4)->Range(64, 4096)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
