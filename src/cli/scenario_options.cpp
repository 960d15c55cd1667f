#include "cli/scenario_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "cli/collective_options.hpp"
#include "cli/inputs.hpp"
#include "cli/named_scenario.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/step_interval.hpp"
#include "cli/step_measured.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"
#include "collcast/engine/footprint.hpp"
#include "collcast/workload/nearest_layout.hpp"

namespace collcast::cli {

namespace {

/// The options as the scenario layer takes them: short forms are paths into the topology.
ScenarioOptions scenario_options(const ScenarioArgs& args, const Session& session, Diagnostics& errors) {
  ScenarioOptions out;
  out.search = session.search;
  out.what_if = args.what_if;
  out.faults = args.faults;
  if (!args.topology.empty()) out.topology = args.topology;
  MachineOptions values;
  values.sets = args.sets;
  values.link_bandwidth = args.link_bandwidth;
  values.link_latency = args.link_latency;
  out.overrides = parse_overrides(values, "topology.", errors);
  out.overrides.insert(out.overrides.end(), args.swept.begin(), args.swept.end());
  for (const auto& [option, path, value] :
       {std::tuple<const char*, const char*, const std::string&>{"--nodes", "nodes", args.nodes},
        {"--ranks", "ranks", args.ranks},
        {"--gpus", "ranks", args.gpus},
        {"--topology", "topology", args.topology},
        {"--algorithm", "collectives.algorithm", args.algorithm},
        {"--chunks", "collectives.chunks", args.chunks},
        {"--channels", "collectives.channels", args.channels},
        {"--sharing", "collectives.sharing", args.sharing}})
    check_contradiction(option, value, path, out.overrides, errors);
  // Over what is set this option goes, but a row of a sweep is called by what it sets.
  check_contradiction("--library", args.library, "collectives.library", args.swept, errors);
  if (!args.ranks.empty() && !args.gpus.empty())
    errors.push_back({command_line, "--ranks and --gpus are the same option", "expected one of the two"});
  // From here on a number of the command line is a setting like any other.
  for (const auto& [option, path, value, most] :
       {std::tuple<const char*, const char*, const std::string&, int>{"--nodes", "nodes", args.nodes, most_nodes},
        {"--ranks", "ranks", args.ranks, most_job_ranks},
        {"--gpus", "ranks", args.gpus, most_job_ranks}}) {
    if (value.empty() || !parse_count(option, value, 1, errors, most)) continue;
    const Location where = typed(option, value);
    out.overrides.push_back({path, value, {where.file, 1, 1}, where});
  }
  return out;
}

/// What the command line says about collectives, over what the scenario says.
void override_policy(const ScenarioArgs& args, CollectivePolicy& policy, Diagnostics& errors) {
  std::vector<std::string> known{"auto"};
  for (const AlgorithmInfo& info : algorithms()) known.push_back(info.name);
  if (!args.algorithm.empty() && parse_word("--algorithm", args.algorithm, known, errors))
    policy.algorithm = args.algorithm;
  if (!args.chunks.empty()) policy.chunks = parse_auto_or_count("--chunks", args.chunks, most_chunks, errors);
  if (!args.channels.empty()) policy.channels = parse_auto_or_count("--channels", args.channels, most_channels, errors);
}

/// --library; else the scenario's, or where it names none, the one whose options are given or that the overlay is of.
Library library_of(const ScenarioArgs& args, const Scenario& scenario, const Session& session, Diagnostics& errors) {
  const CollectivePolicy& policy = scenario.collectives;
  LibraryClues clues{parse_library(args.library, errors)};
  if (!clues.named && scenario.library_stated) clues.named = policy.library;
  clues.of_ideal = any_of_links(scenario.faults) || scenario.placement.any() || args.unfolded ||
                   policy.names_algorithm() || args.sharing == "fifo" || scenario.sharing == Sharing::fifo;
  clues.of_nccl = !args.env.empty();
  Library usual = usual_library(scenario.topology);
  if (!args.overlay.empty())
    if (const Result<Overlay> overlay = read_overlay(args.overlay, session))
      usual = library_with(*overlay, scenario.topology.name, usual);
  return chosen_library(clues, usual);
}

/// As many nodes as the job needs, unless a number is given.
int nodes_needed(const Scenario& scenario) {
  if (scenario.nodes > 0 || !scenario.step) return scenario.nodes;
  for (const DeviceGroup& group : scenario.topology.devices) {
    if (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host)
      return (std::max(scenario.ranks, scenario.step->layout.world()) + group.count - 1) / group.count;
  }
  return 0;
}

/// Nor does NCCL's model know ways between nodes one by one.
void check_placement(Scenario& scenario, Diagnostics& errors) {
  const Placement& placement = scenario.placement;
  if (!placement.any()) return;
  if (scenario.collectives.library == Library::nccl)
    errors.push_back({placement.where, "a placement has no effect on library nccl, which knows no single ways",
                      "expected library ideal (--library ideal)"});
  else if (usual_library(scenario.topology) == Library::nccl && !scenario.library_stated)
    scenario.warnings.push_back({placement.where,
                                 "library nccl knows no single ways: this step's collectives are the textbook's, as "
                                 "placed and in the machine's order",
                                 "--library ideal says that it is meant"});
}

/// NCCL's model knows what a machine's description says of each kind of link, not single links.
void check_faults(Scenario& scenario, Diagnostics& errors) {
  check_placement(scenario, errors);
  for (const MachineFault& fault : scenario.faults) {
    if (fault.link() == nullptr) continue;
    if (scenario.collectives.library == Library::nccl) {
      errors.push_back({fault.where, "a fault of a link has no effect on library nccl, which knows no single links",
                        "expected library ideal (--library ideal), or a fault of a GPU"});
    } else if (usual_library(scenario.topology) == Library::nccl && !scenario.library_stated) {
      scenario.warnings.push_back({fault.where,
                                   "library nccl knows no single links: this step's collectives are the textbook's, "
                                   "with and without the faults",
                                   "--library ideal says that it is meant"});
      return;
    }
  }
}

/// NCCL takes algorithms, chunks and channels by itself, and has variables.
void check_library_options(const ScenarioArgs& args, Scenario& scenario, Diagnostics& errors) {
  CollectivePolicy& policy = scenario.collectives;
  const std::vector<nccl::Setting> settings = parse_env(args.env, policy.library, errors);
  Result<nccl::Environment> environment = nccl::read_environment(settings);
  if (environment)
    environment = nccl::of_job(std::move(environment).value(), scenario.topology, nodes_needed(scenario));
  append(errors, environment.errors());
  if (environment && scenario.step) scenario.step->nccl_buffers = NcclBuffers(*environment);
  if (policy.library == Library::ideal) return;
  if (environment) policy.environment = std::move(environment).value();
  const bool from_file = args.algorithm.empty() && args.chunks.empty() && args.channels.empty();
  if (from_file && policy.names_algorithm())
    scenario.warnings.push_back({scenario.origins.of("collectives.algorithm"),
                                 "the scenario's algorithm, chunks or channels have no effect on library nccl",
                                 "leave out --library nccl, or them"});
  append(scenario.warnings, warnings(policy.environment, nodes_needed(scenario), scenario.topology));
  if (const auto names = unused(policy.environment, scenario.topology); !names.empty())
    scenario.warnings.push_back(
        {command_line, fmt::format("no effect on this forecast: {}", fmt::join(names, ", ")), ""});
  const auto refuse = [&](const std::string& value, const char* option, const char* hint) {
    if (!value.empty() && value != "auto")
      errors.push_back({typed(option, value), fmt::format("{} has no effect on library nccl", option), hint});
  };
  refuse(args.algorithm, "--algorithm", "expected --env NCCL_ALGO=Ring and the like, or none");
  refuse(args.chunks, "--chunks", "expected --env NCCL_BUFFSIZE=BYTES, or none");
  refuse(args.channels, "--channels", "expected --env NCCL_MAX_NCHANNELS=C, or none");
  refuse(args.sharing == "fifo" ? args.sharing : "", "--sharing", "remove it");
}

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
  std::string machine = scenario.topology.file;
  for (const TopologyEntry& entry : list_topologies(session.search))
    if (entry.file == scenario.topology.file) machine = entry.name;
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

/// The layout in the GPUs that the job has.
Diagnostics check_layout(const Scenario& scenario, const Fabric& fabric) {
  Diagnostics wrong = check_ranks(scenario, fabric);
  if (scenario.ranks == 0 || !scenario.step || scenario.step->layout.world() <= scenario.ranks) return wrong;
  const int needed = scenario.step->layout.world(), there = std::min(scenario.ranks, fabric.rank_count());
  std::string hint = fmt::format("use ranks {}, or a smaller layout", needed);
  if (const std::string nearest = nearest_layout(*scenario.step, there, scenario.origins); !nearest.empty())
    hint += "; the nearest layout that works: " + nearest;
  wrong.push_back({scenario.origins.of("ranks"),
                   fmt::format("the layout needs {} GPUs, ranks is {}", needed, scenario.ranks), std::move(hint)});
  return wrong;
}

/// Puts a calibration into the scenario's machine, and in front of its collectives.
void calibrate(const ScenarioArgs& args, const Session& session, Scenario& scenario, Diagnostics& errors) {
  if (!scenario.step) {
    errors.push_back(
        {command_line, "--overlay has no effect on a scenario of tasks", "its times are given; remove the option"});
    return;
  }
  const std::optional<Calibration> by = load_calibration(
      args.overlay, scenario.topology.name, scenario.collectives.library, args.overlay_may_lack, session, errors);
  if (!by) return;
  append(scenario.warnings, overlay_warnings(args.overlay, *by, scenario.topology, scenario.machine));
  scenario.topology = calibrated(std::move(scenario.topology), *by);
  scenario.collectives.base_latency = by->base_latency;
  scenario.spread = spread_of(*by);
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

}  // namespace

void add_fault_option(CLI::App& app, std::vector<std::string>& faults, const char* text) {
  app.add_option("--fault", faults, text)->type_name("FAULT")->allow_extra_args(false)->group("Machine");
}

void add_scenario_options(CLI::App& app, ScenarioArgs& args) {
  app.add_option("SCENARIO", args.scenario, "a shipped scenario's name, a file, or - for standard input")
      ->type_name("");
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text, const char* group) {
    app.add_option(name, value, text)->type_name(type)->group(group);
  };
  option("--what-if", args.what_if, "NAME", "a variant of the scenario", "Scenario");
  app.add_option(
         "--set", args.sets,
         "change one value for this run, such as layout.tp=4 or topology.network.link.bandwidth=800Gb/s (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->group("Scenario");
  option("--topology", args.topology, "NAME|FILE", "another machine than the scenario's; - is a file on standard input",
         "Machine");
  option("--nodes", args.nodes, "N",
         "number of nodes, as --set nodes=N (default: the scenario's, or what the layout needs)", "Machine");
  option("--ranks", args.ranks, "K", "the first K GPUs, as --set ranks=K (default: the scenario's, or the layout's)",
         "Machine");
  option("--link-bandwidth", args.link_bandwidth, "RATE", "of the network's links", "Machine");
  option("--link-latency", args.link_latency, "TIME", "of the network's links", "Machine");
  option("--overlay", args.overlay, "FILE", "a calibration of the machine, by 'collcast calibrate'", "Machine");
  option("--algorithm", args.algorithm, "NAME", "of all collectives, of library ideal (default: the scenario's)",
         "Model");
  option("--chunks", args.chunks, "S", "of all collectives, or auto; of library ideal (default: the scenario's)",
         "Model");
  option("--channels", args.channels, "C", "of all collectives, or auto; of library ideal (default: the scenario's)",
         "Model");
  option("--method", args.method, "WORD", "estimate, simulate or both (default: both)", "Model");
  option("--sharing", args.sharing, "WORD", "links in the simulation: max_min or fifo (default: the scenario's)",
         "Model");
  option("--library", args.library, "WORD",
         "of all collectives: nccl, as NCCL runs them, or ideal, the textbook (default: the scenario's, else nccl on "
         "NVIDIA GPUs, ideal elsewhere and with options that only it has)",
         "Model");
  add_env_option(app, args.env);
}

Result<Scenario> load(const ScenarioArgs& args, const Session& session, Diagnostics errors) {
  if (args.scenario.empty()) {
    std::vector<std::string> known;
    for (const TopologyEntry& entry : list_scenarios(session.search)) known.push_back(entry.name);
    errors.push_back({command_line, "SCENARIO is missing: which scenario?",
                      fmt::format("expected one of: {}, a file, or -; 'collcast step --list' says what they are",
                                  fmt::join(known, ", "))});
  }
  const ScenarioOptions options = scenario_options(args, session, errors);
  CollectivePolicy asked;
  override_policy(args, asked, errors);
  parse_library(args.library, errors);
  const auto sharing = args.sharing.empty() ? std::nullopt : parse_sharing(args.sharing, errors);
  if (sharing == Sharing::fifo && args.method == "estimate")
    errors.push_back({command_line, "--sharing fifo has no effect on --method estimate",
                      "the closed form always has fair shares; expected --method simulate or both"});
  if (!errors.empty()) return errors;

  Result<Scenario> loaded = load_named(args, options);
  if (!loaded) return loaded.errors();
  Scenario scenario = std::move(loaded).value();
  override_policy(args, scenario.collectives, errors);
  scenario.collectives.library = library_of(args, scenario, session, errors);
  check_library_options(args, scenario, errors);
  scenario.library_stated = scenario.library_stated || !args.library.empty();
  check_faults(scenario, errors);
  if (!scenario.step && !args.env.empty())
    errors.push_back(
        {command_line, "--env has no effect on a scenario of tasks", "its times are given; remove the option"});
  if (!scenario.step)
    for (const auto& [option, value] : {std::pair<const char*, const std::string&>{"--algorithm", args.algorithm},
                                        {"--chunks", args.chunks},
                                        {"--channels", args.channels},
                                        {"--library", args.library}})
      if (!value.empty())
        errors.push_back({command_line, fmt::format("{} has no effect on a scenario of tasks", option),
                          "its times are given; remove the option"});
  std::vector<std::string> inputs = files_of_machine(scenario.topology);
  inputs.insert(inputs.end(),
                {scenario.file, scenario.origins.of("model.hidden").file, scenario.schedule_file, args.overlay});
  if (scenario.step)
    for (std::string& file : files_of_kernels(scenario.step->kernels)) inputs.push_back(std::move(file));
  append(errors, check_overwriting(inputs, args.outputs));
  if (!args.overlay.empty()) calibrate(args, session, scenario, errors);
  if (!errors.empty()) return errors;
  if (sharing) scenario.sharing = *sharing;
  if (scenario.step && args.unfolded && scenario.sharing == Sharing::fifo && !scenario.step->weights.empty())
    scenario.warnings.push_back({scenario.origins.of("collectives.weights"),
                                 "weights have no effect on sharing fifo, where messages go one after the other",
                                 "expected sharing max_min, or no weights"});
  if (scenario.step && !args.unfolded && !(scenario.step->priorities.empty() && scenario.step->weights.empty()))
    scenario.warnings.push_back(
        {scenario.origins.of(scenario.step->priorities.empty() ? "collectives.weights" : "collectives.priorities"),
         "priorities and weights have no effect here: collectives are timed one by one",
         "'collcast step --unfolded' has messages that meet"});
  if (!args.sweeps && !scenario.sweep.empty())
    scenario.warnings.push_back({scenario.sweep.front().where, "the scenario's sweep has no effect here",
                                 "'collcast step' runs it, and --set sets one of its points"});
  if (!args.algorithm.empty()) scenario.origins.set("collectives.algorithm", typed("--algorithm", args.algorithm));
  if (!args.library.empty()) scenario.origins.set("collectives.library", typed("--library", args.library));
  return scenario;
}

Diagnostics idle_gpus(const Scenario& scenario, int gpus) {
  int machine = 0;  // beyond its GPUs with_faults() has an error
  for (const DeviceGroup& group : scenario.topology.devices)
    if (group.kind == DeviceKind::gpu) machine += group.count;
  machine *= nodes_needed(scenario);
  Diagnostics out;
  for (const MachineFault& fault : scenario.faults)
    if (fault.gpu() != nullptr && scenario.step && !scenario.placement.any() && !fault.gpu()->gpus.of_nodes &&
        fault.gpu()->gpus.first >= gpus && fault.gpu()->gpus.last < machine)
      out.push_back(
          {fault.where,
           fmt::format("GPU {} has no part in a job of {}, and its fault no effect", fault.gpu()->gpus.first, gpus),
           ""});
  return out;
}

Location nodes_asked_at(const Scenario& scenario) {
  if (scenario.nodes > 0) return scenario.origins.of("nodes");
  if (!scenario.step) return {};
  return scenario.origins.of(scenario.ranks > scenario.step->layout.world() ? "ranks" : "layout");
}

Diagnostics check_ranks(const Scenario& scenario, const Fabric& fabric) {
  if (scenario.ranks <= fabric.rank_count()) return {};
  const int needed = (scenario.ranks + fabric.ranks_per_node() - 1) / fabric.ranks_per_node();
  return {{scenario.origins.of("ranks"),
           fmt::format("ranks is {}, '{}' with nodes {} has {} GPUs", scenario.ranks, scenario.topology.name,
                       fabric.nodes(), fabric.rank_count()),
           fmt::format("use nodes {}, or fewer ranks", needed)}};
}

namespace {

/// Above 0; 0 where it is not given.
Seconds parse_measured(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return {};
  const Parsed<Seconds> read = parse_seconds(text);
  if (read.ok && read.value > Seconds{}) return read.value;
  errors.push_back({typed("--measured", text), fmt::format("'{}' is no time that a step takes", shown(text)),
                    "expected a time above 0, such as 17.2s"});
  return {};
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
  if (!args.measured.empty() && (!scenario.step || scenario.step->serving))
    return Diagnostic{typed("--measured", args.measured), "--measured is the time of a training step",
                      "expected a scenario with a model and a batch, or no --measured"};
  if (scenario.step) append(scenario.warnings, idle_gpus(scenario, scenario.step->layout.world()));
  if (order != nullptr && (!scenario.step || scenario.step->serving))
    return Diagnostic{command_line, "--write-schedule has no effect on a scenario without a pipeline that trains",
                      "expected a scenario with a model and a batch"};
  if (order != nullptr && from_both_ends(scenario.step->layout.schedule))
    return Diagnostic{command_line,
                      "--write-schedule: a file has no place for micro-batches from both ends of dualpipe",
                      "expected schedule dualpipe-v, or no --write-schedule"};
  const bool has_jitter = first_with_jitter(scenario.faults) != nullptr;
  if (!args.seeds.empty() && !has_jitter)
    return Diagnostics{{typed("--seeds", args.seeds), "nothing is drawn: no fault of this step has jitter",
                        "expected a jitter, as --fault 'gpu: all, jitter: 3%', or no --seeds"}};
  std::vector<std::string> said = warn(session, scenario.warnings);
  Result<Fabric> fabric = build_within_memory(scenario.topology, nodes_needed(scenario), nodes_asked_at(scenario));
  if (!fabric) return fabric.errors();
  if (Diagnostics wrong = check_layout(scenario, *fabric); !wrong.empty()) return wrong;
  if (Diagnostics wrong = check_unfolded(args, scenario); !wrong.empty()) return wrong;
  std::optional<FaultEffect> effect;
  Known known;
  StepReport report;
  std::string lack;
  Result<StepResult> result = [&]() -> Result<StepResult> {
    Progress progress(session, args.unfolded ? 2 : 1);
    progress.begin(fmt::format("{} simulation", scenario.name));
    if (!args.unfolded)
      return forecast(scenario, *fabric, *method, timeline, engine_of(scenario, patience, progress), draws, effect,
                      patience.goes_on(), known);
    Result<StepWithUnfolded> both = forecast_unfolded(scenario, *fabric, timeline, patience, progress, lack);
    if (!both) return both.errors();
    report.unfolded = both->unfolded;
    effect = std::move(both->effect);
    return std::move(both).value().result;
  }();
  const bool is_folded_alone = result && args.unfolded && !report.unfolded;
  const bool is_ended = !result && patience.has_ended_work();
  const bool is_beyond = !result && !is_ended && is_of_simulation(result.errors());
  if ((is_ended || is_beyond) && *method == Method::both && !args.must_simulate) {
    Result<StepResult> closed = known.by_formula ? Result<StepResult>(std::move(*known.by_formula))
                                                 : forecast_mean(scenario, *fabric, effect, patience.goes_on());
    report.partial = closed.ok();
    if (closed && is_beyond) lack = fmt::format("not simulated: {}", result.errors().front().message);
    if (closed) result = std::move(closed);
  }
  if (!result && is_ended) return unfinished(*method, patience, known);
  const std::string settings = is_beyond ? settings_text(args.sets, args.swept) : std::string();
  if (!result) {
    Diagnostics wrong = result.errors();
    wrong.front().hint += settings;
    return wrong;
  }
  if (order != nullptr) {
    // As of the result: the closed form's where that is all there was time for.
    const Method by = result->simulate ? *method : Method::estimate;
    const EngineOptions engine{scenario.sharing, patience.watch()};
    Result<OwnSchedule> found = order_of_work(*scenario.step, *fabric, scenario.collectives, by, engine);
    if (!found) return found.errors();
    *order = std::move(found).value();
  }
  report.machine = summary(*fabric);
  report.machine.library = to_string(scenario.collectives.library);
  report.scenario = scenario.name;
  report.title = scenario.title;
  report.what_if = args.what_if;
  report.inputs = scenario.step;
  report.collectives = scenario.collectives;
  report.sharing = scenario.sharing;
  report.faults = std::move(effect);
  const std::size_t drawn = report.faults && report.faults->jitter ? report.faults->jitter->draws.size() : 0;
  const bool is_undrawn = report.faults && report.faults->is_undrawn;
  const bool lacks_draws = is_undrawn || (drawn > 0 && drawn < static_cast<std::size_t>(draws));
  if (is_folded_alone || lacks_draws) report.partial = true;
  if (report.partial) {
    const std::string what_there_is = is_folded_alone ? "the step was not simulated rank by rank to its end"
                                      : is_undrawn    ? "the step without the jitter, which was not drawn"
                                      : lacks_draws   ? fmt::format("{} of {} draws", drawn, draws)
                                      : has_jitter    ? "the closed form alone, without the jitter"
                                                      : "the closed form alone";
    const std::string why = lack.empty() ? patience.reason() : lack;
    const std::string text = fmt::format("partial: {}; {}{}", why, what_there_is, settings);
    said.push_back(text);
    say(session, {text});
  }
  report.result = std::move(result).value();
  const MeanStep mean = [&](const Scenario& other) {
    std::optional<FaultEffect> ignored;
    return forecast_mean(other, *fabric, ignored, patience.goes_on());
  };
  add_interval(scenario, mean, report);
  if (measured > Seconds{}) add_measured(scenario, measured, mean, report);
  report.gates = check_gates(scenario.gates, report.result);
  report.machine_options = machine_options(scenario, *fabric, session);
  if (!args.overlay.empty()) report.machine_options += " --overlay " + shell_word(args.overlay);
  report.policy_options = policy_options(scenario);
  report.said = std::move(said);
  return report;
}

}  // namespace collcast::cli
