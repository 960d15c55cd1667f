// The tuning model against figures that NCCL printed, and against arithmetic on its constants.
#include <catch2/catch.hpp>

#include <numeric>

#include "machines.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Candidate;
using nccl::Communicator;
using nccl::Plan;
using nccl::Protocol;

namespace {

Candidate candidate(const Communicator& c, CollectiveKind kind, Bytes size, Algorithm a, Protocol p) {
  for (const Candidate& one : tuning_table(c, kind, size))
    if (one.algorithm == a && one.protocol == p) return one;
  FAIL("the table has every pair");
  return {};
}

Plan planned(const Communicator& c, CollectiveKind kind, Bytes size) {
  const auto plan = nccl::plan(c, kind, size);
  INFO(to_text(plan.errors()));
  REQUIRE(plan.ok());
  return *plan;
}

std::string refusal(const Communicator& c, CollectiveKind kind, std::optional<Algorithm> only = {}) {
  const auto plan = nccl::plan(c, kind, Bytes(1 << 20), only);
  REQUIRE_FALSE(plan.ok());
  return plan.errors().front().message;
}

constexpr CollectiveKind reduce_all = CollectiveKind::all_reduce;

}  // namespace

TEST_CASE("two ranks on two nodes: 16.8, 16.6 and 36.4 us, as NCCL's TUNING log prints them") {
  const Communicator c = test::communicator("dgx-h100", 2, 1);
  const auto latency = [&](Algorithm a, Protocol p) {
    return test::us(candidate(c, reduce_all, Bytes(8), a, p).latency);
  };
  CHECK(latency(Algorithm::tree, Protocol::ll) == Approx(16.8));  // 6.8 + 2 lg 2 x 5.0
  CHECK(latency(Algorithm::ring, Protocol::ll) ==
        Approx(16.6));  // 6.6 + 2 x 5.0: with one rank per node the tree's hop
  CHECK(latency(Algorithm::tree, Protocol::simple) == Approx(36.4));  // 8.4 + 2 x 14
  CHECK(latency(Algorithm::ring, Protocol::simple) == Approx(36.4));
}

TEST_CASE("one box of H100: latencies and bandwidths by hand") {
  const Communicator c = test::communicator("dgx-h100", 1);
  const Bytes size(std::int64_t{1} << 30);
  // 14 steps of 0.6 after 6.6; 141 GB/s in all, of which 8/14 is size over time.
  const Candidate ll = candidate(c, reduce_all, size, Algorithm::ring, Protocol::ll);
  CHECK(test::us(ll.latency) == Approx(6.6 + 14 * 0.6));
  CHECK(ll.bandwidth.value() == Approx(141e9 * 8 / 14));
  // 0.92 x 360 is below 12 x 36.7.
  const Candidate ll128 = candidate(c, reduce_all, size, Algorithm::ring, Protocol::ll128);
  CHECK(ll128.bandwidth.value() == Approx(0.92 * 360e9 * 8 / 14));
  CHECK(test::us(ll128.latency) == Approx(14 + 14 * 1.9));
  // 40 x 0.85 x 7/8 x 2 of 8 channels; no base latency, a hop of 25.
  const Candidate nvls = candidate(c, reduce_all, size, Algorithm::nvls, Protocol::simple);
  CHECK(nvls.bandwidth.value() == Approx(8 * 40e9 * 0.85 * 7 / 8 * 2 * 8 / 14));
  CHECK(test::us(nvls.latency) == Approx(25));
  // All_gather: half the traffic of NVLS, and the bus rate as it is.
  CHECK(candidate(c, CollectiveKind::all_gather, size, Algorithm::nvls, Protocol::simple).bandwidth.value() ==
        Approx(8 * 40e9 * 0.85 * 7 / 8 * 7 / 8));
  CHECK(planned(c, reduce_all, size).algorithm == Algorithm::nvls);
}

