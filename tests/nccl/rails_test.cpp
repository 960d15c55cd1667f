// Which NIC a channel or a message leaves a node by: NCCL_CROSS_NIC, and the relay over the GPU beside a NIC (PXN).
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/channels.hpp"
#include "collcast/nccl/program.hpp"
#include "machines.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/system.hpp"

using namespace collcast;
using nccl::ChannelNics;
using nccl::Communicator;
using nccl::PathType;

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

Communicator with(const std::string& machine, int nodes, const Variables& variables) {
  return test::communicator(machine, nodes, 0, test::environment(variables));
}

bool crosses(const nccl::Graph& graph) {
  return std::any_of(graph.nics.begin(), graph.nics.end(), [](const ChannelNics& one) { return one.in != one.out; });
}

/// On two and three nodes: alike and not, and of each part of a node's GPUs up to eight some.
std::vector<Group> groups_of(const Fabric& fabric) {
  const int all = fabric.ranks_per_node(), most = std::min(all, 8);
  std::vector<Group> out{Group::strided(Rank(0), 1, 2 * all), Group::strided(Rank(0), 1, 3 * all)};
  for (int second = 1; second < most; ++second) out.push_back(test::first_of_nodes(fabric, {all, second}));
  for (unsigned part = 1; part < 1u << most; part += most < 8 ? 1 : 7) {
    std::vector<Rank> ranks;
    for (int node = 0; node < 2; ++node)
      for (int gpu = 0; gpu < most; ++gpu)
        if ((part >> gpu & 1u) != 0) ranks.emplace_back(static_cast<std::uint32_t>(node * all + gpu));
    out.push_back(Group::listed(std::move(ranks)));
  }
  return out;
}

std::string numbers(const Group& group) {
  std::string out;
  for (int i = 0; i < group.size(); ++i) out += std::to_string(group[i].value()) + ' ';
  return out;
}

struct Times {
  double closed, simulated;
};
Times exchanged(const std::vector<std::string>& sets, const Variables& variables, std::int64_t bytes, int nodes = 4) {
  const Fabric fabric = test::built("dgx-h100", nodes, sets);
  const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, 8 * nodes), test::environment(variables));
  REQUIRE(c.ok());
  const auto plan = nccl::plan(*c, CollectiveKind::alltoall, Bytes(bytes));
  REQUIRE(plan.ok());
  return {test::us(nccl::run(*c, CollectiveKind::alltoall, Bytes(bytes), *plan).time()),
          test::us(test::simulated(fabric, *c, CollectiveKind::alltoall, Bytes(bytes), *plan))};
}

}  // namespace

TEST_CASE("NCCL_CROSS_NIC=0: every ring leaves a node by the NIC that it came in by") {
  for (const char* machine : {"dgx-h100", "dgx-a100", "dgx1-v100", "abci-v100", "polaris", "aws-p4d", "gcp-a3-high"}) {
    INFO(machine);
    const Communicator usual = with(machine, 2, {}), same = with(machine, 2, {{"NCCL_CROSS_NIC", "0"}});
    REQUIRE_FALSE(same.ring.nics.empty());
    CHECK_FALSE(crosses(same.ring));
    // It has fewer to choose from; trees come and go by their first GPU anyway.
    CHECK(same.ring.channels * same.ring.between.value() <=
          usual.ring.channels * usual.ring.between.value() * 1.000001);
    CHECK(same.tree.channels == same.ring.channels);
    CHECK(same.ring.between.value() > 5e9);
  }
}

