// `collcast backends`, and what the command says where a library is not built in.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

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
  const auto mpi = run_shell("collcast measure all_reduce --backend mpi", folder.path());
  CHECK(mpi.exit == 3);
  CHECK(mpi.err.find("no MPI backend") != std::string::npos);
}
