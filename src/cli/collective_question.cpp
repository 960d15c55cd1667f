#include "cli/collective_question.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/values.hpp"
#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/evaluate/passed_over.hpp"
#include "collcast/report/validate_document.hpp"

namespace collcast::cli {

std::optional<TimeRange> interval_of(const CollectiveQuestion& q, const CollectiveRow& row) {
  return interval_of(q, row.size, row.time());
}

std::optional<TimeRange> interval_of(const CollectiveQuestion& q, Bytes size, std::optional<Seconds> time) {
  if (!q.calibration || q.concurrent || !time) return std::nullopt;
  for (const Calibration::Residual& residual : q.calibration->residuals)
    if (residual.band == to_string(band_of(size)) && residual.high > 0)
      return TimeRange{*time * residual.low, *time * residual.high};
  return std::nullopt;
}

namespace {

/// In which way rows are beyond what a fit has seen.
std::vector<std::string> beyond(const Calibration::Range& range, const CollectiveQuestion& q) {
  std::vector<std::string> out;
  const std::string kind(to_string(q.kind));
  if (std::ranges::count(range.collectives, kind) == 0)
    out.push_back(fmt::format("{} (it has seen {})", kind, fmt::join(range.collectives, ", ")));
  const auto [least, most] = std::minmax_element(q.sizes.begin(), q.sizes.end());
  if (*least < range.least_size || *most > range.most_size)
    out.push_back(fmt::format("sizes outside {} to {}", format_bytes(range.least_size), format_bytes(range.most_size)));
  const auto outside = [&](const Group& group) {
    return group.size() < range.least_ranks || group.size() > range.most_ranks;
  };
  if (std::ranges::any_of(q.groups, outside))
    out.push_back(fmt::format("ranks outside {} to {}", range.least_ranks, range.most_ranks));
  const auto on_others = [&](const Group& group) {
    const int nodes = node_count(q.fabric, group);
    return nodes < range.least_nodes || nodes > range.most_nodes;
  };
  if (range.most_nodes > 0 && std::ranges::any_of(q.groups, on_others))
    out.push_back(fmt::format("nodes outside {} to {}", range.least_nodes, range.most_nodes));
  return out;
}

}  // namespace

void add_calibration_notes(const CollectiveQuestion& q, CollectiveReport& report) {
  if (!q.calibration) return;
  report.notes.push_back(calibrated_text(report.machine, q.base_latency()));
  if (std::string beyond = beyond_calibration(q); !beyond.empty()) report.notes.push_back(std::move(beyond));
}

std::string beyond_calibration(const CollectiveQuestion& q) {
  if (!q.calibration || !q.calibration->range) return {};
  const std::vector<std::string> what = beyond(*q.calibration->range, q);
  return what.empty() ? "" : fmt::format("beyond what the calibration was fitted to: {}", fmt::join(what, "; "));
}

GoesOn CollectiveQuestion::closed_forms_go_on() const {
  if (patience == nullptr) return {};
  return {[this] { return !closed_forms_are_over(); }, Patience::room_now};
}

Result<std::vector<Choice>> CollectiveQuestion::choices(const CollectiveRequest& request,
                                                        const CollectivePolicy& own) const {
  Result<std::vector<Choice>> chosen = choose(fabric, request, own, closed_forms_go_on());
  if (!chosen || !simulates() || concurrent) return chosen;
  std::vector<Choice> ordered = *chosen;
  EngineOptions within = engine;  // what closed forms hold of memory is taken by now
  if (engine.memory != unlimited_memory) within.memory = Patience::room_now();
  if (Diagnostics errors = prefer_simulated(fabric, ordered, within); !errors.empty()) {
    if (is_over() || estimates()) return chosen;
    return errors;
  }
  return ordered;
}

std::string CollectiveQuestion::passed_over() const {
  std::size_t largest = 0;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (groups[g].size() > groups[largest].size()) largest = g;
  return to_text(passed_over_by_auto(fabric, request(largest, sizes.back()), policy));
}

Diagnostics fine_chunks(const std::string& given, const std::vector<std::pair<Bytes, const Pattern*>>& sizes) {
  const Pattern* finest = nullptr;
  Bytes at{};
  double least = 1, block = 0;
  for (const auto& [size, pattern] : sizes) {
    double largest = 0;
    for (const Lane& lane : pattern->lanes) largest = std::max(largest, lane.block.value());
    if (pattern->chunks < 2 || largest <= 0 || largest / pattern->chunks >= least) continue;
    finest = pattern, at = size, block = largest;
    least = largest / pattern->chunks;
  }
  if (finest == nullptr) return {};
  return {{typed("--chunks", given),
           fmt::format("{} chunks of {} at {} are {:.3g} bytes each", finest->chunks, finest->algorithm,
                       format_bytes(at), least),
           fmt::format("the model takes data as fluid, a library sends whole bytes: expected --chunks {} at most",
                       std::max<std::int64_t>(1, static_cast<std::int64_t>(block)))}};
}

std::string not_simulated(const std::string& algorithm, Bytes size, const Diagnostics& errors) {
  return fmt::format("{} {}: not simulated: {}", algorithm, format_bytes(size), errors.front().message);
}

CollectiveRequest CollectiveQuestion::request(std::size_t group, Bytes size) const {
  CollectiveRequest out = request_alone(group, size);
  for (std::size_t other = 0; concurrent && other < groups.size(); ++other) {
    if (other != group) out.alongside.push_back(groups[other]);
  }
  return out;
}

CollectiveReport begin_report(const CollectiveQuestion& q, bool links, std::optional<std::string> environment) {
  CollectiveReport report;
  report.machine = summary(q.fabric);
  report.kind = q.kind;
  report.groups = q.groups;
  report.concurrent = q.concurrent;
  report.links = links;
  report.inputs = {q.sizes,          q.root,        q.policy,      q.all_algorithms,
                   q.engine.sharing, q.estimates(), q.simulates(), std::move(environment)};
  report.inputs.policy.base_latency = q.base_latency();
  report.inputs.faults = q.faults;
  return report;
}

}  // namespace collcast::cli