TEST_CASE("on no machine has any group less bandwidth where rings may change NICs than where they may not") {
  for (const std::string& machine : test::machines_of_gpus()) {
    const Fabric fabric = test::built(machine, 3);
    for (const Group& group : groups_of(fabric)) {
      INFO(machine << ", ranks " << numbers(group));
      const auto rings = [&](const char* cross_nic) {
        const auto c = nccl::connect(fabric, group, test::environment({{"NCCL_CROSS_NIC", cross_nic}}));
        REQUIRE(c.ok());
        const nccl::Run large = test::ran(*c, CollectiveKind::all_reduce, std::int64_t{1} << 30, nccl::Algorithm::ring,
                                          nccl::Protocol::simple);
        return std::pair(c->ring.channels * c->ring.between.value(), large.time().count());
      };
      const auto [never, time_never] = rings("0");
      for (const char* may : {"1", "2"}) {
        INFO("NCCL_CROSS_NIC=" << may);
        const auto [bandwidth, time] = rings(may);
        CHECK(bandwidth >= never * (1 - 1e-9));
        // A loop more or less is as much.
        CHECK(time <= 1.01 * time_never);
      }
    }
  }
}

TEST_CASE("GPUs that NVLinks join in a row have them across nodes, though no round closes, and never less than PCIe") {
  const auto of = [](const char* machine, const Group& group, const Variables& variables) {
    const auto c = nccl::connect(test::built(machine, 3), group, test::environment(variables));
    REQUIRE(c.ok());
    return *c;
  };
  for (const char* machine : {"dgx1-v100", "dgx1-v100-roce", "aws-p3dn", "polaris", "abci-v100", "gh200", "h100-roce"})
    for (const Group& group : groups_of(test::built(machine, 3))) {
      INFO(machine << ", ranks " << numbers(group));
      const Communicator with_nvlinks = of(machine, group, {}),
                         without = of(machine, group, {{"NCCL_P2P_DISABLE", "1"}});
      CHECK(with_nvlinks.ring.channels * with_nvlinks.ring.between.value() >=
            without.ring.channels * without.ring.between.value() * (1 - 1e-9));
    }
  // A DGX-1's GPU 4 has of these a link to GPU 0 alone: 4, 0, 1, 2, 3 and others like it, from NIC to NIC.
  std::vector<Rank> ranks;
  for (const unsigned first : {0u, 8u})
    for (unsigned gpu = 0; gpu < 5; ++gpu) ranks.emplace_back(first + gpu);
  const Communicator row = of("dgx1-v100", Group::listed(ranks), {{"NCCL_NVB_DISABLE", "1"}});
  CHECK(row.nvlink);
  CHECK(row.ring.type_inside == PathType::nvl);
  for (const std::vector<int>& order : row.ring.order) CHECK((order.front() == 4 || order.back() == 4));
  CHECK(row.ring.channels * row.ring.between.value() >= 12e9);
  // Through a GPU, others than 4 end beside a NIC, too.
  const Communicator through = of("dgx1-v100", Group::listed(ranks), {});
  CHECK(through.ring.type_inside == PathType::nvb);
  CHECK(through.ring.channels * through.ring.between.value() > row.ring.channels * row.ring.between.value());
}

TEST_CASE("over straight NVLinks a NIC with one GPU of the group beside it is gone back to where no other is near") {
  struct Ranks {
    const char* machine;
    std::vector<int> gpus;  // of each of two nodes
  };
  for (const auto& [machine, gpus] : {Ranks{"polaris", {0, 1, 2}}, Ranks{"polaris", {1, 2}},
                                      Ranks{"dgx1-v100-roce", {0, 2, 3}}, Ranks{"aws-p3dn", {1, 5}}}) {
    INFO(machine << ", GPUs " << test::words(gpus));
    const Fabric fabric = test::built(machine, 2);
    std::vector<Rank> ranks;
    for (int node = 0; node < 2; ++node)
      for (const int gpu : gpus) ranks.emplace_back(static_cast<std::uint32_t>(node * fabric.ranks_per_node() + gpu));
    const auto c = nccl::connect(fabric, Group::listed(ranks));
    REQUIRE(c.ok());
    CHECK_FALSE(crosses(c->ring));
    CHECK(c->ring.type_between >= PathType::pxn);
    // Between sockets NCCL counts 10 GB/s and more, a NIC has 12.5 and more.
    CHECK(c->ring.channels * c->ring.between.value() >= 9e9);
    CHECK(c->tree.channels * c->tree.between.value() >= 9e9);
  }
}

