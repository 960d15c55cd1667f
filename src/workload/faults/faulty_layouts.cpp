#include "collcast/workload/faulty_layouts.hpp"

#include <deque>
#include <utility>
#include <vector>

#include "workload/estimate_step.hpp"
#include "workload/faults/fault_periods.hpp"
#include "workload/faults/faulty_plan.hpp"
#include "workload/forecast_prices.hpp"

namespace collcast {

using namespace workload;

struct MachineAsItIs::Parts {
  const Fabric* as_described;
  std::vector<Period> periods;
};

MachineAsItIs::MachineAsItIs(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
MachineAsItIs::~MachineAsItIs() = default;
MachineAsItIs::MachineAsItIs(MachineAsItIs&&) noexcept = default;
MachineAsItIs& MachineAsItIs::operator=(MachineAsItIs&&) noexcept = default;

Result<MachineAsItIs> MachineAsItIs::build(const Fabric& as_described, const MachineState& state, int ranks) {
  Result<std::vector<Period>> periods = periods_of(ranks, as_described, state);
  if (!periods) return periods.errors();
  return MachineAsItIs(std::make_unique<const Parts>(Parts{&as_described, std::move(periods).value()}));
}

struct FaultyLayouts::State {
  const MachineAsItIs::Parts& machine;
  ForecastPrices described;
  std::deque<ForecastPrices> by_period;
  GoesOn goes_on;
  CollectiveTime described_time;
  std::vector<CollectiveTime> time_by_period;

  State(const MachineAsItIs::Parts& parts, const CollectivePolicy& policy, const GoesOn& watch)
      : machine(parts),
        described(*parts.as_described, policy, {}, watch),
        goes_on(watch),
        described_time(described.by_estimate()) {
    for (const Period& period : parts.periods) by_period.emplace_back(period.fabric, policy, EngineOptions{}, goes_on);
    for (ForecastPrices& prices : by_period) time_by_period.push_back(prices.by_estimate());
  }
};

FaultyLayouts::FaultyLayouts(const MachineAsItIs& machine, const CollectivePolicy& policy, const GoesOn& goes_on)
    : state_(std::make_unique<State>(*machine.parts_, policy, goes_on)) {}
FaultyLayouts::~FaultyLayouts() = default;
FaultyLayouts::FaultyLayouts(FaultyLayouts&&) noexcept = default;
FaultyLayouts& FaultyLayouts::operator=(FaultyLayouts&&) noexcept = default;

Result<FaultyEstimate> FaultyLayouts::estimate(const StepInputs& in) {
  const std::vector<Period>& periods = state_->machine.periods;
  const Result<StepPlan> described = make_plan(in, *state_->machine.as_described, state_->described_time);
  if (!described) return described.errors();
  std::vector<FaultyMachine> machines;
  for (std::size_t p = 0; p < periods.size(); ++p) {
    machines.push_back(periods[p].machine);
    machines.back().time = &state_->time_by_period[p];
  }
  const Result<std::vector<ClassedPlan>> plans =
      make_classed_plans(in, machines, state_->described_time, Fold::alike_once, state_->goes_on);
  if (!plans) return plans.errors();
  const StepEstimate before = estimate_step(*described);
  const PacedEstimate after = paced_estimate(*plans, periods);
  return FaultyEstimate{{before.total, before.breakdown, {}}, {after.total, after.breakdown, {}}};
}

}  // namespace collcast
