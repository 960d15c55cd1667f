// The closed form of a run: limits that it must tend to, and directions that it must go.
#include <catch2/catch.hpp>

#include <array>

#include "machines.hpp"
#include "nccl/run_constants.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Communicator;
using nccl::Plan;
using nccl::Protocol;
using nccl::Run;
using test::ran;

namespace {

constexpr CollectiveKind all_reduce = CollectiveKind::all_reduce;
constexpr std::array run_kinds{CollectiveKind::broadcast,  CollectiveKind::reduce,         CollectiveKind::all_reduce,
                               CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::alltoall,
                               CollectiveKind::gather,     CollectiveKind::scatter,        CollectiveKind::sendrecv};

}  // namespace

TEST_CASE("large messages take the bytes of the busiest resource over its rate") {
  const std::int64_t size = std::int64_t{16} << 30;
  const Communicator box = test::communicator("dgx-h100", 1);
  // A GPU sends 7/8 of the gathered result over 450 GB/s of NVLink; the last eighth's copy follows, on 24 channels.
  const Run gather = ran(box, CollectiveKind::all_gather, size, Algorithm::ring, Protocol::simple);
  CHECK(gather.bound == "NVLink");
  const double link = 450e9 * nccl::fitted::nvlink_efficiency[2], copy = 24e9 * nccl::fitted::own_copy;
  const double bytes = static_cast<double>(size);
  const double wire = bytes * 7 / 8 / link + bytes / 8 / copy;
  CHECK(gather.data.count() == Approx(wire));
  CHECK(gather.time().count() == Approx(wire).epsilon(0.01));
  // Of two ranks the copy is as large as what was sent, of an all-reduce's two hops half of that.
  const Communicator two = test::communicator("dgx-h100", 1, 2);
  const Run pair = ran(two, CollectiveKind::all_gather, size, Algorithm::ring, Protocol::simple);
  CHECK(pair.data.count() == Approx(bytes / 2 / link + bytes / 2 / copy));
  const Run sum = ran(two, all_reduce, size, Algorithm::ring, Protocol::simple);
  CHECK(sum.data.count() == Approx(bytes / link + bytes / 2 / copy));
  // One channel's threads are slower than the links.
  const Run narrow = ran(test::communicator("dgx-h100", 1, 2, test::environment({{"NCCL_MAX_NCHANNELS", "1"}})),
                         CollectiveKind::all_gather, size, Algorithm::ring, Protocol::simple);
  CHECK(narrow.bound == "channels");
  CHECK(narrow.data.count() ==
        Approx(bytes / 2 / (nccl::fitted::simple_channel[2] * 1e9) + bytes / 2 / (nccl::fitted::own_copy * 1e9)));
  // Across nodes: 7 of 8 parts over four NICs of 25 GB/s.
  const Run across = ran(test::communicator("snellius-h100", 2), CollectiveKind::all_gather, size);
  CHECK(across.bound == "NIC");
  CHECK(across.data.count() == Approx(static_cast<double>(size) * 7 / 8 / (100e9 * nccl::fitted::nic_efficiency)));
}

TEST_CASE("small messages take launch, start and hops") {
  const Communicator c = test::communicator("dgx-h100", 1);
  const Run run = ran(c, CollectiveKind::all_gather, 8, Algorithm::ring, Protocol::ll);
  CHECK(test::us(run.time()) == Approx(nccl::fitted::launch[2] + 7 * nccl::fitted::nvlink_hop[0]).epsilon(0.001));
  // Over two nodes a chunk crosses both borders: of 7 hops 2.
  const Communicator two = test::communicator("snellius-h100", 2);
  const Run crossing = ran(two, CollectiveKind::all_gather, 16, Algorithm::ring, Protocol::ll);
  const double network = nccl::fitted::network_hop[0] + test::us(two.network_latency);
  CHECK(test::us(crossing.start) == Approx(nccl::fitted::launch[2]));
  CHECK(test::us(crossing.latency + crossing.data) ==
        Approx(5 * nccl::fitted::nvlink_hop[0] + 2 * network).epsilon(0.001));
  // Beyond eight messages under way a NIC's proxy is what takes the time: 31 hops on 8 nodes of 4.
  const Run many =
      ran(test::communicator("snellius-h100", 8), CollectiveKind::all_gather, 64, Algorithm::ring, Protocol::ll);
  CHECK(many.bound == "messages");
  CHECK(test::us(many.data) ==
        Approx((31 - nccl::fitted::slots) * nccl::fitted::message_gap * nccl::fitted::ll_message));
}