TEST_CASE("over PCIe rings change NICs of two sockets in pairs, as each way between them has room for one") {
  // Two GPUs and a NIC beside each of two sockets, between which NCCL counts 10 GB/s each way (Skylake).
  TopologySpec spec = test::shipped("pcie-a100");
  for (DeviceGroup& devices : spec.devices)
    devices.count = devices.kind == DeviceKind::gpu ? 4 : devices.kind == DeviceKind::nic ? 2 : devices.count;
  for (LinkGroup& link : spec.links) {
    if (link.from != "nic") continue;
    link.wiring = Wiring::pairs;
    link.pairs = {{0, 0}, {1, 1}};
  }
  const auto of_cpu = [&](CpuFamily cpu, const char* cross) {
    spec.host.cpu = cpu;
    const Result<Fabric> fabric = Fabric::build(spec, 2);
    INFO(to_text(fabric.errors()));
    REQUIRE(fabric.ok());
    auto c = nccl::connect(*fabric, Group::strided(Rank(0), 1, 8), test::environment({{"NCCL_CROSS_NIC", cross}}));
    REQUIRE(c.ok());
    return std::move(c).value();
  };
  const Communicator usual = of_cpu(CpuFamily::intel_skylake, "2");
  REQUIRE(usual.ring.channels == 2);
  CHECK(usual.ring.between.value() == Approx(10e9));
  CHECK(usual.ring.nics[0].in == 0);
  CHECK(usual.ring.nics[0].out == 1);
  CHECK(usual.ring.nics[1].in == 1);
  CHECK(usual.ring.nics[1].out == 0);
  CHECK(std::vector<int>(usual.ring.order[1].rbegin(), usual.ring.order[1].rend()) == usual.ring.order[0]);
  CHECK(of_cpu(CpuFamily::intel_skylake, "1").ring.channels == 2);
  // A ring that goes back to its NIC has both ways between the sockets.
  CHECK(of_cpu(CpuFamily::intel_skylake, "0").ring.channels == 1);
  // The second ring of a pair passes the GPUs in another order, which NCCL does not try over AMD's sockets.
  CHECK_FALSE(crosses(of_cpu(CpuFamily::amd, "2").ring));
}

TEST_CASE("a NIC with one GPU beside it closes a ring by PXN, without that by the host and sockets") {
  const Communicator usual = with("dgx-h100", 2, {});
  CHECK(crosses(usual.ring));
  CHECK(usual.ring.type_between == PathType::pix);
  const Communicator relayed = with("dgx-h100", 2, {{"NCCL_CROSS_NIC", "0"}});
  CHECK(relayed.ring.type_between == PathType::pxn);
  CHECK(relayed.ring.between == usual.ring.between);
  CHECK(relayed.ring.channels == usual.ring.channels);
  CHECK(relayed.tree.type_between == PathType::pix);
  // Without NVLink no GPU relays.
  const Communicator alone = with("dgx-h100", 2, {{"NCCL_P2P_DISABLE", "1"}});
  const Communicator by_host = with("dgx-h100", 2, {{"NCCL_CROSS_NIC", "0"}, {"NCCL_P2P_DISABLE", "1"}});
  CHECK_FALSE(crosses(by_host.ring));
  CHECK(by_host.ring.type_between > PathType::pxn);
  // One ring has both ways between the sockets there; two that change NICs with each other have one each.
  CHECK(by_host.ring.channels == 1);
  CHECK(alone.ring.channels == 2);
  CHECK(alone.nics.count == 2);
  // To the neighbour on the same socket and back by the host PCIe has all room.
  const Communicator near = with("dgx-h100", 2, {{"NCCL_CROSS_NIC", "0"}, {"NCCL_PXN_DISABLE", "1"}});
  CHECK(near.ring.channels == 8);
  CHECK(near.ring.between.value() == Approx(48e9));
  CHECK(near.ring.type_between == PathType::phb);
  // PXN is of 2.12.
  nccl::Environment old = test::environment({{"NCCL_CROSS_NIC", "0"}});
  old.launch.version = 21100;
  CHECK(test::communicator("dgx-h100", 2, 0, old).ring.type_between > PathType::pxn);
}

