// The parts of a forecast that one with faults has as well.
#pragma once

#include "collcast/workload/faulty_step.hpp"
#include "collcast/workload/step.hpp"
#include "workload/estimate_step.hpp"
#include "workload/forecast_prices.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

/// forecast_step of inputs that train; `simulated`, if given, receives the plan that was simulated.
Result<StepResult> forecast_training(const StepInputs&, const Fabric&, ForecastPrices&, Method, StepTimeline* timeline,
                                     const EngineOptions&, const Origins&, StepPlan* simulated = nullptr);
/// forecast_step with the prices of the fabric.
Result<StepResult> forecast_priced(const StepInputs&, const Fabric&, ForecastPrices&, Method, StepTimeline* timeline,
                                   const EngineOptions&, const Origins&);

/// forecast_faulty_step with the prices of the machine as described; `simulated` as of forecast_training, and of the
/// machine as described; `known` receives what was known before the end, but for the result.
Result<FaultyStep> forecast_faulty(const StepInputs&, const Fabric&, const MachineState&, ForecastPrices&, Method,
                                   StepTimeline*, const EngineOptions&, const Origins&, int draws,
                                   const GoesOn& goes_on, StepPlan* simulated = nullptr, FaultyKnown* known = nullptr);

/// What a stage does for a micro-batch and at the end of the step.
StageTerms stage_terms(const StagePlan&, int stage);

/// The layer of a stage that is shown (plan.hpp: shown_layer), which it has.
LayerTimes layer_times(const StagePlan&);
/// What its kernels take over what TP takes, hidden or not, and what is exposed of CP and EP; 0: nothing.
double compute_to_communication(const LayerTimes&);
/// Of a server, from the prompts to the last token, on the stage that the breakdown is of; messages between stages are
/// left out, as of a layer. 0: nothing.
double compute_to_communication(const Breakdown&);

/// The stage that the result tells of: the one with the most work.
void add_stage(StepResult&, const StepPlan&);

/// Idle time on a rank of a pipeline is told apart as the closed form does it, whatever the rank waits for at the
/// moment: what exchanges of gradients and sharded weights add to the step is DP exposed, what messages add to the
/// pipeline PP exposed, also where another stage's or boundary's are slow, and the rest is the bubble.
void tell_waiting_apart(Breakdown& parts, const StepPlan&, const StepEstimate& of_plan);
/// Of what is idle without exchanges, as of a server's pass, the messages' part.
void tell_messages_from_bubble(Breakdown& parts, Seconds messages_add);

/// A timeline that would not fit, in what anybody simulates or in so much memory.
Diagnostics check_operations(double operations, const Location&, Bytes memory);

/// What the layers below could not do, which knew nothing of a scenario: how its collectives are to be done.
Diagnostics placed(Diagnostics errors, const Origins&);

/// Names the algorithm that each collective was priced with.
Diagnostics name_algorithms(std::vector<CollectiveCost>&, ForecastPrices&);

/// What follows from the times: algorithms, rates, memory, warnings.
Diagnostics complete(StepResult&, const StepInputs&, const Fabric&, ForecastPrices&, const Origins&);

}  // namespace collcast::workload
