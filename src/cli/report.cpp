// collcast report: scenarios forecast now, and results saved before, on one page.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <sstream>
#include <utility>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "cli/said_once.hpp"
#include "cli/saved_files.hpp"
#include "cli/scenario_options.hpp"
#include "cli/sweep.hpp"
#include "cli/targets.hpp"
#include "collcast/report/overview.hpp"

namespace collcast::cli {

namespace {

struct ReportArgs {
  std::vector<std::string> inputs;
  std::string what_if, method;
  LimitArgs limits;
  TargetArgs output;
};

/// What comes of the inputs.
struct Collected {
  Overview overview;
  Diagnostics errors;
  Diagnostics broken;                ///< gates
  std::vector<std::string> partial;  ///< scenarios without their simulation
  std::vector<std::string> missing;  ///< and those without anything
};

/// Anything else is a scenario, by name or file.
bool is_saved(const std::string& input) {
  std::error_code ignored;
  return input == "-" || lower_suffix(input) == ".json" || std::filesystem::is_directory(input, ignored);
}

void add_saved(const std::string& input, const Session& session, Overview& out, Diagnostics& errors) {
  const Result<SavedFiles> files = read_saved_files(input);
  if (!files) return append(errors, files.errors());
  for (const std::string& note : files->passed_over) session.err << "note: " << note << '\n';
  for (const NamedResult& result : files->results) out.items.push_back({result, {}});
  for (const std::string& one : files->left_out)
    if (std::ranges::find(out.left_out, one) == out.left_out.end()) out.left_out.push_back(one);
}

/// The file whose name may stand beside its results'. A folder's results have their files' already, and a shipped
/// scenario is its name.
std::string file_beside(const std::string& input) {
  std::error_code ignored;
  const std::filesystem::path path(input);
  return input != "-" && path.has_extension() && !std::filesystem::is_directory(path, ignored) ? input : std::string();
}

std::string named(const ScenarioArgs& args) {
  return args.what_if.empty() ? args.scenario : fmt::format("{} ({})", args.scenario, args.what_if);
}

/// A variant that the method has no answer for, among others that it has.
std::string why_left_out(const ScenarioArgs& args, const Session& session) {
  if (args.method != "estimate") return {};
  const Result<Scenario> variant = load(args, session, {});
  if (!variant || first_with_jitter(variant->faults) == nullptr) return {};
  return "jitter has no closed form, which knows means only";
}

/// Errors of the scenario itself go to `errors`.
void add_forecast(const ScenarioArgs& args, const Session& session, const Patience& patience, Collected& out,
                  Diagnostics& errors) {
  if (patience.is_over()) return out.missing.push_back(named(args));
  StepTimeline timeline;
  const bool simulated = args.method != "estimate";
  const Result<StepReport> report = forecast(args, session, simulated ? &timeline : nullptr, patience);
  if (!report && patience.has_ended_work()) return out.missing.push_back(named(args));
  if (!report) return append(errors, report.errors());
  if (report->partial) out.partial.push_back(named(args));
  // Read back like any other: one way from a document to the page.
  const auto saved = read_saved(json(*report), args.scenario);
  if (!saved) return append(out.errors, saved.errors());
  // A variant's gate is at the base's place.
  for (Diagnostic& broken : broken_gates(*report)) {
    if (!args.what_if.empty()) broken.message = fmt::format("{} ({})", broken.message, saved->front().name);
    out.broken.push_back(std::move(broken));
  }
  out.overview.items.push_back({NamedResult(saved->front().name, saved->front()),
                                simulated ? timeline_chart(timeline.schedule, timeline.timeline) : TimelineChart()});
}

void add_scenario(const ReportArgs& args, const std::string& input, const Session& session, const Patience& patience,
                  Collected& out) {
  ScenarioArgs scenario;
  scenario.scenario = input;
  scenario.method = args.method;
  scenario.outputs = args.output.files;
  if (args.what_if != "all") {
    scenario.what_if = args.what_if;
    return add_forecast(scenario, session, patience, out, out.errors);
  }
  const Result<Scenario> loaded = load(scenario, session, {});
  if (!loaded) return append(out.errors, loaded.errors());
  SaidOnce once(session);
  add_forecast(scenario, once.session(), patience, out, out.errors);
  once.tell();
  for (const std::string& variant : loaded->what_if) {
    scenario.what_if = variant;
    std::string reason = why_left_out(scenario, session);
    Diagnostics errors;
    if (reason.empty()) add_forecast(scenario, once.session(), patience, out, errors);
    once.tell();
    if (!errors.empty()) reason = "cannot be: " + reason_of(errors, files_named(*loaded));
    if (!reason.empty()) out.overview.left_out.push_back(fmt::format("what_if '{}' of {}: {}", variant, input, reason));
  }
}

/// "partial: the time limit of 2 s is over; not simulated: a; not forecast: b, c"; empty: nothing is missing for that.
std::string partial_text(const Collected& all, const Patience& patience) {
  std::vector<std::string> known;
  if (!all.partial.empty()) known.push_back(fmt::format("not simulated: {}", fmt::join(all.partial, ", ")));
  if (!all.missing.empty()) known.push_back(fmt::format("not forecast: {}", fmt::join(all.missing, ", ")));
  if (known.empty()) return {};
  // Else each scenario has said why: its step is beyond the clock, or memory.
  const bool ended = patience.has_ended_work() || !all.missing.empty();
  return fmt::format("partial: {}{}", ended ? patience.reason() + "; " : "", fmt::join(known, "; "));
}

std::string text_of(const Overview& overview, TargetFormat format, TextStyle style) {
  std::ostringstream out;
  switch (format) {
    case TargetFormat::json:
      return json(overview);
    case TargetFormat::junit:
      return junit(overview);
    case TargetFormat::html:
      return html(overview);
    case TargetFormat::csv:
      write_csv(out, csv(overview));
      return out.str();
    case TargetFormat::markdown:
      write_markdown(out, page(overview));
      return out.str();
    case TargetFormat::table:
      break;
  }
  write_text(out, page(overview), style);
  return out.str();
}

Exit say_lacking(const Session& session, const std::string& what) {
  return lack(session, {{command_line, "this build of collcast writes no HTML: " + what,
                         "install nodejs and npm, configure and build again; the other formats work"}});
}

Exit run_report(const ReportArgs& args, const Session& session) {
  Collected all;
  Diagnostics& errors = all.errors;
  const Patience patience(args.limits, errors);
  const std::vector<Target> targets = parse_targets(args.output, true, errors);
  for (const std::string& input : args.inputs)
    if (is_saved(input)) append(errors, check_overwriting(files_of(input, ".json"), args.output.files));
  if (!errors.empty()) return refuse(session, errors);
  for (const Target& target : targets) {
    if (target.format == TargetFormat::html && !html_lacks().empty()) return say_lacking(session, html_lacks());
  }
  if (std::ranges::all_of(args.inputs, is_saved))
    for (const auto& [option, value] : {std::pair("--what-if", args.what_if), std::pair("--method", args.method)})
      if (!value.empty())
        errors.push_back({command_line, fmt::format("{} has no effect on results that are saved", option),
                          "expected a scenario among the inputs, or remove it"});
  Overview& overview = all.overview;
  std::vector<std::string> files;
  for (const std::string& input : args.inputs) {
    if (is_saved(input))
      add_saved(input, session, overview, errors);
    else if (const auto measured = measured_table(input))
      errors.push_back(*measured);
    else
      add_scenario(args, input, session, patience, all);
    files.resize(overview.items.size(), file_beside(input));
  }
  tell_apart(overview, files);
  if (!errors.empty()) return refuse(session, errors);
  if (overview.items.empty() && !all.missing.empty())
    return patience.give_up(session, "no scenario was forecast",
                            "nothing is known yet; expected a longer --time-limit");
  overview.partial = partial_text(all, patience);
  if (!overview.partial.empty()) say(session, {overview.partial});

  const Exit delivered =
      deliver(session, targets, [&](TargetFormat format, TextStyle style) { return text_of(overview, format, style); });
  if (delivered != Exit::ok) return delivered;
  for (const std::string& left_out : overview.left_out) session.err << "left out: " << left_out << '\n';
  session.err << to_text(all.broken) << std::flush;
  return overview.broken() == 0 ? patience.exit(Exit::ok) : Exit::gate_failed;
}

}  // namespace

Command add_report(CLI::App& parent) {
  const auto args = std::make_shared<ReportArgs>();
  CLI::App& app = *parent.add_subcommand("report", "results on one page: HTML with charts, Markdown, JSON, CSV, JUnit");
  app.add_option("INPUT", args->inputs,
                 "scenarios, by name or file, that are forecast now; JSON results (.json), folders of them, '-'")
      ->type_name("")
      ->required();
  app.add_option("--what-if", args->what_if, "a variant of the scenarios, or all of them beside the base")
      ->type_name("NAME|all")
      ->group("Scenario");
  app.add_option("--method", args->method, "of scenarios: estimate, simulate or both (default: both)")
      ->type_name("WORD")
      ->group("Scenario");
  add_limit_options(app, args->limits);
  add_target_options(app, args->output, true);
  app.footer(
      "Ctrl-C and --time-limit write what is known by then, marked partial.\n"
      "The gates of the scenarios and of the results are the verdict: exit 1 if one is broken.\n"
      "\n"
      "Examples:\n"
      "  collcast report llama3-70b-64xh100 --what-if all --output page.html --output page.md\n"
      "  collcast collective all_reduce --topology dgx-h100 --output sweep.json && \\\n"
      "  collcast report llama3-8b-8xh100 sweep.json --output report.md --output junit.xml");
  return [args](const Session& session) { return run_report(*args, session); };
}

}  // namespace collcast::cli
