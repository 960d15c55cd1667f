// collcast collective --algorithm msccl:FILE: proved, then timed step by step.
#include "cli/collective_msccl.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "cli/progress.hpp"
#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/evaluate/spelled.hpp"

namespace collcast::cli {

namespace {

constexpr int most_loops = 64;               ///< that auto tries,
constexpr std::size_t most_steps = 250'000;  ///< and of all loops together

/// Group by group: what of a row does not depend on the size.
struct Pricing {
  const CollectiveQuestion& q;
  std::size_t steps;
  Progress& progress;
  EngineWatch watch;        ///< of simulations; tells the progress
  EngineWatch bound_watch;  ///< of closed forms, which have a second more

  Result<Seconds> bound(std::size_t group, Bytes size, int loops) const {
    return lower_bound(q.fabric, spell_out(*q.brought, q.groups[group], size, loops), bound_watch);
  }

  Result<int> loops(std::size_t group, Bytes size) const {
    if (q.policy.chunks > 0) return q.policy.chunks;
    int most = 1;
    while (most < most_loops && steps * static_cast<std::size_t>(2 * most) <= most_steps) most *= 2;
    const Result<Seconds> finest = bound(group, size, most);
    if (!finest) return finest.errors();
    for (int loops = 1; loops < most; loops *= 2) {
      const Result<Seconds> coarser = bound(group, size, loops);
      if (!coarser) return coarser.errors();
      if (*coarser <= 1.01 * *finest) return loops;
    }
    return most;
  }

  /// Without its simulation where that was stopped or failed and the bound is known, which `report` is told.
  Result<CollectiveRow> row(std::size_t group, Bytes size, CollectiveReport& report) const {
    CollectiveRow out;
    out.algorithm = "msccl:" + q.brought->name;
    out.group = static_cast<int>(group);
    out.nodes = node_count(q.fabric, q.groups[group]);
    out.size = size;
    out.channels = q.brought->channels;
    out.approximate = out.bound = true;
    const Result<int> chunks = loops(group, size);
    if (!chunks) return chunks.errors();
    out.chunks = *chunks;
    const SpelledOut spelled = spell_out(*q.brought, q.groups[group], size, *chunks);
    const auto sends = [](const SpelledStep& step) { return step.sends; };
    progress.expect(std::count_if(spelled.steps.begin(), spelled.steps.end(), sends) * *chunks);
    out.rounding = Seconds(2e-12 * static_cast<double>(steps) * *chunks);
    if (q.estimates()) {
      const Result<Seconds> bound = lower_bound(q.fabric, spelled, bound_watch);
      if (!bound) return bound.errors();
      out.estimate = *bound + q.base_latency();
    }
    if (q.simulates()) {
      const Result<Timeline> timeline = simulate(q.fabric, spelled, {q.engine.sharing, watch});
      if (!timeline) {
        if (!out.estimate) return timeline.errors();
        if (q.is_over())
          report.partial = true;
        else
          report.notes.push_back(not_simulated(out.algorithm, size, timeline.errors()));
        out.interval = interval_of(q, out);
        return out;
      }
      out.simulate = to_seconds(timeline->finish) + q.base_latency();
      if (report.links) out.links = link_rows(q.fabric, *timeline);
    }
    out.interval = interval_of(q, out);
    return out;
  }
};

void add_notes(const CollectiveQuestion& q, std::size_t steps, CollectiveReport& report) {
  const msccl::Algorithm& a = *q.brought;
  report.notes.push_back(
      fmt::format("{}: {} steps of {} ranks, proved for every order that its waits allow; sums and copies inside "
                  "a GPU, protocols and full buffers are not in the time",
                  a.name, steps, a.gpus.size()));
  const auto outside = [&](Bytes size) {
    return (a.least && size < *a.least) || (a.most && *a.most > Bytes(0) && size > *a.most);
  };
  if (std::any_of(q.sizes.begin(), q.sizes.end(), outside))
    report.notes.push_back(fmt::format("some sizes are outside the {} to {} that it is meant for",
                                       format_bytes(a.least.value_or(Bytes(0))),
                                       a.most ? format_bytes(*a.most) : "any size"));
}

}  // namespace

Result<CollectiveReport> price_msccl(const CollectiveQuestion& q, const Session& session, bool links) {
  const auto goes_on = [&](std::size_t /*steps*/) { return !q.closed_forms_are_over(); };
  const Result<std::vector<msccl::StepRef>> order = prove(*q.brought, q.sizes.front(), q.root, goes_on);
  if (!order) return order.errors();
  CollectiveReport report = begin_report(q, links);
  report.inputs.policy.algorithm = "msccl:" + q.brought->name;
  Progress progress(session, q.sizes.size() * q.groups.size());
  const Pricing pricing{q, order->size(), progress, q.patience->watch(&progress),
                        [&q](const EngineProgress&) { return !q.closed_forms_are_over(); }};
  Diagnostics failed;
  for (const Bytes size : q.sizes) {
    for (std::size_t g = 0; g < q.groups.size(); ++g) {
      progress.begin(fmt::format("{} {}", q.brought->name, format_bytes(size)));
      Result<CollectiveRow> row = pricing.row(g, size, report);
      if (!row && q.is_over()) {
        report.partial = true;
        continue;
      }
      if (row) {
        report.rows.push_back(std::move(row).value());
        continue;
      }
      // Beyond the clock one size is no reason to do without the others.
      report.notes.push_back(not_simulated(report.inputs.policy.algorithm, size, row.errors()));
      append(failed, row.errors());
    }
  }
  if (report.rows.empty() && !failed.empty()) return failed;
  add_calibration_notes(q, report);
  add_notes(q, order->size(), report);
  return report;
}

}  // namespace collcast::cli
