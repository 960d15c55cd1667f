// `collcast backends`, and what the command says where a library is not built in.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <set>
#include <string>

#include "cli/process.hpp"

using namespace collcast::test;

#ifndef COLLCAST_HAS_GLOO
TEST_CASE("without Gloo the command says how to get it") {
  const Folder folder;
  const auto run = run_shell("collcast measure all_reduce --backend gloo", folder.path());
  CHECK(run.exit == 3);
  CHECK(run.err.find("libgloo-dev") != std::string::npos);
}
#endif

#ifndef COLLCAST_HAS_MPI
TEST_CASE("without MPI the command says how to get it") {
  const Folder folder;
  const auto run = run_shell("collcast measure all_reduce --backend mpi", folder.path());
  CHECK(run.exit == 3);
  CHECK(run.err.find("libopenmpi-dev") != std::string::npos);
}
#endif

TEST_CASE("backends lists what can be measured, and why the others cannot") {
  const Folder folder;
  const auto run = run_shell("collcast backends --format json", folder.path());
  REQUIRE(run.exit == 0);
  const auto document = nlohmann::json::parse(run.out);
  CHECK(document["schema"] == "collcast.backends.v1");
  std::vector<std::string> names;
  for (const auto& entry : document["backends"]) {
    names.push_back(entry["name"]);
    CAPTURE(names.back());
    CHECK(entry["usable"] == (entry["built"] == true && entry["lacking"].empty()));
    if (entry["built"] == true) CHECK(entry["collectives"].size() == 9);
    if (entry["built"] == false) CHECK_FALSE(entry["lacking"].empty());
  }
  CHECK(names == std::vector<std::string>{"nccl", "gloo", "mpi", "ideal"});
}

TEST_CASE("a library that cannot run here can still be forecast, with what its forecasts name") {
  const Folder folder;
  const auto document = nlohmann::json::parse(run_shell("collcast backends --format json", folder.path()).out);
  const auto forecasts = [&](std::size_t i) {
    return document["backends"][i]["forecasts"].get<std::set<std::string>>();
  };
  CHECK(forecasts(0) ==
        std::set<std::string>{"ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat", "p2p"});
  CHECK(forecasts(1).empty());
  CHECK(forecasts(2).empty());
  CHECK(forecasts(3).count("recursive_doubling") == 1);
  for (std::size_t i = 0; i < 4; ++i) CHECK(document["backends"][i]["runs"] == (i < 3));
  // Each row of a forecast names one of them.
  for (const char* kind : {"all_reduce", "all_gather", "broadcast", "alltoall", "sendrecv"}) {
    const auto rows = nlohmann::json::parse(run_shell(std::string("collcast collective ") + kind +
                                                          " --topology dgx-h100 --nodes 2 --library nccl --method "
                                                          "estimate --algorithm all --format json",
                                                      folder.path())
                                                .out)["rows"];
    CHECK_FALSE(rows.empty());
    for (const auto& row : rows) CHECK(forecasts(0).count(row["algorithm"]) == 1);
  }
  const std::string page = run_shell("collcast backends", folder.path()).out;
  CHECK(page.find("to forecast") != std::string::npos);
  CHECK(page.find("ready: ") != std::string::npos);
}