TEST_CASE("on one node NCCL believes NVLS to be no faster than heads are outside it, which the run does not ask for") {
  // Inside 40 x 0.85 x 7/8 x 2 = 59.5 of a channel, outside 60; then outside 40, and of gathers 26 inside either way.
  const Communicator b200 = test::communicator("dgx-b200", 1);
  CHECK(80 * 0.74 * 7 / 8 * 2 > 90);
  CHECK(candidate(b200, reduce_all, Bytes(1 << 30), Algorithm::nvls, Protocol::simple).bandwidth.value() ==
        Approx(8 * 90e9 * 8 / 14));
  for (const int version : {0, 22003, 21803})
    for (const CollectiveKind kind : {reduce_all, CollectiveKind::all_gather}) {
      nccl::Environment environment;
      environment.launch.version = version;
      Communicator c = test::communicator("dgx-h100", 1, 0, environment);
      const Candidate raised = candidate(c, kind, Bytes(1 << 30), Algorithm::nvls, Protocol::simple);
      const Seconds time = test::ran(c, kind, 1 << 30, Algorithm::nvls, Protocol::simple).time();
      REQUIRE(c.nvls->between > c.nvls->inside);
      c.nvls->between = c.nvls->inside;
      const Candidate held = candidate(c, kind, Bytes(1 << 30), Algorithm::nvls, Protocol::simple);
      CHECK((held.time > raised.time) == (version == 0 && kind == reduce_all));
      CHECK(test::ran(c, kind, 1 << 30, Algorithm::nvls, Protocol::simple).time() == time);
    }
}

TEST_CASE("over several nodes LL's cap is the host's: of AMD's its own, of Intel's and Arm's the same") {
  const auto ring = [](const char* machine) {
    const Communicator c = test::communicator(machine, 2);
    return candidate(c, reduce_all, Bytes(1024), Algorithm::ring, Protocol::ll).bandwidth.value();
  };
  // Half of what the search finds, at most 39 GB/s, of AMD's hosts 22.5 [src/graph/tuning.cc].
  CHECK(ring("gh200") == Approx(39e9 * 8 / 14));
  CHECK(ring("dgx-h100") == Approx(39e9 * 16 / 30));
  CHECK(ring("dgx-a100") == Approx(22.5e9 * 16 / 30));
}

namespace {

/// GPUs of a machine's nodes, by their numbers in them.
Communicator of_gpus(const char* machine, const std::vector<std::vector<int>>& nodes,
                     const nccl::Environment& environment = {}) {
  const Fabric fabric = test::built(machine, static_cast<int>(nodes.size()));
  std::vector<Rank> ranks;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (const int gpu : nodes[node])
      ranks.emplace_back(static_cast<std::uint32_t>(static_cast<int>(node) * fabric.ranks_per_node() + gpu));
  const auto c = nccl::connect(fabric, Group::listed(std::move(ranks)), environment);
  INFO(to_text(c.errors()));
  REQUIRE(c.ok());
  return *c;
}

}  // namespace

TEST_CASE("LL128 needs NVLink inside every node that has several ranks, however few the mean") {
  // Without NVLink GPUs 0 and 1 of a DGX A100 are joined by one PCIe switch.
  const nccl::Environment apart = test::environment({{"NCCL_P2P_DISABLE", "1"}});
  for (const std::vector<std::vector<int>>& nodes :
       {std::vector<std::vector<int>>{{0, 1}, {0, 1}}, {{0, 1}, {0}}, {{0}, {0}, {0, 1}}}) {
    const Communicator c = of_gpus("dgx-a100", nodes, apart);
    CHECK(candidate(c, reduce_all, Bytes(1 << 20), Algorithm::ring, Protocol::ll128).reason ==
          "LL128 needs NVLink inside the node");
  }
  // With it, and of one GPU on each node, it is there.
  CHECK(candidate(of_gpus("dgx-a100", {{0, 1}, {0}}), reduce_all, Bytes(1 << 20), Algorithm::ring, Protocol::ll128)
            .available);
  CHECK(candidate(of_gpus("dgx-a100", {{0}, {0}}, apart), reduce_all, Bytes(1 << 20), Algorithm::ring, Protocol::ll128)
            .available);
}

