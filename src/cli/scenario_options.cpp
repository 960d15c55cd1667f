#include "cli/scenario_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/collective_options.hpp"
#include "cli/values.hpp"

namespace collcast::cli {

namespace {

/// The options as the scenario layer takes them: short forms are paths into the topology.
ScenarioOptions scenario_options(const ScenarioArgs& args, const Session& session, Diagnostics& errors) {
  ScenarioOptions out;
  out.search = session.search;
  out.what_if = args.what_if;
  if (!args.topology.empty()) out.topology = args.topology;
  if (!args.nodes.empty()) out.nodes = parse_count("--nodes", args.nodes, 1, errors);
  MachineOptions values;
  values.sets = args.sets;
  out.overrides = parse_overrides(values, errors);
  const auto set_link = [&](const char* option, const char* path, const std::string& value) {
    if (!value.empty()) out.overrides.push_back({path, value, {option}});
  };
  set_link("--link-bandwidth", "topology.network.link.bandwidth", args.link_bandwidth);
  set_link("--link-latency", "topology.network.link.latency", args.link_latency);
  return out;
}

/// What the command line says about collectives, over what the scenario says.
void override_policy(const ScenarioArgs& args, CollectivePolicy& policy, Diagnostics& errors) {
  std::vector<std::string> known{"auto"};
  for (const AlgorithmInfo& info : algorithms()) known.push_back(info.name);
  if (!args.algorithm.empty() && parse_word("--algorithm", args.algorithm, known, errors))
    policy.algorithm = args.algorithm;
  const auto count = [&](const char* option, const std::string& text, int& value) {
    if (text.empty()) return;
    value = text == "auto" ? 0 : parse_count(option, text, 1, errors).value_or(0);
  };
  count("--chunks", args.chunks, policy.chunks);
  count("--channels", args.channels, policy.channels);
}

/// As many nodes as the layout needs, unless a number is given.
int nodes_needed(const Scenario& scenario) {
  if (scenario.nodes > 0 || !scenario.step) return scenario.nodes;
  for (const DeviceGroup& group : scenario.topology.devices) {
    if (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host)
      return (scenario.step->layout.world() + group.count - 1) / group.count;
  }
  return 0;
}

Result<StepResult> forecast(const Scenario& scenario, const Fabric& fabric, Method method, StepTimeline* timeline) {
  if (!scenario.step) return forecast_tasks(*scenario.tasks, fabric, timeline);
  if (Diagnostics wrong = check_step(*scenario.step, fabric.rank_count(), {scenario.file}); !wrong.empty())
    return wrong;
  return forecast_step(*scenario.step, fabric, scenario.collectives, method, timeline, {scenario.sharing});
}

}  // namespace

void add_scenario_options(CLI::App& app, ScenarioArgs& args) {
  app.add_option("SCENARIO", args.scenario, "a shipped scenario's name, or a file")->type_name("");
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
  option("--topology", args.topology, "NAME|FILE", "another machine than the scenario's", "Machine");
  option("--nodes", args.nodes, "N", "number of nodes (default: the scenario's, or what the layout needs)", "Machine");
  option("--link-bandwidth", args.link_bandwidth, "RATE", "of the network's links", "Machine");
  option("--link-latency", args.link_latency, "TIME", "of the network's links", "Machine");
  option("--algorithm", args.algorithm, "NAME", "of all collectives (default: the scenario's)", "Model");
  option("--chunks", args.chunks, "S", "of all collectives, or auto (default: the scenario's)", "Model");
  option("--channels", args.channels, "C", "of all collectives, or auto (default: the scenario's)", "Model");
  option("--method", args.method, "WORD", "estimate, simulate or both (default: both)", "Model");
  option("--library", args.library, "WORD", "ideal (default; nccl is to come)", "Model");
}

Result<StepReport> forecast(const ScenarioArgs& args, const Session& session, StepTimeline* timeline) {
  Diagnostics errors;
  if (args.scenario.empty()) {
    std::vector<std::string> known;
    for (const TopologyEntry& entry : list_scenarios(session.search)) known.push_back(entry.name);
    errors.push_back({command_line, "SCENARIO is missing: which scenario?",
                      fmt::format("expected one of: {}, or a file", fmt::join(known, ", "))});
  }
  const auto method = parse_method(args.method, errors);
  check_library(args.library, errors);
  const ScenarioOptions options = scenario_options(args, session, errors);
  CollectivePolicy asked;
  override_policy(args, asked, errors);
  if (!errors.empty()) return errors;

  Result<Scenario> loaded = load_scenario(args.scenario, options);
  if (!loaded) return loaded.errors();
  Scenario scenario = std::move(loaded).value();
  override_policy(args, scenario.collectives, errors);
  Result<Fabric> fabric = Fabric::build(scenario.topology, nodes_needed(scenario));
  if (!fabric) return fabric.errors();
  Result<StepResult> result = forecast(scenario, *fabric, *method, timeline);
  if (!result) return result.errors();

  StepReport report;
  report.machine = summary(*fabric);
  report.scenario = scenario.name;
  report.title = scenario.title;
  report.what_if = args.what_if;
  report.inputs = scenario.step;
  report.result = std::move(result).value();
  return report;
}

}  // namespace collcast::cli
