#include "cli/validate_inference.hpp"

#include <fmt/format.h>

#include <map>
#include <ostream>

#include "cli/inputs.hpp"
#include "cli/progress.hpp"
#include "cli/validate_options.hpp"
#include "cli/values.hpp"
#include "collcast/validation/inference.hpp"

namespace collcast::cli {

namespace {

std::vector<std::string> places(const InferenceArgs& args, const Session& session, Diagnostics& errors) {
  if (!args.paths.empty()) return args.paths;
  if (session.search.inference.empty())
    errors.push_back({command_line, "no shipped table of servers was found", "expected --inference DIR|FILE"});
  return session.search.inference;
}

/// Which descriptions the names of models stand for, how servers were started, and which there are: for rows of
/// others too.
std::vector<std::string> shipped_words(const Session& session) {
  std::vector<std::string> out;
  for (const std::string& folder : session.search.inference)
    for (const char* file : {"/models.csv", "/servers.csv", "/serving_ttft_tpot.csv"}) out.push_back(folder + file);
  return out;
}

std::optional<InferenceBudget> parse_serving_budget(std::string_view text, const Location& where,
                                                    const InferenceReport& report, Diagnostics& errors) {
  RowBudgetWords words{{"ttft", "tpot"},
                       {},
                       "figure",
                       "group of rows",
                       "expected [ttft.|tpot.]GROUP=PERCENT, such as tpot.all=30%, ttft.vllm=50% or b200_sxm=25%"};
  for (const InferenceSummaryRow& row : summary(report))
    if (row.by != "model" && row.by != "source") words.words.insert(row.name);
  const std::optional<RowBudget> budget = parse_row_budget(text, where, words, errors);
  if (!budget) return std::nullopt;
  return InferenceBudget{budget->source, budget->word, budget->limit};
}

std::vector<std::string> systems_of(const InferenceTables& tables) {
  std::vector<std::string> out;
  for (const InferenceRow& row : tables.rows) out.push_back(row.system);
  return out;
}

Diagnostics nothing_scored(const InferenceReport& report) {
  std::map<std::string, int> reasons;
  for (const UnscoredServer& row : report.unscored) ++reasons[row.why];
  Diagnostics out;
  for (const auto& [why, rows] : reasons)
    out.push_back({command_line, fmt::format("{} rows cannot be scored: {}", rows, why), ""});
  return out;
}

}  // namespace

Exit run_validate_inference(const InferenceArgs& args, const Patience& patience, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const CollectivePolicy collectives = policy_of(args.library, args.env, errors);
  const std::vector<std::string> paths = places(args, session, errors);
  const std::vector<TopologySpec> specs = specs_of(args.machine, session, errors);
  append(errors, check_overwriting(inputs_of(paths, specs), {args.output.file}));
  if (!errors.empty()) return refuse(session, errors);
  const Result<ScoredMachines> machines = ScoredMachines::load(specs, session.search);
  append(errors, machines.errors());
  const Result<InferenceTables> tables = load_inference(paths, shipped_words(session), command_line);
  append(errors, tables.errors());
  if (!errors.empty()) return refuse(session, errors);
  const Result<ServedModels> models = ServedModels::load(tables->models, session.search);
  if (!models) return refuse(session, models.errors());

  InferenceReport report = with_progress(session, [&](const Telling& tell) {
    return validate_inference(*tables, *models, *machines, collectives, tell, patience.pieces_go_on());
  });
  Diagnostics warnings = tables->warnings;
  append(warnings, machines->other_gpus(systems_of(*tables), command_line));
  append(warnings, report.of_machines);
  report.warnings = warn(session, warnings);
  return conclude_rows<InferenceBudget>(report, nothing_scored(report), args.budgets, parse_serving_budget, format,
                                        args.output, patience, session);
}

}  // namespace collcast::cli
