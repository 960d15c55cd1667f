// Sends and receives over straight NVLinks, which not all pairs of GPUs have, and ways over PCIe.
#include "nccl/pair_rates.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/program.hpp"
#include "machines.hpp"

using namespace collcast;
using nccl::Communicator;

namespace {

nccl::System node_of(const std::string& machine, int capability) {
  return nccl::system_of(test::shipped(machine), capability, {});
}

/// Shipped machines some of whose GPUs have an NVLink to some others and not to all.
std::vector<std::string> partial_meshes() {
  std::vector<std::string> out;
  for (const TopologyEntry& entry : list_topologies(test::source_tree())) {
    const TopologySpec spec = test::shipped(entry.name);
    const auto capability = nccl::compute_capability(spec.gpu.model);
    if (!capability) continue;
    const nccl::System system = nccl::system_of(spec, *capability, {});
    if (!system.has_nvlink() || system.nvswitch) continue;
    int missing = 0;
    for (std::size_t a = 0; a < system.nvlinks.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) missing += system.nvlinks[a][b] > 0 ? 0 : 1;
    if (missing > 0) out.push_back(entry.name);
  }
  return out;
}

constexpr std::array every_kind{CollectiveKind::broadcast,  CollectiveKind::reduce,         CollectiveKind::all_reduce,
                                CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::alltoall,
                                CollectiveKind::gather,     CollectiveKind::scatter,        CollectiveKind::sendrecv};

}  // namespace

TEST_CASE("machines whose GPUs send through others are those with a partial mesh of NVLinks") {
  const std::vector<std::string> partial = partial_meshes();
  CHECK(partial.size() >= 2);
  for (const TopologyEntry& entry : list_topologies(test::source_tree())) {
    INFO(entry.name);
    CHECK(nccl::lacks_nvlinks(test::shipped(entry.name)) ==
          (std::find(partial.begin(), partial.end(), entry.name) != partial.end()));
  }
}

TEST_CASE("NCCL_NVB_DISABLE=1 leaves no ways through GPUs, and is without effect where there are none") {
  const nccl::Environment e = test::environment({{"NCCL_NVB_DISABLE", "1"}}),
                          not_set = test::environment({{"NCCL_NVB_DISABLE", "0"}});
  const TopologySpec dgx1 = test::shipped("dgx1-v100"), dgx2 = test::shipped("dgx2-v100");
  CHECK(warnings(e, 1, dgx1).empty());
  CHECK(unused(e, 1, dgx1).empty());
  CHECK(unused(e, 1, dgx2) == std::vector<std::string>{"NCCL_NVB_DISABLE"});
  CHECK(unused(not_set, 1, dgx1) == std::vector<std::string>{"NCCL_NVB_DISABLE"});
  // Of eight GPUs' pairs twelve are over PCIe then; five GPUs have a ring through one or none.
  const Communicator all = test::communicator("dgx1-v100", 1, 8, e), usual = test::communicator("dgx1-v100", 1, 8);
  CHECK(all.ring.order == usual.ring.order);
  CHECK(all.gpu.pair_rates.all < usual.gpu.pair_rates.all);
  const Communicator five = test::communicator("dgx1-v100", 1, 5, e);
  CHECK_FALSE(five.nvlink);
  CHECK(test::communicator("dgx1-v100", 1, 5).nvlink);
  const Fabric fabric = test::built("dgx1-v100", 1);
  for (const Communicator* c : {&all, &five})
    for (const CollectiveKind kind :
         {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::gather, CollectiveKind::scatter}) {
      INFO(c->ranks << " ranks, " << to_string(kind));
      const Bytes size(64 << 20);
      const nccl::Plan plan = nccl::plan(*c, kind, size).value();
      CHECK(test::simulated(fabric, *c, kind, size, plan).count() ==
            Approx(nccl::run(*c, kind, size, plan).time().count()).epsilon(0.1));
    }
  // So had all versions before 2.9.
  nccl::Environment old;
  old.launch.version = 20804;
  CHECK_FALSE(old.sends_through_gpus());
  CHECK_FALSE(test::communicator("dgx1-v100", 1, 5, old).nvlink);
}