TEST_CASE("without peer access no run is faster") {
  const nccl::Environment off = test::environment({{"NCCL_P2P_DISABLE", "1"}});
  int machines = 0;
  for (const TopologyEntry& entry : list_topologies(test::source_tree())) {
    const TopologySpec spec = test::shipped(entry.name);
    if (spec.gpu.model.empty() || spec.teaching) continue;
    const Fabric fabric = test::built(entry.name, 1);
    if (fabric.rank_count() < 2) continue;
    const Communicator usual = test::communicator(entry.name, 1);
    const auto without = nccl::connect(fabric, Group::strided(Rank(0), 1, usual.ranks), off);
    if (!without.ok()) continue;
    ++machines;
    for (const CollectiveKind kind : run_kinds)
      for (std::int64_t size = 8; size <= std::int64_t{1} << 30; size *= 8) {
        INFO(entry.name << " " << to_string(kind) << " " << size);
        const Seconds time = ran(*without, kind, size).time(), with = ran(usual, kind, size).time();
        CHECK(time >= with * (1 - 1e-12));
        if (usual.ranks > 8 || size > 1 << 20) continue;
        const auto simulated = [&](const Communicator& c) {
          return test::simulated(fabric, c, kind, Bytes(size), *nccl::plan(c, kind, Bytes(size)));
        };
        CHECK(simulated(*without) >= simulated(usual) * (1 - 1e-6));
      }
  }
  CHECK(machines > 10);
}

TEST_CASE("over the host's bridge a node's channels wait for each other's messages, slice by slice") {
  const Communicator c = test::communicator("polaris", 8);
  REQUIRE(c.ring.type_between >= nccl::PathType::phb);
  const Plan plan{false, Algorithm::ring, Protocol::simple, 4, 512, {}};
  const auto messages = [&](std::int64_t chunk) {
    return nccl::run(c, CollectiveKind::all_gather, Bytes(32 * 4 * chunk), plan);
  };
  // 31 hops, two chunks in the slots, 4 channels; up to 32 KiB a chunk is one slice, beyond it two.
  const double one = (31 - 2) * 4 * nccl::fitted::message_gap_over_host;
  CHECK(messages(32 << 10).bound == "messages");
  CHECK(test::us(messages(32 << 10).data) == Approx(one));
  CHECK(test::us(messages(64 << 10).data) == Approx(2 * one));
  // Published of this system: 653 and 1279 us.
  CHECK(test::us(messages(32 << 10).time()) == Approx(653).epsilon(0.15));
  CHECK(test::us(messages(64 << 10).time()) == Approx(1279).epsilon(0.1));
  // Beside their GPUs, NICs have a channel's messages each.
  Communicator beside = c;
  beside.ring.type_between = nccl::PathType::pix;
  beside.nics.count = 4;
  const Run near = nccl::run(beside, CollectiveKind::all_gather, Bytes(32 * 4 * 32 << 10), plan);
  CHECK(near.bound != "messages");
  CHECK(test::us(near.data) < one / 2);
}

TEST_CASE("over the host's bridge channels wait for those of their GPU's proxy, not for all of a node") {
  const Communicator c = test::communicator("dgx-h100", 4, 0, test::environment({{"NCCL_NET_GDR_LEVEL", "LOC"}}));
  REQUIRE(c.ring.type_between >= nccl::PathType::phb);
  REQUIRE(c.nics.count == 8);
  const auto gaps = [&](int channels) {
    const Plan plan{false, Algorithm::ring, Protocol::simple, channels, 512, {}};
    const Run run = nccl::run(c, CollectiveKind::all_gather, Bytes((32LL * channels) << 15), plan);
    CHECK(run.bound == "messages");
    return test::us(run.data) / (31 - 2) / nccl::fitted::message_gap_over_host;
  };
  // A GPU sends its NIC's channels and takes in as many.
  CHECK(gaps(1) == Approx(1));
  CHECK(gaps(8) == Approx(2));
  CHECK(gaps(16) == Approx(4));
  CHECK(gaps(32) == Approx(8));
}

