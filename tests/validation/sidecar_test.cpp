// Sidecars that contradict themselves, or their table: what is said, and where.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "../cli/process.hpp"
#include "collcast/validation/validate.hpp"
#include "readings.hpp"
#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr const char* whole_sidecar =
    "id: a\ncollective: all_reduce\nnodes: 16\nnranks: 128\nsystem: s\ngpus_per_node: 8\n"
    "nics_per_node: 8x HDR200\nnccl_version: 2.27.3\n";

std::string sidecar_with(const std::string& from, const std::string& to) {
  std::string out = whole_sidecar;
  return out.replace(out.find(from), from.size(), to);
}

std::vector<std::string> sidecar_errors(const std::string& text) {
  std::vector<std::string> out;
  const auto read = parse_measured_facts(text, "t.yaml");
  for (const Diagnostic& one : read.errors()) out.push_back(to_text(one.where) + ": " + one.message);
  return out;
}

}  // namespace

using Said = std::vector<std::string>;

TEST_CASE("a sidecar with negative counts, or more ranks than GPUs, is refused at each of them") {
  CHECK(sidecar_errors(whole_sidecar).empty());
  CHECK(sidecar_errors(sidecar_with("8x HDR200", "-3")) == Said{"t.yaml:7:16: nics_per_node is '-3'"});
  CHECK(sidecar_errors(sidecar_with("8x HDR200", "-3x HDR200")) == Said{"t.yaml:7:16: nics_per_node is '-3x HDR200'"});
  CHECK(sidecar_errors(sidecar_with("2.27.3", "-1")) == Said{"t.yaml:8:15: nccl_version is '-1'"});
  CHECK(sidecar_errors(sidecar_with("gpus_per_node: 8", "gpus_per_node: 3")) ==
        Said{"t.yaml:6:16: gpus_per_node is 3, but 128 ranks on 16 nodes are 8 on each"});
  CHECK(sidecar_errors("id: a\ncollective: all_reduce\nnodes: 1\nnranks: 2\ngpus_per_node: 1\nnics_per_node: -3\n"
                       "nccl_version: -1\n") ==
        Said{"t.yaml:5:16: gpus_per_node is 1, but 2 ranks on 1 node are 2 on each",
             "t.yaml:6:16: nics_per_node is '-3'", "t.yaml:7:15: nccl_version is '-1'"});
  // What is no number is taken as it stands, and so is a node with more GPUs than ranks.
  for (const char* words : {"none", "unknown", "n/a", "n-1"}) {
    CHECK(sidecar_errors(sidecar_with("8x HDR200", words)).empty());
    CHECK(sidecar_errors(sidecar_with("2.27.3", words)).empty());
  }
  CHECK(sidecar_errors(sidecar_with("gpus_per_node: 8", "gpus_per_node: 72")).empty());
  // Nodes that are not alike: the fullest has as many as the rest leave.
  CHECK(sidecar_errors(sidecar_with("nranks: 128", "nranks: 129")).size() == 1);
  CHECK(sidecar_errors(sidecar_with("nranks: 128", "nranks: 127")).empty());
}

TEST_CASE("a listed system whose sidecar names another GPU is remarked on, as a log of one is") {
  Machines all = Machines::shipped(source_tree).value();
  const auto remark = [&](const std::string& gpu) {
    MeasuredTable table;
    table.facts.id = "t";
    table.facts.collective = "all_reduce";
    table.facts.system = "aic-h100-sxm";
    table.facts.gpu = gpu;
    table.facts.nodes = 1;
    table.facts.ranks = 8;
    return all.place(table).value().remark;
  };
  CHECK(remark("A100-SXM4-40GB") == "measured on 'A100-SXM4-40GB', dgx-h100 has 'H100-SXM5-80GB'");
  for (const char* same : {"", "H100", "NVIDIA H100 80GB HBM3", "whatever"}) CHECK(remark(same).empty());
}

