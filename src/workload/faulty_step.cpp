// A forecast twice, without the faults and with them; see the header for what is exact.
#include "collcast/workload/faulty_step.hpp"

#include <algorithm>
#include <utility>

#include "workload/activity.hpp"
#include "workload/estimate_step.hpp"
#include "workload/faulty_plan.hpp"
#include "workload/forecast.hpp"
#include "workload/period_run.hpp"
#include "workload/timeline.hpp"

namespace collcast {

namespace {

using namespace workload;

/// Between the times at which faults begin and end.
struct Period {
  Seconds begin{};
  Fabric fabric;
  FaultyMachine machine;
};

std::vector<Seconds> begins_of(std::span<const MachineFault> faults) {
  std::vector<Seconds> begins{Seconds{}};
  for (const MachineFault& fault : faults) {
    begins.push_back(fault.from);
    if (fault.until) begins.push_back(*fault.until);
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  return begins;
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

/// What is wrong with a fault is wrong in all its periods, and said once.
void append_new(Diagnostics& errors, const Diagnostics& more) {
  for (const Diagnostic& one : more)
    if (std::none_of(errors.begin(), errors.end(), [&](const Diagnostic& known) {
          return known.message == one.message && to_text(known.where) == to_text(one.where);
        }))
      errors.push_back(one);
}

Result<std::vector<Period>> periods_of(const StepInputs& in, const Fabric& fabric,
                                       std::span<const MachineFault> faults) {
  std::vector<Period> out;
  Diagnostics errors;
  for (const Seconds begin : begins_of(faults)) {
    std::vector<MachineFault> here;
    for (const MachineFault& fault : faults)
      if (fault.holds_at(begin)) here.push_back(fault);
    Result<Fabric> faulty = with_faults(fabric, here);
    append_new(errors, faulty.errors());
    if (!faulty) continue;
    FaultyMachine machine = machine_of(in, fabric, *faulty, here);
    out.push_back({begin, std::move(faulty).value(), std::move(machine)});
  }
  if (!errors.empty()) return errors;
  return out;
}

/// What the two plans of a forecast, by formula and by simulation, are made of.
struct Makers {
  const StepInputs& in;
  const Fabric& healthy;
  std::span<const Period> periods;
  const CollectivePolicy& policy;

  /// By period. `by`: by_estimate or by_simulation, with its options.
  template <class By>
  Result<std::vector<ClassedPlan>> plans(By by) const {
    const CollectivePolicy messages = of_messages(policy);
    const auto on = [&](const Fabric& fabric) { return with_messages(by(fabric, policy), by(fabric, messages)); };
    std::vector<CollectiveTime> here;
    for (const Period& period : periods) here.push_back(on(period.fabric));
    std::vector<FaultyMachine> machines;
    for (std::size_t p = 0; p < periods.size(); ++p) {
      machines.push_back(periods[p].machine);
      machines.back().time = &here[p];
    }
    return make_classed_plans(in, machines, on(healthy));
  }
};

/// The closed form goes through the step at the pace of each period: of a period as long as a step would take that is
/// all of it, of one half as long a half.
struct PacedEstimate {
  Seconds total{};
  Breakdown breakdown;
  std::vector<StepEstimate> by_period;  ///< as if it lasted all the step long; of those that begin before the end
};

Breakdown scaled(const Breakdown& parts, double by) {
  return {by * parts.compute,    by * parts.tp_exposed, by * parts.pp_exposed,
          by * parts.cp_exposed, by * parts.ep_exposed, by * parts.dp_exposed,
          by * parts.bubble,     by * parts.optimizer,  by * parts.other};
}

Breakdown sum(const Breakdown& a, const Breakdown& b) {
  return {a.compute + b.compute,       a.tp_exposed + b.tp_exposed, a.pp_exposed + b.pp_exposed,
          a.cp_exposed + b.cp_exposed, a.ep_exposed + b.ep_exposed, a.dp_exposed + b.dp_exposed,
          a.bubble + b.bubble,         a.optimizer + b.optimizer,   a.other + b.other};
}

PacedEstimate paced_estimate(const std::vector<ClassedPlan>& plans, std::span<const Period> periods) {
  PacedEstimate out;
  double left = 1;  // of the step
  for (std::size_t p = 0; p < plans.size(); ++p) {
    out.by_period.push_back(estimate_step(plans[p].plan));
    const StepEstimate& here = out.by_period.back();
    const bool last = p + 1 == plans.size() || periods[p].begin + left * here.total <= periods[p + 1].begin;
    const double share = last ? left : (periods[p + 1].begin - periods[p].begin) / here.total;
    out.breakdown = p == 0 && last ? here.breakdown : sum(out.breakdown, scaled(here.breakdown, share));
    left -= share;
    if (!last) continue;
    out.total = p == 0 ? here.total : periods[p].begin + share * here.total;
    return out;
  }
  check(false, "the last period ends with the step");
  return out;
}

/// Of the periods that begin before `end`, the one whose step would be the longest.
std::size_t worst_period(const std::vector<ClassedPlan>& plans, std::span<const Period> periods, Seconds end) {
  std::size_t worst = 0;
  Seconds longest{};
  for (std::size_t p = 0; p < plans.size() && (p == 0 || periods[p].begin < end); ++p) {
    const Seconds total = estimate_step(plans[p].plan).total;
    if (total <= longest) continue;
    longest = total;
    worst = p;
  }
  return worst;
}

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

/// With faults that come and go it is the busiest, whatever kept it so.
std::size_t busiest_class(const ClassedPlan& plan, std::size_t stage, const std::vector<RankClassTimes>& times) {
  std::size_t busiest = plan.stages[stage].classes.front();
  const auto idle = [&](std::size_t c) { return times[c].waits.total(); };
  for (const std::size_t c : plan.stages[stage].classes)
    if (idle(c) < idle(busiest)) busiest = c;
  return busiest;
}

struct Simulated {
  StepSchedule spelled;
  Timeline run;
};

Result<Simulated> simulate_periods(const std::vector<ClassedPlan>& plans, std::span<const Period> periods,
                                   const Fabric& fabric, const EngineWatch& watch) {
  StepSchedule spelled = spell_out(plans.front());
  const auto run = [&]() -> Result<Timeline> {
    if (plans.size() == 1) return simulate(fabric, spelled.schedule, {Sharing::max_min, watch});
    PeriodTimes times;
    times.of.push_back(times_of(spelled.schedule));
    for (std::size_t p = 1; p < plans.size(); ++p) {
      times.begins.emplace_back(to_picoseconds(periods[p].begin));
      times.of.push_back(times_of(spell_out(plans[p]).schedule));
      check(times.of[p].size() == times.of[0].size(), "a step's operations are the same in all periods");
    }
    return run_periods(spelled, times, watch);
  };
  Result<Timeline> timeline = run();
  if (!timeline) return timeline.errors();
  return Simulated{std::move(spelled), std::move(timeline).value()};
}

std::vector<RankClassTimes> class_times(const std::vector<ClassedPlan>& plans, std::span<const Period> periods,
                                        const Simulated& simulated) {
  std::vector<RankClassTimes> out;
  const Seconds end = to_seconds(simulated.run.finish);
  for (std::size_t c = 0; c < plans.front().classes.size(); ++c) {
    const RankClass& one = plans.front().classes[c];
    RankClassTimes times{one.stage, one.first, one.ranks, one.speed, {}, {}};
    for (std::size_t p = 1; p < plans.size() && periods[p].begin < end; ++p)
      times.compute = std::min(times.compute, plans[p].classes[c].speed);
    const std::vector<OpId>& ops = simulated.spelled.of_class[c];
    times.breakdown = break_down(simulated.spelled.schedule, simulated.run, ops);
    times.waits = waits_of(simulated.spelled.schedule, simulated.run, ops);
    out.push_back(times);
  }
  return out;
}

/// Runs every class; fills what the simulation says.
Diagnostics add_simulation_of_classes(FaultyStep& out, const std::vector<ClassedPlan>& plans,
                                      std::span<const Period> periods, const Fabric& fabric, const Origins& origins,
                                      StepTimeline* timeline, const EngineWatch& watch) {
  if (Diagnostics wrong = check_operations(operations(plans.front()), origins.of("batch.global_batch")); !wrong.empty())
    return wrong;
  Result<Simulated> run = simulate_periods(plans, periods, fabric, watch);
  if (!run) return run.errors();
  out.effect.classes = class_times(plans, periods, *run);
  StepResult& result = out.result;
  result.simulate = result.step = to_seconds(run->run.finish);
  const ClassedPlan& plan = plans[worst_period(plans, periods, result.step)];
  out.effect.slowest = plans.size() == 1 ? slowest_class(plan, plan.plan.slowest())
                                         : busiest_class(plan, plan.plan.slowest(), out.effect.classes);
  result.breakdown = out.effect.classes[out.effect.slowest].breakdown;
  tell_messages_from_bubble(result.breakdown, estimate_step(plan.plan).terms.transfers);
  result.simulated_operations = static_cast<std::int64_t>(run->run.ops.size());
  result.critical_path = critical_path_of(run->spelled.schedule, run->run, run->spelled.places);
  add_stage(result, plan.plan);
  // Classes of a stage stand in the order of the stages, whatever their ranks.
  std::stable_sort(out.effect.classes.begin(), out.effect.classes.end(),
                   [](const RankClassTimes& a, const RankClassTimes& b) { return a.stage < b.stage; });
  const auto told = std::find_if(out.effect.classes.begin(), out.effect.classes.end(), [&](const RankClassTimes& one) {
    return one.first == plan.classes[out.effect.slowest].first;
  });
  out.effect.slowest = static_cast<std::size_t>(told - out.effect.classes.begin());
  if (timeline) *timeline = {std::move(run->spelled.schedule), std::move(run->run)};
  return {};
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

void warn_of_late(StepResult& result, std::span<const MachineFault> faults) {
  for (const MachineFault& fault : faults)
    if (fault.from >= result.step)
      result.warnings.push_back("the fault '" + to_text(fault) + "' begins when the step is over, and has no effect");
}

}  // namespace

Result<FaultyStep> forecast_faulty_step(const StepInputs& in, const Fabric& fabric,
                                        std::span<const MachineFault> faults, const CollectivePolicy& policy,
                                        Method method, StepTimeline* timeline, const EngineOptions& engine,
                                        const Origins& origins) {
  const Result<std::vector<Period>> periods = periods_of(in, fabric, faults);
  Result<StepResult> healthy = forecast_step(in, fabric, policy, method, nullptr, engine, origins);
  Diagnostics errors = healthy.errors();
  append(errors, periods.errors());
  if (!errors.empty()) return errors;

  FaultyStep out{*healthy, without(*healthy, faults, in.layout.world())};
  const Makers makers{in, fabric, *periods, policy};
  const Result<std::vector<ClassedPlan>> by_formula =
      makers.plans([](const Fabric& f, const CollectivePolicy& p) { return by_estimate(f, p); });
  if (!by_formula) return placed(by_formula.errors(), origins);
  const PacedEstimate estimate = paced_estimate(*by_formula, *periods);
  std::size_t worst = worst_period(*by_formula, *periods, estimate.total);
  out.result.estimate = out.result.step = estimate.total;
  out.result.breakdown = estimate.breakdown;
  out.result.closed_form = estimate.by_period[worst].terms;
  add_stage(out.result, (*by_formula)[worst].plan);
  if (method != Method::estimate) {
    const Result<std::vector<ClassedPlan>> by_engine =
        makers.plans([&](const Fabric& f, const CollectivePolicy& p) { return by_simulation(f, p, engine); });
    if (!by_engine) return placed(by_engine.errors(), origins);
    if (Diagnostics wrong =
            add_simulation_of_classes(out, *by_engine, *periods, fabric, origins, timeline, engine.watch);
        !wrong.empty())
      return wrong;
    worst = worst_period(*by_engine, *periods, out.result.step);
  }
  if (Diagnostics wrong = complete(out.result, in, (*periods)[worst].fabric, policy); !wrong.empty()) return wrong;
  warn_of_late(out.result, faults);
  return out;
}

}  // namespace collcast
