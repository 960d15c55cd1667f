// Variables and their values, good and bad.
#include "collcast/nccl/environment.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "machines.hpp"
#include "nccl/variables.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Protocol;

namespace {

Diagnostics wrong(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<nccl::Setting> settings;
  for (const auto& [name, value] : variables) settings.push_back({name, value, {"command line"}});
  const auto out = nccl::read_environment(settings);
  return out.errors();
}

}  // namespace

TEST_CASE("NCCL_ALGO is a list, all but a list, or lists by collective") {
  const auto ring = test::environment({{"NCCL_ALGO", "RING"}});
  CHECK(ring.allows(CollectiveKind::all_reduce, Algorithm::ring));
  CHECK_FALSE(ring.allows(CollectiveKind::all_reduce, Algorithm::tree));
  const auto but = test::environment({{"NCCL_ALGO", "^tree,nvlstree"}});
  CHECK_FALSE(but.allows(CollectiveKind::all_reduce, Algorithm::nvls_tree));
  CHECK(but.allows(CollectiveKind::all_reduce, Algorithm::nvls));
  const auto some = test::environment({{"NCCL_PROTO", "allreduce:ll,ll128;broadcast:simple"}});
  CHECK_FALSE(some.allows(CollectiveKind::all_reduce, Protocol::simple));
  CHECK(some.allows(CollectiveKind::broadcast, Protocol::simple));
  CHECK(some.allows(CollectiveKind::all_gather, Protocol::ll));
  CHECK_FALSE(some.names_protocols(CollectiveKind::all_gather));
}

TEST_CASE("numbers are read, names without effect are kept") {
  const auto e = test::environment({{"NCCL_BUFFSIZE", "8388608"},
                                    {"NCCL_NTHREADS", "256"},
                                    {"NCCL_MIN_NRINGS", "4"},
                                    {"NCCL_NVLS_ENABLE", "0"},
                                    {"NCCL_DEBUG", "INFO"}});
  const auto level = [](const char* word) { return test::environment({{"NCCL_NET_GDR_LEVEL", word}}).gpudirect_level; };
  CHECK(test::environment({}).gpudirect_level == nccl::PathType::pxb);
  CHECK(level("LOC") == nccl::PathType::loc);
  CHECK(level("SYS") == nccl::PathType::sys);
  CHECK(level("1") == nccl::PathType::pix);
  CHECK(level("3") == nccl::PathType::phb);
  CHECK(level("PXN") == nccl::PathType::pxn);
  CHECK_FALSE(test::environment({{"NCCL_PAT_ENABLE", "0"}}).pat);
  CHECK(test::environment({{"NCCL_NVLS_CHUNKSIZE", "524288"}}).nvls_chunk == Bytes(512 << 10));
  CHECK(test::environment({{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "65536"}}).nvls_tree_chunk == Bytes(64 << 10));
  CHECK_FALSE(test::environment({}).nvls_chunk);
  CHECK(test::environment({}).cross_nic == nccl::CrossNic::if_needed);
  CHECK(test::environment({{"NCCL_CROSS_NIC", "0"}}).cross_nic == nccl::CrossNic::never);
  CHECK(test::environment({{"NCCL_CROSS_NIC", "1"}}).cross_nic == nccl::CrossNic::always);
  CHECK_FALSE(test::environment({{"NCCL_PXN_DISABLE", "1"}}).relays());
  CHECK_FALSE(test::environment({{"NCCL_P2P_PXN_LEVEL", "0"}}).pxn_of_pairs);
  CHECK(test::environment({{"NCCL_P2P_PXN_LEVEL", "1"}}).pxn_of_pairs);
  CHECK(e.simple_buffer == Bytes(8 << 20));
  CHECK(e.threads == 256);
  CHECK(e.min_channels == 4);
  CHECK_FALSE(e.nvls);
  CHECK(e.without_effect == std::vector<std::string>{"NCCL_DEBUG"});
  CHECK(text_of(e) == "NCCL_BUFFSIZE=8388608 NCCL_NTHREADS=256 NCCL_MIN_NRINGS=4 NCCL_NVLS_ENABLE=0 NCCL_DEBUG=INFO");
}

