#include "cli/validate_training.hpp"

#include <fmt/format.h>

#include <ostream>

#include "cli/collective_options.hpp"
#include "cli/inputs.hpp"
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

/// "A=10%", "dgxc.A=20%", "calibrated.all=5%", "memory.dgxc.A=3%".
std::optional<TrainingBudget> parse_budget(std::string_view text, Location where, const TrainingReport& report,
                                           Diagnostics& errors) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    errors.push_back({where, fmt::format("'{}' is no budget", text),
                      "expected [calibrated.|memory.][SOURCE.]TIER=PERCENT, such as A=10% or memory.all=3%"});
    return std::nullopt;
  }
  TrainingBudget out;
  std::string name(text.substr(0, equals));
  const auto take = [&](std::string_view word, TrainingBudget::Figure figure) {
    if (!name.starts_with(word)) return;
    out.figure = figure;
    name.erase(0, word.size());
  };
  take("calibrated.", TrainingBudget::Figure::calibrated);
  take("memory.", TrainingBudget::Figure::memory);
  std::vector<std::string> sources, tiers{"all"};
  for (const TrainingSummaryRow& row : summary(report)) {
    if (row.source_id.empty() && !row.tier.empty()) tiers.push_back(row.tier);
    if (!row.source_id.empty() && std::find(sources.begin(), sources.end(), row.source_id) == sources.end())
      sources.push_back(row.source_id);
  }
  const auto known = [&](const std::string& word, const std::vector<std::string>& words, const char* what) {
    if (std::find(words.begin(), words.end(), word) != words.end()) return true;
    errors.push_back({where, fmt::format("unknown {} '{}'", what, word), expected_one_of(word, words)});
    return false;
  };
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) {
    out.source_id = name.substr(0, dot);
    if (!known(out.source_id, sources, "source")) return std::nullopt;
    name.erase(0, dot + 1);
  }
  if (!known(name, tiers, "tier")) return std::nullopt;
  out.tier = name == "all" ? std::string() : name;
  where.column += static_cast<int>(equals) + 1;
  const std::optional<double> limit = parse_limit(text.substr(equals + 1), where, errors);
  if (!limit) return std::nullopt;
  out.limit = *limit;
  return out;
}

Diagnostics nothing_scored(const TrainingReport& report) {
  Diagnostics out;
  for (const UnscoredRow& row : report.unscored)
    out.push_back({command_line, fmt::format("row '{}' cannot be scored: {}", row.row_id, row.why), ""});
  return out;
}

}  // namespace

Exit run_validate_training(const TrainingArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const auto library = parse_library(args.library.empty() ? "nccl" : args.library, errors);
  const auto method = parse_word("--method", args.method, {"estimate", "simulate"}, errors);
  TrainingQuestion question;
  question.collectives.library = library.value_or(Library::nccl);
  question.simulate = method == std::size_t{1};
  Result<nccl::Environment> environment = nccl::read_environment(parse_env(args.env, library, errors));
  append(errors, environment.errors());
  if (environment) question.collectives.environment = std::move(environment).value();
  const std::vector<std::string> paths = places(args, session, errors);
  const std::vector<TopologySpec> specs = specs_of(args.machine, session, errors);
  append(errors, check_overwriting(inputs_of(paths, specs), {args.output.file}));
  if (!errors.empty()) return refuse(session, errors);
  const Result<TrainingMachines> known = TrainingMachines::load(specs, session.search);
  append(errors, known.errors());
  const Result<TrainingTables> tables = load_training(paths, command_line);
  append(errors, tables.errors());
  if (!errors.empty()) return refuse(session, errors);

  TrainingReport report = validate_training(*tables, *known, question);
  report.warnings = warn(session, tables->warnings);
  if (report.rows.empty()) return refuse(session, nothing_scored(report));
  std::vector<TrainingBudget> budgets;
  for_each_budget(args.budgets, [&](std::string_view text, const Location& where) {
    if (auto budget = parse_budget(text, where, report, errors)) budgets.push_back(*budget);
  });
  if (!errors.empty()) return refuse(session, errors);
  report.budgets = outcomes(report, budgets);
  const Exit written = deliver(session, report, format, args.output);
  return written == Exit::ok ? verdict(session, report.budgets, is_page_read(args.output, format)) : written;
}

}  // namespace collcast::cli
