// Sends and receives between pairs of ranks: their channels, and what rate these reach.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <variant>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/program.hpp"
#include "machines.hpp"
#include "nccl/run_constants.hpp"

using namespace collcast;
using nccl::Communicator;
using nccl::Protocol;
using test::ran;

TEST_CASE("a pair of ranks takes more channels once a channel's part is above 16 MiB") {
  // Public runs of 8 H100: 422 us at 32 MiB, 820 at 64, 826 at 128, 896 at 256: 4, 4, 8, 16 channels of about 20 GB/s.
  const Communicator c = test::communicator("dgx-h100", 1);
  const auto channels = [&](std::int64_t mib) {
    return nccl::plan(c, CollectiveKind::sendrecv, Bytes(mib << 20)).value().channels;
  };
  CHECK(channels(32) == 4);
  CHECK(channels(64) == 4);
  CHECK(channels(65) == 8);
  CHECK(channels(128) == 8);
  CHECK(channels(256) == 16);
  CHECK(channels(1024) == 32);
  const double rate = nccl::fitted::p2p_channel[2] * 1e9;
  CHECK(ran(c, CollectiveKind::sendrecv, 32 << 20).data.count() == Approx((32 << 20) / (4 * rate)));
}

TEST_CASE("a channel to a peer has 64 KiB at least") {
  const Communicator c = test::communicator("dgx-h100", 1, 2);
  const auto channels = [&](std::int64_t bytes) {
    return nccl::plan(c, CollectiveKind::sendrecv, Bytes(bytes)).value().channels;
  };
  CHECK(channels(1) == 1);
  CHECK(channels(64 << 10) == 1);
  CHECK(channels((64 << 10) + 1) == 2);
  CHECK(channels(512 << 10) == 8);
  CHECK(channels(16 << 20) == 16);  // as many as leave one of 32 for each of two
}

TEST_CASE("the parts of a pair's channels follow NCCL's version") {
  const auto planned = [](int version, std::int64_t bytes, int nodes = 1) {
    nccl::Environment environment;
    environment.launch.version = version;
    environment.pair_ll_between = true;
    const Communicator c = test::communicator("dgx-h100", nodes, 2 / nodes, environment);
    return nccl::plan(c, CollectiveKind::sendrecv, Bytes(bytes)).value();
  };
  constexpr std::int64_t kib = 1024, mib = 1 << 20;
  // Until 2.7 parts of 2 MiB each: 8 x A100 of one host take 125 us for 1.5 MiB, 172 for 3, 210 for 24.
  CHECK(planned(20708, 2 * mib).channels == 1);
  CHECK(planned(20708, 2 * mib + 1).channels == 2);
  CHECK(planned(20708, 24 * mib).channels == 12);
  CHECK(planned(20804, 2 * mib).channels == 4);
  CHECK(planned(21803, 2 * mib).channels == 16);
  // LL for 16 KiB of all 32 channels that a pair may have, in parts of 8 KiB; before 2.20 and since 2.29 of one.
  for (const int version : {22000, 22304, 22809}) {
    CHECK(planned(version, 512 * kib).protocol == Protocol::ll);
    CHECK(planned(version, 512 * kib + 1).protocol == Protocol::simple);
    CHECK(planned(version, 64 * kib).channels == 8);
    CHECK(planned(version, 32 * kib, 2).protocol == Protocol::ll);
    CHECK(planned(version, 32 * kib, 2).channels == 1);
    CHECK(planned(version, 32 * kib + 1, 2).protocol == Protocol::simple);
  }
  for (const int version : {0, 21803, 22902}) {
    CHECK(planned(version, 16 * kib).protocol == Protocol::ll);
    CHECK(planned(version, 16 * kib + 1).protocol == Protocol::simple);
  }
}

