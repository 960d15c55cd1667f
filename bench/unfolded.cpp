// A step with every rank for itself: messages per second and memory as the replicas grow.
//
//   bench_unfolded [--walk] [REPLICAS ...]
//
// --walk: every message, also those of collectives that a group repeats (EngineOptions::repeats).
//
// GPT-3 175B's 96 layers on DGX H100 as TP 8 x PP 16 x DP REPLICAS, 64 micro-batches (scenarios/gpt3-100096xh100.yaml
// with fewer replicas). One line for each number of replicas; the folded step is not in the time.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

#include "collcast/engine/programs.hpp"
#include "collcast/scenario/scenario.hpp"
#include "collcast/workload/unfolded_step.hpp"

namespace {

using namespace collcast;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

double peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

bool measure(int replicas, bool repeats) {
  ScenarioOptions options;
  const std::string folder = COLLCAST_SOURCE_DIR;
  options.search = {{folder + "/topologies"}, {folder + "/scenarios"}};
  const std::string batch = std::to_string(replicas * 64);
  for (const auto& [path, value] : {std::pair<std::string, std::string>{"layout.dp", std::to_string(replicas)},
                                    {"batch.global_batch", batch},
                                    {"nodes", std::to_string(replicas * 16)}})
    options.overrides.push_back({path, value, {"bench", 1, 1}, {"bench", 1, 1}});
  Result<Scenario> scenario = load_scenario("gpt3-100096xh100", options);
  if (!scenario) {
    fmt::print(stderr, "{}", to_text(scenario.errors()));
    return false;
  }
  const Fabric fabric = Fabric::build(scenario->topology, scenario->nodes).value();
  const auto start = Clock::now();
  auto unfolding = start;
  EngineOptions engine;
  engine.sharing = scenario->sharing;
  engine.repeats = repeats;
  std::int64_t expected = 0;
  const Result<StepWithUnfolded> step = forecast_unfolded_step(
      *scenario->step, fabric, {}, scenario->collectives, nullptr, engine, {}, [&](const ProgramTraffic& all, Bytes) {
        expected = all.messages;
        unfolding = Clock::now();
        return true;
      });
  if (!step || !step->unfolded) {
    fmt::print(stderr, "{}", to_text(step.errors()));
    return false;
  }
  const double took = seconds(Clock::now() - unfolding);
  const UnfoldedStep& unfolded = *step->unfolded;
  fmt::print(
      "{} ranks: {} messages ({} told before, {} repeated), {} events, {} exchanges; folded {:.1f} s, unfolded {:.1f} "
      "s, {:.2f} M "
      "messages/s, {:.0f} MB at most; step {:.6f} s, folded {:.6f} s\n",
      unfolded.ranks, unfolded.messages, expected, unfolded.repeated, unfolded.events, unfolded.exchanges,
      seconds(unfolding - start), took, static_cast<double>(unfolded.messages) / took / 1e6, peak_megabytes(),
      unfolded.step.count(), step->result.simulate->count());
  std::fflush(stdout);
  return true;
}

}  // namespace

int main(int count, char** words) {
  std::vector<int> replicas;
  bool repeats = true;
  for (int i = 1; i < count; ++i)
    if (std::string_view(words[i]) == "--walk")
      repeats = false;
    else
      replicas.push_back(std::atoi(words[i]));
  if (replicas.empty()) replicas = {2, 8, 32};
  for (const int r : replicas)
    if (!measure(r, repeats)) return 1;
  return 0;
}
