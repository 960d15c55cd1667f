#include "cli/scenario_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "cli/collective_options.hpp"
#include "cli/inputs.hpp"
#include "cli/named_scenario.hpp"
#include "cli/step_interval.hpp"
#include "cli/values.hpp"

namespace collcast::cli {

namespace {

/// The options as the scenario layer takes them: short forms are paths into the topology.
ScenarioOptions scenario_options(const ScenarioArgs& args, const Session& session, Diagnostics& errors) {
  ScenarioOptions out;
  out.search = session.search;
  out.what_if = args.what_if;
  out.faults = args.faults;
  out.sweep = args.axes;
  out.checks_values_of_sweep = args.runs_own_sweep;
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
  if (const auto names = unused(policy.environment, nodes_needed(scenario), scenario.topology); !names.empty())
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
  scenario.fitted_to = by->range;
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

namespace {

void refuse_no_scenario(const Session& session, Diagnostics& errors) {
  std::vector<std::string> known;
  for (const TopologyEntry& entry : list_scenarios(session.search)) known.push_back(entry.name);
  errors.push_back({command_line, "SCENARIO is missing: which scenario?",
                    fmt::format("expected one of: {}, a file, or -; 'collcast step --list' says what they are",
                                fmt::join(known, ", "))});
}

/// Options of collectives beside a scenario of tasks, which has none.
void refuse_options_of_steps(const ScenarioArgs& args, Diagnostics& errors) {
  const auto refuse = [&](const char* option, bool given) {
    if (given)
      errors.push_back({command_line, fmt::format("{} has no effect on a scenario of tasks", option),
                        "its times are given; remove the option"});
  };
  refuse("--env", !args.env.empty());
  refuse("--algorithm", !args.algorithm.empty());
  refuse("--chunks", !args.chunks.empty());
  refuse("--channels", !args.channels.empty());
  refuse("--library", !args.library.empty());
}

/// The files that were read for it, which no output may be.
std::vector<std::string> files_of_scenario(const Scenario& scenario, const ScenarioArgs& args) {
  std::vector<std::string> out = files_of_machine(scenario.topology);
  out.insert(out.end(),
             {scenario.file, scenario.origins.of("model.hidden").file, scenario.schedule_file, args.overlay});
  if (scenario.step)
    for (std::string& file : files_of_kernels(scenario.step->kernels)) out.push_back(std::move(file));
  return out;
}

/// What the scenario says that this command does not follow.
void warn_of_no_effect(const ScenarioArgs& args, Scenario& scenario) {
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
}

}  // namespace

Result<Scenario> load(const ScenarioArgs& args, const Session& session, Diagnostics errors) {
  if (args.scenario.empty()) refuse_no_scenario(session, errors);
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
  if (!scenario.step) refuse_options_of_steps(args, errors);
  append(errors, check_overwriting(files_of_scenario(scenario, args), args.outputs));
  if (!args.overlay.empty()) calibrate(args, session, scenario, errors);
  if (!errors.empty()) return errors;
  if (sharing) scenario.sharing = *sharing;
  warn_of_no_effect(args, scenario);
  if (!args.algorithm.empty()) scenario.origins.set("collectives.algorithm", typed("--algorithm", args.algorithm));
  if (!args.library.empty()) scenario.origins.set("collectives.library", typed("--library", args.library));
  return scenario;
}

int nodes_needed(const Scenario& scenario) {
  if (scenario.nodes > 0 || !scenario.step) return scenario.nodes;
  for (const DeviceGroup& group : scenario.topology.devices) {
    if (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host)
      return (std::max(scenario.ranks, scenario.step->layout.world()) + group.count - 1) / group.count;
  }
  return 0;
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

}  // namespace collcast::cli
