// scenarios/*.yaml -> Scenario: the file, a variant of it, the machine and kernel table that it names.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "collcast/topology/host_link.hpp"
#include "collcast/topology/switches.hpp"
#include "collcast/workload/power.hpp"
#include "collcast/workload/precisions.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

/// Whose messages go first. Each dimension once.
struct AsPriorities {
  static constexpr Holds holds = Holds::list;
  AsList<AsWord<Dimension>, Dimension> as{
      as_word<Dimension>({Dimension::tp, Dimension::cp, Dimension::ep, Dimension::pp, Dimension::dp})};
  bool operator()(Reader& reader, const Node& node, const std::string& path, std::vector<Dimension>& out) const {
    if (!as(reader, node, path, out)) return false;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (std::find(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(i), out[i]) !=
          out.begin() + static_cast<std::ptrdiff_t>(i)) {
        reader.error(node.items[i].at, fmt::format("'{}' names '{}' again", shown(path), to_string(out[i])),
                     "expected each dimension once, those first whose messages go first");
        return false;
      }
    return true;
  }
  std::string expected() const { return as.expected(); }
};

/// How messages of the dimensions share links.
struct Precedence {
  std::vector<Dimension> priorities;
  std::map<Dimension, std::uint16_t> weights;
};

void read_weights(Reader& reader, const Node& node, std::map<Dimension, std::uint16_t>& weights) {
  Object o(reader, node, "collectives.weights");
  for (const Dimension d : {Dimension::tp, Dimension::cp, Dimension::ep, Dimension::pp, Dimension::dp}) {
    int weight = 0;
    if (o.optional(to_string(d), weight, AsCount{1, std::numeric_limits<std::uint16_t>::max()}))
      weights[d] = static_cast<std::uint16_t>(weight);
  }
  o.finish();
}

/// `why_none`: why messages have no precedence in such a scenario.
void read_collectives(Reader& reader, const Node& node, Scenario& scenario, Precedence& precedence,
                      const char* why_none) {
  AsWord<std::string> algorithm{{"auto"}, {"auto"}};
  for (const AlgorithmInfo& info : algorithms()) {
    algorithm.words.push_back(info.name);
    algorithm.values.push_back(info.name);
  }
  CollectivePolicy& policy = scenario.collectives;
  Object o(reader, node, "collectives");
  scenario.library_stated = o.optional("library", policy.library, as_word<Library>({Library::ideal, Library::nccl}));
  o.optional("algorithm", policy.algorithm, algorithm);
  o.optional("chunks", policy.chunks, OrWord<AsCount, int>{{1, most_chunks}, "auto", 0});
  o.optional("channels", policy.channels, OrWord<AsCount, int>{{1, most_channels}, "auto", 0});
  o.optional("sharing", scenario.sharing, AsWord<Sharing>{{"max_min", "fifo"}, {Sharing::max_min, Sharing::fifo}});
  if (why_none != nullptr)
    for (const char* key : {"priorities", "weights"}) o.refuse(key, why_none);
  o.optional("priorities", precedence.priorities, AsPriorities{});
  if (const Node* weights = o.optional_map("weights")) read_weights(reader, *weights, precedence.weights);
  if (scenario.sharing == Sharing::fifo) o.refuse("weights", "one message has a link at a time", "sharing");
  if (scenario.library_stated && policy.library == Library::nccl) {
    const char* why = "library nccl takes it by itself";
    if (policy.algorithm != "auto") o.refuse("algorithm", why, "library");
    if (policy.chunks > 0) o.refuse("chunks", why, "library");
    if (policy.channels > 0) o.refuse("channels", why, "library");
    if (scenario.sharing == Sharing::fifo) o.refuse("sharing", "library nccl's channels share links fairly", "library");
    for (const char* key : {"priorities", "weights"})
      o.refuse(key, "of library nccl no messages are simulated", "library");
  }
  o.finish();
}

/// The one that the scenario names, else the one whose keys it has, else what people run on the machine.
void choose_library(Scenario& scenario) {
  CollectivePolicy& policy = scenario.collectives;
  LibraryClues clues{{}, policy.names_algorithm() || scenario.sharing == Sharing::fifo, false};
  if (scenario.library_stated) clues.named = policy.library;
  policy.library = chosen_library(clues, usual_library(scenario.topology));
}