TEST_CASE("of two names of a number of channels the newer counts, in either order, and the older is named") {
  const std::vector<std::pair<std::string, std::string>> older{{"NCCL_MIN_NRINGS", "4"}, {"NCCL_MAX_NRINGS", "6"}},
      newer{{"NCCL_MIN_NCHANNELS", "8"}, {"NCCL_MAX_NCHANNELS", "12"}};
  for (const bool first : {false, true}) {
    auto all = first ? older : newer;
    const auto& more = first ? newer : older;
    all.insert(all.end(), more.begin(), more.end());
    const auto e = test::environment(all);
    CHECK(e.min_channels == 8);
    CHECK(e.max_channels == 12);
    CHECK(e.without_effect == std::vector<std::string>{"NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"});
  }
  CHECK(test::environment(older).max_channels == 6);
  CHECK(test::environment(older).without_effect.empty());
}

TEST_CASE("NCCL_P2P_LEVEL=LOC is NCCL_P2P_DISABLE=1, and other levels change nothing over NVLink") {
  const auto all_reduce_of = [](const char* machine, const std::string& name, const std::string& value) {
    const auto c = test::communicator(machine, 1, 0, test::environment({{name, value}}));
    return test::ran(c, CollectiveKind::all_reduce, 64 << 20).time();
  };
  for (const char* machine : {"dgx-a100", "dgx1-v100", "pcie-a100"})
    for (const char* level : {"LOC", "0"})
      CHECK(all_reduce_of(machine, "NCCL_P2P_LEVEL", level) == all_reduce_of(machine, "NCCL_P2P_DISABLE", "1"));
  CHECK(all_reduce_of("dgx-a100", "NCCL_P2P_LEVEL", "LOC") > 5 * all_reduce_of("dgx-a100", "NCCL_DEBUG", "INFO"));
  const TopologySpec a100 = test::shipped("dgx-a100"), dgx1 = test::shipped("dgx1-v100");
  for (const char* level : {"NVL", "PIX", "PXB", "PHB", "SYS", "1", "5"}) {
    const nccl::Environment e = test::environment({{"NCCL_P2P_LEVEL", level}});
    CHECK(all_reduce_of("dgx-a100", "NCCL_P2P_LEVEL", level) == all_reduce_of("dgx-a100", "NCCL_DEBUG", "INFO"));
    CHECK(unused(e, 2, a100) == std::vector<std::string>{"NCCL_P2P_LEVEL"});
    CHECK(warnings(e, 2, a100).empty());
  }
  // Pairs of a DGX-1 without an NVLink go through another GPU, which is farther than NVL.
  CHECK(warnings(test::environment({{"NCCL_P2P_LEVEL", "NVL"}}), 1, dgx1).size() == 1);
  CHECK(warnings(test::environment({{"NCCL_P2P_LEVEL", "PIX"}}), 1, dgx1).empty());
}

TEST_CASE("over PCIe a level that no two GPUs are as near as is no peer access, one that some are is warned of") {
  const TopologySpec cards = test::shipped("pcie-a100");
  const auto access = [](int gpus, const char* level) {
    const auto e = test::environment({{"NCCL_P2P_LEVEL", level}});
    return test::communicator("pcie-a100", 1, gpus, e).environment.peer_access;
  };
  CHECK_FALSE(access(8, "NVL"));
  CHECK_FALSE(access(2, "NVL"));
  CHECK(access(8, "PXB"));
  CHECK(unused(test::environment({{"NCCL_P2P_LEVEL", "PXB"}}), 2, cards) == std::vector<std::string>{"NCCL_P2P_LEVEL"});
  CHECK(unused(test::environment({{"NCCL_P2P_LEVEL", "NVL"}}), 2, cards).empty());
  CHECK(warnings(test::environment({{"NCCL_P2P_LEVEL", "NVL"}}), 1, cards).empty());
  // More than usual, between sockets.
  const Diagnostics more = warnings(test::environment({{"NCCL_P2P_LEVEL", "SYS"}}), 1, cards);
  REQUIRE(more.size() == 1);
  CHECK_THAT(more[0].message, Catch::StartsWith("NCCL_P2P_LEVEL=SYS is not modelled here"));
  CHECK(access(8, "SYS"));
}