TEST_CASE("of what a block's threads move at once under LL, a hop has its share already") {
  const Communicator c = test::communicator("dgx-h100", 1);
  // 512 threads of 8 bytes: up to 4 KiB of chunk are one pass, here the whole chunk of each of 8 ranks.
  const Plan plan{false, Algorithm::ring, Protocol::ll, 1, 512, {}};
  const auto time = [&](std::int64_t chunk) {
    return test::us(nccl::run(c, CollectiveKind::all_gather, Bytes(8 * chunk), plan).time());
  };
  // 7 hops and 8 operations: eight times the chunk, less the share that seven hops have.
  const double rate = nccl::fitted::ll_multiple * 141e9 / 24;
  const double pass = 1e6 * 4096 / rate;
  CHECK(time(4096) - time(2048) == Approx((8 - 7 * nccl::fitted::ll_within_hop) * pass / 2));
  CHECK(time(12288) - time(8192) == Approx(8 * pass));
  // No share makes a hop shorter than a tenth of itself.
  Communicator near = c;
  near.factors.hop = 1.0 / 12;
  CHECK(nccl::run(near, CollectiveKind::all_gather, Bytes(8 * 4096), plan).latency > Seconds(0));
}

TEST_CASE("LL and LL128 pass a tree's GPUs line by line, Simple chunk by chunk") {
  const auto latency = [](int per_node, Protocol p) {
    const Communicator c = test::communicator("dgx-a100", 1, per_node);
    const Plan plan{false, Algorithm::tree, p, 1, 512, {}};
    return test::us(nccl::run(c, all_reduce, Bytes(32 << 10), plan).latency);
  };
  // Four GPUs more: up and down, a hop each, and under Simple the chunk's time at each.
  const double ll = 8 * nccl::fitted::nvlink_hop[0], ll128 = 8 * nccl::fitted::nvlink_hop[1];
  CHECK(latency(8, Protocol::ll) - latency(4, Protocol::ll) == Approx(ll));
  CHECK(latency(8, Protocol::ll128) - latency(4, Protocol::ll128) == Approx(ll128));
  const double chunk = (32 << 10) / (nccl::fitted::simple_channel[1] * 1e3);
  CHECK(latency(8, Protocol::simple) - latency(4, Protocol::simple) ==
        Approx(8 * (nccl::fitted::nvlink_simple_hop[1] + chunk)));
}

TEST_CASE("an inner GPU of a tree's chain sends up and down over one port") {
  constexpr std::int64_t size = std::int64_t{1} << 30;
  const auto sends = [](int gpus) {
    Communicator c = test::communicator("rtx4090-pcie", 1, gpus);
    c.tree.channels *= 2;  // as graphs of NCCL's own have, whose trees book each direction
    const Run run = ran(c, all_reduce, size, Algorithm::tree, Protocol::simple);
    CHECK(run.bound == (gpus > 2 ? "PCIe" : "channels"));
    const double port = c.ring.channels * c.ring.inside.value() * nccl::fitted::pcie_efficiency;
    return run.data.count() * port / static_cast<double>(size);
  };
  CHECK(sends(4) == Approx(2));
  CHECK(sends(8) == Approx(2));
  CHECK(sends(2) < 2);
}

TEST_CASE("a tree of Simple cuts its channel's part smaller while it has few chunks for its depth") {
  // Two nodes of eight: depth 7 + 1 = 8. 512 KiB with 8 x 8 chunks or more, else 256, then 128 KiB; 64 KiB with fewer
  // than 4 x 8 of 128 KiB, 32 KiB with fewer than 8 of 64 KiB. One channel, so that the call's bytes are its own.
  const Communicator c = test::communicator("dgx-h100", 2);
  const Plan plan{false, Algorithm::tree, Protocol::simple, 1, 640, {}};
  const auto chunk = [&](std::int64_t kib) { return nccl::run(c, all_reduce, Bytes(kib << 10), plan).chunk; };
  CHECK(chunk(64 * 512) == Volume(512 << 10));
  CHECK(chunk(64 * 256) == Volume(256 << 10));
  CHECK(chunk(32 * 128) == Volume(128 << 10));
  CHECK(chunk(8 * 64) == Volume(64 << 10));
  CHECK(chunk(4 * 32) == Volume(32 << 10));
}

