// collcast compare: two sets of results against tolerances.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <string>

#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/saved_files.hpp"
#include "cli/targets.hpp"
#include "cli/values.hpp"

namespace collcast::cli {

namespace {

struct CompareArgs {
  std::string base, now;
  std::vector<std::string> tolerances;
  TargetArgs output;
};

Tolerances parse_tolerances(const std::vector<std::string>& texts, Diagnostics& errors) {
  Tolerances out;
  std::set<std::string> given;
  for (const std::string& text : texts) {
    const auto parsed = parse_tolerance(text);
    if (!parsed) {
      for (Diagnostic error : parsed.errors()) {
        error.where = typed("--tolerance", text);
        errors.push_back(std::move(error));
      }
    } else if (!given.insert(parsed->first).second) {
      errors.push_back({typed("--tolerance", text),
                        parsed->first.empty() ? "a tolerance for every figure is given twice"
                                              : fmt::format("the tolerance of {} is given twice", parsed->first),
                        "leave out one"});
    } else if (parsed->first.empty()) {
      out.all = parsed->second;
    } else {
      out.own.push_back(*parsed);
    }
  }
  return out;
}

SavedFiles read_side(const std::string& path, Diagnostics& errors) {
  Result<SavedFiles> files = read_saved_files(path);
  if (files) return std::move(files).value();
  append(errors, files.errors());
  return {};
}

/// Tolerances of figures that neither side has, which hold nothing.
Diagnostics check_figures(const Tolerances& tolerances, const SavedFiles& base, const SavedFiles& now) {
  std::set<std::string> there;
  for (const SavedFiles* side : {&base, &now})
    for (const NamedResult& named : side->results)
      for (const SavedRow& row : named.result.rows) {
        if (row.estimate_s) there.insert("estimate_s");
        for (const SavedFigure& figure : row.figures)
          if (figure.value) there.insert(figure.name);
      }
  std::vector<std::string> known = gated_figures();
  std::erase_if(known, [&](const std::string& name) { return !there.contains(name); });
  Diagnostics out;
  for (const auto& [figure, amount] : tolerances.own) {
    if (there.contains(figure)) continue;
    out.push_back({{fmt::format("--tolerance {}", figure), 0, 0},
                   fmt::format("neither BASE nor NEW has {}: its tolerance holds nothing", figure),
                   known.empty() ? std::string() : expected_one_of(figure, known)});
  }
  return out;
}

/// Two files of one result each, of commands that have no figure in common.
Diagnostics check_kinds(const SavedFiles& base, const SavedFiles& now) {
  if (base.is_folder || now.is_folder || base.results.size() != 1 || now.results.size() != 1) return {};
  const NamedResult &b = base.results.front(), &n = now.results.front();
  if (b.result.schema == n.result.schema) return {};
  return {{command_line,
           fmt::format("BASE is a {} ('{}') and NEW a {} ('{}')", b.result.schema, b.name, n.result.schema, n.name),
           "expected two results of one command"}};
}

/// Two files of one result each are meant for each other, whatever the results are called.
void pair_single(const SavedFiles& base, SavedFiles& now) {
  if (base.is_folder || now.is_folder || base.results.size() != 1 || now.results.size() != 1) return;
  now.results.front().name = base.results.front().name;
}

std::string text_of(const Comparison& comparison, TargetFormat format, TextStyle style) {
  std::ostringstream out;
  switch (format) {
    case TargetFormat::json:
      return json(comparison);
    case TargetFormat::junit:
      return junit(comparison);
    case TargetFormat::csv:
      write_csv(out, csv(comparison));
      return out.str();
    case TargetFormat::markdown:
      write_markdown(out, page(comparison));
      return out.str();
    case TargetFormat::table:
    case TargetFormat::html:
      break;
  }
  write_text(out, page(comparison), style);
  return out.str();
}

Exit run_compare(const CompareArgs& args, const Session& session) {
  Diagnostics errors;
  const std::vector<Target> targets = parse_targets(args.output, false, errors);
  const Tolerances tolerances = parse_tolerances(args.tolerances, errors);
  for (const std::string& side : {args.base, args.now})
    append(errors, check_overwriting(files_of(side, ".json"), args.output.files));
  if (args.base == "-" && args.now == "-")
    errors.push_back({command_line, "BASE and NEW are both standard input", "expected '-' for one of them"});
  if (!errors.empty()) return refuse(session, errors);

  const SavedFiles base = read_side(args.base, errors);
  SavedFiles now = read_side(args.now, errors);
  for (const SavedFiles* side : {&base, static_cast<const SavedFiles*>(&now)})
    for (const std::string& note : side->passed_over) session.err << "note: " << note << '\n';
  if (errors.empty() && base.is_folder != now.is_folder)
    errors.push_back({command_line,
                      fmt::format("'{}' is a folder and '{}' is not", base.is_folder ? args.base : args.now,
                                  base.is_folder ? args.now : args.base),
                      "expected two files, or two folders"});
  if (errors.empty()) errors = check_kinds(base, now);
  if (!errors.empty()) return refuse(session, errors);
  pair_single(base, now);

  const Result<Comparison> comparison = compare(base.results, now.results, tolerances);
  if (!comparison) return refuse(session, comparison.errors());
  warn(session, check_figures(tolerances, base, now));
  const Exit delivered = deliver(
      session, targets, [&](TargetFormat format, TextStyle style) { return text_of(*comparison, format, style); });
  if (delivered != Exit::ok) return delivered;
  return comparison->kept() ? Exit::ok : Exit::gate_failed;
}

}  // namespace

Command add_compare(CLI::App& parent) {
  const auto args = std::make_shared<CompareArgs>();
  CLI::App& app =
      *parent.add_subcommand("compare", "two JSON results against tolerances: what moved, and by which term");
  app.add_option("BASE", args->base, "a JSON result, '-' for standard input, or a folder of them")
      ->type_name("")
      ->required();
  app.add_option("NEW", args->now, "the same, now")->type_name("")->required();
  app.add_option(
         "--tolerance", args->tolerances,
         "what a figure may be worse by: step_s=2%, step_s=50ms, peak_bytes=1GiB, mean_ape=2points, or 2% for all "
         "(default: 1%, and 1points of an error; repeatable)")
      ->type_name("AMOUNT")
      ->allow_extra_args(false)
      ->group("Comparison");
  add_target_options(app, args->output, false);
  app.footer(
      "Exit 1 if a figure is worse than its tolerance allows, or missing. docs/comparing.md has the rest.\n"
      "\n"
      "Examples:\n"
      "  collcast step overlap-175b-layer --what-if serial --output base.json && \\\n"
      "  collcast step overlap-175b-layer --output new.json && \\\n"
      "  collcast compare base.json new.json --tolerance step_s=2% --output verdict.md --output verdict.xml");
  return [args](const Session& session) { return run_compare(*args, session); };
}

}  // namespace collcast::cli