/// Figures of `other` for the step's precision that `kernels` has none of, where the GPU has a rate for it.
bool fill_in(const StepInputs& step, const KernelModel& other, KernelModel& kernels) {
  const std::vector<std::string> known = step.serving ? serving_precisions() : training_precisions();
  if (std::ranges::find(known, step.options.precision) == known.end()) return false;
  bool filled = false;
  const auto fill = [&](auto& to, const auto& from, const std::string& precision) {
    const auto known_there = from.find(precision);
    if (known_there == from.end() || step.gpu.peak.count(precision) == 0) return;
    filled |= to.insert(*known_there).second;
  };
  const std::string core = core_precision(step.options);
  fill(kernels.gemm, other.gemm, linear_precision(step.options));
  fill(kernels.gemm, other.gemm, core);
  if (step.options.attention == Attention::flash) fill(kernels.attention, other.attention, core);
  return filled;
}

/// What a training step needs from its machine: compute rates and a kernel table.
void read_compute(Reader& reader, const TopologySpec& topology, const Location& asked_by, const SearchPath& search,
                  StepInputs& step) {
  step.gpu = topology.gpu;
  step.host_bandwidth = host_bandwidth(topology).value_or(Bandwidth{});
  if (topology.gpu.model.empty()) {
    reader.spoil("topology.gpu");
    return reader.error({asked_by,
                         fmt::format("machine '{}' describes no GPU, which a training step needs", topology.name),
                         "choose another machine, or describe measured work as 'tasks'"});
  }
  const bool measured = !topology.gpu.kernels.empty();
  Result<KernelModel> kernels =
      measured ? collcast::load_kernels(topology, search) : stand_in_kernels(search, asked_by);
  if (!kernels) {
    reader.spoil("topology.gpu");
    return reader.error(kernels.errors());
  }
  step.kernels = std::move(kernels).value();
  if (!measured)
    return reader.warn({asked_by,
                        fmt::format("kernels were not measured on {}, and machine '{}' names no kernel table: {}",
                                    topology.gpu.model, topology.name, stand_in_text()),
                        "measure kernels there and name their table (gpu.kernels; docs/formats.md)"});
  const Result<KernelModel> other = stand_in_kernels(search, asked_by);
  if (other && fill_in(step, *other, step.kernels))
    reader.warn({asked_by,
                 fmt::format("kernels in {} are not in the kernel table '{}' of {}: for them {}",
                             step.options.precision, step.kernels.name, topology.gpu.model, stand_in_text()),
                 ""});
}

/// That what a limit of power does is rough.
Diagnostic power_warning(const TopologySpec& topology) {
  const double share = topology.gpu.power_limit;
  return {topology.where,
          fmt::format("GPUs at {:.3g}% of their usual power (gpu.power_limit): products and attention at {:.3g} of the "
                      "clock, its cube root, which is rough; memory, links and everything else as without a limit",
                      100 * share, clock_at_power(share)),
          ""};
}

/// The value of an option that a person typed.
Location of_option(const std::string& option, const std::string& value) {
  return {fmt::format("{} {}", option, shown(value)), 1, static_cast<int>(option.size()) + 2};
}

void read_machine(Reader& reader, const Request& topology, const SearchPath& search,
                  const std::vector<Setting>& settings, Scenario& scenario) {
  Machine as_far;
  const Result<Machine> loaded = load_topology(topology, search, settings, "topology.", &as_far);
  if (!loaded) {
    // How many GPUs a node has may be known all the same; nothing else of such a machine is used.
    reader.spoil(as_far.spec.devices.empty() ? "topology" : "topology.gpu");
    scenario.topology.devices = as_far.spec.devices;
    scenario.origins.add(as_far.origins);
    return reader.error(loaded.errors());
  }
  scenario.topology = loaded->spec;
  choose_library(scenario);
  scenario.origins.add(loaded->origins);
  for (const Diagnostic& warning : switches_apart(scenario.topology)) reader.warn(warning);
  if (scenario.step) {
    StepInputs& step = *scenario.step;
    read_compute(reader, scenario.topology, topology.where, search, step);
    step.kernels = at_power(std::move(step.kernels), step.gpu.power_limit);
    if (step.gpu.power_limit < 1) reader.warn(power_warning(scenario.topology));
  }
}

