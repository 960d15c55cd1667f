// What a stranger is told about a network that does not fit its nodes, and about sizes.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;
using Catch::Matchers::Contains;

namespace {

Diagnostic only(const TopologySpec& spec, int nodes) {
  const Diagnostics wrong = refused(spec, nodes);
  INFO(to_text(wrong));
  REQUIRE(wrong.size() == 1);
  return wrong[0];
}

}  // namespace

TEST_CASE("several nodes need a network") {
  CHECK(only(dgx(std::monostate()), 2).message == "2 nodes of 'dgx', which has no network");
}

TEST_CASE("the number of nodes is at least one and within the machine") {
  CHECK(only(dgx(star()), -1).message == "-1 nodes");
  TopologySpec spec = dgx(star());
  spec.max_nodes = 16;
  const Diagnostic d = only(spec, 17);
  CHECK(d.message == "17 nodes of 'dgx'");
  CHECK(d.hint == "this machine has at most 16");
  CHECK(Fabric::build(spec, 16).ok());
  spec.default_nodes = 0;
  CHECK(only(spec, 0).message == "0 nodes");
}

TEST_CASE("without a number of nodes the file's default counts") {
  TopologySpec spec = dgx(star());
  spec.default_nodes = 3;
  CHECK(build(spec, 0).nodes() == 3);
  CHECK(build(spec, 2).nodes() == 2);
}

TEST_CASE("a fabric beyond any machine is refused before it is built") {
  CHECK_THAT(only(dgx(star()), std::numeric_limits<int>::max()).message, Contains("nodes"));
  // A million pods of one node with 8 leaves each, every leaf to 2^20 spines: 8.4e12 cables; the bound is 2^26.
  TopologySpec spec = dgx(rails(1, 1 << 20, 1));
  CHECK_THAT(only(spec, most_nodes).message, Contains("devices and cables"));
  CHECK_THAT(only(spec, most_nodes + 1).message, Contains("1000001 nodes"));
}

TEST_CASE("the network attaches to NICs or endpoints that exist") {
  TopologySpec spec = dgx(star());
  spec.network_devices = "nics";
  const Diagnostic d = only(spec, 2);
  CHECK(d.message == "the network attaches to no devices 'nics'");
  CHECK_THAT(d.hint, Contains("did you mean 'nic'?"));
  CHECK(d.where.line == 90);  // of the network, of which this description says no more
  spec.origins.set("network.attach", {"test.yaml", 92, 11});
  CHECK(only(spec, 2).where.line == 92);
  spec.network_devices = "";
  CHECK(only(spec, 2).message == "the network attaches to no devices");
  spec.network_devices = "plx";
  CHECK(only(spec, 2).message == "the network attaches to 'plx' of kind pcie_switch");
}

TEST_CASE("every kind of network needs its bandwidth and valid latencies") {
  CHECK(only(dgx(StarNetwork{}), 2).message == "the star network has no bandwidth");
  CHECK(only(teaching(TorusNetwork{}), 2).message == "the ring network has no bandwidth");
  CHECK(only(teaching(TorusNetwork{{2}, true}), 2).message == "the torus network has no bandwidth");
  CHECK(only(teaching(TorusNetwork{{}, false}), 2).message == "the mesh network has no bandwidth");
  LeafSpineNetwork network = rails(4, 1, 1);
  network.bandwidth = Bandwidth(-1);
  network.latency = Seconds(-1);
  network.spine_latency = Seconds(std::nan(""));
  const Diagnostics wrong = refused(dgx(network), 2);
  REQUIRE(wrong.size() == 3);
  CHECK(wrong[0].message == "the leaf/spine network has no bandwidth");
  CHECK(wrong[1].message == "the leaf/spine network has no valid latency");
  CHECK(wrong[2].message == "the leaf/spine network has no valid spine latency");
}

