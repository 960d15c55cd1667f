// Links of PCIe and between sockets that are described slower, or shared by more, than NCCL's search books: what it
// chooses stays, what a run takes does not, and the simulation, which has the links, takes the same.
#include <catch2/catch.hpp>

#include <cmath>

#include "machines.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Communicator;
using nccl::Protocol;

namespace {

// l40s-pcie: two cards a switch, two switches a socket, one NIC on socket 0.
constexpr const char* uplinks = "node.links.1.bandwidth=";
constexpr const char* sockets = "node.links.2.bandwidth=";

struct Slowed {
  Fabric fabric;
  Communicator c;
};
Slowed slowed(const char* machine, int nodes, const std::vector<std::string>& sets) {
  const Fabric fabric = test::built(machine, nodes, sets);
  return {fabric, *nccl::connect(fabric, Group::strided(Rank(0), 1, fabric.rank_count()))};
}

Slowed boxes(int nodes, const std::vector<std::string>& sets) { return slowed("l40s-pcie", nodes, sets); }

double data_of(const Communicator& c, CollectiveKind kind, std::int64_t bytes) {
  return nccl::run(c, kind, Bytes(bytes), *nccl::plan(c, kind, Bytes(bytes))).data.count();
}

constexpr std::int64_t mebibyte = 1 << 20;

}  // namespace

TEST_CASE("an alltoall takes what passes between the sockets, by the described link") {
  // Each of four cards sends four parts to the other socket: 16 of 32 MiB over 0.8 of 2 GB/s. The closed form had 29.4
  // ms whatever the link, by 0.8 of the 10 GB/s that NCCL counts between sockets.
  const Slowed slow = boxes(1, {std::string(sockets) + "2GB/s"});
  CHECK(data_of(slow.c, CollectiveKind::alltoall, 256 * mebibyte) == Approx(16 * 32.0 * mebibyte / (0.8 * 2e9)));
  const Slowed wide = boxes(1, {});
  CHECK(data_of(wide.c, CollectiveKind::alltoall, 256 * mebibyte) == Approx(7 * 32.0 * mebibyte / (0.8 * 10e9)));
}

TEST_CASE("rings, chains and trees take what passes between the sockets, by the described link") {
  const Slowed slow = boxes(1, {std::string(sockets) + "2GB/s"});
  const auto data = [&](CollectiveKind kind, Algorithm algorithm) {
    return test::ran(slow.c, kind, 256 * mebibyte, algorithm, Protocol::simple).data.count();
  };
  // Around the ring each link between two cards has 7/8 of what an all_gather moves, the sockets' either way.
  CHECK(data(CollectiveKind::all_gather, Algorithm::ring) == Approx(7 * 32.0 * mebibyte / (0.8 * 2e9)).epsilon(1e-3));
  CHECK(data(CollectiveKind::broadcast, Algorithm::ring) == Approx(256.0 * mebibyte / (0.8 * 2e9)));
  // Up once and down once, each one way.
  CHECK(data(CollectiveKind::all_reduce, Algorithm::tree) == Approx(256.0 * mebibyte / (0.8 * 2e9)));
}

TEST_CASE("cards of one switch share its uplink for what they send to others, on their node or not") {
  // Of 16 ranks' alltoall each card sends 14 parts of 4 MiB out of its switch, two cards 28 over 0.8 of 8 GB/s.
  const Slowed slow = boxes(2, {std::string(uplinks) + "8GB/s", "network.link.bandwidth=400Gb/s"});
  CHECK(data_of(slow.c, CollectiveKind::alltoall, 64 * mebibyte) == Approx(28 * 4.0 * mebibyte / (0.8 * 8e9)));
  // Of a scatter the root alone sends, 15 parts less its neighbour's.
  CHECK(data_of(slow.c, CollectiveKind::scatter, 64 * mebibyte) == Approx(14 * 4.0 * mebibyte / (0.8 * 8e9)));
}

TEST_CASE("chains of CollNet take what passes between the sockets") {
  // Each way between the sockets a chain's own hop, and its head's message to or from the NIC, which is on the other
  // one: simulated 84.3 ms, where the closed form had 17.
  const Fabric fabric = test::built("l40s-pcie", 4, {std::string(sockets) + "2GB/s", "network.plugin.collnet=true"});
  const Communicator c = *nccl::connect(fabric, Group::strided(Rank(0), 1, fabric.rank_count()),
                                        test::environment({{"NCCL_COLLNET_ENABLE", "1"}}));
  const double data =
      test::ran(c, CollectiveKind::all_reduce, 64 * mebibyte, Algorithm::collnet_chain, Protocol::simple).data.count();
  CHECK(data == Approx(2 * 64.0 * mebibyte / (0.8 * 2e9)).epsilon(0.01));
}

TEST_CASE("links that are too slow for NCCL's search are named by the slowest that it goes by") {
  const Fabric fabric = test::built("l40s-pcie", 1, {std::string(uplinks) + "4GB/s", std::string(sockets) + "1GB/s"});
  const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, 8));
  REQUIRE_FALSE(c.ok());
  CHECK(c.errors().front().message.find("(pcie - cpu: 4 GB/s)") != std::string::npos);
}