TEST_CASE("channels of pairs are within NCCL's limits, and those to another node as many as are asked for") {
  const auto channels = [](const char* machine, int nodes,
                           const std::vector<std::pair<std::string, std::string>>& variables) {
    const auto c = test::communicator(machine, nodes, 0, test::environment(variables));
    return std::pair(c.p2p_channels, c.p2p_channels_per_peer);
  };
  CHECK(channels("dgx-h100", 1, {}) == std::pair(32, 32));
  CHECK(channels("dgx-h100", 1, {{"NCCL_MAX_P2P_NCHANNELS", "6"}}) == std::pair(8, 8));
  CHECK(channels("dgx-a100", 1, {{"NCCL_MIN_P2P_NCHANNELS", "40"}}).first == 64);
  CHECK(channels("dgx-h100", 2, {}) == std::pair(32, 2));
  CHECK(channels("dgx-h100", 2, {{"NCCL_NCHANNELS_PER_NET_PEER", "4"}}) == std::pair(32, 4));
  CHECK(channels("dgx-h100", 2, {{"NCCL_NCHANNELS_PER_NET_PEER", "-1"}}) == std::pair(32, 2));
  CHECK(channels("pcie-a100", 2, {{"NCCL_NCHANNELS_PER_NET_PEER", "8"}}).second == 2);
  const auto alltoall = [](const std::vector<std::pair<std::string, std::string>>& variables) {
    const auto c = test::communicator("dgx-h100", 1, 0, test::environment(variables));
    return test::ran(c, CollectiveKind::alltoall, 64 << 20).time();
  };
  CHECK(alltoall({{"NCCL_MAX_P2P_NCHANNELS", "2"}}) > 2 * alltoall({}));
}

TEST_CASE("sizes of chunks of pairs are warned of where they count") {
  const TopologySpec a100 = test::shipped("dgx-a100"), cards = test::shipped("pcie-a100");
  const nccl::Environment e = test::environment({{"NCCL_P2P_NET_CHUNKSIZE", "524288"},
                                                 {"NCCL_P2P_NVL_CHUNKSIZE", "131072"},
                                                 {"NCCL_P2P_PCI_CHUNKSIZE", "65536"}});
  const auto said = [&](int nodes, const TopologySpec& machine) {
    const Diagnostics all = warnings(e, nodes, machine);
    REQUIRE(all.size() == 1);
    return all[0].message;
  };
  CHECK_THAT(said(2, a100), Catch::StartsWith("NCCL_P2P_NET_CHUNKSIZE=524288 is not modelled"));
  CHECK_THAT(said(1, a100), Catch::StartsWith("NCCL_P2P_NVL_CHUNKSIZE=131072 is not modelled"));
  CHECK_THAT(said(1, cards), Catch::StartsWith("NCCL_P2P_PCI_CHUNKSIZE=65536 is not modelled"));
  // Over the other kind of link a size counts nowhere.
  CHECK(unused(e, 2, a100) == std::vector<std::string>{"NCCL_P2P_PCI_CHUNKSIZE"});
  CHECK(unused(e, 2, cards) == std::vector<std::string>{"NCCL_P2P_NVL_CHUNKSIZE"});
  for (const int nodes : {1, 2}) {
    CHECK(warnings(test::environment({{"NCCL_CHUNK_SIZE", "65536"}}), nodes, a100).size() == 1);
    CHECK(warnings(test::environment({{"NCCL_CHUNK_SIZE", "0"}}), nodes, a100).empty());
  }
  CHECK(unused(test::environment({{"NCCL_CHUNK_SIZE", "0"}}), 2, a100) == std::vector<std::string>{"NCCL_CHUNK_SIZE"});
}

TEST_CASE("fewer threads than NCCL's own are warned of") {
  const TopologySpec a100 = test::shipped("dgx-a100");
  const auto said = [&](const std::vector<std::pair<std::string, std::string>>& variables) {
    return warnings(test::environment(variables), 1, a100);
  };
  const Diagnostics both = said({{"NCCL_NTHREADS", "64"}, {"NCCL_LL128_NTHREADS", "160"}});
  REQUIRE(both.size() == 2);
  CHECK_THAT(
      both[0].message,
      Catch::StartsWith("NCCL_NTHREADS=64: the forecast has what NCCL's own threads of a channel move, up to 512,"));
  CHECK_THAT(both[1].message,
             Catch::StartsWith(
                 "NCCL_LL128_NTHREADS=160: the forecast has what NCCL's own threads of a channel move, up to 640,"));
  CHECK(said({{"NCCL_NTHREADS", "512"}, {"NCCL_LL128_NTHREADS", "640"}}).empty());
}