TEST_CASE("what keeps a table with a sidecar from being scored is at the sidecar's value") {
  Machines all = Machines::shipped(source_tree).value();
  const auto where = [&](const std::string& facts, Machines& machines) {
    const auto sidecar = parse_measured_facts("id: a\n" + facts, "t.yaml");
    INFO(to_text(sidecar.errors()));
    REQUIRE(sidecar.ok());
    const auto read = csv_of(
        "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\n"
        "all_reduce,1048576,10.5,100.00,175.00,0\n",
        *sidecar);
    const auto place = machines.place(read.value().tables.at(0));
    REQUIRE_FALSE(place.ok());
    return to_text(place.errors().front().where);
  };
  CHECK(where("nodes: 1\nnranks: 8\nsystem: aic-h100-sxm\ncollective: broadcast\n", all) == "t.yaml:5:13");
  CHECK(where("nodes: 1\nnranks: 8\ncollective: all_reduce\nsystem: 'mars'\n", all) == "t.yaml:5:9");
  CHECK(where("nodes: 1\ncollective: all_reduce\nsystem: aic-h100-sxm\nnranks: 4\n", all) == "t.yaml:5:9");
  CHECK(where("nodes: 3\ncollective: all_reduce\nsystem: aic-h100-sxm\nnranks: 8\n", all) == "t.yaml:5:9");
  CHECK(where("nodes: 2\ncollective: all_reduce\nsystem: aic-h100-sxm\nranks_per_node: 2\nnranks: 8\n", all) ==
        "t.yaml:5:17");
  // A report hands it on.
  const auto sidecar = parse_measured_facts("id: a\ncollective: broadcast\nnodes: 1\nnranks: 8\n", "t.yaml");
  auto read = csv_of("collective,size_bytes,time_us,inplace\nall_reduce,8,10.5,0\n", *sidecar).value();
  const auto report = validate(read.tables, all, ideal_prediction(Method::estimate), Statistic::mean);
  REQUIRE(report.unscored.size() == 1);
  CHECK(to_text(report.unscored[0].where) == "t.yaml:2:13");
}

TEST_CASE("a version of NCCL and a type that are none are warned of at their places, unknown ones are not") {
  const auto said = [](const std::string& version, const std::string& type) {
    const Folder folder;
    folder.write("t.csv", "collective,size_bytes,time_us,inplace\nall_reduce,8,10.5,0\n");
    folder.write("t.yaml",
                 fmt::format("id: a\ncollective: all_reduce\nnodes: 1\nnranks: 8\nnccl_version: {}\ndtype: {}\n",
                             version, type));
    const auto read = load_measured(folder.path() / "t.csv", {"test"});
    std::vector<std::string> out;
    for (const Diagnostic& one : read->warnings)
      out.push_back(fmt::format("{}:{}: {}", one.where.line, one.where.column, one.message));
    return out;
  };
  CHECK(said("banana", "banana") == Said{"6:8: the type is 'banana': it is as if it were not there",
                                         "5:15: nccl_version is 'banana': it is as if it were not there"});
  for (const char* version : {"2.22.3-tuner", "'2.18'", "unknown", "unknown (2019-2020)", "'none'", ""})
    CHECK(said(version, "half").empty());
}

TEST_CASE("NICs whose total contradicts their number and rate are warned of at their place") {
  const auto said = [](const std::string& nics) {
    const Folder folder;
    folder.write("t.csv", "collective,size_bytes,time_us,inplace\nall_reduce,8,10.5,0\n");
    folder.write("t.yaml", "id: a\ncollective: all_reduce\nnodes: 2\nnranks: 16\nnics_per_node: " + nics + "\n");
    std::vector<std::string> out;
    const auto tables = load_measured(folder.path() / "t.csv", {"test"});
    for (const Diagnostic& one : tables->warnings)
      out.push_back(fmt::format("{}:{}: {}", one.where.line, one.where.column, one.message));
    return out;
  };
  CHECK(said("400 Gbps (4x200)") ==
        Said{"5:16: nics_per_node is '400 Gbps (4x200)': 4 of 200 Gb/s are 800 Gb/s, not 400 Gb/s"});
  CHECK(said("400 Gbps (4x100)").empty());
}

TEST_CASE("ranks_per_node that nodes and nranks contradict is what the reason names") {
  Machines all = Machines::shipped(source_tree).value();
  const auto why = [&](const std::string& nodes, const std::string& ranks, const std::string& each) {
    const auto sidecar = parse_measured_facts("id: a\ncollective: all_reduce\nsystem: aic-h100-sxm\nnodes: " + nodes +
                                                  "\nnranks: " + ranks + "\nranks_per_node: " + each + "\n",
                                              "t.yaml");
    REQUIRE(sidecar.ok());
    const auto read = csv_of("collective,size_bytes,time_us,inplace\nall_reduce,8,10.5,0\n", *sidecar);
    const auto place = all.place(read.value().tables.at(0));
    return place.ok() ? std::string() : to_text(place.errors()[0].where) + ": " + place.errors()[0].message;
  };
  CHECK(why("2", "16", "8").empty());
  CHECK(why("2", "16", "4") == "t.yaml:6:17: ranks_per_node is 4, but 16 ranks on 2 nodes are 8 on each");
  CHECK(why("1", "8", "4") == "t.yaml:6:17: ranks_per_node is 4, but 8 ranks on 1 node are 8 on each");
  CHECK(why("2", "15", "8") == "t.yaml:5:9: 15 ranks do not spread evenly over 2 nodes");
  // 2^19 nodes of 2^13 + 1 ranks are 2^32 + 2^19, which 32 bits have as 2^19.
  CHECK(why("524288", "524288", "8193") ==
        "t.yaml:6:17: ranks_per_node is 8193, but 524288 ranks on 524288 nodes are 1 on each");
}
