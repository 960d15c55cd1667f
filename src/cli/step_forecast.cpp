// The forecast of a scenario as the commands tell it: run as far as time and memory last, and described.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/collective_options.hpp"
#include "cli/inputs.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/scenario_options.hpp"
#include "cli/step_interval.hpp"
#include "cli/step_measured.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"
#include "collcast/engine/footprint.hpp"

namespace collcast::cli {

namespace {

/// One word of a shell's command line.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+%@";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Options of `explain collective` for the scenario's machine.
std::string machine_options(const Scenario& scenario, const Fabric& fabric, const Session& session) {
  const std::string machine = topology_name(scenario.topology.file, session.search);
  std::string out = fmt::format("--topology {} --nodes {}", shell_word(machine), fabric.nodes());
  for (const Override& set : scenario.machine)
    out += fmt::format(" --set {}", shell_word(fmt::format("{}={}", set.path, set.value)));
  return out;
}

/// And for how its collectives run, where that is not the default.
std::string policy_options(const Scenario& scenario) {
  std::string out;
  const CollectivePolicy& policy = scenario.collectives;
  if (policy.library != usual_library(scenario.topology))
    out += fmt::format(" --library {}", to_string(policy.library));
  if (policy.library == Library::nccl) {
    for (const nccl::Setting& one : policy.environment.given)
      out += " --env " + shell_word(fmt::format("{}={}", one.name, one.value));
    return out;
  }
  if (policy.algorithm != "auto") out += " --algorithm " + policy.algorithm;
  if (policy.chunks > 0) out += fmt::format(" --chunks {}", policy.chunks);
  if (policy.channels > 0) out += fmt::format(" --channels {}", policy.channels);
  if (scenario.sharing == Sharing::fifo) out += " --sharing fifo";
  return out;
}

/// The layout in the GPUs that the job has, and what else does not fit, so that a number of ranks hides none of it.
Diagnostics check_layout(const Scenario& scenario, const Fabric& fabric) {
  Diagnostics wrong = check_ranks(scenario, fabric);
  if (scenario.ranks == 0 || !scenario.step) return wrong;
  // Of ranks that the machine has not, which is said, those of the job are gone by as far as the layout fits these.
  const bool fits = scenario.step->layout.world() <= scenario.ranks;
  append(wrong,
         check_step(*scenario.step, fits ? scenario.ranks : fabric.rank_count(), scenario.origins, scenario.ranks));
  return wrong;
}

/// What cannot be unfolded, as far as options and the kind of scenario say it.
Diagnostics check_unfolded(const ScenarioArgs& args, const Scenario& scenario) {
  Diagnostics wrong;
  if (!args.unfolded) return wrong;
  if (args.method == "estimate" || args.method == "simulate")
    wrong.push_back(
        {command_line, "--unfolded is told beside the step by both methods", "expected --method both, or no --method"});
  if (!scenario.step)
    wrong.push_back(
        {command_line, "--unfolded has no effect on a scenario of tasks", "its times are given; remove the option"});
  return wrong;
}

/// How its simulations share links, what they may take, and what ends them.
EngineOptions engine_of(const Scenario& scenario, const Patience& patience, Progress& progress) {
  EngineOptions engine{scenario.sharing, patience.watch(&progress)};
  engine.memory = Patience::room_now();
  return engine;
}

/// The step, and if there was the time and the memory for it every rank of it for itself; `lack` says that there was
/// not the memory.
Result<StepWithUnfolded> forecast_unfolded(const Scenario& scenario, const Fabric& fabric, StepTimeline* timeline,
                                           const Patience& patience, Progress& progress, std::string& lack) {
  const auto begins = [&](const ProgramTraffic& all, Bytes memory) {
    if (memory > Patience::room_now()) {
      lack = fmt::format("every rank for itself takes about {} of memory, and {} are left", format_bytes(memory),
                         format_bytes(Patience::room_now()));
      return false;
    }
    progress.begin(fmt::format("{} rank by rank", scenario.name));
    progress.expect(all.messages);
    return true;
  };
  return forecast_unfolded_step(*scenario.step, fabric, {scenario.faults, scenario.placement}, scenario.collectives,
                                timeline, engine_of(scenario, patience, progress), scenario.origins, begins,
                                patience.goes_on());
}

/// What the engine says, beyond whose clock a step may go, and which may take more memory than there is.
bool is_of_simulation(const Diagnostics& errors) {
  return !errors.empty() && std::all_of(errors.begin(), errors.end(), [](const Diagnostic& error) {
    return error.where.file == "simulation" || error.where.file == memory_place;
  });
}

/// The timeline is too long, which is told of the batch, of a server of its micro-batches: the closed form has nothing
/// against that.
bool is_of_long_timeline(const Diagnostics& errors, const Scenario& scenario) {
  const bool serves = scenario.step && scenario.step->serving;
  const Location& told = scenario.origins.of(serves ? "inference.microbatches" : "batch.global_batch");
  // Other things are told of a server as a whole, which is where its micro-batches are if nothing says how many.
  return errors.size() == 1 && to_text(errors.front().where) == to_text(told) &&
         errors.front().message.starts_with("the timeline would have ");
}

/// What was known when the watch ended the rest.
struct Known {
  std::optional<StepResult> by_formula;  ///< the closed form
  std::optional<Seconds> as_described;   ///< and with faults that of the machine without
};

/// `effect` receives what the machine's faults do, if it has any.
Result<StepResult> forecast(const Scenario& scenario, const Fabric& fabric, Method method, StepTimeline* timeline,
                            const EngineOptions& engine, int draws, std::optional<FaultEffect>& effect,
                            const GoesOn& goes_on, Known& known) {
  if (!scenario.step) return forecast_tasks(*scenario.tasks, fabric, timeline);
  const MachineState machine(scenario.faults, scenario.placement);
  if (machine.as_described() && method == Method::both) {
    StepAsFar step =
        forecast_step_as_far(*scenario.step, fabric, scenario.collectives, timeline, engine, scenario.origins, goes_on);
    known.by_formula = std::move(step.by_formula);
    return std::move(step.result);
  }
  if (machine.as_described())
    return forecast_step(*scenario.step, fabric, scenario.collectives, method, timeline, engine, scenario.origins,
                         goes_on);
  FaultyAsFar step = method == Method::both
                         ? forecast_faulty_step_as_far(*scenario.step, fabric, machine, scenario.collectives, timeline,
                                                       engine, scenario.origins, draws, goes_on)
                         : FaultyAsFar{forecast_faulty_step(*scenario.step, fabric, machine, scenario.collectives,
                                                            method, timeline, engine, scenario.origins, draws, goes_on),
                                       {}};
  if (!step.result && step.known.as_described) known.as_described = step.known.as_described->estimate;
  if (!step.result && step.known.by_formula) {
    known.by_formula = std::move(step.known.by_formula->result);
    effect = std::move(step.known.by_formula->effect);
  }
  if (!step.result) return step.result.errors();
  FaultyStep both = std::move(step.result).value();
  effect = std::move(both.effect);
  return std::move(both.result);
}

/// Of a step of which nothing is known yet that could be told.
Diagnostic unfinished(Method method, const Patience& patience, const Known& known) {
  const char* what = method == Method::estimate ? "the closed form was not worked out to its end"
                                                : "the step was not simulated to its end";
  std::string hint = "nothing was written; ";
  if (known.as_described)
    hint += fmt::format("on the machine as described its closed form is {}; ", format_seconds(*known.as_described));
  hint += known.by_formula             ? "--method estimate is the closed form alone"
          : method == Method::simulate ? "--method both gives the closed form where there is no time for more"
                                       : "expected a longer --time-limit";
  return {command_line, fmt::format("{}: {}", patience.reason(), what), hint};
}

/// The closed form, which knows means only.
Result<StepResult> forecast_mean(const Scenario& scenario, const Fabric& fabric, std::optional<FaultEffect>& effect,
                                 const GoesOn& goes_on) {
  Scenario mean = scenario;
  mean.faults = without_jitter(scenario.faults);
  Known known;
  Result<StepResult> result = forecast(mean, fabric, Method::estimate, nullptr, {}, 1, effect, goes_on, known);
  if (effect) effect->machine.faults = scenario.faults;
  return result;
}

/// Above 0; 0 where it is not given.
Seconds parse_measured(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return {};
  const Parsed<Seconds> read = parse_seconds(text);
  if (read.ok && read.value > Seconds{}) return read.value;
  errors.push_back({typed("--measured", text), fmt::format("'{}' is no time that a step takes", shown(text)),
                    "expected a time above 0, such as 17.2s"});
  return {};
}

/// What the options ask of the scenario that it does not have: the first of it.
Diagnostics check_what_was_asked(const ScenarioArgs& args, const Scenario& scenario, bool writes_order) {
  const bool trains = scenario.step && !scenario.step->serving;
  if (!args.measured.empty() && !trains)
    return {{typed("--measured", args.measured), "--measured is the time of a training step",
             "expected a scenario with a model and a batch, or no --measured"}};
  if (writes_order && !trains)
    return {{command_line, "--write-schedule has no effect on a scenario without a pipeline that trains",
             "expected a scenario with a model and a batch"}};
  if (writes_order && from_both_ends(scenario.step->layout.schedule))
    return {{command_line, "--write-schedule: a file has no place for micro-batches from both ends of dualpipe",
             "expected schedule dualpipe-v, or no --write-schedule"}};
  if (!args.seeds.empty() && first_with_jitter(scenario.faults) == nullptr)
    return {{typed("--seeds", args.seeds), "nothing is drawn: no fault of this step has jitter",
             "expected a jitter, as --fault 'gpu: all, jitter: 3%', or no --seeds"}};
  return {};
}

/// What is run, and how.
struct AskedStep {
  const ScenarioArgs& args;
  const Scenario& scenario;
  const Fabric& fabric;
  const Patience& patience;
  Method method = Method::both;
  int draws = 1;
};

/// Beside its result what is known of a run.
struct StepRun {
  std::optional<FaultEffect> effect;
  std::optional<UnfoldedStep> unfolded;
  std::string lack;           ///< why something was not run, where that was not the patience
  bool partial = false;       ///< the closed form alone is there
  bool folded_alone = false;  ///< the step rank by rank is not
  std::string settings;       ///< what was set, where the engine does not go as far
};

Result<StepResult> run_in_full(const AskedStep& asked, const Session& session, StepTimeline* timeline, StepRun& run,
                               Known& known) {
  const bool unfolded = asked.args.unfolded;
  Progress progress(session, unfolded ? 2 : 1);
  progress.begin(fmt::format("{} simulation", asked.scenario.name));
  if (!unfolded)
    return forecast(asked.scenario, asked.fabric, asked.method, timeline,
                    engine_of(asked.scenario, asked.patience, progress), asked.draws, run.effect,
                    asked.patience.goes_on(), known);
  Result<StepWithUnfolded> both =
      forecast_unfolded(asked.scenario, asked.fabric, timeline, asked.patience, progress, run.lack);
  if (!both) return both.errors();
  run.unfolded = both->unfolded;
  run.effect = std::move(both->effect);
  return std::move(both).value().result;
}

/// The same, or the closed form alone where there was no time or memory for more.
Result<StepResult> run_as_far(const AskedStep& asked, const Session& session, StepTimeline* timeline, StepRun& run) {
  const ScenarioArgs& args = asked.args;
  Known known;
  Result<StepResult> result = run_in_full(asked, session, timeline, run, known);
  run.folded_alone = result && args.unfolded && !run.unfolded;
  const bool is_ended = !result && asked.patience.has_ended_work();
  const bool is_beyond = !result && !is_ended && is_of_simulation(result.errors());
  const bool is_long = !result && !is_ended && is_of_long_timeline(result.errors(), asked.scenario);
  if ((is_ended || is_beyond || is_long) && asked.method == Method::both && !args.must_simulate) {
    Result<StepResult> closed = known.by_formula
                                    ? Result<StepResult>(std::move(*known.by_formula))
                                    : forecast_mean(asked.scenario, asked.fabric, run.effect, asked.patience.goes_on());
    run.partial = closed.ok();
    if (closed && !is_ended) run.lack = fmt::format("not simulated: {}", result.errors().front().message);
    if (closed) result = std::move(closed);
  }
  if (!result && is_ended) return unfinished(asked.method, asked.patience, known);
  if (is_beyond) run.settings = settings_text(args.sets, args.swept);
  if (result) return result;
  Diagnostics wrong = result.errors();
  wrong.front().hint += run.settings;
  return wrong;
}

/// As of the result: the closed form's where that is all there was time for.
Diagnostics write_order(const AskedStep& asked, const StepResult& result, OwnSchedule& order) {
  const Method by = result.simulate ? asked.method : Method::estimate;
  const EngineOptions engine{asked.scenario.sharing, asked.patience.watch()};
  Result<OwnSchedule> found = order_of_work(*asked.scenario.step, asked.fabric, asked.scenario.collectives, by, engine);
  if (!found) return found.errors();
  order = std::move(found).value();
  return {};
}

/// What was asked, and on what.
StepReport describe_step(const AskedStep& asked) {
  const Scenario& scenario = asked.scenario;
  StepReport report;
  report.machine = summary(asked.fabric);
  report.machine.library = to_string(scenario.collectives.library);
  report.scenario = scenario.name;
  report.title = scenario.title;
  report.what_if = asked.args.what_if;
  report.inputs = scenario.step;
  report.collectives = scenario.collectives;
  report.sharing = scenario.sharing;
  return report;
}

/// Marks a report that lacks something, and says what there is.
void say_partial(const AskedStep& asked, const StepRun& run, const Session& session, StepReport& report,
                 std::vector<std::string>& said) {
  const std::size_t drawn = report.faults && report.faults->jitter ? report.faults->jitter->draws.size() : 0;
  const bool is_undrawn = report.faults && report.faults->is_undrawn;
  const bool lacks_draws = is_undrawn || (drawn > 0 && drawn < static_cast<std::size_t>(asked.draws));
  report.partial = run.partial || run.folded_alone || lacks_draws;
  if (!report.partial) return;
  const bool has_jitter = first_with_jitter(asked.scenario.faults) != nullptr;
  const std::string what_there_is = run.folded_alone ? "the step was not simulated rank by rank to its end"
                                    : is_undrawn     ? "the step without the jitter, which was not drawn"
                                    : lacks_draws    ? fmt::format("{} of {} draws", drawn, asked.draws)
                                    : has_jitter     ? "the closed form alone, without the jitter"
                                                     : "the closed form alone";
  const std::string why = run.lack.empty() ? asked.patience.reason() : run.lack;
  said.push_back(fmt::format("partial: {}; {}{}", why, what_there_is, run.settings));
  say(session, {said.back()});
}

/// How far the forecast may be off, what was measured, and the limits that it is held to.
void add_measured_and_gates(const AskedStep& asked, Seconds measured, StepReport& report) {
  const MeanStep mean = [&](const Scenario& other) {
    std::optional<FaultEffect> ignored;
    return forecast_mean(other, asked.fabric, ignored, asked.patience.goes_on());
  };
  add_interval(asked.scenario, asked.fabric, mean, report);
  if (measured > Seconds{}) add_measured(asked.scenario, measured, mean, report);
  report.gates = check_gates(asked.scenario.gates, report.result);
}

}  // namespace

Result<StepReport> forecast(const ScenarioArgs& args, const Session& session, StepTimeline* timeline,
                            const Patience& patience, OwnSchedule* order) {
  Diagnostics errors;
  const auto method = parse_method(args.method, errors);
  const int draws = args.seeds.empty() ? 1 : parse_count("--seeds", args.seeds, 1, errors, most_draws).value_or(1);
  const Seconds measured = parse_measured(args.measured, errors);
  Result<Scenario> loaded = load(args, session, std::move(errors));
  if (!loaded) return loaded.errors();
  Scenario scenario = std::move(loaded).value();
  if (Diagnostics wrong = check_what_was_asked(args, scenario, order != nullptr); !wrong.empty()) return wrong;
  if (scenario.step) append(scenario.warnings, idle_gpus(scenario, scenario.step->layout.world()));
  std::vector<std::string> said = warn(session, scenario.warnings);
  Result<Fabric> fabric = build_within_memory(scenario.topology, nodes_needed(scenario), nodes_asked_at(scenario));
  if (!fabric) return fabric.errors();
  if (Diagnostics wrong = check_layout(scenario, *fabric); !wrong.empty()) return wrong;
  if (Diagnostics wrong = check_unfolded(args, scenario); !wrong.empty()) return wrong;

  const AskedStep asked{args, scenario, *fabric, patience, *method, draws};
  StepRun run;
  Result<StepResult> result = run_as_far(asked, session, timeline, run);
  if (!result) return result.errors();
  if (order != nullptr)
    if (Diagnostics wrong = write_order(asked, *result, *order); !wrong.empty()) return wrong;
  StepReport report = describe_step(asked);
  report.unfolded = std::move(run.unfolded);
  report.faults = std::move(run.effect);
  say_partial(asked, run, session, report, said);
  report.result = std::move(result).value();
  add_measured_and_gates(asked, measured, report);
  report.machine_options = machine_options(scenario, *fabric, session);
  if (!args.overlay.empty()) report.machine_options += " --overlay " + shell_word(args.overlay);
  report.policy_options = policy_options(scenario);
  report.said = std::move(said);
  return report;
}

}  // namespace collcast::cli