TEST_CASE("where a NIC has two GPUs beside it a ring ends at the other one") {
  const Communicator c = test::communicator("dgx-a100", 2);
  REQUIRE(c.ring.order.size() == c.ring.nics.size());
  for (std::size_t channel = 0; channel < c.ring.order.size(); ++channel) {
    const std::vector<int>& order = c.ring.order[channel];
    CHECK(order.front() / 2 == order.back() / 2);
    CHECK(c.ring.nics[channel].in == c.ring.nics[channel].out);
    CHECK(c.ring.nics[channel].way_out == c.ring.type_between);
  }
}

TEST_CASE("crossNic as NCCL prints it: as the variable says, 2 only where a ring needs it") {
  const auto first = [](const char* machine, const Variables& variables) {
    const std::string line = graph_lines(with(machine, 2, variables)).front();
    return line.substr(0, line.find(", nChannels"));
  };
  CHECK(first("dgx-h100", {}) == "Pattern 4, crossNic 2");
  CHECK(first("dgx-h100", {{"NCCL_CROSS_NIC", "2"}}) == "Pattern 4, crossNic 2");
  CHECK(first("dgx-h100", {{"NCCL_CROSS_NIC", "1"}}) == "Pattern 4, crossNic 1");
  CHECK(first("dgx-h100", {{"NCCL_CROSS_NIC", "0"}}) == "Pattern 4, crossNic 0");
  CHECK(first("dgx-a100", {}) == "Pattern 4, crossNic 0");
}

TEST_CASE("how rings are closed is nothing to NVLS trees") {
  for (const char* machine : {"dgx-h100", "dgx-h200", "azure-ndv5", "gcp-a3-ultra", "dgx-b200"}) {
    INFO(machine);
    const auto time = [&](const Variables& variables) {
      return test::us(test::ran(with(machine, 2, variables), CollectiveKind::all_reduce, std::int64_t{1} << 30,
                                nccl::Algorithm::nvls_tree)
                          .time());
    };
    CHECK(time({{"NCCL_CROSS_NIC", "0"}}) == Approx(time({})));
    CHECK(time({{"NCCL_CROSS_NIC", "0"}, {"NCCL_PXN_DISABLE", "1"}}) == Approx(time({})));
  }
}

TEST_CASE("a ring of an odd number of nodes closes over a spine, whether GPUs relay or not") {
  const auto time = [](int nodes, const std::vector<std::string>& sets, const Variables& variables) {
    const Fabric fabric = test::built("dgx-h100", nodes, sets);
    const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, 8 * nodes), test::environment(variables));
    REQUIRE(c.ok());
    const Bytes size(256 << 20);
    const auto plan =
        test::planned_as(*c, CollectiveKind::all_reduce, size, nccl::Algorithm::ring, nccl::Protocol::simple);
    return test::us(test::simulated(fabric, *c, CollectiveKind::all_reduce, size, plan));
  };
  const std::vector<std::string> thin{"network.oversubscription=64"};
  for (const int nodes : {2, 3, 4}) {
    INFO(nodes);
    // Its channels' NICs are the search's [src/graph/search.cc, ncclTopoGetNetDev], not the receiver's.
    for (const Variables& variables : {Variables{}, Variables{{"NCCL_PXN_DISABLE", "1"}}}) {
      const double usual = time(nodes, {}, variables), over_thin = time(nodes, thin, variables);
      if (nodes % 2 == 0) CHECK(over_thin == Approx(usual));
      if (nodes % 2 == 1) CHECK(over_thin > 1.05 * usual);
    }
  }
}