TEST_CASE("the dimensions of a torus multiply to its nodes") {
  const Diagnostic d = only(teaching(torus({3, 4}, true)), 13);
  CHECK(d.message == "torus dimensions [3, 4] hold 12 nodes, not 13");
  CHECK(d.hint == "the number of nodes is their product: --ranks 12 or nodes.default 12; or other dimensions");
  CHECK(d.where.line == 90);
  CHECK(only(teaching(torus({4, 0}, true)), 4).message == "a torus dimension of 0");
  CHECK(only(teaching(torus({-2, -2}, false)), 4).message == "a mesh dimension of -2");
  CHECK(only(teaching(torus({2, 3}, false)), 8).message == "mesh dimensions [2, 3] hold 6 nodes, not 8");
  // Larger than any integer type would hold.
  CHECK_THAT(only(teaching(torus(std::vector<int>(9, 2'000'000'000), true)), 4).message, Contains("not 4"));
}

TEST_CASE("of two values that do not fit the one nearest to the user is at fault") {
  TopologySpec spec = teaching(torus({3, 4}, true));
  spec.files = {{"mine.yaml", {}}, {"base.yaml", {}}};
  const auto blamed = [&](const Location& dims, const Location& nodes) {
    spec.origins.set("network.dims", dims);
    const auto built = Fabric::build(spec, 13, nodes);
    REQUIRE_FALSE(built);
    return to_text(built.errors().front().where);
  };
  const Location typed{"--set network.dims=[3,4]", 1, 20}, asked{"--nodes 13", 1, 9}, variant{"s.yaml", 9, 3};
  CHECK(blamed({"mine.yaml", 7, 3}, {"mine.yaml", 2, 3}) == "mine.yaml:7:3");
  CHECK(blamed({"base.yaml", 7, 3}, {"mine.yaml", 2, 3}) == "mine.yaml:2:3");
  CHECK(blamed({"mine.yaml", 7, 3}, {"base.yaml", 2, 3}) == "mine.yaml:7:3");
  CHECK(blamed({"mine.yaml", 7, 3}, asked) == "--nodes 13:1:9");
  CHECK(blamed({"mine.yaml", 7, 3}, variant) == "s.yaml:9:3");
  CHECK(blamed(variant, asked) == "--nodes 13:1:9");
  CHECK(blamed(typed, asked) == to_text(typed));
}

TEST_CASE("leaves without spines are not joined") {
  for (const bool on_rails : {true, false}) {
    LeafSpineNetwork network = rails(4, 0, 1);
    network.rail_optimized = on_rails;
    const Diagnostic d = only(dgx(network), 5);
    CHECK(d.message == "5 nodes with 4 per leaf and no spines: nothing joins node0 and node4");
    CHECK(Fabric::build(dgx(network), 4).ok());
  }
}

TEST_CASE("numbers of a leaf/spine network out of range are all told") {
  LeafSpineNetwork network = rails(0, -1, 0);
  CHECK(refused(dgx(network), 2).size() == 3);
  network = rails(4, 1, std::numeric_limits<double>::infinity());
  CHECK_THAT(only(dgx(network), 2).message, Contains("oversubscription"));
}

TEST_CASE("an endpoint without a way to the network is named, and a NIC without one too") {
  TopologySpec spec = dgx(star());
  spec.links.erase(spec.links.begin() + 2);  // NICs to PCIe switches, line 52
  const Diagnostics wrong = refused(spec, 2);
  REQUIRE(wrong.size() == 2);
  CHECK(wrong[0].message == "node0.gpu0 reaches none of 'nic', which the network attaches to (and 7 more)");
  CHECK(wrong[0].where.line == 10);
  CHECK(wrong[1].message == "no endpoint reaches node0.nic0 (and 7 more)");
  CHECK(wrong[1].where.line == 14);

  TopologySpec one = isolated_rails(3, star());
  one.links[1].wiring = Wiring::pairs;  // GPU 2 keeps only its NVLink, NIC 2 has no GPU
  one.links[1].pairs = {{0, 0}, {1, 1}};
  const Diagnostics lost = refused(one, 2);
  REQUIRE(lost.size() == 2);
  CHECK(lost[0].message == "node0.gpu2 reaches none of 'nic', which the network attaches to");
  CHECK(lost[1].message == "no endpoint reaches node0.nic2");
}

TEST_CASE("rails that nothing joins are refused where a sender cannot reach the receiver's rail") {
  const Diagnostic d = only(isolated_rails(2, rails(4, 0, 1)), 2);
  CHECK(d.message ==
        "node0.gpu0 cannot reach node1.gpu1 (and 1 more): the network keeps rails apart, and node0.gpu0 does not reach "
        "the rail of node0.gpu1");
  CHECK(d.where.line == 90);
  CHECK(Fabric::build(isolated_rails(2, rails(4, 1, 1)), 2).ok());
  // One node alone never asks.
  CHECK(Fabric::build(isolated_rails(2, rails(4, 0, 1)), 1).ok());
}

TEST_CASE("GPUs that share their only NIC cannot reach each other through it") {
  TopologySpec spec = pcie_box(star());
  spec.devices = {{"gpu", DeviceKind::gpu, 2, {}}, {"nic", DeviceKind::nic, 1, {}}};
  spec.links = {spec.links[0]};
  spec.links[0].to = "nic";
  CHECK(only(spec, 2).message ==
        "node0.gpu0 cannot reach node0.gpu1 (and 1 more): nothing joins them inside the node or through the network");
}

TEST_CASE("a mistake in the node and one in the network are told together") {
  TopologySpec spec = dgx(rails(4, -1, 1));
  spec.links[0].to = "nvswich";
  CHECK(refused(spec, 2).size() == 2);
}

TEST_CASE("a network's group is what it is attached to, whatever else a node has") {
  TopologySpec spec = dgx(star());
  REQUIRE(network_group(spec) == &spec.devices.back());
  CHECK(network_ports(spec) == 8);
  spec.devices.insert(spec.devices.begin(), {"storage", DeviceKind::nic, 2, {}});
  CHECK(network_group(std::as_const(spec))->name == "nic");
  CHECK(network_ports(spec) == 8);
  const TopologySpec hosts = teaching(star());
  CHECK(network_group(hosts)->kind == DeviceKind::host);
  CHECK(network_ports(hosts) == 1);
  spec.network_devices = "nics";
  CHECK(network_group(spec) == nullptr);
  CHECK(network_ports(spec) == 0);
}
