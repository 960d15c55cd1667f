// CollNet: a reduction in the network, from the search to the simulation.
#include "nccl/collnet.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/channels.hpp"
#include "collcast/nccl/program.hpp"
#include "delivery.hpp"
#include "machines.hpp"
#include "nccl/collnet_shape.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Communicator;
using nccl::InsideNode;
using nccl::Plan;
using nccl::Protocol;
using test::Delivery;
using test::us;

namespace {

constexpr CollectiveKind sum = CollectiveKind::all_reduce, gather = CollectiveKind::all_gather,
                         scatter = CollectiveKind::reduce_scatter;
constexpr std::int64_t a_kib = 1 << 10, a_mib = 1 << 20, a_gib = 1 << 30;

/// A machine whose network adds up, and its communicator with CollNet.
struct Summing {
  Fabric fabric;
  Group group;
  Communicator c;
};
Summing summing(const std::string& machine, int nodes, int per_node = 0, std::vector<std::string> sets = {},
                std::vector<std::pair<std::string, std::string>> variables = {{"NCCL_COLLNET_ENABLE", "1"}}) {
  sets.emplace_back("network.plugin.collnet=true");
  Fabric fabric = test::built(machine, nodes, sets);
  const int all = fabric.ranks_per_node(), count = per_node == 0 ? all : per_node;
  std::vector<Rank> ranks;
  for (int node = 0; node < nodes; ++node)
    for (int i = 0; i < count; ++i) ranks.emplace_back(static_cast<std::uint32_t>(node * all + i));
  Group group = Group::listed(std::move(ranks));
  const auto c = nccl::connect(fabric, group, test::environment(variables));
  REQUIRE(c.ok());
  return {std::move(fabric), std::move(group), *c};
}

nccl::Candidate believed(const Communicator& c, CollectiveKind kind, Algorithm algorithm) {
  for (const nccl::Candidate& one : tuning_table(c, kind, Bytes(a_mib)))
    if (one.algorithm == algorithm && one.protocol == Protocol::simple) return one;
  FAIL("no such candidate");
  return {};
}

double in_gb(Bandwidth rate) { return rate.value() / 1e9; }

Plan to_run(const Communicator& c, CollectiveKind kind, std::int64_t bytes, Algorithm algorithm) {
  return test::planned_as(c, kind, Bytes(bytes), algorithm, Protocol::simple);
}

double off(const Summing& j, CollectiveKind kind, std::int64_t bytes, Algorithm algorithm) {
  const Plan plan = to_run(j.c, kind, bytes, algorithm);
  const auto program = nccl::program(j.fabric, j.group, j.c, kind, Bytes(bytes), plan);
  INFO(to_text(program.errors()));
  REQUIRE(program.ok());
  return *simulate(*program) / nccl::run(j.c, kind, Bytes(bytes), plan).time() - 1;
}

const std::vector<Algorithm> in_nodes{Algorithm::collnet_direct, Algorithm::collnet_chain, Algorithm::nvls};

}  // namespace

TEST_CASE("the search's chains and direct channels, by the links' speeds as NCCL counts them") {
  // 8 NICs of 400 Gb/s: 48 of the list fit 50. A head books 48, the seven others 48/7 each on its links: 2 x 48 <=
  // 370.8.
  const Summing h100 = summing("dgx-h100", 16);
  REQUIRE(h100.c.collnet);
  const nccl::Graph &chain = h100.c.collnet->chain, &direct = *h100.c.collnet->direct;
  CHECK(chain.pattern == nccl::GraphPattern::tree);
  CHECK(chain.channels == 8);
  CHECK(in_gb(chain.inside) == 48);
  CHECK(direct.pattern == nccl::GraphPattern::collnet_direct);
  CHECK(direct.channels == 8);
  CHECK(in_gb(direct.inside) == 48);
  CHECK(in_gb(direct.between) == 48);
  CHECK(direct.order[3] == std::vector<int>{3, 0, 1, 2, 4, 5, 6, 7});
  CHECK(direct.nics[3].in == 3);
  CHECK(h100.c.channels == 16);
  // HDR: 24 between. Inside 28, 30, 48 fit 240 twice, and 48 is twice 24.
  const Summing a100 = summing("dgx-a100", 4);
  CHECK(in_gb(a100.c.collnet->chain.inside) == 30);
  CHECK(in_gb(a100.c.collnet->direct->inside) == 48);
  CHECK(in_gb(a100.c.collnet->direct->between) == 24);
  // Chains have more inside than between, so that half as many channels again run: 2 x 8, and 8.
  CHECK(a100.c.channels == 24);
  CHECK(test::communicator("dgx-a100", 4).channels == 16);
}

