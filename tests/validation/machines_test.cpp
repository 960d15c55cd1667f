// Which machine a table goes to, and where its ranks sit.
#include "collcast/validation/machines.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <set>

#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

MeasuredTable table(const std::string& system, const std::string& gpu, int nodes, int ranks, int gpus_per_node) {
  MeasuredTable out;
  out.facts.id = "t";
  out.facts.collective = "all_reduce";
  out.facts.system = system;
  out.facts.gpu = gpu;
  out.facts.nodes = nodes;
  out.facts.ranks = ranks;
  out.facts.gpus_per_node = gpus_per_node;
  return out;
}

Machines machines() {
  Result<Machines> out = Machines::shipped(source_tree);
  REQUIRE(out.ok());
  return std::move(out).value();
}

std::vector<std::uint32_t> ranks(const PlacedTable& place) {
  std::vector<std::uint32_t> out;
  for (const Rank rank : place.group.ranks()) out.push_back(rank.value());
  return out;
}

}  // namespace

TEST_CASE("every shipped table is on a machine that lists its system") {
  Machines all = machines();
  const auto read = load_measured(source_tree.measured.front(), {"command line"});
  REQUIRE(read.ok());
  CHECK(read->warnings.empty());
  CHECK(read->tables.size() == 189);
  for (const MeasuredTable& one : read->tables) {
    INFO(one.facts.id);
    const auto place = all.place(one);
    REQUIRE(place.ok());
    CHECK(place->matched_by == "system");
    CHECK(place->group.size() == one.facts.ranks);
  }
}

TEST_CASE("NCCL's version is the table's own, else its system's as the machine's file has it") {
  Machines all = machines();
  MeasuredTable cw = table("cw-a100-hgx", "", 1, 8, 8);
  cw.facts.nccl_version = "unknown";
  cw.facts.one_process = true;
  CHECK(all.place(cw)->environment.launch.version == 20703);
  CHECK(all.place(cw)->environment.launches_groups());
  cw.facts.one_process = false;
  CHECK_FALSE(all.place(cw)->environment.launches_groups());
  cw.facts.nccl_version = "2.18.1";
  CHECK(all.place(cw)->environment.launch.version == 21801);
  MeasuredTable other = table("aic-a100-sxm", "", 1, 8, 8);
  CHECK(all.place(other)->environment.launch.version == 0);
}

TEST_CASE("a sidecar says whether a node's ranks are one process's, in whatever words") {
  const auto one_process = [](const std::string& mode) {
    const auto facts =
        parse_measured_facts("id: t\ncollective: all_reduce\nnodes: 1\nnranks: 8\nmode: " + mode + "\n", "t.yaml");
    REQUIRE(facts.ok());
    return facts->one_process;
  };
  for (const char* yes : {"one process", "one process, one thread per GPU", "One process, 8 GPUs (-g 8)",
                          "single process", "a single process per node", "1 process on each host"})
    CHECK(one_process(yes));
  for (const char* no : {"one process per GPU", "one process a GPU", "one process for each rank", "One process/GPU",
                         "8 processes", "a process per GPU", "[one process]", "{one process: 1}", "mpirun"})
    CHECK_FALSE(one_process(no));
}

TEST_CASE("ranks fill the first GPUs of each node") {
  Machines all = machines();
  MeasuredTable two_of_each = table("aic-h100-sxm", "", 2, 4, 8);
  CHECK(ranks(*all.place(two_of_each)) == std::vector<std::uint32_t>{0, 1, 8, 9});
  MeasuredTable one_of_each = table("aic-h100-sxm", "", 3, 3, 8);
  CHECK(ranks(*all.place(one_of_each)) == std::vector<std::uint32_t>{0, 8, 16});
  // A virtual machine with one GPU is still on a host of eight.
  MeasuredTable small_instance = table("gcp-a3-ultra", "", 2, 2, 1);
  CHECK(ranks(*all.place(small_instance)) == std::vector<std::uint32_t>{0, 8});
}

TEST_CASE("servers of four fill a rack of 72 in order") {
  Machines all = machines();
  MeasuredTable trays = table("coreweave-gb200-nvl72", "", 4, 8, 4);
  CHECK(ranks(*all.place(trays)) == std::vector<std::uint32_t>{0, 1, 4, 5, 8, 9, 12, 13});
  MeasuredTable racks = table("coreweave-gb200-nvl72", "", 36, 144, 4);
  const auto place = all.place(racks);
  REQUIRE(place.ok());
  CHECK(place->fabric->nodes() == 2);
}

TEST_CASE("a machine's own name is a system of it, whatever GPUs the table names") {
  Machines all = machines();
  const MeasuredTable named = table("dgx-h100", "", 1, 8, 8);
  const auto place = all.place(named);
  REQUIRE(place.ok());
  CHECK(place->topology == "dgx-h100");
  CHECK(place->matched_by == "system");
  CHECK(place->remark.empty());
  // The GPU alone would be a guess among five machines; another one's is told.
  const MeasuredTable same = table("dgx-h100", "NVIDIA H100 80GB HBM3", 1, 8, 8);
  CHECK(all.place(same)->matched_by == "system");
  CHECK(all.place(same)->remark.empty());
  const MeasuredTable other = table("dgx-h100", "NVIDIA A100-SXM4-80GB", 1, 8, 8);
  REQUIRE(all.place(other).ok());
  CHECK(all.place(other)->topology == "dgx-h100");
  CHECK(all.place(other)->remark.find("measured on 'NVIDIA A100-SXM4-80GB', dgx-h100 has '") == 0);
}