TEST_CASE("a pair's NICs carry one way only where a node has other ranks between") {
  // A network of a quarter of its rate bounds both pairs: both ways at once with one rank on a node, else one way.
  Communicator alone = test::communicator("dgx-h100", 2, 1), among = test::communicator("dgx-h100", 2);
  alone.factors.network = among.factors.network = 0.25;
  const std::int64_t size = std::int64_t{1} << 30;
  const Run both = ran(alone, CollectiveKind::sendrecv, size), one = ran(among, CollectiveKind::sendrecv, size);
  const double nic = 0.25 * 50e9, bytes = static_cast<double>(size);
  CHECK(both.data.count() == Approx(bytes / (nic * nccl::fitted::p2p_nic_efficiency)));
  CHECK(one.data.count() == Approx(bytes / (nic * nccl::fitted::nic_efficiency)));
  // Where the node's only NIC does both, or the host's bridge is between, more ranks change nothing.
  for (const char* machine : {"aws-p3dn", "polaris"}) {
    Communicator lone = test::communicator(machine, 2, 1), crowd = test::communicator(machine, 2);
    lone.factors.network = crowd.factors.network = 0.25;
    CHECK(ran(crowd, CollectiveKind::sendrecv, size).data.count() >=
          Approx(ran(lone, CollectiveKind::sendrecv, size).data.count()));
  }
}

TEST_CASE("a large tree of two nodes is nearer to NCCL's number than one whose nodes branch") {
  const Communicator two = test::communicator("gh200", 2), four = test::communicator("gh200", 4);
  const auto rate = [](const Communicator& c) {
    // What another GiB adds.
    constexpr std::int64_t gib = std::int64_t{1} << 30;
    const auto data = [&](std::int64_t bytes) {
      return ran(c, all_reduce, bytes, Algorithm::tree, Protocol::simple).data.count();
    };
    return static_cast<double>(gib) / (data(2 * gib) - data(gib));
  };
  // Four channels of NCCL's cap, inside and between, half of them the algorithm's.
  CHECK(rate(two) == Approx(0.5 * nccl::fitted::tree_cap_of_two[2] * 4 * 41.4e9));
  CHECK(rate(four) == Approx(0.5 * nccl::fitted::tree_efficiency * 4 * 0.92 * 24e9));
  // Ampere where the cap holds it and where NICs do; Volta reaches less of the cap, and as much of what NICs have.
  const double of_nics = 0.5 * nccl::fitted::tree_efficiency_of_two * 0.92;
  CHECK(rate(test::communicator("dgx-a100", 2)) == Approx(0.5 * nccl::fitted::tree_cap_of_two[1] * 8 * 23.6e9));
  CHECK(rate(test::communicator("aws-p4de", 2)) == Approx(of_nics * 4 * 24e9));
  CHECK(rate(test::communicator("dgx1-v100-roce", 2)) == Approx(0.5 * nccl::fitted::tree_cap_of_two[0] * 2 * 18.5e9));
}

TEST_CASE("over the host's bridge a ring's last channel waits for the messages of the others once") {
  const Communicator c = test::communicator("polaris", 2);
  Plan plan = test::planned_as(c, CollectiveKind::all_gather, Bytes(512), Algorithm::ring, Protocol::ll);
  const auto time = [&](int channels) {
    plan.channels = channels;
    return test::us(nccl::run(c, CollectiveKind::all_gather, Bytes(512 * channels), plan).time());
  };
  const double each = nccl::fitted::message_gap_over_host * nccl::fitted::ll_message + nccl::fitted::channel_start;
  CHECK(time(2) - time(1) == Approx(each).epsilon(1e-3));
  CHECK(time(4) - time(1) == Approx(3 * each).epsilon(1e-3));
}

TEST_CASE("a calibration's factors on hops under Simple and on gaps between messages act where they say") {
  const Communicator before = test::communicator("dgx-h100", 4);
  Communicator far = before, gaps = before, more_gaps = before;
  far.factors.simple_network_hop = 2;
  gaps.factors.message_gap = 4;
  more_gaps.factors.message_gap = 8;
  const auto time = [](const Communicator& c, Protocol p, std::int64_t bytes = 32 << 10) {
    return test::us(ran(c, CollectiveKind::all_gather, bytes, Algorithm::ring, p).time());
  };
  // 32 ranks: 31 hops, 4 of them between nodes; 31 - 8 slots messages have a gap each.
  // What Simple takes beyond LL is its own, and of chunks of 16 KiB a quarter of it; the network's part is every
  // protocol's.
  const double own = nccl::fitted::network_hop[2] - nccl::fitted::network_hop[0];
  const std::int64_t chunks = 32 * 16;
  CHECK(time(far, Protocol::simple, chunks << 14) - time(before, Protocol::simple, chunks << 14) ==
        Approx(4 * own / 4).epsilon(0.01));
  CHECK(time(far, Protocol::ll) == time(before, Protocol::ll));
  CHECK(time(far, Protocol::ll128) == time(before, Protocol::ll128));
  CHECK(time(more_gaps, Protocol::ll) - time(gaps, Protocol::ll) ==
        Approx(23 * 4 * nccl::fitted::message_gap * nccl::fitted::ll_message).epsilon(0.01));
}

