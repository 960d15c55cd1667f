// collcast collective --library nccl: what NCCL takes and how long it runs, size by size.
#include "cli/collective_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "collcast/base/units.hpp"
#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/evaluate/nodes.hpp"

namespace collcast::cli {

namespace {

CollectiveRow row_of(const CollectiveQuestion& q, const nccl::Communicator& c, std::size_t group, Bytes size,
                     const nccl::Plan& plan) {
  const nccl::Run run = nccl::run(c, q.kind, size, plan);
  CollectiveRow row;
  row.algorithm = plan.point_to_point ? "p2p" : std::string(to_string(plan.algorithm));
  row.protocol = protocols_text(plan);
  row.group = static_cast<int>(group);
  row.nodes = c.nodes;
  row.size = size;
  row.chunks = static_cast<std::int64_t>(std::ceil(run.loops));
  row.channels = plan.channels;
  row.estimate = run.time();
  row.approximate = true;
  return row;
}

/// Without --method, simulations of more messages are left out: half a second each.
constexpr std::int64_t most_nccl_messages_unasked = nccl::most_messages_of_trees;

/// With what the machine sets; which goes with what was asked, as the collective was priced.
nccl::Environment as_run(const CollectiveQuestion& q) {
  const auto all = nccl::of_job(q.environment, q.fabric.spec(), q.fabric.nodes());
  return all ? *all : q.environment;
}

/// What has no simulation, and why.
struct Unsimulated {
  std::string algorithm;
  Diagnostic why;
  std::vector<Bytes> sizes;
};

/// Rows as they are priced, and why some have no simulation.
struct NcclPricing {
  const CollectiveQuestion& q;
  Progress& progress;
  EngineOptions engine;  ///< whose watch tells the progress
  std::vector<CollectiveRow> rows = {};
  std::vector<Unsimulated> unsimulated = {};
  std::vector<Bytes> coarse = {};             ///< sizes whose simulation has longer pieces than agree
  std::vector<std::string> over_bridge = {};  ///< sizes that messages over the host's bridge hold
  /// Sizes that a line of the tuner's file decides, by the line and what is to be said of its choice.
  std::map<std::pair<int, std::string>, std::vector<std::string>> by_rule = {};
  int left_out = 0;
  bool partial = false;
};

bool is_quick(const nccl::Program& program) {
  const std::int64_t less = program.less ? traffic(*program.less).messages : 0;
  return traffic(program.pattern).messages + less <= most_nccl_messages_unasked;
}

void leave_unsimulated(NcclPricing& pricing, const CollectiveRow& row, const Diagnostic& why) {
  auto& all = pricing.unsimulated;
  auto same = std::find_if(all.begin(), all.end(), [&](const Unsimulated& one) {
    return one.algorithm == row.algorithm && one.why.message == why.message;
  });
  if (same == all.end()) same = all.insert(all.end(), {row.algorithm, why, {}});
  if (same->sizes.empty() || same->sizes.back() != row.size) same->sizes.push_back(row.size);
}

/// "pcie node0.pcie1 -> node0.cpu0".
void put_busiest(const nccl::Program& program, const NcclSimulation& simulated, const nccl::Run& run,
                 CollectiveRow& row) {
  if (!simulated.busiest) return;
  const LinkKind kind = program.machine.links()[simulated.busiest->value()].kind;
  const std::string name = program.machine.link_name(*simulated.busiest);
  const bool shared = kind != LinkKind::direct;
  row.busiest = {shared ? fmt::format("{} {}", to_string(kind), name) : name, shared, simulated.load, run.data,
                 run.bound};
}

/// The simulated time, where there is one.
Diagnostics simulate_row(NcclPricing& pricing, const nccl::Communicator& c, const nccl::Plan& plan,
                         CollectiveRow& row) {
  const CollectiveQuestion& q = pricing.q;
  if (q.is_over()) {
    pricing.partial = true;
    return {};
  }
  const Group& group = q.groups[static_cast<std::size_t>(row.group)];
  const Result<nccl::Program> program = nccl::program(q.fabric, group, c, q.kind, row.size, plan, q.root);
  if (!program) {
    leave_unsimulated(pricing, row, program.errors().front());
    return {};
  }
  if (!q.method_given && !is_quick(*program)) {
    ++pricing.left_out;
    return {};
  }
  if (program->coarse && (pricing.coarse.empty() || pricing.coarse.back() != row.size))
    pricing.coarse.push_back(row.size);
  const std::int64_t less = program->less ? traffic(*program->less).messages : 0;
  pricing.progress.expect(std::max(traffic(program->pattern).messages, less));  // one after the other
  const Result<NcclSimulation> simulated = simulate_with_links(*program, pricing.engine);
  if (simulated) {
    row.simulate = simulated->time;
    put_busiest(*program, *simulated, nccl::run(c, q.kind, row.size, plan), row);
    return {};
  }
  if (q.is_over()) {
    pricing.partial = true;
    return {};
  }
  if (!q.estimates()) return simulated.errors();
  leave_unsimulated(pricing, row, simulated.errors().front());
  return {};
}

/// The row with what was asked for of closed form and simulation.
Diagnostics add(NcclPricing& pricing, const nccl::Communicator& c, const nccl::Plan& plan, CollectiveRow row) {
  const CollectiveQuestion& q = pricing.q;
  if (q.simulates() && c.ranks > 1 && row.size > Bytes(0)) {
    if (Diagnostics errors = simulate_row(pricing, c, plan, row); !errors.empty()) return errors;
  } else if (q.simulates()) {
    row.simulate = row.estimate;
  }
  if (!q.estimates()) row.estimate.reset();
  if (pricing.partial && !row.time()) return {};
  pricing.rows.push_back(std::move(row));
  return {};
}

/// "3 sizes from 1 MiB to 1 GiB".
std::string sizes_of(const std::vector<Bytes>& sizes) {
  if (sizes.size() > 2)
    return fmt::format("{} sizes from {} to {}", sizes.size(), format_bytes(sizes.front()), format_bytes(sizes.back()));
  return fmt::format("{}{}", format_bytes(sizes.front()), sizes.size() > 1 ? " and " + format_bytes(sizes.back()) : "");
}

/// Where the simulation alone was asked for: what has none, who chose that, and at which sizes.
Diagnostics missing_simulations(const CollectiveQuestion& q, const std::vector<Unsimulated>& unsimulated) {
  Diagnostics out;
  for (const Unsimulated& one : unsimulated) {
    const bool picked = !q.nccl_algorithm && !q.all_algorithms;
    out.push_back({command_line,
                   fmt::format("no simulation of {} at {}{}: {}", one.algorithm, sizes_of(one.sizes),
                               picked ? ", which NCCL picks there" : "", one.why.message),
                   one.why.hint});
  }
  return out;
}

/// What NCCL believes to be next best, with its forecast.
std::optional<CollectiveRow::RunnerUp> next_best(const CollectiveQuestion& q, const nccl::Communicator& c, Bytes size,
                                                 const nccl::Plan& taken) {
  const auto table = tuning_table(c, q.kind, size);
  const nccl::Candidate* next = nullptr;
  for (const nccl::Candidate& one : table) {
    const bool is_taken = one.algorithm == taken.algorithm && one.protocol == taken.protocol;
    if (one.available && !is_taken && (next == nullptr || one.time < next->time)) next = &one;
  }
  if (next == nullptr) return std::nullopt;
  const CollectiveRow row = row_of(q, c, 0, size, plan_of(c, q.kind, size, *next));
  return CollectiveRow::RunnerUp{row.algorithm, row.chunks, *row.estimate, std::nullopt, row.protocol};
}

/// Every algorithm and protocol that is available, the fastest forecast first. What a tuner's rule chooses runs as the
/// rule has it.
Diagnostics add_all(NcclPricing& pricing, const nccl::Communicator& c, std::size_t group, Bytes size,
                    const nccl::Plan& taken, CollectiveReport& report) {
  const CollectiveQuestion& q = pricing.q;
  std::vector<std::pair<CollectiveRow, nccl::Plan>> ranked;
  const bool first = group == 0 && size == q.sizes.front();
  for (const nccl::Candidate& one : tuning_table(c, q.kind, size)) {
    if (!one.available) {
      if (first && one.protocol == nccl::Protocol::simple)
        report.skipped.push_back({std::string(to_string(one.algorithm)), one.reason});
      continue;
    }
    const bool is_taken = one.algorithm == taken.algorithm && one.protocol == taken.protocol;
    const nccl::Plan plan = is_taken ? taken : plan_of(c, q.kind, size, one);
    ranked.emplace_back(row_of(q, c, group, size, plan), plan);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return *a.first.estimate < *b.first.estimate; });
  for (auto& [row, plan] : ranked)
    if (Diagnostics errors = add(pricing, c, plan, std::move(row)); !errors.empty()) return errors;
  return {};
}

/// What holds the run are messages over the host's bridge.
bool waits_for_bridge(const CollectiveQuestion& q, const nccl::Communicator& c, Bytes size, const nccl::Plan& plan) {
  return c.nodes > 1 && c.ring.type_between >= nccl::PathType::phb &&
         nccl::run(c, q.kind, size, plan).bound == "messages";
}

Diagnostic rests_on_one_system(const std::vector<std::string>& sizes) {
  return {command_line,
          fmt::format("{}: messages over the host's bridge take the time (no GPUDirect RDMA, or NICs far from the "
                      "GPUs), and what each takes was measured on one system, Polaris",
                      fmt::join(sizes, ", ")),
          "docs/nccl.md, 'gap'"};
}

/// That a line of the tuner's file decides, which of all rows is its choice, and channels that it asks for in vain.
void keep_rule(NcclPricing& pricing, const nccl::Plan& plan, Bytes size) {
  if (plan.tuner_line == 0) return;
  std::string said;
  if (pricing.q.all_algorithms) said = fmt::format(": {} {}", to_string(plan.algorithm), to_string(plan.protocol));
  if (plan.tuner_channels > plan.channels)
    said += fmt::format("; of its {} channels there are {}", plan.tuner_channels, plan.channels);
  std::vector<std::string>& sizes = pricing.by_rule[{plan.tuner_line, said}];
  if (const std::string text = format_bytes(size); sizes.empty() || sizes.back() != text) sizes.push_back(text);
}

/// What NCCL takes at one size among one group, or with --algorithm all everything that it could.
Diagnostics price_one(NcclPricing& pricing, const nccl::Communicator& c, std::size_t group, Bytes size,
                      CollectiveReport& report) {
  const CollectiveQuestion& q = pricing.q;
  const Result<nccl::Plan> plan = nccl::plan(c, q.kind, size, q.nccl_algorithm);
  if (!plan) return plan.errors();
  if (group == 0 && waits_for_bridge(q, c, size, *plan)) pricing.over_bridge.push_back(format_bytes(size));
  keep_rule(pricing, *plan, size);
  if (q.all_algorithms && !plan->point_to_point) return add_all(pricing, c, group, size, *plan, report);
  CollectiveRow row = row_of(q, c, group, size, *plan);
  if (!q.nccl_algorithm && !plan->point_to_point && plan->tuner_line == 0 && c.ranks > 1)
    row.runner_up = next_best(q, c, size, *plan);
  row.interval = interval_of(q, row);
  return add(pricing, c, *plan, std::move(row));
}

Diagnostics price_all(NcclPricing& pricing, CollectiveReport& report) {
  const CollectiveQuestion& q = pricing.q;
  nccl::Communicators communicators;
  for (const Bytes size : q.sizes) {
    for (std::size_t g = 0; g < q.groups.size(); ++g) {
      pricing.progress.begin(fmt::format("{} {}", to_string(q.kind), format_bytes(size)));
      const Result<nccl::Communicator> c = communicators.of(q.fabric, q.groups[g], q.environment);
      if (!c) return c.errors();
      if (Diagnostics errors = price_one(pricing, *c, g, size, report); !errors.empty()) return errors;
    }
  }
  report.rows = std::move(pricing.rows);
  report.partial = pricing.partial;
  return {};
}

/// Simulations that alone were asked for: none at all is an error, some that are missing are told.
Diagnostics tell_missing(const NcclPricing& pricing, const Session& session, CollectiveReport& report) {
  const CollectiveQuestion& q = pricing.q;
  if (q.estimates()) return {};
  Diagnostics missing = missing_simulations(q, pricing.unsimulated);
  const auto has_time = [](const CollectiveRow& row) { return row.time().has_value(); };
  const bool any = std::any_of(report.rows.begin(), report.rows.end(), has_time);
  if (!any && !missing.empty() && !report.partial) return missing;
  report.said = warn(session, missing);
  return {};
}

/// Which lines of the tuner's file decide.
void note_rules(const NcclPricing& pricing, std::vector<std::string>& notes) {
  const auto& tuner = pricing.q.environment.files.tuner;
  if (!tuner) return;
  for (const auto& [rule, sizes] : pricing.by_rule)
    notes.push_back(
        fmt::format("line {} of {} decides at {}{}", rule.first, tuner->name, fmt::join(sizes, ", "), rule.second));
  if (!pricing.by_rule.empty()) return;
  const std::string which =
      pricing.q.nccl_algorithm ? fmt::format(" for {}", to_string(*pricing.q.nccl_algorithm)) : "";
  notes.push_back(fmt::format("no rule of {}{} matches and can be run", tuner->name, which));
}

/// Variables that the machine sets, and those that change nothing.
void note_environment(const CollectiveQuestion& q, std::vector<std::string>& notes) {
  if (const std::string run = text_of(as_run(q)); run != text_of(q.environment))
    notes.push_back(fmt::format("the machine's file sets variables for jobs of several nodes: {}", run));
  if (const auto names = unused(q.environment, most_nodes_of(q.fabric, q.groups), q.fabric.spec()); !names.empty())
    notes.push_back(fmt::format("no effect on this forecast: {}", fmt::join(names, ", ")));
}

/// Which rows have no simulation, or one that is longer than it should be, and why.
void note_simulations(const NcclPricing& pricing, std::size_t rows, std::vector<std::string>& notes) {
  if (pricing.q.estimates())
    for (const Unsimulated& one : pricing.unsimulated)
      notes.push_back(fmt::format("not simulated: {}: {}", one.algorithm, one.why.message));
  if (!pricing.coarse.empty())
    notes.push_back(fmt::format(
        "at {} the simulation is longer: GPUs pass a tree's chunks on line by line, which pieces stand for, and finer "
        "ones, of so long chains of GPUs, are more messages than are simulated",
        sizes_of(pricing.coarse)));
  if (pricing.left_out > 0)
    notes.push_back(fmt::format("{} of {} simulations left out, of more than {} messages each; --method both insists",
                                pricing.left_out, rows, format_count(static_cast<double>(most_nccl_messages_unasked))));
}

void add_nccl_notes(const NcclPricing& pricing, CollectiveReport& report) {
  add_calibration_notes(pricing.q, report);
  note_rules(pricing, report.notes);
  note_environment(pricing.q, report.notes);
  note_simulations(pricing, report.rows.size(), report.notes);
  report.notes.push_back(pricing.q.simulates()
                             ? "chunks are those that a channel moves one after the other"
                             : "the closed form alone; --method both simulates the channels as well. Chunks are "
                               "those that a channel moves one after the other");
}

}  // namespace

Result<CollectiveReport> price_nccl(const CollectiveQuestion& q, const Session& session) {
  CollectiveReport report = begin_report(q, false, text_of(as_run(q)));
  report.machine.library = "nccl";
  if (q.nccl_algorithm) report.inputs.policy.algorithm = to_string(*q.nccl_algorithm);
  Progress progress(session, q.sizes.size() * q.groups.size());
  NcclPricing pricing{q, progress, q.engine};
  if (q.patience != nullptr) pricing.engine.watch = q.patience->watch(&progress);
  if (Diagnostics errors = price_all(pricing, report); !errors.empty()) return errors;
  if (Diagnostics errors = tell_missing(pricing, session, report); !errors.empty()) return errors;
  if (!pricing.over_bridge.empty())
    for (std::string& said : warn(session, {rests_on_one_system(pricing.over_bridge)}))
      report.said.push_back(std::move(said));
  add_nccl_notes(pricing, report);
  return report;
}

}  // namespace collcast::cli