TEST_CASE("a ring's hop between nodes is the tree's with one rank on each node, not with more on some") {
  const auto latency = [](const std::vector<std::vector<int>>& nodes) {
    return test::us(candidate(of_gpus("dgx-h100", nodes), reduce_all, Bytes(8), Algorithm::ring, Protocol::ll).latency);
  };
  // 6.6, and 2 of 2 (n - 1) hops between nodes: of two ranks 2 x 5.0.
  CHECK(latency({{0}, {0}}) == Approx(6.6 + 2 * 5.0));
  // Of three two more inside, of 1 us each for the host's part of a message, and the network's are the ring's 2.7.
  CHECK(latency({{0, 1}, {0}}) == Approx(6.6 + 2 * 1.0 + 2 * 2.7));
}

TEST_CASE("NCCL's table does not depend on which of unlike nodes is first") {
  // Of one GPU the tree has pattern 3, of eight pattern 1: 3 anywhere in the job takes 0.85 of its bandwidth.
  for (const char* machine : {"azure-ndmv4", "dgx-h100", "dgx-a100", "polaris"})
    for (const int more : {2, 3, 4}) {
      INFO(machine << ", " << more);
      std::vector<int> many(static_cast<std::size_t>(more));
      std::iota(many.begin(), many.end(), 0);
      const Communicator one = of_gpus(machine, {many, {0}}), other = of_gpus(machine, {{0}, many});
      CHECK(one.tree.pattern == nccl::GraphPattern::tree);
      for (const Bytes size : {Bytes(1 << 10), Bytes(256 << 20)}) {
        const auto a = tuning_table(one, reduce_all, size), b = tuning_table(other, reduce_all, size);
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          INFO(to_string(a[i].algorithm) << ' ' << to_string(a[i].protocol));
          CHECK(a[i].available == b[i].available);
          CHECK(a[i].time == b[i].time);
        }
      }
    }
}

TEST_CASE("LL128 goes by how far NICs are from the algorithm's own channels") {
  const auto refused = [](Algorithm a) {
    const Communicator c =
        test::communicator("dgx-h100", 2, 0, test::environment({{"NCCL_CROSS_NIC", "0"}, {"NCCL_PXN_DISABLE", "1"}}));
    return candidate(c, reduce_all, Bytes(8 << 20), a, Protocol::ll128).reason;
  };
  CHECK(refused(Algorithm::ring) == "LL128 needs NICs no farther than PXN, these are PHB");
  CHECK(refused(Algorithm::tree).empty());
}

TEST_CASE("older versions choose by their own constants") {
  const auto of = [](const char* machine, int nodes, int per_node, int version) {
    nccl::Environment environment;
    environment.launch.version = version;
    return test::communicator(machine, nodes, per_node, environment);
  };
  const auto latency = [&](int version, Algorithm a, Protocol p) {
    return test::us(candidate(of("dgx-h100", 2, 1, version), reduce_all, Bytes(8), a, p).latency);
  };
  // Two ranks on two nodes. 2.8: 4.4 + 2 x 5.0 and 3.6 + 2 x 2.7; Simple 2 x 28, 8.4 + 2 x 9.6.
  CHECK(latency(20804, Algorithm::tree, Protocol::ll) == Approx(14.4));
  CHECK(latency(20804, Algorithm::ring, Protocol::ll) == Approx(9.0));
  CHECK(latency(20804, Algorithm::tree, Protocol::simple) == Approx(56));
  CHECK(latency(20804, Algorithm::ring, Protocol::simple) == Approx(27.6));
  // 2.18 to 2.22 count 2N = 4 hops between nodes of 2 steps, so that -2 of at least 1 us (three under Simple) are left.
  CHECK(latency(21803, Algorithm::ring, Protocol::ll) == Approx(6.6 + 4 * 2.7 - 2 * 1.0));
  CHECK(latency(22003, Algorithm::ring, Protocol::simple) == Approx(8.4 + 4 * 14 - 2 * 3.4));
  CHECK(latency(21803, Algorithm::tree, Protocol::simple) == Approx(2 * 14));
  CHECK(latency(22203, Algorithm::tree, Protocol::simple) == Approx(2 * 28));
  // As NCCL prints them today: of 2.23 and later, of one that is not known, and of 2.4, which had no such model.
  for (const int version : {0, 20406, 22304, 22809}) {
    CHECK(latency(version, Algorithm::tree, Protocol::ll) == Approx(16.8));
    CHECK(latency(version, Algorithm::ring, Protocol::simple) == Approx(36.4));
  }
  // Eight A100 in 2.8: LL a quarter of 240 GB/s, a third of it where nothing is reduced; LL128 16.9 and 18.3 of 12.
  const auto rate = [&](int version, CollectiveKind kind, Protocol p) {
    const double per_step = kind == reduce_all ? 14.0 / 8 : 7.0 / 8;
    return candidate(of("dgx-a100", 1, 0, version), kind, Bytes(1 << 20), Algorithm::ring, p).bandwidth.value() *
           per_step / 1e9;
  };
  CHECK(rate(20804, reduce_all, Protocol::ll) == Approx(235.0 / 4));
  CHECK(rate(20804, CollectiveKind::all_gather, Protocol::ll) == Approx(235.0 / 3));
  CHECK(rate(20804, reduce_all, Protocol::ll128) == Approx(12 * 16.9));
  CHECK(rate(20804, CollectiveKind::all_gather, Protocol::ll128) == Approx(0.92 * 235));
  CHECK(rate(22003, reduce_all, Protocol::ll) == Approx(87.7));
  CHECK(rate(22003, reduce_all, Protocol::ll128) == Approx(0.92 * 240));
}