TEST_CASE("every further channel adds its start, and more before NCCL 2.9") {
  for (const bool old : {false, true}) {
    nccl::Environment environment;
    environment.launch.version = old ? 20804 : 22900;
    const Communicator c = test::communicator("dgx-a100", 1, 0, environment);
    const double each = old ? nccl::fitted::old_channel_start : nccl::fitted::channel_start;
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
      Plan plan = test::planned_as(c, kind, Bytes(1 << 20), Algorithm::ring, Protocol::ll);
      plan.channels = 1;
      const Seconds one = nccl::run(c, kind, Bytes(1 << 20), plan).start;
      plan.channels = 24;
      CHECK(test::us(nccl::run(c, kind, Bytes(1 << 20), plan).start - one) == Approx(23 * each));
    }
  }
  // A version that is not known counts as a current one.
  CHECK(ran(test::communicator("dgx-a100", 1), all_reduce, 1 << 20).start < ran(test::communicator(
                                                                                    "dgx-a100", 1, 0,
                                                                                    [] {
                                                                                      nccl::Environment e;
                                                                                      e.launch.version = 20804;
                                                                                      return e;
                                                                                    }()),
                                                                                all_reduce, 1 << 20)
                                                                                .start);
}

TEST_CASE("a chain is no slower for a byte more than a slot, and on one node its length costs nothing") {
  const Communicator box = test::communicator("dgx-a100", 1), half = test::communicator("dgx-a100", 1, 4);
  Plan plan = test::planned_as(box, CollectiveKind::broadcast, Bytes(64 << 20), Algorithm::ring, Protocol::simple);
  const std::int64_t slot_of_all = std::int64_t{plan.channels} * (512 << 10);
  for (int slots = 1; slots < 5; ++slots) {
    const Seconds before = nccl::run(box, CollectiveKind::broadcast, Bytes(slots * slot_of_all), plan).time();
    const Seconds after =
        nccl::run(box, CollectiveKind::broadcast, Bytes(slots * slot_of_all + plan.channels), plan).time();
    CHECK(after.count() == Approx(before.count()).epsilon(1e-4));
  }
  CHECK(nccl::run(half, CollectiveKind::broadcast, Bytes(64 << 20), plan).latency ==
        nccl::run(box, CollectiveKind::broadcast, Bytes(64 << 20), plan).latency);
}

TEST_CASE("a network that is slower by some time is so under every protocol") {
  const Communicator before = test::communicator("dgx-h100", 4);
  Communicator slower = before;
  slower.factors.network_hop = 3;
  const double more = 2 * (nccl::fitted::network_hop[0] + test::us(before.network_latency));
  for (const Protocol p : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    const auto time = [&](const Communicator& c) {
      return test::us(ran(c, CollectiveKind::all_gather, 32 << 10, Algorithm::ring, p).time());
    };
    // 32 ranks: 31 hops, 4 of them between nodes.
    CHECK(time(slower) - time(before) == Approx(4 * more).epsilon(0.01));
  }
}

TEST_CASE("factors of LL128's hop and of LL's proxy touch no other protocol, and one node not at all") {
  for (const int nodes : {1, 2}) {
    const Communicator plain = test::communicator("dgx-h100", nodes);
    Communicator hop = plain, proxy = plain;
    hop.factors.ll128_network_hop = 2;
    proxy.factors.ll_proxy = 0.5;
    for (const Protocol p : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      const auto time = [&](const Communicator& c) { return ran(c, all_reduce, 256 << 10, Algorithm::ring, p).time(); };
      CHECK((time(hop) > time(plain)) == (nodes > 1 && p == Protocol::ll128));
      CHECK((time(proxy) > time(plain)) == (nodes > 1 && p == Protocol::ll));
    }
  }
}