TEST_CASE("four NICs of eight GPUs are four heads") {
  // 100 Gb/s: 12 of the list. Inside 15, 18, 20 and 24, twice that; a head books 24, the three others 24/7 each.
  const Summing j = summing("aws-p4d", 4);
  const nccl::Graph& direct = *j.c.collnet->direct;
  CHECK(nccl::collnet_heads(j.c, Algorithm::collnet_direct) == 4);
  CHECK(direct.channels == 4);
  CHECK(in_gb(direct.inside) == 24);
  CHECK(in_gb(direct.between) == 12);
  CHECK(direct.order.front().size() == 8);
}

TEST_CASE("heads are no more than the group's GPUs, and are not doubled beyond") {
  const Fabric fabric = test::built("dgx-h100", 2, {"network.plugin.collnet=true"});
  const Group group = Group::listed({Rank(0), Rank(1), Rank(8), Rank(9)});
  const Communicator c = *nccl::connect(fabric, group, test::environment({{"NCCL_COLLNET_ENABLE", "1"}}));
  CHECK(c.collnet->direct->channels == 2);
  CHECK(in_gb(c.collnet->direct->between) == 48);
  // Rings of two NICs are doubled: 4 x 24, raised inside to 48, and half as many again than twice that run.
  CHECK(c.collnet->chain.channels == 4);
  CHECK(in_gb(c.collnet->chain.inside) == 48);
  CHECK(c.channels == 12);
}

TEST_CASE("one GPU a node has a tree for both") {
  const Summing j = summing("dgx-h100", 8, 1);
  CHECK(j.c.collnet->direct->pattern == nccl::GraphPattern::tree);
  CHECK(j.c.collnet->direct->channels == 1);
  CHECK(believed(j.c, sum, Algorithm::collnet_direct).available);
  // The tree's hop between nodes, 14 us, as latencies are not hidden.
  CHECK(us(believed(j.c, sum, Algorithm::collnet_chain).latency) == Approx(14.0));
}

TEST_CASE("NCCL's latency and bandwidth on 16 nodes of 8 H100, worked by hand") {
  const Summing j = summing("dgx-h100", 16);
  const auto direct = believed(j.c, sum, Algorithm::collnet_direct);
  // 2 x (one hop of 3.7 + 7 x 0.4 for as many GPUs) + 31.
  CHECK(us(direct.latency) == Approx(2 * (3.7 + 7 * 0.4) + 31));
  // 8 channels x 48, a NIC for each GPU, 0.85 from Hopper on, half of the bus.
  CHECK(in_gb(direct.bandwidth) == Approx(8 * 48 * 0.85 / 2));
  const auto chain = believed(j.c, sum, Algorithm::collnet_chain);
  CHECK(us(chain.latency) == Approx(2 * 7 * 2.8 + 30));
  CHECK(in_gb(chain.bandwidth) == Approx(8 * 48 / 2.0));
  const auto nvls = believed(j.c, sum, Algorithm::nvls);
  CHECK(us(nvls.latency) == Approx(25 + 18));
  // Inside 40 x 0.85 x 7/8 x 2 = 59.5 are more than 48 between; 128 ranks, 254 steps.
  CHECK(in_gb(nvls.bandwidth) == Approx(8 * 48 * 128.0 / 254));
  const auto gathered = believed(j.c, gather, Algorithm::collnet_direct);
  CHECK(us(gathered.latency) == Approx(44));
  CHECK(in_gb(gathered.bandwidth) == Approx(8 * 0.9 * 48));
  // 40 x 0.85 x 7/8 x 7/8 inside, of a gather as it is.
  CHECK(in_gb(believed(j.c, scatter, Algorithm::nvls).bandwidth) == Approx(8 * 40 * 0.85 * 49 / 64));
}

