// collcast validate: predictions against measured tables, per table and per size band.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <tuple>

#include "cli/collective_options.hpp"
#include "cli/commands.hpp"
#include "cli/inputs.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "cli/progress.hpp"
#include "cli/validate_inference.hpp"
#include "cli/validate_kernels.hpp"
#include "cli/validate_options.hpp"
#include "cli/validate_training.hpp"
#include "cli/values.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/validation/calibrate.hpp"

namespace collcast::cli {

namespace {

struct ValidateArgs {
  MeasuredArgs measured;
  std::string library, method = "estimate";
  std::vector<std::string> env;
  NcclFileArgs files;
  std::string overlay;
  bool leave_one_out = false;
  std::vector<std::string> training, kernels, inference;
  std::vector<std::string> budgets;
  std::string plot;
  LimitArgs limits;
  OutputOptions output;
};

/// A report without a single table is no answer: the reasons are errors then.
Diagnostics nothing_scored(const ValidateReport& report) {
  Diagnostics out;
  for (const UnscoredTable& table : report.unscored)
    out.push_back({table.where, fmt::format("table '{}' cannot be scored: {}", table.id, table.why), table.hint});
  return out;
}

bool calibrates_any(const Overlay& overlay, const Machines& machines, Library library) {
  const std::vector<std::string> names = machines.names();
  return std::any_of(overlay.machines.begin(), overlay.machines.end(), [&](const Calibration& one) {
    return one.library == library && std::count(names.begin(), names.end(), one.machine) > 0;
  });
}

/// --library, else the one whose options are given, else what the tables' machines run, or what the overlay is of.
Library library_of(const ValidateArgs& args, const Session& session, std::optional<Measured>& measured,
                   Diagnostics& errors) {
  const LibraryClues clues{parse_library(args.library, errors), args.method == "simulate",
                           !args.env.empty() || !args.files.tuner.empty()};
  Library usual = measured ? usual_library(measured->tables, measured->machines) : Library::ideal;
  if (measured && !args.overlay.empty()) {
    const Library other = usual == Library::nccl ? Library::ideal : Library::nccl;
    const Result<Overlay> overlay = read_overlay(args.overlay, session);
    const bool of_other = overlay && !calibrates_any(*overlay, measured->machines, usual) &&
                          calibrates_any(*overlay, measured->machines, other);
    if (of_other) usual = other;
  }
  return chosen_library(clues, usual);
}

/// NCCL's where the table's machine runs it, else the textbook's.
Prediction by_machine(Prediction nccl, Prediction ideal) {
  return
      [nccl = std::move(nccl), ideal = std::move(ideal)](const PlacedTable& place, const CollectiveRequest& request) {
        return usual_library(place.fabric->spec()) == Library::nccl ? nccl(place, request) : ideal(place, request);
      };
}

/// Which tables are held against the textbook although the others are against NCCL; empty: none.
std::string textbook_text(Measured& measured) {
  std::vector<std::string> names;
  for (const MeasuredTable& table : measured.tables) {
    const Result<PlacedTable> place = measured.machines.place(table);
    if (place && usual_library(place->fabric->spec()) == Library::ideal) names.push_back(table.facts.id);
  }
  if (names.empty()) return {};
  return fmt::format("without NVIDIA GPUs, held against library ideal: {}", fmt::join(names, ", "));
}

/// Machines that the overlay names are calibrated from here on. Gives the ids of the tables that it was fitted to.
std::set<std::string> apply_overlay(const ValidateArgs& args, Library library, const Session& session,
                                    Measured& measured, Diagnostics& errors) {
  const Location where = typed("--overlay", args.overlay);
  Result<Overlay> overlay = read_overlay(args.overlay, session);
  if (!overlay) {
    append(errors, overlay.errors());
    return {};
  }
  if (!calibrates_any(*overlay, measured.machines, library)) {
    const std::vector<std::string> names = measured.machines.names();
    const Result<Calibration> none =
        calibration_of(*overlay, names.size() == 1 ? names.front() : "any machine that is known here", library, where);
    append(errors, none.errors());
    return {};
  }
  std::set<std::string> fitted;
  for (const Calibration& one : overlay->machines)
    if (one.library == library) fitted.insert(one.tables.begin(), one.tables.end());
  measured.machines.calibrate(std::move(overlay).value(), library);
  return fitted;
}

/// Of the machines that tables are of.
Diagnostics beyond_line_rate(const ValidateArgs& args, Measured& measured) {
  Diagnostics out;
  std::set<std::string> seen;
  if (args.overlay.empty()) return out;
  for (const MeasuredTable& table : measured.tables)
    if (const Result<PlacedTable> place = measured.machines.place(table);
        place && place->calibrated && seen.insert(place->topology).second)
      append(out, line_rate_warnings(args.overlay, place->fabric->spec()));
  return out;
}

/// Errors of a fit over what it has seen are smaller than those of what it has not.
Diagnostics fitted_on_these(const ValidateArgs& args, const std::set<std::string>& fitted,
                            const ValidateReport& report) {
  const auto seen =
      std::ranges::count_if(report.tables, [&](const ScoredTable& t) { return t.calibrated && fitted.contains(t.id); });
  if (seen == 0) return {};
  // An overlay names its tables, and not the part of their sizes that it was fitted on.
  if (!args.measured.part.empty())
    return {{typed("--overlay", args.overlay),
             fmt::format("{} of the {} tables are among those that the overlay was fitted on: errors are of forecasts "
                         "only if it was by another part of their sizes than {}",
                         seen, report.tables.size(), args.measured.part),
             "collcast calibrate with the other part makes such an overlay"}};
  return {{typed("--overlay", args.overlay),
           fmt::format("{} of the {} tables are among those that the overlay was fitted on: errors are of the fit, not "
                       "of forecasts",
                       seen, report.tables.size()),
           "--leave-one-out scores each table by a fit without it"}};
}

/// An overlay that calibrates no machine of any table, as other commands refuse it.
Diagnostics unused_overlay(const ValidateArgs& args, const ValidateReport& report) {
  if (args.overlay.empty()) return {};
  std::vector<std::string> machines;
  for (const ScoringMachine& machine : report.machines) {
    if (machine.calibrated) return {};
    machines.push_back(machine.topology);
  }
  return {{typed("--overlay", args.overlay),
           fmt::format("'{}' calibrates none of the tables' machines: {}", args.overlay, fmt::join(machines, ", ")),
           "expected an overlay that 'collcast calibrate' fitted to tables of these machines"}};
}

/// Files of a folder that could not be read and rows without a time, beside the tables that could not be scored;
/// without their folder. A line that two of them are of in the same words has their columns.
void add_unread(const Diagnostics& unread, ValidateReport& report) {
  const auto key_of = [](const Diagnostic& reason) {
    return std::tuple(reason.where.file, reason.where.line, reason.message);
  };
  std::map<std::tuple<std::string, int, std::string>, int> alike;
  for (const Diagnostic& reason : unread) ++alike[key_of(reason)];
  for (const Diagnostic& reason : unread) {
    std::string why = reason.message;
    if (reason.where.line > 0 && alike[key_of(reason)] > 1)
      why += fmt::format(" (line {}, column {})", reason.where.line, reason.where.column);
    else if (reason.where.line > 0)
      why += fmt::format(" (line {})", reason.where.line);
    report.unscored.push_back(
        {std::filesystem::path(reason.where.file).filename().string(), std::move(why), reason.hint, reason.where});
  }
}

/// What has no meaning beside --leave-one-out, which fits and predicts by itself.
Diagnostics misfits_of_leave_one_out(const ValidateArgs& args, const std::vector<nccl::Setting>& settings,
                                     Method method) {
  Diagnostics out;
  const auto refuse = [&](bool given, const char* option) {
    if (given)
      out.push_back(
          {command_line, fmt::format("--leave-one-out and {} exclude each other", option), "expected one of the two"});
  };
  refuse(!args.overlay.empty(), "--overlay");
  refuse(!settings.empty(), "--env");
  refuse(!args.files.tuner.empty(), "--tuner");
  refuse(method == Method::simulate, "--method simulate");
  return out;
}

/// Variables of the command line that a forecast of these tables does not follow, once each.
std::vector<std::string> unfollowed(const std::vector<nccl::Setting>& settings, Measured& measured) {
  const Result<nccl::Environment> environment = nccl::read_environment(settings);
  std::vector<std::string> out;
  std::set<std::tuple<std::string, int, int>> said;
  for (const MeasuredTable& table : measured.tables) {
    const Result<PlacedTable> place = measured.machines.place(table);
    if (!environment || !place) continue;
    const bool is_alltoall = place->kind == CollectiveKind::alltoall;
    for (const Diagnostic& one : warnings(*environment, place->fabric->nodes(), place->fabric->spec(), is_alltoall))
      if (said.emplace(one.where.file, one.where.line, one.where.column).second)
        out.push_back(fmt::format("{} ({})", one.message, one.hint));
  }
  return out;
}

/// With the progress on a terminal.
ValidateReport scored(const ValidateArgs& args, Measured& measured, Library library, const Prediction& predict,
                      const Patience& patience, const Session& session) {
  const GoesOn goes_on = patience.pieces_go_on();
  return with_progress(session, [&](const Telling& tell) {
    return args.leave_one_out
               ? leave_one_out(measured.tables, measured.machines, library, measured.statistic, tell, goes_on)
               : validate(measured.tables, measured.machines, predict, measured.statistic, tell, goes_on);
  });
}

/// "3 of 5 tables were reached, of table 'x' 120 of 400 rows": what an end before all were scored left.
std::string reached_of(const ValidateReport& report) {
  std::string out = reached_text(report.tables.size() + report.unscored.size(), report.not_reached, "tables");
  for (const ScoredTable& table : report.tables)
    if (table.rows_not_reached > 0)
      out += fmt::format(", of table '{}' {} of {} rows", table.id, table.rows.size(),
                         table.rows.size() + table.rows_not_reached);
  return out;
}

/// What is validated of which tables, understood.
struct TablesQuestion {
  Format format;
  Measured measured;
  Library library;
  std::vector<nccl::Setting> settings;
  nccl::Files files;
  Method method;
  std::vector<Budget> budgets;
  std::set<std::string> fitted;  ///< tables that the overlay was fitted to