TEST_CASE("nothing to move takes no time") {
  const Communicator c = test::communicator("dgx-h100", 1);
  CHECK(ran(c, all_reduce, 0).time() == Seconds(0));
  CHECK(ran(test::communicator("dgx-h100", 1, 1), all_reduce, 1 << 20).time() == Seconds(0));
}

TEST_CASE("every kind runs at every size on every shipped machine, in finite time") {
  for (const TopologyEntry& entry : list_topologies(test::source_tree())) {
    const TopologySpec spec = test::shipped(entry.name);
    if (spec.gpu.model.empty() || spec.teaching) continue;
    for (const int nodes : {1, 3}) {
      if (nodes > 1 && (std::holds_alternative<std::monostate>(spec.network) || spec.max_nodes == 1)) continue;
      const Fabric fabric = test::built(entry.name, nodes);
      if (fabric.rank_count() < 2) continue;
      const Communicator c = test::communicator(entry.name, nodes);
      for (const CollectiveKind kind : run_kinds) {
        for (const std::int64_t size :
             {std::int64_t{1}, std::int64_t{4096}, std::int64_t{1} << 20, std::int64_t{1} << 34}) {
          INFO(entry.name << " " << nodes << " " << to_string(kind) << " " << size);
          const Run run = ran(c, kind, size);
          CHECK(run.start > Seconds(0));
          CHECK(run.latency >= Seconds(0));
          CHECK(run.data > Seconds(0));
          CHECK(run.time() < Seconds(1000));
        }
      }
    }
  }
}

TEST_CASE("no all-reduce across nodes is faster than the NICs of a node, nor than its share of them") {
  constexpr std::int64_t size = std::int64_t{1} << 32;
  for (const TopologyEntry& entry : list_topologies(test::source_tree())) {
    const TopologySpec spec = test::shipped(entry.name);
    if (spec.gpu.model.empty() || spec.teaching || spec.max_nodes == 1) continue;
    if (std::holds_alternative<std::monostate>(spec.network)) continue;
    for (const int nodes : {2, 3, 8}) {
      const Communicator whole = test::communicator(entry.name, nodes);
      Communicator part = whole;
      part.nics.rate = whole.nics.rate / 8;  // as of eight groups
      for (const Communicator& c : {whole, part}) {
        for (const nccl::Candidate& one : tuning_table(whole, all_reduce, Bytes(size))) {
          if (!one.available) continue;
          INFO(entry.name << " " << nodes << " " << to_string(one.algorithm) << " " << to_string(one.protocol));
          const Run run = nccl::run(c, all_reduce, Bytes(size), plan_of(whole, all_reduce, Bytes(size), one));
          const double sent = 2.0 * (nodes - 1) / nodes * static_cast<double>(size);
          CHECK(run.time().count() >= sent / (c.nics.count * c.nics.rate.value()));
        }
      }
    }
  }
}

TEST_CASE("few channels are no faster than the NIC that has most of them") {
  // Each channel's ring or trees send 2(n-1)/n of its data from a node in the mean, by one NIC: of k channels on m NICs
  // one has k/m, rounded up.
  constexpr std::int64_t size = std::int64_t{1} << 30;
  for (const std::string& machine : test::machines_of_gpus()) {
    for (const int nodes : {2, 3, 4}) {
      const Communicator c = test::communicator(machine, nodes);
      if (c.nics.uneven || c.nics.count < 1) continue;
      for (const int channels : {1, 3, c.nics.count - 1, c.nics.count + 1})
        for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree}) {
          Plan plan = test::planned_as(c, all_reduce, Bytes(size), algorithm, Protocol::simple);
          if (channels < 1 || channels > plan.channels) continue;
          plan.channels = channels;
          INFO(machine << " " << nodes << " " << to_string(algorithm) << " on " << channels);
          const double of_one = std::ceil(1.0 * channels / c.nics.count) / channels;
          const double sent = 2.0 * (nodes - 1) / nodes * static_cast<double>(size) * of_one;
          CHECK(nccl::run(c, all_reduce, Bytes(size), plan).time().count() >= sent / c.nics.rate.value());
        }
    }
  }
}