TEST_CASE("on Blackwell LL128 is not taken since 2.29") {
  for (const int version : {0, 22809, 22902}) {
    nccl::Environment environment;
    environment.launch.version = version;
    const Communicator b200 = test::communicator("dgx-b200", 1, 0, environment);
    const Candidate one = candidate(b200, reduce_all, Bytes(16 << 20), Algorithm::ring, Protocol::ll128);
    CHECK(one.available == (version < 22900));
    const Communicator h100 = test::communicator("dgx-h100", 1, 0, environment);
    CHECK(candidate(h100, reduce_all, Bytes(16 << 20), Algorithm::ring, Protocol::ll128).available);
  }
}

TEST_CASE("the trees' factor follows the size") {
  const Communicator c = test::communicator("dgx-h100", 2);
  const auto bandwidth = [&](std::int64_t size) {
    return candidate(c, reduce_all, Bytes(size), Algorithm::tree, Protocol::simple).bandwidth.value();
  };
  const double whole = bandwidth(std::int64_t{1} << 30);  // beyond 512 MiB: 1
  CHECK(whole == Approx(0.5 * 8 * 41.4e9));               // two nodes: 8 x min(0.92 x 48, 41.4)
  CHECK(bandwidth(64) == Approx(0.9 * whole));
  CHECK(bandwidth(32) == Approx(whole));
  CHECK(bandwidth(64 << 11) == Approx(0.5 * whole));
  CHECK(bandwidth((64 << 12) - 1) == Approx(0.5 * whole));
}

TEST_CASE("the host's processor decides on LL across nodes and on what a step costs") {
  const Fabric intel_fabric = test::built("dgx-h100", 2);
  const Fabric amd_fabric = test::built("dgx-h100", 2, {"host.cpu=amd"});
  const Group group = Group::strided(Rank(0), 1, 16);
  const Communicator intel = nccl::connect(intel_fabric, group).value(), amd = nccl::connect(amd_fabric, group).value();
  const Bytes size(1 << 20);
  const auto ring_ll = [&](const Communicator& c) {
    return candidate(c, reduce_all, size, Algorithm::ring, Protocol::ll);
  };
  CHECK(ring_ll(intel).bandwidth.value() == Approx(39e9 * 16 / 30));  // Volta's row for Intel
  CHECK(ring_ll(amd).bandwidth.value() == Approx(22.5e9 * 16 / 30));  // Ampere's for others
  // 28 steps inside at max(0.6, 1 or 2), 2 across at 2.7.
  CHECK(test::us(ring_ll(intel).latency) == Approx(6.6 + 28 * 1.0 + 2 * 2.7));
  CHECK(test::us(ring_ll(amd).latency) == Approx(6.6 + 28 * 2.0 + 2 * 2.7));
}

TEST_CASE("rings of Simple over several nodes have a plateau") {
  const Communicator c = test::communicator("dgx-a100", 2);
  const auto latency = [&](std::int64_t size) {
    return test::us(candidate(c, reduce_all, Bytes(size), Algorithm::ring, Protocol::simple).latency);
  };
  const std::int64_t from = 64LL * c.channels * c.ranks;
  CHECK(latency(from - 1) == Approx(8.4 + 28 * 6.0 + 2 * 14));  // AMD: 2 us a step, three times for Simple
  CHECK(latency(from) == Approx(1.4 * (8.4 + 28 * 6.0 + 2 * 14)));
}

