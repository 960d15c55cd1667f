// Ways inside a node: the cheapest for 1 MiB, never through an endpoint or a NIC, ties by rule.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;
using Stops = std::vector<std::string>;

TEST_CASE("GPUs of an NVSwitch node talk through the switch although a PCIe way has as many hops") {
  const Fabric fabric = build(dgx(std::monostate()), 1);
  CHECK(stops(fabric, 0, 1) == Stops{"node0.gpu0", "node0.nvswitch0", "node0.gpu1"});
  CHECK(stops(fabric, 7, 2) == Stops{"node0.gpu7", "node0.nvswitch0", "node0.gpu2"});
  const Path path = fabric.path(Rank(0), Rank(1));
  CHECK(path.latency.count() == Approx(2 * 250e-9));
  CHECK(path.bandwidth == gb_per_s(300));
}

TEST_CASE("GPUs of a PCIe box talk through their sockets") {
  const Fabric fabric = build(pcie_box(std::monostate()), 1);
  // spread puts GPUs 0 and 1 on socket 0, 2 and 3 on socket 1.
  CHECK(stops(fabric, 0, 1) == Stops{"node0.gpu0", "node0.cpu0", "node0.gpu1"});
  CHECK(stops(fabric, 1, 2) == Stops{"node0.gpu1", "node0.cpu0", "node0.cpu1", "node0.gpu2"});
  const Path path = fabric.path(Rank(1), Rank(2));
  CHECK(path.latency.count() == Approx(300e-9 + 100e-9 + 300e-9));
  CHECK(path.bandwidth == gb_per_s(20));
}

TEST_CASE("a fast chain of GPUs is not a way: GPUs pass nothing on") {
  TopologySpec spec = pcie_box(std::monostate());
  LinkGroup bridge;
  bridge.from = bridge.to = "gpu";
  bridge.wiring = Wiring::pairs;
  bridge.pairs = {{0, 1}, {1, 2}};
  bridge.kind = LinkKind::nvlink;
  bridge.bandwidth = gb_per_s(300);
  spec.links.push_back(bridge);
  const Fabric fabric = build(spec, 1);
  CHECK(stops(fabric, 1, 2) == Stops{"node0.gpu1", "node0.gpu2"});
  // 0 -> 1 -> 2 over NVLink would take 2 * 1 MiB / 300 GB/s = 7 us; through the sockets it is over 130 us.
  CHECK(stops(fabric, 0, 2) == Stops{"node0.gpu0", "node0.cpu0", "node0.cpu1", "node0.gpu2"});
}

TEST_CASE("NICs pass nothing on inside a node") {
  TopologySpec spec = pcie_box(std::monostate());
  spec.links.pop_back();  // the sockets' own link
  LinkGroup cross;        // leaves gpu0 - cpu0 - nic1 - cpu1 - gpu2
  cross.from = "nic";
  cross.to = "cpu";
  cross.wiring = Wiring::pairs;
  cross.pairs = {{1, 0}};
  cross.bandwidth = gb_per_s(25);
  spec.links.push_back(cross);
  const Diagnostics wrong = refused(spec);
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].message.find("node0.gpu0 cannot reach node0.gpu2") == 0);
}

TEST_CASE("of two ways of equal cost the one with fewer hops is taken") {
  // gpu0 - sw0 - gpu1: 2 hops of 2c; gpu0 - sw1 - sw2 - gpu1: hops of c, 2c, c with c = 1 MiB / 100 GB/s.
  TopologySpec spec;
  spec.name = "ties";
  spec.devices = {{"gpu", DeviceKind::gpu, 2, {}},
                  {"wide", DeviceKind::pcie_switch, 2, {}},
                  {"slim", DeviceKind::pcie_switch, 1, {}}};
  const auto add = [&](std::string from, std::string to, std::vector<std::pair<int, int>> pairs, double rate) {
    LinkGroup group;
    group.from = from;
    group.to = to;
    group.wiring = Wiring::pairs;
    group.pairs = std::move(pairs);
    group.bandwidth = gb_per_s(rate);
    spec.links.push_back(group);
  };
  // 1 MiB = 1048576 B: at 102.4 and 51.2 GB/s a hop takes 10.24 us and 20.48 us, whole picoseconds.
  add("gpu", "wide", {{0, 0}, {1, 1}}, 102.4);
  add("wide", "wide", {{0, 1}}, 51.2);
  add("gpu", "slim", {{0, 0}, {1, 0}}, 51.2);
  CHECK(stops(build(spec, 1), 0, 1) == Stops{"node0.gpu0", "node0.slim0", "node0.gpu1"});
  // The narrower way loses its tie as soon as it is a picosecond slower.
  spec.links.back().latency = ns(0.001);
  CHECK(stops(build(spec, 1), 0, 1) == Stops{"node0.gpu0", "node0.wide0", "node0.wide1", "node0.gpu1"});
}

