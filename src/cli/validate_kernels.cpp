#include "cli/validate_kernels.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

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

/// "all=4%", "bf16=5%", "h100_sxm.fp8=4%".
std::optional<KernelBudget> parse_budget(std::string_view text, Location where, const KernelReport& report,
                                         Diagnostics& errors) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    errors.push_back({where, fmt::format("'{}' is no budget", text),
                      "expected [SYSTEM.]PRECISION=PERCENT, such as all=4% or h100_sxm.bf16=5%"});
    return std::nullopt;
  }
  std::set<std::string> systems{"all"}, precisions{"all"};
  for (const KernelDeviation& row : report.rows) {
    systems.insert(row.source_id);
    precisions.insert(row.precision);
  }
  const auto known = [&](const std::string& word, const std::set<std::string>& words, const char* what) {
    if (words.count(word) > 0) return true;
    errors.push_back({where, fmt::format("unknown {} '{}'", what, word),
                      expected_one_of(word, std::vector<std::string>(words.begin(), words.end()))});
    return false;
  };
  KernelBudget out;
  std::string name(text.substr(0, equals));
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) {
    out.source_id = name.substr(0, dot);
    if (!known(out.source_id, systems, "system")) return std::nullopt;
    name.erase(0, dot + 1);
  }
  if (!known(name, precisions, "precision")) return std::nullopt;
  out.precision = name;
  for (std::string* word : {&out.source_id, &out.precision})
    if (*word == "all") word->clear();
  where.column += static_cast<int>(equals) + 1;
  const std::optional<double> limit = parse_limit(text.substr(equals + 1), where, errors);
  if (!limit) return std::nullopt;
  out.limit = *limit;
  return out;
}

Diagnostics nothing_scored(const KernelReport& report) {
  Diagnostics out;
  for (const UnscoredKernels& rows : report.unscored)
    out.push_back(
        {command_line, fmt::format("{} rows of {} cannot be scored: {}", rows.rows, rows.source_id, rows.why), ""});
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
  const Result<TrainingMachines> known = TrainingMachines::load(specs, session.search);
  append(errors, known.errors());
  const Result<KernelTables> tables = load_kernel_tables(paths, command_line);
  append(errors, tables.errors());
  if (!errors.empty()) return refuse(session, errors);

  KernelReport report = validate_kernels(*tables, *known);
  if (report.rows.empty()) return refuse(session, nothing_scored(report));
  std::vector<KernelBudget> budgets;
  for_each_budget(args.budgets, [&](std::string_view text, const Location& where) {
    if (auto budget = parse_budget(text, where, report, errors)) budgets.push_back(*budget);
  });
  if (!errors.empty()) return refuse(session, errors);
  report.budgets = outcomes(report, budgets);
  const Exit written = deliver(session, report, format, args.output);
  return written == Exit::ok ? verdict(session, report.budgets, is_page_read(args.output, format)) : written;
}

}  // namespace collcast::cli
