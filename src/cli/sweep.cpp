#include "cli/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/progress.hpp"
#include "cli/said_once.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/report/sweep_document.hpp"
#include "collcast/workload/impossible_rate.hpp"

namespace collcast::cli {

namespace {

constexpr const char* each_variant = "all";

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
  out.front().args.axes.clear();
  out.front().args.runs_own_sweep = false;
  if (!sweep.variants.empty()) {
    out.front().args.what_if.clear();
    out.front().values = {""};
    for (const std::string& variant : sweep.variants) {
      out.push_back({{variant}, out.front().args});
      out.back().args.what_if = variant;
    }
  }
  for (const SweepAxis& axis : sweep.axes) {
    std::vector<Point> more;
    for (const Point& point : out)
      for (const SweepValue& value : axis.values) {
        more.push_back(point);
        more.back().values.push_back(value.label);
        more.back().args.swept.push_back({axis.path, value.yaml, axis.where, value.where});
      }
    out = std::move(more);
  }
  return out;
}

std::vector<std::string> paths_of(const std::vector<SweepAxis>& axes) {
  std::vector<std::string> out;
  for (const SweepAxis& axis : axes) out.push_back(shown(axis.path));
  return out;
}

std::string values_text(const std::vector<std::string>& of, const std::vector<std::string>& axes) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < axes.size(); ++i)
    values.push_back(of[i].empty() ? "the scenario as it is" : axes[i] + "=" + of[i]);
  return fmt::format("{}", fmt::join(values, ", "));
}

/// Errors of points, each once, with the first point that it is of; a hundred at most.
class PointErrors {
 public:
  void add(const Point& point, const std::vector<std::string>& axes, const Diagnostics& errors) {
    for (const Diagnostic& error : errors) {
      if (errors_.size() == most || !said_.insert(to_text(error.where) + error.message).second) continue;
      errors_.push_back(error);
      errors_.back().message = fmt::format("sweep at {}: {}", values_text(point.values, axes), error.message);
    }
  }
  const Diagnostics& all() const { return errors_; }

 private:
  static constexpr std::size_t most = 100;
  Diagnostics errors_;
  std::set<std::string> said_;
};

/// Whether what is wrong with a scenario is wrong with another, too.
bool has_all(const Diagnostics& errors, const Diagnostics& wanted) {
  return std::ranges::all_of(wanted, [&](const Diagnostic& one) {
    return std::ranges::any_of(errors, [&](const Diagnostic& other) {
      return to_text(other.where) == to_text(one.where) && other.message == one.message;
    });
  });
}

/// The scenario as it is, or with a variant; where it lacks what is swept, as at the first point that can be, and what
/// is swept is not among its settings.
Result<Scenario> base_of(ScenarioArgs args, const std::string& variant, const std::vector<SweepAxis>& axes,
                         const Session& session) {
  args.what_if = variant == each_variant ? std::string() : variant;
  Result<Scenario> base = load(args, session, {});
  if (base || axes.empty()) return base;
  constexpr int enough = 100;  // points that change nothing of what is wrong
  Diagnostics never, lacking;
  for (const Diagnostic& error : base.errors()) (error.in_itself ? never : lacking).push_back(error);
  Sweep alone;
  alone.axes = axes;
  PointErrors wrong;
  int as_before = 0;
  for (const Point& point : points_of(args, alone)) {
    Result<Scenario> loaded = load(point.args, session, {});
    if (loaded && !never.empty()) return never;  // nothing else is wrong
    if (loaded) {
      Scenario at = std::move(loaded).value();
      // One that is set, too, is there twice.
      for (const SweepAxis& axis : axes) at.settings.erase(std::ranges::find(at.settings, axis.path));
      return at;
    }
    const bool can_never_be = std::ranges::any_of(loaded.errors(), &Diagnostic::in_itself);
    if (can_never_be || (!lacking.empty() && has_all(loaded.errors(), lacking))) {
      if (++as_before == enough) return base;
      continue;
    }
    wrong.add(point, paths_of(axes), loaded.errors());
  }
  if (as_before > 0 || wrong.all().empty()) return base;
  append(never, wrong.all());
  return never;
}

/// Of the first point that has such a rate, and how many more there are: the table has their MFU and no warnings.
std::vector<std::string> impossible_rates(const SweepReport& report) {
  std::string first;
  int more = 0;
  for (const SweepReport::Row& row : report.rows) {
    if (!row.step || !row.step->inputs) continue;
    const auto rate = impossible_rate(*row.step->inputs, row.step->result.mfu, row.step->result.hfu);
    if (rate && !first.empty()) ++more;
    if (rate && first.empty()) first = fmt::format("{}: {}", values_text(row.values, report.axes), *rate);
  }
  if (first.empty()) return {};
  return {more == 0 ? first : fmt::format("{}; so it is at {} more point{}", first, more, more == 1 ? "" : "s")};
}

void add_said(const std::vector<std::string>& more, std::vector<std::string>& said) {
  for (const std::string& text : more)
    if (!has(said, text)) said.push_back(text);
}

/// A path that the command line or a variant sets, and that is swept or is within what is swept, or the other way
/// round.
const std::string* set_beside(const SweepAxis& axis, const Scenario& scenario) {
  const auto found =
      std::ranges::find_if(scenario.settings, [&](const std::string& path) { return paths_meet(path, axis.path); });
  return found == scenario.settings.end() ? nullptr : &*found;
}