TEST_CASE("before Hopper the whole bus, and less with fewer NICs than GPUs") {
  CHECK(in_gb(believed(summing("dgx-a100", 4).c, sum, Algorithm::collnet_direct).bandwidth) == Approx(8 * 48 / 2.0));
  Summing j = summing("dgx-a100", 4);
  j.c.collnet->direct->channels = 4;  // 2 GPUs for each: 4 x 48 / (2 - 1/2) / 2
  CHECK(in_gb(believed(j.c, sum, Algorithm::collnet_direct).bandwidth) == Approx(4 * 48 / 1.5 / 2));
}

TEST_CASE("CollNet says why it is not available") {
  const auto why = [](const Communicator& c, CollectiveKind kind, Algorithm a) { return believed(c, kind, a).reason; };
  const auto direct = Algorithm::collnet_direct, chain = Algorithm::collnet_chain;
  const Communicator plain = test::communicator("dgx-h100", 2, 0, test::environment({{"NCCL_COLLNET_ENABLE", "1"}}));
  CHECK(why(plain, sum, direct) == "no reduction in the network is described");
  CHECK(why(plain, sum, Algorithm::nvls) == "across nodes it needs a reduction in the network");
  CHECK(why(summing("dgx-h100", 2, 0, {}, {}).c, sum, chain) == "CollNet is off without NCCL_COLLNET_ENABLE=1");
  CHECK(why(summing("dgx-h100", 2, 0, {}, {{"NCCL_COLLNET_ENABLE", "0"}}).c, sum, chain) ==
        "CollNet is off without NCCL_COLLNET_ENABLE=1");
  CHECK(why(summing("dgx-h100", 1).c, sum, chain) == "CollNet needs several nodes");
  const std::vector<std::pair<std::string, std::string>> of_four{{"NCCL_COLLNET_ENABLE", "1"},
                                                                 {"NCCL_COLLNET_NODE_THRESHOLD", "4"}};
  CHECK(why(summing("dgx-h100", 3, 0, {}, of_four).c, sum, chain) ==
        "CollNet needs 4 nodes (NCCL_COLLNET_NODE_THRESHOLD)");
  CHECK(why(summing("dgx-h100", 4, 0, {}, of_four).c, sum, chain).empty());
  CHECK(why(summing("dgx1-v100", 2).c, sum, direct) == "needs an NVSwitch");
  CHECK(why(summing("dgx1-v100", 2).c, sum, chain).empty());
  CHECK(why(summing("gb200-nvl72", 2).c, sum, direct) == "needs 8 GPUs on a node at most");
  CHECK(why(summing("dgx-h100", 2).c, gather, chain) == "collnet_chain does no all_gather");
  const Summing without = summing("dgx-h100", 2, 0, {}, {{"NCCL_COLLNET_ENABLE", "1"}, {"NCCL_ALGO", "Ring"}});
  CHECK(why(without.c, sum, direct) == "not in NCCL_ALGO");
}

TEST_CASE("gathers and scatters need a head for every GPU of a node") {
  Summing j = summing("dgx-h100", 4);
  CHECK(believed(j.c, gather, Algorithm::collnet_direct).available);
  j.c.collnet->direct->order.resize(4);
  CHECK(believed(j.c, gather, Algorithm::collnet_direct).reason == "needs a head for every GPU of a node");
  CHECK(believed(j.c, sum, Algorithm::collnet_direct).available);
}

