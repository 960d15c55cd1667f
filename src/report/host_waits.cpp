#include "report/host_waits.hpp"

#include <fmt/format.h>

#include "collcast/base/units.hpp"
#include "report/communication.hpp"
#include "report/explain.hpp"
#include "report/step_tables.hpp"

namespace collcast {

bool has_launches(const StepInputs& in) {
  return in.options.launch > Seconds{} || in.options.launch_backward.value_or(Seconds{}) > Seconds{};
}

std::optional<Seconds> host_waits(const StepReport& report) {
  if (!report.inputs || report.result.inference || !is_steady(report)) return {};
  const StepInputs& in = *report.inputs;
  if (!has_launches(in) && in.options.cpu_offloading_num_layers == 0) return {};
  // With DualPipe a stage has two slices, each of which half of the micro-batches pass.
  const int passes = report.result.micro_batches / in.layout.twins();
  Seconds waits{};
  for (const StageTerms::Unit& unit : terms_of_stage(report).units) waits += passes * unit.count * unit.waits;
  return waits;
}

std::string host_waits_text(const StepReport& report) {
  const StepResult& r = report.result;
  const auto waits = host_waits(report);
  if (!waits || !(*waits > 1e-9 * r.step)) return {};
  const bool launches = has_launches(*report.inputs), copies = report.inputs->options.cpu_offloading_num_layers > 0;
  bool dp_beside = false;
  for (const Communication& c : communication(r))
    dp_beside = dp_beside || (c.dimension == std::string_view("dp") && c.hidden() > Seconds{});
  return fmt::format("of compute {}{} ({} of the step) are waits for {}",
                     r.slowdown.rate < 1 && dp_beside ? "at most " : "", format_seconds(*waits),
                     percent_of(waits->count(), r.step.count()),
                     launches && copies ? "them and for launches"
                     : launches         ? "the host's launches of kernels"
                                        : "them");
}

}  // namespace collcast
