// The channels that run against logs of NCCL's and against the programs that are simulated, and how they are printed.
#include "collcast/nccl/channels.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collcast/nccl/program.hpp"
#include "machines.hpp"

using namespace collcast;
using nccl::Channel;
using nccl::Channels;
using nccl::Communicator;
using nccl::TreePlace;

namespace {

struct Job {
  Fabric fabric;
  Group group;
  Communicator c;
  Channels channels;
};
Job job(const std::string& machine, int nodes, const std::vector<std::pair<std::string, std::string>>& variables = {}) {
  Fabric fabric = test::built(machine, nodes);
  Group group = Group::strided(Rank(0), 1, fabric.rank_count());
  Communicator c = test::communicator(machine, nodes, 0, test::environment(variables));
  Channels all = nccl::channels(fabric, group, c);
  return {std::move(fabric), std::move(group), std::move(c), std::move(all)};
}

std::vector<std::string> lines_of(const Job& of, int rank = 0) { return channel_lines(of.c, of.channels, rank); }

/// The line that begins so.
std::string line(const std::vector<std::string>& lines, const std::string& begin) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const auto& one) { return one.starts_with(begin); });
  return found == lines.end() ? "no line begins '" + begin + "'" : *found;
}

/// "[5] 6/13/-1->5->-1" of a Trees line.
std::string tree_of(const Job& of, int rank, int channel) {
  const std::string all = line(lines_of(of, rank), "Trees"), from = "[" + std::to_string(channel) + "] ";
  const std::size_t at = all.find(from) + from.size();
  return all.substr(at, all.find(' ', at) - at);
}

constexpr std::array<std::pair<const char*, int>, 18> jobs{{{"dgx-h100", 1},
                                                            {"dgx-h100", 2},
                                                            {"dgx-h100", 3},
                                                            {"dgx-h100", 4},
                                                            {"dgx-a100", 1},
                                                            {"dgx-a100", 2},
                                                            {"dgx-a100", 4},
                                                            {"dgx1-v100", 1},
                                                            {"dgx1-v100", 2},
                                                            {"dgx1-v100", 4},
                                                            {"dgx-b200", 1},
                                                            {"dgx-b200", 2},
                                                            {"dgx-b200", 4},
                                                            {"aws-p4d", 3},
                                                            {"gh200", 5},
                                                            {"v100-pcie-ethernet", 7},
                                                            {"polaris", 6},
                                                            {"l40s-pcie", 2}}};

/// Children of `rank` by TreePlace::down.
std::multiset<int> below(const TreePlace& place) {
  std::multiset<int> out(place.down.begin(), place.down.end());
  out.erase(-1);
  return out;
}

}  // namespace

TEST_CASE("every channel's ring is a permutation of the group") {
  for (const auto& [machine, nodes] : jobs) {
    const Job one = job(machine, nodes);
    INFO(machine << " x" << nodes);
    CHECK(static_cast<int>(one.channels.all.size()) == one.c.channels);
    std::vector<int> all(static_cast<std::size_t>(one.group.size()));
    std::iota(all.begin(), all.end(), 0);
    for (const Channel& channel : one.channels.all)
      CHECK(std::is_permutation(all.begin(), all.end(), channel.ring.begin(), channel.ring.end()));
  }
}

TEST_CASE("a channel's trees over all ranks are one tree, and parents and children name each other") {
  for (const auto& [machine, nodes] : jobs) {
    const Job one = job(machine, nodes);
    INFO(machine << " x" << nodes);
    for (const Channel& channel : one.channels.all) {
      REQUIRE(static_cast<int>(channel.tree.size()) == one.group.size());
      std::vector<std::multiset<int>> children(channel.tree.size());
      int roots = 0;
      for (std::size_t rank = 0; rank < channel.tree.size(); ++rank) {
        const int up = channel.tree[rank].up;
        roots += up < 0;
        if (up >= 0) children[static_cast<std::size_t>(up)].insert(static_cast<int>(rank));
      }
      CHECK(roots == 1);
      CHECK(channel.tree[static_cast<std::size_t>(channel.root())].up == -1);
      for (std::size_t rank = 0; rank < channel.tree.size(); ++rank) CHECK(below(channel.tree[rank]) == children[rank]);
      // One parent each and one root: a tree where all are reached from it.
      std::vector<int> reached{channel.root()};
      for (std::size_t i = 0; i < reached.size() && reached.size() <= channel.tree.size(); ++i)
        for (const int child : children[static_cast<std::size_t>(reached[i])]) reached.push_back(child);
      CHECK(reached.size() == channel.tree.size());
    }
  }
}

