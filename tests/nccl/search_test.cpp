// Channels and speeds against those that NCCL_DEBUG=INFO printed on real machines, and what must hold on any machine.
//
// Published: 24 collective channels on 8xA100 and 8xH100, 32 on 8xB200, 16 for H100 across nodes, from public NCCL
// logs; the table of channels x speed from the same logs and the arithmetic beside each case.
#include "nccl/search.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "machines.hpp"

using namespace collcast;
using nccl::Communicator;
using nccl::Graph;

namespace {

struct Found {
  int channels;
  double inside, between;
};
bool is(const Graph& graph, const Found& expected) {
  return graph.channels == expected.channels && graph.inside.value() == Approx(expected.inside * 1e9) &&
         graph.between.value() == Approx(expected.between * 1e9);
}

}  // namespace

TEST_CASE("a box behind a switch: channels and speeds as NCCL logs them") {
  SECTION("8xA100: 12 links of 20 = 240; 6 rings of 40 fill them, doubled at half the speed") {
    const Communicator c = test::communicator("dgx-a100", 1);
    CHECK(is(c.ring, {12, 20, 20}));
    CHECK(is(c.tree, {12, 20, 20}));
    CHECK_FALSE(c.nvls);
    CHECK(c.channels == 24);
  }
  SECTION("8xH100: 18 links of 20.6 = 370.8; 6 rings of 60, doubled; NVLS: 9 v <= 370.8, so 40, out 60") {
    for (const char* name : {"dgx-h100", "dgx-h200"}) {
      const Communicator c = test::communicator(name, 1);
      CHECK(is(c.ring, {12, 30, 30}));
      CHECK(is(c.tree, {12, 30, 30}));
      REQUIRE(c.nvls);
      CHECK(is(*c.nvls, {8, 40, 60}));
      CHECK(c.channels == 24);
      CHECK(c.nvls_channels == 16);
      CHECK(c.p2p_channels == 32);
    }
  }
  SECTION(
      "8xB200: 18 links of 40.1 = 721.8; 8 rings of 90, doubled; 16 trees: 45.1 each, so 40; NVLS 9 v: 80, out 90") {
    const Communicator c = test::communicator("dgx-b200", 1);
    CHECK(is(c.ring, {16, 45, 45}));
    CHECK(is(c.tree, {16, 40, 40}));
    REQUIRE(c.nvls);
    CHECK(is(*c.nvls, {8, 80, 90}));
    CHECK(c.channels == 32);
    CHECK(c.nvls_channels == 24);
  }
}

TEST_CASE(
    "heads of NVLS on one node are raised outside it to the first speed that is no less than twice theirs inside") {
  const auto heads = [](const char* machine, int gpus) { return *test::communicator(machine, 1, gpus).nvls; };
  CHECK(is(heads("dgx-h100", 3), {3, 60, 60}));  // 370.8 / 4, and the list ends
  CHECK(is(heads("dgx-h100", 6), {6, 50, 60}));
  CHECK(is(heads("dgx-h100", 7), {7, 40, 60}));
  CHECK(is(heads("gb200-nvl72", 0), {32, 20, 40}));  // 721.8 / 33
}

