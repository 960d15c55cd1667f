// Leaf/spine networks and the choice of NIC: rails, spines, lanes, oversubscription.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;
using Stops = std::vector<std::string>;

TEST_CASE("on one rail a message goes NIC, leaf, NIC") {
  const Fabric fabric = build(dgx(rails(4, 2, 1)), 4);
  // gpu2 has nic2 and nic3 behind its PCIe switch, and the first turn at them.
  CHECK(stops(fabric, 2, 8 + 2) ==
        Stops{"node0.gpu2", "node0.plx1", "node0.nic2", "leaf2", "node1.nic2", "node1.plx1", "node1.gpu2"});
  const Path path = fabric.path(Rank(2), Rank(10));
  CHECK(path.latency.count() == Approx(4 * 300e-9 + 2 * 600e-9));
  CHECK(path.bandwidth == gb_per_s(25));  // PCIe is the narrowest
}

TEST_CASE("endpoints that share NICs are spread over them, and every eighth lane of eight GPUs moves them on") {
  const Fabric fabric = build(dgx(star()), 2);
  for (int gpu = 0; gpu < 8; ++gpu)
    for (int lane = 0; lane < 32; ++lane) {
      // NICs 2s and 2s+1 are behind PCIe switch s, as are GPUs 2s and 2s+1.
      const int nic = gpu / 2 * 2 + (gpu % 2 + lane / 8) % 2;
      CHECK(stops(fabric, gpu, 8 + gpu, lane)[2] == "node0.nic" + std::to_string(nic));
      CHECK(stops(fabric, gpu, 8 + gpu, lane)[4] == "node1.nic" + std::to_string(nic));
    }
}

TEST_CASE("across rails a message crosses a spine, hop by hop") {
  const Fabric fabric = build(isolated_rails(4, rails(4, 2, 1)), 8);
  // Nodes 0 to 3 are pod 0 with leaves 0 to 3, nodes 4 to 7 pod 1 with leaves 4 to 7. The receiver node1 is
  // port 1 of its leaf, so lane 0 takes spine 1.
  CHECK(stops(fabric, 0, 4 + 3) == Stops{"node0.gpu0", "node0.plx0", "node0.nic0", "leaf0", "spine1", "leaf3",
                                         "node1.nic3", "node1.plx3", "node1.gpu3"});
  // To node6, port 2 of leaf 4 + 0 in the other pod, on the same rail.
  CHECK(stops(fabric, 0, 24) == Stops{"node0.gpu0", "node0.plx0", "node0.nic0", "leaf0", "spine0", "leaf4",
                                      "node6.nic0", "node6.plx0", "node6.gpu0"});
  CHECK(fabric.path(Rank(0), Rank(24)).latency.count() == Approx(4 * 300e-9 + 2 * 600e-9 + 2 * 700e-9));
}

TEST_CASE("without spines the sender takes the NIC of the receiver's rail") {
  const Fabric fabric = build(pcie_box(rails(4, 0, 1)), 4);
  CHECK(stops(fabric, 0, 4 + 2) == Stops{"node0.gpu0", "node0.cpu0", "node0.cpu1", "node0.nic1", "leaf1", "node1.nic1",
                                         "node1.cpu1", "node1.gpu2"});
  CHECK(stops(fabric, 6, 0) == Stops{"node1.gpu2", "node1.cpu1", "node1.cpu0", "node1.nic0", "leaf0", "node0.nic0",
                                     "node0.cpu0", "node0.gpu0"});
}

TEST_CASE("by the receiver's rail a node is left where it relays, else by the sender's own NIC") {
  for (const int spines : {2, 0}) {
    TopologySpec spec = pcie_box(rails(4, spines, 1));
    std::get<LeafSpineNetwork>(spec.network).by_receivers_rail = true;
    const Fabric all = build(spec, 4);
    const Fabric some = all.with_relays({true, false, true, true, true, true, true, true});  // not by nic1 of node 0
    for (const int lane : {0, 4, 5}) {
      CHECK(all.nic_of(Rank(0), lane) == 0);
      CHECK(all.nic_of(Rank(6), lane) == 1);
      CHECK(stops(all, 0, 6, lane)[3] == "node0.nic1");
      CHECK(stops(some, 6, 0, lane) == stops(all, 6, 0, lane));
      CHECK(stops(some, 0, 5, lane) == stops(all, 0, 5, lane));
      // Without spines there is no other way.
      if (spines == 0) CHECK(stops(some, 0, 6, lane) == stops(all, 0, 6, lane));
      if (spines > 0) CHECK(stops(some, 0, 6, lane)[2] == "node0.nic0");
      if (spines > 0) CHECK(stops(some, 0, 6, lane)[5] == "leaf1");
    }
  }
}