TEST_CASE("what is printed is what simulated programs send along") {
  const auto program_of = [](const Job& of, CollectiveKind kind, nccl::Algorithm algorithm) {
    const Bytes size(std::int64_t{64} << 20);
    const nccl::Plan plan = test::planned_as(of.c, kind, size, algorithm, nccl::Protocol::simple);
    REQUIRE(plan.channels == of.c.channels);
    const auto program = nccl::program(of.fabric, of.group, of.c, kind, size, plan);
    INFO(to_text(program.errors()));
    REQUIRE(program.ok());
    return program->pattern;
  };
  for (const auto& [machine, nodes] : jobs) {
    const Job one = job(machine, nodes);
    INFO(machine << " x" << nodes);
    const Pattern rings = program_of(one, CollectiveKind::all_gather, nccl::Algorithm::ring);
    const Pattern trees = program_of(one, CollectiveKind::all_reduce, nccl::Algorithm::tree);
    const Pattern from_root = program_of(one, CollectiveKind::broadcast, nccl::Algorithm::ring);
    const Pattern to_root = program_of(one, CollectiveKind::reduce, nccl::Algorithm::ring);
    REQUIRE(rings.lanes.size() == one.channels.all.size());
    REQUIRE(trees.lanes.size() == one.channels.all.size());
    REQUIRE(from_root.lanes.size() == one.channels.all.size());
    REQUIRE(to_root.lanes.size() == one.channels.all.size());
    for (std::size_t number = 0; number < one.channels.all.size(); ++number) {
      const Channel& channel = one.channels.all[number];
      for (const Pattern* along : {&rings, &from_root, &to_root}) {
        int senders = 0;
        for (Position v = 0; v < along->size(); ++v) {
          const Lane& lane = along->lanes[number];
          const std::size_t at = static_cast<std::size_t>(
              std::find(channel.ring.begin(), channel.ring.end(), lane.participant(v)) - channel.ring.begin());
          const Phase& phase = lane.phases.front();
          if (phase.shape->sends(phase, v) == 0) continue;
          ++senders;
          CHECK(lane.participant(phase.shape->send(phase, v, 0).peer) == channel.ring[(at + 1) % channel.ring.size()]);
        }
        CHECK(senders == along->size() - (along == &rings ? 0 : 1));
      }
      for (Position v = 0; v < trees.size(); ++v) {
        const Lane& lane = trees.lanes[number];
        const Phase& phase = lane.phases.front();
        std::multiset<int> peers;
        for (int hop = 0; hop < phase.shape->sends(phase, v); ++hop)
          peers.insert(lane.participant(phase.shape->send(phase, v, hop).peer));
        const TreePlace& place = channel.tree[static_cast<std::size_t>(lane.participant(v))];
        std::multiset<int> printed = below(place);
        if (place.up >= 0) printed.insert(place.up);
        CHECK(peers == printed);
      }
    }
  }
}

TEST_CASE("trees of two nodes of 8 H100 as their logs have them") {
  // Public log of NCCL 2.24 on two nodes with an NIC per GPU: 16 channels, the chain of channel c from GPU c on.
  const Job two = job("dgx-h100", 2);
  CHECK(two.c.channels == 16);
  for (const auto& [rank, channel, text] :
       {std::tuple(5, 0, "6/-1/-1->5->4"), std::tuple(5, 5, "6/13/-1->5->-1"), std::tuple(5, 6, "-1/-1/-1->5->4"),
        std::tuple(5, 13, "6/-1/-1->5->13"), std::tuple(8, 0, "9/-1/-1->8->0"), std::tuple(8, 8, "9/0/-1->8->-1"),
        std::tuple(13, 5, "14/-1/-1->13->5"), std::tuple(13, 13, "14/5/-1->13->-1"),
        std::tuple(15, 0, "-1/-1/-1->15->14"), std::tuple(15, 1, "8/-1/-1->15->14"),
        std::tuple(15, 15, "8/7/-1->15->-1"), std::tuple(2, 10, "3/-1/-1->2->10")}) {
    INFO("rank " << rank << " channel " << channel);
    CHECK(tree_of(two, rank, channel) == text);
  }
}

