// What a stranger is told about a node that cannot be: each mistake once, at its place, with a remedy.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;
using Catch::Matchers::Contains;

namespace {

/// The one diagnostic of a spec with one mistake.
Diagnostic only(const TopologySpec& spec, int nodes = 1) {
  const Diagnostics wrong = refused(spec, nodes);
  INFO(to_text(wrong));
  REQUIRE(wrong.size() == 1);
  return wrong[0];
}

TopologySpec box() { return pcie_box(std::monostate()); }

/// The box with one more link group, at line 60.
TopologySpec box_with(std::string from, std::string to, Wiring wiring, std::vector<std::pair<int, int>> pairs = {}) {
  TopologySpec spec = box();
  LinkGroup group;
  group.from = std::move(from);
  group.to = std::move(to);
  group.wiring = wiring;
  group.pairs = std::move(pairs);
  group.bandwidth = gb_per_s(10);
  group.where = {"test.yaml", 60, 5};
  spec.links.push_back(group);
  return spec;
}

}  // namespace

TEST_CASE("an unknown device in a link is named with the nearest right word") {
  TopologySpec spec = box();
  spec.links[1].to = "cpuu";
  const Diagnostic d = only(spec);
  CHECK(d.message == "link nic - cpuu: no devices 'cpuu'");
  CHECK(d.hint == "did you mean 'cpu'? expected one of: gpu, cpu, nic");
  CHECK(d.where.line == 51);
}

TEST_CASE("two unknown devices are two diagnostics, also in one link") {
  TopologySpec spec = box();
  spec.links[1].from = "nik";
  spec.links[1].to = "cpuu";
  CHECK(refused(spec).size() == 2);
  spec.links[0].from = "gqu";
  CHECK(refused(spec).size() == 3);
}

TEST_CASE("a device group described twice is refused at its second place") {
  TopologySpec spec = box();
  spec.devices.push_back({"cpu", DeviceKind::cpu, 1, {"test.yaml", 20, 5}});
  const Diagnostic d = only(spec);
  CHECK(d.message == "devices 'cpu' are described twice");
  CHECK(d.where.line == 20);
}

TEST_CASE("a name that cannot stand in a report is refused") {
  for (const char* name : {"", "3d", "a b", "a.b", "x\"", "gpu\n", "-a"}) {
    TopologySpec spec = box();
    spec.devices.push_back({name, DeviceKind::cpu, 1, {}});
    CHECK_THAT(only(spec).message, Contains("is not a name for devices"));
  }
}

TEST_CASE("counts below one and beyond any machine are refused") {
  for (const int count : {0, -1, std::numeric_limits<int>::min()}) {
    TopologySpec spec = box();
    spec.devices[1].count = count;
    const Diagnostic d = only(spec);
    CHECK_THAT(d.message, Contains("devices of 'cpu'"));
    CHECK(d.where.line == 11);
  }
  for (const int count : {2049, std::numeric_limits<int>::max()}) {
    TopologySpec spec = box();
    spec.links.clear();
    spec.devices[0].count = count;
    CHECK_THAT(only(spec).message, Contains("devices in one node"));
  }
}

TEST_CASE("a node has exactly one group of endpoints") {
  TopologySpec none = box();
  none.devices[0].kind = DeviceKind::cpu;
  CHECK(only(none).message == "a node has no endpoints");

  TopologySpec two = box();
  two.devices.push_back({"host", DeviceKind::host, 1, {"test.yaml", 21, 5}});
  const Diagnostic d = only(two);
  CHECK(d.message == "'host' are endpoints of kind host beside 'gpu'");
  CHECK(d.where.line == 21);
}

TEST_CASE("a teaching machine has one endpoint per node") {
  TopologySpec spec = teaching(star());
  spec.devices[0].count = 2;
  CHECK_THAT(only(spec, 4).message, Contains("per node of a teaching machine"));
}

TEST_CASE("a link without bandwidth is refused, and so is a latency that is none") {
  for (const double rate : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    TopologySpec spec = box();
    spec.links[2].bandwidth = Bandwidth(rate);
    const Diagnostic d = only(spec);
    CHECK(d.message == "link cpu - cpu has no bandwidth");
    CHECK(d.where.line == 52);
  }
  for (const double time : {-1e-9, std::nan(""), std::numeric_limits<double>::infinity()}) {
    TopologySpec spec = box();
    spec.links[2].latency = Seconds(time);
    CHECK(only(spec).message == "link cpu - cpu has no valid latency");
  }
}

TEST_CASE("a node of more links than any machine has is refused before they are spelled out") {
  TopologySpec spec = box_with("gpu", "nic", Wiring::all);
  spec.links = {spec.links.back()};
  spec.devices = {{"gpu", DeviceKind::gpu, 257, {}}, {"nic", DeviceKind::nic, 256, {}}};
  const Diagnostic d = only(spec);
  CHECK(d.message == "65792 links in one node, 65792 of them link gpu - nic");
  CHECK_THAT(d.hint, Contains("at most 65536"));
  CHECK(d.where.line == 60);
  spec.origins.set("node.devices.gpu.count", {"--set node.devices.gpu.count=257", 1, 29});
  CHECK(only(spec).where.column == 29);
  // Among 400 devices of one group there are 400 * 399 / 2 pairs.
  spec.devices = {{"gpu", DeviceKind::gpu, 400, {}}};
  spec.links[0].to = "gpu";
  CHECK_THAT(only(spec).message, Contains("79800 links in one node"));
}