TEST_CASE("sockets in place of the described NICs are warned of, with what to do") {
  const auto said = [](const std::vector<std::pair<std::string, std::string>>& variables, int nodes = 2,
                       bool sockets = false) {
    TopologySpec machine;
    machine.plugin.sockets = sockets;
    return warnings(test::environment(variables), nodes, machine);
  };
  const Diagnostics two = said({{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}});
  REQUIRE(two.size() == 2);
  CHECK(two[0].message ==
        "NCCL_NET=Socket: NCCL would take other ways between nodes; the forecast is of the NICs as the machine's file "
        "describes them");
  CHECK(two[1].hint.find("--link-bandwidth, --link-latency") != std::string::npos);
  CHECK(said({{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "0"}}).empty());
  // On one node there are no NICs in use, and of a network of sockets it is no news.
  CHECK(said({{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}}, 1).empty());
  CHECK(said({{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}}, 2, true).empty());
  CHECK(test::environment({{"NCCL_NET", "IB"}}).without_effect == std::vector<std::string>{"NCCL_NET"});
}

TEST_CASE("fewer adapters than the machine has NICs are warned of, in place of having no effect") {
  const auto said = [](const char* list, const char* machine = "dgx-h100", int nodes = 2) {
    return warnings(test::environment({{"NCCL_IB_HCA", list}}), nodes, test::shipped(machine));
  };
  const auto without_effect = [](const char* list, const char* machine = "dgx-h100") {
    return !unused(test::environment({{"NCCL_IB_HCA", list}}), 2, test::shipped(machine)).empty();
  };
  REQUIRE(said("mlx5_0").size() == 1);
  CHECK(said("mlx5_0")[0].message == "NCCL_IB_HCA=mlx5_0 names 1 of a node's 8 NICs; the forecast is of all");
  CHECK(said("mlx5_0")[0].hint.find("nics_per_node") != std::string::npos);
  CHECK_FALSE(without_effect("mlx5_0"));
  for (const char* fewer : {"=mlx5_0,mlx5_3", "mlx5_0:1, mlx5_3:1,", "rocep1s0f0", "mlx5_0,mlx5_1,mlx5_2,mlx5_3"}) {
    CHECK(said(fewer).size() == 1);
    CHECK_FALSE(without_effect(fewer));
  }
  // What is left out, what begins so, and as many as there are.
  for (const char* open : {"^mlx5_0", "^=mlx5_0", "mlx5", "mlx5_", "mlx5_bond", "", "=",
                           "mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11"}) {
    INFO(open);
    CHECK(said(open).empty());
    CHECK(without_effect(open));
  }
  CHECK(said("mlx5_0,mlx5_1,mlx5_2,mlx5_3", "abci-a100").empty());  // that has four
  CHECK(said("mlx5_0", "dgx-h100", 1).empty());
  CHECK(said("mlx5_0", "gb200-nvl72").empty());  // each server of the rack has such names
  CHECK(said("mlx5_0", "v100-pcie-ethernet").empty());
  CHECK(without_effect("mlx5_0", "v100-pcie-ethernet"));
}