TEST_CASE("rings fill the straight NVLinks that they go over, and no others") {
  const nccl::System dgx1 = node_of("dgx1-v100", 70);
  CHECK(ring_rate(dgx1, {{0, 1}}, {}, 1)->value() == Approx(25e9));
  CHECK(ring_rate(dgx1, {{0, 3}}, {}, 1)->value() == Approx(50e9));
  // Two rings the one way and the other round: each link has one, and three links of 25 GB/s from a GPU two rings each.
  CHECK(ring_rate(dgx1, {{0, 1, 3, 2}, {2, 3, 1, 0}}, {}, 1)->value() == Approx(2 * 25e9));
  CHECK(ring_rate(dgx1, {{0, 1, 3, 2}, {0, 1, 3, 2}}, {}, 1)->value() == Approx(25e9));
  // Over several nodes no ring goes from its last GPU to its first: 3, 0 and 0, 4 have two links, 4, 7 too.
  CHECK(ring_rate(dgx1, {{3, 0, 4, 7}}, {}, 2)->value() == Approx(50e9));
  CHECK_FALSE(ring_rate(node_of("dgx2-v100", 70), {{0, 1}}, {}, 1));
  CHECK_FALSE(ring_rate(dgx1, {{0}}, {}, 1));
  CHECK_FALSE(ring_rate(dgx1, {}, {}, 1));
  // The search's rings fill a whole node's links; a pair of it has one of six, or two.
  CHECK(test::communicator("dgx1-v100", 1).gpu.ring_links == Approx(1));
  CHECK(test::communicator("dgx1-v100", 1, 2).gpu.ring_links == Approx(1. / 6));
  CHECK(test::communicator("dgx2-v100", 1, 2).gpu.ring_links == 1);
}

TEST_CASE("pairs without an NVLink load those of the GPU between them") {
  const nccl::System dgx1 = node_of("dgx1-v100", 70);
  const std::vector<int> gpus{0, 1, 2, 3, 4, 5, 6, 7};
  const auto whole = pair_rates(dgx1, gpus);
  REQUIRE(whole.has_value());
  // Twelve of 28 pairs have no NVLink. Of all 56 messages at once three cross a single link of 25 GB/s, such as 0 to 1:
  // its own, that to 5 (0, 1, 5) and that from 4 (4, 0, 1). Seven peers share that time.
  CHECK(whole->all.value() == Approx(7 * 25e9 / 3));
  // 0 to 1 has one link; 3 to 4 and 7 to 0, which have none, two that are twice as wide.
  CHECK(test::communicator("dgx1-v100", 1).gpu.pair_rates.next.value() == Approx(25e9));
  // To 0 come 5, 6 and 7 by 4, whose link of 50 GB/s its own message takes, too.
  CHECK(whole->gather.value() == Approx(7 * 50e9 / 4));
  // From 0 the same.
  CHECK(whole->scatter.value() == Approx(7 * 50e9 / 4));
  // 0, 3: two links; nothing else is between them.
  CHECK(pair_rates(dgx1, {0, 3})->all.value() == Approx(50e9));
  // 0 and 7: no GPU of the group is between them, so PCIe 3.0.
  CHECK(pair_rates(dgx1, {0, 7})->all.value() == Approx(15.75e9));
  // On several nodes 7's next is elsewhere; 3 to 4 remains.
  CHECK(next_rate(dgx1, {{0, 1, 2, 3}, {{0, 3}, {2, 1}, {3, 2}}, {}, {}})->value() == Approx(50e9));
  CHECK(next_rate(dgx1, {{0, 1, 2, 3}, {{0, 3}, {1, 0}, {2, 1}, {3, 2}}, {}, {}})->value() == Approx(25e9));
}

TEST_CASE("where every pair has its own NVLinks all of them are used at once, one pair has its own alone") {
  const auto full = pair_rates(node_of("abci-v100", 70), {0, 1, 2, 3});
  REQUIRE(full.has_value());
  CHECK(full->all.value() == Approx(150e9));
  CHECK(full->gather.value() == Approx(150e9));
  CHECK(full->scatter.value() == Approx(150e9));
  CHECK(test::communicator("abci-v100", 1).gpu.pair_rates.next.value() == Approx(50e9));
  CHECK_FALSE(pair_rates(node_of("dgx-a100", 80), {0, 1, 2, 3}).has_value());
  CHECK_FALSE(pair_rates(node_of("l40s-pcie", 89), {0, 1, 2, 3}).has_value());
}