TEST_CASE("sends and receives between nodes take Simple, however small, unless connections have buffers of LL") {
  nccl::Environment with_buffers, large;
  with_buffers.pair_ll_between = true;
  large.pair_ll_limit = Bytes(1'000'000'000);
  for (const CollectiveKind kind :
       {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::gather, CollectiveKind::scatter})
    for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{4096}}) {
      INFO(to_string(kind) << " of " << bytes << " B");
      const auto shown = [&](int nodes, int gpus, const nccl::Environment& e = {}) {
        return protocols_text(nccl::plan(test::communicator("dgx-h100", nodes, gpus, e), kind, Bytes(bytes)).value());
      };
      CHECK(shown(1, 8) == "LL");
      CHECK(shown(2, 8) == "LL+Simple");
      CHECK(shown(2, 1) == "Simple");
      CHECK(shown(2, 8, with_buffers) == "LL");
      CHECK(shown(2, 1, with_buffers) == "LL");
      CHECK(shown(2, 1, large) == "Simple");
    }
  // However large the limit is: what is between nodes takes as long as without it.
  const auto data = [](const nccl::Environment& e, int gpus) {
    return ran(test::communicator("dgx-h100", 2, gpus, e), CollectiveKind::alltoall, 64 << 20).data.count();
  };
  CHECK(data(large, 8) == data({}, 8));
  CHECK(data(large, 1) == data({}, 1));
}

TEST_CASE("under LL half of what links and NICs carry are flags, and a proxy looks through the lines of a pair") {
  nccl::Environment ll;
  ll.pair_ll_limit = Bytes(1'000'000'000);
  ll.pair_ll_between = true;
  constexpr std::int64_t mib = 1 << 20;
  const auto times = [&](const char* machine, int nodes, int gpus, CollectiveKind kind) {
    const auto data = [&](const nccl::Environment& e) {
      return ran(test::communicator(machine, nodes, gpus, e), kind, 64 * mib).data.count();
    };
    return data(ll) / data({});
  };
  // NICs move 0.45 of what is payload under Simple; one of two channels no more than a proxy's 2 GB/s.
  CHECK(times("dgx-h100", 2, 8, CollectiveKind::alltoall) == Approx(1 / nccl::fitted::ll_nic_payload));
  const double of_pair = 2 * nccl::fitted::ll_network_channel, simple = nccl::fitted::p2p_network_channel * 1.7;
  CHECK(times("dgx-h100", 2, 1, CollectiveKind::sendrecv) == Approx(simple / of_pair));
  // PCIe carries twice the bytes.
  CHECK(times("l40s-pcie", 1, 8, CollectiveKind::alltoall) == Approx(2).epsilon(0.01));
  for (const char* machine : {"dgx-a100", "dgx-h100", "dgx1-v100", "l40s-pcie"})
    for (const int nodes : {1, 2})
      for (const CollectiveKind kind :
           {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::gather, CollectiveKind::scatter}) {
        INFO(machine << ", " << nodes << " nodes, " << to_string(kind));
        CHECK(times(machine, nodes, 0, kind) > 1);
        CHECK(times(machine, nodes, 2, kind) > 1);
      }
}

TEST_CASE("among several peers sends and receives reach less of NVLink until channels are shared") {
  const Communicator c = test::communicator("dgx-h100", 1);
  const double link = 450e9 * nccl::fitted::nvlink_efficiency[2];
  const auto reached = [&](CollectiveKind kind, std::int64_t size, int peers) {
    return static_cast<double>(size) / (kind == CollectiveKind::sendrecv ? 1 : 8) * peers /
           ran(c, kind, size).data.count() / link;
  };
  constexpr std::int64_t mib = 1 << 20;
  CHECK(reached(CollectiveKind::sendrecv, 4096 * mib, 1) == Approx(1));
  // Four channels to each of eight ranks are all 32; from 16 MiB a channel on there are more, and peers share them.
  CHECK(reached(CollectiveKind::alltoall, 512 * mib, 7) == Approx(nccl::fitted::p2p_apart));
  CHECK(reached(CollectiveKind::alltoall, 1024 * mib, 7) == Approx(nccl::fitted::p2p_shared));
}

TEST_CASE("a pair of ranks on different nodes has two channels' rate, among many ranks one") {
  const std::int64_t size = std::int64_t{1} << 32;
  const double channel = nccl::fitted::p2p_network_channel * 1e9;
  const double two = channel * (1 + nccl::fitted::p2p_network_further);
  CHECK(ran(test::communicator("dgx-h100", 2, 1), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / two));
  // Measured among 10, 40 and 80 H100: 24.9, 26.3 and 15.2 GB/s.
  CHECK(ran(test::communicator("dgx-h100", 10, 1), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / two));
  CHECK(ran(test::communicator("dgx-h100", 10, 4), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / two));
  CHECK(ran(test::communicator("dgx-h100", 10), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / channel));
}

namespace {

struct Exchanged {
  nccl::Run closed;
  double simulated;  ///< seconds
};
Exchanged exchanged(const Fabric& fabric, const Group& group, CollectiveKind kind, std::int64_t bytes) {
  const auto c = nccl::connect(fabric, group);
  REQUIRE(c.ok());
  const auto plan = nccl::plan(*c, kind, Bytes(bytes));
  REQUIRE(plan.ok());
  const auto program = nccl::program(fabric, group, *c, kind, Bytes(bytes), *plan);
  REQUIRE(program.ok());
  return {nccl::run(*c, kind, Bytes(bytes), *plan), simulate(*program)->count()};
}

/// These GPUs of each of so many nodes.
Group gpus_of_nodes(const Fabric& fabric, int nodes, const std::vector<int>& gpus) {
  std::vector<Rank> ranks;
  for (int node = 0; node < nodes; ++node)
    for (const int gpu : gpus) ranks.emplace_back(static_cast<std::uint32_t>(node * fabric.ranks_per_node() + gpu));
  return Group::listed(std::move(ranks));
}

constexpr std::array machines_of_pairs{"dgx-a100",    "azure-ndv4",  "hgx-a800",  "oci-a100", "polaris",
                                       "aws-p4d",     "abci-a100",   "abci-v100", "dgx-h100", "aws-p5",
                                       "gcp-a3-mega", "gcp-a3-high", "gh200",     "dgx2-v100"};

}  // namespace

TEST_CASE("pairs between nodes take their closed form's time, whichever GPUs of the nodes have them") {
  for (const char* machine : machines_of_pairs) {
    const Fabric fabric = test::built(machine, 4);
    for (const std::vector<int>& gpus : std::vector<std::vector<int>>{{0}, {1}, {0, 1}, {0, 2}, {0, 1, 2}})
      for (const int nodes : {2, 3, 4})
        for (const CollectiveKind kind :
             {CollectiveKind::alltoall, CollectiveKind::scatter, CollectiveKind::gather, CollectiveKind::sendrecv})
          for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 20, std::int64_t{1} << 30}) {
            if (gpus.back() >= fabric.ranks_per_node()) continue;
            INFO(machine << ", GPUs " << test::words(gpus) << "of " << nodes << " nodes, " << to_string(kind) << " of "
                         << bytes << " B");
            const Exchanged one = exchanged(fabric, gpus_of_nodes(fabric, nodes, gpus), kind, bytes);
            CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(1e-3));
          }
  }
}