TEST_CASE("what a machine sets holds where nobody else does, in jobs of several nodes") {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  const Variables sets{{"NCCL_PROTO", "Simple"}, {"NCCL_MAX_NCHANNELS", "8"}};
  const auto with = [&](const Variables& given) { return *nccl::with_defaults(test::environment(given), sets); };
  CHECK(text_of(with({})) == "NCCL_PROTO=Simple NCCL_MAX_NCHANNELS=8");
  CHECK_FALSE(with({}).allows(CollectiveKind::all_reduce, Protocol::ll));
  CHECK(text_of(with({{"NCCL_PROTO", "LL"}})) == "NCCL_PROTO=LL NCCL_MAX_NCHANNELS=8");
  CHECK(with({{"NCCL_PROTO", "LL"}}).allows(CollectiveKind::all_reduce, Protocol::ll));
  CHECK(with({{"NCCL_MAX_NRINGS", "4"}}).max_channels == 4);  // its older name
  // What was given and what the machine sets may not go together.
  const Result<nccl::Environment> both = nccl::with_defaults(test::environment({{"NCCL_MIN_NCHANNELS", "16"}}), sets);
  REQUIRE_FALSE(both.ok());
  CHECK(both.errors().front().message == "at least 16 channels but at most 8");
  CHECK(both.errors().front().where.file == "command line");
  CHECK_THAT(both.errors().front().hint, Catch::EndsWith("; the machine sets NCCL_PROTO=Simple NCCL_MAX_NCHANNELS=8"));
  // AWS's plugin on p4d: NCCL takes Simple for every size, of groups inside a node too, unless the job is on one.
  const auto taken = [](int nodes, int ranks, const Variables& given) {
    const Fabric fabric = test::built("aws-p4d", nodes);
    const auto c = nccl::connect(fabric, Group::strided(Rank(0), 1, ranks), test::environment(given));
    return nccl::plan(*c, CollectiveKind::all_reduce, Bytes(1024))->protocol;
  };
  CHECK(taken(2, 16, {}) == Protocol::simple);
  CHECK(taken(2, 8, {}) == Protocol::simple);
  CHECK(taken(1, 8, {}) == Protocol::ll);
  CHECK(taken(2, 16, {{"NCCL_PROTO", "LL,LL128,Simple"}}) == Protocol::ll);
}

TEST_CASE("limits in blocks are of all channels, those in channels not of NVLS") {
  const auto channels = [](const std::vector<std::pair<std::string, std::string>>& variables, const char* machine,
                           int nodes = 1) {
    const auto c = test::communicator(machine, nodes, 0, test::environment(variables));
    return std::pair(c.channels, c.nvls_channels);
  };
  CHECK(channels({}, "dgx-h100") == std::pair(24, 16));
  CHECK(channels({{"NCCL_MAX_CTAS", "4"}}, "dgx-h100") == std::pair(4, 4));
  CHECK(channels({{"NCCL_MIN_CTAS", "32"}}, "dgx-h100") == std::pair(32, 32));
  CHECK(channels({{"NCCL_MAX_NCHANNELS", "4"}}, "dgx-h100") == std::pair(4, 16));
  CHECK(channels({{"NCCL_MIN_NCHANNELS", "32"}}, "dgx-h100") == std::pair(32, 16));
  CHECK(channels({{"NCCL_NVLS_NCHANNELS", "8"}}, "dgx-h100") == std::pair(24, 8));
  CHECK(channels({{"NCCL_NVLS_NCHANNELS", "20"}, {"NCCL_MAX_CTAS", "12"}}, "dgx-b200") == std::pair(12, 12));
  CHECK(channels({{"NCCL_MAX_CTAS", "28"}}, "dgx-b200", 2).second == 28);
  // Both are given: the narrower.
  CHECK(channels({{"NCCL_MAX_CTAS", "12"}, {"NCCL_MAX_NCHANNELS", "20"}}, "dgx-h100") == std::pair(12, 12));
  CHECK(channels({{"NCCL_MAX_CTAS", "12"}, {"NCCL_MAX_NCHANNELS", "8"}}, "dgx-h100") == std::pair(8, 12));
}

TEST_CASE("chunks of NVLS are whole grains within limits") {
  const Diagnostics errors =
      wrong({{"NCCL_NVLS_CHUNKSIZE", "128KiB"}, {"NCCL_NVLSTREE_MAX_CHUNKSIZE", "131000"}, {"NCCL_NVB_DISABLE", "2"}});
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].message == "NCCL_NVLS_CHUNKSIZE=128KiB: out of range or no whole number");
  CHECK(errors[0].hint == "expected a multiple of 512 from 4096 to 16777216");
  CHECK(errors[1].hint == errors[0].hint);
  CHECK(errors[2].hint == "expected a whole number from 0 to 1");
  CHECK(wrong({{"NCCL_NVLS_CHUNKSIZE", "2048"}}).size() == 1);
  CHECK(wrong({{"NCCL_NVLS_CHUNKSIZE", "33554432"}}).size() == 1);
}