TEST_CASE("on every partial mesh of NVLinks sends and receives take their simulation's time within a tenth") {
  const std::vector<std::string> machines = partial_meshes();
  CHECK(std::ranges::count(machines, "dgx1-v100") == 1);
  for (const std::string& machine : machines) {
    const Fabric fabric = test::built(machine, 1);
    const int gpus = fabric.ranks_per_node();
    for (int ranks = 2; ranks <= gpus; ++ranks) {
      const Communicator c = test::communicator(machine, 1, ranks);
      if (!c.nvlink) continue;
      for (const CollectiveKind kind :
           {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::gather, CollectiveKind::scatter})
        for (const std::int64_t mib : {1, 16, 256}) {
          const Bytes size(mib << 20);
          const nccl::Plan plan = nccl::plan(c, kind, size).value();
          const double closed = nccl::run(c, kind, size, plan).time().count();
          INFO(machine << ", " << ranks << " ranks, " << to_string(kind) << ", " << mib << " MiB");
          CHECK(test::simulated(fabric, c, kind, size, plan).count() == Approx(closed).epsilon(0.1));
        }
    }
  }
}

TEST_CASE("whichever four GPUs of a partial mesh there are, both methods have pairs on the links that NCCL takes") {
  // Of two ways through a GPU the simulation took another one (alltoall of 0, 1, 4, 5 of a DGX-1 34 % above at 256
  // MiB), and where none is in the group three NVLinks in the place of PCIe (sendrecv of 0, 1, 5, 6 37 % below).
  const Fabric fabric = test::built("dgx1-v100", 1);
  const Bytes size(std::int64_t{256} << 20);
  int linked = 0;
  for (unsigned set = 0; set < 256; ++set) {
    std::vector<Rank> ranks;
    for (unsigned gpu = 0; gpu < 8; ++gpu)
      if ((set >> gpu & 1U) != 0) ranks.emplace_back(gpu);
    if (ranks.size() != 4) continue;
    const Group group = Group::listed(ranks);
    const Communicator c = *nccl::connect(fabric, group);
    if (!c.nvlink) continue;
    ++linked;
    for (const CollectiveKind kind :
         {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::gather, CollectiveKind::scatter}) {
      const nccl::Plan plan = nccl::plan(c, kind, size).value();
      const auto program = nccl::program(fabric, group, c, kind, size, plan);
      REQUIRE(program.ok());
      const double closed = nccl::run(c, kind, size, plan).time().count(), simulated = simulate(*program)->count();
      INFO("GPUs " << set << " by bits, " << to_string(kind));
      // A root's links are the closed form's of the group's first rank, which another one may be busier than.
      CHECK(simulated == Approx(closed).epsilon(0.1));
    }
  }
  CHECK(linked > 30);
}

TEST_CASE("factors of further ways over PCIe touch those that go them, by every collective and both methods") {
  // Cards 0 and 1 are below a switch, 0 to 3 below a socket.
  for (const int gpus : {2, 4, 8}) {
    const Fabric fabric = test::built("l40s-pcie", 1);
    const Communicator plain = test::communicator("l40s-pcie", 1, gpus);
    Communicator bridged = plain, between = plain;
    bridged.factors.host_bridge = between.factors.sockets = 0.25;
    for (const CollectiveKind kind : every_kind) {
      INFO(gpus << " GPUs, " << to_string(kind));
      const Bytes size(64 << 20);
      const nccl::Plan plan = *nccl::plan(plain, kind, size);
      const auto slower = [&](const Communicator& c) {
        return nccl::run(c, kind, size, plan).time() / nccl::run(plain, kind, size, plan).time();
      };
      // A broadcast's chain keeps the link busy; of the rest launch and hops are little.
      CHECK(slower(bridged) == Approx(gpus > 2 ? 4 : 1).epsilon(0.1));
      CHECK(slower(between) == Approx(gpus > 4 ? 4 : 1).epsilon(0.1));
      CHECK(test::simulated(fabric, bridged, kind, size, plan) / test::simulated(fabric, plain, kind, size, plan) ==
            Approx(gpus > 2 ? 4 : 1).epsilon(0.1));
    }
  }
  // NVLink goes by neither.
  Communicator linked = test::communicator("dgx-a100", 1);
  const Seconds before = test::ran(linked, CollectiveKind::all_reduce, 64 << 20).time();
  linked.factors.host_bridge = linked.factors.sockets = 0.25;
  CHECK(test::ran(linked, CollectiveKind::all_reduce, 64 << 20).time() == before);
}