TEST_CASE("across nodes a NIC has one head of NVLS at most, and v is searched inside and between nodes together") {
  const auto heads = [](const Fabric& fabric) {
    const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, 2 * fabric.ranks_per_node()));
    REQUIRE(c.ok());
    REQUIRE(c->nvls);
    const Graph& graph = *c->nvls;
    std::set<int> gpus, nics;
    for (const auto& order : graph.order) gpus.insert(order.front());
    for (const nccl::ChannelNics& one : graph.nics) nics.insert(one.in);
    const auto count = static_cast<std::size_t>(graph.channels);
    CHECK(gpus.size() == count);
    CHECK(nics.size() == count);
    CHECK(graph.channels <= fabric.nics_per_node());
    CHECK(graph.channels <= fabric.ranks_per_node());
    CHECK((graph.channels + 1) * graph.inside.value() <= 721.8e9);
    return graph;
  };
  const auto at = [&](const char* machine, const std::string& rate) {
    return heads(test::built(machine, 2, {"network.link.bandwidth=" + rate}));
  };
  // Seven heads of 45 are 8 x 45 of 370.8; eight would be 9 x 40.
  CHECK(is(heads(test::without_nic("dgx-h100", 3, 2)), {7, 45, 48}));
  CHECK(is(heads(test::without_nic("dgx-b200", 0, 2)), {7, 48, 48}));
  CHECK(is(heads(test::built("gcp-a3-high", 2)), {4, 24, 24}));
  CHECK(is(at("gcp-a3-high", "400Gb/s"), {4, 48, 48}));
  // What NICs do not have is no speed inside either.
  CHECK(is(at("dgx-h100", "200Gb/s"), {8, 24, 24}));
  CHECK(is(at("dgx-h100", "100Gb/s"), {8, 12, 12}));
  CHECK(is(at("dgx-h100", "360Gb/s"), {8, 40, 45}));
  CHECK(is(at("dgx-b200", "800Gb/s"), {8, 48, 48}));            // by PCIe 5
  CHECK(is(heads(test::built("hgx-h800", 2)), {8, 17.5, 40}));  // 164.8 / 9, raised to no less than 35
  for (const std::string& name : test::machines_of_gpus())
    if (test::communicator(name, 2).nvls) heads(test::built(name, 2));
}

TEST_CASE("boxes of eight NICs across nodes: a channel per NIC, trees faster inside") {
  SECTION("HDR on PCIe 4: 24 of the NIC's 25; trees 7 x 30 of 240 inside") {
    const Communicator c = test::communicator("dgx-a100", 2);
    CHECK(is(c.ring, {8, 24, 24}));
    CHECK(is(c.tree, {8, 30, 24}));
    CHECK(c.channels == 16);
  }
  SECTION("NDR: 48 of 50; 7 x 48 = 336 of 370.8 inside, so trees stay at 48; NVLS 40 inside, 48 out") {
    const Communicator c = test::communicator("dgx-h100", 4);
    CHECK(is(c.ring, {8, 48, 48}));
    CHECK(is(c.tree, {8, 48, 48}));
    REQUIRE(c.nvls);
    CHECK(is(*c.nvls, {8, 40, 48}));
    CHECK(c.channels == 16);
    CHECK(c.nics.count == 8);
  }
  SECTION("B200 with NDR: trees 7 x 96 = 672 of 721.8; NVLS 9 x 48") {
    const Communicator c = test::communicator("dgx-b200", 2);
    CHECK(is(c.ring, {8, 48, 48}));
    CHECK(is(c.tree, {8, 96, 48}));
    REQUIRE(c.nvls);
    CHECK(is(*c.nvls, {8, 48, 48}));
  }
}

TEST_CASE("trees are searched by the list's speeds, beside doubled rings whose half is none of them, too") {
  struct Nic {
    const char* rate;
    Found ring, tree;
  };
  // Four NICs, four rings of 40, 42 and 45, doubled, or eight of 22; two trees on each NIC, inside at the first speed
  // that is twice as fast.
  for (const auto& [rate, ring, tree] :
       {Nic{"332Gb/s", {8, 20, 20}, {8, 40, 20}}, Nic{"345Gb/s", {8, 21, 21}, {8, 40, 20}},
        Nic{"354Gb/s", {8, 22, 22}, {8, 45, 22}}, Nic{"362Gb/s", {8, 22.5, 22.5}, {8, 45, 22}}}) {
    INFO(rate);
    const Fabric fabric = test::built("gcp-a3-high", 2, {std::string("network.link.bandwidth=") + rate});
    const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, 16));
    REQUIRE(c.ok());
    CHECK(is(c->ring, ring));
    CHECK(is(c->tree, tree));
  }
}