TEST_CASE("trees of nodes with one GPU each as logs have them") {
  // Two nodes: channel 1 the other way round. Three: rank 0 on top of 2, and below 1 in the second tree.
  const Job two = job("v100-pcie-ethernet", 2);
  REQUIRE(two.c.channels >= 2);
  const int second = two.c.tree.channels;
  CHECK(tree_of(two, 0, 0) == "1/-1/-1->0->-1");
  CHECK(tree_of(two, 0, second) == "-1/-1/-1->0->1");
  CHECK(line(lines_of(two), "Ring 00") == "Ring 00 : 1 -> 0 -> 1");
  const Job three = job("v100-pcie-ethernet", 3);
  CHECK(tree_of(three, 0, 0) == "2/-1/-1->0->-1");
  CHECK(tree_of(three, 0, second) == "2/-1/-1->0->1");
  CHECK(line(lines_of(three), "Ring 00") == "Ring 00 : 2 -> 0 -> 1");
  CHECK(line(lines_of(three), "Channel 00") == "Channel 00/02 : 0 1 2");
}

TEST_CASE("a node of 8 H100 as NCCL_DEBUG=INFO tells it") {
  const Job one = job("dgx-h100", 1);
  const auto graphs = graph_lines(one.c);
  CHECK(graphs.front() == "Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1");
  CHECK(graphs[1] == " 0 : GPU/0 GPU/1 GPU/2 GPU/3 GPU/4 GPU/5 GPU/6 GPU/7");
  const auto lines = lines_of(one, 3);
  CHECK(line(lines, "NVLS Head  5") == "NVLS Head  5: 5");
  CHECK(line(lines, "Channel 23") == "Channel 23/24 : 0 1 2 3 4 5 6 7");
  CHECK(line(lines, "Ring 23") == "Ring 23 : 2 -> 3 -> 4");
  CHECK(tree_of(one, 3, 0) == "4/-1/-1->3->2");
  CHECK(lines.back() ==
        "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer");
}