TEST_CASE("everything that is wrong is said at once, with the nearest right word") {
  const Diagnostics errors = wrong({{"NCCL_ALGO", "rnig"},
                                    {"NCCL_PROTO", "ll,"},
                                    {"NCCL_NTHREADS", "100"},
                                    {"NCCL_MAX_NCHANNELS", "0"},
                                    {"NCCL_BUFSIZE", "1"},
                                    {"NCCL_LL_BUFFSIZE", "4MiB"},
                                    {"NCCL_NET_GDR_LEVEL", "6"}});
  REQUIRE(errors.size() == 7);
  CHECK(errors[6].hint == "expected LOC, PIX, PXB, PHB or SYS (or another path's name), or 0 to 5");
  CHECK(errors[0].message == "NCCL_ALGO=rnig: unknown name 'rnig'");
  CHECK(errors[0].hint.find("did you mean 'ring'?") == 0);
  CHECK(errors[1].message == "NCCL_PROTO=ll,: a name is missing");
  CHECK(errors[2].hint == "expected a multiple of 32 from 64 to 512");
  CHECK(errors[3].hint == "expected a whole number from 1 to 64");
  CHECK(errors[4].message == "unknown variable 'NCCL_BUFSIZE'");
  CHECK(errors[4].hint == "did you mean 'NCCL_BUFFSIZE'?");
  CHECK(errors[5].message == "NCCL_LL_BUFFSIZE=4MiB: out of range or no whole number");
}

TEST_CASE("every variable is offered for its name less a letter, and no name has two rows") {
  std::vector<std::string_view> names;
  for (const nccl::Variable& one : nccl::variables()) {
    CHECK(std::ranges::count(names, one.name) == 0);
    names.push_back(one.name);
    const Diagnostics errors = wrong({{std::string(one.name.substr(0, one.name.size() - 1)), "1"}});
    REQUIRE(errors.size() == 1);
    CHECK(errors.front().hint == "did you mean '" + std::string(one.name) + "'?");
  }
  CHECK(std::ranges::count(names, "NCCL_NVB_DISABLE") == 1);
  // Where none is near, those that forecasts follow are listed.
  const Diagnostics far = wrong({{"LD_LIBRARY_PATH", "1"}});
  REQUIRE(far.size() == 1);
  CHECK_THAT(far.front().hint, Catch::StartsWith("those that change a forecast: NCCL_ALGO, NCCL_PROTO, ") &&
                                   Catch::EndsWith(", NCCL_COLLNET_ENABLE, NCCL_COLLNET_NODE_THRESHOLD"));
}

TEST_CASE("lists by collective name NCCL's collectives") {
  const Diagnostics errors = wrong({{"NCCL_ALGO", "allreduc:ring"}});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message == "NCCL_ALGO=allreduc:ring: unknown collective 'allreduc'");
  CHECK(errors[0].hint.find("did you mean 'allreduce'?") == 0);
}

TEST_CASE("what contradicts itself is refused") {
  CHECK(wrong({{"NCCL_MIN_NCHANNELS", "8"}, {"NCCL_MAX_NCHANNELS", "4"}}).front().message ==
        "at least 8 channels but at most 4");
  CHECK(wrong({{"NCCL_MIN_CTAS", "8"}, {"NCCL_MAX_CTAS", "4"}}).front().hint ==
        "expected NCCL_MIN_CTAS within NCCL_MAX_CTAS");
  CHECK(wrong({{"NCCL_NVLS_NCHANNELS", "0"}}).front().hint == "expected a whole number from 1 to 64");
  CHECK(wrong({{"NCCL_ALGO", "ring"}, {"NCCL_ALGO", "tree"}}).front().message == "NCCL_ALGO is given twice");
}

TEST_CASE("NCCL_NET_GDR_LEVEL is named where it changes nothing, and warned of where it would and does not") {
  const auto says = [](const char* machine, const char* level) {
    const nccl::Environment e = test::environment({{"NCCL_NET_GDR_LEVEL", level}});
    return std::pair(!unused(e, 2, test::shipped(machine)).empty(), warnings(e, 2, test::shipped(machine)).size());
  };
  const std::pair<bool, std::size_t> nothing{true, 0}, followed{false, 0}, warned{false, 1};
  // NICs behind the GPUs' own PCIe switches.
  CHECK(says("dgx-h100", "LOC") == followed);
  CHECK(says("dgx-h100", "PIX") == nothing);
  CHECK(says("dgx-h100", "SYS") == nothing);
  // NICs at the processor: over the host with and without it.
  CHECK(says("pcie-a100", "PIX") == nothing);
  CHECK(says("pcie-a100", "PHB") == warned);
  CHECK(says("pcie-a100", "SYS") == warned);
  // What is named or warned of moves no forecast.
  for (const std::string& machine : test::machines_of_gpus())
    for (const char* level : {"LOC", "PIX", "PXB", "PHB", "SYS"}) {
      INFO(machine << ' ' << level);
      const auto time = [&](const nccl::Environment& e) {
        return test::ran(test::communicator(machine, 2, 0, e), CollectiveKind::all_gather, 64 << 20).time();
      };
      if (says(machine.c_str(), level) == followed) continue;
      CHECK(time(test::environment({{"NCCL_NET_GDR_LEVEL", level}})) == time({}));
    }
}

