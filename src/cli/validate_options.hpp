// What `validate` and `calibrate` have in common: which measurements, on which machines.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/validation/validate.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

struct MeasuredArgs {
  std::vector<std::string> measured;  ///< empty: the shipped tables
  std::string collective;
  std::string statistic = "mean";
  std::string part;  ///< "1/2"; empty: every size
  MachineOptions machine;
};
void add_measured_options(CLI::App&, MeasuredArgs&);

/// Measurements and the machines that they can be put on.
struct Measured {
  std::vector<MeasuredTable> tables;
  Diagnostics unread;                  ///< files and rows that are left out, with the reason
  std::vector<UnscoredTable> emptied;  ///< tables that --part leaves no row of
  Machines machines;
  Statistic statistic = Statistic::mean;
  std::vector<std::string> said;  ///< what was said of incomplete files and rows left out, for documents
};
/// Nothing, and why, if anything is wrong, or an output of `machine` is one of the files read. Warnings go to the
/// session's `err`.
std::optional<Measured> read_measured(const MeasuredArgs&, const Session&, Diagnostics& errors);

/// "small=20%,all_reduce.large=8%", as often as it is given.
std::vector<Budget> parse_budgets(const std::vector<std::string>&, Diagnostics& errors);

/// The machine that --topology names, or all shipped ones: what rows of other measurements are held against.
std::vector<TopologySpec> specs_of(const MachineOptions&, const Session&, Diagnostics& errors);
/// The CSV files of these paths, and the files of the machines.
std::vector<std::string> inputs_of(const std::vector<std::string>& paths, const std::vector<TopologySpec>& machines);

/// By which library rows' collectives run, NCCL if none is given, and with which of its variables.
CollectivePolicy policy_of(const std::string& library, const std::vector<std::string>& env, Diagnostics& errors);

/// The parts between the commas of what --budget was given, each with its place; none may be there twice.
void for_each_budget(const std::vector<std::string>&,
                     const std::function<void(std::string_view, const Location&)>& parse, Diagnostics& errors);
/// "8%" as a share.
std::optional<double> parse_limit(std::string_view limit, const Location& where, Diagnostics& errors);

/// "dgxc.A=20%", "h100_sxm.fp8=4%": a limit on rows by source and by a second word; "all" is an empty one.
struct RowBudget {
  std::string source, word;
  double limit = 0;
};
/// What both may be, how the second is called ("tier"), and how a budget is written, for messages.
struct RowBudgetWords {
  std::set<std::string> sources, words;
  const char *source_name, *word_name, *form;
};
std::optional<RowBudget> parse_row_budget(std::string_view text, Location where, const RowBudgetWords&,
                                          Diagnostics& errors);

/// Budgets of tables or of rows: those that are missed are said, unless a page that is read has said them.
template <class Outcome>
Exit verdict(const Session& session, const std::vector<Outcome>& budgets, bool page_is_read) {
  bool missed = false;
  for (const Outcome& budget : budgets) {
    if (budget.met()) continue;
    if (!page_is_read) session.err << budget_text(budget) << '\n';
    missed = true;
  }
  return missed ? Exit::gate_failed : Exit::ok;
}

/// The end of a validation of rows: held against what --budget says (`parse` reads one), written, judged.
template <class Budget, class Report, class Parse>
Exit conclude(Report& report, const std::vector<std::string>& texts, const Parse& parse, Format format,
              const OutputOptions& output, const Session& session) {
  Diagnostics errors;
  std::vector<Budget> budgets;
  for_each_budget(
      texts,
      [&](std::string_view text, const Location& where) {
        if (std::optional<Budget> budget = parse(text, where, report, errors)) budgets.push_back(std::move(*budget));
      },
      errors);
  if (!errors.empty()) return refuse(session, errors);
  report.budgets = outcomes(report, budgets);
  const Exit written = deliver(session, report, format, output);
  return written == Exit::ok ? verdict(session, report.budgets, is_page_read(output, format)) : written;
}

/// "12 of 40 rows were reached".
std::string reached_text(std::size_t reached, std::size_t not_reached, const char* what);

/// The exit of a report that may be of a part of its tables or rows: of a part no budget counts as met, since what was
/// not reached may be far off.
Exit exit_of(Exit concluded, bool is_part, bool has_budgets, const Patience&, const Session&);

/// `conclude` of rows that --time-limit may have ended early; `none` are the reasons of a report without a score.
template <class Budget, class Report, class Parse>
Exit conclude_rows(Report& report, const Diagnostics& none, const std::vector<std::string>& budgets, const Parse& parse,
                   Format format, const OutputOptions& output, const Patience& patience, const Session& session) {
  const bool is_part = report.not_reached > 0;
  if (report.rows.empty() && is_part)
    return patience.give_up(session, "no row was scored", "nothing is known yet; expected a longer --time-limit");
  if (report.rows.empty()) return refuse(session, none);
  if (is_part)
    report.warnings.push_back(patience.tell_partial(
        session, reached_text(report.rows.size() + report.unscored.size(), report.not_reached, "rows"),
        is_page_read(output, format)));
  return exit_of(conclude<Budget>(report, budgets, parse, format, output, session), is_part, !budgets.empty(), patience,
                 session);
}

}  // namespace collcast::cli
