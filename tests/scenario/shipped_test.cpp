// Every file that is shipped is good, says what it stands for, and can be built.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <set>

#include "collcast/topology/fabric.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

std::set<std::string> names(const std::vector<TopologyEntry>& entries) {
  std::set<std::string> out;
  for (const TopologyEntry& e : entries) out.insert(e.name);
  return out;
}

}  // namespace

TEST_CASE("every shipped machine loads under its own name and routes") {
  const std::vector<TopologyEntry> machines = list_topologies(samples::shipped());
  for (const char* name : {"ring", "star", "mesh", "dgx-a100", "dgx-h100", "pcie-a100", "ethernet-hosts"})
    CHECK(names(machines).count(name) == 1);
  std::set<std::string> systems;
  for (const TopologyEntry& machine : machines) {
    INFO(machine.name);
    const auto spec = load_topology(machine.name, samples::shipped());
    REQUIRE(to_text(spec.errors()) == "");
    CHECK(spec->name == machine.name);
    CHECK(spec->title == machine.title);
    CHECK_FALSE(spec->title.empty());
    CHECK((spec->teaching || !spec->sources.empty()));
    for (const std::string& system : spec->systems) CHECK(systems.insert(system).second);  // a system is one machine
    const auto fabric = Fabric::build(*spec);
    CHECK(to_text(fabric.errors()) == "");
    const bool joined = !std::holds_alternative<std::monostate>(spec->network) && spec->max_nodes != 1;
    if (joined) CHECK(to_text(Fabric::build(*spec, 2).errors()) == "");
  }
}

TEST_CASE("a GPU's kernel table is shipped with it") {
  for (const TopologyEntry& machine : list_topologies(samples::shipped())) {
    const TopologySpec spec = load_topology(machine.name, samples::shipped()).value();
    if (spec.gpu.model.empty()) continue;
    INFO(machine.name);
    CHECK(to_text(load_kernels(spec.gpu.kernels, samples::shipped()).errors()) == "");
  }
}

TEST_CASE("every shipped kernel table loads under its own name") {
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(COLLCAST_SOURCE_DIR "/topologies/kernels")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path());
    const auto model = load_kernels(entry.path().stem().string(), samples::shipped());
    REQUIRE(to_text(model.errors()) == "");
    CHECK(model->name == entry.path().stem());
    ++tables;
  }
  CHECK(tables > 0);
}

TEST_CASE("DGX: eight GPUs, per GPU the NVLink rate of the data sheet and one rail") {
  // A100: 12 links x 25 GB/s; HDR 200 Gb/s = 25 GB/s. H100: 18 x 25 GB/s; NDR 400 Gb/s = 50 GB/s.
  struct Expected {
    const char* name;
    double nvlink, port;
  };
  for (const Expected& e : {Expected{"dgx-a100", 12 * 25e9, 25e9}, Expected{"dgx-h100", 18 * 25e9, 50e9}}) {
    const Fabric fabric = Fabric::build(load_topology(e.name, samples::shipped()).value(), 2).value();
    CHECK(fabric.ranks_per_node() == 8);
    CHECK(fabric.nics_per_node() == 8);
    CHECK(fabric.path(Rank(0), Rank(7)).bandwidth == Bandwidth(e.nvlink));
    CHECK(fabric.path(Rank(0), Rank(8)).bandwidth == Bandwidth(e.port));
  }
}

TEST_CASE("every shipped scenario loads under its own name, in every variant") {
  const std::vector<TopologyEntry> scenarios = list_scenarios(samples::shipped());
  for (const char* name : {"overlap-175b-layer", "korthikanti-22b-layer", "gpt3-512gpu", "llama3-70b-64xh100"})
    CHECK(names(scenarios).count(name) == 1);
  for (const TopologyEntry& entry : scenarios) {
    INFO(entry.name);
    ScenarioOptions options;
    options.search = samples::shipped();
    const auto base = load_scenario(entry.name, options);
    REQUIRE(to_text(base.errors()) == "");
    CHECK(base->name == entry.name);
    CHECK_FALSE(base->title.empty());
    for (const std::string& variant : base->what_if) {
      options.what_if = variant;
      CHECK(to_text(load_scenario(entry.name, options).errors()) == "");
    }
  }
}

TEST_CASE("layouts fill the nodes that their scenario names, in every variant") {
  for (const TopologyEntry& entry : list_scenarios(samples::shipped())) {
    ScenarioOptions options;
    options.search = samples::shipped();
    std::vector<std::string> variants = load_scenario(entry.name, options).value().what_if;
    variants.emplace_back();
    for (const std::string& variant : variants) {
      options.what_if = variant;
      const Scenario s = load_scenario(entry.name, options).value();
      if (!s.step) continue;
      INFO(entry.name << " " << variant);
      CHECK(s.step->layout.world() == s.nodes * Fabric::build(s.topology, s.nodes).value().ranks_per_node());
      CHECK(s.step->batch.global_batch % (s.step->batch.micro_batch * s.step->layout.dp) == 0);
    }
  }
}

TEST_CASE("the overlap case is 80 ms of computing and 40 ms of communication") {
  ScenarioOptions options;
  options.search = samples::shipped();
  Seconds compute{}, communication{};
  const Scenario scenario = load_scenario("overlap-175b-layer", options).value();
  for (const Task& task : scenario.tasks->tasks) (task.stream == "compute" ? compute : communication) += task.duration;
  CHECK(compute.count() == Approx(80e-3));
  CHECK(communication.count() == Approx(40e-3));
  options.what_if = "serial";
  CHECK_FALSE(load_scenario("overlap-175b-layer", options).value().tasks->overlap);
}

TEST_CASE("shipped models have their public dimensions") {
  const auto config = [](const std::string& name) {
    const std::string file = COLLCAST_SOURCE_DIR "/scenarios/models/" + name + "/config.json";
    std::ifstream in(file);
    return parse_hf_config(std::string(std::istreambuf_iterator<char>(in), {}), file).value();
  };
  const TransformerConfig big = config("llama3-70b");
  CHECK((big.layers == 80 && big.hidden == 8192 && big.heads == 64 && big.kv_heads == 8 && big.ffn == 28672 &&
         big.vocab == 128256));
  const TransformerConfig small = config("llama3-8b");
  CHECK((small.layers == 32 && small.hidden == 4096 && small.heads == 32 && small.kv_heads == 8 && small.ffn == 14336));
  const TransformerConfig gpt2 = config("gpt2");
  CHECK((gpt2.name == "gpt2" && gpt2.layers == 12 && gpt2.hidden == 768 && gpt2.ffn == 3072 &&
         gpt2.learned_positions == 1024));
}
