// From inputs to a forecast: check, price, closed form, timeline, memory, rates.
#include <algorithm>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/workload/step.hpp"
#include "workload/activity.hpp"
#include "workload/estimate_step.hpp"
#include "workload/memory.hpp"
#include "workload/parameters.hpp"
#include "workload/timeline.hpp"
#include "workload/warnings.hpp"

namespace collcast {

namespace {

using namespace workload;

LayerTimes layer_times(const StagePlan& stage) {
  const Unit* layer = nullptr;
  for (const Unit& u : stage.units)
    if (u.label.front() == 'L') layer = &u;
  check(layer != nullptr, "every stage has a layer");
  const UnitWork& work = stage.work(*layer);
  LayerTimes t{work.forward_time(), work.backward_time(), {}, {}};
  for (const std::vector<Stretch>* stretches : {&work.forward, &work.backward})
    for (const Stretch& s : *stretches)
      if (!s.computes()) t.tp_comm += s.time;
  t.tp_exposed = t.tp_comm;
  return t;
}

/// What the step achieves, from its time.
void add_rates(StepResult& result, const StepInputs& in) {
  const double gpu_seconds = result.step.count() * in.layout.world();
  const double peak = in.gpu.peak.at(in.options.precision).value();
  result.tokens_per_s_per_gpu = static_cast<double>(in.batch.global_batch) * in.batch.sequence / gpu_seconds;
  result.model_flops_per_gpu = FlopRate(model_flops(in).value() / gpu_seconds);
  result.mfu = result.model_flops_per_gpu.value() / peak;
  result.hfu = hardware_flops(in).value() / gpu_seconds / peak;
}

void add_memory(StepResult& result, const StepInputs& in) {
  for (int stage = 0; stage < in.layout.pp; ++stage) result.memory_by_stage.push_back(stage_memory(in, stage));
  result.memory = *std::max_element(result.memory_by_stage.begin(), result.memory_by_stage.end(),
                                    [](const MemoryUse& a, const MemoryUse& b) { return a.peak < b.peak; });
}

/// Names the algorithm that each collective was priced with.
Diagnostics name_algorithms(StepResult& result, const Fabric& fabric, const CollectivePolicy& policy) {
  for (CollectiveCost& c : result.collectives) {
    if (!c.algorithm.empty()) continue;
    const Result<std::vector<Choice>> choices = choose(fabric, c.request, policy);
    if (!choices) return choices.errors();
    c.algorithm = choices->front().options.algorithm;
  }
  return {};
}

/// Runs the plan as a timeline; fills what the simulation says.
Diagnostics add_simulation(StepResult& result, const StepPlan& plan, const Fabric& fabric, StepTimeline* timeline) {
  // A named operation takes about 300 bytes: this is 1.5 GB.
  constexpr double most_operations = 5e6;
  if (plan.operations() > most_operations)
    return {{{"step"},
             "the timeline would have " + format_count(plan.operations()) + " operations; at most " +
                 format_count(most_operations) + " are simulated",
             "use --method estimate, or fewer micro-batches"}};
  StepSchedule spelled = spell_out(plan);
  Result<Timeline> run = simulate(fabric, spelled.schedule);
  if (!run) return run.errors();
  result.simulate = to_seconds(run->finish);
  result.breakdown = break_down(spelled.schedule, *run, spelled.of_stage[plan.slowest()]);
  if (timeline) *timeline = {std::move(spelled.schedule), std::move(run).value()};
  return {};
}

}  // namespace

Result<StepResult> forecast_step(const StepInputs& in, const Fabric& fabric, const CollectivePolicy& policy,
                                 Method method, StepTimeline* timeline, const EngineOptions& engine) {
  if (Diagnostics wrong = check_step(in, fabric.rank_count(), {"step"}); !wrong.empty()) return wrong;

  const Result<StepPlan> by_formula = make_plan(in, fabric, memoized(by_estimate(fabric, policy)));
  if (!by_formula) return by_formula.errors();
  const StepEstimate estimate = estimate_step(*by_formula);

  StepResult result;
  result.micro_batches = by_formula->micro_batches;
  result.estimate = result.step = estimate.total;
  result.breakdown = estimate.breakdown;
  result.layer = layer_times(by_formula->stages[by_formula->slowest()]);
  result.collectives = by_formula->stages[by_formula->slowest()].collectives;
  if (method != Method::estimate) {
    const Result<StepPlan> by_engine = make_plan(in, fabric, memoized(by_simulation(fabric, policy, engine)));
    if (!by_engine) return by_engine.errors();
    if (Diagnostics wrong = add_simulation(result, *by_engine, fabric, timeline); !wrong.empty()) return wrong;
    result.step = *result.simulate;
    result.layer = layer_times(by_engine->stages[by_engine->slowest()]);
    result.collectives = by_engine->stages[by_engine->slowest()].collectives;
  }
  if (Diagnostics wrong = name_algorithms(result, fabric, policy); !wrong.empty()) return wrong;

  result.operations = layer_operations(in);
  if (result.layer.tp_comm > Seconds{})
    result.compute_to_communication =
        (result.layer.forward + result.layer.backward - result.layer.tp_comm) / result.layer.tp_comm;
  add_rates(result, in);
  add_memory(result, in);
  result.warnings = warnings(in, fabric, result);
  return result;
}

}  // namespace collcast
