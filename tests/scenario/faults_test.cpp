// `faults` of a file, of its variants and of the command line.
#include <catch2/catch.hpp>

#include <tuple>

#include "samples.hpp"

using Catch::Matchers::Contains;
using namespace collcast;

namespace {

const std::string healthy =
    "schema: collcast.scenario.v1\nname: s\ntopology: dgx-a100\n"
    "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}\n"
    "batch: {sequence: 128, global_batch: 8}\n";
const std::string sick = healthy +
                         "faults: [{gpu: 3, compute: 80%}]\n"
                         "what_if:\n"
                         "  well: {set: {faults: []}}\n"
                         "  worse: {set: {faults.0.compute: 50%}}\n"
                         "  other: {set: {faults: [{link: node0.gpu1 <-> node0.nvswitch0, bandwidth: 100GB/s}]}}\n";

Result<Scenario> parse_faulty(const std::string& text, const std::string& what_if = "",
                              const std::vector<std::string>& faults = {}) {
  ScenarioOptions options;
  options.search = samples::shipped();
  options.what_if = what_if;
  options.faults = faults;
  return parse_scenario(text, "s.yaml", options);
}

}  // namespace

TEST_CASE("faults come from the file, a variant's take their place, and --fault adds to either") {
  CHECK(parse_faulty(healthy).value().faults.empty());
  const Scenario base = parse_faulty(sick).value();
  REQUIRE(base.faults.size() == 1);
  REQUIRE(base.faults[0].gpu() != nullptr);
  CHECK(*base.faults[0].gpu() == GpuFault{3, 0.8});
  CHECK(base.faults[0].where.line == 6);
  CHECK(base.faults[0].where.column == 16);  // of the number
  CHECK(parse_faulty(sick, "well").value().faults.empty());
  CHECK(parse_faulty(sick, "worse").value().faults[0].gpu()->compute == 0.5);
  const Scenario other = parse_faulty(sick, "other").value();
  REQUIRE(other.faults.size() == 1);
  REQUIRE(other.faults[0].link() != nullptr);
  CHECK(other.faults[0].link()->link == "node0.gpu1 <-> node0.nvswitch0");
  CHECK(other.faults[0].link()->bandwidth == Bandwidth(100e9));

  const Scenario more = parse_faulty(sick, "", {"gpu: 5, compute: 90%", "{link: node0.nic0, failed: true}"}).value();
  REQUIRE(more.faults.size() == 3);
  CHECK(*more.faults[1].gpu() == GpuFault{5, 0.9});
  CHECK(more.faults[2].link()->failed);
  CHECK(parse_faulty(healthy, "", {"gpu: 5, compute: 90%"}).value().faults.size() == 1);
}

TEST_CASE("a fault of the command line is placed in what was typed") {
  const Result<Scenario> wrong = parse_faulty(sick, "", {"gpu: 5, compute: 90", "gpu: 5, compute: 90%, link: x"});
  REQUIRE(!wrong.ok());
  const std::string text = to_text(wrong.errors());
  CHECK(text.find("--fault gpu: 5, compute: 90:1:26: error: faults.1.compute is '90'") != std::string::npos);
  CHECK(text.find("--fault gpu: 5, compute: 90%, link: x:1:31: error: 'faults.2.link' has no meaning here") !=
        std::string::npos);
}

TEST_CASE("a colon without a blank behind it is pointed at, in files and on the command line") {
  const std::string text = to_text(parse_faulty(healthy, "", {"gpu:12, compute: 90%"}).errors());
  CHECK_THAT(text, Contains("--fault gpu:12, compute: 90%:1:9: error: unknown key 'gpu:12' in faults.0\n"
                            "    hint: did you mean 'gpu: 12'? a blank follows the colon\n"));
  // The key has a dot of its own.
  CHECK_THAT(to_text(parse_faulty(healthy, "", {"link:node0.nic1, failed: true"}).errors()),
             Contains("unknown key 'link:node0.nic1' in faults.0") && Contains("did you mean 'link: node0.nic1'?"));
}

TEST_CASE("a fault holds from a time on and until another, which have units and come one after the other") {
  const MachineFault fault =
      parse_faulty(healthy, "", {"gpu: 5, compute: 90%, from: 10ms, until: 1s"}).value().faults[0];
  CHECK(fault.from == Seconds(10e-3));
  CHECK(fault.until == Seconds(1));
  CHECK(!fault.holds_at(Seconds(9.9e-3)));
  CHECK(fault.holds_at(Seconds(10e-3)));
  CHECK(!fault.holds_at(Seconds(1)));
  CHECK(fault.comes_or_goes());
  CHECK(!parse_faulty(healthy, "", {"gpu: 5, compute: 90%, from: 0s"}).value().faults[0].comes_or_goes());
  const auto refusal = [](const std::string& text) { return to_text(parse_faulty(healthy, "", {text}).errors()); };
  const auto at = [](const std::string& text, int column, const std::string& what) {
    return "--fault " + text + ":1:" + std::to_string(column) + ": error: faults.0." + what;
  };
  for (const auto& [text, column, what] :
       {std::tuple("gpu: 5, compute: 90%, from: 3", 37, "from is '3'"),
        {"gpu: 5, compute: 90%, from: -1s", 37, "from is '-1s'"},
        {"gpu: 5, compute: 90%, from:", 31, "from is nothing"},
        {"gpu: 5, compute: 90%, from: soon", 37, "from is 'soon'"},
        {"gpu: 5, compute: 90%, until: 2000000s", 38, "until is '2000000s'"},
        {"gpu: 5, compute: 90%, until: 0s", 38, "until is 0 s, and the fault begins at 0 s"},
        {"link: node0.nic0, failed: true, from: 2s, until: 1s", 58, "until is 1 s, and the fault begins at 2 s"}}) {
    INFO(text << "\n" << refusal(text));
    CHECK(refusal(text).find(at(text, column, what)) != std::string::npos);
  }
}

