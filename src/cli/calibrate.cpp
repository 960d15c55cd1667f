// collcast calibrate: a few physical parameters per machine, fitted to measured tables, into an overlay file.
#include "collcast/validation/calibrate.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "cli/progress.hpp"
#include "cli/validate_options.hpp"
#include "cli/values.hpp"

namespace collcast::cli {

namespace {

struct CalibrateArgs {
  MeasuredArgs measured;
  std::string library, format;
  std::vector<std::string> files;
  std::string residuals;
  LimitArgs limits;
};

/// Where things go: the overlay to YAML, the report to files of its own formats, else to standard output.
struct Places {
  std::vector<std::string> overlays;
  std::vector<std::pair<std::string, Format>> reports;
  Format on_stdout = Format::table;
};

Places parse_places(const CalibrateArgs& args, Diagnostics& errors) {
  Places out;
  for (const std::string& file : args.files) {
    const std::string suffix = lower_suffix(file);
    if (suffix.empty() || suffix == ".yaml" || suffix == ".yml") {
      out.overlays.push_back(file);
      continue;
    }
    Diagnostics wrong;
    const Format format = parse_format({"", file}, wrong);
    for (Diagnostic& d : wrong)
      d.hint = "expected .yaml or .yml for the overlay; .json, .csv, .md, .markdown or .txt for the report";
    append(errors, wrong);
    out.reports.emplace_back(file, format);
  }
  out.on_stdout = parse_format({args.format, ""}, errors);
  if (!args.format.empty() && !out.reports.empty())
    errors.push_back({typed("--format", args.format), "--format is for the report on standard output",
                      fmt::format("'{}' says its own by its suffix; leave out one of the two", out.reports[0].first)});
  if (out.reports.empty() && std::any_of(out.overlays.begin(), out.overlays.end(), is_stdout))
    errors.push_back({typed("--output", "-"), "the overlay and the report would both be written to standard output",
                      "expected FILE.yaml for the overlay, or a file for the report too"});
  if (args.residuals.empty()) return out;
  const Location at = typed("--residuals", args.residuals);
  if (is_stdout(args.residuals) && out.reports.empty())
    errors.push_back({at, "the rows and the report would both be written to standard output",
                      "expected FILE.csv for the rows, or a file for the report too"});
  if (!is_stdout(args.residuals) && lower_suffix(args.residuals) != ".csv")
    errors.push_back({at, "rows are written as CSV", "expected FILE.csv, or -"});
  if (std::ranges::find(args.files, args.residuals) != args.files.end())
    errors.push_back({at, fmt::format("'{}' is --output, too", args.residuals), "expected a file each"});
  return out;
}

std::string text_of(const CalibrateReport& report, Format format) {
  std::ostringstream out;
  write(out, report, format);
  return out.str();
}

/// With the progress on a terminal.
Result<CalibrateResult> fitted_to(Measured& measured, Library library, const Patience& patience,
                                  const Session& session) {
  return with_progress(session, [&](const Telling& tell) {
    return calibrate(measured.tables, measured.machines, measured.statistic, library, tell, patience.pieces_go_on());
  });
}

/// "launch 0.3 to 8", of each factor of library nccl, some in a line.
std::string bounds_text() {
  std::string out;
  std::size_t length = 0;
  for (const NcclFactor& factor : nccl_factors) {
    const std::string one = fmt::format("{} {} to {}", factor.name, factor.least, factor.most);
    const bool is_first = out.empty();
    const bool fits = length + one.size() < 100;
    out += is_first ? "" : fits ? ", " : ",\n";
    length = fits ? length + one.size() + 2 : one.size();
    out += one;
  }
  return out;
}

/// An argument that another machine has, too: of a path from the root or from a home its last part, of others all.
std::string without_folders(const std::string& word) {
  const std::size_t equals = word.rfind('=');
  const std::size_t at = equals == std::string::npos ? 0 : equals + 1;
  const std::string value = word.substr(at);
  const std::filesystem::path path = value;
  const bool is_here_only =
      value.starts_with('/') || value.starts_with('~') || std::find(path.begin(), path.end(), "..") != path.end();
  if (!is_here_only) return word;
  const std::size_t end = value.find_last_not_of('/');
  if (end == std::string::npos) return word;
  return word.substr(0, at) + std::filesystem::path(value.substr(0, end + 1)).filename().string();
}

/// As a shell reads it again.
std::string command_of(const std::vector<std::string>& words) {
  std::string out = "collcast";
  for (const std::string& word : words) {
    std::string text = without_folders(word);
    // A comment ends with its line.
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    const bool is_plain = !text.empty() && text.find_first_not_of(
                                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                               "0123456789_@%+=:,./-") == std::string::npos;
    out += ' ';
    if (is_plain) {
      out += text;
      continue;
    }
    out += '\'';
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

/// Of a fit that was ended: who takes the overlay up later reads it there, too.
std::string marked(const std::string& overlay, const std::string& partial) {
  return partial.empty() ? overlay : fmt::format("# {}\n{}", partial, overlay);
}

Exit run_calibrate(const CalibrateArgs& args, const Session& session) {
  Diagnostics errors;
  const Patience patience(args.limits, errors);
  const Places places = parse_places(args, errors);
  const auto asked = parse_library(args.library, errors);
  std::optional<Measured> measured = read_measured(args.measured, session, errors);
  if (!errors.empty()) return refuse(session, errors);

  const Library library = asked ? *asked : usual_library(measured->tables, measured->machines);
  Result<CalibrateResult> fitted = fitted_to(*measured, library, patience, session);
  if (!fitted && patience.has_ended_work())
    return patience.give_up(session, "no machine was fitted", "nothing is known yet; expected a longer --time-limit");
  if (!fitted) return refuse(session, fitted.errors());
  CalibrateResult result = std::move(fitted).value();
  result.report.part = args.measured.part;
  result.report.unused.insert(result.report.unused.end(), measured->emptied.begin(), measured->emptied.end());
  result.report.said = std::move(measured->said);
  result.overlay.remarks.insert(result.overlay.remarks.begin(), "Made by: " + command_of(session.words));
  for (std::string& text : warn(session, machine_warnings(measured->tables, measured->machines, library)))
    result.report.said.push_back(std::move(text));
  say(session, fit_warnings(result.report));
  std::string partial;
  if (const auto& missing = result.report.not_reached; !missing.empty()) {
    const bool page_is_read = places.reports.empty() && places.on_stdout == Format::table;
    partial = patience.tell_partial(session, fmt::format("not fitted: {}", fmt::join(missing, ", ")), page_is_read);
    result.report.warnings.push_back(partial);
  }
  std::vector<OutputFile> files;
  for (const std::string& file : places.overlays)
    files.push_back({file, marked(overlay_text(result.overlay), partial)});
  if (!args.residuals.empty())
    files.push_back({args.residuals, Content([&](std::ostream& out) { write_residuals(out, result.report); })});
  for (const auto& [file, format] : places.reports) files.push_back({file, text_of(result.report, format)});
  if (!places.reports.empty()) return patience.exit(deliver(session, std::string_view(), files));
  return patience.exit(deliver(session, result.report, places.on_stdout, {}, files));
}

}  // namespace

Command add_calibrate(CLI::App& parent) {
  const auto args = std::make_shared<CalibrateArgs>();
  CLI::App& app = *parent.add_subcommand("calibrate", "fit latency and efficiency of machines to measured tables");
  add_measured_options(app, args->measured);
  app.add_option("--library", args->library,
                 "whose parameters are fitted: nccl (default for tables of NVIDIA GPUs) or ideal")
      ->type_name("WORD")
      ->group("Model");
  app.add_option("--format", args->format, "of the report on standard output: table (default), json, csv or markdown")
      ->type_name("WORD")
      ->group("Output");
  app.add_option("--output", args->files,
                 "FILE.yaml: the overlay, for --overlay of validate, collective, step, plan and explain; .json, .csv, "
                 ".md or .txt: the report (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group("Output");
  app.add_option(
         "--residuals", args->residuals,
         "FILE.csv: every row of the tables as it was measured and as it is forecast, without the fit and with it")
      ->type_name("FILE")
      ->group("Output");
  add_limit_options(app, args->limits);
  app.footer(
      "Fitted per machine, library ideal: a latency that every collective has, a factor on the latency of links, and "
      "the\n"
      "share of their bandwidth that NVLink, PCIe and the network reach. Library nccl: factors on what it takes for "
      "all\n"
      "machines of launches, hops and the rates of links by protocol. One file may have both: join their lists.\n"
      "What each factor may be (docs/formats.md says why; links and NICs stop at their line rate before):\n" +
      bounds_text() +
      ".\n"
      "To all shipped tables library nccl is fitted in one or two minutes of CPU time, library ideal in minutes; a "
      "terminal shows how far.\n"
      "Ctrl-C and --time-limit write the machines that were fitted by then, marked partial.\n"
      "Examples:\n"
      "  collcast calibrate --output overlay.yaml --output report.json --residuals rows.csv\n"
      "  collcast calibrate --measured my.log --topology dgx-h100 --output mine.yaml\n"
      "  collcast calibrate --measured logs/ --topology dgx-h100 --library ideal --output mine.yaml\n"
      "  collcast collective all_reduce --topology dgx-h100 --overlay mine.yaml\n"
      "  collcast step llama3-70b-64xh100 --overlay mine.yaml\n"
      "On half of the sizes, and checked on the other half:\n"
      "  collcast calibrate --measured tables/ --part 1/2 --output half.yaml\n"
      "  collcast validate --measured tables/ --part 2/2 --overlay half.yaml");
  return [args](const Session& session) {
    args->measured.machine.outputs = args->files;
    if (!args->residuals.empty()) args->measured.machine.outputs.push_back(args->residuals);
    return run_calibrate(*args, session);
  };
}

}  // namespace collcast::cli
