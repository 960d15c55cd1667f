// Where errors about a machine stand: at the value that makes them, in a file, an option or a variant of a scenario.
#include <catch2/catch.hpp>

#include <filesystem>
#include <utility>
#include <vector>

#include "cli/called.hpp"
#include "cli/process.hpp"

using namespace collcast::test;

namespace {

const std::string dgx2 = "collective all_reduce --topology dgx-h100 --nodes 2 --size 1MiB ";

void check_first_line(const std::string& words, const std::string& beginning) {
  INFO(words);
  const Called called = call(words);
  CHECK(called.exit == 2);
  INFO(called.err);
  CHECK(called.err.starts_with(beginning));
}

}  // namespace

TEST_CASE("an error that --set makes in a shipped machine stands at the --set") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {dgx2 + "--set network.attach=cpu",
       "--set network.attach=cpu:1:22: error: the network attaches to 'cpu' of kind cpu"},
      {dgx2 + "--set network.attach=nics", "--set network.attach=nics:1:22: error: the network attaches to no devices"},
      {dgx2 + "--set node.links.0.from=gpuu", "--set node.links.0.from=gpuu:1:25: error: link gpuu - nvswitch: no dev"},
      {dgx2 + "--set node.links.0.wiring=one_to_one", "--set node.links.0.wiring=one_to_one:1:27: error: link gpu - "},
      {dgx2 + "--set node.devices.nic.kind=cpu", "--set node.devices.nic.kind=cpu:1:29: error: the network attaches "},
      {"collective broadcast --topology mesh --ranks 6 --set network.dims=[2,4]",
       "--set network.dims=[2,4]:1:20: error: mesh dimensions [2, 4] hold 8 nodes, not 6\n"
       "    hint: the number of nodes is their product: --ranks 8 or nodes.default 8; or other dimensions\n"},
      {"topology show mesh --set network.dims=[2,3]", "--set network.dims=[2,3]:1:20: error: mesh dimensions [2, 3] "},
      {"topology show dgx-h100 --set nodes.max=4 --set nodes.default=8",
       "--set nodes.default=8:1:21: error: nodes.default is 8 but nodes.max is 4"},
      {"step llama3-70b-64xh100 --set topology.nodes.max=4", "--set topology.nodes.max=4:1:26: error: 8 nodes of 'dgx"},
      {"step llama3-8b-8xh100 --set topology.node.links.0.bandwidth=1B/s",
       "--set topology.node.links.0.bandwidth=1B/s:1:39: error: the links between the GPUs of dgx-h100 are slower "},
      {"step llama3-70b-64xh100 --set topology.network.attach=cpu",
       "--set topology.network.attach=cpu:1:31: error: the network attaches to 'cpu'"}};
  for (const auto& [words, beginning] : cases) check_first_line(words, beginning);
}

TEST_CASE("a machine and a model that a scenario names are beside it, those of --set and --sweep where a person is") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "there");
  const std::string machine = "schema: collcast.topology.v1\nextends: dgx-h100\nname: ";
  folder.write("m.yaml", machine + "ours\n");
  folder.write("there/m.yaml", machine + "theirs\n");
  folder.write("there/s.yaml",
               "schema: collcast.scenario.v1\nname: s\ntopology: dgx-h100\nmodel: {layers: 8, hidden: 1024, heads: 16, "
               "ffn: 4096, vocab: 1000}\nbatch: {sequence: 128, global_batch: 2}\nwhat_if: {theirs: {title: t, set: "
               "{topology: ./m.yaml}}}\n");
  const auto step = [&](const std::string& options) {
    return run_shell("collcast step there/s.yaml --method estimate --format json " + options, folder.path());
  };
  const auto machine_of = [&](const std::string& options) {
    const Outcome done = step(options);
    INFO(options << '\n' << done.err);
    REQUIRE(done.exit == 0);
    return nlohmann::json::parse(done.out).at("machine").at("topology").get<std::string>();
  };
  CHECK(machine_of("") == "dgx-h100");
  CHECK(machine_of("--what-if theirs") == "theirs");
  CHECK(machine_of("--set topology=m.yaml") == "ours");
  CHECK(machine_of("--topology m.yaml") == "ours");
  CHECK(machine_of("--set topology=there/m.yaml") == "theirs");
  CHECK(step("--sweep topology=m.yaml,there/m.yaml").exit == 0);
  CHECK(step("--set topology=n.yaml").err ==
        "--set topology=n.yaml:1:16: error: file 'n.yaml' does not exist\n"
        "    hint: check the path; it is relative to the working directory\n");
  CHECK(step("--set model.config=c.json")
            .err.starts_with("--set model.config=c.json:1:20: error: file 'c.json' does not exist\n"));
}

TEST_CASE("a number of nodes that a machine cannot have stands at the option that asks for it") {
  check_first_line("collective all_reduce --topology dgx-h100 --set nodes.max=4 --nodes 5",
                   "--nodes 5:1:9: error: 5 nodes of 'dgx-h100'\n    hint: this machine has at most 4");
  check_first_line("collective all_reduce --topology pcie-a100 --set network.kind=none --nodes 2",
                   "--set network.kind");
  check_first_line("step llama3-70b-64xh100 --set topology.nodes.max=8 --nodes 9",
                   "--nodes 9:1:9: error: 9 nodes of 'dgx-h100'");
  check_first_line("plan llama3-70b-64xh100 --set topology.nodes.max=8 --nodes 9",
                   "--nodes 9:1:9: error: 9 nodes of 'dgx-h100'");
}

