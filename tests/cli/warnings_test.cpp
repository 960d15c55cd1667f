// What is odd about a machine is said once by every command, on the error stream, and once in its documents.
#include <catch2/catch.hpp>

#include <algorithm>

#include "cli/called.hpp"
#include "cli/process.hpp"

using namespace collcast::test;
using nlohmann::json;

namespace {

int times(const std::string& text, const std::string& what) {
  int out = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++out;
  return out;
}

int times(const json& warnings, const std::string& what) {
  return static_cast<int>(std::ranges::count_if(
      warnings, [&](const json& one) { return one.get<std::string>().find(what) != std::string::npos; }));
}

/// Two boards of four GPUs, each with two NVSwitches, between which there are trunks.
const std::string two_boards =
    "schema: collcast.topology.v1\nname: boards\n"
    "gpu: {model: H100-SXM5-80GB, memory: 80GB, memory_bandwidth: 3.35TB/s, peak: {bf16: 989TFLOP/s}, kernels: h100, "
    "source: s}\n"
    "node:\n  devices:\n    gpu: {kind: gpu, count: 8}\n    nvswitch: {kind: nvswitch, count: 4}\n"
    "  links:\n"
    "    - {from: gpu, to: nvswitch, wiring: pairs, kind: nvlink, bandwidth: 225GB/s, latency: 250ns, source: s, "
    "pairs: "
    "[[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1], [3, 0], [3, 1], [4, 2], [4, 3], [5, 2], [5, 3], [6, 2], [6, 3], "
    "[7, 2], [7, 3]]}\n"
    "    - {from: nvswitch, to: nvswitch, wiring: pairs, kind: nvlink, bandwidth: 900GB/s, latency: 250ns, source: s, "
    "pairs: [[0, 2], [1, 3]]}\n";

constexpr const char* one_of_them = "goes through one of 4 NVSwitches";
constexpr const char* thin = "leaves are oversubscribed 4:1";

}  // namespace

TEST_CASE("NVSwitches of which a route takes one: every command warns once, its document too") {
  const Folder folder;
  folder.write("boards.yaml", two_boards);
  const std::string machine = (folder.path() / "boards.yaml").string();
  const std::string scenario = "llama3-8b-8xh100 --topology " + machine;
  for (const std::string& words :
       {"topology check " + machine, "topology show " + machine, "topology export --format json " + machine,
        "collective all_reduce --size 1MiB --topology " + machine,
        "collective all_reduce --size 1MiB --library ideal --topology " + machine,
        "explain collective all_reduce --size 1MiB --topology " + machine, "groups --tp 8 --topology " + machine,
        "step " + scenario, "explain step " + scenario, "plan --simulate 0 " + scenario,
        "step --sweep training.zero=0,1 " + scenario}) {
    INFO(words);
    const Called page = call(words);
    CHECK(times(page.err, one_of_them) == 1);
    if (words.starts_with("topology export")) continue;
    CHECK(times(page.out, one_of_them) == 0);
    const Called document = call(words + " --format json");
    INFO(document.err);
    CHECK(times(json::parse(document.out).at("warnings"), one_of_them) == 1);
  }
}

TEST_CASE("a sweep prints warnings at their places, as the step alone does") {
  const Folder folder;
  folder.write("boards.yaml", two_boards);
  const std::string machine = (folder.path() / "boards.yaml").string();
  const std::string scenario = "llama3-8b-8xh100 --method estimate --set topology=" + machine;
  const auto line_of = [](const std::string& err) {
    const std::size_t at = err.find(one_of_them);
    if (at == std::string::npos) return std::string();
    const std::size_t from = err.rfind('\n', at) + 1;
    return err.substr(from, err.find('\n', at) - from);
  };
  const std::string alone = line_of(call("step " + scenario).err);
  CHECK(alone.starts_with(machine + ":"));
  CHECK(times(alone, "boards.yaml") == 1);
  for (const char* sweep : {" --sweep training.zero=0,1", " --sweep layout.tp=2,3", " --sweep layout.tp=3,2"}) {
    const Called swept = call("step " + scenario + sweep);
    INFO(swept.err);
    CHECK(line_of(swept.err) == alone);
    CHECK(times(swept.err, one_of_them) == 1);
  }
}

TEST_CASE("a warning at every value that is swept is one") {
  const Called swept = call(
      "step llama3-8b-8xh100 --method estimate --library nccl --sweep collectives.algorithm=ring,tree --format json");
  INFO(swept.err);
  CHECK(times(swept.err, "algorithm, chunks or channels have no effect on library nccl") == 1);
  CHECK(times(json::parse(swept.out).at("warnings"), "chunks or channels have no effect on library nccl") == 1);
}