TEST_CASE("pairs of PCIe boxes take their closed form's time on every number of ranks, near or on further nodes") {
  // GPUs beside each other were simulated at their slots' rate once a group was on two nodes: a gather of nine ranks
  // in 0.36 of its closed form.
  for (const char* machine : {"l40s-pcie", "rtxpro6000-pcie", "rtx4090-pcie", "pcie-a100"}) {
    const Fabric fabric = test::built(machine, 3);
    for (int ranks = 2; ranks <= 17; ++ranks)
      for (const CollectiveKind kind :
           {CollectiveKind::alltoall, CollectiveKind::scatter, CollectiveKind::gather, CollectiveKind::sendrecv})
        for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{64} << 20}) {
          INFO(machine << ", " << ranks << " ranks, " << to_string(kind) << " of " << bytes << " B");
          const Exchanged one = exchanged(fabric, Group::strided(Rank(0), 1, ranks), kind, bytes);
          CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(0.01));
        }
  }
}

TEST_CASE("over PCIe a GPU's peers and NICs share its slot, whichever GPUs of a node there are") {
  // The root's slot has three parts, which the closed form had beside each other: gather of 256 MiB 31 % above.
  const std::int64_t size = std::int64_t{256} << 20;
  for (const std::vector<int>& gpus : std::vector<std::vector<int>>{{0, 2}, {0, 4}, {1, 3, 5}, {0, 2, 4, 6}, {2, 6}}) {
    const Fabric fabric = test::built("rtxpro6000-pcie", 2);
    const Group group = gpus_of_nodes(fabric, 2, gpus);
    const double slot = 0.8 * 63e9, part = static_cast<double>(size) / group.size();
    for (const CollectiveKind kind : {CollectiveKind::alltoall, CollectiveKind::scatter, CollectiveKind::gather}) {
      const Exchanged one = exchanged(fabric, group, kind, size);
      INFO(test::words(gpus) << "of two nodes, " << to_string(kind));
      CHECK(one.closed.data.count() > part * (group.size() - 1) / slot * 0.999);
      if (kind != CollectiveKind::alltoall) CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(0.02));
    }
  }
}