TEST_CASE("channels and threads that a size is worth, and chunks") {
  const Communicator c = summing("dgx-h100", 16).c;
  // All 16 channels from 16 x 640 threads x 8 heads x 512 bytes on.
  CHECK(to_run(c, sum, 16LL * 640 * 8 * 512, Algorithm::collnet_direct).channels == 16);
  CHECK(to_run(c, sum, 16LL * 640 * 8 * 512 - 1, Algorithm::collnet_direct).channels == 15);
  // Below 12 half of the bytes are enough: 11 x 640 x 8 x 256 = 14.4 MB.
  CHECK(to_run(c, sum, 11LL * 640 * 8 * 256, Algorithm::collnet_direct).channels == 11);
  CHECK(to_run(c, sum, 8, Algorithm::collnet_direct).channels == 1);
  CHECK(to_run(c, sum, 8, Algorithm::collnet_direct).threads == 640);
  CHECK(to_run(c, sum, 3 * 640 * 512, Algorithm::collnet_chain).channels == 3);
  CHECK(to_run(c, sum, 8, Algorithm::collnet_chain).threads == 320);
  // Direct: halved to 128 KiB while there are fewer than 128 for 16 channels of 8 heads, below 16 of these to 32 KiB.
  const auto chunk = [&](std::int64_t bytes) {
    return nccl::run(c, sum, Bytes(bytes), to_run(c, sum, bytes, Algorithm::collnet_direct)).chunk;
  };
  CHECK(chunk(128LL * 128 * 512 * a_kib).value() == 512 * a_kib);
  CHECK(chunk(16LL * 128 * 128 * a_kib).value() == 128 * a_kib);
  CHECK(chunk(8LL * 128 * 64 * a_kib).value() == 32 * a_kib);
}

TEST_CASE("the network's reduction gives every GPU the sum of all: up to nine nodes of up to nine GPUs") {
  for (const InsideNode inside : {InsideNode::direct, InsideNode::chain, InsideNode::by_switch})
    for (int nodes = 2; nodes <= 9; ++nodes)
      for (int gpus = inside == InsideNode::by_switch ? 2 : 1; gpus <= 9; ++gpus) {
        INFO(static_cast<int>(inside) << ": " << nodes << " nodes of " << gpus);
        const int networks = 1 + gpus % 3;  // of which one takes part
        const Phase phase = nccl::collnet_phase(sum, inside, nodes, gpus, networks);
        const int of_node = gpus + nccl::members_of_switch(inside, gpus) + networks;
        REQUIRE(phase.members == nodes * of_node);
        const auto is_gpu = [&](Position v) { return v % of_node < gpus; };
        const Delivery delivery(phase, is_gpu);
        for (Position v = 0; v < phase.members; ++v)
          if (is_gpu(v)) CHECK(delivery.has(v).size() == static_cast<std::size_t>(nodes * gpus));
      }
}

TEST_CASE("the network gathers from one head to every GPU, and scatters the sum of all to one head") {
  for (const InsideNode inside : {InsideNode::direct, InsideNode::by_switch})
    for (int nodes = 2; nodes <= 5; ++nodes)
      for (int gpus = 2; gpus <= 9; ++gpus) {
        INFO(nodes << " nodes of " << gpus);
        const int of_node = gpus + nccl::members_of_switch(inside, gpus) + 1;
        const auto is_gpu = [&](Position v) { return v % of_node < gpus; };
        const Delivery to_all(nccl::collnet_phase(gather, inside, nodes, gpus), [](Position v) { return v == 0; });
        for (Position v = 0; v < nodes * of_node; ++v)
          if (is_gpu(v)) CHECK(to_all.has(v).contains(0));
        const Delivery to_one(nccl::collnet_phase(scatter, inside, nodes, gpus), is_gpu);
        CHECK(to_one.has(0).size() == static_cast<std::size_t>(nodes * gpus));
      }
}

