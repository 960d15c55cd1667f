// A forecast twice, without the faults and with them; see the header for what is exact.
#include "collcast/workload/faulty_step.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/engine/watch.hpp"
#include "workload/activity.hpp"
#include "workload/estimate_step.hpp"
#include "workload/faults/fault_periods.hpp"
#include "workload/faults/faulty_plan.hpp"
#include "workload/faults/jitter.hpp"
#include "workload/faults/period_run.hpp"
#include "workload/forecast.hpp"
#include "workload/timeline.hpp"

namespace collcast {

namespace {

using namespace workload;

/// What the two plans of a forecast, by formula and by simulation, are made of.
struct Makers {
  const StepInputs& in;
  const Fabric& healthy;
  std::vector<const Period*> machines;  ///< of the periods, then those with a link slower or faster
  ForecastPrices& prices;               ///< of the healthy machine
  std::deque<ForecastPrices>& period;   ///< of each of the machines
  const GoesOn& goes_on;

  /// By period. `by`: by_estimate or by_simulation.
  Result<std::vector<ClassedPlan>> plans(CollectiveTime (ForecastPrices::*by)()) const {
    std::vector<CollectiveTime> here;
    for (ForecastPrices& its : period) here.push_back((its.*by)());
    std::vector<FaultyMachine> timed;
    for (std::size_t p = 0; p < machines.size(); ++p) {
      timed.push_back(machines[p]->machine);
      timed.back().time = &here[p];
    }
    return make_classed_plans(in, timed, (prices.*by)(), Fold::alike_once, goes_on);
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

/// Of the stage's GPUs.
double slowest_speed(const ClassedPlan& plan, int stage) {
  double speed = 1;
  for (const RankClass& one : plan.classes)
    if (one.stage == stage) speed = std::min(speed, one.speed);
  return speed;
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

struct SimulatedPlans {
  StepSchedule spelled;
  Timeline run;                     ///< of the first draw
  std::optional<Timeline> unmoved;  ///< without jitter, where there is any
  std::vector<Seconds> draws;
  std::vector<Picoseconds> slowed;  ///< of `run`: by class, what DP's collectives cost its kernels
};

/// What is asked of a simulation besides its plans.
struct Simulation {
  std::span<const Period> periods;
  const Fabric& fabric;
  std::vector<RankJitter> jitters;
  std::vector<LinkJitter> links;
  std::span<const ClassedPlan> varied;  ///< with a link slower or faster
  int draws = 1;
  const EngineWatch& watch;
  bool draws_any() const { return !jitters.empty() || !links.empty(); }
};

/// Nothing where the watch ends it. `first` is told of launches that are waited for in a later period only.
std::optional<PeriodTimes> times_in(const std::vector<ClassedPlan>& plans, StepSchedule& first,
                                    std::span<const Period> periods, const EngineWatch& watch) {
  PeriodTimes times;
  times.of.push_back(times_of(first.schedule));
  for (std::size_t p = 1; p < plans.size(); ++p) {
    times.begins.emplace_back(to_picoseconds(periods[p].begin));
    const std::optional<StepSchedule> spelled = spell_out(plans[p], watch);
    if (!spelled) return std::nullopt;
    times.of.push_back(times_of(spelled->schedule));
    check(times.of[p].size() == times.of[0].size(), "a step's operations are the same in all periods");
    add_launches(first, *spelled);
  }
  return times;
}

Result<SimulatedPlans> simulate_plans(const std::vector<ClassedPlan>& plans, Simulation of) {
  std::optional<StepSchedule> spelled = spell_out(plans.front(), of.watch);
  if (!spelled) return spelling_ended();
  SimulatedPlans out{std::move(*spelled), {}, {}, {}, {}};
  out.slowed.resize(out.spelled.of_class.size());
  const bool plain =
      plans.size() == 1 && !of.draws_any() && out.spelled.slowings.empty() && out.spelled.launch_waits.empty();
  std::optional<PeriodTimes> known = plain ? PeriodTimes{} : times_in(plans, out.spelled, of.periods, of.watch);
  if (!known) return spelling_ended();
  const PeriodTimes times = std::move(*known);
  Result<Timeline> mean = plain ? simulate(of.fabric, out.spelled.schedule, {Sharing::max_min, of.watch})
                                : run_periods(out.spelled, times, of.watch, &out.slowed);
  if (!mean) return mean.errors();
  out.run = std::move(mean).value();
  if (!of.draws_any()) return out;
  out.unmoved = std::move(out.run);
  const StepDraws draws(out.spelled, std::move(of.jitters));
  std::vector<std::vector<Picoseconds>> varied;
  bool is_over = false;
  const EngineWatch watch = telling_end(of.watch, is_over);
  for (const ClassedPlan& plan : of.varied) {
    spelled = spell_out(plan, watch);
    if (!spelled) break;
    varied.push_back(workload::times_of(spelled->schedule));
  }
  if (is_over) {  // before the first draw
    out.run = *std::exchange(out.unmoved, std::nullopt);
    return out;
  }
  const LinkDraws link_draws(out.spelled, times, varied, std::move(of.links));
  for (int draw = 0; draw < of.draws; ++draw) {
    PeriodTimes drawn = draws.drawn(times, draw);
    link_draws.draw(drawn, draw);
    std::vector<Picoseconds> slowed;
    Result<Timeline> run = run_periods(out.spelled, drawn, watch, &slowed);
    if (!run && is_over) break;  // those that are known count
    if (!run) return run.errors();
    out.draws.push_back(to_seconds(run->finish));
    if (draw > 0) continue;
    out.run = std::move(run).value();
    out.slowed = std::move(slowed);
  }
  if (out.draws.empty()) out.run = *std::exchange(out.unmoved, std::nullopt);
  return out;
}

std::vector<RankClassTimes> class_times(const std::vector<ClassedPlan>& plans, std::span<const Period> periods,
                                        const StepSchedule& spelled, const Timeline& run) {
  std::vector<RankClassTimes> out;
  const Seconds end = to_seconds(run.finish);
  for (std::size_t c = 0; c < plans.front().classes.size(); ++c) {
    const RankClass& one = plans.front().classes[c];
    RankClassTimes times{one.stage, one.first, one.ranks, one.speed, {}, {}};
    for (std::size_t p = 1; p < plans.size() && periods[p].begin < end; ++p)
      times.compute = std::min(times.compute, plans[p].classes[c].speed);
    times.breakdown = break_down(spelled.schedule, run, spelled.of_class[c]);
    times.waits = waits_of(spelled.schedule, run, spelled.of_class[c]);
    out.push_back(times);
  }
  return out;
}

/// Means over all ranks.
void add_mean(const std::vector<RankClassTimes>& classes, int ranks, RankWaits& waits, Seconds& busy) {
  constexpr std::array parts{&RankWaits::tp,        &RankWaits::cp,   &RankWaits::ep, &RankWaits::pipeline,
                             &RankWaits::gradients, &RankWaits::norm, &RankWaits::end};
  for (const RankClassTimes& one : classes) {
    const double share = static_cast<double>(one.ranks) / ranks;
    for (Seconds RankWaits::*part : parts) waits.*part += share * one.waits.*part;
    busy += share * (one.breakdown.total() - one.waits.total());
  }
}

JitterEffect jitter_effect(const std::vector<RankClassTimes>& unmoved, const FaultEffect& effect,
                           const SimulatedPlans& simulated) {
  JitterEffect out;
  out.without = to_seconds(simulated.unmoved->finish);
  out.draws = simulated.draws;
  add_mean(unmoved, effect.ranks, out.waits_without, out.busy_without);
  add_mean(effect.classes, effect.ranks, out.waits, out.busy);
  return out;
}

/// Runs every class; fills what the simulation says.
Diagnostics add_simulation_of_classes(FaultyStep& out, const std::vector<ClassedPlan>& plans, Simulation of,
                                      StepTimeline* timeline) {
  const std::span<const Period> periods = of.periods;
  const bool of_any = of.draws_any();
  Result<SimulatedPlans> run = simulate_plans(plans, std::move(of));
  if (!run) return run.errors();
  out.effect.classes = class_times(plans, periods, run->spelled, run->run);
  out.effect.is_undrawn = of_any && !run->unmoved;
  if (run->unmoved)
    out.effect.jitter = jitter_effect(class_times(plans, periods, run->spelled, *run->unmoved), out.effect, *run);
  StepResult& result = out.result;
  result.simulate = result.step = to_seconds(run->run.finish);
  const ClassedPlan& plan = plans[worst_period(plans, periods, result.step)];
  const bool plain = plans.size() == 1 && !run->unmoved;
  out.effect.slowest =
      plain ? slowest_class(plan, plan.plan.slowest()) : busiest_class(plan, plan.plan.slowest(), out.effect.classes);
  result.breakdown = out.effect.classes[out.effect.slowest].breakdown;
  result.slowdown.dp = to_seconds(run->slowed[out.effect.slowest]);
  tell_waiting_apart(result.breakdown, plan.plan, estimate_step(plan.plan));
  result.simulated_operations = static_cast<std::int64_t>(run->run.ops.size());
  result.ranks = out.effect.ranks;
  result.classes = static_cast<int>(out.effect.classes.size());
  result.critical_path = critical_path_of(run->spelled.schedule, run->run, run->spelled.places);
  add_stage(result, plan.plan);
  out.effect.of_slowest = stage_terms(plan.of(out.effect.slowest), result.stage.stage);
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

/// The ranks that some jitter draws.
std::vector<bool> drawn_ranks(std::span<const RankJitter> jitters) {
  std::vector<bool> drawn;
  for (const RankJitter& one : jitters) {
    drawn.resize(one.ranks.size());
    for (std::size_t r = 0; r < drawn.size(); ++r) drawn[r] = drawn[r] || one.ranks[r];
  }
  return drawn;
}

/// Draws that would take hours.
Diagnostics check_draws(double operations, int draws, const Location& where) {
  constexpr double most_drawn = 5e8;
  if (operations * draws <= most_drawn) return {};
  return {{where,
           std::to_string(draws) + " draws of " + format_count(operations) + " operations are " +
               format_count(operations * draws) + "; at most " + format_count(most_drawn) + " are simulated",
           "expected fewer --seeds: " + std::to_string(static_cast<int>(most_drawn / operations)) + " at most"}};
}

/// A timeline that would not fit, and its draws, before it is planned rank by rank.
Diagnostics check_draws(const StepPlan& plan, std::span<const RankJitter> jitters, int draws, const Location& where) {
  constexpr double most_operations = 5e6;
  const std::vector<bool> drawn = drawn_ranks(jitters);
  const auto ranks = std::max(std::count(drawn.begin(), drawn.end(), true), std::ptrdiff_t{1});
  const double count = plan.operations() * static_cast<double>(ranks) / static_cast<double>(plan.stages.size());
  if (count > most_operations)
    return {{where,
             "jitter makes each of " + std::to_string(ranks) + " ranks unlike the others: the timeline would have " +
                 format_count(count) + " operations; at most " + format_count(most_operations) + " are simulated",
             "expected jitter of fewer GPUs, or fewer micro-batches or layers"}};
  return check_draws(count, draws, where);
}

FaultEffect without(const StepResult& healthy, const MachineState& machine, int ranks) {
  FaultEffect effect;
  effect.machine = machine;
  effect.step = healthy.step;
  effect.estimate = healthy.estimate;
  effect.simulate = healthy.simulate;
  effect.breakdown = healthy.breakdown;
  effect.stage = healthy.stage.stage;
  effect.ranks = ranks;
  return effect;
}

std::vector<FaultPeriod> told(std::span<const MachineFault> faults, std::span<const Period> periods,
                              const PacedEstimate& estimate) {
  std::vector<FaultPeriod> out;
  for (std::size_t p = 0; p < estimate.shares.size(); ++p)
    out.push_back(
        {periods[p].begin, faults_at(faults, periods[p].begin), estimate.by_period[p].total, estimate.shares[p]});
  return out;
}

void warn_of_no_effect(StepResult& result, const Fabric& fabric, std::span<const MachineFault> faults) {
  for (std::string& one : rates_without_effect(fabric, faults)) result.warnings.push_back(std::move(one));
  for (const MachineFault& fault : faults)
    if (fault.from >= result.step)
      result.warnings.push_back("the fault '" + to_text(fault) + "' begins when the step is over, and has no effect");
}

}  // namespace

namespace workload {

namespace {

/// A forecast with faults on the way from its closed form to its simulation.
class Forecast {
 public:
  Forecast(const StepInputs& in, const Fabric& fabric, const MachineState& machine, ForecastPrices& prices,
           const EngineOptions& engine, const Origins& origins, const GoesOn& goes_on)
      : in_(in),
        fabric_(fabric),
        machine_(machine),
        prices_(prices),
        engine_(engine),
        origins_(origins),
        goes_on_(goes_on),
        makers_{in, fabric, {}, prices, prices_in_, goes_on_} {}

  Result<FaultyStep> by_formula(std::optional<StepResult>& as_described) {
    Result<std::vector<Period>> cut = periods_of(in_.layout.world(), fabric_, machine_);
    Result<StepResult> healthy = forecast_priced(in_, fabric_, prices_, Method::estimate, nullptr, engine_, origins_);
    Diagnostics errors = healthy.errors();
    append(errors, cut.errors());
    if (!errors.empty()) return errors;
    as_described = *healthy;
    periods_ = std::move(cut).value();
    for (const Period& period : periods_) add_machine(period);
    Result<std::vector<ClassedPlan>> plans = makers_.plans(&ForecastPrices::by_estimate);
    if (!plans) return placed(plans.errors(), origins_);
    const PacedEstimate estimate = paced_estimate(*plans, periods_);
    const std::size_t worst = worst_period(*plans, periods_, estimate.total);
    FaultyStep out{*healthy, without(*healthy, machine_, in_.layout.world())};
    out.result.estimate = out.result.step = estimate.total;
    out.result.breakdown = estimate.breakdown;
    out.result.closed_form = estimate.by_period[worst].terms;
    out.result.slowdown.dp = estimate.by_period[worst].slowed_by_dp;
    add_stage(out.result, (*plans)[worst].plan);
    out.effect.worst = worst;
    out.effect.speed = slowest_speed((*plans)[worst], out.result.stage.stage);
    out.effect.periods = told(machine_.faults, periods_, estimate);
    plan_ = std::move(plans->front().plan);
    return completed(std::move(out), worst);
  }

  /// `out`: by formula.
  Result<FaultyStep> by_simulation(FaultyStep out, StepResult healthy, int draws, StepTimeline* timeline) {
    out.effect.step = healthy.step;
    out.effect.simulate = healthy.simulate;
    out.effect.breakdown = healthy.breakdown;
    out.effect.stage = healthy.stage.stage;
    std::vector<RankJitter> jitters = jitters_of(in_.layout.world(), fabric_, machine_.faults, periods_);
    Result<LinkVariants> of_links = link_variants_of(in_.layout.world(), fabric_, machine_, periods_);
    if (!of_links) return of_links.errors();
    LinkVariants links = std::move(of_links).value();
    for (const Period& one : links.machines) add_machine(one);
    if (!jitters.empty() || !links.machines.empty()) {
      const Location& where = first_with_jitter(machine_.faults)->where;
      if (Diagnostics wrong = check_draws(plan_, jitters, draws, where); !wrong.empty()) return wrong;
      for (Period& period : periods_) period.machine.drawn = drawn_ranks(jitters);
    }
    Result<std::vector<ClassedPlan>> priced = makers_.plans(&ForecastPrices::by_simulation);
    if (!priced) return placed(priced.errors(), origins_);
    std::vector<ClassedPlan> plans = std::move(priced).value();
    const auto means = plans.begin() + static_cast<std::ptrdiff_t>(periods_.size());
    const std::vector<ClassedPlan> varied(std::make_move_iterator(means), std::make_move_iterator(plans.end()));
    plans.erase(means, plans.end());
    if (Diagnostics wrong =
            check_operations(operations(plans.front()), origins_.of("batch.global_batch"), prices_.room());
        !wrong.empty())
      return wrong;
    // Jitter of links makes classes unlike, too: how many is known by now.
    if (!jitters.empty() || !links.jitters.empty())
      if (Diagnostics wrong = check_draws(operations(plans.front()), draws, first_with_jitter(machine_.faults)->where);
          !wrong.empty())
        return wrong;
    if (Diagnostics wrong = add_simulation_of_classes(
            out, plans, {periods_, fabric_, std::move(jitters), std::move(links.jitters), varied, draws, engine_.watch},
            timeline);
        !wrong.empty())
      return wrong;
    const std::size_t worst = worst_period(plans, periods_, out.result.step);
    out.effect.speed = slowest_speed(plans[worst], out.result.stage.stage);
    return completed(std::move(out), worst);
  }

 private:
  void add_machine(const Period& period) {
    makers_.machines.push_back(&period);
    prices_in_.emplace_back(period.fabric, prices_.policy(), engine_, goes_on_);
  }

  Result<FaultyStep> completed(FaultyStep out, std::size_t worst) {
    if (Diagnostics wrong = complete(out.result, in_, periods_[worst].fabric, prices_in_[worst], origins_);
        !wrong.empty())
      return wrong;
    warn_of_no_effect(out.result, fabric_, machine_.faults);
    return out;
  }

  const StepInputs& in_;
  const Fabric& fabric_;
  const MachineState& machine_;
  ForecastPrices& prices_;
  const EngineOptions& engine_;
  const Origins& origins_;
  const GoesOn& goes_on_;
  std::vector<Period> periods_;
  std::deque<ForecastPrices> prices_in_;  ///< of each of the machines
  Makers makers_;
  StepPlan plan_;  ///< of the first period, by formula
};

}  // namespace

Result<FaultyStep> forecast_faulty(const StepInputs& in, const Fabric& fabric, const MachineState& machine,
                                   ForecastPrices& prices, Method method, StepTimeline* timeline,
                                   const EngineOptions& engine, const Origins& origins, int draws,
                                   const GoesOn& goes_on, StepPlan* simulated, FaultyKnown* known) {
  FaultyKnown here;
  FaultyKnown& so_far = known != nullptr ? *known : here;
  const MachineFault* drawn = first_with_jitter(machine.faults);
  Diagnostics errors;
  if (drawn != nullptr && method == Method::estimate)
    errors.push_back({drawn->where, "jitter has no closed form, which knows means only",
                      "expected --method both or simulate, or no jitter"});
  Forecast forecast(in, fabric, machine, prices, engine, origins, goes_on);
  Result<FaultyStep> formula = forecast.by_formula(so_far.as_described);
  append(errors, formula.errors());
  if (!errors.empty()) return errors;
  if (method == Method::estimate) return formula;
  so_far.by_formula = *formula;
  Result<StepResult> healthy = simulated != nullptr
                                   ? forecast_training(in, fabric, prices, method, nullptr, engine, origins, simulated)
                                   : forecast_priced(in, fabric, prices, method, nullptr, engine, origins);
  if (!healthy) return healthy.errors();
  return forecast.by_simulation(std::move(formula).value(), std::move(healthy).value(), draws, timeline);
}

}  // namespace workload

Result<FaultyStep> forecast_faulty_step(const StepInputs& in, const Fabric& fabric, const MachineState& machine,
                                        const CollectivePolicy& policy, Method method, StepTimeline* timeline,
                                        const EngineOptions& engine, const Origins& origins, int draws,
                                        const GoesOn& goes_on) {
  ForecastPrices prices(fabric, policy, engine, goes_on);
  return forecast_faulty(in, fabric, machine, prices, method, timeline, engine, origins, draws, goes_on);
}

FaultyAsFar forecast_faulty_step_as_far(const StepInputs& in, const Fabric& fabric, const MachineState& machine,
                                        const CollectivePolicy& policy, StepTimeline* timeline,
                                        const EngineOptions& engine, const Origins& origins, int draws,
                                        const GoesOn& goes_on) {
  ForecastPrices prices(fabric, policy, engine, goes_on);
  FaultyKnown known;
  Result<FaultyStep> result = forecast_faulty(in, fabric, machine, prices, Method::both, timeline, engine, origins,
                                              draws, goes_on, nullptr, &known);
  return {std::move(result), std::move(known)};
}

}  // namespace collcast