/// The variants, of which none sets what is swept.
std::vector<std::string> variants_of(const ScenarioArgs& args, const Scenario& base, const Sweep& sweep,
                                     const Session& session, Diagnostics& errors) {
  if (args.what_if != each_variant || has(base.what_if, each_variant)) return {};
  if (base.what_if.empty())
    errors.push_back({typed("--what-if", args.what_if), "this scenario has no variants", "expected no --what-if"});
  if (sweep.axes.empty()) return base.what_if;
  for (const std::string& variant : base.what_if) {
    const Result<Scenario> varied = base_of(args, variant, sweep.axes, session);
    if (!varied) continue;  // a row that says why
    for (const SweepAxis& axis : sweep.axes)
      if (const std::string* path = set_beside(axis, *varied))
        errors.push_back({axis.where,
                          fmt::format("'{}' is swept, and the variant '{}' sets '{}'", shown(axis.path), shown(variant),
                                      shown(*path)),
                          "expected --what-if of one variant, or another sweep (--sweep)"});
  }
  return base.what_if;
}

}  // namespace

std::string reason_of(const Diagnostics& errors, const std::vector<std::string>& files) {
  const Diagnostic& first = errors.front();
  std::string out = first.message;
  if (!first.hint.empty()) out += ": " + first.hint;
  if (errors.size() > 1) out += fmt::format("; {} more error{}", errors.size() - 1, errors.size() == 2 ? "" : "s");
  for (const std::string& file : files) {
    const std::size_t folder = file.rfind('/') + 1;  // 0: none
    if (folder == 0 || folder == file.size()) continue;
    for (std::size_t at = out.find(file); at != std::string::npos; at = out.find(file, at + 1)) out.erase(at, folder);
  }
  return out;
}

std::vector<std::string> files_named(const Scenario& scenario) {
  return {scenario.file, scenario.topology.file, scenario.origins.of("model.hidden").file};
}

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
  if (!errors.empty() && sweeps.empty()) return out;
  ScenarioArgs checked = args;
  checked.axes = out.axes;
  checked.runs_own_sweep = sweeps.empty();
  const Result<Scenario> base = base_of(checked, args.what_if, out.axes, session);
  if (!base) {
    // A step alone says itself what is wrong.
    if (!sweeps.empty() || args.what_if == each_variant) append(errors, base.errors());
    return out;
  }
  checked.axes.clear();
  checked.runs_own_sweep = false;
  for (const SweepAxis& axis : out.axes)
    if (const std::string* path = set_beside(axis, *base))
      errors.push_back({axis.where,
                        *path == axis.path ? fmt::format("'{}' is set and swept", shown(axis.path))
                                           : fmt::format("'{}' is swept, and '{}' set", shown(axis.path), shown(*path)),
                        "expected one of the two"});
  if (sweeps.empty())
    for (const SweepAxis& axis : base->sweep)
      if (set_beside(axis, *base) == nullptr) out.axes.push_back(axis);
  out.variants = variants_of(checked, *base, out, session, errors);
  out.scenario = base->name;
  out.title = base->title;
  if (out.variants.empty() && !args.what_if.empty()) out.title += fmt::format(", what if {}", args.what_if);
  out.files = files_named(*base);
  out.has_gates = !base->gates.empty();
  if (collcast::points_of(out.axes) * (out.variants.size() + 1) > most_sweep_points && errors.empty())
    errors.push_back({command_line, fmt::format("variants and sweep have more than {} points", most_sweep_points),
                      "expected fewer values"});
  return out;
}

Exit run_sweep(const ScenarioArgs& args, const Sweep& sweep, const Patience& patience, Format format,
               const OutputOptions& output, const Session& session) {
  SweepReport report;
  std::vector<std::string> of_all;  // what no point says by itself
  if (sweep.has_gates) of_all.emplace_back("the scenario's gates are not checked in a sweep");
  report.said = of_all;
  report.scenario = sweep.scenario;
  report.title = sweep.title;
  if (!sweep.variants.empty()) report.axes.emplace_back("what_if");
  std::ranges::copy(paths_of(sweep.axes), std::back_inserter(report.axes));
  const std::vector<Point> points = points_of(args, sweep);
  PointErrors wrong;
  std::size_t ran = 0;
  SaidOnce heard(session);  // and told at the end
  {
    Progress progress(session, points.size());
    for (const Point& point : points) {
      if (patience.is_over()) break;
      progress.begin(fmt::format("{} {}", report.scenario, fmt::join(point.values, " ")));
      Result<StepReport> step = forecast(point.args, heard.session(), nullptr, patience);
      step ? heard.keep() : heard.forget();
      if (!step && patience.has_ended_work()) break;
      if (!step) wrong.add(point, report.axes, step.errors());
      report.rows.push_back({point.values, std::nullopt, step ? std::string() : reason_of(step.errors(), sweep.files)});
      if (!step) continue;
      ++ran;
      report.partial = report.partial || step->partial;
      add_said(step->said, report.said);
      // A step's own page and document say it.
      if (step->inputs) add_said(machine_warnings(step->machine), of_all);
      report.rows.back().step = std::move(step).value();
    }
  }
  if (ran == 0 && report.rows.size() == points.size()) return refuse(session, wrong.all());
  if (ran == 0) return patience.give_up(session, "no point of the sweep was done", "expected a longer --time-limit");
  add_said(impossible_rates(report), of_all);
  add_said(of_all, report.said);
  heard.tell();
  say(session, of_all);
  if (report.rows.size() < points.size()) {
    report.partial = true;
    report.said.push_back(patience.tell_partial(
        session, fmt::format("{} of {} points are done", report.rows.size(), points.size()), false));
  }
  const Exit delivered = deliver(session, report, format, output);
  return patience.exit(delivered);
}

}  // namespace collcast::cli
