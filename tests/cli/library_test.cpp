// Whose collectives a command forecasts where nobody says so: what people run on the machine, or what the options are
// of.
#include "collcast/evaluate/library.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <set>

#include "cli/called.hpp"
#include "collcast/scenario/scenario.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

std::string library_of(const std::string& words) {
  INFO(words);
  const Called called = call(words + " --format json");
  INFO(called.err);
  REQUIRE_FALSE(called.out.empty());
  const Json doc = Json::parse(called.out);
  if (doc.contains("rows") && doc["schema"] == "collcast.collective.v1") return doc["rows"][0]["library"];
  if (doc["schema"] == "collcast.explain.v1")
    return doc["title"].get<std::string>().ends_with("library nccl") ? "nccl" : "ideal";
  return doc.contains("library") ? doc["library"].get<std::string>() : doc["inputs"]["library"].get<std::string>();
}

const std::string on_gpus = "collective all_reduce --topology dgx-h100 --size 1MiB ";

}  // namespace

TEST_CASE("NCCL is what people run where the GPUs are NVIDIA's, the textbook everywhere else") {
  const SearchPath search{{std::string(COLLCAST_SOURCE_DIR) + "/topologies"}, {}};
  const std::set<std::string> others{"ring", "star", "mesh", "ethernet-hosts", "loopback"};
  int gpus = 0;
  for (const TopologyEntry& entry : list_topologies(search)) {
    INFO(entry.name);
    const bool is_other = others.count(entry.name) > 0;
    CHECK(usual_library(load_topology(entry.name, search).value()) == (is_other ? Library::ideal : Library::nccl));
    gpus += is_other ? 0 : 1;
  }
  CHECK(gpus > 30);
  CHECK(library_of(on_gpus) == "nccl");
  CHECK(library_of("collective all_reduce --topology ring --ranks 4 --size 1MiB") == "ideal");
  CHECK(library_of("collective all_reduce --topology dgx-h100 --size 1MiB --set gpu.model=MI300X") == "ideal");
}

TEST_CASE("sizes whose messages over the host's bridge take the time are said, and no others") {
  const auto warned = [](const std::string& words) {
    const Called called = call("collective all_reduce --method estimate " + words);
    REQUIRE(called.exit == 0);
    const std::size_t at = called.err.find(": messages over the host's bridge take the time");
    const std::string begin = "command line: warning: ";
    if (at == std::string::npos) return std::string();
    const std::size_t from = called.err.rfind(begin, at) + begin.size();
    return called.err.substr(from, at - from);
  };
  // One NIC of 100 Gb/s behind the sockets of a node: 256 MiB take its line rate.
  CHECK(warned("--topology aws-p3dn --nodes 4 --size 8:256MiB:x32") == "8 B, 256 B, 8 KiB, 256 KiB");
  CHECK(warned("--topology aws-p3dn --nodes 4 --size 256MiB").empty());
  // Nothing leaves one node, and NICs beside their GPUs have no bridge between.
  CHECK(warned("--topology aws-p3dn --nodes 1 --size 8:256MiB:x32").empty());
  CHECK(warned("--topology dgx-h100 --nodes 4 --size 8:256MiB:x32").empty());
  // The same where GPUDirect RDMA is off: NCCL's messages pass the host then.
  CHECK_FALSE(warned("--topology dgx-h100 --nodes 4 --size 8:256MiB:x32 --env NCCL_NET_GDR_LEVEL=LOC").empty());
}

TEST_CASE("sizes whose simulation NCCL's pick lacks are said and left open, the others have their times") {
  // NVLS has 16 channels of loops of 8 heads x 128 KiB, of which two million, 2^21, are 2 TiB.
  const std::string simulate = "collective all_reduce --topology dgx-h100 --method simulate --format json ";
  const Called sweep = call(simulate + "--size 16KiB:16TiB:x1024");
  INFO(sweep.err);
  CHECK(sweep.exit == 0);
  CHECK(
      sweep.err.find("warning: no simulation of nvls at 16 TiB, which NCCL picks there: more than two million loops") !=
      std::string::npos);
  const Json doc = Json::parse(sweep.out);
  for (const Json& row : doc.at("rows")) {
    CHECK(row.at("estimate_s").is_null());
    CHECK(row.at("simulate_s").is_null() == (row.at("size_bytes") == std::int64_t{16} << 40));
  }
  CHECK(doc.at("rows").size() == 4);  // 16 KiB, 16 MiB, 16 GiB, 16 TiB
  CHECK(doc.at("warnings").size() == 1);
  // Nothing is left: that is an error, which says what was picked and where.
  const Called none = call(simulate + "--size 16TiB");
  CHECK(none.exit == 2);
  CHECK(none.out.empty());
  CHECK(none.err.find("error: no simulation of nvls at 16 TiB, which NCCL picks there: ") != std::string::npos);
  const std::string tree = call(simulate + "--size 16TiB --algorithm tree").err;
  CHECK(tree.find("no simulation of tree at 16 TiB: more than two million loops") != std::string::npos);
}

TEST_CASE("all algorithms over nodes with unlike numbers of ranks are simulated") {
  const Called called = call(
      "collective all_reduce --topology dgx-h100 --nodes 2 --group 0-11 --algorithm all --method both --size 64MiB "
      "--format json");
  INFO(called.err);
  CHECK(called.exit == 0);
  const Json doc = Json::parse(called.out);
  std::set<std::string> simulated;
  for (const Json& row : doc.at("rows"))
    if (!row.at("simulate_s").is_null()) simulated.insert(row.at("algorithm"));
  CHECK(simulated == std::set<std::string>{"ring", "tree", "nvls_tree"});
}