StepInputs read_step(Reader& reader, Object& o, const std::string& file, const SearchPath& search) {
  StepInputs step;
  const Node* model = o.required_map("model");
  const Node* inference = o.optional_map("inference");
  std::optional<Quantization> quantized;
  if (model != nullptr)
    step.model = read_model(reader, *model, inference == nullptr, file, search.scenarios, quantized);
  step.layout = read_layout(reader, o.section("layout"), file, search.scenarios, inference != nullptr);
  if (inference != nullptr) {
    for (const char* key : {"batch", "training", "faults", "placement"})
      o.refuse(key, "the scenario is of 'inference'");
    step.serving = read_inference(reader, *inference, step.layout, step.options);
    if (quantized) warn_of_quantization(reader, *quantized, step.options.precision);
    // As models have them that were trained with some (DeepSeek-V3, GLM-4.5).
    if (const auto& drafts = step.serving->speculation;
        drafts && drafts->method == DraftMethod::mtp && model != nullptr && model->find("mtp_num_layers") == nullptr)
      step.model.mtp_layers = 1;
    step.batch.sequence = step.serving->prompt_tokens;
    step.batch.global_batch = step.serving->batch * step.layout.dp;
    return step;
  }
  if (const Node* batch = o.required_map("batch")) step.batch = read_batch(reader, *batch, step.layout);
  step.options = read_training(reader, o.section("training"));
  if (quantized) warn_of_quantized_base(reader, *quantized, step.options.lora);
  return step;
}

}  // namespace

namespace {

/// What does not fit together among the values that could be read, in a scenario that has errors of form; one without
/// is for the step to check, on the machine and with the layout that it is asked for.
Diagnostics misfits(const Scenario& scenario) {
  StepInputs in = *scenario.step;
  // What could not be read stays zero. A one divides everything, and check_step says nothing about it.
  for (int* value : {&in.model.layers, &in.model.hidden, &in.model.heads, &in.model.kv_heads, &in.model.head_dim,
                     &in.model.ffn, &in.model.vocab, &in.batch.sequence, &in.batch.global_batch})
    *value = std::max(*value, 1);
  int ranks = std::numeric_limits<int>::max();  // as many nodes as the layout needs
  for (const DeviceGroup& group : scenario.topology.devices) {
    if (scenario.nodes > 0 && (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host))
      ranks = static_cast<int>(std::min<std::int64_t>(std::int64_t{scenario.nodes} * group.count, ranks));
  }
  if (in.serving) {
    in.serving->prompt_tokens = std::max(in.serving->prompt_tokens, 1);
    in.serving->output_tokens = std::max(in.serving->output_tokens, 2);
  }
  return check_step(in, ranks, scenario.origins, scenario.ranks);
}

}  // namespace

Scenario read_scenario(Reader& reader, const Node& tree, const std::string& file, const ScenarioOptions& options,
                       const std::vector<Setting>& machine) {
  Scenario scenario;
  scenario.file = file;
  Object o(reader, tree, "");
  if (tree.kind != Node::Kind::map || !read_schema(reader, o, "collcast.scenario.v1")) return scenario;
  Request topology{"", "", {file}};
  o.required("name", scenario.name, AsName{});
  o.optional("title", scenario.title, AsText{});
  const bool has_topology = o.required("topology", topology.name_or_file, AsText{});
  o.optional("nodes", scenario.nodes, AsCount{1, most_nodes});
  Precedence precedence;
  read_collectives(reader, o.section("collectives"), scenario, precedence,
                   tree.find("tasks") != nullptr       ? "the scenario is made of 'tasks'"
                   : tree.find("inference") != nullptr ? "the messages of a batch that is served are not simulated"
                                                       : nullptr);
  if (const Node* tasks = o.optional_map("tasks")) {
    for (const char* key :
         {"model", "layout", "batch", "training", "inference", "search", "ranks", "faults", "placement"})
      o.refuse(key, "the scenario is made of 'tasks'");
    scenario.tasks = read_tasks(reader, *tasks);
  } else {
    o.optional("ranks", scenario.ranks, AsCount{1, most_job_ranks});
    scenario.step = read_step(reader, o, file, options.search);
    scenario.step->priorities = precedence.priorities;
    scenario.step->weights = precedence.weights;
    if (scenario.step->layout.own) scenario.schedule_file = scenario.step->layout.own->file;
    scenario.search = read_search(reader, o.section("search"), scenario.step->serving.has_value());
    if (!scenario.step->serving) {
      if (const Node* faults = o.optional_list("faults")) scenario.faults = read_faults(reader, *faults);
      scenario.placement = read_placement(reader, o.section("placement"));
    }
  }
  scenario.gates = read_gates(reader, o.section("gates"), scenario.step);
  for (const char* key : {"what_if", "sweep"}) o.optional_map(key);  // read before settings were applied
  o.finish();
  reader.finish();

  // The machine is read even if the scenario has errors: all of them at once.
  if (has_topology) {
    topology.where = tree.find("topology")->at.location();
    topology.folder = folder_of(topology.where, file);
  }
  if (options.topology) {
    topology = {*options.topology, "", of_option("--topology", *options.topology), options.machine};
    reader.found("topology", topology.where);
  }
  scenario.origins = Origins(tree.at.location());
  if (!topology.name_or_file.empty()) read_machine(reader, topology, options.search, machine, scenario);
  scenario.origins.add(reader.origins());
  scenario.warnings = reader.warnings();
  if (scenario.step && !reader.ok()) reader.error(misfits(scenario));
  return scenario;
}