TEST_CASE("with PXN pairs stay on the receiver's rail: thin spines cost nothing, and no spine is on the way") {
  const std::vector<std::string> thin{"network.oversubscription=8"};
  for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{64} << 20}) {
    INFO(bytes);
    const Times usual = exchanged({}, {}, bytes), over_thin = exchanged(thin, {}, bytes);
    CHECK(usual.simulated == Approx(usual.closed).epsilon(1e-6));
    CHECK(over_thin.simulated == Approx(usual.simulated));
  }
  const std::int64_t large = std::int64_t{64} << 20;
  for (const Variables& off : {Variables{{"NCCL_PXN_DISABLE", "1"}}, Variables{{"NCCL_P2P_PXN_LEVEL", "0"}}}) {
    CHECK(exchanged(thin, off, large).simulated > 1.5 * exchanged({}, off, large).simulated);
    // Up to a spine and down again, of 500 ns each.
    const std::vector<std::string> far{"network.spine_latency=5us"};
    const double spine = 2 * 5;
    const Times without = exchanged(far, off, 1024, 2), relayed = exchanged(far, {}, 1024, 2);
    CHECK(without.closed - relayed.closed == Approx(spine));
    CHECK(without.simulated - relayed.simulated == Approx(spine));
  }
}

TEST_CASE("of channels that pass a switch's or PCIe's GPUs none goes out by a NIC beyond its rate") {
  for (const std::string& machine : test::machines_of_gpus()) {
    const Fabric fabric = test::built(machine, 3);
    for (const Group& group : groups_of(fabric)) {
      const auto c = nccl::connect(fabric, group);
      REQUIRE(c.ok());
      if ((c->nvlink && !c->nvswitch) || !c->ring.elsewhere.empty()) continue;
      const double line = nccl::system_of(fabric.spec(), c->compute_capability, {}).nic_speed;
      std::map<int, int> out;
      for (const ChannelNics& one : c->ring.nics) ++out[one.out];
      INFO(machine << ", ranks " << numbers(group));
      CHECK(std::ranges::all_of(
          out, [&](const auto& nic) { return nic.second * c->ring.between.value() / 1e9 <= line * (1 + 1e-9); }));
    }
  }
}

namespace {

/// GPUs with an NVSwitch, and NICs, spread over so many PCIe switches of generation 4.
struct Switches {
  int gpus, nics, switches;
};
Fabric on_switches(const Switches& of, int nodes) {
  TopologySpec spec = test::shipped("dgx-a100");
  for (DeviceGroup& group : spec.devices) {
    if (group.kind == DeviceKind::gpu) group.count = of.gpus;
    if (group.kind == DeviceKind::nic) group.count = of.nics;
    if (group.kind == DeviceKind::pcie_switch) group.count = of.switches;
  }
  return *Fabric::build(spec, nodes);
}

}  // namespace

TEST_CASE("no GPU's port has more of a switch's channels than it has room for, in or out") {
  // 2, 3, 4, 4 and 8 GPUs beside each NIC.
  for (const Switches& of : {Switches{8, 8, 4}, {6, 6, 2}, {8, 8, 2}, {8, 4, 2}, {16, 16, 2}})
    for (const int nodes : {2, 4}) {
      const int gpus = of.gpus;
      INFO(gpus << " GPUs and " << of.nics << " NICs on " << of.switches << " switches, " << nodes << " nodes");
      const Fabric fabric = on_switches(of, nodes);
      const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, gpus * nodes));
      REQUIRE(c.ok());
      std::map<int, int> in, out;
      for (std::size_t channel = 0; channel < c->ring.order.size(); ++channel) {
        ++in[c->ring.order[channel].front()];
        ++out[c->ring.order[channel].back()];
        CHECK(c->ring.nics[channel].in == c->ring.nics[channel].out);
      }
      // NCCL counts 24 GB/s for x16 of generation 4.
      const int room = static_cast<int>(24e9 / c->ring.between.value() + 1e-9);
      const auto fits = [&](const auto& port) { return port.second <= room; };
      CHECK(std::ranges::all_of(in, fits));
      CHECK(std::ranges::all_of(out, fits));
      // Each leaves by the next one beside its NIC.
      if (of.nics == 8 && of.switches == 2) {
        REQUIRE(c->ring.channels == 8);
        for (int gpu = 0; gpu < 8; ++gpu)
          CHECK(c->ring.order[static_cast<std::size_t>(gpu)].back() == gpu / 4 * 4 + (gpu + 1) % 4);
      }
      for (const CollectiveKind kind :
           {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast}) {
        const Bytes size(std::int64_t{1} << 30);
        const auto plan = nccl::plan(*c, kind, size, nccl::Algorithm::ring);
        REQUIRE(plan.ok());
        const double closed = nccl::run(*c, kind, size, *plan).time().count();
        INFO(to_string(kind));
        CHECK(test::simulated(fabric, *c, kind, size, *plan).count() == Approx(closed).epsilon(0.15));
      }
    }
}