TEST_CASE("an option of one library means that library, and --library goes before") {
  for (const char* of_ideal : {"--chunks 4", "--channels 2", "--chunks-curve", "--links", "--algorithm direct",
                               "--groups-of 4 --concurrent", "--algorithm all --chunks 2", "--sharing fifo"})
    CHECK(library_of(on_gpus + of_ideal) == "ideal");
  for (const char* of_nccl : {"--env NCCL_ALGO=Ring", "--algorithm nvls", "--algorithm ring", "--algorithm all",
                              "--method both", "--method simulate --algorithm ring"})
    CHECK(library_of(on_gpus + of_nccl) == "nccl");
  CHECK(library_of(on_gpus + "--library ideal") == "ideal");
  const std::string explained = "explain " + on_gpus;
  CHECK(library_of(explained) == "nccl");
  CHECK_THAT(call(explained + "--method both").err, Contains("library nccl's closed form is what is taken apart"));
  CHECK(library_of("collective broadcast --topology dgx-h100 --size 1MiB --algorithm tree") == "ideal");
  CHECK(library_of("collective broadcast --topology dgx-h100 --size 1MiB --algorithm ring") == "nccl");
  // What only looks like more to see says that it changes what is seen.
  CHECK_THAT(call(on_gpus + "--links").err,
             Contains("--links is of library ideal alone: this is the textbook, not NCCL"));
  CHECK(call(on_gpus + "--links --library ideal").err.empty());
  CHECK_THAT(call(on_gpus + "--library nccl --sharing fifo").err, Contains("--sharing fifo: NCCL's channels"));
  CHECK_THAT(call(on_gpus + "--library nccl --algorithm direct").err,
             Contains("'direct' is of library ideal, not nccl"));
  // Both at once is a contradiction, and said to be.
  const Called both = call(on_gpus + "--env NCCL_ALGO=Ring --chunks 4");
  CHECK(both.exit == 2);
  CHECK_THAT(both.err, Contains("--chunks: NCCL cuts its chunks"));
  CHECK_THAT(call(on_gpus + "--library nccl --links").err, Contains("--links: library nccl's simulation"));
}

TEST_CASE("a step runs what its scenario says, else what its options are of, else what people run") {
  const std::string step = "step llama3-70b-64xh100 --method estimate";
  CHECK(library_of(step) == "nccl");
  for (const char* of_ideal : {" --library ideal", " --chunks 2", " --channels 1", " --algorithm ring",
                               " --set collectives.chunks=2", " --set collectives.library=ideal"})
    CHECK(library_of(step + of_ideal) == "ideal");
  CHECK(library_of("step llama3-70b-64xh100 --sharing fifo --method simulate") == "ideal");
  CHECK(library_of(step + " --set collectives.library=ideal --library nccl") == "nccl");
  for (const char* key : {"algorithm=ring", "chunks=4", "channels=2", "sharing=fifo"}) {
    const Called refused = call(step + " --set collectives.library=nccl --set collectives." + key);
    CHECK(refused.exit == 2);
    CHECK_THAT(refused.err, Contains(key) && Contains("has no meaning here: library nccl"));
  }
  // What a scenario says of the textbook's collectives is not lost without a word.
  const Called over = call(step + " --set collectives.algorithm=ring --library nccl");
  CHECK(over.exit == 0);
  CHECK_THAT(over.err, Contains("the scenario's algorithm, chunks or channels have no effect on library nccl"));
  CHECK_THAT(call("step overlap-175b-layer --env NCCL_ALGO=Ring").err,
             Contains("--env has no effect on a scenario of tasks"));
  CHECK_THAT(call(step + " --set collectives.library=nccl --chunks 2").err, Contains("has no effect on library nccl"));
}

TEST_CASE("chunks of the largest sizes are counted beyond 32 bits") {
  // 4 EiB / 8 ranks over the channels' chunks of 2 MiB at most: more than 2^31 loops on each.
  const Called called =
      call("collective all_reduce --topology dgx-h100 --env NCCL_ALGO=Ring --size 4EiB --format json");
  REQUIRE(called.exit == 0);
  CHECK(nlohmann::json::parse(called.out)["rows"][0]["chunks"].get<std::int64_t>() > std::int64_t{1} << 31);
}

TEST_CASE("tables of NVIDIA GPUs are held against NCCL, others against the textbook") {
  const std::string data = std::string(COLLCAST_SOURCE_DIR) + "/validation/data/";
  const std::string nvidia = data + "nccl-tests/a100-cw-1x8-all_reduce.csv";
  const std::string gloo = data + "gloo-loopback/gloo-loopback-1x2-all_reduce.csv";
  for (const std::string command : {"validate", "calibrate"}) {
    CHECK(library_of(command + " --measured " + nvidia) == "nccl");
    CHECK(library_of(command + " --measured " + gloo) == "ideal");
    CHECK(library_of(command + " --library ideal --measured " + nvidia) == "ideal");
  }
  const Called mixed = call("validate --format json --measured " + nvidia + " --measured " + gloo);
  CHECK(Json::parse(mixed.out)["tables"].size() == 2);
  CHECK_THAT(mixed.err, Contains("without NVIDIA GPUs, held against library ideal: gloo-loopback-1x2-all_reduce"));
  CHECK(library_of("validate --method simulate --measured " + nvidia) == "ideal");
  CHECK(library_of("validate --env NCCL_PROTO=LL --measured " + nvidia) == "nccl");
}
