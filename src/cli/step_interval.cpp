#include "cli/step_interval.hpp"

#include "collcast/report/validate_document.hpp"

namespace collcast::cli {

std::optional<Scenario::Spread> spread_of(const Calibration& by) {
  Scenario::Spread out;
  bool says_any = false;
  for (const Calibration::Residual& residual : by.residuals)
    for (const Band band : bands) {
      if (!(residual.high > 0) || residual.band != to_string(band)) continue;
      out.low[static_cast<std::size_t>(band)] = residual.low;
      out.high[static_cast<std::size_t>(band)] = residual.high;
      says_any = true;
    }
  return says_any ? std::optional(out) : std::nullopt;
}

void add_interval(const Scenario& scenario, const MeanStep& mean, StepReport& report) {
  if (!scenario.spread || !scenario.step) return;
  Scenario end = scenario;
  end.collectives.stretch = scenario.spread->low;
  const Result<StepResult> low = mean(end);
  if (!low) return;
  end.collectives.stretch = scenario.spread->high;
  const Result<StepResult> high = mean(end);
  if (!high) return;
  const auto between = [](Seconds has, Seconds estimate, Seconds shortest, Seconds longest) {
    const double scale = has / estimate;
    return TimeRange{shortest * scale, longest * scale};
  };
  const StepResult& r = report.result;
  report.interval = between(r.step, r.estimate, low->estimate, high->estimate);
  if (!r.inference) return;
  const auto phase = [&](ServingPhase InferenceResult::*of) {
    const ServingPhase& has = (*r.inference).*of;
    return between(has.time(), has.estimate, ((*low->inference).*of).estimate, ((*high->inference).*of).estimate);
  };
  report.ttft_interval = phase(&InferenceResult::prefill);
  report.tpot_interval = phase(&InferenceResult::decode);
}

}  // namespace collcast::cli