TEST_CASE("the numbers of nodes and ranks that a hint offers are taken") {
  const std::string most = "expected a whole number from 1 to 1000000";
  for (const std::string command : {"collective all_reduce --topology ring ", "step llama3-70b-64xh100 "}) {
    INFO(command);
    for (const char* nodes : {"--nodes 1000001", "--nodes many"})
      CHECK(call(command + nodes).err.find(most + "\n") != std::string::npos);
  }
  CHECK(call("step llama3-70b-64xh100 --set nodes=1000001").err.find(most + ", without unit") != std::string::npos);
  CHECK(call("collective all_reduce --topology ring --ranks 1000001").err.find(most + "\n") != std::string::npos);
  // Eight to a node.
  CHECK(call("collective all_reduce --topology dgx-h100 --ranks 8000001").err.find("from 1 to 8000000\n") !=
        std::string::npos);
  CHECK(call("plan llama3-70b-64xh100 --ranks 10000001").err.find("from 1 to 10000000\n") != std::string::npos);
}

TEST_CASE("an error that a variant makes stands in its line") {
  const Folder folder;
  folder.write("s.yaml",
               "schema: collcast.scenario.v1\nname: s\ntopology: pcie-a100\n"
               "model: {layers: 6, hidden: 1024, heads: 16, ffn: 4096, vocab: 32000, name: t}\n"
               "layout: {tp: 1, pp: 6, dp: 3}\n"
               "batch: {sequence: 512, micro_batch: 2, global_batch: 6}\n"
               "what_if:\n"
               "  wide: {set: {topology.network.attach: cpu}}\n"
               "  few: {set: {topology.nodes.max: 2}}\n");
  const std::string file = (folder.path() / "s.yaml").string();
  CHECK(call("step " + file).exit == 0);
  check_first_line("step " + file + " --what-if wide", file + ":8:41: error: the network attaches to 'cpu'");
  // Two lines of one file: the layout, which needs 3 nodes, is said.
  check_first_line("step " + file + " --what-if few", file + ":5:9: error: 3 nodes of 'pcie-a100'");
  check_first_line("step " + file + " --what-if few --nodes 3", "--nodes 3:1:9: error: 3 nodes of 'pcie-a100'");
}

TEST_CASE("an error in a machine's file stands at the value") {
  const Folder folder;
  const std::string head =
      "schema: collcast.topology.v1\nname: m\nteaching: true\nnode:\n  devices:\n    h: {kind: host}\n";
  folder.write("attach.yaml", head +
                                  "network:\n  kind: star\n  link: {bandwidth: 1GB/s, latency: 0s}\n  source: s\n"
                                  "  attach: nn\n");
  folder.write("dims.yaml", head +
                                "network: {kind: mesh, attach: h, dims: [2, 2], link: {bandwidth: 1GB/s, "
                                "latency: 0s}, source: s}\n");
  folder.write("to.yaml",
               "schema: collcast.topology.v1\nname: m\nnode:\n  devices: {h: {kind: host}, n: {kind: nic}}\n"
               "  links:\n    - {from: h, to: nx, kind: pcie, bandwidth: 1GB/s, latency: 0s, source: s}\n");
  const auto check = [&](const std::string& name, const std::string& said) {
    const std::string file = (folder.path() / name).string();
    const Called called = call("topology check " + file);
    INFO(called.out << called.err);
    CHECK((called.out + called.err).find(file + said) != std::string::npos);
  };
  check("attach.yaml", ":11:11: error: the network attaches to no devices 'nn'");
  check("dims.yaml", ":7:40: error: mesh dimensions [2, 2] hold 4 nodes, not 1");
  check("to.yaml", ":6:21: error: link h - nx: no devices 'nx'");
}

TEST_CASE("a scenario's file without its suffix, and a file that is none, are told from a name that nothing has") {
  const Folder folder;
  folder.write("d30.yaml", "schema: collcast.scenario.v1\n");
  folder.write("e30.yml", "schema: collcast.scenario.v1\n");
  folder.write("notes.txt", "no scenario\n");
  folder.write("other.json", R"({"schema": "else.v1"})");
  folder.write("p30.json", call("step overlap-175b-layer --format json").out);
  const auto said = [&](const std::string& words) {
    const Outcome outcome = run_shell("collcast " + words, folder.path());
    CHECK(outcome.exit == 2);
    return outcome.err;
  };
  const std::string place = "command line: error: ";
  for (const char* command : {"plan", "step", "explain step", "report"}) {
    INFO(command);
    const std::string words = std::string(command) + " ";
    CHECK(said(words + "d30") == place + "there is no scenario 'd30'\n    hint: did you mean the file 'd30.yaml'?\n");
    CHECK(said(words + "e30") == place + "there is no scenario 'e30'\n    hint: did you mean the file 'e30.yml'?\n");
    CHECK(said(words + "notes.txt") ==
          place +
              "'notes.txt' is a file without the suffix .yaml, and no scenario\n"
              "    hint: expected a scenario's file, which ends in .yaml, or a shipped one's name\n");
    CHECK(said(words + "d31").starts_with(place + "there is no scenario 'd31'\n    hint: expected one of: "));
  }
  // These `report` reads as results.
  for (const char* command : {"plan", "step", "explain step"}) {
    INFO(command);
    const std::string words = std::string(command) + " ";
    CHECK(said(words + "p30.json") ==
          place +
              "'p30.json' is a document collcast.step.v1, and no scenario\n"
              "    hint: results are read by 'collcast report p30.json' and 'collcast compare'; a scenario is a "
              "file that ends in .yaml\n");
    CHECK(said(words + "other.json").starts_with(place + "'other.json' is a file without the suffix .yaml, and no "));
    CHECK(said(words + "no.json").starts_with(place + "there is no scenario 'no.json'\n"));
  }
  CHECK(said("topology show notes.txt")
            .starts_with(place + "'notes.txt' is a file without the suffix .yaml, and no machine\n"));
}
