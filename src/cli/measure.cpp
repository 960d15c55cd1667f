// collcast measure: run collectives here, time them, and write tables; and kernels (measure_kernels.cpp).
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>
#include <ostream>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/measure_options.hpp"
#include "cli/measured_files.hpp"
#include "cli/progress.hpp"
#include "collcast/base/units.hpp"

namespace collcast::cli {

namespace {

Exit exit_of(Ending ending) {
  switch (ending) {
    case Ending::finished:
      return Exit::ok;
    case Ending::lacking:
      return Exit::lacking;
    case Ending::refused:
      return Exit::bad_input;
    case Ending::wrong:
    case Ending::broken:
    case Ending::stopped:
      break;
  }
  return Exit::gate_failed;
}

void say(const Session& session, const std::string& who, const std::vector<std::string>& problems,
         const std::string& hint) {
  Diagnostics out;
  for (const std::string& problem : problems) out.push_back({{who}, problem, {}});
  if (!out.empty()) out.back().hint = hint;
  session.err << to_text(out) << std::flush;
}

/// "12 rows".
std::string rows_text(std::size_t rows) { return rows == 1 ? "1 row" : fmt::format("{} rows", rows); }

/// What became of the rows, `lost` of which could not be written.
std::string kept_text(const MeasureReport& report, std::size_t lost, bool shown, const MeasuredFiles& files) {
  const std::size_t kept = report.rows.size() - lost;
  if (report.rows.empty()) return "no size was finished";
  if (shown) {
    const std::string finished = fmt::format("finished: {}, shown above", rows_text(report.rows.size()));
    return kept == 0 || files.kept().empty()
               ? finished
               : fmt::format("{}; {} of them {} {}", finished, kept, kept == 1 ? "stays" : "stay", files.kept());
  }
  if (kept == 0) return fmt::format("finished: {}, not written", rows_text(lost));
  return files.kept().empty()
             ? fmt::format("finished: {} as shown", rows_text(kept))
             : fmt::format("finished: {}, which {} {}", rows_text(kept), kept == 1 ? "stays" : "stay", files.kept());
}

/// A rank whose rows the process that started it keeps.
Exit run_reporting_rank(const MeasureQuestion& question, const std::string& reports_to, const Session& session,
                        bool& library_busy) {
  const MeasureOutcome outcome = report_rank(question.plan, *question.member, reports_to);
  library_busy = outcome.library_busy;
  if (outcome.ending == Ending::refused) say(session, "measurement", outcome.problems, {});
  return Exit::ok;  // whoever started it has heard the rest
}

/// What was measured, and how that ended.
struct MeasuredRun {
  MeasureReport report;
  MeasureOutcome outcome;
  bool kept = true;  ///< every row, in the files
};

/// Rows are kept as they come.
MeasuredRun measure_into(MeasuredFiles& files, const MeasureQuestion& question, const Session& session) {
  MeasuredRun out;
  MeasureReport& report = out.report;
  report.ranks = question.ranks;
  report.datatype = question.plan.datatype;
  Progress progress(session, question.plan.kinds.size() * question.plan.sizes.size());
  std::optional<std::pair<CollectiveKind, Bytes>> doing;
  MeasureSink sink;
  sink.system = [&](const MeasuredSystem& system) { report.system = system; };
  sink.begin = [&](CollectiveKind kind, Bytes size) {
    // Once per size, whether the buffers are the same or not.
    if (doing != std::pair(kind, size)) progress.begin(fmt::format("{} {}", to_string(kind), format_bytes(size)));
    doing = {kind, size};
  };
  sink.row = [&](const MeasuredRow& row) {
    report.rows.push_back(row);
    out.kept = files.keep(report);
    return out.kept;
  };
  sink.note = [&](const std::string& note) { report.notes.push_back(note); };
  out.outcome =
      question.member ? run_rank(question.plan, *question.member, sink) : launch(question.plan, question.ranks, sink);
  report.complete = out.outcome.ending == Ending::finished;
  report.problems = out.outcome.problems;
  return out;
}

/// Ends as the shell expects of a program that was interrupted.
void raise_signal(int signal, const Session& session) {
  if (signal == 0) return;
  session.out.flush();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// The files' end, and what is said. Of a world's ranks each says what went wrong on it; what became of the rows, and
/// that all were stopped, rank 0 does.
Exit conclude_measure(MeasuredRun& run, bool speaks, MeasuredFiles& files, const Session& session) {
  auto& [report, outcome, kept] = run;
  const bool shown = !kept && speaks && files.show(report);
  Exit written = Exit::ok;
  if (kept && speaks && !report.rows.empty()) written = files.close(report);
  if (speaks && !(files.shows_notes() && !report.rows.empty()))
    for (const std::string& note : report.notes) session.err << "note: " << note << '\n';
  if (!kept) report.problems.push_back(fmt::format("stopped: its rows cannot be written to {}", files.place()));
  if (speaks || outcome.ending != Ending::stopped)
    say(session, "measurement", report.problems,
        speaks ? kept_text(report, kept ? 0 : 1, shown, files) : std::string());
  raise_signal(outcome.signal, session);
  if (!kept || written != Exit::ok) return Exit::bad_input;
  if (speaks && report.rows.empty() && outcome.ending == Ending::finished)
    return refuse(session,
                  {{command_line, "nothing was measured: every size was left out", "expected a larger --size"}});
  return exit_of(outcome.ending);
}

Exit run_measure(const MeasureArgs& args, const Session& session, bool& library_busy) {
  Diagnostics errors;
  const auto question = understand(args, session, errors);
  if (!question || !errors.empty()) return refuse(session, errors);
  MeasuredFiles files(session, *question, args.output, errors);
  if (!errors.empty()) return refuse(session, errors);
  if (!question->lacking.empty()) {
    say(session, "this machine", question->lacking, "'collcast backends' says what can run here");
    return Exit::lacking;
  }
  const auto reports_to = session.environment.find(reporting_variable);
  if (reports_to != session.environment.end() && question->member)
    return run_reporting_rank(*question, reports_to->second, session, library_busy);
  MeasuredRun run = measure_into(files, *question, session);
  library_busy = run.outcome.library_busy;
  // All ranks are done from here on.
  const bool speaks = !question->member || question->member->rank == 0;
  return conclude_measure(run, speaks, files, session);
}

constexpr const char* measure_footer =
    "Examples:\n"
    "  collcast measure all_reduce --backend gloo --ranks 4 --size 8:64MiB:x2\n"
    "  collcast measure all --backend gloo --ranks 2 --output measured/\n"
    "  collcast measure all_reduce --backend nccl --size 8:16GiB:x2 --output all_reduce.csv\n"
    "  torchrun --nproc-per-node 8 --no-python collcast measure all_gather --backend nccl --output all_gather.csv\n"
    "  srun collcast measure all_reduce --backend gloo --rendezvous node1:29500\n"
    "  mpirun -np 4 collcast measure all --backend mpi --output measured/\n"
    "  collcast measure kernels gemm --output gemm.csv";

}  // namespace

Command add_measure(CLI::App& parent) {
  const auto args = std::make_shared<MeasureArgs>();
  CLI::App& app =
      *parent.add_subcommand("measure", "run collectives or kernels here, check results, and write measured tables");
  add_measure_options(app, *args);
  add_output_options(app, args->output);
  app.get_option("--output")
      ->description(
          "FILE.csv: the table, with its sidecar FILE.yaml; DIR/: one for each KIND; other formats: at the end");
  app.footer(measure_footer);
  const Command kernels = add_measure_kernels(app);
  return [args, &app, kernels](const Session& session) {
    if (app.got_subcommand("kernels")) return kernels(session);
    bool library_busy = false;
    const Exit exit = run_measure(*args, session, library_busy);
    if (library_busy) {
      // A thread still uses what static destructors would take from under it.
      session.out.flush();
      session.err.flush();
      ::_exit(static_cast<int>(exit));
    }
    return exit;
  };
}

}  // namespace collcast::cli
