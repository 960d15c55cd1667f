#include "collcast/workload/unfolded_step.hpp"

#include <span>
#include <utility>
#include <vector>

#include "collcast/engine/footprint.hpp"
#include "collcast/engine/programs.hpp"
#include "collcast/engine/watch.hpp"
#include "workload/estimate_step.hpp"
#include "workload/faults/fault_periods.hpp"
#include "workload/forecast.hpp"
#include "workload/step_programs.hpp"

namespace collcast {

namespace {

using namespace workload;

/// Where a stage's ranks spend the step, on the mean; they run one program or several.
Breakdown mean_breakdown(std::span<const ProgramTimes> programs, Seconds step) {
  const auto of = [&](Category category) {
    Picoseconds sum{};
    int ranks = 0;
    for (const ProgramTimes& times : programs) {
      sum += times.accounts[static_cast<std::size_t>(category)];
      ranks += times.ranks;
    }
    return Seconds(to_seconds(sum).count() / ranks);
  };
  Breakdown parts;
  parts.compute = of(Category::compute) + of(Category::forward) + of(Category::backward) + of(Category::recompute);
  parts.tp_exposed = of(Category::tp);
  parts.cp_exposed = of(Category::cp);
  parts.ep_exposed = of(Category::ep);
  parts.dp_exposed = of(Category::dp);
  parts.pp_exposed = of(Category::pp);
  parts.optimizer = of(Category::optimizer);
  parts.bubble = step - parts.total();  // waiting for messages and for all ranks
  return parts;
}

/// The machine and its ranks' own programs; of a machine as described, one a stage.
struct Unlike {
  Fabric fabric;
  std::optional<RankPrices> ranks;
};

Diagnostics check_unchanging(std::span<const MachineFault> faults) {
  Diagnostics wrong;
  for (const MachineFault& fault : faults) {
    const bool draws = fault.jitter() != nullptr;
    if (draws || fault.comes_or_goes())
      wrong.push_back({fault.where,
                       draws ? "jitter cannot be unfolded" : "a fault that begins or ends cannot be unfolded",
                       "expected a fault that is there from the beginning to the end, or no --unfolded"});
  }
  return wrong;
}

Result<Unlike> as_it_is(const StepInputs& in, const Fabric& fabric, const MachineState& state, const StepPlan& plan,
                        const CollectiveTime& time) {
  Unlike out{fabric, {}};
  if (state.as_described()) return out;
  Result<std::vector<Period>> periods = periods_of(in.layout.world(), fabric, state);
  if (!periods) return periods.errors();
  out.fabric = periods->front().fabric;
  // Messages find the links as they are: of a rank's own only its pace is to be known.
  FaultyMachine machine = periods->front().machine;
  machine.touched.clear();
  Result<RankPrices> ranks = price_ranks(in, machine, plan, joins_of(in.layout, in.options.zero), time);
  if (!ranks) return ranks.errors();
  out.ranks = std::move(ranks).value();
  return out;
}

/// What the programs of a stage took.
std::vector<ProgramTimes> times_of_stage(const ProgramsTimeline& run, const Unlike& machine, int stage) {
  if (!machine.ranks) return {run.programs[static_cast<std::size_t>(stage)]};
  std::vector<ProgramTimes> out;
  for (std::size_t p = 0; p < run.programs.size(); ++p)
    if (machine.ranks->stage_of_plan[p] == static_cast<std::size_t>(stage)) out.push_back(run.programs[p]);
  return out;
}

/// The folded step, and `plan`, that of the machine as described.
Result<StepWithUnfolded> forecast_folded(const StepInputs& in, const Fabric& fabric, const MachineState& state,
                                         ForecastPrices& prices, StepTimeline* timeline, const EngineOptions& engine,
                                         const Origins& origins, const GoesOn& goes_on, StepPlan& plan) {
  if (state.as_described()) {
    Result<StepResult> described =
        forecast_training(in, fabric, prices, Method::both, timeline, engine, origins, &plan);
    if (!described) return described.errors();
    return StepWithUnfolded{std::move(described).value(), {}, {}};
  }
  constexpr int one_draw = 1;
  Result<FaultyStep> folded =
      forecast_faulty(in, fabric, state, prices, Method::both, timeline, engine, origins, one_draw, goes_on, &plan);
  if (!folded) return folded.errors();
  return StepWithUnfolded{std::move(folded->result), std::move(folded->effect), {}};
}

}  // namespace

Result<StepWithUnfolded> forecast_unfolded_step(const StepInputs& in, const Fabric& fabric, const MachineState& state,
                                                const CollectivePolicy& policy, StepTimeline* timeline,
                                                const EngineOptions& engine, const Origins& origins,
                                                const std::function<bool(const ProgramTraffic&, Bytes)>& begins,
                                                const GoesOn& goes_on) {
  Diagnostics wrong = check_unfolding(in, policy, origins);
  append(wrong, check_unchanging(state.faults));
  if (!wrong.empty()) return wrong;
  StepPlan plan;
  ForecastPrices prices(fabric, policy, engine, goes_on);
  Result<StepWithUnfolded> folded =
      forecast_folded(in, fabric, state, prices, timeline, engine, origins, goes_on, plan);
  if (!folded) return folded.errors();
  StepWithUnfolded out = std::move(folded).value();

  const Result<Unlike> machine = as_it_is(in, fabric, state, plan, prices.by_simulation());
  if (!machine) return placed(machine.errors(), origins);
  Result<Programs> programs = make_programs(in, fabric, prices, plan, machine->ranks ? &*machine->ranks : nullptr);
  if (!programs) return placed(programs.errors(), origins);
  const ProgramTraffic all = traffic(*programs);
  if (begins && !begins(all, footprint(machine->fabric, *programs))) return out;
  bool ended = false;
  EngineOptions watched = engine;
  watched.watch = telling_end(engine.watch, ended);
  const Result<ProgramsTimeline> run = simulate(machine->fabric, *programs, watched);
  if (!run && ended) return out;
  if (!run) return run.errors();

  UnfoldedStep unfolded{to_seconds(run->finish), in.layout.world(), run->exchanges, all.transfers, 0, 0, 0, {}, {}};
  unfolded.messages = run->counters.messages;
  unfolded.repeated = run->counters.repeated;
  unfolded.events = run->counters.events;
  unfolded.stage = out.result.stage.stage;
  unfolded.breakdown = mean_breakdown(times_of_stage(*run, *machine, unfolded.stage), unfolded.step);
  tell_waiting_apart(unfolded.breakdown, plan, estimate_step(plan));
  out.unfolded = unfolded;
  return out;
}

}  // namespace collcast
