// What a machine file's values become, and files that extend others.
#include <catch2/catch.hpp>

#include <functional>

#include "collcast/scenario/overlay.hpp"
#include "collcast/topology/fabric.hpp"
#include "folder.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

const std::string machine_head = "schema: collcast.topology.v1\nname: m\nnode: {devices: {host: {kind: host}}}\n";

std::string machine_errors(const std::string& text) {
  const Result<TopologySpec> spec = parse_topology(text, "m.yaml");
  return spec ? "" : to_text(spec.errors());
}

NetworkSpec network_of(const std::string& lines) {
  return parse_topology(
             machine_head + "network: {attach: host, source: s, link: {bandwidth: 8Gb/s, latency: 3us}, " + lines + "}",
             "m.yaml")
      .value()
      .network;
}

}  // namespace

TEST_CASE("values arrive in base units, with the place they were written") {
  const TopologySpec spec =
      parse_topology(
          "schema: collcast.topology.v1\n"
          "name: m\n"
          "nodes: {default: 2, max: 9}\n"
          "gpu: {model: G1, memory: 80GB, memory_bandwidth: 2TB/s, peak: {bf16: 312TFLOP/s}, kernels: k, source: s}\n"
          "node:\n"
          "  devices:\n"
          "    gpu: {kind: gpu, count: 4}\n"
          "    sw: {kind: nvswitch}\n"
          "  links:\n"
          "    - {from: gpu, to: sw, wiring: pairs, pairs: [[3, 0], [1, 0]], kind: nvlink, bandwidth: 400Gb/s, "
          "latency: 500ns, source: s}\n",
          "m.yaml")
          .value();
  CHECK(spec.default_nodes == 2);
  CHECK(spec.max_nodes == 9);
  CHECK(spec.gpu.memory == Bytes(80'000'000'000));
  CHECK(spec.gpu.memory_bandwidth == Bandwidth(2e12));
  CHECK(spec.gpu.peak.at("bf16") == FlopRate(312e12));
  REQUIRE(spec.devices.size() == 2);
  CHECK(spec.devices[0].name == "gpu");
  CHECK(spec.devices[1].kind == DeviceKind::nvswitch);
  CHECK(spec.devices[1].count == 1);
  CHECK(spec.devices[1].where.line == 8);
  REQUIRE(spec.links.size() == 1);
  // 400 Gb/s = 400e9 / 8 bytes per second.
  CHECK(spec.links[0].bandwidth == Bandwidth(50e9));
  CHECK(spec.links[0].latency == Seconds(500e-9));
  CHECK(spec.links[0].pairs == std::vector<std::pair<int, int>>{{3, 0}, {1, 0}});
  CHECK(spec.links[0].where.line == 10);
  CHECK(std::holds_alternative<std::monostate>(spec.network));
}

TEST_CASE("each kind of network becomes its description") {
  const auto star = std::get<StarNetwork>(network_of("kind: star"));
  CHECK(star.bandwidth == Bandwidth(1e9));
  CHECK(star.latency == Seconds(3e-6));
  const auto ring = std::get<TorusNetwork>(network_of("kind: ring"));
  CHECK((ring.dims.empty() && ring.wrap));
  const auto mesh = std::get<TorusNetwork>(network_of("kind: mesh"));
  CHECK((mesh.dims.empty() && !mesh.wrap));
  const auto torus = std::get<TorusNetwork>(network_of("kind: torus, dims: [4, 2]"));
  CHECK(torus.dims == std::vector<int>{4, 2});
  CHECK(torus.wrap);
  const auto clos =
      std::get<LeafSpineNetwork>(network_of("kind: leaf_spine, rail_optimized: false, nodes_per_leaf: 4, spines: 2, "
                                            "oversubscription: 1.5, spine_latency: 1us"));
  CHECK_FALSE(clos.rail_optimized);
  CHECK(clos.nodes_per_leaf == 4);
  CHECK(clos.spines == 2);
  CHECK(clos.oversubscription == 1.5);
  CHECK(clos.spine_latency == Seconds(1e-6));
}

TEST_CASE("a key of another kind of network is refused with the kind it belongs to") {
  const std::string text = machine_errors(
      machine_head +
      "network:\n  kind: star\n  attach: host\n  source: s\n  spines: 4\n  link: {bandwidth: 1GB/s, latency: 0s}\n");
  CHECK(text ==
        "m.yaml:8:3: error: 'network.spines' has no meaning here: it belongs to a leaf_spine network\n    hint: remove "
        "it\n");
}

TEST_CASE("a kind of network that is not known hides no other mistake in it") {
  CHECK(machine_errors(machine_head +
                       "network: {kind: leafspine, attach: host, link: {bandwidth: 8Gb/s, latency: 3, extra: 1}, "
                       "nodes_per_leaf: 0, oversubscription: 0}\n") ==
        "m.yaml:4:17: error: network.kind is 'leafspine'\n"
        "    hint: did you mean 'leaf_spine'? expected one of: none, star, ring, mesh, torus, leaf_spine\n"
        "m.yaml:4:76: error: network.link.latency is '3'\n"
        "    hint: expected a time of 0 or more with its unit, such as 500ns, 1.5us or 2ms, up to 1000000s\n"
        "m.yaml:4:79: error: unknown key 'extra' in network.link\n"
        "    hint: expected one of: bandwidth, latency\n"
        "m.yaml:4:106: error: network.nodes_per_leaf is '0'\n"
        "    hint: expected a whole number from 1 to 1000000, without unit\n"
        "m.yaml:4:127: error: network.oversubscription is '0'\n"
        "    hint: expected a number from 0.001 to 1000, without unit\n");
}

TEST_CASE("what a base's network of another kind leaves behind is not the user's to remove") {
  const Folder folder("extends-network");
  folder.file("base.yaml", machine_head +
                               "network:\n  kind: leaf_spine\n  attach: host\n  source: s\n  nodes_per_leaf: 4\n"
                               "  link: {bandwidth: 1GB/s, latency: 0s}\n");
  const std::string child = folder.file(
      "child.yaml", "schema: collcast.topology.v1\nname: child\nextends: ./base.yaml\nnetwork:\n  kind: star\n");
  const Result<TopologySpec> spec = load_topology(child, {{}, {}, {}});
  REQUIRE_FALSE(spec.ok());
  REQUIRE(spec.errors().size() == 1);
  const std::string hint = spec.errors()[0].hint;
  INFO(hint);
  CHECK(hint.find("leave out 'network.kind' (" + child + ":5:9)") != std::string::npos);
  CHECK(hint.find("or copy") != std::string::npos);
  CHECK(hint.find("remove it") == std::string::npos);
}

TEST_CASE("a unit in the wrong case is offered in the right one") {
  const std::string text = machine_errors(
      machine_head + "network:\n  kind: star\n  attach: host\n  source: s\n  link: {bandwidth: 1gb/s, latency: 1NS}\n");
  CHECK(text.find("did you mean 'GB/s' or 'Gb/s'?") != std::string::npos);
  CHECK(text.find("did you mean 'ns'?") != std::string::npos);
}

TEST_CASE("a control character that a quoted text escapes is refused like a raw one") {
  for (const std::string control : {"\\u001b", "\\x7F", "\\u009b"}) {
    const std::string text = machine_errors(machine_head + "title: \"mi" + control + "[31mne\"\n");
    INFO(text);
    CHECK(text.find("expected a line of text without control characters") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("two mistakes are two diagnostics, in the order of the file") {
  const Result<TopologySpec> spec = parse_topology(
      "schema: collcast.topology.v1\nname: m\nnodes: {default: minus}\nnode: {devices: {host: {kind: hots}}}\n",
      "m.yaml");
  REQUIRE(spec.errors().size() == 2);
  CHECK(spec.errors()[0].where.line == 3);
  CHECK(spec.errors()[0].message == "nodes.default is 'minus'");
  CHECK(spec.errors()[1].where.line == 4);
  CHECK(spec.errors()[1].hint.find("did you mean 'host'?") == 0);
}

TEST_CASE("a file of another kind is told by its schema, without further noise") {
  CHECK(machine_errors("schema: collcast.scenario.v1\nname: x\nlayout: {tp: 8}\n") ==
        "m.yaml:1:9: error: schema is 'collcast.scenario.v1': this file is a scenario\n"
        "    hint: expected a machine (collcast.topology.v1); 'collcast step FILE' reads it\n");
  CHECK(machine_errors("schema: collcast.kernels.v1\nname: x\n") ==
        "m.yaml:1:9: error: schema is 'collcast.kernels.v1': this file is a kernel table\n"
        "    hint: expected a machine (collcast.topology.v1); 'collcast topology check' reads it with a machine that "
        "names it\n");
  CHECK(machine_errors("schema: collcast.topologie.v1\nname: x\n") ==
        "m.yaml:1:9: error: schema is 'collcast.topologie.v1'\n"
        "    hint: did you mean 'collcast.topology.v1'? expected one of: collcast.topology.v1\n");
}

TEST_CASE("every reader tells every other kind of file by its schema") {
  const std::vector<std::pair<std::string, std::function<std::string(const std::string&)>>> readers{
      {"topology", [](const auto& text) { return to_text(parse_topology(text, "f.yaml").errors()); }},
      {"kernels", [](const auto& text) { return to_text(parse_kernels(text, "f.yaml").errors()); }},
      {"scenario", [](const auto& text) { return to_text(parse_scenario(text, "f.yaml").errors()); }},
      {"schedule", [](const auto& text) { return to_text(parse_schedule(text, "f.yaml").errors()); }},
      {"overlay", [](const auto& text) { return to_text(parse_overlay(text, "f.yaml").errors()); }}};
  for (const auto& [expected, read] : readers)
    for (const auto& [given, unused] : readers) {
      if (given == expected) continue;
      const std::string said = read("schema: collcast." + given + ".v1\nname: x\n");
      INFO(expected << " reads " << given << ": " << said);
      CHECK(said.find("f.yaml:1:9: error: schema is 'collcast." + given + ".v1': this file is a") == 0);
      CHECK(said.find("(collcast." + expected + ".v1)") != std::string::npos);
    }
}

TEST_CASE("more than a hundred errors are counted, not listed") {
  std::string links = "node:\n  devices: {host: {kind: host}}\n  links:\n";
  for (int i = 0; i < 60; ++i) links += "    - {from: a, to: b, kind: x, bandwidth: 1, latency: 1, source: s}\n";
  const Result<TopologySpec> spec = parse_topology("schema: collcast.topology.v1\nname: m\n" + links, "m.yaml");
  REQUIRE(spec.errors().size() == 101);
  CHECK(spec.errors().back().message == "200 more errors");  // in each of 60 links 3 of form, 2 unknown names
}

TEST_CASE("a file that extends another merges maps and replaces lists") {
  const Folder folder("extends");
  folder.file(
      "base.yaml",
      "schema: collcast.topology.v1\nname: base\ntitle: Base\nsystems: [s1]\nsources: [a, b]\n"
      "gpu: {model: G, memory: 40GB, memory_bandwidth: 1TB/s, peak: {bf16: 1TFLOP/s, fp16: 1TFLOP/s}, source: s}\n"
      "node:\n  devices: {gpu: {kind: gpu, count: 8}}\n"
      "  links: [{from: gpu, to: gpu, kind: nvlink, bandwidth: 1GB/s, latency: 0s, source: s}]\n");
  const std::string child =
      folder.file("child.yaml",
                  "schema: collcast.topology.v1\nname: child\nextends: base\nsources: [c]\n"
                  "gpu: {memory: 80GB, peak: {bf16: 2TFLOP/s}}\nnode: {devices: {gpu: {count: 4}}}\n");
  const TopologySpec spec = load_topology("child", {{folder.path()}, {}}).value();
  CHECK(spec.file == child);
  CHECK(spec.name == "child");
  CHECK(spec.title.empty());  // name, title and systems are a file's own
  CHECK(spec.systems.empty());
  CHECK(spec.sources == std::vector<std::string>{"c"});
  CHECK(spec.gpu.memory == Bytes(80'000'000'000));
  CHECK(spec.gpu.memory_bandwidth == Bandwidth(1e12));
  CHECK(spec.gpu.peak.at("bf16") == FlopRate(2e12));
  CHECK(spec.gpu.peak.at("fp16") == FlopRate(1e12));
  CHECK(spec.devices.at(0).count == 4);
  CHECK(spec.links.at(0).where.file == folder.path() + "/base.yaml");  // errors point into the file that has them
}

TEST_CASE("an error in an extended file is reported there") {
  const Folder folder("extends-error");
  folder.file("base.yaml", "schema: collcast.topology.v1\nname: base\nnode: {devices: {gpu: {kind: gpu, count: 0}}}\n");
  const std::string child =
      folder.file("child.yaml", "schema: collcast.topology.v1\nname: child\nextends: ./base.yaml\n");
  const auto spec = load_topology(child, {});
  REQUIRE(spec.errors().size() == 1);
  CHECK(spec.errors()[0].where.file == folder.path() + "/base.yaml");
  CHECK(spec.errors()[0].where.line == 3);
  CHECK(spec.errors()[0].message == "node.devices.gpu.count is '0'");
}

TEST_CASE("an error in an extended file says who extends it, down the whole chain") {
  const Folder folder("extends-who");
  const std::string base = folder.file("base.yaml", machine_head + "nodes: {default: 0}\n");
  const std::string middle =
      folder.file("middle.yaml", "schema: collcast.topology.v1\nname: b\nextends: ./base.yaml\n");
  const std::string child =
      folder.file("child.yaml", "schema: collcast.topology.v1\nname: c\nextends: ./middle.yaml\n");
  const auto hint = [&] { return load_topology(child, {}).errors().at(0).hint; };
  const std::string who = "this file is extended at " + middle + ":3:10, which is extended at " + child + ":3:10";
  INFO(hint());
  CHECK(hint().ends_with(who));
  folder.file("base.yaml", "a: [1\n");  // not even YAML
  INFO(hint());
  CHECK(hint().ends_with(who));
  CHECK(load_topology(base, {}).errors().at(0).hint.find("extended") == std::string::npos);
}

TEST_CASE("what the user's file makes of a base is reported in the user's file") {
  const Folder folder("extends-misfit");
  folder.file("base.yaml",
              "schema: collcast.topology.v1\nname: base\nnode:\n  devices:\n    host: {kind: host, count: 4}\n"
              "    nic: {kind: nic, count: 4}\n  links:\n    - {from: host, to: nic, wiring: one_to_one, kind: pcie, "
              "bandwidth: 1GB/s, latency: 0s, source: s}\nnetwork:\n  kind: leaf_spine\n  attach: nic\n"
              "  source: s\n  nodes_per_leaf: 4\n  link: {bandwidth: 1GB/s, latency: 0s}\n");
  const auto errors = [&](const std::string& more, const std::vector<Override>& set = {}) {
    const std::string child =
        folder.file("child.yaml", "schema: collcast.topology.v1\nname: c\nextends: ./base.yaml\n" + more);
    const Result<TopologySpec> spec = load_topology(child, {}, set);
    Diagnostics out = spec.errors();
    if (spec) out = Fabric::build(*spec).errors();
    REQUIRE(out.size() == 1);
    return out.front();
  };
  // A count of the child's does not fit a link of the base.
  Diagnostic wrong = errors("node: {devices: {host: {count: 3}}}\n");
  CHECK(to_text(wrong.where) == folder.path() + "/child.yaml:4:32");
  CHECK(wrong.message.find("(" + folder.path() + "/base.yaml:8:7): wiring one_to_one does not fit 3 'host'") !=
        std::string::npos);
  // So does a setting's.
  wrong = errors("", {parse_override("node.devices.nic.count=3").value()});
  CHECK(to_text(wrong.where) == "--set node.devices.nic.count=3:1:30");
  // A value of the wrong kind stands where it was written.
  CHECK(to_text(errors("node: {devices: {host: {count: many}}}\n").where) == folder.path() + "/child.yaml:4:32");
  // A key of the base that the child's kind has no use for.
  wrong = errors("network: {kind: star}\n");
  CHECK(to_text(wrong.where) == folder.path() + "/child.yaml:4:17");
  CHECK(wrong.message.find("'network.nodes_per_leaf' (" + folder.path() + "/base.yaml:13:3) has no meaning here") == 0);
  // A key of the child's that the base's kind has no use for is the child's to remove.
  wrong = errors("network: {dims: [2]}\n");
  CHECK(to_text(wrong.where) == folder.path() + "/child.yaml:4:11");
  CHECK(wrong.hint == "remove it");
}

TEST_CASE("what cannot be extended is an error in the file that is extended") {
  const Folder folder("extends-what");
  const std::string child = folder.file("child.yaml",
                                        "schema: collcast.topology.v1\nname: child\nextends: ./base.yaml\n"
                                        "node: {devices: {gpu: {kind: host}}}\n");
  const auto says = [&](const std::string& base) {
    folder.file("base.yaml", base);
    return to_text(load_topology(child, {}).errors());
  };
  CHECK(says("- a\n- b\n").find("base.yaml:1:1: error: the file is a list") != std::string::npos);
  CHECK(says("word\n").find("base.yaml:1:1: error: the file is 'word'") != std::string::npos);
  CHECK(says("schema: no.such\nname: b\n").find("base.yaml:1:9: error: schema is 'no.such'") != std::string::npos);
  CHECK(says("name: b\n").find("required key 'schema' is missing") != std::string::npos);
  CHECK(says("schema: collcast.scenario.v1\nname: b\n").find("this file is a scenario") != std::string::npos);
}

TEST_CASE("a base that is not there hides none of the file's other errors, and none are made up") {
  const std::string text = to_text(parse_topology("schema: collcast.topology.v1\nname: m\n", "m.yaml").errors());
  CHECK(text.find("required key 'node' is missing") != std::string::npos);
  const Folder folder("extends-none");
  const std::string child = folder.file(
      "child.yaml", "schema: collcast.topology.v1\nname: m\nextends: dgx-h1000\nnodez: 4\ngpu: {memory: 80}\n");
  const auto spec = load_topology(child, samples::shipped());
  REQUIRE(spec.errors().size() == 3);
  CHECK(spec.errors()[0].message.find("there is no machine 'dgx-h1000'") != std::string::npos);
  CHECK(spec.errors()[1].message.find("unknown key 'nodez'") != std::string::npos);
  CHECK(spec.errors()[2].message.find("gpu.memory is '80'") != std::string::npos);
}

TEST_CASE("a circle of files shows the way round") {
  const Folder folder("circle");
  const auto text = [](const std::string& name, const std::string& base) {
    return "schema: collcast.topology.v1\nname: " + name + "\nextends: " + base + "\n";
  };
  const std::string a = folder.file("a.yaml", text("a", "./b.yaml"));
  folder.file("b.yaml", text("b", "./c.yaml"));
  folder.file("c.yaml", text("c", "../" + folder.name() + "/a.yaml"));
  const auto spec = load_topology(a, {});
  REQUIRE(spec.errors().size() == 1);
  const std::string d = folder.path();
  CHECK(spec.errors()[0].where.line == 3);
  CHECK(spec.errors()[0].message == "'extends' goes in a circle: " + a + " -> " + d + "/b.yaml -> " + d +
                                        "/c.yaml -> " + d + "/../" + folder.name() + "/a.yaml");
}

TEST_CASE("a long chain of files is cut off") {
  const Folder folder("chain");
  for (int i = 0; i < 20; ++i)
    folder.file("m" + std::to_string(i) + ".yaml",
                "schema: collcast.topology.v1\nname: m\nextends: m" + std::to_string(i + 1) + "\n");
  const auto spec = load_topology("m0", {{folder.path()}, {}});
  REQUIRE(spec.errors().size() == 1);
  CHECK(spec.errors()[0].message == "'extends' goes through more than 16 files");
}

TEST_CASE("a name that is not there is answered with the nearest one") {
  const auto spec = load_topology("dgx-a10", samples::shipped());
  REQUIRE(spec.errors().size() == 1);
  CHECK(spec.errors()[0].where.file == "command line");
  CHECK(spec.errors()[0].message == "there is no machine 'dgx-a10'");
  CHECK(spec.errors()[0].hint.find("did you mean 'dgx-a100'?") == 0);
}

TEST_CASE("the first folder of the search path wins") {
  const Folder mine("mine");
  mine.file("ring.yaml", machine_head);
  SearchPath search = samples::shipped();
  search.topologies.insert(search.topologies.begin(), mine.path());
  CHECK(load_topology("ring", search).value().name == "m");
  bool found = false;
  for (const TopologyEntry& entry : list_topologies(search)) {
    if (entry.name == "ring") {
      found = true;
      CHECK(entry.file == mine.path() + "/ring.yaml");
    }
  }
  CHECK(found);
}

TEST_CASE("errors of form do not hide names that no group has, nor wirings that do not fit") {
  const std::string text = machine_errors(
      "schema: collcast.topology.v1\n"
      "name: m\n"
      "node:\n"
      "  devices:\n"
      "    gpu: {kind: gpu, count: 8}\n"
      "    nic: {kind: nic, count: many}\n"
      "  links:\n"
      "    - {from: gpx, to: nic, kind: pcie, bandwidth: 30, latency: 1us, source: s}\n"
      "    - {from: gpu, to: gpu, wiring: one_to_one, kind: pcie, bandwidth: 30GB/s, latency: 1us, source: s}\n"
      "    - {from: gpu, to: nic, wiring: one_to_one, kind: pcie, bandwidth: 30GB/s, latency: 1us, source: s}\n"
      "network: {kind: star, attach: nci, link: {bandwidth: 1GB/s, latency: 1us}, source: s}\n");
  for (const char* expected : {
           "m.yaml:6:29: error: node.devices.nic.count is 'many'",
           "m.yaml:8:51: error: node.links.0.bandwidth is '30'",
           "m.yaml:8:14: error: link gpx - nic: no devices 'gpx'\n    hint: did you mean 'gpu'?",
           "m.yaml:9:36: error: link gpu - gpu: wiring one_to_one does not fit",
           "m.yaml:11:31: error: the network attaches to no devices 'nci'\n    hint: did you mean 'nic'?",
       }) {
    INFO(text << "\nlacks " << expected);
    CHECK(text.find(expected) != std::string::npos);
  }
  // How many NICs there are is not known, so nothing is said about the third link.
  CHECK(text.find("m.yaml:10:") == std::string::npos);
}

TEST_CASE("what NCCL's network plugin says is read, written again, and refused where there is no network") {
  const std::string machine =
      "schema: collcast.topology.v1\nname: m\nnode: {devices: {gpu: {kind: gpu, count: 2}, sw: {kind: nvswitch}}, "
      "links: "
      "[{from: gpu, to: sw, kind: nvlink, bandwidth: 1GB/s, latency: 1us, source: s}]}\nnetwork:\n";
  const std::string star = "  kind: star\n  attach: gpu\n  link: {bandwidth: 1GB/s, latency: 1us}\n  source: s\n";
  const Result<TopologySpec> spec =
      parse_topology(machine + star + "  plugin: {latency: 75us, gpudirect: false}\n", "m.yaml");
  INFO(to_text(spec.errors()));
  REQUIRE(spec.ok());
  CHECK(spec->plugin == NetworkPlugin{.latency = Seconds(75e-6), .gpudirect = false});
  const Result<TopologySpec> again = parse_topology(topology_text(*spec), "again.yaml");
  REQUIRE(again.ok());
  CHECK(again->plugin == spec->plugin);
  CHECK(topology_text(*parse_topology(machine + star, "m.yaml")).find("plugin") == std::string::npos);
  CHECK(machine_errors(machine + star + "  plugin: {latency: fast, gpudirect: maybe, rdma: true}\n") ==
        "m.yaml:9:21: error: network.plugin.latency is 'fast'\n"
        "    hint: expected a time of 0 or more with its unit, such as 500ns, 1.5us or 2ms, up to 1000000s\n"
        "m.yaml:9:38: error: network.plugin.gpudirect is 'maybe'\n    hint: expected true or false\n"
        "m.yaml:9:45: error: unknown key 'rdma' in network.plugin\n    hint: expected one of: sockets, collnet, "
        "environment\n");
  CHECK(machine_errors(machine + "  kind: none\n  plugin: {latency: 1us}\n") ==
        "m.yaml:6:3: error: 'network.plugin' has no meaning here: the network is 'none'\n    hint: remove it\n");
}

TEST_CASE("NCCL's versions of a machine's systems are read and written again, each wrong one at its place") {
  const std::string machine =
      "schema: collcast.topology.v1\nname: m\nsystems: [one, two]\nnode: {devices: {gpu: {kind: gpu, count: 1}}}\n"
      "nccl_versions: ";
  const Result<TopologySpec> spec = parse_topology(machine + "{one: 2.7.3, m: 2.18}\n", "m.yaml");
  INFO(to_text(spec.errors()));
  REQUIRE(spec.ok());
  CHECK(spec->nccl_versions == std::vector<std::pair<std::string, std::string>>{{"one", "2.7.3"}, {"m", "2.18"}});
  CHECK(parse_topology(topology_text(*spec), "again.yaml")->nccl_versions == spec->nccl_versions);
  CHECK(machine_errors(machine + "{one: new, three: 2.7.3, two: 2.}\n") ==
        "m.yaml:5:22: error: nccl_versions.one is 'new'\n    hint: expected a version of NCCL such as 2.27.3\n"
        "m.yaml:5:34: error: nccl_versions.three: this file does not stand for 'three'\n"
        "    hint: expected one of systems: one, two\n"
        "m.yaml:5:46: error: nccl_versions.two is '2.'\n    hint: expected a version of NCCL such as 2.27.3\n");
  for (const char* none : {"2", "0.1", ".2", "2..1", "2.1.1.1", "2.x", "2.1000", "99999999999.1", "-2.1", "''"}) {
    INFO(none);
    CHECK(machine_errors(machine + "{one: " + none + "}\n").find("expected a version of NCCL") != std::string::npos);
  }
}

TEST_CASE("variables that a machine sets for NCCL are read and written again, each wrong one at its place") {
  const std::string machine =
      "schema: collcast.topology.v1\nname: m\nnode: {devices: {gpu: {kind: gpu, count: 1}}}\nnetwork:\n  attach: gpu\n"
      "  link: {bandwidth: 1GB/s, latency: 1us}\n  source: s\n  kind: star\n  plugin: {environment: ";
  const Result<TopologySpec> spec =
      parse_topology(machine + "{NCCL_PROTO: \"Simple,LL128\", NCCL_CROSS_NIC: 0}}\n", "m.yaml");
  INFO(to_text(spec.errors()));
  REQUIRE(spec.ok());
  CHECK(spec->plugin.environment ==
        std::vector<std::pair<std::string, std::string>>{{"NCCL_PROTO", "Simple,LL128"}, {"NCCL_CROSS_NIC", "0"}});
  CHECK(parse_topology(topology_text(*spec), "again.yaml")->plugin == spec->plugin);
  CHECK(machine_errors(machine + "{NCCL_PROTO: fast, NCCL_PROTOS: LL, NCCL_ALGO: [Ring]}}\n") ==
        "m.yaml:9:38: error: NCCL_PROTO=fast: unknown name 'fast'\n    hint: expected one of: ll, ll128, simple\n"
        "m.yaml:9:57: error: unknown variable 'NCCL_PROTOS'\n    hint: did you mean 'NCCL_PROTO'?\n"
        "m.yaml:9:72: error: network.plugin.environment.NCCL_ALGO is a list\n    hint: expected its value\n");
  CHECK(machine_errors(machine + "NCCL_PROTO=LL}\n") ==
        "m.yaml:9:25: error: network.plugin.environment is 'NCCL_PROTO=LL'\n"
        "    hint: expected a map of variables and their values\n");
}

TEST_CASE("a reduction in the network is read and written again; sockets and grids have none") {
  const std::string machine =
      "schema: collcast.topology.v1\nname: m\nnode: {devices: {gpu: {kind: gpu, count: 1}}}\nnetwork:\n  attach: gpu\n"
      "  link: {bandwidth: 1GB/s, latency: 1us}\n  source: s\n";
  const Result<TopologySpec> spec = parse_topology(machine + "  kind: star\n  plugin: {collnet: true}\n", "m.yaml");
  INFO(to_text(spec.errors()));
  REQUIRE(spec.ok());
  CHECK(spec->plugin.collnet);
  CHECK(parse_topology(topology_text(*spec), "again.yaml")->plugin == spec->plugin);
  CHECK(machine_errors(machine + "  kind: star\n  plugin: {collnet: 1}\n") ==
        "m.yaml:9:21: error: network.plugin.collnet is '1'\n    hint: expected true or false\n");
  CHECK(
      machine_errors(machine + "  kind: star\n  plugin: {colnet: true}\n") ==
      "m.yaml:9:12: error: unknown key 'colnet' in network.plugin\n    hint: did you mean 'collnet'? expected one of: "
      "latency, gpudirect, sockets, collnet, environment\n");
  CHECK(machine_errors(machine + "  kind: star\n  plugin: {sockets: true, collnet: true}\n") ==
        "m.yaml:9:27: error: 'network.plugin.collnet' has no meaning here: sockets add nothing up\n    hint: remove "
        "it\n");
  CHECK(machine_errors(machine + "  kind: ring\n  plugin: {collnet: true}\n") ==
        "m.yaml:9:12: error: 'network.plugin.collnet' has no meaning here: the network has no switches that add up\n"
        "    hint: remove it\n");
}

TEST_CASE("a misspelt key of a container is one slip: what it holds is not missed elsewhere") {
  const auto text = [](const std::string& node, const std::string& devices) {
    return machine_errors("schema: collcast.topology.v1\nname: m\n" + node + ":\n  " + devices +
                          ": {gpu: {kind: gpu, count: 2}, sw: {kind: nvswitch}}\n"
                          "  links: [{from: gpu, to: sw, kind: nvlink, bandwidth: 1GB/s, latency: 1us, source: s}]\n"
                          "network: {kind: star, attach: gpu, link: {bandwidth: 1GB/s, latency: 1us}, source: s}\n");
  };
  CHECK(text("node", "devices").empty());
  CHECK(text("node", "device") ==
        "m.yaml:4:3: error: required key 'devices' is missing in node\n"
        "    hint: expected a map of keys and values\n"
        "m.yaml:4:3: error: unknown key 'device' in node\n"
        "    hint: did you mean 'devices'? expected one of: devices\n");
  CHECK(text("nodee", "devices").find("no devices") == std::string::npos);
}

TEST_CASE("a key that is there already is not what a misspelt one means") {
  const std::string said = machine_errors(
      "schema: collcast.topology.v1\nname: m\nnodes: {default: 2}\nnodee: {devices: {host: {kind: host}}}\n");
  CHECK(said.find("unknown key 'nodee'\n    hint: did you mean 'node'?") != std::string::npos);
  // 'node' and 'nodes' are as near: the one that is required.
  CHECK(machine_errors("schema: collcast.topology.v1\nname: m\nnodee: {devices: {host: {kind: host}}}\n")
            .find("unknown key 'nodee'\n    hint: did you mean 'node'?") != std::string::npos);
}