TEST_CASE("a NIC sends and receives its heads' part once, however many nodes there are") {
  // A ring's NICs move 2 (N - 1) / N times that.
  for (const int nodes : {2, 3, 16}) {
    const Summing j = summing("dgx-h100", nodes);
    const std::int64_t bytes = 8 * a_mib;
    for (const Algorithm algorithm : in_nodes) {
      INFO(nodes << " nodes, " << to_string(algorithm));
      const Plan plan = to_run(j.c, sum, bytes, algorithm);
      const auto program = nccl::program(j.fabric, j.group, j.c, sum, Bytes(bytes), plan);
      REQUIRE(program.ok());
      const Pattern& pattern = program->pattern;
      const int gpus = j.group.size(), of_switch = algorithm == Algorithm::nvls ? 8 : 0;
      std::map<int, double> sent, received;  // by member of the network
      for (const Lane& lane : pattern.lanes)
        for (Position v = 0; v < static_cast<int>(lane.order.size()); ++v) {
          const Phase& phase = lane.phases.front();
          for (int hop = 0; hop < phase.shape->sends(phase, v); ++hop) {
            const Hop h = phase.shape->send(phase, v, hop);
            const int from = lane.participant(v), to = lane.participant(h.peer);
            const double all = pattern.message(lane, h).value() * pattern.chunks;
            const auto is_gpu = [&](int one) { return one < gpus; };
            // Behind the GPUs every node has of_switch members of its switch, then one for each NIC.
            const auto is_network = [&](int one) { return one >= gpus && (one - gpus) % (of_switch + 8) >= of_switch; };
            const bool head_to_network = is_gpu(from) && is_network(to);
            const bool network_to_head = is_gpu(to) && is_network(from);
            if (head_to_network) sent[to] += all;
            if (network_to_head) received[from] += all;
          }
        }
      CHECK(sent.size() == static_cast<std::size_t>(8 * nodes));
      // The chain's channels are not always as many for each NIC.
      double most = 0, together = 0;
      for (const auto& [nic, amount] : sent) {
        most = std::max(most, amount);
        together += amount;
        CHECK(received.at(nic) == Approx(amount));
      }
      CHECK(together == Approx(static_cast<double>(bytes) * nodes));
      CHECK(most == Approx(nccl::collnet_run(j.c, sum, Bytes(bytes), plan).nic_load));
      if (algorithm != Algorithm::collnet_chain) CHECK(most == Approx(static_cast<double>(bytes) / 8));
    }
  }
}

TEST_CASE("all_reduce through the network takes its closed form's time: within 8 percent, 8 bytes exactly") {
  for (const char* machine : {"dgx-h100", "dgx-a100", "dgx-b200"})
    for (const int nodes : {2, 3, 8}) {
      const Summing j = summing(machine, nodes);
      for (const Algorithm algorithm : in_nodes) {
        if (!believed(j.c, sum, algorithm).available) continue;
        for (std::int64_t bytes = 8; bytes <= a_gib; bytes *= 16) {
          INFO(machine << " x" << nodes << " " << to_string(algorithm) << " " << bytes);
          const double by = off(j, sum, bytes, algorithm);
          CHECK(std::abs(by) < (bytes == 8 ? 1e-3 : 0.08));
        }
      }
    }
}

TEST_CASE(
    "all_reduce through the network of meshes, few NICs, racks and one GPU a node takes its closed form's: within 12 "
    "percent") {
  for (const char* machine : {"dgx1-v100", "polaris", "aws-p4d", "gb200-nvl72", "gh200"}) {
    const Summing j = summing(machine, 2);
    for (const Algorithm algorithm : in_nodes) {
      if (!believed(j.c, sum, algorithm).available) continue;
      for (std::int64_t bytes = a_kib; bytes <= 64 * a_mib; bytes *= 16) {
        INFO(machine << " " << to_string(algorithm) << " " << bytes);
        CHECK(std::abs(off(j, sum, bytes, algorithm)) < 0.12);
      }
    }
  }
}