namespace {

/// Those of the command line come after the file's.
void add_faults(Reader& reader, Node& tree, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Diagnostics errors;
  const std::vector<Node> more = fault_nodes(texts, errors);
  reader.error(errors);
  if (more.empty()) return;
  Node* list = tree.find("faults");
  if (list == nullptr) {
    Node empty;
    empty.kind = Node::Kind::list;
    empty.at = more.front().at;
    tree.entries.push_back({"faults", empty.at, std::move(empty)});
    list = &tree.entries.back().value;
  }
  if (list->kind == Node::Kind::list) list->items.insert(list->items.end(), more.begin(), more.end());
}

/// The scenario with `settings` put in; those for the machine are passed on to it.
Result<Scenario> read_with(Node tree, const std::string& file, const ScenarioOptions& options,
                           const std::vector<Setting>& settings) {
  constexpr std::string_view machine_prefix = "topology.";
  Reader reader;
  Diagnostics misplaced;
  std::vector<Setting> machine;
  for (const Setting& setting : settings) {
    if (setting.path.starts_with(machine_prefix)) {
      Location where = setting.where;
      if (where.column > 0) where.column += static_cast<int>(machine_prefix.size());
      machine.push_back({setting.path.substr(machine_prefix.size()), setting.value, std::move(where)});
      // A step runs on as many nodes as its layout needs, or as 'nodes' says.
      if (machine.back().path == "nodes.default" && tree.find("tasks") == nullptr)
        misplaced.push_back({setting.where, "'topology.nodes.default' has no effect on a step",
                             "set 'nodes' (--nodes), or leave it to the layout"});
    } else if (setting.path == "what_if" || setting.path.starts_with("what_if.")) {
      misplaced.push_back({setting.where, "'what_if' cannot be set", "set the paths themselves"});
    } else if (setting.path == "sweep" || setting.path.starts_with("sweep.")) {
      misplaced.push_back({setting.where, "'sweep' cannot be set", "expected --sweep of 'collcast step'"});
    } else {
      apply(tree, setting, misplaced);
    }
  }
  reader.error(misplaced);
  add_faults(reader, tree, options.faults);
  Scenario scenario = read_scenario(reader, tree, file, options, machine);
  if (!reader.ok()) return reader.take();
  for (const Setting& setting : machine)
    scenario.machine.push_back({setting.path, flow_text(setting.value), setting.where, {}});
  return scenario;
}

/// The settings of the variant asked for, then those of the command line.
std::vector<Setting> chosen_settings(Reader& reader, const Node& tree, const ScenarioOptions& options,
                                     const std::vector<Variant>& variants) {
  std::vector<Setting> settings;
  std::vector<std::string> names;
  bool found = options.what_if.empty();
  for (const Variant& variant : variants) {
    names.push_back(variant.name);
    if (variant.name != options.what_if || found) continue;
    settings = variant.settings;
    found = true;
  }
  const Node* what_if = tree.find("what_if");
  if (!found)
    reader.error({(what_if == nullptr ? tree : *what_if).at.location(),
                  fmt::format("there is no what_if '{}'", shown(options.what_if)),
                  names.empty() ? "this scenario has none" : expected_one_of(options.what_if, names)});
  const auto overrides = to_settings(options.overrides);
  if (!overrides) {
    reader.error(overrides.errors());
    return settings;
  }
  settings.insert(settings.end(), overrides->begin(), overrides->end());
  return settings;
}

/// Every variant must be good, also those that nobody asked for today; what the command line adds is no part of them.
Diagnostics check_variants(const Node& tree, const std::string& file, const ScenarioOptions& options,
                           const std::vector<Variant>& variants, const Diagnostics& already_said) {
  std::set<std::string> said;
  for (const Diagnostic& d : already_said) said.insert(to_text(d.where) + d.message);
  Diagnostics errors;
  ScenarioOptions own = options;
  own.faults.clear();
  if (tree.find("topology") != nullptr) own.topology.reset();
  for (const Variant& variant : variants) {
    const Result<Scenario> scenario = read_with(tree, file, own, variant.settings);
    if (scenario) continue;
    for (Diagnostic d : scenario.errors()) {
      if (said.count(to_text(d.where) + d.message) > 0) continue;
      d.message = fmt::format("what_if '{}': {}", shown(variant.name), d.message);
      errors.push_back(std::move(d));
    }
  }
  return errors;
}

/// Swept values that no other value can make right, each read alone; what does not fit together is of the points. A
/// path that is set stays as it was set.
Diagnostics check_values(const Node& tree, const std::string& file, const ScenarioOptions& options,
                         const std::vector<Setting>& settings, const std::vector<SweepAxis>& axes,
                         const Diagnostics& already_said) {
  std::set<std::string> said;
  for (const Diagnostic& d : already_said) said.insert(to_text(d.where) + d.message);
  Diagnostics errors;
  if (points_of(axes) > most_sweep_points) return errors;  // which is said
  for (const SweepAxis& axis : axes) {
    if (std::ranges::any_of(settings, [&](const Setting& set) { return paths_meet(set.path, axis.path); })) continue;
    for (const SweepValue& value : axis.values) {
      const Result<std::vector<Setting>> swept = to_settings({{axis.path, value.yaml, axis.where, value.where}});
      if (!swept) {
        append(errors, swept.errors());
        continue;
      }
      std::vector<Setting> all = settings;
      all.push_back(swept->front());
      const Result<Scenario> scenario = read_with(tree, file, options, all);
      for (const Diagnostic& d : scenario.errors())
        if (d.in_itself && said.insert(to_text(d.where) + d.message).second) errors.push_back(d);
    }
  }
  return errors;
}

}  // namespace

}  // namespace collcast::input

