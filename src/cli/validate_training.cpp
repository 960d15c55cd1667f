#include "cli/validate_training.hpp"

#include <fmt/format.h>

#include <ostream>

#include "cli/inputs.hpp"
#include "cli/progress.hpp"
#include "cli/validate_options.hpp"
#include "cli/values.hpp"
#include "collcast/validation/machines.hpp"
#include "collcast/validation/training.hpp"

namespace collcast::cli {

namespace {

std::vector<std::string> places(const TrainingArgs& args, const Session& session, Diagnostics& errors) {
  if (!args.paths.empty()) return args.paths;
  if (session.search.training.empty())
    errors.push_back({command_line, "no shipped training steps were found", "expected --training DIR|FILE"});
  return session.search.training;
}

/// Behind the figure, if one is named: "calibrated.all=5%", "memory.dgxc.A=3%".
std::optional<TrainingBudget> parse_training_budget(std::string_view text, Location where, const TrainingReport& report,
                                                    Diagnostics& errors) {
  TrainingBudget out;
  for (const auto& [name, figure] : {std::pair("calibrated.", TrainingBudget::Figure::calibrated),
                                     std::pair("memory.", TrainingBudget::Figure::memory)}) {
    if (!text.starts_with(name)) continue;
    out.figure = figure;
    text.remove_prefix(std::string_view(name).size());
    where.column += static_cast<int>(std::string_view(name).size());
    break;
  }
  RowBudgetWords words{
      {}, {}, "source", "tier", "expected [calibrated.|memory.][SOURCE.]TIER=PERCENT, such as A=10% or memory.all=3%"};
  for (const TrainingSummaryRow& row : summary(report)) {
    if (!row.source_id.empty()) words.sources.insert(row.source_id);
    if (!row.tier.empty()) words.words.insert(row.tier);
  }
  const std::optional<RowBudget> budget = parse_row_budget(text, where, words, errors);
  if (!budget) return std::nullopt;
  out.source_id = budget->source;
  out.tier = budget->word;
  out.limit = budget->limit;
  return out;
}

Diagnostics nothing_scored(const TrainingReport& report) {
  Diagnostics out;
  for (const UnscoredRow& row : report.unscored)
    out.push_back({command_line, fmt::format("row '{}' cannot be scored: {}", row.row_id, row.why), ""});
  return out;
}

}  // namespace

Exit run_validate_training(const TrainingArgs& args, const Patience& patience, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const auto method = parse_word("--method", args.method, {"estimate", "simulate"}, errors);
  TrainingQuestion question;
  question.collectives = policy_of(args.library, args.env, errors);
  question.simulate = method == std::size_t{1};
  question.engine.watch = patience.watch();
  const std::vector<std::string> paths = places(args, session, errors);
  const std::vector<TopologySpec> specs = specs_of(args.machine, session, errors);
  append(errors, check_overwriting(inputs_of(paths, specs), {args.output.file}));
  if (!errors.empty()) return refuse(session, errors);
  const Result<ScoredMachines> known = ScoredMachines::load(specs, session.search);
  append(errors, known.errors());
  const Result<TrainingTables> tables = load_training(paths, command_line);
  append(errors, tables.errors());
  if (!errors.empty()) return refuse(session, errors);

  TrainingReport report = with_progress(session, [&](const Telling& tell) {
    return validate_training(*tables, *known, question, tell, patience.pieces_go_on());
  });
  Diagnostics warnings = tables->warnings;
  append(warnings, report.of_machines);
  report.warnings = warn(session, warnings);
  return conclude_rows<TrainingBudget>(report, nothing_scored(report), args.budgets, parse_training_budget, format,
                                       args.output, patience, session);
}

}  // namespace collcast::cli
