// collcast step: one training step of a scenario, or the batch that it serves.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_list.hpp"
#include "cli/scenario_options.hpp"
#include "cli/sweep.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/report/trace.hpp"
#include "collcast/workload/gradient_alignment.hpp"

namespace collcast::cli {

namespace {

struct StepArgs {
  ScenarioArgs scenario;
  LimitArgs limits;
  std::vector<std::string> sweeps;
  std::string trace, schedule;
  bool operations = false, list = false;
  OutputOptions output;
};

/// What is of one step, and has no place where there are several.
Diagnostics check_alone(const StepArgs& args) {
  Diagnostics wrong;
  for (const auto& [option, given] : {std::pair<const char*, bool>{"--trace", !args.trace.empty()},
                                      {"--write-schedule", !args.schedule.empty()},
                                      {"--operations", args.operations},
                                      {"--measured", !args.scenario.measured.empty()},
                                      {"--unfolded", args.scenario.unfolded}})
    if (given)
      wrong.push_back({command_line, fmt::format("{} is of one step, and a sweep has several", option),
                       "expected --set of the swept paths, or the step without the option"});
  return wrong;
}

Exit run_step(const StepArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const Sweep sweep = sweep_of(args.sweeps, args.scenario, session, errors);
  if (!sweep.empty()) append(errors, check_alone(args));
  if (!args.trace.empty() && args.scenario.method == "estimate")
    errors.push_back({command_line, "--trace needs a simulated timeline", "expected --method simulate or both"});
  const Patience patience(args.limits, errors);
  if (!errors.empty()) return refuse(session, errors);
  if (!sweep.empty()) return run_sweep(args.scenario, sweep, patience, format, args.output, session);
  StepTimeline timeline;
  OwnSchedule order;
  ScenarioArgs alone = args.scenario;
  alone.runs_own_sweep = true;  // it has none, or one with values that can never be
  Result<StepReport> result = forecast(alone, session, args.trace.empty() ? nullptr : &timeline, patience,
                                       args.schedule.empty() ? nullptr : &order);
  if (!result && patience.has_ended_work()) return patience.refused(refuse(session, result.errors()));
  if (!result) return refuse(session, result.errors());
  StepReport report = std::move(result).value();
  if (args.operations && !report.inputs)
    return refuse(session, {{command_line, "--operations has no effect on a scenario of tasks", "remove the option"}});
  report.list_operations = args.operations;

  std::vector<OutputFile> files;
  if (!args.trace.empty()) {
    std::ostringstream trace;
    write_chrome_trace(trace, timeline.schedule, timeline.timeline);
    files.push_back({args.trace, trace.str()});
  }
  if (order.micro_batches > most_own_micro_batches || order.chunks > most_own_chunks)
    return refuse(
        session,
        {{typed("--write-schedule", args.schedule),
          fmt::format("the schedule has {} micro-batches and {} chunks a stage", order.micro_batches, order.chunks),
          fmt::format("a file has up to {} and {}", most_own_micro_batches, most_own_chunks)}});
  if (!args.schedule.empty() && report.inputs && aligns_gradients(*report.inputs))
    say(session, {fmt::format("{} has the order of {} without its alignment of gradients: run, it is the step with "
                              "training.align_grad_reduce: false",
                              shown(args.schedule), to_string(report.inputs->layout.schedule))});
  if (!args.schedule.empty())
    files.push_back(
        {args.schedule, lower_suffix(args.schedule) == ".csv" ? schedule_csv(order) : schedule_text(order)});
  const Exit delivered = deliver(session, report, format, args.output, std::move(files));
  const Diagnostics broken = broken_gates(report);
  if (delivered != Exit::ok || broken.empty()) return patience.exit(delivered);
  session.err << to_text(broken) << std::flush;
  return Exit::gate_failed;
}

/// What is run, and how.
void add_step_options(CLI::App& app, StepArgs& args) {
  add_scenario_options(app, args.scenario);
  app.get_option("--what-if")->description("a variant of the scenario; or all, each beside the scenario as it is");
  add_fault_option(
      app, args.scenario.faults,
      "a GPU that computes slowly or unevenly, or a link that is slow or has failed, in the words of the scenario's "
      "'faults' (repeatable)");
  app.add_option("--seeds", args.scenario.seeds,
                 "draws of the faults' jitter: as given, and with all seeds 1, 2 ... higher (default: 1)")
      ->type_name("N")
      ->group("Machine");
  app.add_option("--measured", args.scenario.measured,
                 "what the step took where it was run: how far the forecast is, and the one scale of all kernels "
                 "(topology.gpu.kernel_scale) with which it would be that")
      ->type_name("TIME")
      ->group("Model");
  app.add_flag("--unfolded", args.scenario.unfolded,
               "beside the step, every rank of it for itself and every collective message by message, in one "
               "simulation; of library ideal")
      ->group("Model");
  app.add_option("--sweep", args.sweeps,
                 "the step with each of several values, side by side: V1,V2 ... or a range of whole numbers "
                 "FIRST:LAST:xK or FIRST:LAST:+K (repeatable: all combinations); instead of the scenario's own sweep")
      ->type_name("PATH=VALUES")
      ->allow_extra_args(false)
      ->group("Scenario");
}

/// What is written beside the page.
void add_step_outputs(CLI::App& app, StepArgs& args) {
  app.add_flag("--operations", args.operations, "list the kernels of a layer")->group("Output");
  app.add_option("--trace", args.trace, "write the timeline to FILE, for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--write-schedule", args.schedule,
                 "write what each pipeline stage does, turn by turn, to FILE, which layout.schedule can name; .csv: as "
                 "PyTorch's torch.distributed.pipelining has it")
      ->type_name("FILE")
      ->group("Output");
}

constexpr const char* step_footer =
    "Examples:\n"
    "  collcast step --list\n"
    "  collcast step llama3-70b-64xh100\n"
    "  collcast step llama3-70b-64xh100 --set layout.tp=4 --set layout.pp=4 --trace step.json\n"
    "  collcast step llama3-70b-64xh100 --write-schedule orders.yaml\n"
    "  collcast step llama3-70b-64xh100 --set layout.schedule=./orders.yaml\n"
    "  collcast step llama3-70b-64xh100 --fault 'gpu: 12, compute: 80%'\n"
    "  collcast step llama3-70b-64xh100 --fault 'gpu: 12, compute: 80%, from: 2s'\n"
    "  collcast step llama3-8b-8xh100 --fault 'gpu: all, jitter: 3%, seed: 7' --seeds 20\n"
    "  collcast step llama3-70b-64xh100 --measured 18.1s\n"
    "  collcast step llama3-70b-64xh100 --unfolded --chunks 1\n"
    "  collcast step llama3-70b-inference-8xh100 --set inference.batch=64\n"
    "  collcast step llama3-70b-inference-8xh100 --sweep inference.batch=1:256:x4 --sweep layout.tp=4,8\n"
    "  collcast step llama3-70b-64xh100 --sweep topology.network.link.bandwidth=100Gb/s,200Gb/s,400Gb/s\n"
    "  collcast step gpt3-512gpu --what-if all\n"
    "Ctrl-C and --time-limit print what is known by then, marked partial.\n"
    "Limits under 'gates' in the scenario are checked: a broken one exits with 1; of a sweep none is.\n"
    "The formula and the numbers behind every figure: the same options after 'collcast explain step':\n"
    "  collcast explain step llama3-70b-64xh100";

}  // namespace

Command add_step(CLI::App& parent) {
  const auto args = std::make_shared<StepArgs>();
  CLI::App& app =
      *parent.add_subcommand("step", "one training step, or a batch of inference: times, what is exposed, memory, MFU");
  add_step_options(app, *args);
  add_list_option(app, args->list);
  add_step_outputs(app, *args);
  add_limit_options(app, args->limits);
  add_output_options(app, args->output);
  app.footer(step_footer);
  return [args, &app](const Session& session) {
    args->scenario.outputs = {args->output.file, args->trace, args->schedule};
    args->scenario.must_simulate = !args->trace.empty();
    args->scenario.sweeps = true;
    return args->list ? run_list(app, args->scenario.scenario, args->output, session) : run_step(*args, session);
  };
}

}  // namespace collcast::cli