TEST_CASE("four NVSwitches with links of a quarter are one with the whole, in every figure") {
  const std::string four = " --set node.devices.nvswitch.count=4 --set node.links.0.bandwidth=112.5GB/s";
  const auto rows = [](const std::string& words) { return document_of(words).at("rows"); };
  for (const char* what : {"collective all_reduce --size 1MiB:1GiB:x32", "collective alltoall --size 64MiB"})
    for (const char* library : {" --library nccl", " --library ideal"}) {
      const std::string words = std::string(what) + library + " --topology dgx-h100";
      CHECK(rows(words + four) == rows(words));
    }
  const Called shown = call("topology show dgx-h100" + four);
  CHECK(shown.out.find("4 NVSwitches count as one, 'nvswitch'") != std::string::npos);
  CHECK(shown.err.empty());
  CHECK(document_of("topology show dgx-h100" + four).at("devices").at(1).at("stands_for") == 4);
  CHECK(document_of("topology show dgx-h100" + four).at("machine") ==
        document_of("topology show dgx-h100").at("machine"));
}

TEST_CASE("leaves that are oversubscribed below CollNet: pages say it once, and so do all documents") {
  const std::string bare = " --set topology.network.nodes_per_leaf=2 --set topology.network.oversubscription=4";
  const std::string nodes = bare + " --set topology.network.plugin.collnet=true";
  const std::string of_machine =
      " --set network.nodes_per_leaf=2 --set network.oversubscription=4 --set network.plugin.collnet=true";
  const std::string scenario = " llama3-70b-64xh100" + nodes;
  for (const std::string& words :
       {"step" + scenario, "explain step" + scenario, "plan --simulate 0 --tp 8" + scenario,
        "explain collective all_reduce --size 1MiB --topology dgx-h100 --nodes 8" + of_machine,
        "collective all_reduce --size 1MiB --method estimate --topology dgx-h100 --nodes 8" + of_machine,
        "step --sweep training.zero=0,1" + scenario}) {
    INFO(words);
    const Called page = call(words);
    CHECK(times(page.out + page.err, thin) == 1);
    CHECK(times(document_of(words).at("warnings"), thin) == 1);
  }
  const Folder folder;
  const std::string saved = (folder.path() / "step.json").string();
  CHECK(call("step" + scenario + " --format json --output " + saved).exit == 0);
  CHECK(times(call("report " + saved).out, thin) == 1);
  // Where nothing adds up in the network both libraries see it.
  CHECK(times(document_of("step llama3-70b-64xh100" + bare).at("warnings"), thin) == 0);
  // Not of library ideal, which sees it, nor where all are on one leaf.
  CHECK(times(document_of("step --library ideal" + scenario).at("warnings"), thin) == 0);
  CHECK(times(document_of("step llama3-70b-64xh100 --set topology.network.oversubscription=4 --set "
                          "topology.network.plugin.collnet=true")
                  .at("warnings"),
              thin) == 0);
}

TEST_CASE("who writes align_grad_reduce where nothing can be aligned is told so, whichever value was written") {
  const std::string in_vain = "training.align_grad_reduce has no effect: ";
  const std::string pipeline = "step llama3-70b-64xh100 --method estimate --format json ";
  const auto warned = [&](const std::string& settings) {
    const Called called = call(pipeline + settings);
    INFO(called.err);
    REQUIRE(called.exit == 0);
    return times(json::parse(called.out)["warnings"], in_vain);
  };
  for (const std::string cannot :
       {"--set training.overlap_dp=false ", "--set layout.schedule=zb-h1 ", "--set layout.pp=1 --set layout.dp=8 ",
        "--set training.zero=2 ", "--fault 'gpu: 3, compute: 90%' --set training.overlap_dp=false "}) {
    CAPTURE(cannot);
    CHECK(warned(cannot + "--set training.align_grad_reduce=true") == 1);
    CHECK(warned(cannot + "--set training.align_grad_reduce=false") == 1);
    CHECK(warned(cannot) == 0);
  }
  CHECK(warned("--set training.align_grad_reduce=true") == 0);
  CHECK(warned("--set training.align_grad_reduce=false") == 0);
}

TEST_CASE("a check says what library nccl, which other commands take by default, refuses of the machine") {
  const Folder folder;
  folder.write("power9.yaml",
               "schema: collcast.topology.v1\nname: power9\n"
               "gpu: {model: V100-SXM2-16GB, memory: 16GB, memory_bandwidth: 900GB/s, peak: {fp16: 125TFLOP/s}, "
               "kernels: data-sheet, source: s}\n"
               "node:\n  devices:\n    gpu: {kind: gpu, count: 4}\n    cpu: {kind: cpu, count: 2}\n"
               "  links:\n"
               "    - {from: gpu, to: cpu, wiring: spread, kind: nvlink, bandwidth: 75GB/s, latency: 1us, source: s}\n"
               "    - {from: cpu, to: cpu, kind: socket, bandwidth: 64GB/s, latency: 1us, source: s}\n");
  const Called check = call("topology check " + (folder.path() / "power9.yaml").string());
  CHECK(check.exit == 0);
  CHECK(times(check.err, "power9.yaml:9:7") == 1);
  CHECK(times(check.err, "--library nccl refuses the machine: NVLinks between GPUs and processors") == 1);
  CHECK(times(call("topology check dgx-h100").err, "refuses") == 0);
}