TEST_CASE("lanes enter and leave nodes by the ports that are said, others as the rule has it") {
  for (const int spines : {2, 0}) {
    TopologySpec spec = pcie_box(rails(4, spines, 1));
    std::get<LeafSpineNetwork>(spec.network).by_receivers_rail = true;
    const Fabric by_rule = build(spec, 3);
    using Ports = Fabric::PortsOfLane;
    const Fabric said = by_rule.with_ports({{Ports{0, 1}, Ports{1, 0}, Ports{}}, {Ports{1, 0}, Ports{0, 0}, Ports{}}});
    for (const int lane : {0, 1, 2, 3}) {
      INFO(spines << " spines, lane " << lane);
      // Of both nodes, whichever their ranks; without spines by the receiver's rail.
      const int in = lane % 2 == 0 ? 1 : 0, out = spines == 0 ? in : lane % 2 == 0 ? 1 : 0;
      const Stops way = stops(said, 1, 5, lane);
      CHECK(std::ranges::count(way, "node0.nic" + std::to_string(out)) == 1);
      CHECK(std::ranges::count(way, "node1.nic" + std::to_string(in)) == 1);
      CHECK(said.nic_of(Rank(5), lane) == in);
      CHECK(stops(said, 8, 9, lane) == stops(by_rule, 8, 9, lane));
      CHECK(said.nic_of(Rank(10), lane) == by_rule.nic_of(Rank(10), lane));
    }
    // Behind drives as before them.
    const Fabric driven = said.with_drives(4, gb_per_s(2), {0});
    for (const int lane : {0, 1}) CHECK(driven.nic_of(Rank(0), lane) == said.nic_of(Rank(0), lane));
  }
}

TEST_CASE("plain leaves hold all NICs of their nodes") {
  const Fabric fabric = build(pcie_box(plain_leaves(2, 2, 1)), 4);
  CHECK(stops(fabric, 0, 6) ==
        Stops{"node0.gpu0", "node0.cpu0", "node0.nic0", "leaf0", "node1.nic1", "node1.cpu1", "node1.gpu2"});
  // gpu2 of node3 is behind nic1: port 1 * 2 + 1 = 3 of leaf1, so lane 0 takes spine 3 mod 2 = 1.
  CHECK(stops(fabric, 0, 14)[4] == "spine1");
  CHECK(stops(fabric, 0, 14, 1)[4] == "spine0");
}

TEST_CASE("one rail is a plain leaf") {
  TopologySpec spec = teaching(rails(2, 3, 2));
  const Fabric rail = build(spec, 6);
  spec.network = plain_leaves(2, 3, 2);
  const Fabric plain = build(spec, 6);
  CHECK(rail.links().size() == plain.links().size());
  for (int from = 0; from < 6; ++from)
    for (int to = 0; to < 6; ++to) CHECK(stops(rail, from, to, 1) == stops(plain, from, to, 1));
}

TEST_CASE("an uplink is the leaf's down bandwidth over oversubscription and spines") {
  const auto uplink = [](const TopologySpec& spec, int nodes) {
    const Fabric fabric = build(spec, nodes);
    for (std::uint32_t link = 0; link < fabric.links().size(); ++link)
      if (fabric.link_name(LinkId(link)) == "leaf0 -> spine1") return fabric.links()[link].bandwidth;
    return Bandwidth(0);
  };
  // Rails: 4 ports of 50 GB/s per leaf, 200 GB/s down; over 2 spines 100 each at 1:1, 40 at 2.5:1.
  CHECK(uplink(pcie_box(rails(4, 2, 1)), 8) == gb_per_s(100));
  CHECK(uplink(pcie_box(rails(4, 2, 2.5)), 8) == gb_per_s(40));
  // All 2 NICs of 4 nodes on a leaf: 400 GB/s down, 200 each over 2 spines.
  CHECK(uplink(pcie_box(plain_leaves(4, 2, 1)), 8) == gb_per_s(200));
  // A leaf that is not full keeps its uplinks.
  CHECK(uplink(pcie_box(plain_leaves(4, 2, 1)), 5) == gb_per_s(200));
}

TEST_CASE("the lanes of a pair use every spine evenly") {
  const Fabric fabric = build(teaching(plain_leaves(4, 4, 1)), 8);
  std::map<std::string, int> uses;
  for (int lane = 0; lane < 12; ++lane) ++uses[stops(fabric, 0, 5, lane)[2]];
  CHECK(uses == std::map<std::string, int>{{"spine0", 3}, {"spine1", 3}, {"spine2", 3}, {"spine3", 3}});
}

TEST_CASE("a shift from leaf to leaf uses every spine once when there are as many spines as ports") {
  // Destination-modulo routing: distinct ports of the receiving leaf come down distinct spines.
  const Fabric fabric = build(teaching(plain_leaves(4, 4, 1)), 8);
  std::set<LinkId> up;
  for (int i = 0; i < 4; ++i) up.insert(links_of(fabric, i, 4 + i)[1]);
  CHECK(up.size() == 4);
}

TEST_CASE("the largest lane is as good as its remainder") {
  const Fabric fabric = build(teaching(plain_leaves(4, 4, 1)), 8);
  const int largest = std::numeric_limits<int>::max();  // 2^31 - 1, 3 modulo 4
  CHECK(links_of(fabric, 0, 5, largest) == links_of(fabric, 0, 5, 3));
}

TEST_CASE("GPUs that nothing joins inside the node go out by their own NICs and back") {
  TopologySpec spec = isolated_rails(2, star());
  spec.links.erase(spec.links.begin());  // the NVSwitch's links
  CHECK(stops(build(spec, 1), 0, 1) ==
        Stops{"node0.gpu0", "node0.plx0", "node0.nic0", "switch", "node0.nic1", "node0.plx1", "node0.gpu1"});
  spec.network = rails(4, 1, 1);
  CHECK(stops(build(spec, 1), 0, 1)[4] == "spine0");
}