TEST_CASE("a contradiction stands at the last of the variables that are in it, whatever else is given") {
  const auto place = [](const std::vector<std::string>& variables) {
    std::vector<nccl::Setting> settings;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const std::size_t equals = variables[i].find('=');
      settings.push_back({variables[i].substr(0, equals), variables[i].substr(equals + 1), {"table", int(i) + 1, 1}});
    }
    const auto out = nccl::read_environment(settings);
    REQUIRE_FALSE(out.ok());
    REQUIRE(out.errors().size() == 1);
    return out.errors().front().where.line;
  };
  CHECK(place({"NCCL_MIN_NCHANNELS=8", "NCCL_MAX_NCHANNELS=4", "NCCL_DEBUG=INFO"}) == 2);
  CHECK(place({"NCCL_MAX_NCHANNELS=4", "NCCL_PROTO=LL", "NCCL_MIN_NCHANNELS=8", "NCCL_DEBUG=INFO"}) == 3);
  CHECK(place({"NCCL_MIN_CTAS=8", "NCCL_MAX_CTAS=4", "NCCL_MAX_NCHANNELS=4"}) == 2);
  // By an older name, which is passed over beside the newer one.
  CHECK(place({"NCCL_MIN_NRINGS=8", "NCCL_MAX_NRINGS=4", "NCCL_DEBUG=INFO"}) == 2);
  CHECK(place({"NCCL_MIN_NCHANNELS=8", "NCCL_MAX_NCHANNELS=4", "NCCL_MAX_NRINGS=9"}) == 2);
}

TEST_CASE("variables of what is between nodes change nothing on one, and are named there") {
  const std::map<std::string_view, std::vector<std::string>> values{
      {"NCCL_NCHANNELS_PER_NET_PEER", {"1", "32"}},
      {"NCCL_PAT_ENABLE", {"0"}},
      {"NCCL_NET_GDR_LEVEL", {"LOC", "SYS"}},
      {"NCCL_NVLSTREE_MAX_CHUNKSIZE", {"4096", "1048576"}},
      {"NCCL_CROSS_NIC", {"0", "1"}},
      {"NCCL_PXN_DISABLE", {"1"}},
      {"NCCL_P2P_PXN_LEVEL", {"0"}},
      {"NCCL_NET_OVERHEAD", {"0", "1000000"}},
      {"NCCL_ALLOC_P2P_NET_LL_BUFFERS", {"1"}},
      {"NCCL_COLLNET_ENABLE", {"1"}},
      {"NCCL_COLLNET_NODE_THRESHOLD", {"0", "1"}},
      {"NCCL_NET", {"Socket"}},
      {"NCCL_IB_HCA", {"mlx5_0"}},
      {"NCCL_IB_DISABLE", {"1"}},
      {"NCCL_NETDEVS_POLICY", {"MAX:1"}}};
  const auto is_between = [](const nccl::Variable& one) { return one.groups == nccl::OfGroups::on_several; };
  for (const nccl::Variable& one : nccl::variables())
    if (is_between(one) && one.followed) CHECK(values.contains(one.name));
  for (const std::string& machine : test::machines_of_gpus()) {
    const auto times = [&](const nccl::Environment& environment) {
      const auto c = test::communicator(machine, 1, 0, environment);
      std::vector<Seconds> out;
      if (c.ranks < 2) return out;
      for (int kind = 0; kind < collective_kinds; ++kind)
        for (const std::int64_t bytes : {1 << 10, 1 << 20, 1 << 29})
          out.push_back(test::ran(c, static_cast<CollectiveKind>(kind), bytes).time());
      return out;
    };
    const auto usual = times({});
    const TopologySpec spec = test::shipped(machine);
    for (const auto& [name, of_name] : values)
      for (const std::string& value : of_name) {
        INFO(machine << ": " << name << "=" << value);
        const auto e = test::environment({{std::string(name), value}});
        CHECK(unused(e, 1, spec) == std::vector<std::string>{std::string(name)});
        CHECK(warnings(e, 1, spec).empty());
        CHECK(times(e) == usual);
      }
  }
  for (const char* name : {"NCCL_CROSS_NIC", "NCCL_NET_GDR_LEVEL", "NCCL_PXN_DISABLE"})
    CHECK(unused(test::environment({{name, values.at(name)[0]}}), 2, test::shipped("dgx-h100")).empty());
  // Jobs on several nodes have groups on one, too.
  CHECK(unused(test::environment({{"NCCL_P2P_NVL_CHUNKSIZE", "65536"}}), 2, test::shipped("dgx-h100")).empty());
}

