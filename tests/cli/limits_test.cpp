// Ctrl-C, --time-limit and --memory-limit in the commands that work through many things, and a step on a terminal.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "cli/called.hpp"
#include "cli/process.hpp"
#include "support/sample.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

std::filesystem::path working_folder() { return std::filesystem::current_path(); }

/// The command, sent SIGINT after more and more time until it had something to deliver.
Outcome interrupted(const std::string& command) {
  Outcome outcome;
  for (double seconds = 0.5; seconds < 60 && outcome.out.empty(); seconds *= 1.5)
    outcome = run_shell("timeout --preserve-status --signal=INT " + std::to_string(seconds) + " collcast " + command,
                        working_folder());
  return outcome;
}

}  // namespace

TEST_CASE("Ctrl-C ends a step with what is known by then: valid JSON, marked partial, and 130") {
  // A minute and more of simulation, every rank for itself.
  const Outcome outcome = interrupted("step gpt3-100096xh100 --unfolded --format json");
  CHECK(outcome.exit == 130);
  CHECK_THAT(outcome.err, Contains("partial: stopped by Ctrl-C"));
  const Json doc = Json::parse(outcome.out);
  CHECK(doc["partial"] == true);
  CHECK(doc.value("unfolded", Json()).is_null());
  CHECK(doc["step_s"].get<double>() > 0);
}

TEST_CASE("explain step without the time to simulate takes the closed form apart") {
  const Called called = call("explain step gpt3-512gpu --time-limit 1us --format json");
  CHECK(called.exit == 0);
  CHECK_THAT(called.err, Contains("partial: the time limit of 1 us is over; the closed form alone"));
  const Json doc = Json::parse(called.out);
  CHECK(doc["partial"] == true);
  CHECK_THAT(doc["warnings"].dump(), Contains("partial: the time limit of 1 us is over"));
  CHECK(doc["terms"].size() > 10);
  CHECK_THAT(call("explain step gpt3-512gpu --time-limit 1us").out, Contains("partial: the time limit of 1 us"));
}

TEST_CASE("explain collective keeps its closed form where time, memory or the clock do not last") {
  const std::string ring = "explain collective all_reduce --topology ring --ranks 4 --format json ";
  CHECK(Json::parse(call(ring).out)["partial"] == false);
  const Called late = call(ring + "--method both --time-limit 1ns");
  CHECK(late.exit == 0);
  CHECK_THAT(late.err, Contains("partial: the time limit of 1 ns is over; simulations are missing"));
  CHECK(Json::parse(late.out)["partial"] == true);
  // 4 EiB at tens of GB/s are more than the simulation's 106 days.
  const Called beyond = call(ring + "--size 4EiB");
  CHECK(beyond.exit == 0);
  CHECK_THAT(beyond.out, Contains("not simulated: ") && Contains("106 days"));
  CHECK(call(ring + "--size 4EiB --method simulate").exit == 2);
  if (sanitized) return;  // a sanitizer keeps terabytes of addresses for itself
  const Outcome large = run_shell(
      "collcast explain collective alltoall --topology star --ranks 1400 --size 1MiB --algorithm direct "
      "--memory-limit 200MiB",
      working_folder());
  CHECK(large.exit == 0);
  CHECK_THAT(large.out, Contains("not simulated: to simulate direct takes about"));
}

TEST_CASE("a report has what was forecast by then, and names what was not") {
  const Called called = call("report gpt3-512gpu llama3-8b-8xh100 --time-limit 1us --format json");
  CHECK(called.out.empty());
  CHECK_THAT(called.err, Contains("the time limit of 1 us is over: no scenario was forecast"));
  const Outcome cut =
      interrupted("report llama3-70b-64xh100 gpt3-100096xh100 deepseek-v3-2048xh800 --what-if all --format json");
  const Json doc = Json::parse(cut.out);
  if (doc["partial"] == true) {
    CHECK(cut.exit == 130);
    CHECK_THAT(cut.err, Contains("partial: stopped by Ctrl-C; not "));
  }
  CHECK(doc["results"].size() >= 1);
}