TEST_CASE("a wiring that does not fit its counts is refused with what would fit") {
  // 4 GPUs, 2 CPUs, 2 NICs.
  CHECK_THAT(only(box_with("gpu", "cpu", Wiring::one_to_one)).hint, Contains("equal counts"));
  CHECK_THAT(only(box_with("cpu", "gpu", Wiring::spread)).hint, Contains("from 'gpu' to 'cpu'"));
  CHECK_THAT(only(box_with("gpu", "gpu", Wiring::one_to_one)).hint, Contains("two different groups"));
  CHECK_THAT(only(box_with("gpu", "gpu", Wiring::spread)).hint, Contains("two different groups"));
  CHECK_THAT(only(box_with("gpu", "cpu", Wiring::ring)).hint, Contains("one group"));
  CHECK_THAT(only(box_with("cpu", "cpu", Wiring::ring)).hint, Contains("3 or more"));
  const Diagnostic d = only(box_with("gpu", "cpu", Wiring::one_to_one));
  CHECK(d.message == "link gpu - cpu: wiring one_to_one does not fit 4 'gpu' and 2 'cpu'");
  CHECK(d.where.line == 60);

  TopologySpec lonely = box_with("solo", "solo", Wiring::all);
  lonely.devices.push_back({"solo", DeviceKind::cpu, 1, {}});
  CHECK_THAT(only(lonely).hint, Contains("2 or more"));
}

TEST_CASE("pairs are in range, between two devices, and listed once") {
  CHECK_THAT(only(box_with("gpu", "cpu", Wiring::pairs, {{0, 0}, {4, 0}})).message,
             Contains("pair [4, 0] is out of range"));
  CHECK(only(box_with("gpu", "cpu", Wiring::pairs, {{0, 2}})).hint == "'gpu' has 0 to 3, 'cpu' has 0 to 1");
  CHECK_THAT(only(box_with("gpu", "cpu", Wiring::pairs, {{-1, 0}})).message, Contains("[-1, 0] is out of range"));
  CHECK_THAT(only(box_with("gpu", "gpu", Wiring::pairs, {{2, 2}})).message, Contains("joins a device to itself"));
  CHECK_THAT(only(box_with("gpu", "gpu", Wiring::pairs, {{0, 1}, {1, 0}})).message, Contains("[1, 0] is listed twice"));
  CHECK_THAT(only(box_with("gpu", "cpu", Wiring::pairs)).message, Contains("lists no pairs"));
  // Between two groups (0, 1) and (1, 0) are different cables.
  CHECK(Fabric::build(box_with("gpu", "nic", Wiring::pairs, {{0, 1}, {1, 0}}), 1).ok());
}

TEST_CASE("two links that join the same devices are refused, in either direction") {
  // GPUs 0 and 1 hang below CPU 0 already.
  for (const TopologySpec& spec : {box_with("gpu", "cpu", Wiring::pairs, {{0, 1}, {1, 0}}),
                                   box_with("cpu", "gpu", Wiring::pairs, {{1, 0}, {0, 1}})}) {
    const Diagnostic d = only(spec);
    INFO(d.message);
    CHECK_THAT(d.message, Contains("gpu1") && Contains("cpu0") && Contains("joined already, by link gpu - cpu"));
    CHECK_THAT(d.hint, Contains("one link of their summed bandwidth"));
    CHECK(d.where.line == 60);
  }
  CHECK_THAT(only(box_with("gpu", "cpu", Wiring::spread)).message, Contains("gpu0 and cpu0 are joined already"));
}

TEST_CASE("two wrong pairs are two diagnostics") {
  CHECK(refused(box_with("gpu", "cpu", Wiring::pairs, {{9, 0}, {0, 0}, {0, 9}})).size() == 2);
}

TEST_CASE("GPUs that nothing joins are named as a pair") {
  TopologySpec spec = box();
  spec.links.pop_back();  // between the sockets
  const Diagnostic d = only(spec);
  // 2 GPUs on each of 2 sockets: 2 * 2 * 2 ordered pairs are cut.
  CHECK(d.message ==
        "node0.gpu0 cannot reach node0.gpu2 (and 7 more): nothing joins them inside the node or through the network");
  CHECK(d.where.line == 10);
  CHECK_THAT(d.hint, Contains("pass no traffic on"));
}

TEST_CASE("mistakes of different kinds are told together") {
  TopologySpec spec = box();
  spec.devices[1].count = 0;               // line 11
  spec.links[0].bandwidth = Bandwidth(0);  // line 50
  spec.links[1].from = "nicc";             // line 51
  spec.devices.push_back({"gpu", DeviceKind::cpu, 1, {"test.yaml", 13, 5}});
  const Diagnostics wrong = refused(spec, 2);  // and no network for 2 nodes
  CHECK(wrong.size() == 5);
}
