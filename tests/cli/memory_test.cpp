// --memory-limit from outside: what a command has at once, and what it refuses before it takes it. And other questions
// that are too large, or wrong, and are told so before they are begun.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/called.hpp"
#include "cli/process.hpp"
#include "support/sample.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

/// The most memory that a command had at once, in KiB. A child begins with what its parent had as its most (Linux,
/// exec_mmap), so it is the child of a process that is small.
std::int64_t peak_of(const std::string& command) {
  constexpr const char* asked =
      "python3 -c 'import resource, subprocess, sys; "
      "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' ";
  const Outcome peak = run_shell(asked + command, std::filesystem::current_path());
  INFO(peak.err);
  REQUIRE(peak.exit == 0);
  return std::stoll(peak.out);
}

}  // namespace

TEST_CASE("whatever a command does, it has no more memory than the limit at once") {
  if (sanitized) return;
  for (const auto& [command, mebibytes] :
       {std::pair("collective all_reduce --topology star --ranks 1000000", 300),
        std::pair("collective all_reduce --topology star --ranks 200000 --algorithm ring", 64),
        std::pair("collective all_reduce --topology star --ranks 200000 --algorithm ring", 200),
        std::pair("collective alltoall --topology star --ranks 1000", 64),
        std::pair("collective alltoall --topology star --ranks 1000", 300),
        std::pair("explain collective broadcast --topology star --ranks 100000", 128),
        std::pair("collective all_reduce --topology dgx-h100 --nodes 4096 --library ideal", 300),
        std::pair("step gpt3-512gpu", 128), std::pair("plan llama3-70b-64xh100 --tp 8 --pp 2", 128)}) {
    const std::int64_t peak =
        peak_of("collcast " + std::string(command) + " --memory-limit " + std::to_string(mebibytes) + "MiB");
    INFO(command << " with " << mebibytes << " MiB");
    CHECK(peak > 0);
    CHECK(peak <= std::int64_t{mebibytes} * 1024);
  }
}

TEST_CASE("a log of more than a million lines is scored in 128 bytes a row, and lines that are no rows take none") {
  if (sanitized) return;
  // A row is 24 bytes, scored 48 more, its place by size 4, errors and ratios 8 each, with room to grow. Fitted to, its
  // time and forecast are 16, the time in the sum 16 and again while they are sorted, and the same as a residual.
  // JSON and residuals, some 100 to 240 bytes a row, are written as they go.
  const auto peaks_with = [](const std::string& rows, const std::string& others) {
    const std::string log = "large-all_reduce.log";
    const std::string head =
        "{ echo '#       size count type redop root time algbw busbw #wrong time algbw busbw #wrong'; ";
    const std::string row = "1048576 262144 float sum -1 50.00 20.97 36.70 0 51.00 20.56 35.98 0";
    const std::string other = "node1:4711:4800 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM";
    REQUIRE(run_shell(head + "yes '" + row + "' | head -n " + rows + "; yes '" + other + "' | head -n " + others +
                          "; echo '# Out of bounds values : 0 OK'; } > " + log,
                      std::filesystem::current_path())
                .exit == 0);
    const std::string of_log = " --measured " + log + " --topology dgx-h100 --nodes 1 --ranks 8";
    const Outcome outcome = run_shell("collcast validate" + of_log + " --format csv", std::filesystem::current_path());
    INFO(outcome.err);
    REQUIRE(outcome.exit == 0);
    CHECK_THAT(outcome.out, Contains("," + std::to_string(2 * std::stoi(rows)) + ","));
    std::vector<std::int64_t> peaks;
    for (const std::string& command :
         {"collcast validate" + of_log, "collcast validate" + of_log + " --format json --output large.json",
          "collcast calibrate" + of_log + " --output large.yaml --output large.csv --residuals large-rows.csv"})
      peaks.push_back(peak_of(command) * 1024);
    for (const char* file : {"large.json", "large.yaml", "large.csv", "large-rows.csv"}) {
      INFO(file);
      CHECK(std::filesystem::remove(file));
    }
    std::filesystem::remove(log);
    return peaks;
  };
  const std::vector<std::int64_t> least = peaks_with("10", "0"), with_others = peaks_with("10", "400000"),
                                  large = peaks_with("1100000", "0");
  for (std::size_t i = 0; i < least.size(); ++i) {
    CAPTURE(i);
    CHECK(with_others[i] < least[i] + (4 << 20));
    CHECK(large[i] < least[i] + std::int64_t{2} * 1'100'000 * 128);
  }
}