TEST_CASE("meshes of straight NVLinks") {
  SECTION(
      "DGX-1: six links of 20 per GPU are two rings in both directions on double links, one on single ones: 6 x 20") {
    const Communicator c = test::communicator("dgx1-v100", 1);
    CHECK(is(c.ring, {6, 20, 20}));
    CHECK(c.nvlink);
    CHECK(c.channels == 12);
    std::set<std::pair<int, int>> used;
    for (const auto& order : c.ring.order) {
      CHECK(std::set<int>(order.begin(), order.end()).size() == 8);
      for (std::size_t i = 0; i < order.size(); ++i) used.emplace(order[i], order[(i + 1) % order.size()]);
    }
    CHECK(used.size() == 32);  // 16 pairs with a link, both ways: every link is used
  }
  SECTION("four fully joined GPUs, 4 links of 20 per pair: all six rounds of four at 40, doubled") {
    CHECK(is(test::communicator("polaris", 1).ring, {12, 20, 20}));
  }
  SECTION("the same with 6 links of 20.6") { CHECK(is(test::communicator("snellius-h100", 1).ring, {12, 30, 30})); }
  SECTION("two V100 with two links: 40 on one channel, doubled") {
    CHECK(is(test::communicator("abci-v100", 1, 2).ring, {2, 20, 20}));
  }
}