TEST_CASE("a table of an unknown system goes by its GPU, NVLink and nodes") {
  Machines all = machines();
  const auto topology_of = [&](MeasuredTable one) {
    const auto place = all.place(one);
    REQUIRE(place.ok());
    CHECK(place->matched_by == "gpu");
    return place->topology;
  };
  CHECK(topology_of(table("somewhere", "NVIDIA H200", 1, 8, 8)).find("h200") != std::string::npos);
  CHECK(topology_of(table("somewhere", "Tesla V100-SXM3-32GB", 1, 16, 16)) == "dgx2-v100");
  // Boards of V100 are told apart by their module, where a log says nothing of a node's GPUs as well.
  CHECK(topology_of(table("somewhere", "Tesla V100-SXM2-32GB", 1, 8, 0)) == "dgx1-v100");
  CHECK(topology_of(table("somewhere", "Tesla V100-SXM3-32GB", 1, 8, 0)) == "dgx2-v100");
  MeasuredTable pcie = table("", "NVIDIA L40S", 1, 8, 8);
  CHECK(topology_of(pcie) == "l40s-pcie");
  MeasuredTable nvlink_said = pcie;
  nvlink_said.facts.nvlink = "NVLink4 NVSwitch";
  const auto place = all.place(nvlink_said);
  REQUIRE_FALSE(place.ok());
  CHECK(place.errors().front().hint == "name its machine with --topology");
}

