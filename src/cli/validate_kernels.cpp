#include "cli/validate_kernels.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/inputs.hpp"
#include "cli/validate_options.hpp"
#include "cli/values.hpp"
#include "collcast/validation/kernels.hpp"

namespace collcast::cli {

namespace {

/// The folders of shipped kernel tables.
std::vector<std::string> places(const KernelArgs& args, const Session& session) {
  if (!args.paths.empty()) return args.paths;
  std::vector<std::string> out;
  std::error_code ignored;
  for (const std::string& folder : session.search.topologies)
    if (const auto kernels = std::filesystem::path(folder) / "kernels"; std::filesystem::is_directory(kernels, ignored))
      out.push_back(kernels.string());
  return out;
}

std::optional<KernelBudget> parse_kernel_budget(std::string_view text, const Location& where,
                                                const KernelReport& report, Diagnostics& errors) {
  RowBudgetWords words{
      {}, {}, "system", "precision", "expected [SYSTEM.]PRECISION=PERCENT, such as all=4% or h100_sxm.bf16=5%"};
  for (const KernelDeviation& row : report.rows) {
    words.sources.insert(row.source_id);
    words.words.insert(row.precision);
  }
  const std::optional<RowBudget> budget = parse_row_budget(text, where, words, errors);
  if (!budget) return std::nullopt;
  return KernelBudget{budget->source, budget->word, budget->limit};
}

Diagnostics nothing_scored(const KernelReport& report) {
  Diagnostics out;
  for (const UnscoredKernels& rows : report.unscored) {
    const std::string text = fmt::format("{} rows of {} cannot be scored: {}", rows.rows, rows.source_id, rows.why);
    if (rows.where.file.empty())
      out.push_back({command_line, text, ""});
    else
      out.push_back({rows.where, text, "expected a GPU such as h100_sxm, or --topology with the machine of all rows"});
  }
  return out;
}

std::vector<std::string> systems_of(const KernelTables& tables) {
  std::vector<std::string> out;
  for (const KernelTable& table : tables.tables)
    for (const GemmRow& row : table.rows) out.push_back(row.system);
  return out;
}

}  // namespace

Exit run_validate_kernels(const KernelArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const std::vector<std::string> paths = places(args, session);
  if (paths.empty())
    errors.push_back({command_line, "no shipped kernel tables were found", "expected --kernels DIR|FILE"});
  const std::vector<TopologySpec> specs = specs_of(args.machine, session, errors);
  append(errors, check_overwriting(inputs_of(paths, specs), {args.output.file}));
  if (!errors.empty()) return refuse(session, errors);
  const Result<ScoredMachines> known = ScoredMachines::load(specs, session.search);
  append(errors, known.errors());
  const Result<KernelTables> tables = load_kernel_tables(paths, command_line);
  append(errors, tables.errors());
  if (!errors.empty()) return refuse(session, errors);

  const std::vector<std::string> warnings = warn(session, known->other_gpus(systems_of(*tables), command_line));
  if (errors = impossible_products(*tables, *known); !errors.empty()) return refuse(session, errors);
  KernelReport report = validate_kernels(*tables, *known);
  report.warnings = warnings;
  if (report.rows.empty()) return refuse(session, nothing_scored(report));
  return conclude<KernelBudget>(report, args.budgets, parse_kernel_budget, format, args.output, session);
}

}  // namespace collcast::cli
