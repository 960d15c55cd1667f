// Messages that share links, max-min fair: collcast beside SimGrid in one run.
//
//   bottleneck  k hosts send messages of unequal sizes, one after the other, to one more host: all share its link
//   weighted_bottleneck  the same by weights of 1, 2, 3 and 4 (collcast alone)
//   fat_tree    a ring all-reduce among hosts in random order on leaves of 32 under 8 spines, 4:1 oversubscribed
//
// Building included on both sides. The simulated times must agree, so that a fast wrong answer does not count.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "cases.hpp"
#include "collcast/engine/engine.hpp"

namespace {

using namespace collcast;
using namespace bench;

constexpr double bandwidth = 10e9;  // bytes/s
constexpr int per_sender = 40;
constexpr int fat_tree_rounds = 20;
constexpr double message = 1 << 20;  // bytes

bool differ(double a, double b) { return std::abs(a / b - 1) > 1e-6; }

void count(benchmark::State& state, std::int64_t messages, const EngineCounters& one) {
  state.counters["messages/s"] = benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
  const auto per_message = [&](std::int64_t n) { return static_cast<double>(n) / static_cast<double>(one.messages); };
  state.counters["events/message"] = per_message(one.events);
  state.counters["rates/message"] = per_message(one.rate_updates);
}

std::vector<PeerSender> senders_into_one(int hosts) {
  Dice dice(1);
  std::vector<PeerSender> senders;
  for (int h = 0; h < hosts; ++h) {
    PeerSender sender{h, 0, {}};
    for (int m = 0; m < per_sender; ++m)
      sender.messages.push_back({hosts, std::floor(message * dice.between(0.5, 1.5))});
    senders.push_back(std::move(sender));
  }
  return senders;
}

void ours_bottleneck(benchmark::State& state, int weights) {
  const int hosts = static_cast<int>(state.range(0));
  const std::vector<PeerSender> senders = senders_into_one(hosts);
  std::int64_t messages = 0;
  EngineCounters counters;
  for (auto _ : state) {
    const Fabric fabric = star_machine(hosts + 1, bandwidth);
    counters = simulate(fabric, as_schedule(senders, weights)).value().counters;
    messages += counters.messages;
  }
  count(state, messages, counters);
}

void peer_bottleneck(benchmark::State& state) {
  const int hosts = static_cast<int>(state.range(0));
  const Fabric fabric = star_machine(hosts + 1, bandwidth);
  const std::vector<PeerSender> senders = senders_into_one(hosts);
  const double expected = to_seconds(simulate(fabric, as_schedule(senders)).value().finish).count();
  const PeerMachine machine = as_peer(fabric, senders);
  double messages = 0;
  for (auto _ : state) {
    const auto run = simgrid_senders(machine, senders);
    if (!run || differ(run->simulated_s, expected)) {
      state.SkipWithError("SimGrid did not finish, or says otherwise");
      break;
    }
    state.SetIterationTime(run->wall_s);
    messages += static_cast<double>(run->finish_s.size());
  }
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
}

void ours_fat_tree(benchmark::State& state) {
  const int hosts = static_cast<int>(state.range(0));
  std::int64_t messages = 0;
  EngineCounters counters;
  for (auto _ : state) {
    const Fabric fabric = fat_tree(hosts, bandwidth, 4);
    counters = simulate(fabric, ring_pattern(Dice(1).permutation(hosts), 1 << 20, fat_tree_rounds)).value().counters;
    messages += counters.messages;
  }
  count(state, messages, counters);
}

void peer_fat_tree(benchmark::State& state) {
  const int hosts = static_cast<int>(state.range(0));
  const Fabric fabric = fat_tree(hosts, bandwidth, 4);
  const std::vector<int> members = Dice(1).permutation(hosts);
  const auto timeline = simulate(fabric, ring_pattern(members, 1 << 20, fat_tree_rounds));
  const double expected = to_seconds(timeline.value().finish).count();
  const PeerMachine machine = as_peer(fabric, members);
  double messages = 0;
  for (auto _ : state) {
    const auto run = simgrid_ring(machine, {members, fat_tree_rounds, message});
    if (!run || differ(run->simulated_s, expected)) {
      state.SkipWithError("SimGrid did not finish, or says otherwise");
      break;
    }
    state.SetIterationTime(run->wall_s);
    messages += static_cast<double>(hosts) * fat_tree_rounds;
  }
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(ours_bottleneck, equal, 1)
    ->Name("ours/bottleneck")
    ->Arg(256)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(ours_bottleneck, weighted, 4)
    ->Name("ours/weighted_bottleneck")
    ->Arg(256)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(peer_bottleneck)->Name("peer/bottleneck")->Arg(256)->Unit(benchmark::kMillisecond)->UseManualTime();
BENCHMARK(ours_fat_tree)->Name("ours/fat_tree")->Arg(1024)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(peer_fat_tree)->Name("peer/fat_tree")->Arg(1024)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