TEST_CASE("across nodes the channels of a mesh share out its links and come back to their NIC") {
  // DGX-1: 4 NICs at 12 (PCIe 3), two GPUs beside each; NVLinks of 20 and 40. Rings book 12: one channel on a single
  // link, three on a double. Trees at 24 would have the ring of double links to themselves twice, at 20 all four fit.
  const Communicator c = test::communicator("dgx1-v100", 2);
  CHECK(is(c.ring, {4, 12, 12}));
  CHECK(is(c.tree, {4, 20, 12}));
  const auto doubles = std::set<std::set<int>>{{0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {4, 7}, {5, 6}, {6, 7}};
  const auto singles = std::set<std::set<int>>{{0, 1}, {0, 2}, {1, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 6}, {5, 7}};
  const auto count_within = [&](const Graph& graph, double speed) {
    std::map<std::pair<int, int>, double> booked;
    for (const auto& order : graph.order) {
      CHECK(std::set<int>(order.begin(), order.end()).size() == 8);
      for (std::size_t i = 0; i + 1 < order.size(); ++i) booked[{order[i], order[i + 1]}] += speed;
    }
    for (const auto& [link, sum] : booked)
      CHECK(sum <= (doubles.count({link.first, link.second}) > 0   ? 40
                    : singles.count({link.first, link.second}) > 0 ? 20
                                                                   : 0));
  };
  count_within(c.ring, 12);
  count_within(c.tree, 20);
  std::set<int> nics;
  for (const auto& order : c.ring.order) {
    CHECK(order.front() / 2 == order.back() / 2);  // GPUs 0 and 1 are beside NIC 0
    nics.insert(order.front() / 2);
  }
  CHECK(nics.size() == 4);
  // One GPU beside each NIC: a ring leaves by another NIC, each by its own.
  for (const char* name : {"snellius-h100", "gh200"}) {
    std::set<int> first, last;
    for (const auto& order : test::communicator(name, 2).ring.order) {
      first.insert(order.front());
      last.insert(order.back());
    }
    CHECK(first.size() == 4);
    CHECK(last.size() == 4);
  }
}

TEST_CASE("export versions and PCIe boxes are slower where their links are") {
  CHECK(is(test::communicator("hgx-h800", 1).ring, {8, 20, 20}));  // 8 links of 20.6 = 164.8: 4 x 40, doubled
  const Communicator l40s = test::communicator("l40s-pcie", 1);
  CHECK_FALSE(l40s.nvlink);
  CHECK(l40s.ring.type_inside == nccl::PathType::sys);
  CHECK(is(l40s.ring, {1, 10, 10}));  // sockets of Intel before Sapphire Rapids count 10
  CHECK(is(test::communicator("rtxpro6000-pcie", 1).ring, {1, 20, 20}));  // Sapphire Rapids: 22, of the list 20
  CHECK(test::communicator("l40s-pcie", 1, 2).ring.type_inside == nccl::PathType::pix);
}

TEST_CASE("every shipped machine with GPUs gets channels within its links") {
  for (const TopologyEntry& entry : list_topologies(test::source_tree())) {
    INFO(entry.name);
    const TopologySpec spec = test::shipped(entry.name);
    if (spec.gpu.model.empty() || spec.teaching) continue;
    REQUIRE(nccl::compute_capability(spec.gpu.model));
    const nccl::System system = nccl::system_of(spec, *nccl::compute_capability(spec.gpu.model), {});
    for (const int nodes : {1, 2, 5}) {
      if (nodes > 1 && (std::holds_alternative<std::monostate>(spec.network) || spec.max_nodes == 1)) continue;
      if (nodes == 1 && system.gpus == 1) continue;
      const Communicator c = test::communicator(entry.name, nodes);
      CHECK(c.channels >= 2);
      CHECK(c.ring.channels >= 1);
      CHECK(c.tree.channels == c.ring.channels);
      CHECK(c.tree.inside >= c.tree.between * 0.999);
      if (system.nvswitch && nodes == 1)
        CHECK(c.ring.channels * c.ring.inside.value() <= system.nvlink_speed * 1e9 * 1.000001);
      if (nodes > 1) {
        CHECK(c.nics.count >= 1);
        CHECK(c.ring.channels * c.ring.between.value() <= c.nics.count * c.nics.rate.value() * 1.000001);
        CHECK(c.network_latency > Seconds(0));
      }
    }
  }
}

TEST_CASE("half of a box on each of two nodes has half of the NICs") {
  const Communicator c = test::communicator("dgx-h100", 2, 4);
  CHECK(c.ranks == 8);
  CHECK(c.ranks_per_node == 4);
  CHECK(c.nics.count == 4);
}

TEST_CASE("nodes with unlike sets of GPUs count with the slower") {
  const Fabric fabric = test::built("dgx-h100", 2);
  const Group all_and_two = Group::listed({Rank(0), Rank(1), Rank(2), Rank(3), Rank(8), Rank(9)});
  const auto c = nccl::connect(fabric, all_and_two);
  REQUIRE(c.ok());
  CHECK(c->nodes == 2);
  CHECK(c->nics.count == 2);
}

TEST_CASE("as many channels in one order as in unlike ones are in one: NCCL tries that first") {
  // By one NIC of 8.75 GB/s two channels of 4, more than one of 7; by GPU 0 both, whose slot of 24 / 1.2 has room.
  const Fabric fabric = test::built("l40s-pcie", 2, {"network.link.bandwidth=8.75GB/s"});
  const Communicator c = *nccl::connect(fabric, Group::strided(Rank(0), 1, 16));
  REQUIRE(is(c.ring, {2, 4, 4}));
  CHECK(c.ring.order[0] == c.ring.order[1]);
  // So a call of a broadcast waits for no way around all nodes.
  CHECK(c.chain_waits.back() == 0);
}

TEST_CASE("what NCCL cannot run on is refused with the reason") {
  const Fabric hosts = test::built("ethernet-hosts", 2);
  const auto none = nccl::connect(hosts, Group::strided(Rank(0), 1, 2));
  REQUIRE_FALSE(none.ok());
  CHECK(none.errors().front().message == "NCCL runs on NVIDIA GPUs, and ethernet-hosts has none");
  const Fabric other = test::built("dgx-h100", 1, {"gpu.model=MI300X"});
  const auto amd = nccl::connect(other, Group::strided(Rank(0), 1, 2));
  REQUIRE_FALSE(amd.ok());
  CHECK(amd.errors().front().message == "the compute capability of 'MI300X' (dgx-h100) is not known");
}

TEST_CASE("NVLinks from GPUs to processors are refused, not taken for some between GPUs") {
  TopologySpec spec = test::shipped("l40s-pcie");
  for (LinkGroup& link : spec.links) {
    if (link.from == "gpu") link.to = "cpu";
    if (link.from == "gpu") link.kind = LinkKind::nvlink;
  }
  const Fabric fabric = *Fabric::build(spec, 1);
  const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, 8));
  REQUIRE_FALSE(c.ok());
  CHECK(c.errors().front().message == "NVLinks between GPUs and processors (gpu - cpu of l40s-pcie) are not modelled");
}