TEST_CASE("variables of NCCL 2.28.9 are known, and those of consequence on some machines are warned of there") {
  const auto e = [](const char* name, const char* value) { return test::environment({{name, value}}); };
  struct Row {
    const char *name, *value, *machine, *not_on;
  };
  for (const Row& row : {Row{"NCCL_MNNVL_ENABLE", "0", "gb200-nvl72", "dgx-h100"},
                         {"NCCL_MNNVL_CLIQUE_ID", "3", "gb200-nvl72", "dgx-h100"},
                         {"NCCL_NETDEVS_POLICY", "MAX:2", "dgx-h100", nullptr},
                         {"NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "1", "dgx-h100", nullptr},
                         {"NCCL_PXN_C2C", "0", "gb200-nvl72", "dgx-h100"},
                         {"NCCL_P2P_READ_ENABLE", "0", "dgx-h100", nullptr}}) {
    CAPTURE(row.name);
    const auto said = warnings(e(row.name, row.value), 2, test::shipped(row.machine));
    REQUIRE(said.size() == 1);
    CHECK(said[0].message.starts_with(fmt::format("{}={} is not modelled: ", row.name, row.value)));
    CHECK(unused(e(row.name, row.value), 2, test::shipped(row.machine)).empty());
    if (row.not_on == nullptr) continue;
    CHECK(warnings(e(row.name, row.value), 2, test::shipped(row.not_on)).empty());
    CHECK(unused(e(row.name, row.value), 2, test::shipped(row.not_on)) == std::vector<std::string>{row.name});
  }
  const auto scheduled = e("NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "1");
  for (const int nodes : {1, 2})
    for (const bool has_alltoall : {false, true})
      CHECK(warnings(scheduled, nodes, test::shipped("dgx-h100"), has_alltoall).size() ==
            (nodes > 1 && has_alltoall ? 1 : 0));
  // What NCCL does by itself is no news.
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"NCCL_MNNVL_ENABLE", "2"}, {"NCCL_NETDEVS_POLICY", "auto"}, {"NCCL_PXN_C2C", "1"}}) {
    CAPTURE(name);
    CHECK(warnings(e(name.c_str(), value.c_str()), 2, test::shipped("gb200-nvl72")).empty());
    CHECK(unused(e(name.c_str(), value.c_str()), 2, test::shipped("gb200-nvl72")) == std::vector<std::string>{name});
  }
  CHECK(warnings(e("NCCL_NETDEVS_POLICY", "ALL"), 1, test::shipped("dgx-h100")).empty());
  CHECK(warnings(e("NCCL_NETDEVS_POLICY", "max:1"), 2, test::shipped("dgx-h100")).size() == 1);
  // In the place of which NCCL takes AUTO.
  for (const std::string value : {"foo", "MAX", "MAX:", "MAX:0", "MAX:-1", "MAX:two", "ALL:2"}) {
    const Diagnostics errors = wrong({{"NCCL_NETDEVS_POLICY", value}});
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].message == "NCCL_NETDEVS_POLICY=" + value + ": no such policy");
    CHECK(errors[0].hint == "expected AUTO, ALL or MAX:N, with N from 1");
  }
  for (const char* name : {"NCCL_GRAPH_MIXING_SUPPORT", "NCCL_RUNTIME_CONNECT", "NCCL_IB_PKEY", "NCCL_MEM_SYNC_DOMAIN"})
    CHECK(unused(e(name, "0"), 2, test::shipped("dgx-h100")) == std::vector<std::string>{name});
}