TEST_CASE("what is not available says why") {
  const Communicator a100 = test::communicator("dgx-a100", 2);
  const auto why = [&](const Communicator& c, CollectiveKind kind, Algorithm a, Protocol p) {
    const Candidate one = candidate(c, kind, Bytes(1 << 20), a, p);
    CHECK_FALSE(one.available);
    return one.reason;
  };
  CHECK(why(a100, reduce_all, Algorithm::nvls_tree, Protocol::simple) ==
        "needs Hopper or newer on an NVSwitch, and three GPUs on the node");
  CHECK(why(a100, reduce_all, Algorithm::pat, Protocol::simple) == "pat does no all_reduce");
  CHECK(why(a100, CollectiveKind::broadcast, Algorithm::tree, Protocol::ll) == "tree does no broadcast");
  CHECK(why(a100, CollectiveKind::all_gather, Algorithm::pat, Protocol::simple) == "needs one rank per node");
  CHECK(why(a100, reduce_all, Algorithm::nvls, Protocol::ll) == "nvls has Simple only");
  const Communicator h100 = test::communicator("dgx-h100", 2);
  CHECK(why(h100, reduce_all, Algorithm::nvls, Protocol::simple) == "across nodes it needs a reduction in the network");
  CHECK(why(test::communicator("dgx-h100", 1), reduce_all, Algorithm::nvls_tree, Protocol::simple) ==
        "needs several nodes");
  CHECK(why(test::communicator("polaris", 2), reduce_all, Algorithm::ring, Protocol::ll128) ==
        "LL128 needs NICs no farther than PXB, these are PHB");
  CHECK(why(test::communicator("l40s-pcie", 1), reduce_all, Algorithm::ring, Protocol::ll128) ==
        "LL128 needs NVLink inside the node");
  CHECK(candidate(test::communicator("dgx-h100", 4, 1), CollectiveKind::all_gather, Bytes(1 << 20), Algorithm::pat,
                  Protocol::simple)
            .available);
}

TEST_CASE("a calibration without LL128 leaves LL and Simple, unless NCCL_PROTO insists") {
  Communicator c = test::communicator("dgx-a100", 4);
  CHECK(planned(c, CollectiveKind::all_gather, Bytes(4 << 20)).protocol == Protocol::ll128);
  c.factors.takes_ll128 = false;
  for (std::int64_t size = 8; size <= (std::int64_t{1} << 32); size *= 2)
    for (const CollectiveKind kind : {reduce_all, CollectiveKind::all_gather, CollectiveKind::broadcast})
      CHECK(planned(c, kind, Bytes(size)).protocol != Protocol::ll128);
  CHECK(candidate(c, reduce_all, Bytes(1 << 20), Algorithm::ring, Protocol::ll128).reason ==
        "LL128 is not taken, by the machine's calibration");
  c.environment = test::environment({{"NCCL_PROTO", "LL128"}});
  CHECK(planned(c, reduce_all, Bytes(1 << 20)).protocol == Protocol::ll128);
}

TEST_CASE("small sizes take fewer channels and threads") {
  const Communicator c = test::communicator("dgx-h100", 1);
  // LL of a ring among 8: 512 threads x 64 bytes a channel = 32 KiB.
  CHECK(planned(c, reduce_all, Bytes(8)).channels == 1);
  CHECK(planned(c, reduce_all, Bytes(8)).threads == 64);
  const auto ring_ll = [&](std::int64_t size) {
    return test::planned_as(c, reduce_all, Bytes(size), Algorithm::ring, Protocol::ll);
  };
  CHECK(ring_ll(64 << 10).channels == 2);
  CHECK(ring_ll(64 << 10).threads == 512);
  CHECK(ring_ll(32 * 23 << 10).channels == 23);
  CHECK(ring_ll(1 << 20).channels == 24);
  CHECK(nccl::plan(c, reduce_all, Bytes(1 << 10), Algorithm::nvls).value().channels == 16);
  // The largest sizes take all: 2 * 2^62 bytes are more than 2^31 times 16 KiB.
  CHECK(test::planned_as(c, reduce_all, Bytes(std::int64_t{1} << 62), Algorithm::ring, Protocol::simple).channels ==
        24);
}

