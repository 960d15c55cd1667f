// Machines out: what is written and read back has the same channels; DOT is a graph.
#include <catch2/catch.hpp>

#include <regex>
#include <set>
#include <sstream>

#include "collcast/topology/fabric.hpp"
#include "nccl/system.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

std::vector<TopologySpec> shipped_with_gpus() {
  std::vector<TopologySpec> out;
  for (const TopologyEntry& entry : list_topologies({{COLLCAST_SOURCE_DIR "/topologies"}, {}, {}})) {
    TopologySpec spec = test::shipped_machine(entry.name);
    if (nccl::compute_capability(spec.gpu.model)) out.push_back(std::move(spec));
  }
  return out;
}

TopologySpec there_and_back(const TopologySpec& spec) {
  const auto xml = exchange::nccl_topology_xml(spec);
  INFO(spec.name << ": " << to_text(xml.errors()));
  REQUIRE(xml.ok());
  CHECK(to_text(xml->warnings) == "");
  const auto node = exchange::read_nccl_topology(xml->text, spec.name + ".xml");
  INFO(to_text(node.errors()));
  REQUIRE(node.ok());
  CHECK(to_text(node->warnings) == "");
  const auto machine = exchange::complete(*node, spec, "again");
  INFO(to_text(machine.errors()));
  REQUIRE(machine.ok());
  return machine->spec;
}

/// The kind of path that NCCL sees from each GPU to each other GPU and to each NIC.
std::vector<std::string> paths(const TopologySpec& spec) {
  const nccl::System system = nccl::system_of(spec, *nccl::compute_capability(spec.gpu.model), {});
  std::vector<std::string> out;
  const auto add = [&](int gpu, int other) {
    const auto way = nccl::way(system, system.first_gpu + gpu, other);
    out.push_back(way ? std::string(nccl::to_string(way->type)) : "none");
  };
  for (int gpu = 0; gpu < system.gpus; ++gpu) {
    for (int other = 0; other < system.gpus; ++other)
      if (other != gpu) add(gpu, system.first_gpu + other);
    for (int nic = 0; nic < system.nics; ++nic) add(gpu, system.first_nic + nic);
  }
  return out;
}

}  // namespace

TEST_CASE("every shipped machine with GPUs, written for NCCL and read back, has the same paths to GPUs and NICs") {
  for (const TopologySpec& spec : shipped_with_gpus()) {
    INFO(spec.name);
    CHECK(paths(there_and_back(spec)) == paths(spec));
  }
}

TEST_CASE("what NCCL's tree has no place for is said, link group by link group") {
  TopologySpec spec = test::shipped_machine("dgx-h100");
  const auto warnings = [&] { return exchange::nccl_topology_xml(spec)->warnings; };
  CHECK(warnings().empty());
  // Each NIC below the switch of the next GPU as well, and two switches joined.
  const auto nics =
      std::ranges::find_if(spec.links, [](const LinkGroup& link) { return link.from == "nic" && link.to == "pcie"; });
  LinkGroup second = *nics;
  second.wiring = Wiring::pairs;
  for (int i = 0; i < 8; ++i) second.pairs.emplace_back(i, (i + 1) % 8);
  LinkGroup between = second;
  between.from = between.to = "pcie";
  between.pairs = {{2, 3}};
  spec.links.push_back(second);
  spec.links.push_back(between);
  REQUIRE(Fabric::build(spec).ok());
  const Diagnostics said = warnings();
  REQUIRE(said.size() == 3);
  CHECK(said[0].message == "1 of 8 links nic - pcie are left out, such as nic7 - pcie7");
  CHECK(said[1].message == "7 of 8 links nic - pcie are left out, such as nic0 - pcie1");
  CHECK(said[2].message == "1 of 1 links pcie - pcie are left out, such as pcie2 - pcie3");
  CHECK_THAT(said[0].hint, Catch::Contains("hangs below one switch or socket"));
}

TEST_CASE("an NVLink's rate that is no whole number of the GPU's links is said") {
  TopologySpec spec = test::shipped_machine("dgx-h100");
  const auto nvlinks = std::ranges::find(spec.links, LinkKind::nvlink, &LinkGroup::kind);
  // Links of an H100 are of 25 GB/s: 10 are written as one, 260 as ten, 250.5 is ten but for rounding.
  const auto said = [&](double gigabytes) {
    nvlinks->bandwidth = Bandwidth(gigabytes * 1e9);
    const Diagnostics warnings = exchange::nccl_topology_xml(spec)->warnings;
    return warnings.empty() ? std::string() : warnings.front().message;
  };
  CHECK_THAT(said(10), Catch::EndsWith(" of 10 GB/s are written as one, which is 25 GB/s"));
  CHECK_THAT(said(260), Catch::EndsWith(" of 260 GB/s are written as 10, which is 250 GB/s"));
  CHECK(said(250.5).empty());
}

