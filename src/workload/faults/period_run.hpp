// Runs a step's schedule whose operations take longer or shorter in some periods of the step, as faults begin and end.
//
// An operation under way when a period begins has the same share of its work left and does it at the new pace, exact to
// the picosecond that it is rounded up to; one that begins at that instant belongs to the new period. A wait for
// launches is the host's: it ends when they are over, which is so long after the pass's begin, whatever has held that
// up since, a period, DP, or a slower rank of its groups. A step's operations share no links, so each begins when all
// that it waits for are over, and one walk in their order is the simulation. Where collectives of DP slow the kernels
// beside them (slowdown.hpp) it is gone through event by event instead: a kernel goes at its rate while one runs that
// slows its class, exact to 2^-32 ps.
#pragma once

#include <vector>

#include "workload/timeline.hpp"

namespace collcast::workload {

struct PeriodTimes {
  std::vector<SimTime> begins;               ///< of all periods but the first, ascending
  std::vector<std::vector<Picoseconds>> of;  ///< by period, by OpId
};
/// What the operations of a schedule without transfers take.
std::vector<Picoseconds> times_of(const Schedule&);
/// Tells `step` of launches that are waited for in a further period, in which it is `here`.
void add_launches(StepSchedule& step, const StepSchedule& here);

/// As simulate() of the engine where there is one period and nothing is slowed. `slowed`, if given, receives what the
/// kernels of each class take longer.
Result<Timeline> run_periods(const StepSchedule&, const PeriodTimes&, const EngineWatch& = {},
                             std::vector<Picoseconds>* slowed = nullptr);

}  // namespace collcast::workload