TEST_CASE("NCCL_NTHREADS and NCCL_LL128_NTHREADS say from which size on all channels are used") {
  const auto plan = [](const char* name, const char* threads, std::int64_t size, Algorithm a, Protocol p) {
    const Communicator c = test::communicator("dgx-a100", 1, 0, test::environment({{name, threads}}));
    return test::planned_as(c, reduce_all, Bytes(size), a, p);
  };
  // A ring of LL among 8: 64 bytes a thread.
  const Plan few = plan("NCCL_NTHREADS", "64", 24 << 10, Algorithm::ring, Protocol::ll);
  CHECK(few.channels == 6);
  CHECK(few.threads == 64);
  const Plan usual = plan("NCCL_LL128_NTHREADS", "160", 24 << 10, Algorithm::ring, Protocol::ll);
  CHECK(usual.channels == 1);
  CHECK(usual.threads == 256);
  // Of a tree 8 bytes, and all threads run.
  const Plan tree = plan("NCCL_NTHREADS", "128", 16 << 10, Algorithm::tree, Protocol::ll);
  CHECK(tree.channels == 8);  // of 16 that the threads would have: each has 16 KiB of traffic, four times that of bytes
  CHECK(tree.threads == 640);
  // Simple's 64 bytes, LL128's 8.
  CHECK(plan("NCCL_NTHREADS", "128", 64 << 10, Algorithm::ring, Protocol::simple).channels == 8);
  CHECK(plan("NCCL_NTHREADS", "512", 64 << 10, Algorithm::ring, Protocol::simple).channels == 2);
  CHECK(plan("NCCL_LL128_NTHREADS", "160", 16 << 10, Algorithm::ring, Protocol::ll128).channels == 2);
  CHECK(plan("NCCL_LL128_NTHREADS", "160", 64 << 10, Algorithm::ring, Protocol::ll128).channels == 8);
  CHECK(plan("NCCL_NTHREADS", "64", 64 << 10, Algorithm::ring, Protocol::ll128).threads == 640);
}

TEST_CASE("a chain's hops count one by one where channels pass the GPUs in unlike orders") {
  const auto latency = [](int nodes, int per_node, Protocol p) {
    const Communicator c = test::communicator("dgx-h100", nodes, per_node);
    return test::us(candidate(c, CollectiveKind::broadcast, Bytes(8), Algorithm::ring, p).latency);
  };
  // 16 ranks, eight NICs: 6.6 + 16 x 2.7, 14 + 16 x 4, 8.4 + 16 x 14.
  CHECK(latency(2, 0, Protocol::ll) == Approx(49.8));
  CHECK(latency(2, 0, Protocol::ll128) == Approx(78));
  CHECK(latency(2, 0, Protocol::simple) == Approx(232.4));
  // One order of one GPU on each node, and of a switch's: one hop.
  CHECK(latency(2, 1, Protocol::ll) == Approx(6.6 + 2.7));
  CHECK(latency(1, 0, Protocol::ll) == Approx(6.6 + 0.6));
}

TEST_CASE(
    "a chain's one hop is its ring's, and NCCL has it on one node too where channels pass the GPUs in one order") {
  const auto believed = [](const Communicator& c, std::int64_t size, Protocol p) {
    return candidate(c, CollectiveKind::broadcast, Bytes(size), Algorithm::ring, p);
  };
  // 8.4 + 3.4 over NVLink and 8.4 + 5.7 over PCIe, where a tree's hop under Simple is 4.
  const Communicator a100 = test::communicator("dgx-a100", 1), l40s = test::communicator("l40s-pcie", 1);
  CHECK(test::us(believed(a100, 690 << 10, Protocol::simple).latency) == Approx(11.8));
  CHECK(test::us(believed(a100, 690 << 10, Protocol::simple).time) == Approx(11.8 + 690 * 1.024 / 240));
  CHECK(test::us(believed(l40s, 56 << 10, Protocol::simple).latency) == Approx(14.1));
  CHECK(test::us(believed(l40s, 56 << 10, Protocol::simple).time) == Approx(14.1 + 56 * 1.024 / 10));
  CHECK(planned(a100, CollectiveKind::broadcast, Bytes(690 << 10)).protocol == Protocol::simple);
  CHECK(planned(l40s, CollectiveKind::reduce, Bytes(56 << 10)).protocol == Protocol::ll);
  // Straight NVLinks: a hop for every rank.
  const Communicator dgx1 = test::communicator("dgx1-v100", 1);
  CHECK(test::us(believed(dgx1, 8, Protocol::ll).latency) == Approx(6.6 + 8 * 0.6));
  CHECK(test::us(believed(dgx1, 8, Protocol::ll128).latency) == Approx(14 + 8 * 1.9));
  CHECK(test::us(believed(dgx1, 8, Protocol::simple).latency) == Approx(8.4 + 8 * 4.0));
}