TEST_CASE("gathers and scatters through the network take their closed form's time within 9 percent") {
  for (const char* machine : {"dgx-h100", "dgx-a100"})
    for (const int nodes : {2, 4}) {
      const Summing j = summing(machine, nodes);
      for (const CollectiveKind kind : {gather, scatter})
        for (const Algorithm algorithm : {Algorithm::collnet_direct, Algorithm::nvls}) {
          if (!believed(j.c, kind, algorithm).available) continue;
          for (std::int64_t bytes = a_kib; bytes <= 256 * a_mib; bytes *= 64) {
            INFO(machine << " x" << nodes << " " << to_string(kind) << " " << to_string(algorithm) << " " << bytes);
            CHECK(std::abs(off(j, kind, bytes, algorithm)) < 0.09);
          }
        }
    }
}

TEST_CASE("more nodes cost CollNet nothing but the network's latency; a ring pays for every one") {
  const auto time = [](int nodes, Algorithm algorithm) {
    const Summing j = summing("dgx-h100", nodes);
    return us(nccl::run(j.c, sum, Bytes(a_mib), to_run(j.c, sum, a_mib, algorithm)).time());
  };
  // From 2 to 16 nodes no pod is left.
  CHECK(time(16, Algorithm::collnet_direct) == Approx(time(2, Algorithm::collnet_direct)));
  CHECK(time(16, Algorithm::ring) > 2 * time(2, Algorithm::ring));
}

TEST_CASE("with one plan faster NICs or NVLinks never make a forecast of CollNet slower, nor its simulation") {
  for (const Algorithm algorithm : in_nodes) {
    const auto both = [&](const char* set) {
      const Summing j = summing("dgx-h100", 4, 0, {set});
      const Plan plan = to_run(summing("dgx-h100", 4).c, sum, 64 * a_mib, algorithm);
      const auto program = nccl::program(j.fabric, j.group, j.c, sum, Bytes(64 * a_mib), plan);
      REQUIRE(program.ok());
      return std::pair(us(nccl::run(j.c, sum, Bytes(64 * a_mib), plan).time()), us(*simulate(*program)));
    };
    INFO(to_string(algorithm));
    const auto slow = both("network.link.bandwidth=100Gb/s"), quick = both("network.link.bandwidth=400Gb/s");
    CHECK(quick.first < slow.first);
    CHECK(quick.second < slow.second);
    const auto thin = both("node.links.0.bandwidth=150GB/s"), wide = both("node.links.0.bandwidth=450GB/s");
    CHECK(wide.first <= thin.first);
    CHECK(wide.second <= thin.second);
  }
}

TEST_CASE("an author's rule of thumb for a DGX A100: 20 GB/s a NIC, and with eight of them NVLink holds it") {
  // github.com/NVIDIA/nccl, issue 320: "with 4 NICs about 80 GB/s, with 8 limited to about 110" of algorithm bandwidth.
  const Summing j = summing("dgx-a100", 8);
  const Plan plan = to_run(j.c, sum, 4 * a_gib, Algorithm::collnet_direct);
  const nccl::Run run = nccl::run(j.c, sum, Bytes(4 * a_gib), plan);
  CHECK(run.bound == "NVLink");
  const double rate = 4.0 * a_gib / run.time().count() / 1e9;
  CHECK(rate > 100);
  CHECK(rate < 160);
  // Of one NIC: 0.8 x 25.
  const nccl::CollnetRun collnet = nccl::collnet_run(j.c, sum, Bytes(4 * a_gib), plan);
  CHECK(collnet.nic_load / collnet.count / collnet.network == Approx(20e9));
}

