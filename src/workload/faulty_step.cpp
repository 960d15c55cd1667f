// A forecast twice, without the faults and with them; see the header for what is exact.
#include "collcast/workload/faulty_step.hpp"

#include <algorithm>
#include <utility>

#include "workload/activity.hpp"
#include "workload/estimate_step.hpp"
#include "workload/faulty_plan.hpp"
#include "workload/forecast.hpp"
#include "workload/timeline.hpp"

namespace collcast {

namespace {

using namespace workload;

/// What the two plans of a forecast, by formula and by simulation, are made of.
struct Makers {
  const StepInputs& in;
  FaultyMachine machine;
  const Fabric& faulty;
  const CollectivePolicy& policy;

  /// `by`: by_estimate or by_simulation, with its options.
  template <class By>
  Result<ClassedPlan> plan(By by) const {
    const CollectivePolicy messages = of_messages(policy);
    const auto on = [&](const Fabric& fabric) { return with_messages(by(fabric, policy), by(fabric, messages)); };
    const CollectiveTime usual = on(*machine.healthy), here = on(faulty);
    FaultyMachine priced = machine;
    priced.time = &here;
    return make_classed_plan(in, priced, usual);
  }
};

/// The class of a stage whose own work takes longest: the first of the slowest.
std::size_t slowest_class(const ClassedPlan& plan, std::size_t stage) {
  std::size_t slowest = plan.stages[stage].classes.front();
  const auto work = [&](std::size_t c) { return plan.of(c).time().whole() + plan.of(c).optimizer_time(); };
  for (const std::size_t c : plan.stages[stage].classes)
    if (work(c) > work(slowest)) slowest = c;
  return slowest;
}

double operations(const ClassedPlan& plan) {
  return plan.plan.operations() * static_cast<double>(plan.classes.size()) / static_cast<double>(plan.stages.size());
}

/// Runs every class; fills what the simulation says.
Diagnostics add_simulation_of_classes(FaultyStep& out, const ClassedPlan& plan, const Fabric& fabric,
                                      const Origins& origins, StepTimeline* timeline, const EngineWatch& watch) {
  if (Diagnostics wrong = check_operations(operations(plan), origins.of("batch.global_batch")); !wrong.empty())
    return wrong;
  StepSchedule spelled = spell_out(plan);
  Result<Timeline> run = simulate(fabric, spelled.schedule, {Sharing::max_min, watch});
  if (!run) return run.errors();
  const Seconds messages_add = estimate_step(plan.plan).terms.transfers;
  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    const RankClass& one = plan.classes[c];
    RankClassTimes times{one.stage, one.first, one.ranks, one.speed, {}, {}};
    times.breakdown = break_down(spelled.schedule, *run, spelled.of_class[c]);
    times.waits = waits_of(spelled.schedule, *run, spelled.of_class[c]);
    out.effect.classes.push_back(times);
  }
  StepResult& result = out.result;
  out.effect.slowest = slowest_class(plan, plan.plan.slowest());
  result.breakdown = out.effect.classes[out.effect.slowest].breakdown;
  tell_messages_from_bubble(result.breakdown, messages_add);
  result.simulate = result.step = to_seconds(run->finish);
  result.simulated_operations = static_cast<std::int64_t>(run->ops.size());
  result.critical_path = critical_path_of(spelled.schedule, *run, spelled.places);
  add_stage(result, plan.plan);
  // Classes of a stage stand in the order of the stages, whatever their ranks.
  std::stable_sort(out.effect.classes.begin(), out.effect.classes.end(),
                   [](const RankClassTimes& a, const RankClassTimes& b) { return a.stage < b.stage; });
  const auto told = std::find_if(out.effect.classes.begin(), out.effect.classes.end(), [&](const RankClassTimes& one) {
    return one.first == plan.classes[out.effect.slowest].first;
  });
  out.effect.slowest = static_cast<std::size_t>(told - out.effect.classes.begin());
  if (timeline) *timeline = {std::move(spelled.schedule), std::move(run).value()};
  return {};
}

FaultyMachine machine_of(const StepInputs& in, const Fabric& fabric, const Fabric& faulty,
                         std::span<const MachineFault> faults) {
  FaultyMachine machine{&fabric, std::vector<double>(static_cast<std::size_t>(in.layout.world()), 1), {}, nullptr};
  for (const MachineFault& fault : faults)
    if (fault.gpu() != nullptr && fault.gpu()->gpu < in.layout.world())
      machine.speed[static_cast<std::size_t>(fault.gpu()->gpu)] *= fault.gpu()->compute;
  if (!any_of_links(faults)) return machine;
  std::vector<bool> touched = touched_nodes(fabric, faulty);
  if (std::find(touched.begin(), touched.end(), true) != touched.end()) machine.touched = std::move(touched);
  return machine;
}

FaultEffect without(const StepResult& healthy, std::span<const MachineFault> faults, int ranks) {
  FaultEffect effect;
  effect.faults.assign(faults.begin(), faults.end());
  effect.step = healthy.step;
  effect.estimate = healthy.estimate;
  effect.simulate = healthy.simulate;
  effect.breakdown = healthy.breakdown;
  effect.stage = healthy.stage.stage;
  effect.ranks = ranks;
  return effect;
}

}  // namespace

Result<FaultyStep> forecast_faulty_step(const StepInputs& in, const Fabric& fabric,
                                        std::span<const MachineFault> faults, const CollectivePolicy& policy,
                                        Method method, StepTimeline* timeline, const EngineOptions& engine,
                                        const Origins& origins) {
  const Result<Fabric> faulty = with_faults(fabric, faults);
  Result<StepResult> healthy = forecast_step(in, fabric, policy, method, nullptr, engine, origins);
  Diagnostics errors = healthy.errors();
  append(errors, faulty.errors());
  if (!errors.empty()) return errors;

  FaultyStep out{*healthy, without(*healthy, faults, in.layout.world())};
  const Makers makers{in, machine_of(in, fabric, *faulty, faults), *faulty, policy};
  const Result<ClassedPlan> by_formula =
      makers.plan([](const Fabric& f, const CollectivePolicy& p) { return by_estimate(f, p); });
  if (!by_formula) return placed(by_formula.errors(), origins);
  const StepEstimate estimate = estimate_step(by_formula->plan);
  out.result.estimate = out.result.step = estimate.total;
  out.result.breakdown = estimate.breakdown;
  out.result.closed_form = estimate.terms;
  add_stage(out.result, by_formula->plan);
  if (method != Method::estimate) {
    const Result<ClassedPlan> by_engine =
        makers.plan([&](const Fabric& f, const CollectivePolicy& p) { return by_simulation(f, p, engine); });
    if (!by_engine) return placed(by_engine.errors(), origins);
    if (Diagnostics wrong = add_simulation_of_classes(out, *by_engine, fabric, origins, timeline, engine.watch);
        !wrong.empty())
      return wrong;
  }
  if (Diagnostics wrong = complete(out.result, in, *faulty, policy); !wrong.empty()) return wrong;
  return out;
}

}  // namespace collcast
