#include "collcast/workload/unfolded_step.hpp"

#include <utility>

#include "collcast/engine/footprint.hpp"
#include "collcast/engine/programs.hpp"
#include "workload/estimate_step.hpp"
#include "workload/forecast.hpp"
#include "workload/step_programs.hpp"

namespace collcast {

namespace {

using namespace workload;

/// Where a stage's ranks spend the step, on the mean.
Breakdown mean_breakdown(const ProgramTimes& times, Seconds step) {
  const auto of = [&](Category category) {
    const Picoseconds sum = times.accounts[static_cast<std::size_t>(category)];
    return Seconds(to_seconds(sum).count() / times.ranks);
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

}  // namespace

Result<StepWithUnfolded> forecast_unfolded_step(const StepInputs& in, const Fabric& fabric,
                                                const CollectivePolicy& policy, StepTimeline* timeline,
                                                const EngineOptions& engine, const Origins& origins,
                                                const std::function<bool(const ProgramTraffic&, Bytes)>& begins) {
  if (Diagnostics wrong = check_unfolding(in, policy, origins); !wrong.empty()) return wrong;
  StepPlan plan;
  ForecastPrices prices(fabric, policy, engine);
  Result<StepResult> folded = forecast_training(in, fabric, prices, Method::both, timeline, engine, origins, &plan);
  if (!folded) return folded.errors();
  StepWithUnfolded out{std::move(folded).value(), {}};

  Result<Programs> programs = make_programs(in, fabric, prices, plan);
  if (!programs) return placed(programs.errors(), origins);
  const ProgramTraffic all = traffic(*programs);
  if (begins && !begins(all, footprint(fabric, *programs))) return out;
  bool ended = false;
  EngineOptions watched = engine;
  if (engine.watch)
    watched.watch = [&](const EngineProgress& now) {
      ended = !engine.watch(now);
      return !ended;
    };
  const Result<ProgramsTimeline> run = simulate(fabric, *programs, watched);
  if (!run && ended) return out;
  if (!run) return run.errors();

  UnfoldedStep unfolded{to_seconds(run->finish), in.layout.world(), run->exchanges, all.transfers, 0, 0, 0, {}, {}};
  unfolded.messages = run->counters.messages;
  unfolded.repeated = run->counters.repeated;
  unfolded.events = run->counters.events;
  unfolded.stage = out.result.stage.stage;
  unfolded.breakdown = mean_breakdown(run->programs[static_cast<std::size_t>(unfolded.stage)], unfolded.step);
  tell_messages_from_bubble(unfolded.breakdown, estimate_step(plan).terms.transfers);
  out.unfolded = unfolded;
  return out;
}

}  // namespace collcast