TEST_CASE("tables that there is no time for are counted, and no budget is met by the others") {
  const Called none = call("validate --time-limit 1ns");
  CHECK(none.exit == 2);
  CHECK_THAT(none.err, Contains("the time limit of 1 ns is over: no table was scored"));
  // By simulation all tables take minutes, and the small ones no time.
  const std::string long_one = "validate --library ideal --method simulate --time-limit 4s --format json ";
  const Called some = call(long_one);
  CHECK(some.exit == 0);
  CHECK_THAT(some.err, Contains("partial: the time limit of 4 s is over; ") && Contains(" tables were reached"));
  const Json doc = Json::parse(some.out);
  CHECK(doc["partial"] == true);
  CHECK(doc["not_reached"].get<int>() > 0);
  CHECK(doc["tables"].size() > 0);
  const Called judged = call(long_one + "--budget large=1000%");
  CHECK(judged.exit == 1);
  CHECK_THAT(judged.err, Contains("no budget is called met: what was not reached may be above it"));
  CHECK_THAT(call("validate --training --time-limit 1ns").err, Contains("no row was scored"));
  CHECK_THAT(call("validate --inference --time-limit 1ns").err, Contains("no row was scored"));
}

TEST_CASE("a calibration that is ended is of the machines that were fitted") {
  CHECK_THAT(call("calibrate --time-limit 1ns").err, Contains("no machine was fitted"));
  Called cut;
  for (double seconds = 0.5; seconds < 60 && cut.out.empty(); seconds *= 1.5)
    cut = call("calibrate --format json --time-limit " + std::to_string(seconds) + "s");
  CHECK(cut.exit == 0);
  const Json doc = Json::parse(cut.out);
  CHECK(doc["machines"].size() >= 1);
  CHECK(doc["partial"].get<bool>() == !doc["not_reached"].empty());
}

TEST_CASE("the machine's links and what auto simulates are asked for before they are taken") {
  if (sanitized) return;
  // 2 x 24 bytes for each cable.
  const Outcome machine = run_shell(
      "collcast collective all_reduce --topology dgx-h100 --nodes 65536 --library ideal --algorithm ring --method "
      "estimate --memory-limit 128MiB",
      working_folder());
  CHECK(machine.exit == 3);
  CHECK_THAT(machine.err, Contains("the links of 65536 nodes of 'dgx-h100' take about 135 MiB of memory"));
  // The closed forms of the candidates hold some 80 MB; what simulates the better ones would take as much again.
  for (const char* limit : {"90MiB", "120MiB", "140MiB"}) {
    const Outcome chosen = run_shell(
        "collcast collective alltoall --topology star --ranks 700 --size 1MiB --format "
        "json --memory-limit " +
            std::string(limit),
        working_folder());
    INFO(limit << chosen.err);
    REQUIRE(chosen.exit == 0);
    CHECK(Json::parse(chosen.out)["rows"][0]["simulate_s"].is_null());
  }
}

TEST_CASE("a scenario comes from standard input, and is read once") {
  const std::string scenario = std::string(COLLCAST_SOURCE_DIR) + "/scenarios/llama3-70b-64xh100.yaml";
  const std::string json = " --method estimate --format json ";
  const Outcome piped = run_shell("collcast step -" + json + "< " + scenario, working_folder());
  const Outcome named = run_shell("collcast step " + scenario + json, working_folder());
  INFO(piped.err);
  REQUIRE(piped.exit == 0);
  CHECK(Json::parse(piped.out)["step_s"] == Json::parse(named.out)["step_s"]);
  const Outcome plan = run_shell(
      "collcast plan - --what-if all --simulate 0 --tp 8 --pp 2,4 --format json < " + scenario, working_folder());
  INFO(plan.err);
  CHECK(plan.exit == 0);
  CHECK_THAT(run_shell("collcast step - < /dev/null", working_folder()).err, Contains("standard input is empty"));
  const Outcome wrong = run_shell("printf 'model: {}\\nnonsense: 1\\n' | collcast step -", working_folder());
  CHECK(wrong.exit == 2);
  CHECK_THAT(wrong.err, Contains("-:2:1: ") && Contains("nonsense"));
}

