// Every file that is shipped is good, says what it stands for, and can be built.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "collcast/engine/engine.hpp"
#include "collcast/evaluate/evaluate.hpp"
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
  for (const TopologyEntry& machine : machines) CHECK(topology_name(machine.file, samples::shipped()) == machine.name);
  CHECK(topology_name("elsewhere/ring.yaml", samples::shipped()) == "elsewhere/ring.yaml");
  for (const char* name : {"ring", "star", "mesh", "dgx-a100", "dgx-h100", "pcie-a100", "ethernet-hosts"})
    CHECK(names(machines).count(name) == 1);
  for (const TopologyEntry& machine : machines) {
    INFO(machine.name);
    const auto spec = load_topology(machine.name, samples::shipped());
    REQUIRE(to_text(spec.errors()) == "");
    CHECK(spec->name == machine.name);
    CHECK(spec->title == machine.title);
    CHECK_FALSE(spec->title.empty());
    CHECK((spec->teaching || !spec->sources.empty()));
    const auto fabric = Fabric::build(*spec);
    CHECK(to_text(fabric.errors()) == "");
    const bool joined = !std::holds_alternative<std::monostate>(spec->network) && spec->max_nodes != 1;
    if (joined) CHECK(to_text(Fabric::build(*spec, 2).errors()) == "");
  }
}

TEST_CASE("every system with published tables is one shipped machine, and no other is named") {
  // The systems of the published nccl-tests tables, and what `collcast measure` calls this host.
  std::istringstream names(
      "abci-a100 abci-v100 aic-a100-sxm aic-b200-sxm aic-b300-sxm aic-gb200 aic-gb300 aic-h100-sxm aic-h200-sxm "
      "aic-l40s-pcie aic-rtxpro6000-pcie alcf-polaris autodl-2080ti aws-p3dn aws-p4de aws-p5 azure-nd-a100 "
      "azure-nd-a100-40 coreweave-gb200-nvl72 cscs-alps-gh200 cw-a100-hgx dgx-a100-ib dgx1-v100-roce dgx2-v100 "
      "eunomia-b300 gcp-a3-high gcp-a3-mega gcp-a3-ultra gcp-a4 issue1244-h20 issue303-h20 moc-h100-roce "
      "nebius-h200 oci-a100-b4 pan-4090 pan-a100 pan-h800 pan-v100 simumax-h100 snellius-h100 sw-v100-pcie "
      "xxrjun-cluster00-h100 xxrjun-cluster01-h100 loopback");
  std::map<std::string, int> machines_of;
  for (std::string system; names >> system;) machines_of[system] = 0;
  for (const TopologyEntry& machine : list_topologies(samples::shipped())) {
    const TopologySpec spec = load_topology(machine.name, samples::shipped()).value();
    for (const std::string& system : spec.systems) {
      INFO(system << " of " << machine.name);
      CHECK(machines_of.count(system) == 1);
      ++machines_of[system];
    }
  }
  for (const auto& [system, machines] : machines_of) {
    INFO(system);
    CHECK(machines == 1);
  }
}