TEST_CASE("a NIC moves no more than PCIe between it and its GPUs") {
  // 400 Gb/s are 50 GB/s; a slot of generation 4 is 31.5, of generation 3 15.75.
  const auto at = [](const char* machine, int per_node, const char* rate) {
    const Fabric fabric = test::built(machine, 2, {std::string("network.link.bandwidth=") + rate});
    std::vector<Rank> ranks;
    const int all = fabric.ranks_per_node();
    for (int rank = 0; rank < 2 * all; ++rank)
      if (rank % all < per_node) ranks.emplace_back(static_cast<std::uint32_t>(rank));
    return *nccl::connect(fabric, Group::listed(std::move(ranks)), {});
  };
  struct Case {
    const char* machine;
    int per_node;
    double gb;
  };
  for (const auto& [machine, per_node, gb] :
       {Case{"dgx-a100", 8, 31.5}, {"dgx-a100", 1, 31.5}, {"aws-p4d", 8, 15.75}, {"aws-p3dn", 8, 15.75}}) {
    INFO(machine << " " << per_node);
    const Communicator c = at(machine, per_node, "400Gb/s"), wider = at(machine, per_node, "800Gb/s");
    CHECK(c.nics.by_pcie);
    CHECK(c.nics.rate.value() == Approx(gb * 1e9));
    CHECK(wider.nics.rate == c.nics.rate);
    CHECK(c.ring.channels * c.ring.between.value() <= c.nics.count * c.nics.rate.value());
    CHECK_FALSE(at(machine, per_node, "50Gb/s").nics.by_pcie);
    for (const CollectiveKind kind : run_kinds) {
      INFO(to_string(kind));
      const Run run = ran(c, kind, std::int64_t{1} << 32);
      CHECK(ran(wider, kind, std::int64_t{1} << 32).time() == run.time());
      if (kind == all_reduce) CHECK(run.time().count() >= double(std::int64_t{1} << 32) / (c.nics.count * gb * 1e9));
    }
  }
  CHECK(ran(at("dgx-a100", 8, "400Gb/s"), CollectiveKind::alltoall, std::int64_t{1} << 32).bound == "PCIe to the NICs");
}

TEST_CASE("NICs behind the host's bridge reach less than those on a GPU's switch") {
  constexpr std::int64_t size = std::int64_t{16} << 30;
  // Two NICs of 25 GB/s on either; Polaris has them on the host, 35.9 GB/s are measured.
  const Communicator c = test::communicator("polaris", 2);
  CHECK(c.ring.type_between == nccl::PathType::phb);
  const Run run = ran(c, CollectiveKind::all_gather, size, Algorithm::ring, Protocol::simple);
  CHECK(run.bound == "NIC");
  CHECK(run.data.count() == Approx(static_cast<double>(size) * 7 / 8 / (50e9 * nccl::fitted::nic_over_host)));
  CHECK(nccl::fitted::nic_over_host < nccl::fitted::nic_efficiency);
}

TEST_CASE("on Blackwell a ring's data hides its hops, which small loops show") {
  const Communicator c = test::communicator("dgx-b200", 1);
  const auto of = [&](std::int64_t mib) {
    return ran(c, CollectiveKind::all_gather, mib << 20, Algorithm::ring, Protocol::simple);
  };
  const double way = 7 * nccl::fitted::nvlink_simple_hop[3];
  // 8 MiB: seven hops and half of the data, whose other half they cover; at 512 MiB the data is longer than the way.
  const Run small = of(8), large = of(512);
  const double halves = test::us(small.data) / 2, slice = test::us(small.data) / 14;
  CHECK(
      test::us(small.latency + small.data) ==
      Approx(way + halves + std::min(nccl::fitted::first_round[3] * way, halves) + nccl::fitted::first_slice * slice));
  CHECK(test::us(large.latency) < 0.1 * way + 0.05 * test::us(large.data));
}

TEST_CASE("an exchange across nodes uses the NICs of all GPUs, also those that rings leave alone") {
  const Communicator c = test::communicator("gb200-nvl72", 4);
  CHECK(c.nics.count < c.pairs.nics);
  CHECK(c.pairs.nics == 72);
  // Of 1 GiB each of 288 GPUs sends the parts of 216 over its own NIC of 50 GB/s.
  const double least = 216.0 / 288 * (1 << 30) / 50e9;
  const double seconds = ran(c, CollectiveKind::alltoall, 1 << 30).time().count();
  CHECK(seconds >= least);
  CHECK(seconds < 1.25 * least);
}