TEST_CASE("every shipped machine with GPUs, written for NCCL and read back, has the same channels") {
  const auto machines = shipped_with_gpus();
  CHECK(machines.size() > 30);
  for (const TopologySpec& spec : machines) {
    INFO(spec.name);
    const TopologySpec again = there_and_back(spec);
    CHECK(test::channels(again, 1) == test::channels(spec, 1));
    const bool joined = !std::holds_alternative<std::monostate>(spec.network) && spec.max_nodes != 1;
    if (joined) CHECK(test::channels(again, 2) == test::channels(spec, 2));
    CHECK(again.gpu.model == spec.gpu.model);
    if (spec.host.cpu != CpuFamily::unknown) CHECK(again.host.cpu == spec.host.cpu);
  }
}

TEST_CASE("a machine on a grid of nodes comes back with as many nodes as its grid has") {
  TopologySpec spec = test::shipped_machine("dgx-h100");
  const LeafSpineNetwork tree = std::get<LeafSpineNetwork>(spec.network);
  spec.network = TorusNetwork{{2, 2}, true, tree.bandwidth, tree.latency};
  spec.default_nodes = 4;
  const TopologySpec again = there_and_back(spec);
  CHECK(again.default_nodes == 4);
  CHECK(Fabric::build(again).ok());
  const Result<TopologySpec> read = parse_topology(topology_text(again, {}), "again.yaml");
  REQUIRE(read.ok());
  CHECK(Fabric::build(*read).ok());
}

TEST_CASE("a reduction in the network is written as coll, and taken from it") {
  TopologySpec with = test::shipped_machine("dgx-h100");
  with.plugin.collnet = true;
  const TopologySpec without = test::shipped_machine("dgx-h100");
  const auto imported = [&](const TopologySpec& spec) {
    return exchange::complete(*exchange::read_nccl_topology(exchange::nccl_topology_xml(spec)->text, "f"), without, "m")
        ->spec;
  };
  CHECK(imported(with).plugin.collnet);
  CHECK_FALSE(imported(without).plugin.collnet);
  CHECK(exchange::nccl_topology_xml(without)->text.find("coll=") == std::string::npos);
  std::string one = exchange::nccl_topology_xml(with)->text;
  one.replace(one.find("coll=\"1\""), 8, "coll=\"0\"");  // of all NICs, or not at all
  CHECK_FALSE(exchange::complete(*exchange::read_nccl_topology(one, "f"), without, "m")->spec.plugin.collnet);
}

TEST_CASE("hosts without GPUs, and GPUs that hang nowhere, are nothing for NCCL") {
  for (const char* name : {"ring", "star", "ethernet-hosts"}) {
    const auto xml = exchange::nccl_topology_xml(test::shipped_machine(name));
    REQUIRE_FALSE(xml.ok());
    CHECK_THAT(xml.errors().front().message, Catch::StartsWith(std::string(name) + " is no machine for NCCL"));
  }
  TopologySpec bare = test::shipped_machine("dgx1-v100");
  std::erase_if(bare.links, [](const LinkGroup& link) { return link.from == "gpu" && link.kind == LinkKind::pcie; });
  const auto xml = exchange::nccl_topology_xml(bare);
  REQUIRE_FALSE(xml.ok());
  CHECK(xml.errors().front().message == "gpu0 of dgx1-v100 is joined to no socket and no switch");
}

TEST_CASE("DOT is a graph whose edges join devices that it has") {
  // The subset of DOT's grammar (graphviz.org/doc/info/lang.html) that is written: graph, subgraphs, nodes, edges.
  const std::regex line(
      R"re(graph "[^"\\]*" \{|  node \[shape=box\];|  subgraph cluster_\d+ \{|    label="[^"]*";|  (  )?d\d+ \[label="[^"]*"\];|  d\d+ -- d\d+ \[label="[^"]*"\];|  \}|\})re");
  for (const TopologySpec& spec : shipped_with_gpus()) {
    const Result<Fabric> fabric = Fabric::build(spec);
    REQUIRE(fabric.ok());
    std::stringstream dot;
    fabric->write_dot(dot);
    std::set<std::string> devices;
    int open = 0;
    std::size_t edges = 0;
    for (std::string text; std::getline(dot, text);) {
      INFO(spec.name << ": " << text);
      REQUIRE(std::regex_match(text, line));
      open += text.ends_with("{") ? 1 : text.ends_with("}") ? -1 : 0;
      REQUIRE(open >= 0);
      std::istringstream words(text);
      std::string first, second, third;
      words >> first >> second >> third;
      if (second == "--") {
        ++edges;
        CHECK(devices.count(first) + devices.count(third) == 2);
      } else if (first.front() == 'd') {
        CHECK(devices.insert(first).second);
      }
    }
    CHECK(open == 0);
    CHECK(edges * 2 == fabric->links().size());
  }
}
