#include "cli/step_measured.hpp"

#include <cmath>
#include <utility>

namespace collcast::cli {

namespace {

constexpr double least_scale = 0.1, most_scale = 10;
constexpr int most_turns = 40;
constexpr double near_enough = 1e-6;

/// Where a rising function that is nearly a straight line is 0 between two places with values of unlike sign: by the
/// line between them, an end that stays counting half (the Illinois method).
template <class Function>
std::optional<double> root(Function f, double low, double high) {
  std::optional<double> at_low = f(low), at_high = f(high);
  if (!at_low || !at_high || *at_low > 0 || *at_high < 0) return std::nullopt;
  double a = *at_low, b = *at_high, x = low;
  int side = 0;
  for (int turn = 0; turn < most_turns; ++turn) {
    x = a == b ? low : (low * b - high * a) / (b - a);
    const std::optional<double> here = f(x);
    if (!here) return std::nullopt;
    if (std::abs(*here) < near_enough) break;
    if (*here < 0) {
      low = x, a = *here;
      if (side == -1) b /= 2;
      side = -1;
    } else {
      high = x, b = *here;
      if (side == 1) a /= 2;
      side = 1;
    }
  }
  return x;
}

}  // namespace

void add_measured(const Scenario& scenario, Seconds measured, const MeanStep& mean, StepReport& report) {
  const StepResult& r = report.result;
  report.measured = StepReport::Measured{measured, std::nullopt};
  // The closed form goes with the step, as a simulation would take long for each scale.
  const Seconds wanted = measured * (r.estimate / r.step);
  report.measured->kernel_scale = root(
      [&](double scale) -> std::optional<double> {
        Scenario scaled = scenario;
        scaled.topology.gpu.kernel_scale = scaled.step->gpu.kernel_scale = scale;
        const Result<StepResult> step = mean(scaled);
        if (!step) return std::nullopt;
        return step->estimate / wanted - 1;
      },
      least_scale, most_scale);
}

}  // namespace collcast::cli
