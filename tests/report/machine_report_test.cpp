// Groups and machines: collcast.groups.v1, topology.v1, topologies.v1, check.v1.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

#include "collcast/report/documents.hpp"

using namespace collcast;
using Json = nlohmann::json;

namespace {

/// Two nodes of four GPUs on a switch; one NIC per node on a star.
TopologySpec two_nodes_of_four() {
  TopologySpec spec;
  spec.name = "pair";
  spec.title = "two small nodes";
  spec.default_nodes = 2;
  spec.sources = {"made up"};
  spec.devices = {
      {"gpu", DeviceKind::gpu, 4, {}}, {"switch", DeviceKind::nvswitch, 1, {}}, {"nic", DeviceKind::nic, 1, {}}};
  spec.links = {
      {"gpu", "switch", Wiring::all, {}, LinkKind::nvlink, Bandwidth(100e9), Seconds(1e-6), "made up, link", {}},
      {"switch", "nic", Wiring::all, {}, LinkKind::pcie, Bandwidth(50e9), Seconds(1e-6), "made up, PCIe", {}}};
  spec.network_devices = "nic";
  spec.network = StarNetwork{Bandwidth(25e9), Seconds(2e-6)};
  return spec;
}

GroupsReport reference_groups() {
  GroupsReport report;
  report.layout.tp = report.layout.pp = report.layout.dp = 8;
  for (std::uint32_t r = 0; r < 512; ++r) report.rows.push_back(groups_of(report.layout, Rank(r)));
  return report;
}

std::vector<int> arithmetic(int first, int step, int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(first + i * step);
  return out;
}

std::string machine_text(const Page& page) {
  std::ostringstream out;
  write_text(out, page);
  return out.str();
}

}  // namespace

TEST_CASE("the groups of GPU 0 in 512 as TP 8 x PP 8 x DP 8") {
  const Json doc = Json::parse(json(reference_groups()));
  CHECK(doc.at("schema") == "collcast.groups.v1");
  REQUIRE(doc.at("rows").size() == 512);
  const Json& row = doc.at("rows").at(0);
  CHECK(row.at("rank") == 0);
  CHECK(row.at("tp") == arithmetic(0, 1, 8));   // neighbours
  CHECK(row.at("pp") == arithmetic(0, 8, 8));   // TP apart
  CHECK(row.at("dp") == arithmetic(0, 64, 8));  // TP x PP apart
  CHECK(row.at("cp") == arithmetic(0, 1, 1));
  CHECK(row.at("ep") == arithmetic(0, 1, 1));
  CHECK(machine_text(page(reference_groups())).find("0  0-7       0, 8 … 56       0, 64 … 448\n") != std::string::npos);
}

TEST_CASE("every rank is in each of its own groups") {
  const Json doc = Json::parse(json(reference_groups()));
  for (const Json& row : doc.at("rows")) {
    for (const char* dimension : {"tp", "pp", "dp", "cp", "ep"}) {
      const auto& members = row.at(dimension);
      CHECK(std::count(members.begin(), members.end(), row.at("rank")) == 1);
    }
  }
}

TEST_CASE("lists of ranks are one CSV cell") {
  GroupsReport report = reference_groups();
  report.rows.resize(1);
  CHECK(csv(report).rows.at(0).at(2) == "0 8 16 24 32 40 48 56");
}

TEST_CASE("crossings tell traffic inside a node from traffic across nodes") {
  const Result<Fabric> fabric = Fabric::build(two_nodes_of_four());
  REQUIRE(fabric.ok());
  ParallelLayout layout;
  layout.tp = 4;
  layout.dp = 2;
  const std::vector<Crossing> found = crossings(*fabric, layout);
  REQUIRE(found.size() == 3);
  CHECK(found[0].dimension == "tp");
  CHECK(found[0].groups == 2);
  CHECK(found[0].nodes == 1);
  CHECK(found[0].kinds == std::vector<std::string>{"nvlink"});
  CHECK(found[0].bandwidth == Bandwidth(100e9));
  CHECK(found[1].kinds.empty());  // PP 1: nothing to cross
  CHECK(found[2].groups == 4);
  CHECK(found[2].nodes == 2);
  CHECK(found[2].bandwidth == Bandwidth(25e9));
  // gpu-switch, switch-nic, up and down the star, nic-switch, switch-gpu: 1 + 1 + 2 + 2 + 1 + 1 us.
  CHECK(found[2].latency.count() == Approx(8e-6));
}

