// Planning GPT-3 175B on 64 A100 on one thread, from the search space to the ranking; and one family of layouts whose
// prices are known, which is what a larger space of the same groups adds.
//
// "layouts" are those whose cost was computed or that were proved unable to run; "costed" only the former. No
// simulations. CPU time: wall time belongs to whoever else uses the machine.
#include "collcast/planner/plan.hpp"

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "collcast/scenario/scenario.hpp"

namespace {

using namespace collcast;

struct Case {
  Scenario scenario;
  Fabric fabric;
};

Case load(const char* name) {
  ScenarioOptions options;
  options.search = {{COLLCAST_SOURCE_DIR "/topologies"}, {COLLCAST_SOURCE_DIR "/scenarios"}};
  Scenario scenario = load_scenario(name, options).value();
  scenario.collectives.library = Library::ideal;  // whose patterns cost more to price than NCCL's runs
  Fabric fabric = Fabric::build(scenario.topology, scenario.nodes).value();
  return {std::move(scenario), std::move(fabric)};
}

void plan_gpt3_64xa100(benchmark::State& state) {
  const Case c = load("gpt3-plan-64xa100");
  PlanInputs in{*c.scenario.step, {}, c.fabric.rank_count(), c.scenario.collectives, {}};
  in.base.batch.global_batch = static_cast<int>(state.range(0));
  std::int64_t evaluated = 0, costed = 0;
  for (auto _ : state) {
    const auto result = plan(in, c.fabric, {1, 0}, c.scenario.origins);
    if (!result || result->ranked.empty()) {
      state.SkipWithError("nothing fits");
      break;
    }
    evaluated += result->evaluated;
    costed += result->feasible;
  }
  state.counters["layouts/s"] = benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
  state.counters["costed/s"] = benchmark::Counter(static_cast<double>(costed), benchmark::Counter::kIsRate);
  state.counters["layouts"] = benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kAvgIterations);
  state.counters["costed"] = benchmark::Counter(static_cast<double>(costed), benchmark::Counter::kAvgIterations);
}

void family_gpt3_64xa100(benchmark::State& state) {
  const Case c = load("gpt3-plan-64xa100");
  StepInputs in = *c.scenario.step;
  const CollectiveTime prices = step_prices(c.fabric, c.scenario.collectives);
  LayoutFamily family(in, c.fabric, prices);
  std::vector<LayoutChoice> choices;
  for (const int micro_batch : {1, 2, 4, 8})
    for (const bool sp : {false, true})
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
        choices.push_back({in.layout.tp, in.layout.pp, in.layout.dp, micro_batch, sp, recompute, 0});
  for (const LayoutChoice& choice : choices)
    if (!family.estimate(choice)) std::abort();
  for (auto _ : state)
    for (const LayoutChoice& choice : choices) benchmark::DoNotOptimize(family.estimate(choice));
  state.counters["costed/s"] = benchmark::Counter(
      static_cast<double>(choices.size()) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

BENCHMARK(plan_gpt3_64xa100)->Arg(64)->Arg(1536)->Unit(benchmark::kMillisecond);
BENCHMARK(family_gpt3_64xa100)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