TEST_CASE("lines of CollNet as NCCL_DEBUG=INFO has them") {
  const Summing j = summing("dgx-h100", 2);
  const auto graphs = graph_lines(j.c);
  CHECK(std::ranges::count(graphs,
                           "Pattern 3, crossNic 0, nChannels 8, bw 48.000000/48.000000, type NVL/PIX, "
                           "sameChannels 0") == 1);
  CHECK(std::ranges::count(graphs,
                           "Pattern 6, crossNic 0, nChannels 8, bw 48.000000/48.000000, type NVL/PIX, "
                           "sameChannels 0") == 1);
  CHECK(std::ranges::count(graphs, " 3 : NET/3 GPU/3 GPU/0 GPU/1 GPU/2 GPU/4 GPU/5 GPU/6 GPU/7 NET/3") == 1);
  const auto lines = channel_lines(j.c, channels(j.fabric, j.group, j.c), 9);
  CHECK(std::ranges::count(lines, "CollNet Head  5:  5 13") == 1);
  CHECK(lines.back() ==
        "16 coll channels, 16 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer");
  // Rank 9 is the second of node 1: in channel 1 it is at the NIC, which is rank 16.
  const auto chains = std::ranges::find_if(lines, [](const auto& one) { return one.starts_with("Connected Collnet"); });
  REQUIRE(chains != lines.end());
  CHECK(chains->starts_with("Connected Collnet Chains  [0] 10->9->8 [1] 10->9->16"));
}

namespace {

/// Four GPUs of the first node and two of the second.
Summing of_unlike_nodes() {
  const Fabric fabric = test::built("dgx-h100", 2, {"network.plugin.collnet=true"});
  std::vector<Rank> ranks;
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U, 8U, 9U}) ranks.emplace_back(rank);
  const Group group = Group::listed(std::move(ranks));
  return {fabric, group, *nccl::connect(fabric, group, test::environment({{"NCCL_COLLNET_ENABLE", "1"}}))};
}

}  // namespace

TEST_CASE("chains of CollNet begin at the network on every node, however many ranks each has") {
  const Summing j = of_unlike_nodes();
  const nccl::Channels all = channels(j.fabric, j.group, j.c);
  REQUIRE(!all.collnet_chains.empty());
  // Node by node its ranks, 0 to 3 and 4 and 5, of which the first is below the network, rank 6 of six.
  const std::vector<int>& chain = all.collnet_chains.front();
  for (std::size_t at = 0; at < chain.size(); ++at) {
    const bool first = at == 0 || at == 4, last = at == 3 || at == 5;
    const std::string expected = "Connected Collnet Chains  [0] " + std::to_string(last ? -1 : chain[at + 1]) + "->" +
                                 std::to_string(chain[at]) + "->" + std::to_string(first ? 6 : chain[at - 1]);
    const auto lines = channel_lines(j.c, all, chain[at]);
    CHECK(std::ranges::any_of(lines, [&](const std::string& line) { return line.starts_with(expected); }));
  }
}

TEST_CASE("of unlike numbers of ranks on the nodes there is no simulation, and it says so") {
  const auto [fabric, group, c] = of_unlike_nodes();
  const Plan plan = to_run(c, sum, a_mib, Algorithm::collnet_chain);
  const auto program = nccl::program(fabric, group, c, sum, Bytes(a_mib), plan);
  REQUIRE_FALSE(program.ok());
  CHECK(program.errors().front().message == "the group has unlike numbers of ranks on its nodes");
}

TEST_CASE("variables of CollNet are read, and on a machine without it are said to do nothing") {
  const nccl::Environment e =
      test::environment({{"NCCL_COLLNET_ENABLE", "1"}, {"NCCL_COLLNET_NODE_THRESHOLD", "3"}, {"NCCL_DEBUG", "INFO"}});
  CHECK(e.collnet);
  CHECK(e.collnet_nodes == 3);
  TopologySpec machine;
  CHECK(unused(e, 4, machine) ==
        std::vector<std::string>{"NCCL_COLLNET_ENABLE", "NCCL_COLLNET_NODE_THRESHOLD", "NCCL_DEBUG"});
  CHECK(warnings(e, 4, machine).empty());
  machine.plugin.collnet = true;
  CHECK(unused(e, 4, machine) == std::vector<std::string>{"NCCL_DEBUG"});
  CHECK(warnings(e, 4, machine).size() == 1);
  CHECK(warnings(e, 2, machine).empty());
  const std::vector<nccl::Setting> wrong{{"NCCL_COLLNET_ENABLE", "yes", {"f"}},
                                         {"NCCL_COLLNET_NODE_THRESHOLD", "-1", {"f"}}};
  CHECK(read_environment(wrong).errors().size() == 2);
}