TEST_CASE("what NCCL counts and chooses does not know the link between sockets") {
  for (const int nodes : {1, 2}) {
    const Slowed slow = boxes(nodes, {std::string(sockets) + "1GB/s"}), wide = boxes(nodes, {});
    CHECK(slow.c.ring.inside == wide.c.ring.inside);
    for (const std::int64_t bytes : {std::int64_t{1} << 10, mebibyte, 256 * mebibyte}) {
      const auto a = nccl::tuning_table(slow.c, CollectiveKind::all_reduce, Bytes(bytes));
      const auto b = nccl::tuning_table(wide.c, CollectiveKind::all_reduce, Bytes(bytes));
      REQUIRE(a.size() == b.size());
      CHECK_FALSE(a.empty());
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].time == b[i].time);
      // A slower link is none the quicker.
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                        CollectiveKind::broadcast, CollectiveKind::alltoall, CollectiveKind::sendrecv})
        CHECK(test::ran(slow.c, kind, bytes).time() >= test::ran(wide.c, kind, bytes).time());
    }
  }
}

TEST_CASE("over slow sockets and uplinks closed form and simulation are as near as over wide ones") {
  double most = 1;
  const auto compare = [&](const Slowed& on, CollectiveKind kind, std::int64_t bytes, const nccl::Plan& plan) {
    const double closed = nccl::run(on.c, kind, Bytes(bytes), plan).time().count();
    const double simulated = test::simulated(on.fabric, on.c, kind, Bytes(bytes), plan).count();
    INFO(to_string(kind) << " " << to_string(plan.algorithm) << " " << to_string(plan.protocol) << " of " << bytes
                         << " B: closed " << closed << ", simulated " << simulated);
    // As boxes with PCIe alone are in docs/nccl.md, small trees furthest.
    CHECK(simulated / closed == Approx(1).epsilon(0.26));
    if (plan.algorithm == Algorithm::ring) most = std::max({most, simulated / closed, closed / simulated});
  };
  const std::vector<std::vector<std::string>> links{{std::string(sockets) + "2GB/s"},
                                                    {std::string(sockets) + "5GB/s"},
                                                    {std::string(uplinks) + "8GB/s"},
                                                    {std::string(uplinks) + "8GB/s", std::string(sockets) + "5GB/s"}};
  for (const int nodes : {1, 2, 3})
    for (const std::vector<std::string>& sets : links) {
      const Slowed on = boxes(nodes, sets);
      for (const std::int64_t bytes : {mebibyte / 4, 4 * mebibyte, 64 * mebibyte}) {
        INFO(nodes << " nodes, " << sets.front());
        for (const CollectiveKind kind :
             {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::scatter, CollectiveKind::gather})
          compare(on, kind, bytes, *nccl::plan(on.c, kind, Bytes(bytes)));
        for (const Protocol p : {Protocol::ll, Protocol::simple}) {
          for (const CollectiveKind kind :
               {CollectiveKind::all_gather, CollectiveKind::all_reduce, CollectiveKind::broadcast})
            compare(on, kind, bytes, test::planned_as(on.c, kind, Bytes(bytes), Algorithm::ring, p));
          compare(on, CollectiveKind::all_reduce, bytes,
                  test::planned_as(on.c, CollectiveKind::all_reduce, Bytes(bytes), Algorithm::tree, p));
        }
      }
    }
  CHECK(most < 1.19);
}

TEST_CASE("without peer access GPUs write to the host's memory and read from it, by both methods") {
  const nccl::Environment off = test::environment({{"NCCL_P2P_DISABLE", "1"}});
  const auto of = [&](const char* machine, const std::string& set, CollectiveKind kind, double expected) {
    const Fabric fabric = test::built(machine, 1, {set});
    const Communicator c = *nccl::connect(fabric, Group::strided(Rank(0), 1, 8), off);
    const nccl::Plan plan = *nccl::plan(c, kind, Bytes(256 * mebibyte));
    const nccl::Run closed = nccl::run(c, kind, Bytes(256 * mebibyte), plan);
    INFO(machine << " " << to_string(kind) << " with " << set);
    CHECK(closed.data.count() == Approx(expected).epsilon(0.01));
    const double simulated = test::simulated(fabric, c, kind, Bytes(256 * mebibyte), plan).count();
    CHECK(simulated == Approx(closed.time().count()).epsilon(0.02));
  };
  // A ring has 7/8 of an all_gather on the link between sockets, whatever NVLinks there are; it was simulated over
  // these. An alltoall has 16 of 64 parts there.
  const double part = 32.0 * mebibyte, of_socket = 0.8 * 2e9, of_uplink = 0.8 * 8e9;
  of("dgx-a100", "node.links.4.bandwidth=2GB/s", CollectiveKind::all_gather, 7 * part / of_socket);
  of("dgx-a100", "node.links.4.bandwidth=2GB/s", CollectiveKind::alltoall, 16 * part / of_socket);
  of("dgx1-v100", "node.links.5.bandwidth=2GB/s", CollectiveKind::alltoall, 16 * part / of_socket);
  // Both cards of a switch pass its uplink with all seven parts, those for each other, too.
  of("l40s-pcie", std::string(uplinks) + "8GB/s", CollectiveKind::alltoall, 14 * part / of_uplink);
  // In a ring it has, each way, the hop between them and that to or from the next switch.
  of("l40s-pcie", std::string(uplinks) + "8GB/s", CollectiveKind::all_gather, 2 * 7 * part / of_uplink);
}