TEST_CASE("a machine is described with its links, its sources and examples of paths") {
  const Result<Fabric> fabric = Fabric::build(two_nodes_of_four());
  REQUIRE(fabric.ok());
  const TopologyReport report = describe(*fabric);
  const Json doc = Json::parse(json(report));
  CHECK(doc.at("schema") == "collcast.machine.v1");
  CHECK(doc.at("sources").at(0) == "made up");
  CHECK(doc.at("gpu").is_null());
  // Per node 4 + 1 cables and one to the star, each two directed links, on 2 nodes.
  CHECK(doc.at("links") == 2 * 2 * (4 + 1 + 1));
  // 0 -> 1 in the node, 0 -> 4 one node on, 0 -> 7 the far end.
  REQUIRE(doc.at("paths").size() == 3);
  CHECK(doc.at("paths").at(1).at("links").size() == 6);
  CHECK(machine_text(page(report)).find("source: made up") != std::string::npos);
}

TEST_CASE("the digest of a machine follows its numbers, not its file's place") {
  TopologySpec spec = two_nodes_of_four();
  const auto digest = [&] { return summary(Fabric::build(spec).value()).digest; };
  const std::string before = digest();
  CHECK(before.size() == std::string("fnv1a64:").size() + 16);
  spec.file = "elsewhere.yaml";
  CHECK(digest() == before);
  spec.links[0].bandwidth = Bandwidth(101e9);
  CHECK(digest() != before);
}

TEST_CASE("a check says ok with counts, or lists every error") {
  const Result<Fabric> fabric = Fabric::build(two_nodes_of_four());
  REQUIRE(fabric.ok());
  const CheckReport good{"pair", describe(*fabric), {}};
  CHECK(machine_text(page(good)) == "ok: pair, 2 nodes, 8 ranks, 24 directed links\n");
  CHECK(Json::parse(json(good)).at("ok") == true);

  const CheckReport bad{"x", std::nullopt, {{{"x.yaml", 3, 7}, "unknown key 'nodse'", "did you mean 'nodes'?"}}};
  const Json doc = Json::parse(json(bad));
  CHECK(doc.at("ok") == false);
  CHECK(doc.at("errors").at(0).at("line") == 3);
  CHECK(doc.at("ranks").is_null());
}

TEST_CASE("the list of machines has a row each") {
  TopologyListing listing;
  listing.entries = {{"ring", "a ring", "", 1, 8, true}, {"dgx", "a box", "A100", 8, 1, false}};
  const Json doc = Json::parse(json(listing));
  CHECK(doc.at("schema") == "collcast.topologies.v1");
  CHECK(doc.at("rows").size() == 2);
  CHECK(doc.at("rows").at(0).at("gpu").is_null());
  CHECK(machine_text(page(listing)).find("dgx   A100") != std::string::npos);
}

TEST_CASE("names that are no UTF-8 do not break a document") {
  TopologyListing listing;
  listing.entries = {{"bad\xff", "t", "", 1, 1, false}};
  CHECK(Json::parse(json(listing)).at("rows").at(0).at("name") == "bad\xEF\xBF\xBD");
}

TEST_CASE("an error of a check says which file it is in, without the folder") {
  const CheckReport report{
      "m", std::nullopt, {{{"/a/base.yaml", 21, 3}, "wrong", "right"}, {{"--set node=a/b", 1, 12}, "wrong", ""}}};
  const Json errors = Json::parse(json(report)).at("errors");
  CHECK(errors.at(0).at("file") == "base.yaml");
  CHECK(errors.at(0).at("line") == 21);
  CHECK(errors.at(1).at("file") == "--set node=a/b");
}

TEST_CASE("oversubscribed leaves are told of library nccl where CollNet is, and there are nodes on several") {
  TopologySpec spec = two_nodes_of_four();
  const auto told = [&](const char* library) {
    MachineSummary machine = summary(Fabric::build(spec).value());
    machine.library = library;
    const std::vector<std::string> all = machine_warnings(machine);
    return all.empty() ? std::string() : all.front();
  };
  CHECK(told("nccl").empty());
  LeafSpineNetwork tree;
  tree.rail_optimized = false;
  tree.nodes_per_leaf = 1;
  tree.spines = 2;
  tree.oversubscription = 4;
  tree.bandwidth = Bandwidth(25e9);
  spec.network = tree;
  CHECK(told("nccl").empty());
  spec.plugin.collnet = true;
  CHECK(told("nccl").starts_with("leaves are oversubscribed 4:1"));
  CHECK(told("ideal").empty());
  tree.nodes_per_leaf = 2;
  spec.network = tree;
  CHECK(told("nccl").empty());
}