TEST_CASE("where GPUs have unlike numbers of NICs, pairs take what the busiest NIC does, by both methods") {
  // GPUs 0 and 2 of Polaris are as far from one NIC as from the other, 1 and 3 have one each. Pairs of 1 and 2 were
  // simulated with both on one NIC.
  const Fabric fabric = test::built("polaris", 3);
  for (unsigned chosen = 1; chosen < 16; ++chosen) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 4; ++gpu)
      if ((chosen >> gpu & 1U) != 0) gpus.push_back(gpu);
    for (const int nodes : {2, 3})
      for (const CollectiveKind kind :
           {CollectiveKind::alltoall, CollectiveKind::scatter, CollectiveKind::gather, CollectiveKind::sendrecv})
        for (const std::int64_t mib : {1, 256}) {
          INFO(test::words(gpus) << "of " << nodes << " nodes, " << to_string(kind) << " of " << mib << " MiB");
          const Exchanged one = exchanged(fabric, gpus_of_nodes(fabric, nodes, gpus), kind, mib << 20);
          CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(0.05));
        }
  }
}

TEST_CASE("a GPU's pairs begin at the NIC of its number, by which two may meet at one of several") {
  // 0 and 2 have two NICs as near; their numbers' bits in reverse, below two, are 0 and 0; those of 1 and 2 are apart.
  const Fabric fabric = test::built("polaris", 2);
  const auto data = [&](const std::vector<int>& gpus) {
    return exchanged(fabric, gpus_of_nodes(fabric, 2, gpus), CollectiveKind::alltoall, std::int64_t{64} << 20)
        .closed.data.count();
  };
  CHECK(data({0, 2}) == Approx(2 * data({1, 2})));
  CHECK(data({1, 3}) == Approx(data({1, 2})));
}

TEST_CASE("a GPU whose own NIC is gone sends by all that it reaches over NVLink in turn, by both methods") {
  // Over four nodes 128 MiB were 4.59 ms simulated, as one NIC had all of two GPUs, and 3.07 by closed form.
  for (const char* machine : {"dgx-h100", "dgx-b200"})
    for (const int nic : {0, 3, 7})
      for (const int nodes : {2, 4}) {
        const Fabric fabric = test::without_nic(machine, nic, nodes);
        const Group all = Group::strided(Rank(0), 1, 8 * nodes);
        CHECK(nccl::connect(fabric, all)->pairs.nics == Approx(7));
        for (const CollectiveKind kind : {CollectiveKind::alltoall, CollectiveKind::scatter})
          for (const std::int64_t mib : {1, 128, 1024}) {
            // A root that has none sends all of it over NVLink, of which the closed form has a seventh by a NIC of its
            // own: up to 13 % less.
            const bool root_has_none = nic == 0 && kind == CollectiveKind::scatter;
            INFO(machine << " without NIC " << nic << ", " << nodes << " nodes, " << to_string(kind) << " of " << mib
                         << " MiB");
            const Exchanged one = exchanged(fabric, all, kind, mib << 20);
            CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(root_has_none ? 0.13 : 0.05));
          }
      }
}

TEST_CASE("what GPUs of a PCIe box send each other does not depend on the NICs") {
  for (const char* machine : {"l40s-pcie", "rtxpro6000-pcie", "rtx4090-pcie", "pcie-a100"})
    for (const int per_node : {2, 4, 8}) {
      INFO(machine << ", " << per_node << " GPUs");
      const Communicator alone = test::communicator(machine, 1, per_node);
      for (const char* rate : {"10Gb/s", "100Gb/s", "400Gb/s"}) {
        const Fabric fabric = test::built(machine, 2, {std::string("network.link.bandwidth=") + rate});
        const Communicator c = *nccl::connect(fabric, test::first_of_nodes(fabric, {per_node, per_node}));
        CHECK(c.gpu.pair_rates.next == alone.gpu.pair_rates.next);
      }
    }
}

