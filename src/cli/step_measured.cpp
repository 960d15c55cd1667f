#include "cli/step_measured.hpp"

#include <boost/math/tools/toms748_solve.hpp>

#include <cstdint>

namespace collcast::cli {

void add_measured(const Scenario& scenario, Seconds measured, const MeanStep& mean, StepReport& report) {
  const StepResult& r = report.result;
  report.measured = StepReport::Measured{measured, std::nullopt};
  // The closed form goes with the step, as a simulation would take long for each scale.
  const Seconds wanted = measured * (r.estimate / r.step);
  bool ended = false;
  const auto beyond = [&](double scale) {
    Scenario scaled = scenario;
    scaled.topology.gpu.kernel_scale = scaled.step->gpu.kernel_scale = scale;
    const Result<StepResult> step = mean(scaled);
    ended = ended || !step;
    return step ? step->estimate / wanted - 1 : 0;
  };
  const double low = beyond(least_kernel_scale), high = beyond(most_kernel_scale);
  if (ended || low > 0 || high < 0) return;
  constexpr int bits = 24;
  std::uintmax_t evaluations = 60;
  const auto [from, to] =
      boost::math::tools::toms748_solve(beyond, least_kernel_scale, most_kernel_scale, low, high,
                                        boost::math::tools::eps_tolerance<double>(bits), evaluations);
  if (!ended) report.measured->kernel_scale = (from + to) / 2;
}

}  // namespace collcast::cli