TEST_CASE("every ring and tree enters and leaves nodes by the NICs that the search has for its channels") {
  for (const std::string& machine : test::machines_of_gpus())
    for (const std::vector<int>& unlike :
         {std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2}, std::vector<int>{0, 0}}) {
      const Fabric fabric = test::built(machine, static_cast<int>(unlike.size()));
      if (fabric.nics_per_node() == 0 || fabric.ranks_per_node() < 3) continue;
      std::vector<int> gpus = unlike;
      for (int& one : gpus)
        if (one == 0) one = fabric.ranks_per_node();
      const Group group = test::first_of_nodes(fabric, gpus);
      const auto c = nccl::connect(fabric, group);
      REQUIRE(c.ok());
      const nccl::ChannelOrders orders(fabric, group);
      for (const nccl::Algorithm algorithm : {nccl::Algorithm::ring, nccl::Algorithm::tree}) {
        const bool ring = algorithm == nccl::Algorithm::ring;
        const nccl::Graph& graph = ring ? c->ring : c->tree;
        const Bytes size(64 << 20);
        const nccl::Plan plan =
            test::planned_as(*c, CollectiveKind::all_reduce, size, algorithm, nccl::Protocol::simple);
        const auto program = nccl::program(fabric, group, *c, CollectiveKind::all_reduce, size, plan);
        REQUIRE(program.ok());
        const int of_machine = program->machine.ranks_per_node();
        for (const Lane& lane : program->pattern.lanes)
          for (int node = 0; node < orders.nodes(); ++node) {
            INFO(machine << ", " << test::words(gpus) << "GPUs, " << to_string(algorithm) << ", channel "
                         << lane.route_lane << ", node " << node);
            const int channel = lane.route_lane % graph.channels;
            const auto nics = orders.nics_of_node(node, graph, ring ? orders.of_ring(node, graph, channel) : channel);
            REQUIRE(nics.has_value());
            const Rank here(static_cast<std::uint32_t>(node * of_machine));
            const Rank other(static_cast<std::uint32_t>((node + 1) % orders.nodes() * of_machine));
            CHECK(program->machine.nic_of(here, lane.route_lane) == nics->in);
            std::vector<LinkId> way;
            program->machine.route(here, other, lane.route_lane, way);
            const auto out = std::ranges::find_if(
                way, [&](LinkId link) { return program->machine.links()[link.value()].kind == LinkKind::network; });
            REQUIRE(out != way.end());
            const std::string name = program->machine.link_name(*out);
            INFO(name);
            CHECK(name.find("." + fabric.spec().network_devices + std::to_string(nics->out) + " ") !=
                  std::string::npos);
          }
      }
    }
}