TEST_CASE("a kernel table that a machine names is shipped") {
  for (const TopologyEntry& machine : list_topologies(samples::shipped())) {
    const TopologySpec spec = load_topology(machine.name, samples::shipped()).value();
    if (spec.gpu.kernels.empty()) continue;
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

namespace {

double median(std::vector<double> of) {
  std::ranges::sort(of);
  return (of[(of.size() - 1) / 2] + of[of.size() / 2]) / 2;
}

}  // namespace

TEST_CASE("the table that stands in for GPUs without one is the median of the measured ones") {
  const auto table = [](const std::string& name) { return load_kernels(name, samples::shipped()).value(); };
  const KernelModel stand_in = table("data-sheet");
  const std::vector<KernelModel> measured{table("a100"), table("h100"), table("h200"), table("b200")};
  using Kernels = std::map<std::string, KernelEfficiency>;
  int figures = 0;
  const auto check = [&](Kernels KernelModel::*kind) {
    for (const auto& [precision, figure] : stand_in.*kind) {
      INFO(precision);
      std::vector<double> overhead, compute, memory;
      for (const KernelModel& one : measured) {
        // Measured nowhere: as bf16.
        const auto found = (one.*kind).find(precision == "fp32" || precision == "tf32" ? "bf16" : precision);
        if (found == (one.*kind).end()) continue;
        overhead.push_back(found->second.overhead.count());
        compute.push_back(found->second.compute);
        memory.push_back(found->second.memory);
      }
      REQUIRE_FALSE(compute.empty());
      CHECK(figure.overhead.count() == Approx(median(overhead)));
      CHECK(figure.compute == Approx(median(compute)));
      CHECK(figure.memory == Approx(median(memory)));
      ++figures;
    }
  };
  check(&KernelModel::gemm);
  check(&KernelModel::attention);
  check(&KernelModel::grouped_gemm);
  check(&KernelModel::grouped_gemm_gradient);
  CHECK(figures == 6 + 4 + 2 + 2);
  std::vector<double> beside, copies;
  for (const KernelModel& one : measured) {
    beside.push_back(one.beside_collectives);
    copies.push_back(one.host_copies);
  }
  CHECK(stand_in.beside_collectives == Approx(median(beside)));
  CHECK(stand_in.host_copies == Approx(median(copies)));
}

TEST_CASE("a step runs on every shipped GPU in every precision that it has, and says where kernels were not measured") {
  ScenarioOptions options;
  options.search = samples::shipped();
  int without = 0, filled = 0;
  for (const TopologyEntry& machine : list_topologies(samples::shipped())) {
    const TopologySpec spec = load_topology(machine.name, samples::shipped()).value();
    for (const char* precision : {"fp16", "fp32"}) {
      if (spec.gpu.model.empty() || spec.gpu.peak.count(precision) == 0) continue;
      INFO(machine.name << " in " << precision);
      const std::string text = "schema: collcast.scenario.v1\nname: s\ntopology: " + machine.name +
                               "\nmodel: {config: models/llama3-8b/config.json}\n"
                               "layout: {tp: 1, pp: 1, dp: 1}\n"
                               "batch: {sequence: 1024, micro_batch: 1, global_batch: 1}\n"
                               "training: {precision: " +
                               precision + "}\n";
      const Result<Scenario> scenario = parse_scenario(text, COLLCAST_SOURCE_DIR "/scenarios/s.yaml", options);
      REQUIRE(to_text(scenario.errors()) == "");
      CHECK(to_text(check_step(*scenario->step, 1, scenario->origins)) == "");
      const auto said = std::ranges::count_if(scenario->warnings, [](const Diagnostic& w) {
        return w.message.find("the table 'data-sheet' stands in") != std::string::npos;
      });
      CHECK(said == (spec.gpu.kernels.empty() || std::string(precision) == "fp32" ? 1 : 0));
      (spec.gpu.kernels.empty() ? without : filled) += 1;
    }
  }
  CHECK(without > 10);
  CHECK(filled > 10);
}

TEST_CASE("a machine of the command line is no part of variants that nobody asked for") {
  // Its what_if 'nvl72' needs 32 GPUs of one node, which a DGX-1 has not.
  ScenarioOptions options;
  options.search = samples::shipped();
  options.topology = "dgx1-v100";
  CHECK(to_text(load_scenario("llama3-70b-64xh100", options).errors()) == "");
}

TEST_CASE("GPUs, NICs, the rate of neighbours and of a port are those of the data sheets") {
  // Per direction: an NVLink carries 25 GB/s up to its fourth generation, 50 GB/s in its fifth; PCIe x16 31.5 and
  // 63 GB/s (4.0, 5.0). A port of 100, 200, 400, 800 Gb/s: 12.5, 25, 50, 100 GB/s. GPU 0 and GPU 1 are neighbours.
  constexpr double nvlink = 25e9, nvlink5 = 50e9, pcie4 = 31.5e9, pcie5 = 63e9;
  struct Expected {
    const char* name;
    int gpus, nics;
    double inside, port;
  };
  const std::vector<Expected> machines = {
      {"dgx1-v100", 8, 4, 1 * nvlink, 12.5e9},      {"dgx1-v100-roce", 8, 2, 1 * nvlink, 12.5e9},
      {"aws-p3dn", 8, 1, 1 * nvlink, 12.5e9},       {"dgx2-v100", 16, 8, 6 * nvlink, 12.5e9},
      {"abci-v100", 4, 2, 2 * nvlink, 12.5e9},      {"dgx-a100", 8, 8, 12 * nvlink, 25e9},
      {"azure-ndv4", 8, 8, 12 * nvlink, 25e9},      {"azure-ndmv4", 8, 8, 12 * nvlink, 25e9},
      {"aws-p4d", 8, 4, 12 * nvlink, 12.5e9},       {"aws-p4de", 8, 4, 12 * nvlink, 12.5e9},
      {"oci-a100", 8, 8, 12 * nvlink, 25e9},        {"abci-a100", 8, 4, 12 * nvlink, 25e9},
      {"hgx-a800", 8, 8, 8 * nvlink, 25e9},         {"polaris", 4, 2, 4 * nvlink, 25e9},
      {"dgx-h100", 8, 8, 18 * nvlink, 50e9},        {"dgx-h200", 8, 8, 18 * nvlink, 50e9},
      {"hgx-h20", 8, 8, 18 * nvlink, 50e9},         {"hgx-h800", 8, 8, 8 * nvlink, 50e9},
      {"azure-ndv5", 8, 8, 18 * nvlink, 50e9},      {"aws-p5", 8, 8, 18 * nvlink, 50e9},
      {"gcp-a3-high", 8, 4, 18 * nvlink, 25e9},     {"gcp-a3-mega", 8, 8, 18 * nvlink, 25e9},
      {"gcp-a3-ultra", 8, 8, 18 * nvlink, 50e9},    {"snellius-h100", 4, 4, 6 * nvlink, 25e9},
      {"h100-roce", 4, 4, 6 * nvlink, 50e9},        {"gh200", 4, 4, 6 * nvlink, 25e9},
      {"dgx-b200", 8, 8, 18 * nvlink5, 50e9},       {"gcp-a4", 8, 8, 18 * nvlink5, 50e9},
      {"dgx-b300", 8, 8, 18 * nvlink5, 100e9},      {"gb200-nvl72", 72, 72, 18 * nvlink5, 50e9},
      {"gb300-nvl72", 72, 72, 18 * nvlink5, 100e9}, {"pcie-a100", 8, 1, pcie4, 12.5e9},
      {"l40s-pcie", 8, 1, pcie4, 12.5e9},           {"rtx4090-pcie", 8, 1, pcie4, 12.5e9},
      {"rtxpro6000-pcie", 8, 1, pcie5, 50e9}};
  for (const Expected& e : machines) {
    INFO(e.name);
    const Fabric fabric = Fabric::build(load_topology(e.name, samples::shipped()).value(), 2).value();
    CHECK(fabric.ranks_per_node() == e.gpus);
    CHECK(fabric.nics_per_node() == e.nics);
    const Rank first(0), beside(1), there(static_cast<std::uint32_t>(e.gpus));
    CHECK(fabric.path(first, beside).bandwidth.value() == Approx(e.inside));
    CHECK(fabric.path(first, there).bandwidth.value() == Approx(e.port));
  }
}

TEST_CASE("the hybrid cube mesh gives every V100 six NVLinks, and a ring of double links through all eight") {
  const Fabric fabric = Fabric::build(load_topology("dgx1-v100", samples::shipped()).value()).value();
  // 25 GB/s each; a pair without any goes over PCIe 3.0, 15.75 GB/s.
  const auto links = [&](std::uint32_t a, std::uint32_t b) {
    return static_cast<int>(fabric.path(Rank(a), Rank(b)).bandwidth.value() / 25e9);
  };
  for (std::uint32_t a = 0; a < 8; ++a) {
    int sum = 0;
    for (std::uint32_t b = 0; b < 8; ++b) sum += a == b ? 0 : links(a, b);
    CHECK(sum == 6);
  }
  const std::vector<std::uint32_t> ring = {0, 3, 2, 1, 5, 6, 7, 4};
  for (std::size_t i = 0; i < ring.size(); ++i) CHECK(links(ring[i], ring[(i + 1) % ring.size()]) == 2);
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

TEST_CASE("layouts fill the nodes or ranks that their scenario names, in every variant") {
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
      const int all = s.nodes * Fabric::build(s.topology, s.nodes).value().ranks_per_node();
      CHECK(s.step->layout.world() == (s.ranks > 0 ? s.ranks : all));
      CHECK(s.ranks <= all);
      if (s.step->serving) continue;
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

namespace {

TransformerConfig shipped_config(const std::string& name) {
  const std::string file = COLLCAST_SOURCE_DIR "/scenarios/models/" + name + "/config.json";
  INFO(file);
  std::ifstream in(file);
  const auto model = parse_hf_config(std::string(std::istreambuf_iterator<char>(in), {}), file);
  REQUIRE(to_text(model.errors()) == "");
  return *model;
}

}  // namespace

TEST_CASE("every model of the published training steps is shipped, with the dimensions and parameters stated there") {
  std::ifstream in(COLLCAST_SOURCE_DIR "/validation/data/training/models.csv");
  const auto cells = [](const std::string& line) {
    std::vector<std::string> out(1);
    for (const char c : line) {
      if (c == ',')
        out.emplace_back();
      else
        out.back() += c;
    }
    return out;
  };
  std::string line;
  REQUIRE(std::getline(in, line));
  const std::vector<std::string> names = cells(line);
  int models = 0;
  while (std::getline(in, line)) {
    std::map<std::string, std::string> row;
    const std::vector<std::string> values = cells(line);
    for (std::size_t i = 0; i < values.size(); ++i) row[names.at(i)] = values[i];
    const std::string& name = row["model_id"];
    INFO(name);
    const TransformerConfig m = shipped_config(name);
    const auto stated = [&](const char* column) { return std::stoi(row[column]); };
    CHECK((m.layers == stated("layers") && m.hidden == stated("hidden") && m.heads == stated("heads")));
    // A latent key or value is a head's of its own here.
    CHECK((m.latent.kv_rank > 0 || m.kv_heads == stated("kv_heads")));
    CHECK((m.ffn == stated("ffn") && m.vocab == stated("vocab") && m.gated_mlp == (stated("gated_mlp") == 1)));
    CHECK((m.experts.count == stated("experts") && m.experts.top_k == stated("topk")));
    // Nemotron-3 22B has a round name: 40 layers of 12 x 6144^2, and two matrices of 256000 x 6144, are 21.27 billion.
    const double billions = name == "nemotron3-22b" ? 21.27 : std::stod(row["params_b"]);
    CHECK(parameter_count(m) == Approx(billions * 1e9).epsilon(0.03));
    ++models;
  }
  CHECK(models == 30);
}

TEST_CASE("shipped models have their public dimensions") {
  const TransformerConfig big = shipped_config("llama3-70b");
  CHECK((big.layers == 80 && big.hidden == 8192 && big.heads == 64 && big.kv_heads == 8 && big.ffn == 28672 &&
         big.vocab == 128256));
  const TransformerConfig small = shipped_config("llama3-8b");
  CHECK((small.layers == 32 && small.hidden == 4096 && small.heads == 32 && small.kv_heads == 8 && small.ffn == 14336));
  // Parameters as published: 32.8 billion; 1.03 trillion, and 32.6 billion that a token passes; 229 and 10; 116.8
  // and 5.1 billion. What a token passes has the embedding in it here: 0.6 billion more of the last two.
  const auto billions = [](double count) { return Approx(count * 1e9).epsilon(0.01); };
  CHECK(parameter_count(shipped_config("qwen3-32b")) == billions(32.8));
  CHECK(parameter_count(shipped_config("kimi-k2")) == billions(1'027));
  CHECK(active_parameter_count(shipped_config("kimi-k2")) == Approx(32.9e9).epsilon(0.03));
  // 671 billion of V3 (685 with the layers that predict a second token) and the indexer's 0.85; 37 that a token passes.
  CHECK(parameter_count(shipped_config("deepseek-v3.2")) == billions(671.9));
  CHECK(parameter_count(shipped_config("deepseek-v3.2")) - parameter_count(shipped_config("deepseek-v3")) ==
        61. * (1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128));
  CHECK(active_parameter_count(shipped_config("deepseek-v3.2")) == Approx(37e9).epsilon(0.05));
  // huggingface.co/docs/transformers/model_doc/glm_moe_dsa: 744 billion, 40 that a token passes.
  CHECK(parameter_count(shipped_config("glm5")) == billions(744));
  CHECK(active_parameter_count(shipped_config("glm5")) == Approx(40e9).epsilon(0.05));
  // huggingface.co/docs/transformers/model_doc/glm4_moe: 106 billion, 12 that a token passes, one end's embedding
  // apart.
  CHECK(parameter_count(shipped_config("glm4.5-air")) == billions(106.8));
  CHECK(active_parameter_count(shipped_config("glm4.5-air")) - 151552. * 4096 == Approx(12e9).epsilon(0.07));
  // Llama 4 Scout: 109 billion with the encoder of images, of which 0.9 are left out here; 17 that a token passes.
  CHECK(parameter_count(shipped_config("llama4-scout")) == Approx(108.1e9).epsilon(0.005));
  CHECK(active_parameter_count(shipped_config("llama4-scout")) == Approx(17e9).epsilon(0.02));
  CHECK(parameter_count(shipped_config("minimax-m2")) == billions(228.7));
  CHECK(active_parameter_count(shipped_config("minimax-m2")) == Approx(11.0e9).epsilon(0.01));
  // Qwen3-Next 80B-A3B and Qwen3.5 397B-A17B by their names.
  CHECK(parameter_count(shipped_config("qwen3-next-80b-a3b")) == billions(80));
  CHECK(active_parameter_count(shipped_config("qwen3-next-80b-a3b")) == Approx(3.9e9).epsilon(0.01));
  CHECK(parameter_count(shipped_config("qwen3.5-397b-a17b")) == billions(397));
  CHECK(active_parameter_count(shipped_config("qwen3.5-397b-a17b")) == Approx(17e9).epsilon(0.03));
  // Nemotron 3 Nano: 31.6 billion, 3.6 of them of a token with both ends (arXiv 2512.20848); Nemotron-H 8B: 8.1.
  CHECK(parameter_count(shipped_config("nemotron3-nano-30b-a3b")) == billions(31.6));
  CHECK(active_parameter_count(shipped_config("nemotron3-nano-30b-a3b")) == Approx(3.6e9).epsilon(0.02));
  // Nemotron 3 Super 120B-A12B by its name, which counts no embeddings among what a token passes.
  CHECK(parameter_count(shipped_config("nemotron3-super-120b-a12b")) == Approx(120e9).epsilon(0.01));
  CHECK(active_parameter_count(shipped_config("nemotron3-super-120b-a12b")) - 131072. * 4096 ==
        Approx(12e9).epsilon(0.03));
  CHECK(parameter_count(shipped_config("nemotron-h-8b")) == Approx(8.1e9).epsilon(0.02));
  CHECK(parameter_count(shipped_config("gpt-oss-120b")) == billions(116.8));
  CHECK(active_parameter_count(shipped_config("gpt-oss-120b")) == Approx(5.71e9).epsilon(0.01));
  CHECK((shipped_config("gpt-oss-120b").experts.biases && shipped_config("gpt-oss-120b").experts.clamp));
  CHECK_FALSE((shipped_config("minimax-m2").experts.biases || shipped_config("minimax-m2").experts.clamp));
  // 8.54, 27.2 and 41.3 billion (Falcon's files hold 41.8, the embedding twice), 20.6 and 7.24.
  CHECK(parameter_count(shipped_config("gemma-7b")) == billions(8.54));
  CHECK(parameter_count(shipped_config("gemma2-27b")) == billions(27.2));
  CHECK(parameter_count(shipped_config("falcon-40b")) == billions(41.3));
  CHECK(parameter_count(shipped_config("gpt-neox-20b")) == billions(20.6));
  CHECK(parameter_count(shipped_config("mistral-7b")) == billions(7.24));
  const TransformerConfig gpt2 = shipped_config("gpt2");
  CHECK((gpt2.name == "gpt2" && gpt2.layers == 12 && gpt2.hidden == 768 && gpt2.ffn == 3072 &&
         gpt2.learned_positions == 1024));
}

TEST_CASE("a ring across two nodes of any shipped machine loads all its NICs alike") {
  for (const TopologyEntry& machine : list_topologies(samples::shipped())) {
    INFO(machine.name);
    const TopologySpec spec = load_topology(machine.name, samples::shipped()).value();
    if (spec.teaching || spec.max_nodes == 1 || std::holds_alternative<std::monostate>(spec.network)) continue;
    const Fabric fabric = Fabric::build(spec, 2).value();
    // A rack of 72 has 72 channels: minutes of messages for the same rule.
    if (fabric.nics_per_node() == 0 || fabric.ranks_per_node() > 16) continue;

    const CollectiveRequest request{
        CollectiveKind::all_reduce, Group::strided(Rank(0), 1, fabric.rank_count()), Bytes(1 << 30), 0, {}};
    for (const char* algorithm : {"ring", "bidirectional_ring"}) {
      INFO(algorithm);
      const Pattern pattern = choose(fabric, request, {algorithm, 1, 0}).value().front().pattern;
      const Timeline timeline = simulate(fabric, pattern).value();
      double least = 1e300, most = 0;
      for (std::size_t i = 0; i < fabric.links().size(); ++i) {
        // From a device of a node into the network, not from switch to switch.
        const LinkId link(static_cast<std::uint32_t>(i));
        if (fabric.links()[i].kind != LinkKind::network || fabric.link_name(link).rfind("node", 0) != 0) continue;
        least = std::min(least, timeline.links[i].carried.value());
        most = std::max(most, timeline.links[i].carried.value());
      }
      CHECK(least == Approx(most).epsilon(1e-9));
    }
  }
}

TEST_CASE("a prompt of fewer tokens takes no longer, of GPUs whose products were measured, down to one token") {
  // Of products within the table ratios of neighbours differ by less than half a percent from row to row; 31 tokens
  // took up to a third more than 32 where fewer rows than twice below the table were left to the roofline.
  for (const char* machine : {"dgx-h100", "dgx-h200", "dgx-b200"})
    for (const char* precision : {"bf16", "fp8"}) {
      INFO(machine << ' ' << precision);
      const std::string text = std::string("schema: collcast.scenario.v1\nname: s\ntopology: ") + machine +
                               "\nnodes: 1\nmodel: {layers: 40, hidden: 5120, heads: 40, kv_heads: 8, head_dim: 128, "
                               "ffn: 13824, vocab: 32000, gated_mlp: true}\n"
                               "inference: {batch: 1, prompt_tokens: 1, output_tokens: 2, precision: " +
                               precision + "}\n";
      ScenarioOptions options;
      options.search = samples::shipped();
      const Scenario scenario = parse_scenario(text, "s.yaml", options).value();
      const Fabric fabric = Fabric::build(scenario.topology, 1).value();
      double longest = 0;
      for (int tokens = 1; tokens <= 256; ++tokens) {
        StepInputs in = *scenario.step;
        in.batch.sequence = in.serving->prompt_tokens = tokens;
        const StepResult r = forecast_step(in, fabric, scenario.collectives, Method::estimate).value();
        const double ttft = r.inference->prefill.time().count();
        INFO(tokens);
        CHECK(ttft >= 0.995 * longest);
        longest = std::max(longest, ttft);
      }
    }
}