  bool is_nccl() const { return library == Library::nccl; }
};

/// Nothing, and why, if anything is wrong.
std::optional<TablesQuestion> understand_tables(const ValidateArgs& args, const Session& session, Diagnostics& errors) {
  const Format format = parse_format(args.output, errors);
  Diagnostics wrong_tables;
  std::optional<Measured> measured = read_measured(args.measured, session, wrong_tables);
  const Library library = library_of(args, session, measured, errors);
  const bool is_nccl = library == Library::nccl;
  std::vector<nccl::Setting> settings = parse_env(args.env, library, errors);
  if (is_nccl) append(errors, nccl::read_environment(settings).errors());
  nccl::Files files = read_nccl_files(args.files, library, session, errors);
  const auto word = parse_word("--method", args.method, {"estimate", "simulate"}, errors);
  const Method method = word == std::size_t{1} ? Method::simulate : Method::estimate;
  if (is_nccl && method == Method::simulate)
    errors.push_back(
        {command_line, "--method: what is validated of library nccl is its closed form", "expected --method estimate"});
  if (args.leave_one_out) append(errors, misfits_of_leave_one_out(args, settings, method));
  std::vector<Budget> budgets = parse_budgets(args.budgets, errors);
  append(errors, check_overwriting({args.files.tuner, args.overlay}, {args.output.file, args.plot}));
  if (const std::string suffix = lower_suffix(args.plot); !suffix.empty() && suffix != ".svg")
    errors.push_back({typed("--plot", args.plot), "the picture is SVG", "expected FILE.svg, or -"});
  append(errors, wrong_tables);
  std::set<std::string> fitted;
  if (measured && !args.overlay.empty()) fitted = apply_overlay(args, library, session, *measured, errors);
  if (!errors.empty()) return std::nullopt;
  return TablesQuestion{.format = format,
                        .measured = std::move(*measured),
                        .library = library,
                        .settings = std::move(settings),
                        .files = std::move(files),
                        .method = method,
                        .budgets = std::move(budgets),
                        .fitted = std::move(fitted)};
}

Prediction prediction_of(const ValidateArgs& args, const TablesQuestion& q, const Patience& patience) {
  const Prediction ideal = ideal_prediction(q.method, {Sharing::max_min, patience.watch()}, patience.pieces_go_on());
  if (!q.is_nccl()) return memoized(ideal);
  const Prediction nccl = nccl_prediction(q.settings, q.files);
  return memoized(args.library.empty() ? by_machine(nccl, ideal) : nccl);
}

/// What is beside the scores: faults that were found, what is left out, and what is said of either.
void add_beside_scores(const ValidateArgs& args, TablesQuestion& q, const Session& session, ValidateReport& report) {
  Measured& measured = q.measured;
  if (q.is_nccl() && !args.leave_one_out) find_faults(report, measured.tables, measured.machines);
  report.unscored.insert(report.unscored.end(), measured.emptied.begin(), measured.emptied.end());
  add_unread(measured.unread, report);
  report.part = args.measured.part;
  if (q.is_nccl() && args.library.empty() && !args.leave_one_out)
    if (std::string text = textbook_text(measured); !text.empty()) report.said.push_back(std::move(text));
  if (q.is_nccl())
    for (std::string& text : unfollowed(q.settings, measured)) report.said.push_back(std::move(text));
  say(session, report.said);
  // These were said as the files were read.
  report.said.insert(report.said.end(), measured.said.begin(), measured.said.end());
  report.library = q.is_nccl() ? "nccl" : "ideal";
  report.method = q.method == Method::simulate ? "simulate" : "estimate";
}

/// What is not to be forgotten with an overlay's scores.
void warn_of_overlay(const ValidateArgs& args, TablesQuestion& q, const Session& session, ValidateReport& report) {
  Diagnostics warnings = fitted_on_these(args, q.fitted, report);
  append(warnings, beyond_line_rate(args, q.measured));
  for (std::string& text : warn(session, warnings)) report.said.push_back(std::move(text));
}

Exit run_of_tables(const ValidateArgs& args, const Patience& patience, const Session& session) {
  Diagnostics errors;
  std::optional<TablesQuestion> question = understand_tables(args, session, errors);
  if (!question) return refuse(session, errors);
  TablesQuestion& q = *question;
  ValidateReport report = scored(args, q.measured, q.library, prediction_of(args, q, patience), patience, session);
  const std::string reached = reached_of(report);
  add_beside_scores(args, q, session, report);
  const bool is_part = report.is_partial();
  if (report.tables.empty() && is_part)
    return patience.give_up(session, "no table was scored", "nothing is known yet; expected a longer --time-limit");
  if (report.tables.empty()) return refuse(session, nothing_scored(report));
  if (const Diagnostics unused = unused_overlay(args, report); !unused.empty()) return refuse(session, unused);
  for (std::string& text : warn(session, machine_warnings(q.measured.tables, q.measured.machines, q.library)))
    report.said.push_back(std::move(text));
  warn_of_overlay(args, q, session, report);
  report.budgets = outcomes(report, q.budgets);
  report.every_table = q.format == Format::markdown;
  const bool page_is_read = is_page_read(args.output, q.format);
  if (is_part) report.warnings.push_back(patience.tell_partial(session, reached, page_is_read));
  std::vector<OutputFile> pictures;
  if (!args.plot.empty()) pictures.push_back({args.plot, plot(report)});
  const Exit written = deliver(session, report, q.format, args.output, std::move(pictures));
  return exit_of(written == Exit::ok ? verdict(session, report.budgets, page_is_read) : written, is_part,
                 !q.budgets.empty(), patience, session);
}

/// What measurements are of.
enum class DataSet { tables, training, kernels, inference };
constexpr std::array<std::pair<DataSet, const char*>, 3> named_data_sets{
    {{DataSet::training, "--training"}, {DataSet::kernels, "--kernels"}, {DataSet::inference, "--inference"}}};

/// Which of them is validated; tables where none is named.
struct Chosen {
  DataSet set = DataSet::tables;
  const char* option = "";
  std::vector<const char*> others;  ///< options of those that were named as well
};

Chosen chosen_of(const CLI::App& app) {
  Chosen out;
  for (const auto& [set, option] : named_data_sets) {
    if (app.count(option) == 0) continue;
    if (out.set != DataSet::tables) out.others.push_back(out.option);
    out.set = set;
    out.option = option;
  }
  return out;
}

/// What was given and says nothing to the chosen data set: what is of tables of collectives only, other data sets, and
/// what its model does not have.
Diagnostics misfits_of(const Chosen& chosen, const ValidateArgs& args) {
  Diagnostics out;
  const auto no_effect = [&](const char* option, bool given) {
    if (given)
      out.push_back(
          {command_line, fmt::format("{} has no effect with {}", option, chosen.option), "remove one of the two"});
  };
  no_effect("--measured", !args.measured.measured.empty());
  no_effect("--collective", !args.measured.collective.empty());
  no_effect("--part", !args.measured.part.empty());
  no_effect("--statistic", args.measured.statistic != "mean");
  no_effect("--nodes", !args.measured.machine.nodes.empty());
  no_effect("--ranks", !args.measured.machine.ranks.empty());
  no_effect("--overlay", !args.overlay.empty());
  no_effect("--tuner", !args.files.tuner.empty());
  no_effect("--leave-one-out", args.leave_one_out);
  no_effect("--plot", !args.plot.empty());
  for (const char* other : chosen.others) no_effect(other, true);
  const bool has_collectives = chosen.set != DataSet::kernels;
  const bool is_simulated = chosen.set == DataSet::training;
  no_effect("--library", !has_collectives && !args.library.empty());
  no_effect("--env", !has_collectives && !args.env.empty());
  no_effect("--method", !is_simulated && args.method != "estimate");
  return out;
}

/// Without the empty one of an option without a value.
std::vector<std::string> paths_of(std::vector<std::string> given) {
  std::erase(given, std::string());
  return given;
}

Exit run_chosen(const ValidateArgs& args, const Chosen& chosen, const Session& session) {
  Diagnostics errors;
  const Patience patience(args.limits, errors);
  if (!errors.empty()) return refuse(session, errors);
  if (chosen.set == DataSet::tables) return run_of_tables(args, patience, session);
  if (const Diagnostics wrong = misfits_of(chosen, args); !wrong.empty()) return refuse(session, wrong);
  const MachineOptions& machine = args.measured.machine;
  if (chosen.set == DataSet::training)
    return run_validate_training(
        {paths_of(args.training), args.library, args.method, args.env, args.budgets, machine, args.output}, patience,
        session);
  if (chosen.set == DataSet::kernels)
    return run_validate_kernels({paths_of(args.kernels), args.budgets, machine, args.output}, session);
  return run_validate_inference({paths_of(args.inference), args.library, args.env, args.budgets, machine, args.output},
                                patience, session);
}

void add_data_options(CLI::App& app, ValidateArgs& args) {
  add_measured_options(app, args.measured);
  const auto option = [&](const char* name, std::vector<std::string>& value, const char* text) {
    app.add_option(name, value, text)->type_name("DIR|FILE...")->expected(0, -1)->group("Measured");
  };
  option("--training", args.training,
         "training steps instead of tables: CSV files, folders of them (default: the shipped ones)");
  option("--kernels", args.kernels,
         "matrix products instead of tables: CSV files, folders of them (default: the shipped kernel tables)");
  option("--inference", args.inference,
         "servers of language models instead of tables: CSV files, folders of them (default: the shipped one)");
}

void add_model_options(CLI::App& app, ValidateArgs& args) {
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type)->group("Model");
  };
  option("--library", args.library, "WORD",
         "nccl: as NCCL runs it, with each table's variables (default for tables of NVIDIA GPUs); ideal: the textbook "
         "on the fabric (default for others, and with --method simulate)");
  add_env_option(app, args.env);
  add_tuner_option(app, args.files.tuner);
  option("--method", args.method, "WORD", "estimate: the closed form (default); simulate: minutes on large machines");
  option("--overlay", args.overlay, "FILE",
         "a calibration, as 'collcast calibrate' writes it, or a shipped one's name");
  app.add_flag("--leave-one-out", args.leave_one_out,
               "each table by a calibration that is fitted to the other tables of its system; of more than 40 several "
               "are left out at once")
      ->group("Model");
}