TEST_CASE("more bandwidth or less latency never makes a run slower") {
  const Plan plans[] = {{false, Algorithm::ring, Protocol::ll, 4, 512, {}},
                        {false, Algorithm::ring, Protocol::ll128, 16, 640, {}},
                        {false, Algorithm::ring, Protocol::simple, 16, 512, {}},
                        {false, Algorithm::tree, Protocol::ll, 4, 512, {}},
                        {false, Algorithm::tree, Protocol::simple, 16, 640, {}},
                        {false, Algorithm::nvls_tree, Protocol::simple, 16, 640, {}}};
  const Communicator before = test::communicator("dgx-h100", 4);
  Communicator wider = before, nearer = before;
  wider.nics.rate = before.nics.rate * 2.0;
  wider.gpu.nvlink = before.gpu.nvlink * 2.0;
  nearer.network_latency = before.network_latency / 2;
  for (const Plan& plan : plans) {
    for (std::int64_t size = 1; size <= (std::int64_t{1} << 34); size *= 4) {
      INFO(to_string(plan.algorithm) << " " << to_string(plan.protocol) << " " << size);
      const Seconds time = nccl::run(before, all_reduce, Bytes(size), plan).time();
      CHECK(nccl::run(wider, all_reduce, Bytes(size), plan).time() <= time * (1 + 1e-12));
      CHECK(nccl::run(nearer, all_reduce, Bytes(size), plan).time() <= time * (1 + 1e-12));
    }
  }
}

TEST_CASE("on any machine no collective's plan is slower with more bandwidth or less latency") {
  struct Machine {
    const char* name;
    int nodes;
  };
  for (const auto& [name, nodes] : {Machine{"dgx-a100", 2}, Machine{"dgx1-v100", 1}, Machine{"gb200-nvl72", 2},
                                    Machine{"pcie-a100", 1}, Machine{"aws-p5", 4}, Machine{"dgx-b200", 1}}) {
    const Communicator before = test::communicator(name, nodes);
    for (const double factor : {1.01, 1.5, 10.0}) {
      Communicator nics = before, gpus = before, nearer = before;
      nics.nics.rate = before.nics.rate * factor;
      nics.pairs.nic_rate = before.pairs.nic_rate * factor;
      gpus.gpu.nvlink = before.gpu.nvlink * factor;
      nearer.network_latency = before.network_latency / factor;
      for (const CollectiveKind kind : run_kinds)
        for (std::int64_t size = 8; size <= (std::int64_t{1} << 33); size *= 16) {
          INFO(to_string(kind) << " of " << size << " B on " << nodes << " x " << name << ", factor " << factor);
          const auto plan = nccl::plan(before, kind, Bytes(size));
          REQUIRE(plan.ok());
          const Seconds most = nccl::run(before, kind, Bytes(size), *plan).time() * (1 + 1e-12);
          CHECK(nccl::run(nics, kind, Bytes(size), *plan).time() <= most);
          CHECK(nccl::run(gpus, kind, Bytes(size), *plan).time() <= most);
          CHECK(nccl::run(nearer, kind, Bytes(size), *plan).time() <= most);
        }
    }
  }
}

TEST_CASE("with one plan more bytes never take less time") {
  const Communicator c = test::communicator("dgx-h100", 2);
  for (const Plan& plan : {Plan{false, Algorithm::ring, Protocol::simple, 16, 512, {}},
                           Plan{false, Algorithm::tree, Protocol::simple, 16, 640, {}},
                           Plan{false, Algorithm::ring, Protocol::ll, 16, 512, {}},
                           Plan{false, Algorithm::nvls_tree, Protocol::simple, 16, 640, {}}}) {
    Seconds last{};
    for (std::int64_t size = 1; size <= (std::int64_t{1} << 34); size *= 2) {
      INFO(to_string(plan.algorithm) << " " << to_string(plan.protocol) << " " << size);
      const Seconds time = nccl::run(c, all_reduce, Bytes(size), plan).time();
      CHECK(time >= last * (1 - 1e-9));
      last = time;
    }
  }
}

TEST_CASE("a smaller buffer makes smaller chunks") {
  const Communicator small = test::communicator("dgx-h100", 1, 0, test::environment({{"NCCL_BUFFSIZE", "1048576"}}));
  const Communicator usual = test::communicator("dgx-h100", 1);
  const std::int64_t size = std::int64_t{1} << 32;
  CHECK(ran(usual, all_reduce, size, Algorithm::ring, Protocol::simple).chunk == Volume(2 << 20));
  CHECK(ran(small, all_reduce, size, Algorithm::ring, Protocol::simple).chunk == Volume(512 << 10));
}
