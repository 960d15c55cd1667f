// collcast collective --algorithm msccl:FILE: proved, then timed step by step.
#include "cli/collective_msccl.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output.hpp"
#include "collcast/base/units.hpp"
#include "collcast/evaluate/spelled.hpp"

namespace collcast::cli {

namespace {

/// Operations of one row; more would take minutes and gigabytes.
constexpr std::size_t most_operations = 4'000'000;
constexpr int most_loops = 64;  ///< that auto tries

/// Group by group: what of a row does not depend on the size.
struct Pricing {
  const CollectiveQuestion& q;
  const std::vector<msccl::StepRef>& order;

  Schedule spelled(std::size_t group, Bytes size, int loops) const {
    return spell_out(*q.brought, order, q.groups[group], size, loops);
  }
  Seconds bound(std::size_t group, Bytes size, int loops) const {
    return lower_bound(q.fabric, spelled(group, size, loops));
  }

  int loops(std::size_t group, Bytes size) const {
    if (q.policy.chunks > 0) return q.policy.chunks;
    int most = 1;
    while (most < most_loops && order.size() * static_cast<std::size_t>(2 * most) <= most_operations / 8) most *= 2;
    const Seconds finest = bound(group, size, most);
    for (int loops = 1; loops < most; loops *= 2)
      if (bound(group, size, loops) <= 1.01 * finest) return loops;
    return most;
  }

  /// Without its simulation where that was stopped or failed and the bound is known, which `report` is told.
  Result<CollectiveRow> row(std::size_t group, Bytes size, CollectiveReport& report) const {
    CollectiveRow out;
    out.algorithm = "msccl:" + q.brought->name;
    out.group = static_cast<int>(group);
    out.nodes = nodes_of(q.fabric, q.groups[group]);
    out.size = size;
    out.channels = q.brought->channels;
    out.approximate = out.bound = true;
    const int chunks = loops(group, size);
    out.chunks = chunks;
    if (order.size() * static_cast<std::size_t>(chunks) > most_operations)
      return Diagnostic{command_line,
                        fmt::format("{} steps in {} chunks are more than {} operations", order.size(), chunks,
                                    format_count(static_cast<double>(most_operations))),
                        "expected fewer --chunks"};
    const Schedule schedule = spelled(group, size, chunks);
    out.rounding = Seconds(2e-12 * static_cast<double>(schedule.size()));
    if (q.estimate) out.estimate = lower_bound(q.fabric, schedule) + q.base_latency();
    if (q.simulate) {
      const Result<Timeline> timeline = simulate(q.fabric, schedule, q.engine);
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

Result<CollectiveReport> price_msccl(const CollectiveQuestion& q, bool links) {
  const Result<std::vector<msccl::StepRef>> order = prove(*q.brought, q.sizes.front(), q.root);
  if (!order) return order.errors();
  CollectiveReport report;
  report.machine = summary(q.fabric);
  report.kind = q.kind;
  report.groups = q.groups;
  report.links = links;
  report.inputs = {q.sizes, q.root, q.policy, q.all_algorithms, q.engine.sharing, q.estimate, q.simulate, {}};
  report.inputs.policy.algorithm = "msccl:" + q.brought->name;
  report.inputs.policy.base_latency = q.base_latency();
  report.inputs.faults = q.faults;
  const Pricing pricing{q, *order};
  for (const Bytes size : q.sizes) {
    for (std::size_t g = 0; g < q.groups.size(); ++g) {
      Result<CollectiveRow> row = pricing.row(g, size, report);
      if (!row && q.is_over()) {
        report.partial = true;
        continue;
      }
      if (!row) return row.errors();
      report.rows.push_back(std::move(row).value());
    }
  }
  add_calibration_notes(q, report);
  add_notes(q, order->size(), report);
  return report;
}

}  // namespace collcast::cli