void add_gate_options(CLI::App& app, ValidateArgs& args) {
  app.add_option("--budget,--max-median-ape", args.budgets,
                 "exit 1 if the median error of tables not marked unhealthy is above: large=8%, all_reduce.small=30%; "
                 "of training "
                 "steps by tier: A=10%, dgxc.A=20%, calibrated.A=5%, memory.all=3%; of products by precision: bf16=5%, "
                 "h100_sxm.fp8=4%; of servers by figure: tpot.all=30%, ttft.vllm=50% (repeatable)")
      ->type_name("BAND=PERCENT")
      ->allow_extra_args(false)
      ->group("Gate");
}

constexpr const char* validate_footer =
    "Bands: small is below 64 KiB, medium up to 4 MiB, large above. An error is |predicted - measured| / measured:\n"
    "of a table's band the median, in brackets the mean, and of how many rows; ratio is the median of predicted / "
    "measured,\n"
    "below 1 too fast.\n"
    "Column 'by': system, the machine's file lists the table's system or is named so; gpu, the likest machine that "
    "is\n"
    "described; derived, that one with the sidecar's GPUs, NVLinks and NICs put in; option, --topology.\n"
    "All shipped tables take seconds; with --method simulate, or --leave-one-out of library ideal, minutes.\n"
    "Ctrl-C and --time-limit print the tables or rows that were scored by then, marked partial.\n"
    "Better forecasts of a machine of your own: 'collcast calibrate' fits one to its tables.\n"
    "Examples:\n"
    "  collcast validate\n"
    "  collcast validate --library ideal\n"
    "  collcast validate --leave-one-out\n"
    "  collcast validate --plot measured-predicted.svg\n"
    "  collcast validate --measured my.log --topology dgx-h100\n"
    "  ./all_reduce_perf -b 8 -e 8G -f 2 -g 8 | collcast validate --measured - --topology dgx-h100\n"
    "  collcast validate --measured tables/ --budget 'large=8%,medium=25%' --format json --output errors.json\n"
    "  collcast validate --measured my.log --topology dgx-h100 --overlay mine.yaml\n"
    "  collcast validate --training --budget A=5% --format csv --output steps.csv\n"
    "  collcast validate --kernels --budget all=4%\n"
    "  collcast validate --inference --budget tpot.all=40%";

}  // namespace

Command add_validate(CLI::App& parent) {
  const auto args = std::make_shared<ValidateArgs>();
  CLI::App& app = *parent.add_subcommand("validate", "predictions against measured tables, per table and size band");
  add_data_options(app, *args);
  add_model_options(app, *args);
  add_gate_options(app, *args);
  add_limit_options(app, args->limits);
  add_output_options(app, args->output);
  app.add_option("--plot", args->plot, "measured against predicted, a mark per row of the tables, as an SVG picture")
      ->type_name("FILE")
      ->group("Output");
  app.footer(validate_footer);
  return [args, &app](const Session& session) {
    args->measured.machine.overlay = args->overlay;
    args->measured.machine.outputs = {args->output.file, args->plot};
    return run_chosen(*args, chosen_of(app), session);
  };
}

}  // namespace collcast::cli
