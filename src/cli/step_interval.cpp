#include "cli/step_interval.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
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

namespace {

/// In which way collectives of the step are beyond what the fit has seen; nothing: none is.
std::vector<std::string> beyond(const Scenario::FittedTo& seen, const Fabric& fabric, const StepResult& result) {
  std::set<std::string> kinds;
  bool sizes = false, ranks = false, nodes = false;
  const auto look = [&](const std::vector<CollectiveCost>& costs) {
    for (const CollectiveCost& cost : costs) {
      const std::string kind(to_string(cost.request.kind));
      if (std::ranges::find(seen.collectives, kind) == seen.collectives.end()) kinds.insert(kind);
      sizes = sizes || cost.request.size < seen.least_size || cost.request.size > seen.most_size;
      ranks = ranks || cost.request.group.size() < seen.least_ranks || cost.request.group.size() > seen.most_ranks;
      if (seen.most_nodes == 0) continue;
      const int on = node_count(fabric, cost.request.group);
      nodes = nodes || on < seen.least_nodes || on > seen.most_nodes;
    }
  };
  look(result.collectives);
  if (result.inference) {
    look(result.inference->prefill.collectives);
    look(result.inference->decode.collectives);
  }
  std::vector<std::string> out;
  if (!kinds.empty())
    out.push_back(fmt::format("{} (it has seen {})", fmt::join(kinds, ", "), fmt::join(seen.collectives, ", ")));
  if (sizes)
    out.push_back(fmt::format("sizes outside {} to {}", format_bytes(seen.least_size), format_bytes(seen.most_size)));
  if (ranks) out.push_back(fmt::format("groups of ranks outside {} to {}", seen.least_ranks, seen.most_ranks));
  if (nodes) out.push_back(fmt::format("groups on nodes outside {} to {}", seen.least_nodes, seen.most_nodes));
  return out;
}

}  // namespace

std::string beyond_fit(const Scenario::FittedTo& seen, const Fabric& fabric, const StepResult& result) {
  const std::vector<std::string> what = beyond(seen, fabric, result);
  return what.empty() ? std::string()
                      : fmt::format("collectives beyond what the calibration was fitted to: {}", fmt::join(what, "; "));
}

void add_interval(const Scenario& scenario, const Fabric& fabric, const MeanStep& mean, StepReport& report) {
  if (!scenario.step) return;
  if (scenario.fitted_to) {
    report.beyond_fit = beyond_fit(*scenario.fitted_to, fabric, report.result);
    if (!report.beyond_fit.empty()) report.result.warnings.push_back(report.beyond_fit);
  }
  if (!scenario.spread) return;
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