TEST_CASE("an alltoall of two ranks is a sendrecv of half of it, and a gather a scatter the other way") {
  for (const char* machine : machines_of_pairs) {
    const Fabric fabric = test::built(machine, 2);
    const Group group = gpus_of_nodes(fabric, 2, {0});
    for (std::int64_t bytes = 1 << 12; bytes <= std::int64_t{1} << 32; bytes *= 16) {
      INFO(machine << ", " << bytes << " B");
      const auto time = [&](CollectiveKind kind, std::int64_t of) {
        return exchanged(fabric, group, kind, of).closed.time().count();
      };
      const double pair = time(CollectiveKind::sendrecv, bytes / 2);
      CHECK(time(CollectiveKind::alltoall, bytes) == Approx(pair));
      CHECK(time(CollectiveKind::scatter, bytes) == Approx(pair));
      CHECK(time(CollectiveKind::gather, bytes) == Approx(pair));
    }
  }
}

TEST_CASE("one GPU of a switch with two NICs sends by both, two by one each") {
  constexpr std::int64_t size = std::int64_t{1} << 30;
  const Fabric fabric = test::built("dgx-a100", 3);
  const auto data = [&](int nodes, const std::vector<int>& gpus) {
    return exchanged(fabric, gpus_of_nodes(fabric, nodes, gpus), CollectiveKind::alltoall, size).closed;
  };
  // To one peer two channels, 15.2 GB/s and 0.7 of that; to two peers 0.88 of the GPU's 31.5 GB/s, not of 2 x 25.
  CHECK(data(2, {0}).data.count() == Approx(size / 2.0 / (15.2e9 * 1.7)));
  CHECK(data(2, {0}).bound == "channels");
  CHECK(data(3, {0}).data.count() == Approx(size * 2 / 3.0 / (0.88 * 31.5e9)).epsilon(1e-3));
  CHECK(data(3, {0}).bound == "PCIe to the NICs");
  // Two GPUs, each two parts of a quarter to the other node by its own NIC.
  CHECK(data(2, {0, 1}).data.count() == Approx(size / 2.0 / (0.88 * 25e9)));
  CHECK(data(2, {0, 1}).bound == "NIC");
}

TEST_CASE("over unlike nodes pairs take what the NIC that has most of them does, by both methods") {
  for (const char* machine : {"dgx-h100", "dgx-a100", "aws-p4d"}) {
    const Fabric fabric = test::built(machine, 4);
    for (const std::vector<int>& gpus :
         std::vector<std::vector<int>>{{8, 1}, {1, 8}, {2, 1}, {8, 4}, {8, 1, 1, 1}, {4, 8, 4, 6}}) {
      const Group group = test::first_of_nodes(fabric, gpus);
      for (const CollectiveKind kind :
           {CollectiveKind::alltoall, CollectiveKind::scatter, CollectiveKind::gather, CollectiveKind::sendrecv})
        for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 20, std::int64_t{1} << 28}) {
          INFO(machine << ", " << test::words(gpus) << "GPUs, " << to_string(kind) << " of " << bytes << " B");
          const Exchanged one = exchanged(fabric, group, kind, bytes);
          CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(0.02));
        }
    }
  }
  // Eight ninth parts by the lone rank's NIC of 0.88 x 50 GB/s; one by a pair's two channels.
  const Fabric fabric = test::built("dgx-h100", 2);
  const Group group = test::first_of_nodes(fabric, {8, 1});
  const double part = (256 << 20) / 9.0, nic = 0.88 * 50e9;
  CHECK(exchanged(fabric, group, CollectiveKind::alltoall, 256 << 20).closed.data.count() == Approx(8 * part / nic));
  const nccl::Run gathered = exchanged(fabric, group, CollectiveKind::gather, 256 << 20).closed;
  CHECK(gathered.data.count() == Approx(part / (15.2e9 * 1.7)));
  CHECK(gathered.bound == "channels");
  // As many on either node, but on other rails: nobody relays, and the root sends by its own NIC.
  const Group apart = Group::listed({Rank(0), Rank(1), Rank(10), Rank(11)});
  const Exchanged scattered = exchanged(fabric, apart, CollectiveKind::scatter, 256 << 20);
  CHECK(scattered.closed.data.count() == Approx(2 * (256 << 20) / 4.0 / nic));
  CHECK(scattered.simulated == Approx(scattered.closed.time().count()).epsilon(1e-3));
}