TEST_CASE("of equal ways the one over the lowest device is taken, however the file orders its links") {
  TopologySpec spec = dgx(star());
  spec.devices[1].count = 6;  // six NVSwitches
  const Fabric fabric = build(spec, 2);
  std::reverse(spec.links.begin(), spec.links.end());
  const Fabric reversed = build(spec, 2);
  CHECK(stops(fabric, 3, 5) == Stops{"node0.gpu3", "node0.nvswitch0", "node0.gpu5"});
  for (int from = 0; from < 16; ++from)
    for (int to = 0; to < 16; ++to) CHECK(stops(fabric, from, to) == stops(reversed, from, to));
}

TEST_CASE("NICs that are said to be a rank's nearest are taken in that order, lane by lane") {
  const Fabric fabric = build(dgx(star()), 2);
  const int nics = fabric.nics_per_node(), lanes = fabric.ranks_per_node();
  REQUIRE(nics > 2);
  std::vector<std::vector<int>> of_ranks(static_cast<std::size_t>(fabric.rank_count()));
  of_ranks[0] = {2, 0};
  const Fabric said = fabric.with_nearest(of_ranks);
  for (int turn = 0; turn < 4; ++turn) {
    CHECK(said.nic_of(Rank(0), turn * lanes) == (turn % 2 == 0 ? 2 : 0));
    for (const Rank other : {Rank(1), Rank(static_cast<std::uint32_t>(lanes))})
      CHECK(said.nic_of(other, turn * lanes) == fabric.nic_of(other, turn * lanes));
  }
}

TEST_CASE("ways that are said are taken: through another GPU, or by no NVLink") {
  TopologySpec spec = pcie_box(star());
  spec.links.push_back({"gpu",
                        "gpu",
                        Wiring::pairs,
                        {{0, 1}, {1, 2}, {0, 2}, {2, 3}},
                        LinkKind::nvlink,
                        gb_per_s(100),
                        ns(100),
                        "",
                        spec.where});
  const Fabric fabric = build(spec, 2);
  const std::vector<Fabric::WayInNode> ways{{0, 2, 1}, {1, 0, -1}, {1, 3, 2}};
  const Fabric said = fabric.with_ways(ways);
  CHECK(stops(fabric, 0, 2) == Stops{"node0.gpu0", "node0.gpu2"});
  CHECK(stops(said, 0, 2) == Stops{"node0.gpu0", "node0.gpu1", "node0.gpu2"});
  CHECK(stops(said, 1, 0) == Stops{"node0.gpu1", "node0.cpu0", "node0.gpu0"});
  CHECK(stops(said, 1, 3) == Stops{"node0.gpu1", "node0.gpu2", "node0.gpu3"});
  CHECK(stops(said, 4, 6) == Stops{"node1.gpu0", "node1.gpu1", "node1.gpu2"});
  // In that direction alone, and of those pairs; between nodes as before.
  for (int from = 0; from < 8; ++from)
    for (int to = 0; to < 8; ++to) {
      const bool named = from / 4 == to / 4 && std::ranges::any_of(ways, [&](const Fabric::WayInNode& one) {
                           return one.from == from % 4 && one.to == to % 4;
                         });
      INFO(from << " to " << to);
      if (!named) CHECK(links_of(said, from, to) == links_of(fabric, from, to));
    }
  // What would go there and back is left out: a switch is passed once.
  const Fabric switched = build(dgx(std::monostate()), 1);
  const std::vector<Fabric::WayInNode> over{{0, 1, 2}};
  CHECK(stops(switched.with_ways(over), 0, 1) == stops(switched, 0, 1));
}

TEST_CASE("ways through the host's memory go up to the nearest processor and down again") {
  TopologySpec spec = pcie_box(std::monostate());
  spec.devices.push_back({"pcie", DeviceKind::pcie_switch, 2, {}});
  LinkGroup up = spec.links.front();  // gpu - cpu, spread
  REQUIRE(up.to == "cpu");
  spec.links.front().to = up.from = "pcie";
  up.wiring = Wiring::one_to_one;
  spec.links.push_back(up);
  const Fabric fabric = build(spec, 1);
  const std::vector<Fabric::WayInNode> ways{{0, 1, -2}, {1, 2, -2}};
  const Fabric said = fabric.with_ways(ways);
  CHECK(stops(fabric, 0, 1) == Stops{"node0.gpu0", "node0.pcie0", "node0.gpu1"});
  CHECK(stops(said, 0, 1) == Stops{"node0.gpu0", "node0.pcie0", "node0.cpu0", "node0.pcie0", "node0.gpu1"});
  CHECK(stops(said, 1, 2) == stops(fabric, 1, 2));
}