TEST_CASE("peer access switched off leaves PCIe and the host") {
  const Communicator c = test::communicator("dgx-h100", 1, 0, test::environment({{"NCCL_P2P_DISABLE", "1"}}));
  CHECK_FALSE(c.nvlink);
  CHECK_FALSE(c.nvls);
  CHECK(c.ring.type_inside == nccl::PathType::sys);
}

TEST_CASE("NVLS is of three GPUs on a node and more") {
  for (const char* machine : {"dgx-h100", "dgx-b200"})
    for (const int nodes : {1, 2}) {
      CHECK_FALSE(test::communicator(machine, nodes, 2).nvls);
      CHECK(test::communicator(machine, nodes, 3).nvls);
    }
}

TEST_CASE("links that are there and too slow for the search are no missing links") {
  const Fabric slow = test::built("pcie-a100", 1, {"node.links.0.bandwidth=2GB/s"});
  const auto none = nccl::connect(slow, Group::strided(Rank(0), 1, 2));
  REQUIRE_FALSE(none.ok());
  CHECK(none.errors().front().message.find("are slower than what NCCL's search tries") != std::string::npos);
}

TEST_CASE("a head of NVLS has one NIC, however many are beside its GPU") {
  const auto between = [](int nics, Bandwidth rate) {
    TopologySpec spec = test::shipped("dgx-h100");
    for (DeviceGroup& group : spec.devices)
      if (group.kind == DeviceKind::nic) group.count = nics;
    for (LinkGroup& link : spec.links)
      if (link.from == "nic") link.wiring = Wiring::spread;
    std::get<LeafSpineNetwork>(spec.network).bandwidth = rate;
    const Result<Fabric> fabric = Fabric::build(spec, 2);
    REQUIRE(fabric.ok());
    return nccl::connect(*fabric, Group::strided(Rank(0), 1, 16))->nvls->between;
  };
  CHECK(between(16, Bandwidth(25e9)) == between(8, Bandwidth(25e9)));
  CHECK(between(16, Bandwidth(25e9)) < between(8, Bandwidth(50e9)));
}

TEST_CASE("a ring whose last GPU has no NIC near goes back to its first one's by the host, not at the least speed") {
  // Of Polaris' four GPUs two have a NIC in their quadrant: without the other one rings were of 0.12 GB/s.
  for (const int gpus : {2, 3}) {
    INFO(gpus);
    const Communicator c = test::communicator("polaris", 2, gpus);
    CHECK(c.ring.channels * c.ring.between.value() > 10e9);
    CHECK(c.tree.channels * c.tree.between.value() > 10e9);
    CHECK(c.ring.type_between == nccl::PathType::sys);
    for (const nccl::ChannelNics& one : c.ring.nics) CHECK((one.in == one.out && one.way_out == nccl::PathType::sys));
  }
  CHECK(test::communicator("polaris", 2).ring.type_between == nccl::PathType::phb);
}