namespace {

/// Nodes of GPUs on a PCIe switch each, and NICs of 100 Gb/s on these switches.
Fabric with_nics(int gpus, const std::vector<int>& switch_of_nic, int nodes) {
  TopologySpec spec = test::shipped("dgx-h100");
  for (DeviceGroup& group : spec.devices) {
    if (group.name == "gpu" || group.name == "pcie") group.count = gpus;
    if (group.name == "nic") group.count = static_cast<int>(switch_of_nic.size());
  }
  LinkGroup& link = *std::ranges::find(spec.links, "nic", &LinkGroup::from);
  link.wiring = Wiring::pairs;
  for (std::size_t nic = 0; nic < switch_of_nic.size(); ++nic)
    link.pairs.emplace_back(static_cast<int>(nic), switch_of_nic[nic]);
  std::get<LeafSpineNetwork>(spec.network).bandwidth = Bandwidth(12.5e9);
  Result<Fabric> fabric = Fabric::build(spec, nodes);
  INFO(to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  return *fabric;
}

}  // namespace

TEST_CASE("whichever NICs a node's GPUs share, pairs of like and unlike nodes take their closed form's time") {
  for (const std::vector<int>& nics : std::vector<std::vector<int>>{{0, 0, 1}, {0, 0, 0, 0, 0}, {3, 2, 3, 1}, {1, 2}}) {
    const Fabric fabric = with_nics(4, nics, 3);
    for (const std::vector<int>& gpus : std::vector<std::vector<int>>{{4, 4}, {4, 1}, {1, 3}, {2, 4, 3}})
      for (const CollectiveKind kind :
           {CollectiveKind::alltoall, CollectiveKind::gather, CollectiveKind::sendrecv, CollectiveKind::scatter}) {
        INFO(test::words(nics) << "are the NICs' switches, " << test::words(gpus) << "GPUs, " << to_string(kind));
        const Exchanged one = exchanged(fabric, test::first_of_nodes(fabric, gpus), kind, std::int64_t{256} << 20);
        CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(0.02));
      }
  }
}

TEST_CASE("a further NIC beside another GPU makes a sendrecv no slower") {
  // Whoever sends to GPU 0 does so by the two NICs beside it, however many GPU 1 has. It went by as few as any GPU has.
  for (const std::vector<int>& nics : std::vector<std::vector<int>>{{0, 0}, {0, 0, 1}}) {
    const Fabric fabric = with_nics(2, nics, 2);
    const Group all = Group::strided(Rank(0), 1, 4);
    const nccl::Run run = exchanged(fabric, all, CollectiveKind::sendrecv, 256 << 20).closed;
    CHECK(nccl::connect(fabric, all)->pairs.nics_of_gpu == 2);
    CHECK(run.data.count() == Approx((256 << 20) / (2 * 0.975 * 12.5e9)));
  }
}

TEST_CASE("a lone GPU on a switch with two NICs goes by both, whatever GPUs other nodes have") {
  // Eight ninth parts each way by its slot of 31.5 GB/s, of which the two NICs carry 0.88.
  const Fabric fabric = test::built("dgx-a100", 2);
  const Exchanged one = exchanged(fabric, test::first_of_nodes(fabric, {8, 1}), CollectiveKind::alltoall, 256 << 20);
  CHECK(one.closed.data.count() == Approx(8.0 / 9 * (256 << 20) / (0.88 * 31.5e9)).epsilon(1e-3));
  CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(0.01));
}

TEST_CASE("few channels of pairs hold an alltoall over several nodes as on one") {
  // Over two nodes of 8 H100 a GPU has 15 parts of 4 MiB for others, which one channel moves at 21 GB/s: 3.00 ms.
  const Communicator c = test::communicator("dgx-h100", 2, 0, test::environment({{"NCCL_MAX_P2P_NCHANNELS", "1"}}));
  const Bytes size(64 << 20);
  const nccl::Run run = test::ran(c, CollectiveKind::alltoall, size.value());
  CHECK(run.bound == "channels");
  CHECK(run.data.count() == Approx(15.0 * (4 << 20) / 21e9));
  const nccl::Plan plan = *nccl::plan(c, CollectiveKind::alltoall, size);
  CHECK(test::simulated(test::built("dgx-h100", 2), c, CollectiveKind::alltoall, size, plan).count() ==
        Approx(run.time().count()).epsilon(0.01));
}