TEST_CASE("heads of NVLS come and go by the NIC nearest to them, of which each has one at most") {
  const auto nics_of = [](const char* machine) {
    std::vector<int> out;
    const Communicator c = test::communicator(machine, 2);
    for (const nccl::ChannelNics& one : c.nvls->nics) {
      CHECK(one.in == one.out);
      out.push_back(one.in);
    }
    return out;
  };
  CHECK(nics_of("dgx-h100") == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(nics_of("gcp-a3-high") == std::vector<int>{0, 1, 2, 3});
  CHECK(test::communicator("dgx-h100", 1).nvls->nics.empty());
  CHECK(graph_lines(test::communicator("dgx-h100", 2)).back() == " 7 : NET/7 GPU/7 NET/7");
}

TEST_CASE("heads of NVLS are the same GPU of every node") {
  const auto lines = lines_of(job("dgx-h100", 2));
  CHECK(line(lines, "NVLS Head  0") == "NVLS Head  0:  0  8");
  CHECK(line(lines, "NVLS Head  7") == "NVLS Head  7:  7 15");
  CHECK(job("dgx-a100", 2).channels.nvls_heads.empty());
  CHECK(job("dgx-h100", 2, {{"NCCL_NVLS_ENABLE", "0"}}).channels.nvls_heads.empty());
}

TEST_CASE("rings of two nodes of 8 H100 are those of a public log") {
  // NCCL 2.24 on two nodes with a NIC beside each GPU; channels 08 to 15 are these once more.
  const std::vector<std::string> logged{"Channel 00/16 :  0  7  6  5  4  3  2  1  9 10 11 12 13 14 15  8",
                                        "Channel 01/16 :  0  8 15 14 13 12 11 10  9  1  2  3  4  5  6  7",
                                        "Channel 02/16 :  0  7  6  5  4  3 11 12 13 14 15  8  9 10  2  1",
                                        "Channel 03/16 :  0  1  2 10  9  8 15 14 13 12 11  3  4  5  6  7",
                                        "Channel 04/16 :  0  7  6  5 13 14 15  8  9 10 11 12  4  3  2  1",
                                        "Channel 05/16 :  0  1  2  3  4 12 11 10  9  8 15 14 13  5  6  7",
                                        "Channel 06/16 :  0  7 15  8  9 10 11 12 13 14  6  5  4  3  2  1",
                                        "Channel 07/16 :  0  1  2  3  4  5  6 14 13 12 11 10  9  8 15  7"};
  const auto lines = lines_of(job("dgx-h100", 2));
  for (std::size_t channel = 0; channel < 16; ++channel) {
    std::string expected = logged[channel % 8];
    expected.replace(8, 2, (channel < 10 ? "0" : "") + std::to_string(channel));
    CHECK(line(lines, expected.substr(0, 10)) == expected);
  }
}

TEST_CASE("a ring enters the next node on the rail that it left one on, but where it closes over an odd number") {
  for (const char* machine : {"dgx-h100", "dgx-b200", "polaris", "dgx-a100"})
    for (const int nodes : {2, 3, 4, 5}) {
      const Job all = job(machine, nodes);
      const int per_node = all.c.ranks_per_node;
      const auto nic_of = [&](std::size_t channel, int node, bool out) {
        const auto& nics = all.c.ring.nics;
        const std::size_t at = channel % nics.size(), other = at ^ 1;
        const nccl::ChannelNics& own = nics[at];
        const nccl::ChannelNics& one = node % 2 == 1 && own.in != own.out ? nics.at(other) : own;
        return out ? one.out : one.in;
      };
      for (std::size_t channel = 0; channel < all.channels.all.size(); ++channel) {
        const std::vector<int>& ring = all.channels.all[channel].ring;
        INFO(machine << " x" << nodes << " channel " << channel);
        for (int node = 0; node < nodes; ++node) {
          const auto first = ring.begin() + node * per_node;
          const auto& expected =
              all.c.ring.order[(channel % all.c.ring.order.size()) ^
                               (nic_of(channel, node, false) == nic_of(channel, 0, false) ? 0U : 1U)];
          CHECK(std::equal(expected.begin(), expected.end(), first,
                           [&](int gpu, int rank) { return rank == node * per_node + gpu; }));
          if (node + 1 < nodes) CHECK(nic_of(channel, node, true) == nic_of(channel, node + 1, false));
        }
      }
    }
}

TEST_CASE("sameChannels is of channels that pass the GPUs in one order, by whatever NICs") {
  const auto same = [](const char* machine, int nodes, int per_node) {
    std::string out;
    for (const std::string& said : graph_lines(test::communicator(machine, nodes, per_node)))
      if (said.starts_with("Pattern")) out += said.substr(8, 1) + said.substr(said.size() - 2) + " ";
    return out;
  };
  // Logs of 8 H100 have 1 of rings and trees and 0 of NVLS (github.com/NVIDIA/nccl/issues/1197, 1519).
  CHECK(same("dgx-h100", 1, 0) == "4 1 1 1 5 0 ");
  CHECK(same("dgx-h100", 2, 0) == "4 0 1 0 5 0 ");
  CHECK(same("dgx1-v100", 1, 0) == "4 0 1 0 ");
  CHECK(same("l40s-pcie", 1, 0) == "4 1 1 1 ");
  // One GPU, and by whatever NICs.
  Communicator one = test::communicator("aws-p5", 2, 1);
  REQUIRE(one.ring.nics.size() == 2);
  one.ring.nics[1].in = one.ring.nics[1].out = 1;
  CHECK_THAT(graph_lines(one).front(), Catch::EndsWith("sameChannels 1"));
}

TEST_CASE("channels across nodes come in and go out beside their GPUs, each NIC once each way") {
  // Logs of two nodes of 8 H100 with an NIC beside each GPU: crossNic 2, 48 GB/s, NVL/PIX.
  const Job h100 = job("dgx-h100", 2);
  const auto lines = graph_lines(h100.c);
  CHECK(lines.front() == "Pattern 4, crossNic 2, nChannels 8, bw 48.000000/48.000000, type NVL/PIX, sameChannels 0");
  CHECK(lines[4] == " 3 : NET/3 GPU/3 GPU/4 GPU/5 GPU/6 GPU/7 GPU/0 GPU/1 GPU/2 NET/2");
  for (const auto& [machine, nodes] : jobs) {
    if (nodes == 1) continue;
    const Communicator c = test::communicator(machine, nodes);
    INFO(machine << " x" << nodes);
    for (const nccl::Graph* graph : {&c.ring, &c.tree}) {
      REQUIRE(graph->nics.size() == graph->order.size());
      std::map<int, double> in, out;
      for (const nccl::ChannelNics& one : graph->nics) {
        in[one.in] += graph->between.value();
        out[one.out] += graph->between.value();
        CHECK(one.way_in == graph->type_between);
        if (graph == &c.tree) CHECK(one.in == one.out);
      }
      for (const auto& [nic, booked] : in) CHECK(booked <= c.nics.rate.value() * 1.000001);
      for (const auto& [nic, booked] : out) CHECK(booked <= c.nics.rate.value() * 1.000001);
    }
  }
}

TEST_CASE("the way to a NIC that a ring's last GPU is not beside is told: PXN over NVLink, else the host") {
  const auto far = [](const Communicator& c) {
    std::vector<std::string> out;
    for (const std::string& one : graph_lines(c))
      if (one.starts_with("GPU/")) out.push_back(one);
    return out;
  };
  CHECK(far(test::communicator("dgx-h100", 2)).empty());
  // Three NICs, at the switches of GPUs 0, 2 and 4: two rings change NICs with each other, the third ends at GPU 5;
  // trees come and go by their first.
  TopologySpec spec = test::shipped("dgx-h100");
  for (DeviceGroup& devices : spec.devices)
    if (devices.kind == DeviceKind::nic) devices.count = 3;
  for (LinkGroup& link : spec.links)
    if (link.from == "nic") {
      link.wiring = Wiring::pairs;
      link.pairs = {{0, 0}, {1, 2}, {2, 4}};
    }
  const Result<Fabric> three = Fabric::build(spec, 2);
  INFO(to_text(three.errors()));
  REQUIRE(three.ok());
  const Group all = Group::strided(Rank(0), 1, 16);
  const auto with_nvlink = nccl::connect(*three, all, test::environment({{"NCCL_NVLS_ENABLE", "0"}}));
  REQUIRE(with_nvlink.ok());
  CHECK(far(*with_nvlink) == std::vector<std::string>{"GPU/5 :NET/2 (PXN)"});
  // Over AMD's sockets no two rings change NICs with each other.
  spec.host.cpu = CpuFamily::amd;
  const Result<Fabric> of_amd = Fabric::build(spec, 2);
  REQUIRE(of_amd.ok());
  const auto by_host = nccl::connect(*of_amd, all, test::environment({{"NCCL_P2P_DISABLE", "1"}}));
  REQUIRE(by_host.ok());
  CHECK_FALSE(far(*by_host).empty());
  for (const std::string& way : far(*by_host)) CHECK(way.find("PXN") == std::string::npos);
}

TEST_CASE("variables show in the channels") {
  CHECK(job("dgx-h100", 2, {{"NCCL_MAX_NCHANNELS", "4"}}).channels.all.size() == 4);
  const Job many = job("dgx-h100", 2, {{"NCCL_MIN_NCHANNELS", "32"}});
  CHECK(many.channels.all.size() == 32);
  // Copies are in turn on either tree.
  for (const auto& [channel, root] : {std::pair(0, 0), std::pair(8, 8), std::pair(16, 0), std::pair(24, 8)})
    CHECK(many.channels.all[static_cast<std::size_t>(channel)].root() == root);
  const auto lines = graph_lines(job("dgx-h100", 2, {{"NCCL_NET_GDR_LEVEL", "LOC"}}).c);
  CHECK(lines.front().find("type NVL/PHB") != std::string::npos);
}

TEST_CASE("long rings say how much of them is left out") {
  const Job large = job("dgx-h100", 9);
  const std::string ring = line(lines_of(large), "Channel 00");
  CHECK(ring.ends_with(" 62 63 56 ... and 8 more"));
  CHECK(line(channel_lines(large.c, large.channels, 0, 72), "Channel 00").ends_with(" 67 66 65"));
  CHECK(line(lines_of(job("dgx-h100", 8)), "Channel 00").ends_with(" 62 63 56"));
}
