#include "cli/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>

#include "cli/progress.hpp"
#include "cli/values.hpp"
#include "collcast/report/sweep_document.hpp"

namespace collcast::cli {

namespace {

constexpr const char* all_variants = "all";

/// The scenario as it is, or with the variant that was asked for; nothing where the command will say what is wrong.
std::optional<Scenario> base_of(ScenarioArgs args, const Session& session) {
  if (args.what_if == all_variants) args.what_if.clear();
  Result<Scenario> loaded = load(args, session, {});
  if (!loaded) return std::nullopt;
  return std::move(loaded).value();
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

struct Point {
  std::vector<std::string> values;
  ScenarioArgs args;
};

/// All combinations, the last axis the quickest.
std::vector<Point> points_of(const ScenarioArgs& args, const Sweep& sweep) {
  std::vector<Point> out{{{}, args}};
  if (!sweep.variants.empty()) {
    out.front().args.what_if.clear();
    out.front().values = {""};
    for (const std::string& variant : sweep.variants) {
      out.push_back({{variant}, args});
      out.back().args.what_if = variant;
    }
  }
  for (const SweepAxis& axis : sweep.axes) {
    std::vector<Point> more;
    for (const Point& point : out)
      for (std::size_t i = 0; i < axis.values.size(); ++i) {
        more.push_back(point);
        more.back().values.push_back(axis.values[i]);
        more.back().args.swept.push_back({axis.path, axis.values[i], axis.where, axis.places[i]});
      }
    out = std::move(more);
  }
  return out;
}

/// "what is wrong: what would be right", and of how many errors it is the first; without the folders of the files that
/// it names, as in all documents.
std::string reason_of(const Diagnostics& errors, const Scenario& base) {
  const Diagnostic& first = errors.front();
  std::string out = first.message;
  if (!first.hint.empty()) out += ": " + first.hint;
  if (errors.size() > 1) out += fmt::format("; {} more error{}", errors.size() - 1, errors.size() == 2 ? "" : "s");
  for (const std::string& file : {base.file, base.topology.file}) {
    const std::string folder = file.substr(0, file.rfind('/') + 1);
    for (std::size_t at = out.find(folder); !folder.empty() && at != std::string::npos; at = out.find(folder))
      out.erase(at, folder.size());
  }
  return out;
}

/// The same errors, each with the point that it is of.
Diagnostics errors_at(const Point& point, const std::vector<std::string>& axes, Diagnostics errors) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < axes.size(); ++i)
    values.push_back(point.values[i].empty() ? "the scenario as it is" : axes[i] + "=" + point.values[i]);
  for (Diagnostic& error : errors)
    error.message = fmt::format("sweep at {}: {}", fmt::join(values, ", "), error.message);
  return errors;
}

void add_said(const std::vector<std::string>& more, std::vector<std::string>& said) {
  for (const std::string& text : more)
    if (!has(said, text)) said.push_back(text);
}

}  // namespace

Sweep sweep_of(const std::vector<std::string>& sweeps, const ScenarioArgs& args, const Session& session,
               Diagnostics& errors) {
  Sweep out;
  for (const std::string& text : sweeps) {
    Result<SweepAxis> axis = parse_sweep(text);
    if (axis)
      out.axes.push_back(std::move(axis).value());
    else
      append(errors, axis.errors());
  }
  append(errors, check_sweep(out.axes));
  const std::optional<Scenario> base = errors.empty() ? base_of(args, session) : std::nullopt;
  if (!base) return out;
  for (const SweepAxis& axis : out.axes)
    if (has(base->settings, axis.path))
      errors.push_back({axis.where, fmt::format("'{}' is set and swept", axis.path), "expected one of the two"});
  if (sweeps.empty())
    for (const SweepAxis& axis : base->sweep)
      if (!has(base->settings, axis.path)) out.axes.push_back(axis);
  if (args.what_if == all_variants && !has(base->what_if, all_variants)) out.variants = base->what_if;
  if (args.what_if == all_variants && base->what_if.empty())
    errors.push_back({typed("--what-if", args.what_if), "this scenario has no variants", "expected none"});
  if (collcast::points_of(out.axes) * (out.variants.size() + 1) > most_sweep_points && errors.empty())
    errors.push_back({command_line, fmt::format("variants and sweep have more than {} points", most_sweep_points),
                      "expected fewer values"});
  return out;
}

Exit run_sweep(const ScenarioArgs& args, const Sweep& sweep, const Patience& patience, Format format,
               const OutputOptions& output, const Session& session) {
  SweepReport report;
  const Scenario base = base_of(args, session).value_or(Scenario{});
  report.scenario = base.name;
  report.title = base.title;
  if (sweep.variants.empty() && !args.what_if.empty()) report.title += fmt::format(", what if {}", args.what_if);
  if (!sweep.variants.empty()) report.axes.emplace_back("what_if");
  for (const SweepAxis& axis : sweep.axes) report.axes.push_back(axis.path);
  const std::vector<Point> points = points_of(args, sweep);
  Diagnostics wrong;
  std::size_t ran = 0;
  {
    Progress progress(session, points.size());
    // What a point says is said once, at the end.
    std::ostringstream unread;
    const Session quiet{session.out, unread, session.style, false, session.search, session.environment};
    for (const Point& point : points) {
      if (patience.is_over()) break;
      progress.begin(fmt::format("{} {}", report.scenario, fmt::join(point.values, " ")));
      Result<StepReport> step = forecast(point.args, quiet, nullptr, patience);
      if (!step && patience.has_ended_work()) break;
      if (!step && wrong.empty()) wrong = errors_at(point, report.axes, step.errors());
      report.rows.push_back({point.values, std::nullopt, step ? std::string() : reason_of(step.errors(), base)});
      if (!step) continue;
      ++ran;
      report.partial = report.partial || step->partial;
      add_said(step->said, report.said);
      report.rows.back().step = std::move(step).value();
    }
  }
  if (ran == 0 && report.rows.size() == points.size()) return refuse(session, wrong);
  if (ran == 0) return patience.give_up(session, "no point of the sweep was done", "expected a longer --time-limit");
  say(session, report.said);
  if (report.rows.size() < points.size()) {
    report.partial = true;
    report.said.push_back(patience.tell_partial(
        session, fmt::format("{} of {} points are done", report.rows.size(), points.size()), false));
  }
  const Exit delivered = deliver(session, report, format, output);
  return patience.exit(delivered);
}

}  // namespace collcast::cli