TEST_CASE("a fault is of one GPU, of a range, of all or of nodes, and may jitter") {
  const auto gpu = [](const std::string& text) { return *parse_faulty(healthy, "", {text}).value().faults[0].gpu(); };
  CHECK(gpu("gpu: 3-5, compute: 90%") == GpuFault{{3, 5}, 0.9});
  CHECK(gpu("gpu: all, compute: 90%") == GpuFault{Gpus::all(), 0.9});
  CHECK(gpu("node: 0, compute: 90%") == GpuFault{{0, 0, true}, 0.9});
  CHECK(gpu("node: 0-1, jitter: 3%") == GpuFault{{0, 1, true}, 1, Jitter{0.03, JitterShape::lognormal, 1}});
  CHECK(gpu("gpu: 2, compute: 90%, jitter: 0%, distribution: exponential, seed: 9") ==
        GpuFault{2, 0.9, Jitter{0, JitterShape::exponential, 9}});
  const auto refusal = [](const std::string& text) { return to_text(parse_faulty(healthy, "", {text}).errors()); };
  for (const auto& [text, column, what] :
       {std::tuple("gpu: 5-3, compute: 90%", 14, "faults.0.gpu is '5-3'"),
        {"node: all, jitter: 3%", 15, "faults.0.node is 'all'"},
        {"gpu: all, jitter: 3", 27, "faults.0.jitter is '3'"},
        {"gpu: all, jitter: -3%", 27, "faults.0.jitter is '-3%'"},
        {"gpu: all, jitter: 101%", 27, "faults.0.jitter is '101%'"},
        {"gpu: all, jitter: 3%, distribution: gauss", 45, "faults.0.distribution is 'gauss'"},
        {"gpu: all, jitter: 3%, seed: -1", 37, "faults.0.seed is '-1'"},
        {"gpu: all, compute: 90%, seed: 1", 33, "'faults.0.seed' has no meaning here"},
        {"link: node0.nic0, jitter: 3", 35, "faults.0.jitter is '3'"},
        {"link: node0.nic0, jitter: 3%, distribution: gauss", 53, "faults.0.distribution is 'gauss'"},
        {"link: node0.nic0, bandwidth: 50%, seed: 2", 43, "'faults.0.seed' has no meaning here"},
        {"link: node0.nic0, failed: true, jitter: 3%", 41, "'faults.0.jitter' has no meaning here"},
        {"gpu: 1, node: 0, jitter: 3%", 17, "'faults.0.node' has no meaning here"}}) {
    INFO(text << "\n" << refusal(text));
    const std::string at = std::string("--fault ") + text + ":1:" + std::to_string(column) + ": error: ";
    CHECK(refusal(text).find(at + what) != std::string::npos);
  }
}

TEST_CASE("faults stand alone, too, as those of a collective") {
  const Result<std::vector<MachineFault>> faults = parse_faults({"link: gpu1 -> switch, added_latency: 2us"});
  REQUIRE(faults.ok());
  CHECK(faults->front().link()->added_latency == Seconds(2e-6));
  CHECK(faults->front().link()->share == 1);
  CHECK(!parse_faults({"link: a, bandwidth: 5"}).ok());
  CHECK(!parse_faults({"{gpu: 1"}).ok());
}

TEST_CASE("a placement is a list of nodes or random, with its place") {
  CHECK(!parse_faulty(healthy).value().placement.any());
  const Scenario listed = parse_faulty(healthy + "placement: {nodes: [1, 0]}\n").value();
  CHECK(listed.placement.nodes == std::vector<int>{1, 0});
  CHECK(listed.placement.any());
  CHECK(listed.placement.where.line == 6);
  CHECK(listed.placement.where.column == 20);
  const Scenario random = parse_faulty(healthy + "placement: {nodes: random, seed: 7}\n").value();
  CHECK(random.placement.random);
  CHECK(random.placement.seed == 7);

  const auto error = [](const std::string& placement) {
    const Result<Scenario> wrong = parse_faulty(healthy + "placement: " + placement + "\n");
    REQUIRE(!wrong.ok());
    return to_text(wrong.errors());
  };
  CHECK_THAT(error("{nodes: strewn}"), Contains("s.yaml:6:20") && Contains("strewn") && Contains("random, or a list"));
  CHECK_THAT(error("{nodes: []}"), Contains("placement.nodes is empty"));
  CHECK_THAT(error("{nodes: [0, 2, 0]}"), Contains("s.yaml:6:27") && Contains("placement.nodes names node 0 twice"));
  CHECK_THAT(error("{nodes: [0, -1]}"), Contains("s.yaml:6:24") && Contains("-1"));
  CHECK_THAT(error("{nodes: [0], seed: 3}"), Contains("'placement.seed' has no meaning here: nothing is drawn"));
  CHECK_THAT(error("{seed: 3}"), Contains("'placement.seed' has no meaning here"));
  CHECK_THAT(error("{node: [0]}"), Contains("unknown key 'node' in placement") && Contains("did you mean 'nodes'"));
}