TEST_CASE("chains of 2.8.4 leave LL where ABCI's tables do, between 512 KiB and 1 MiB") {
  nccl::Environment old;
  old.launch.version = 20804;
  const auto protocol = [&](const char* machine, std::int64_t size) {
    return planned(test::communicator(machine, 1, 4, old), CollectiveKind::broadcast, Bytes(size)).protocol;
  };
  // 512 KiB, 1 and 2 MiB take 34, 46 and 54 us on V100, 43, 54 and 57 us on A100.
  CHECK(protocol("abci-v100", 512 << 10) == Protocol::ll);
  CHECK(protocol("abci-v100", 1 << 20) == Protocol::ll128);
  CHECK(protocol("abci-a100", 512 << 10) == Protocol::ll);
  CHECK(protocol("abci-a100", 1 << 20) == Protocol::simple);
}

TEST_CASE("variables narrow the choice") {
  const auto taken = [](std::vector<std::pair<std::string, std::string>> variables, CollectiveKind kind) {
    const Communicator c = test::communicator("dgx-h100", 1, 0, test::environment(variables));
    const Plan plan = planned(c, kind, Bytes(std::int64_t{1} << 30));
    return std::string(to_string(plan.algorithm)) + " " + std::string(to_string(plan.protocol));
  };
  CHECK(taken({}, reduce_all) == "nvls Simple");
  CHECK(taken({{"NCCL_ALGO", "Ring"}}, reduce_all) == "ring Simple");
  CHECK(taken({{"NCCL_ALGO", "^NVLS"}, {"NCCL_PROTO", "LL128"}}, reduce_all) == "ring LL128");
  CHECK(taken({{"NCCL_ALGO", "allreduce:tree;allgather:ring"}}, reduce_all) == "tree Simple");
  CHECK(taken({{"NCCL_NVLS_ENABLE", "0"}}, reduce_all) == "ring Simple");
  const Communicator few = test::communicator("dgx-h100", 1, 0, test::environment({{"NCCL_MAX_NCHANNELS", "4"}}));
  CHECK(few.channels == 4);
  CHECK(test::communicator("dgx-h100", 1, 0, test::environment({{"NCCL_MIN_NCHANNELS", "32"}})).channels == 32);
}

TEST_CASE("a choice that cannot be run is refused, with what could be") {
  const Communicator tree = test::communicator("dgx-a100", 1, 0, test::environment({{"NCCL_ALGO", "NVLS"}}));
  CHECK(refusal(tree, reduce_all) ==
        "NCCL_ALGO and NCCL_PROTO leave nothing that can be run for all_reduce of 8 ranks on 1 node: needs Hopper or "
        "newer on an NVSwitch, and three GPUs on the node");
  const Communicator plain = test::communicator("dgx-a100", 1);
  CHECK(refusal(plain, CollectiveKind::broadcast, Algorithm::tree) ==
        "tree cannot be run for broadcast of 8 ranks on 1 node: tree does no broadcast");
  const auto plan = nccl::plan(plain, CollectiveKind::broadcast, Bytes(8), Algorithm::tree);
  CHECK(plan.errors().front().hint == "available here: ring LL, ring LL128, ring Simple");
  CHECK(refusal(plain, CollectiveKind::alltoall, Algorithm::ring) ==
        "NCCL sends alltoall point to point: ring does not apply");
  // What the variables leave, where that is something.
  const Communicator trees =
      test::communicator("dgx-a100", 1, 0, test::environment({{"NCCL_ALGO", "Tree"}, {"NCCL_PROTO", "^LL128"}}));
  CHECK(nccl::plan(trees, reduce_all, Bytes(8), Algorithm::ring).errors().front().hint ==
        "available here: tree LL, tree Simple");
}

