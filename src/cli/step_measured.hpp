// What a step took that somebody ran, beside its forecast.
#pragma once

#include "cli/scenario_options.hpp"
#include "cli/step_interval.hpp"

namespace collcast::cli {

/// Puts the measured time into the report, and the scale of all kernels with which the closed form would have it, if
/// there is one.
void add_measured(const Scenario&, Seconds measured, const MeanStep&, StepReport&);

}  // namespace collcast::cli