TEST_CASE("a timeline is asked for beside what the machine and its prices have taken by then") {
  if (sanitized) return;
  // 52 MiB beside about 78 of a million links: between the two sums there was an end without a result.
  for (const char* limit : {"90MiB", "110MiB", "125MiB"}) {
    const Outcome step = run_shell(std::string("collcast step gpt3-100096xh100 --format json --memory-limit ") + limit,
                                   std::filesystem::current_path());
    INFO(limit << ": " << step.err);
    REQUIRE(step.exit == 0);
    const Json doc = Json::parse(step.out);
    CHECK(doc["partial"] == true);
    CHECK(doc["estimate_s"].is_number());
    CHECK_THAT(step.err, Contains("to simulate the timeline of 136.2 k operations takes about 51.94 MiB"));
  }
}

TEST_CASE("closed forms that need more memory than there is are refused before they take it, and say how much") {
  if (sanitized) return;
  const Outcome many = run_shell("collcast collective alltoall --topology star --ranks 1000 --memory-limit 100MiB",
                                 std::filesystem::current_path());
  CHECK(many.exit == 3);
  CHECK(many.out.empty());
  CHECK_THAT(many.err, Contains("the closed forms of 4 algorithms among 1000 ranks take at least") &&
                           Contains("that there is room for") && Contains("expected --algorithm with one name"));
  const Outcome one =
      run_shell("collcast collective all_reduce --topology star --ranks 1000000 --algorithm ring --memory-limit 150MiB",
                std::filesystem::current_path());
  CHECK(one.exit == 3);
  CHECK_THAT(one.err, Contains("the closed form of ring among 1000000 ranks takes at least") &&
                          Contains("expected fewer ranks, another algorithm, or a larger --memory-limit"));
  // Of all algorithms those that fit are there.
  const Outcome all = run_shell(
      "collcast collective all_reduce --topology star --ranks 100000 --algorithm all --method estimate --format json "
      "--memory-limit 150MiB",
      std::filesystem::current_path());
  INFO(all.err);
  REQUIRE(all.exit == 0);
  const Json doc = Json::parse(all.out);
  CHECK(doc["rows"].size() >= 1);
  CHECK_THAT(doc["not_applicable"].dump(), Contains("of memory, more than"));
}

TEST_CASE("lists of links that double as they grow are asked for before a simulation, which leaves the closed form") {
  if (sanitized) return;
  // Routes of 75 links on average, of 301 x 300 messages at once, in lists that double as they grow.
  const Outcome run = run_shell(
      "collcast collective alltoall --topology ring --ranks 301 --algorithm direct --size 1MiB --method both "
      "--memory-limit 320MiB --format json",
      std::filesystem::current_path());
  CHECK(run.exit == 0);
  const Json doc = Json::parse(run.out);
  CHECK_THAT(doc["notes"].dump(), Contains("not simulated: to simulate direct among 301 ranks takes about 4"));
  REQUIRE(doc["rows"].size() == 1);
  CHECK(doc["rows"][0]["estimate_s"].get<double>() > 0);
  CHECK(doc["rows"][0]["simulate_s"].is_null());
}

TEST_CASE("a simulation not asked for is left out by what it steps, not by what is sent") {
  // 2 x 12 hops of 64 chunks by each of 4,096 ranks: more than six million messages, of which one rank's are stepped.
  const Json doc = Json::parse(call("collective all_reduce --topology star --ranks 4096 --algorithm halving_doubling "
                                    "--chunks 64 --size 64MiB --format json")
                                   .out);
  REQUIRE(doc["rows"].size() == 1);
  CHECK(doc["rows"][0]["simulate_s"].is_number());
  CHECK(doc["rows"][0]["classes"] == 1);
  // Who asks for links has each rank for itself, and is as long as ever.
  CHECK_THAT(call("collective all_reduce --topology star --ranks 4096 --algorithm halving_doubling --chunks 64 --size "
                  "64MiB --links")
                 .out,
             Contains("1 of 1 simulations left out"));
}

TEST_CASE("a mistake in a fault of the command line is told once, and not for each variant") {
  const Outcome called = run_shell("collcast step llama3-70b-straggler-64xh100 --fault 'gpu: 9, compute: 3'",
                                   std::filesystem::current_path());
  CHECK(called.exit == 2);
  CHECK_THAT(called.err, Contains("'3'") && !Contains("what_if"));
}

TEST_CASE("draws of links that would take hours are refused, and how many would do is said") {
  const Outcome called = run_shell(
      "collcast step llama3-70b-64xh100 --library ideal --fault 'link: node0.nic0, jitter: 10%, seed: 1' --seeds 10000",
      std::filesystem::current_path());
  CHECK(called.exit == 2);
  CHECK_THAT(called.err, Contains("10000 draws of") && Contains("expected fewer --seeds"));
}