TEST_CASE("NCCL_NET_OVERHEAD is what a step inside a node takes at least, three times under Simple, on several nodes") {
  const auto latency = [](int nodes, Protocol p, const char* overhead, int version = 0) {
    nccl::Environment e = test::environment({{"NCCL_NET_OVERHEAD", overhead}});
    e.launch.version = version;
    return test::us(
        candidate(test::communicator("dgx-h100", nodes, 0, e), reduce_all, Bytes(8), Algorithm::ring, p).latency);
  };
  // Of the 30 hops of two boxes' ring two leave a node; of the others each takes 10 us more, and 30 us under Simple.
  for (const Protocol p : {Protocol::ll, Protocol::simple}) {
    const double of_message = p == Protocol::simple ? 30 : 10;
    const double usual =
        test::us(candidate(test::communicator("dgx-h100", 2), reduce_all, Bytes(8), Algorithm::ring, p).latency);
    CHECK(latency(2, p, "-2") == Approx(usual));
    CHECK(latency(2, p, "0") <= usual);
    CHECK(latency(2, p, "20000") - latency(2, p, "10000") == Approx(of_message * 28));
    CHECK(latency(1, p, "10000") == Approx(latency(1, p, "-2")));
  }
  CHECK(latency(2, Protocol::ll, "10000", 20708) == Approx(latency(2, Protocol::ll, "-2", 20708)));
  // It decides: where messages are dear, rings give way to trees.
  const auto taken = [&](const char* overhead) {
    return planned(test::communicator("dgx-h100", 2, 0, test::environment({{"NCCL_NET_OVERHEAD", overhead}})),
                   CollectiveKind::all_reduce, Bytes(1 << 20))
        .algorithm;
  };
  CHECK(taken("1000000") != Algorithm::ring);
}

TEST_CASE("NCCL_THREAD_THRESHOLDS says below how many bytes of a thread fewer channels are taken") {
  const auto channels = [](const char* given, Algorithm a, std::int64_t bytes) {
    const nccl::Environment e = test::environment({{"NCCL_THREAD_THRESHOLDS", given}});
    return test::planned_as(test::communicator("dgx-a100", 1, 0, e), reduce_all, Bytes(bytes), a, Protocol::simple)
        .channels;
  };
  // NCCL's own is 64 bytes for each of 512 threads: 1 MiB is worth 32 channels; of 256 it is worth 8.
  const std::int64_t size = 1 << 20;
  const int usual = channels("-2", Algorithm::ring, size);
  CHECK(channels("8 8 64 64 8 64", Algorithm::ring, size) == usual);
  CHECK(channels("8 8 64 64 8 256", Algorithm::ring, size) == 8);
  CHECK(channels("8 8 256", Algorithm::ring, size) == usual);
  CHECK(channels("8 8 256", Algorithm::tree, size) == 8);
  for (const char* wrong : {"", "8,8,64", "a", "1 2 3 4 5 6 7"}) {
    CAPTURE(wrong);
    const nccl::Setting setting{"NCCL_THREAD_THRESHOLDS", wrong, {}};
    CHECK_FALSE(nccl::read_environment(std::vector{setting}).ok());
  }
}

TEST_CASE("NCCL_P2P_LL_THRESHOLD says up to which message sends and receives take LL") {
  const auto protocol = [](const char* limit, std::int64_t bytes) {
    const nccl::Environment e = test::environment({{"NCCL_P2P_LL_THRESHOLD", limit}});
    return planned(test::communicator("dgx-h100", 1, 0, e), CollectiveKind::sendrecv, Bytes(bytes)).protocol;
  };
  CHECK(protocol("16384", 16384) == Protocol::ll);
  CHECK(protocol("16384", 16385) == Protocol::simple);
  CHECK(protocol("65536", 65536) == Protocol::ll);
  CHECK(protocol("0", 8) == Protocol::simple);
}
