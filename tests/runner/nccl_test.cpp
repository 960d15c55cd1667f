// The NCCL backend: what it says where there is no GPU, and what it does with one, against a driver and an NCCL
// that only the test has (fake_nvidia.cpp). Real GPUs are no part of this.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "cli/process.hpp"
#include "collcast/collective/collective.hpp"

using namespace collcast;
using namespace collcast::test;

#ifdef COLLCAST_HAS_NCCL

namespace {

/// A command line that finds the fakes first, or an empty folder in their place.
std::string with_fakes(const std::string& command) { return "LD_LIBRARY_PATH='" COLLCAST_FAKES "' " + command; }

}  // namespace

TEST_CASE("without a driver, a device or the library the command ends with 3 and names each") {
  const Folder folder;
  const auto none = run_shell(with_fakes("FAKE_GPUS=0 collcast measure all_reduce --backend nccl"), folder.path());
  CHECK(none.exit == 3);
  CHECK(none.err.find("no usable NVIDIA GPU: no CUDA-capable device is detected") != std::string::npos);
  // The real ones where this machine has no GPU: whatever is missing, the exit is 3 and there is a reason.
  const auto here = run_shell("collcast backends --format json", folder.path());
  REQUIRE(here.exit == 0);
  const auto nccl = nlohmann::json::parse(here.out)["backends"][0];
  CHECK(nccl["built"] == true);
  if (nccl["usable"] == true) return;
  const auto run = run_shell("collcast measure all_reduce --backend nccl --size 8", folder.path());
  CHECK(run.exit == 3);
  CHECK_FALSE(nccl["lacking"].empty());
  for (const auto& reason : nccl["lacking"]) CHECK(run.err.find(reason.get<std::string>()) != std::string::npos);
}

TEST_CASE("every kind is asked of NCCL so that results are right: one process, 1 to 4 GPUs") {
  const Folder folder;
  for (const char* ranks : {"1", "2", "3", "4"}) {
    for (const char* more : {"", " --graph", " --root 0 --datatype int8 --calls 3"}) {
      const auto run = run_shell(with_fakes(std::string("collcast measure all --backend nccl --warmup 0 --repetitions "
                                                        "2 --size 48,9600 --format json --ranks ") +
                                            ranks + more),
                                 folder.path());
      CAPTURE(ranks, more, run.err);
      REQUIRE(run.exit == 0);
      const auto document = nlohmann::json::parse(run.out);
      // Five kinds in both places, four (messages) out of place; two sizes.
      CHECK(document["rows"].size() == (5 * 2 + 4) * 2);
      CHECK(document["system"]["device"] == "Fake GPU");
      for (const auto& row : document["rows"]) CHECK(row["device_s"].get<double>() >= 0);
    }
  }
  // Without --ranks: all GPUs.
  const auto all = run_shell(with_fakes("FAKE_GPUS=3 collcast measure gather --backend nccl --root 2 --size 1KiB "
                                        "--repetitions 2 --output t.csv"),
                             folder.path());
  CHECK(all.exit == 0);
  const std::string sidecar = folder.read("t.yaml");
  for (const char* line : {"gpu: 'Fake GPU'\n", "nranks: 3\n", "nccl_version: '2.28.9'\n", "calls_per_repetition: 20\n",
                           "cuda_graph: false\n", ", device_us: "}) {
    CAPTURE(line, sidecar);
    CHECK(sidecar.find(line) != std::string::npos);
  }
}

TEST_CASE("a wrong result is reported with rank and index, leaves no row, and makes exit 1") {
  const Folder folder;
  const auto run =
      run_shell(with_fakes("FAKE_WRONG=5 collcast measure all_reduce --backend nccl --ranks 2 --size 64 --format json"),
                folder.path());
  CHECK(run.exit == 1);
  CHECK(run.err.find("all_reduce of 64 B: wrong result on rank 1: element 5 is ") != std::string::npos);
  CHECK(run.err.find("all_reduce of 64 B in place: wrong result on rank 1: element 5 is ") != std::string::npos);
  CHECK(run.err.find("no size was finished") != std::string::npos);
}

TEST_CASE("of many wrong results the first twenty are told, and how many more there are") {
  const Folder folder;
  // 64 B to 128 KiB in doublings: 12 sizes, each in both places: 24 wrong results.
  const auto run = run_shell(
      with_fakes("FAKE_WRONG=0 collcast measure all_reduce --backend nccl --ranks 2 --size 64:128KiB:x2 --warmup 0 "
                 "--repetitions 1"),
      folder.path());
  CAPTURE(run.err);
  CHECK(run.exit == 1);
  std::size_t told = 0;
  for (std::size_t at = 0; (at = run.err.find("wrong result on rank 1", at)) != std::string::npos; ++at) ++told;
  CHECK(told == 20);
  CHECK(run.err.find("... and 4 more\n") != std::string::npos);
}

TEST_CASE("ranks that do not connect end at the timeout, with NCCL's thread still waiting for them") {
  const Folder folder;
  const auto run = run_shell(
      with_fakes("FAKE_ALONE=1 collcast measure all_reduce --backend nccl --ranks 2 --size 64 --timeout 300ms"),
      folder.path());
  CAPTURE(run.err);
  CHECK(run.exit == 1);
  CHECK(run.err.find("NCCL: the ranks did not connect within 0.3 s") != std::string::npos);
}

TEST_CASE("a collective that hangs ends at the timeout, a lost peer at once") {
  const Folder folder;
  const std::string two = "collcast measure all_reduce --backend nccl --ranks 2 --size 64 --timeout 300ms";
  const auto hung = run_shell(with_fakes("FAKE_HANG=1 " + two), folder.path());
  CHECK(hung.exit == 1);
  CHECK(hung.err.find("rank 0 did not finish within 0.3 s") != std::string::npos);
  const auto lost = run_shell(with_fakes("FAKE_ERROR=1 " + two), folder.path());
  CHECK(lost.exit == 1);
  CHECK(lost.err.find("remote process exited") != std::string::npos);
}

TEST_CASE("one process per rank takes the GPU of its place on the node") {
  const Folder folder;
  const std::string one =
      "WORLD_SIZE=1 RANK=0 collcast measure all --backend nccl --size 64 --repetitions 1 --format json";
  const auto run = run_shell(with_fakes("LOCAL_RANK=3 " + one), folder.path());
  CAPTURE(run.err);
  CHECK(run.exit == 0);
  const auto too_far = run_shell(with_fakes("LOCAL_RANK=4 " + one), folder.path());
  CHECK(too_far.exit == 3);
  CHECK(too_far.err.find("rank 0 is number 4 of this node, which has 4 GPUs") != std::string::npos);
  const auto many = run_shell(with_fakes("collcast measure all --backend nccl --ranks 5"), folder.path());
  CHECK(many.exit == 2);
  CHECK(many.err.find("5 ranks, but 4 GPUs here") != std::string::npos);
}

#else

TEST_CASE("without NCCL the command ends with 3 and says how to build it in") {
  const Folder folder;
  const auto run = run_shell("collcast measure all_reduce --backend nccl", folder.path());
  CHECK(run.exit == 3);
  CHECK(run.err.find("-DCOLLCAST_WITH_NCCL=ON") != std::string::npos);
}

#endif