TEST_CASE("PCIe's switches with two NICs and two GPUs each relay for both at their rate") {
  for (const int nodes : {2, 8, 24}) {
    INFO(nodes);
    const Fabric fabric = test::built("dgx-a100", nodes);
    const Communicator c = test::communicator("dgx-a100", nodes);
    const Bytes size(64 << 20);
    const auto plan = nccl::plan(c, CollectiveKind::alltoall, size);
    REQUIRE(plan.ok());
    CHECK(test::us(test::simulated(fabric, c, CollectiveKind::alltoall, size, *plan)) ==
          Approx(test::us(nccl::run(c, CollectiveKind::alltoall, size, *plan).time())).epsilon(1e-6));
  }
}

TEST_CASE("GPUs that are not in the group relay nothing: a lone GPU of a node sends by its own NIC") {
  const auto time = [](const std::vector<int>& ranks, CollectiveKind kind, const std::vector<std::string>& sets,
                       const Variables& variables) {
    const Fabric fabric = test::built("dgx-h100", 4, sets);
    std::vector<Rank> all;
    for (const int rank : ranks) all.emplace_back(static_cast<std::uint32_t>(rank));
    const Group group = Group::listed(all);
    const auto c = nccl::connect(fabric, group, test::environment(variables));
    REQUIRE(c.ok());
    const Bytes size(256 << 20);
    const auto plan = nccl::plan(*c, kind, size);
    REQUIRE(plan.ok());
    const auto program = nccl::program(fabric, group, *c, kind, size, *plan);
    REQUIRE(program.ok());
    return Times{test::us(nccl::run(*c, kind, size, *plan).time()), test::us(*simulate(*program))};
  };
  // On four rails: 1.537 ms where all GPUs of the nodes relayed, three parts of 64 MiB through one NIC of 44 GB/s.
  const Times scattered = time({0, 9, 18, 27}, CollectiveKind::scatter, {}, {});
  CHECK(scattered.simulated == Approx(scattered.closed).epsilon(1e-6));
  CHECK(scattered.simulated > 3 * (64 << 20) / 50e9 * 1e6);
  // To another rail over thin spines, as without PXN; on one rail they are not on the way.
  const std::vector<std::string> thin{"network.oversubscription=16"};
  const Variables off{{"NCCL_PXN_DISABLE", "1"}};
  for (const CollectiveKind kind : {CollectiveKind::sendrecv, CollectiveKind::all_gather, CollectiveKind::broadcast}) {
    INFO(to_string(kind));
    CHECK(time({0, 9}, kind, thin, {}).simulated == Approx(time({0, 9}, kind, thin, off).simulated));
    CHECK(time({0, 9}, kind, thin, {}).simulated > 3 * time({0, 8}, kind, thin, {}).simulated);
    CHECK(time({0, 8}, kind, thin, {}).simulated == Approx(time({0, 8}, kind, {}, {}).simulated));
  }
  // Beside the rail's NIC is a GPU of the group.
  const double near = time({0, 1, 8, 9}, CollectiveKind::alltoall, {}, {}).simulated;
  CHECK(time({0, 1, 8, 9}, CollectiveKind::alltoall, thin, {}).simulated == Approx(near));
  CHECK(time({0, 1, 8, 9}, CollectiveKind::alltoall, thin, off).simulated > 1.5 * near);
}

TEST_CASE("GPUs of other trays than the receivers' send by their own NICs, as none beside the receivers' is theirs") {
  // Each node's second GPU sends to the other node's first, whose tray has no GPU of the group on the sender's node.
  const Fabric fabric = test::built("gb200-nvl72", 2);
  const Bytes size(64 << 20);
  const auto time = [&](const std::vector<std::uint32_t>& ranks) {
    const Group group = Group::listed(std::vector<Rank>(ranks.begin(), ranks.end()));
    const auto c = nccl::connect(fabric, group, test::environment({}));
    REQUIRE(c.ok());
    CHECK(c->pairs.next.messages == 1);
    const auto plan = nccl::plan(*c, CollectiveKind::sendrecv, size);
    REQUIRE(plan.ok());
    return nccl::run(*c, CollectiveKind::sendrecv, size, *plan).time();
  };
  CHECK(time({0, 1, 80, 81}) == time({0, 1, 72, 73}));
}