TEST_CASE("NVSwitches of a node are one, of which all have what the GPU with the least NVLinks has") {
  const TopologySpec whole = test::shipped("dgx-h100");
  const auto to_switch = std::ranges::find(whole.links, LinkKind::nvlink, &LinkGroup::kind);
  REQUIRE(to_switch != whole.links.end());
  REQUIRE(to_switch->from == "gpu");
  const auto at = to_switch - whole.links.begin();
  const auto of = [](const TopologySpec& spec) {
    const Result<Fabric> fabric = Fabric::build(spec, 1);
    REQUIRE(fabric.ok());
    const auto c = nccl::connect(*fabric, Group::strided(Rank(0), 1, fabric->ranks_per_node()));
    REQUIRE(c.ok());
    return *c;
  };
  // GPUs 0 to 6 in one list, GPU 7 in another.
  const auto split = [&](double share_of_last) {
    TopologySpec spec = whole;
    LinkGroup& most = spec.links[static_cast<std::size_t>(at)];
    most.wiring = Wiring::pairs;
    for (int gpu = 0; gpu < 7; ++gpu) most.pairs.emplace_back(gpu, 0);
    LinkGroup last = most;
    last.pairs = {{7, 0}};
    last.bandwidth = last.bandwidth * share_of_last;
    spec.links.push_back(last);
    return spec;
  };
  const nccl::Communicator as_one = of(whole), in_lists = of(split(1)), slower = of(split(0.5));
  CHECK(in_lists.gpu.nvlink == as_one.gpu.nvlink);
  CHECK(in_lists.ring.channels == as_one.ring.channels);
  CHECK(in_lists.ring.inside == as_one.ring.inside);
  REQUIRE(in_lists.nvls.has_value());
  CHECK(in_lists.nvls->inside == as_one.nvls->inside);
  CHECK(slower.gpu.nvlink == as_one.gpu.nvlink * 0.5);
  CHECK(slower.ring.channels * slower.ring.inside.value() < as_one.ring.channels * as_one.ring.inside.value());
  // A trunk between switches is no GPU's.
  TopologySpec trunk = whole;
  trunk.devices.push_back({"further", DeviceKind::nvswitch, 1, {}});
  LinkGroup between = trunk.links[static_cast<std::size_t>(at)];
  between.from = "nvswitch";
  between.to = "further";
  between.wiring = Wiring::pairs;
  between.pairs = {{0, 0}};
  trunk.links.push_back(between);
  CHECK(of(trunk).gpu.nvlink == as_one.gpu.nvlink);
}

TEST_CASE("a GPU's compute capability is its chip's, also where names of cards begin alike") {
  const std::vector<std::pair<std::string, int>> known{{"RTX-2080-Ti", 75},
                                                       {"Quadro RTX 5000", 75},
                                                       {"Quadro-RTX-4000", 75},
                                                       {"Quadro RTX 8000", 75},
                                                       {"Tesla T4", 75},
                                                       {"NVIDIA GeForce RTX 3090", 86},
                                                       {"NVIDIA GeForce RTX 2050", 86},
                                                       {"RTX-A5000", 86},
                                                       {"NVIDIA RTX A2000 12GB", 86},
                                                       {"A40", 86},
                                                       {"GeForce RTX 4090 D", 89},
                                                       {"NVIDIA RTX 2000 Ada Generation", 89},
                                                       {"NVIDIA RTX 4000 SFF Ada Generation", 89},
                                                       {"NVIDIA RTX 5000 Ada Generation", 89},
                                                       {"RTX-6000-Ada", 89},
                                                       {"L40S", 89},
                                                       {"L4", 89},
                                                       {"H20-SXM5-96GB", 90},
                                                       {"B200-SXM6-180GB", 100},
                                                       {"GB300", 103},
                                                       {"RTX-5090", 120},
                                                       {"GeForce RTX 5070 Ti", 120},
                                                       {"RTX-PRO-6000-Blackwell-Server", 120}};
  for (const auto& [name, capability] : known) {
    INFO(name);
    CHECK(nccl::compute_capability(name) == capability);
  }
  for (const char* name : {"", "RTX", "RTX 50", "MI300X", "Ada"}) CHECK_FALSE(nccl::compute_capability(name));
}
