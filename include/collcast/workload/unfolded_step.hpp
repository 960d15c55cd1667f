// A step of which every rank is simulated for itself, every collective message by message, in one run.
//
// The step of forecast_step has one rank per pipeline stage, collectives as times found apart. Here nothing is folded
// and nothing is a time but computing: messages of TP, CP, EP, DP groups and of the pipeline meet on the links, and a
// rank goes on when its own part of a collective is over. So it differs from the folded step by contention between
// collectives of different groups and kinds (longer), by what a group's first finishers gain (shorter), and by shares
// of messages that the receivers gather without keeping the sender's next message back (shorter). Where neither is
// there, the two are equal to the picosecond.
#pragma once

#include <functional>
#include <optional>

#include "collcast/schedule/programs.hpp"
#include "collcast/workload/faulty_step.hpp"

namespace collcast {

struct UnfoldedStep {
  Seconds step{};  ///< until the last rank is through
  int ranks = 0;
  std::int64_t exchanges = 0;  ///< collectives, each group's for itself
  std::int64_t transfers = 0;  ///< messages between pipeline stages
  std::int64_t messages = 0;   ///< of all
  std::int64_t repeated = 0;   ///< of them: not walked, as their group does again what it has done (EngineOptions)
  std::int64_t events = 0;
  int stage = 0;        ///< that the breakdown is of: the folded one's
  Breakdown breakdown;  ///< mean over its ranks; sums to the step
};

struct StepWithUnfolded {
  StepResult result;
  std::optional<FaultEffect> effect;     ///< of a machine that is not as described
  std::optional<UnfoldedStep> unfolded;  ///< none if the watch ended it, or it did not begin
};

/// On a machine with faults each rank computes as its own GPU does, on the links as they are, and with a placement on
/// its own nodes; collectives keep the algorithms of the machine as described. Faults that come or go, or draw, are
/// refused. `begins`, if given, is told of the messages to come and of the memory that they take (footprint.hpp) once
/// the folded step is known; false leaves it at that. `goes_on` ends closed forms.
Result<StepWithUnfolded> forecast_unfolded_step(
    const StepInputs&, const Fabric&, const MachineState&, const CollectivePolicy&, StepTimeline* timeline = nullptr,
    const EngineOptions& engine = {}, const Origins& origins = {},
    const std::function<bool(const ProgramTraffic&, Bytes memory)>& begins = {}, const GoesOn& goes_on = {});

}  // namespace collcast
