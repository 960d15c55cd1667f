// Where a value was written: in the scenario, its config.json, its machine, a file below that, a variant or an option.
#include <catch2/catch.hpp>

#include "folder.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

const std::string scenario =
    "schema: collcast.scenario.v1\n"
    "name: s\n"
    "topology: m.yaml\n"
    "model: {config: c.json, vocab: 1000}\n"
    "layout:\n"
    "  tp: 2\n"
    "batch: {sequence: 128, global_batch: 8}\n"
    "what_if:\n"
    "  wide: {set: {layout.tp: 4}}\n";

const char* const config =
    "{\"architectures\": [\"LlamaForCausalLM\"],\n"
    " \"hidden_size\": 1024, \"num_hidden_layers\": 8,\n"
    " \"num_attention_heads\": 16, \"intermediate_size\": 4096, \"vocab_size\": 7}\n";

/// The place of `path` in the scenario of these files.
class Files {
 public:
  Files() : folder_("origins") {
    folder_.file("c.json", config);
    folder_.file("m.yaml", "schema: collcast.topology.v1\nname: m\nextends: base.yaml\nnodes: {default: 2}\n");
    folder_.file("base.yaml",
                 "schema: collcast.topology.v1\nname: base\nnode: {devices: {gpu: {kind: gpu}}}\n"
                 "gpu: {model: G, memory: 1GB, memory_bandwidth: 1TB/s, peak: {bf16: 1TFLOP/s}, kernels: a100, "
                 "source: s}\nnetwork: {kind: ring, attach: gpu, source: s, link: {bandwidth: 1GB/s, latency: 0s}}\n");
    file_ = folder_.file("s.yaml", scenario);
  }

  std::string place(const std::string& path, const std::vector<std::string>& settings = {},
                    const std::string& what_if = "") const {
    ScenarioOptions options;
    options.search = samples::shipped();
    options.what_if = what_if;
    for (const std::string& text : settings) options.overrides.push_back(parse_override(text).value());
    const Scenario loaded = load_scenario(file_, options).value();
    std::string text = to_text(loaded.origins.of(path));
    if (text.starts_with(folder_.path())) text.erase(0, folder_.path().size() + 1);
    return text;
  }

 private:
  Folder folder_;
  std::string file_;
};

}  // namespace

TEST_CASE("a value of the scenario is where it stands; one left out is where its section is, or the file") {
  const Files files;
  CHECK(files.place("layout.tp") == "s.yaml:6:7");
  CHECK(files.place("batch.global_batch") == "s.yaml:7:38");
  CHECK(files.place("layout.pp") == "s.yaml:6:3");
  CHECK(files.place("training.precision") == "s.yaml:1:1");
  CHECK(files.place("topology") == "s.yaml:3:11");
}

TEST_CASE("a value of config.json is in that file, under whichever key gave it") {
  const Files files;
  CHECK(files.place("model.hidden") == "c.json:2:17");
  CHECK(files.place("model.layers") == "c.json:2:44");
  // As many key and value heads as heads, because the file leaves them out.
  CHECK(files.place("model.kv_heads") == "c.json:3:25");
  // The scenario's own value replaces the file's.
  CHECK(files.place("model.vocab") == "s.yaml:4:32");
}

TEST_CASE("a machine's value is in its file, or in the one that this extends") {
  const Files files;
  CHECK(files.place("topology.nodes.default") == "m.yaml:4:18");
  CHECK(files.place("topology.gpu.kernels") == "base.yaml:4:88");
}

TEST_CASE("a variant's value is in its line, an option's in the option") {
  const Files files;
  CHECK(files.place("layout.tp", {}, "wide") == "s.yaml:9:27");
  CHECK(files.place("layout.tp", {"layout.tp=1"}, "wide") == "--set layout.tp=1:1:17");
  CHECK(files.place("layout.pp", {"layout={tp: 1, pp: 8}"}) == "--set layout={tp: 1, pp: 8}:1:26");
  CHECK(files.place("topology.network.link.latency", {"topology.network.link.latency=1us"}) ==
        "--set topology.network.link.latency=1us:1:37");
}