namespace collcast {

Result<Scenario> parse_scenario(std::string_view text, std::string_view file_name, const ScenarioOptions& options) {
  const std::string file(file_name);
  const Result<input::Node> tree = input::parse_yaml(text, file);
  if (!tree) return tree.errors();
  input::Reader reader;
  reader.error(repeated_keys(*tree));
  std::vector<input::Variant> variants;
  if (const input::Node* what_if = tree->find("what_if")) variants = input::read_variants(reader, *what_if);
  std::vector<SweepAxis> sweep;
  if (const input::Node* axes = tree->find("sweep")) sweep = input::read_sweep(reader, *axes);
  const std::vector<input::Setting> settings = input::chosen_settings(reader, *tree, options, variants);
  Result<Scenario> scenario = input::read_with(*tree, file, options, settings);
  const Diagnostics errors = scenario.errors();
  reader.error(errors);
  // Overrides may take away what a variant builds on; then only the chosen one counts.
  if (options.overrides.empty()) reader.error(input::check_variants(*tree, file, options, variants, errors));
  reader.error(input::check_values(*tree, file, options, settings,
                                   options.checks_values_of_sweep ? sweep : options.sweep, errors));
  if (!reader.ok()) return reader.take();
  Scenario chosen = std::move(scenario).value();
  for (const input::Variant& variant : variants) chosen.what_if.push_back(variant.name);
  for (const input::Setting& setting : settings) chosen.settings.push_back(setting.path);
  chosen.sweep = std::move(sweep);
  return chosen;
}

Result<Scenario> load_scenario(const std::string& name_or_file, const ScenarioOptions& options) {
  const Location where{"command line"};
  const Result<std::string> file = input::find_file({name_or_file, "", where}, options.search.scenarios, "scenario");
  if (!file) return file.errors();
  const Result<std::string> text = read_file(*file, where);
  if (!text) return text.errors();
  return parse_scenario(*text, *file, options);
}

}  // namespace collcast