TEST_CASE("a machine that is a guess, or that has other GPUs, is remarked on") {
  Machines all = machines();
  const auto guessed = all.place(table("somewhere", "Tesla V100-SXM3-32GB", 1, 16, 16));
  REQUIRE(guessed.ok());
  CHECK(guessed->remark == "dgx2-v100 is a guess by the GPU 'Tesla V100-SXM3-32GB'; --topology names the machine");
  CHECK(all.place(table("somewhere", "Tesla V100-SXM2-32GB", 1, 8, 0))->remark.find("aws-p3dn, dgx1-v100-roce would") !=
        std::string::npos);
  const auto equals = all.place(table("", "NVIDIA H100 80GB HBM3", 1, 8, 8));
  REQUIRE(equals.ok());
  CHECK(equals->remark.find("dgx-h100 is a guess by the GPU 'NVIDIA H100 80GB HBM3'; aws-p5, azure-ndv5, gcp-a3-high, "
                            "gcp-a3-mega would fit as well") == 0);
  const auto named = all.place(table("aic-h100-sxm", "whatever", 1, 8, 8));
  REQUIRE(named.ok());
  CHECK(named->remark.empty());

  Machines only = Machines::only(load_topology("dgx-h100", source_tree).value());
  const auto remark = [&](const std::string& gpu) { return only.place(table("", gpu, 1, 8, 8)).value().remark; };
  CHECK(remark("Tesla V100-SXM2-16GB") == "measured on 'Tesla V100-SXM2-16GB', dgx-h100 has 'H100-SXM5-80GB'");
  CHECK_FALSE(remark("NVIDIA H100 PCIe").empty());
  for (const char* same : {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB", "H100", "", "none", "unknown"})
    CHECK(remark(same).empty());
}

TEST_CASE("the algorithm that a table names is forecast under our name, or it is said that auto is") {
  Machines only = Machines::only(load_topology("dgx-h100", source_tree).value());
  std::string backend = "gloo";
  const auto placed = [&](const std::string& collective, const std::string& algorithm) {
    MeasuredTable one = table("", "", 1, 8, 8);
    one.facts.collective = collective;
    one.facts.backend = backend;
    one.facts.algorithm = algorithm;
    return only.place(one).value();
  };
  const auto ours = [&](const std::string& collective, const std::string& algorithm, const std::string& name) {
    INFO(collective << " by " << algorithm);
    CHECK(placed(collective, algorithm).algorithm == name);
    CHECK(placed(collective, algorithm).remark.empty());
  };
  ours("all_reduce", "", "auto");
  // All that Gloo names, one of which is no algorithm of ours.
  for (const char* algorithm : {"ring", "halving_doubling"}) ours("all_reduce", algorithm, algorithm);
  ours("broadcast", "binomial_tree", "concurrent_tree");
  ours("reduce", "ring", "scatter_gather");
  ours("all_gather", "ring", "ring");
  ours("reduce_scatter", "ring", "ring");
  for (const char* collective : {"alltoall", "gather", "scatter"}) ours(collective, "direct", "direct");
  ours("sendrecv", "point_to_point", "direct");
  CHECK(placed("all_reduce", "bcube").algorithm == "auto");
  CHECK(placed("all_reduce", "bcube").remark == "its algorithm 'bcube' is not known for all_reduce: auto is taken");
  CHECK(placed("alltoall", "binomial_tree").algorithm == "auto");
  CHECK(placed("alltoall", "binomial_tree").remark.find("'binomial_tree' is not known for alltoall") !=
        std::string::npos);
  // Whoever else says ring or binomial tree means those of the books.
  for (const char* other : {"", "mpi"}) {
    backend = other;
    ours("broadcast", "binomial_tree", "tree");
    ours("broadcast", "ring", "ring");
    ours("reduce", "ring", "ring");
  }
}

TEST_CASE("a remark is said once, with the tables that it is of") {
  Remarks remarks;
  remarks.add("a", "");
  for (const char* id : {"a", "b", "c", "d"}) remarks.add(id, "one");
  remarks.add("b", "two");
  CHECK(remarks.texts() == std::vector<std::string>{"a, b, c and 1 more: one", "b: two"});
}

TEST_CASE("what keeps a table from being placed is said") {
  Machines all = machines();
  const auto why = [&](MeasuredTable one) {
    const auto place = all.place(one);
    REQUIRE_FALSE(place.ok());
    return place.errors().front().message;
  };
  MeasuredTable good = table("aic-h100-sxm", "", 1, 8, 8);
  MeasuredTable t = good;
  t.facts.collective = "hypercube";
  CHECK(why(t) == "no forecast of the collective 'hypercube'");
  t = good;
  t.facts.collective.clear();
  CHECK(why(t) == "it does not say which collective it is");
  t = good;
  t.facts.ranks = 0;
  CHECK(why(t) == "it does not say how many ranks on how many nodes there were");
  t = good;
  t.facts.ranks = 1;
  CHECK(why(t) == "one rank alone communicates with nobody");
  t = good;
  t.facts.nodes = 3;
  CHECK(why(t) == "8 ranks do not spread evenly over 3 nodes");
  t = good;
  t.facts.contradiction = "its sidecar is of broadcast, its rows are of all_reduce";
  CHECK(why(t) == t.facts.contradiction);
  t.facts.contradiction.clear();
  t.facts.doubt = "it lists 8 ranks, but rank 8 is one of them";
  CHECK(why(t) == t.facts.doubt);
  t = good;
  t.facts.ranks = 16;
  CHECK(why(t).find("16 ranks per node, but a node of dgx-h100 has 8") == 0);
  t = good;
  t.facts.system = "nowhere";
  CHECK(why(t) == "no machine lists the system 'nowhere', and its sidecar names no GPU ('gpu:') to derive one from");
}

TEST_CASE("ranks of one host each have an endpoint of a teaching machine") {
  const auto star = load_topology("star", source_tree);
  REQUIRE(star.ok());
  Machines only = Machines::only(*star);
  MeasuredTable loopback = table("laptop", "none", 1, 4, 4);
  const auto place = only.place(loopback);
  REQUIRE(place.ok());
  CHECK(place->matched_by == "option");
  CHECK(place->fabric->nodes() == 4);
  CHECK(ranks(*place) == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("words of NVLink that cannot be read are said, and are nothing that the machine is derived by") {
  Machines all = Machines::shipped(source_tree).value();
  const auto remark = [&](const std::string& gpu, const std::string& nvlink) {
    MeasuredTable table;
    table.facts.collective = "all_reduce";
    table.facts.gpu = gpu;
    table.facts.nvlink = nvlink;
    table.facts.gpus_per_node = 8;
    table.facts.nodes = 1;
    table.facts.ranks = 8;
    return all.place(table)->remark;
  };
  // Modules have NVLink and cards have none, whatever the word.
  const auto taken = [](const char* what) {
    return Catch::Contains(fmt::format("what joins a node's GPUs where nvlink is 'purple' (taken: {})", what));
  };
  CHECK_THAT(remark("H100-SXM5-80GB", "purple"), taken("NVSwitch") && !Catch::Contains("nvlink 'purple'"));
  CHECK_THAT(remark("A100-PCIe-80GB", "purple"), taken("PCIe") && !Catch::Contains("nvlink 'purple'"));
  for (const char* known : {"NVLink4 NVSwitch", "NVL72", "PCIe gen5", "none", ""})
    CHECK_THAT(remark(std::string(known) == "none" ? "A100-PCIe-80GB" : "H100-SXM5-80GB", known),
               !Catch::Contains("where nvlink is"));
}

TEST_CASE("NICs that a sidecar of several nodes denies, or says in words that cannot be read, are said") {
  Machines all = Machines::shipped(source_tree).value();
  for (const char* nics : {"none", "0", "lots"}) {
    MeasuredTable table;
    table.facts.collective = "all_reduce";
    table.facts.gpu = "H100-SXM5-80GB";
    table.facts.nvlink = "NVLink4 NVSwitch";
    table.facts.nics = nics;
    table.facts.nodes = 2;
    table.facts.ranks = 16;
    CHECK_THAT(
        all.place(table)->remark,
        Catch::Contains(fmt::format("what joins nodes where nics_per_node is '{}' (taken: 8 of 400 Gb/s)", nics)));
  }
}