TEST_CASE("a scenario's machine comes from standard input, and is read once") {
  const std::string machine = std::string(COLLCAST_SOURCE_DIR) + "/topologies/dgx-h200.yaml";
  const std::string rest = " --method estimate --format json";
  for (const std::string command : {"step", "explain step"}) {
    const Outcome piped =
        run_shell("collcast " + command + " llama3-8b-8xh100 --topology -" + rest + " < " + machine, working_folder());
    const Outcome named =
        run_shell("collcast " + command + " llama3-8b-8xh100 --topology dgx-h200" + rest, working_folder());
    INFO(piped.err);
    REQUIRE(piped.exit == 0);
    const char* figure = command == "step" ? "step_s" : "terms";
    REQUIRE(Json::parse(named.out).contains(figure));
    CHECK(Json::parse(piped.out)[figure] == Json::parse(named.out)[figure]);
  }
  const Outcome plan = run_shell(
      "collcast plan llama3-8b-8xh100 --topology - --what-if all --simulate 0 --tp 8 "
      "--format json < " +
          machine,
      working_folder());
  INFO(plan.err);
  REQUIRE(plan.exit == 0);
  const Outcome planned =
      run_shell("collcast plan llama3-8b-8xh100 --topology dgx-h200 --what-if all --simulate 0 --tp 8 --format json",
                working_folder());
  REQUIRE_FALSE(Json::parse(planned.out)["ranked"].empty());
  CHECK(Json::parse(plan.out)["ranked"] == Json::parse(planned.out)["ranked"]);
  const Outcome both = run_shell("collcast step - --topology - < " + machine, working_folder());
  CHECK(both.exit == 2);
  CHECK_THAT(both.err, Contains("SCENARIO and --topology are both standard input") && Contains("from a file"));
  const Outcome empty = run_shell("collcast step llama3-8b-8xh100 --topology - < /dev/null", working_folder());
  CHECK(empty.exit == 2);
  CHECK_THAT(empty.err, Contains("standard input is empty") && Contains("--topology - < FILE"));
  const Outcome wrong = run_shell(
      "printf 'schema: collcast.topology.v1\nname: mine\nextends: dgx-h100\nnonsense: 1\n' | collcast step "
      "llama3-8b-8xh100 --topology -",
      working_folder());
  CHECK(wrong.exit == 2);
  CHECK_THAT(wrong.err, Contains("-:4:1: error: unknown key 'nonsense'"));
}

TEST_CASE("an algorithm of one's own keeps the sizes that are within the clock") {
  const std::string mine =
      std::string("collective all_gather --topology ring --ranks 4 --format json --algorithm msccl:") +
      COLLCAST_SOURCE_DIR + "/docs/guide/ring-all-gather.xml ";
  const Called called = call(mine + "--size 1GiB,4EiB");
  CHECK(called.exit == 0);
  const Json doc = Json::parse(called.out);
  REQUIRE(doc["rows"].size() >= 1);
  CHECK(doc["rows"][0]["simulate_s"].get<double>() > 0);
  CHECK_THAT(doc["notes"].dump(), Contains("4 EiB: not simulated") && Contains("106 days"));
  const Called simulated = call(mine + "--method simulate --size 1GiB,4EiB");
  CHECK(Json::parse(simulated.out)["rows"].size() == 1);
  CHECK(call(mine + "--method simulate --size 4EiB").exit == 2);
}

TEST_CASE("sizes beyond 2^53 are exact, and 0 and 2^62 bytes have times") {
  const Json doc =
      Json::parse(call("collective all_reduce --topology ring --ranks 4 --format json --method estimate --size "
                       "0,9007199254740993,4611686018427387904")
                      .out);
  REQUIRE(doc["rows"].size() == 3);
  CHECK(doc["rows"][1]["size_bytes"].get<std::int64_t>() == 9007199254740993);
  CHECK(doc["rows"][2]["size_bytes"].get<std::int64_t>() == std::int64_t{1} << 62);
}