namespace {

/// Cost in picoseconds of every simple way from `at` that ends in `goal`, by trying them all.
struct AllWays {
  struct Hop {
    int to;
    std::int64_t cost;
  };
  std::map<int, std::vector<Hop>> hops;
  std::vector<DeviceKind> kinds;
  std::vector<bool> seen;
  std::int64_t best = -1;
  int best_hops = 0;

  void search(int at, int goal, std::int64_t cost, int hop_count) {
    if (at == goal) {
      if (best < 0 || std::pair(cost, hop_count) < std::pair(best, best_hops)) best = cost, best_hops = hop_count;
      return;
    }
    const DeviceKind kind = kinds[static_cast<std::size_t>(at)];
    if (hop_count > 0 && (kind == DeviceKind::gpu || kind == DeviceKind::nic)) return;
    seen[static_cast<std::size_t>(at)] = true;
    for (const Hop& hop : hops[at])
      if (!seen[static_cast<std::size_t>(hop.to)]) search(hop.to, goal, cost + hop.cost, hop_count + 1);
    seen[static_cast<std::size_t>(at)] = false;
  }
};

}  // namespace

TEST_CASE("no simple way is cheaper than the route, on random nodes") {
  const std::uint32_t seed = 20240117;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    // 3 GPUs, 3 switches, 1 socket, 1 NIC; each pair of devices is wired with probability 0.45.
    TopologySpec spec;
    spec.name = "random";
    spec.devices = {{"gpu", DeviceKind::gpu, 3, {}},
                    {"plx", DeviceKind::pcie_switch, 3, {}},
                    {"cpu", DeviceKind::cpu, 1, {}},
                    {"nic", DeviceKind::nic, 1, {}}};
    const std::vector<std::pair<std::string, int>> devices{{"gpu", 0}, {"gpu", 1}, {"gpu", 2}, {"plx", 0},
                                                           {"plx", 1}, {"plx", 2}, {"cpu", 0}, {"nic", 0}};
    AllWays ways;
    ways.seen.resize(8);
    ways.kinds = {DeviceKind::gpu,         DeviceKind::gpu,         DeviceKind::gpu, DeviceKind::pcie_switch,
                  DeviceKind::pcie_switch, DeviceKind::pcie_switch, DeviceKind::cpu, DeviceKind::nic};
    for (int a = 0; a < 8; ++a)
      for (int b = a + 1; b < 8; ++b) {
        if (random() % 100 >= 45) continue;
        // 2^20 B at 1.048576 GB/s is 1 ms: a multiple of it is a whole number of picoseconds.
        const std::int64_t multiple = 1 << (random() % 3), latency_ns = random() % 3 * 100'000;
        const auto& [from, i] = devices[static_cast<std::size_t>(a)];
        const auto& [to, j] = devices[static_cast<std::size_t>(b)];
        LinkGroup group;
        group.from = from;
        group.to = to;
        group.wiring = Wiring::pairs;
        group.pairs = {{i, j}};
        group.bandwidth = gb_per_s(1.048576 * static_cast<double>(multiple));
        group.latency = ns(static_cast<double>(latency_ns));
        spec.links.push_back(group);
        const std::int64_t cost = 1'000'000'000 / multiple + latency_ns * 1000;
        ways.hops[a].push_back({b, cost});
        ways.hops[b].push_back({a, cost});
      }
    const auto cost_between = [&](int a, int b) {
      ways.best = -1;
      ways.search(a, b, 0, 0);
      return ways.best;
    };
    const Result<Fabric> fabric = Fabric::build(spec, 1);
    REQUIRE(fabric.ok() == (cost_between(0, 1) >= 0 && cost_between(0, 2) >= 0 && cost_between(1, 2) >= 0));
    if (!fabric.ok()) continue;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        if (a == b) continue;
        double seconds = 0;
        const std::vector<LinkId> links = links_of(*fabric, a, b);
        for (const LinkId link : links) {
          const Link& l = fabric->links()[link.value()];
          seconds += l.latency.count() + 1048576 / l.bandwidth.value();
        }
        CHECK(seconds == Approx(static_cast<double>(cost_between(a, b)) * 1e-12).epsilon(1e-9));
        CHECK(static_cast<int>(links.size()) == ways.best_hops);
        ++compared;
      }
  }
  CHECK(compared > 300);  // the random nodes are not all disconnected
}
