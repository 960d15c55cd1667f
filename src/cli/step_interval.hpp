// Between what a step is on a calibrated machine.
#pragma once

#include <functional>
#include <optional>

#include "collcast/report/documents.hpp"
#include "collcast/scenario/overlay.hpp"

namespace collcast::cli {

/// Between which multiples of the forecast 8 of 10 measurements were, by size; 1 where the calibration has seen none.
/// Nothing where it does not say.
std::optional<Scenario::Spread> spread_of(const Calibration&);

/// That collectives of the step are beyond what the fit has seen, and in which way; empty: none is.
std::string beyond_fit(const Scenario::FittedTo&, const Fabric&, const StepResult&);

/// A step by closed form, of means.
using MeanStep = std::function<Result<StepResult>(const Scenario&)>;

/// Works the step out with all collectives as short, and as long, as the scenario's spread has them, and scales what
/// the report has by that, with a warning where its collectives are beyond what the fit has seen. Nothing is added
/// where there is no spread, or where that is ended.
void add_interval(const Scenario&, const Fabric&, const MeanStep&, StepReport&);

}  // namespace collcast::cli
