// A step as programs: one per pipeline stage, run by all its ranks.
//
// The timeline of one rank per stage (timeline.hpp) is what its ranks do, so it is the program: its operations in their
// order, with the collectives and messages themselves in the place of their times. What waits for what stays as it is
// there; every schedule of the pipeline, ZeRO, CP and EP is said once, in the timeline. Lines of a rank: its own work
// (computing, and the communication that it waits for), messages to the next stage and to the one before, DP, messages
// beside computing, and the gathers of shares that have come from either side.
#pragma once

#include "collcast/schedule/programs.hpp"
#include "workload/faults/rank_prices.hpp"
#include "workload/forecast_prices.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

/// Accounts of the first streams: a category's number, and this one of waiting for messages or for all ranks.
inline constexpr std::uint8_t idle_account = static_cast<std::uint8_t>(Category::ep) + 1;

/// `plan` is that of the inputs, which have nothing that check_unfolding objects to. `own`: what the ranks do where
/// they are not alike, one program for each of its plans; their collectives are those of `plan`.
Result<Programs> make_programs(const StepInputs&, const Fabric&, ForecastPrices&, const StepPlan& plan,
                               const RankPrices* own = nullptr);

/// What programs cannot say.
Diagnostics check_unfolding(const StepInputs&, const CollectivePolicy&, const Origins&);

}  // namespace collcast::workload