TEST_CASE("pairs of a sendrecv whose group is out of order take what the NIC that most of them pass does") {
  const auto data = [](const Fabric& fabric, std::vector<Rank> ranks) {
    return exchanged(fabric, Group::listed(std::move(ranks)), CollectiveKind::sendrecv, 256 << 20).closed.data.count();
  };
  // Of 0, 8, 1, 9 each card sends to the other node: two messages over 0.88 of 100 Gb/s, in order one.
  const Fabric boxes = test::built("l40s-pcie", 2);
  const double message = (256 << 20) / (0.88 * 12.5e9);
  CHECK(data(boxes, {Rank(0), Rank(8), Rank(1), Rank(9)}) == Approx(2 * message));
  CHECK(data(boxes, {Rank(0), Rank(1), Rank(8), Rank(9)}) == Approx(message));
  // Of one box all four pairs of 0, 4, 1, 5 pass the sockets, two each way over 0.8 of 2 GB/s, in order one.
  const Fabric slow = test::built("l40s-pcie", 1, {"node.links.2.bandwidth=2GB/s"});
  const double crossing = (256 << 20) / (0.8 * 2e9);
  CHECK(data(slow, {Rank(0), Rank(4), Rank(1), Rank(5)}) == Approx(2 * crossing));
  CHECK(data(slow, {Rank(0), Rank(1), Rank(4), Rank(5)}) == Approx(crossing));
  // 0 to 3, 1 and 2 have two NVLinks, one, and one; 1 to 3 and 2 to 3 one and two.
  const Fabric dgx1 = test::built("dgx1-v100", 1);
  CHECK(data(dgx1, {Rank(0), Rank(3), Rank(2), Rank(1)}) == Approx(2 * data(dgx1, {Rank(0), Rank(3)})));
}

TEST_CASE("sends and receives of groups out of order take their simulation's time") {
  const std::vector<std::vector<int>> orders{{0, 8, 1, 9}, {0, 4, 8, 12, 1, 5}, {9, 0, 3, 8, 1, 12}, {4, 0, 8, 12}};
  for (const char* machine : {"l40s-pcie", "pcie-a100", "rtxpro6000-pcie", "dgx1-v100", "dgx-a100", "dgx-h100"}) {
    const Fabric fabric = test::built(machine, 2);
    for (const std::vector<int>& order : orders)
      for (const CollectiveKind kind :
           {CollectiveKind::alltoall, CollectiveKind::sendrecv, CollectiveKind::scatter, CollectiveKind::gather}) {
        std::vector<Rank> ranks;
        for (const int rank : order) ranks.emplace_back(static_cast<std::uint32_t>(rank));
        INFO(machine << ", " << test::words(order) << to_string(kind));
        const Exchanged one = exchanged(fabric, Group::listed(std::move(ranks)), kind, 64 << 20);
        CHECK(one.simulated == Approx(one.closed.time().count()).epsilon(0.05));
      }
  }
}

TEST_CASE("what a root of a mesh sends by another rail goes to it over NVLinks of the group's GPUs alone") {
  // GPUs 1 and 3 of each DGX-1 are joined by one NVLink of 25 GB/s, of which 0.77 are reached: beside GPU 3's part of
  // 8 MiB it has that of the other node's GPU 3, though GPU 2, which is not of the group, is beside the same NIC.
  const Fabric fabric = test::built("dgx1-v100", 2);
  const Group group = Group::listed({Rank(1), Rank(3), Rank(9), Rank(11)});
  const auto c = nccl::connect(fabric, group);
  REQUIRE(c.ok());
  constexpr Bytes size(32 << 20);
  const auto best = nccl::plan(*c, CollectiveKind::scatter, size);
  REQUIRE(best);
  const nccl::Run run = nccl::run(*c, CollectiveKind::scatter, size, *best);
  CHECK(test::us(run.data) == Approx(2 * (8 << 20) / (0.77 * 25000)));
  const auto program = nccl::program(fabric, group, *c, CollectiveKind::scatter, size, *best, 0);
  REQUIRE(program.ok());
  CHECK(simulate(*program)->count() == Approx(run.time().count()).epsilon(0.01));
}
