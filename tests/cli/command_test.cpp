// Commands as called: exit codes, streams, and what is said about a slip.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/called.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;

namespace {

const std::string ring8 = "--topology ring --ranks 8 --link-bandwidth 10GB/s --link-latency 0s ";

Json rows(const std::string& words) {
  const Called called = call(words + " --format json");
  CHECK(called.err.empty());
  REQUIRE(called.exit == 0);
  return Json::parse(called.out).at("rows");
}

}  // namespace

TEST_CASE("help and version go to standard output and succeed") {
  for (const char* words :
       {"--help", "collective --help", "step --help", "groups --help", "topology --help", "topology show --help",
        "explain --help", "explain step --help", "compare --help", "report --help", "--version"}) {
    const Called called = call(words);
    CHECK(called.exit == 0);
    CHECK(called.err.empty());
    CHECK_FALSE(called.out.empty());
  }
  CHECK(call("collective --help").out.find("Example") != std::string::npos);
}

TEST_CASE("usage errors exit with 2, print nothing on standard output and offer the nearest word") {
  const std::vector<std::pair<std::string, std::string>> slips{
      {"", "'collcast' needs a command"},
      {"colective all_reduce", "did you mean 'collective'?"},
      {"topology shw ring", "did you mean 'show'?"},
      {"collective all_reduce --topolgy ring", "did you mean '--topology'?"},
      {"collective all_reduce --topolgy=ring", "did you mean '--topology'?"},
      {"collective all_reduc " + ring8, "did you mean 'all_reduce'?"},
      {"collective " + ring8, "KIND is missing"},
      {"collective all_reduce", "--topology is missing"},
      {"collective all_reduce extra " + ring8, "unexpected argument 'extra'"},
      {"collective all_reduce --topology rng", "did you mean 'ring'?"},
      {"collective all_reduce --algorithm rin " + ring8, "did you mean 'ring'?"},
      {"collective all_reduce --method simulat " + ring8, "did you mean 'simulate'?"},
      {"collective all_reduce --sharing fif " + ring8, "did you mean 'fifo'?"},
      {"collective all_reduce --format jsn " + ring8, "did you mean 'json'?"},
      {"collective all_reduce --library nccl " + ring8, "NCCL runs on NVIDIA GPUs, and ring has none"},
      {"collective all_reduce --size 8:64:x1 " + ring8, "never gets on"},
      {"collective broadcast --root 8 " + ring8, "--root: 8 is outside a group of 8 ranks"},
      {"collective all_reduce --group 0,1 --groups-of 2 " + ring8, "exclude each other"},
      {"collective all_reduce --concurrent " + ring8, "--concurrent needs several groups"},
      {"collective all_reduce --size", "--size needs a value"},
      {"report llama3-8b-8xh100 --output= --what-if=full-recompute", "--output needs a value"},
      {"report llama3-8b-8xh100 --output=", "--output needs a value"},
      {"step llama3-8b-8xh100 --trace= --operations", "--trace needs a value"},
      {"step llama3-8b-8xh100 --operations=", "--operations takes no value"},
      {"step llama3-8b-8xh100 --trace --operations", "a file of that name is './--operations'"},
      {"step llama3-8b-8xh100 --topology --operations", "--topology needs a value, and '--operations' stands"},
      {"topology show ring --set=", "--set needs a value"},
      {"step llama3-8b-8xh100 --traec= x", "did you mean '--trace'?"},
      {"collective all_reduce --ranks 2 --ranks 3 --topology ring", "--ranks is given more than once"},
      {"collective all_reduce --root 3 " + ring8, "--root has no meaning: all_reduce has none"},
      {"collective all_reduce --method estimate --sharing fifo " + ring8, "--sharing fifo has no effect"},
      {"collective all_reduce --topology dgx-a100 --ranks 4 --group 0,5", "--ranks and --group exclude each other"},
      {"collective sendrecv --group 0,9 " + ring8, "--group: rank 9 is outside --ranks 8"},
      {"collective all_reduce --group 0,1 --group 2-6:2 --topology star --ranks 4", "rank 6 is outside --ranks 4"},
      {"explain collective sendrecv --group 0,9 " + ring8, "--group: rank 9 is outside --ranks 8"},
      {"collective all_reduce --topology rtx2080ti-pcie --ranks 3", "one node of 2 without a network"},
      {"collective all_reduce --topology dgx-h100 --nodes 100000000", "--nodes: '100000000' is out of range"},
      {"step overlap-175b-layer --algorithm ring", "--algorithm has no effect on a scenario of tasks"},
      {"step overlap-175b-layer --operations", "--operations has no effect on a scenario of tasks"},
      {"nonsense --help", "unknown command 'nonsense'"},
      {"topology show", "NAME is missing"},
      {"groups --tp 0", "--tp: '0' is out of range"},
      {"groups --tp 8 --rank 8", "--rank: 8 is outside the 8 ranks"},
      {"groups --dp 8 --ep 3", "--ep: 3 does not divide --dp 8"},
      {"groups --cp 2", "--cp has no place in the order tp-pp-dp"},
      {"groups --order tp-dp-pp", "did you mean 'tp-pp-dp'?"},
      {"topology export ring --to png", "--to: unknown word 'png'"},
      {"topology export ring --to dott", "did you mean 'dot'?"},
      {"step", "SCENARIO is missing"},
      {"compare", "BASE is missing"},
      {"compare base.json", "NEW is missing"},
      {"compare - -", "BASE and NEW are both standard input"},
      {"compare a b --tolerence 2%", "did you mean '--tolerance'?"},
      {"compare a b --tolerance stp_s=2%", "did you mean 'step_s'?"},
      {"compare a b --format junt", "did you mean 'junit'?"},
      {"compare a b --output x.html", "no format has the suffix '.html'"},
      {"compare a b --format json --output x --output y", "--format is for one --output"},
      {"report", "INPUT is missing"},
      {"report no-such-scenario", "no-such-scenario"},
      {"report no-such-file.json", "cannot read 'no-such-file.json'"},
      {"report llama3-8b-8xh100 --what-if no-such", "there is no what_if 'no-such'"},
      {"report llama3-8b-8xh100 --method guess", "--method"},
      {"report llama3-8b-8xh100 --format htm", "did you mean 'html'?"},
      {"compare no-such-file.json b", "cannot read 'no-such-file.json'"},
      {"explain collective all_reduce --size 8:64:x2 " + ring8, "one figure is explained at a time"},
  };
  for (const auto& [words, said] : slips) {
    INFO(words);
    const Called called = call(words);
    CHECK(called.exit == 2);
    CHECK(called.out.empty());
    INFO(called.err);
    CHECK(called.err.find(said) != std::string::npos);
  }
}

TEST_CASE("the empty word is no value of any option, and is not taken for none") {
  const std::string scenario = "step llama3-8b-8xh100 ", plan = "plan llama3-8b-8xh100 ",
                    collective = "collective all_reduce " + ring8;
  std::vector<std::pair<std::string, std::string>> empty;
  for (const char* option : {"--what-if", "--overlay", "--topology", "--library", "--trace", "--write-schedule",
                             "--measured", "--set", "--env", "--fault", "--sweep", "--output", "--format"})
    empty.emplace_back(scenario, option);
  for (const char* option : {"--tp", "--pp", "--zero", "--recompute", "--micro-batch", "--sequence-parallel", "--vpp",
                             "--what-if", "--why", "--top", "--max-ttft"})
    empty.emplace_back(plan, option);
  for (const char* option : {"--graph", "--tuner", "--overlay", "--link-bandwidth", "--library", "--method", "--size",
                             "--algorithm", "--group"})
    empty.emplace_back(collective, option);
  for (const char* option : {"--overlay", "--topology", "--part", "--budget", "--training"})
    empty.emplace_back("validate ", option);
  empty.emplace_back("explain step llama3-8b-8xh100 ", "--what-if");
  empty.emplace_back("groups --tp 2 ", "--topology");
  empty.emplace_back("topology show ring ", "--env");
  for (const auto& [command, option] : empty) {
    INFO(command << option);
    const Called called = call(command + option + " ''");
    CHECK(called.exit == 2);
    CHECK(called.out.empty());
    INFO(called.err);
    CHECK(called.err.find("command line: error: " + option + " is empty\n") == 0);
    CHECK(called.err.find("hint: expected ") != std::string::npos);
  }
  CHECK(call(plan + "--tp '' --pp ''").err.find("--pp is empty") != std::string::npos);
  // What is empty inside a value is told by its reader.
  CHECK(call("topology show dgx-h100 --nccl --env NCCL_IB_HCA=").err.find("is empty") == std::string::npos);
}

TEST_CASE("an option that may stand alone does so before another") {
  CHECK(call("validate --inference --format nonsense").err.find("--inference") == std::string::npos);
}

TEST_CASE("an algorithm that does not do what many of a step's collectives need is one slip per kind") {
  const Called called = call("step llama3-8b-8xh100 --algorithm tree");
  CHECK(called.exit == 2);
  for (const std::string said : {"does not do all_gather", "does not do reduce_scatter"}) {
    INFO(called.err);
    const std::size_t first = called.err.find(said);
    CHECK(first != std::string::npos);
    CHECK(called.err.find(said, first + 1) == std::string::npos);
  }
}

TEST_CASE("several slips of one command line are told at once") {
  const Called called = call("collective all_reduc --size 8x --algorithm rin --ranks 0 --topology ring");
  for (const char* said : {"'all_reduc'", "'8x'", "'rin'", "--ranks: '0'"})
    CHECK(called.err.find(said) != std::string::npos);
}

TEST_CASE("the chunked ring broadcast of the reference case, by both methods") {
  // N (S + k - 2) / (S B) with N = 2^30 B, S = 64, k = 8, B = 10 GB/s.
  const double expected = 1073741824.0 * (64 + 8 - 2) / (64 * 10e9);
  const Json row = rows("collective broadcast " + ring8 + "--algorithm ring --chunks 64 --size 1GiB").at(0);
  CHECK(row.at("estimate_s").get<double>() == Approx(expected).epsilon(1e-12));
  // At most 2 ps for each of S + k - 2 transfers one after the other.
  CHECK(row.at("simulate_s").get<double>() >= expected * (1 - 1e-12));
  CHECK(row.at("simulate_s").get<double>() <= expected + 2e-12 * (64 + 8 - 2));
}

TEST_CASE("--method leaves the other method null") {
  const Json estimated =
      rows("collective all_gather " + ring8 + "--algorithm ring --size 1MiB --method estimate").at(0);
  CHECK(estimated.at("simulate_s").is_null());
  const Json simulated =
      rows("collective all_gather " + ring8 + "--algorithm ring --size 1MiB --method simulate").at(0);
  CHECK(simulated.at("estimate_s").is_null());
}

TEST_CASE("a sweep has a row per size, all algorithms a row each, several groups a row each") {
  CHECK(rows("collective all_reduce " + ring8 + "--algorithm ring --size 8:64:x2").size() == 4);
  const Json all = rows("collective all_reduce " + ring8 + "--algorithm all --size 1MiB");
  CHECK(all.size() > 3);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].at("estimate_s") <= all[i].at("estimate_s"));
  CHECK(rows("collective all_reduce " + ring8 + "--algorithm ring --size 1MiB --group 0,1 --group 4-7").size() == 2);
}

TEST_CASE("CSV has the same columns whatever was asked and found, and what it leaves out is said") {
  const auto heading = [](const std::string& words) {
    const std::string out = call("collective all_reduce --size 1MiB --format csv " + words).out;
    return out.substr(0, out.find('\n'));
  };
  const std::string plain = heading("--topology ring --ranks 4");
  CHECK(plain.find("runner_up") == std::string::npos);
  for (const char* words : {"--topology ring --ranks 1", "--topology ring --ranks 4 --algorithm all",
                            "--topology ring --ranks 4 --groups-of 2 --concurrent", "--topology dgx-h100 --ranks 2",
                            "--topology dgx-h100 --group 0 --group 1-3", "--topology ring --group 0 --group 1-3"})
    CHECK(heading(words) == plain);
  const std::string more = "collective all_reduce --topology ring --ranks 4 --size 1MiB --links --chunks-curve ";
  const Called called = call(more + "--format csv");
  CHECK(called.exit == 0);
  CHECK(called.err.find("warning: --links is not in CSV") != std::string::npos);
  CHECK(called.err.find("warning: --chunks-curve is not in CSV") != std::string::npos);
  CHECK(call(more + "--format json").err.empty());
}

TEST_CASE("groups at once are no faster than alone") {
  const Json found =
      rows("collective all_reduce " + ring8 + "--algorithm ring --size 1MiB --groups-of 4:2 --concurrent");
  REQUIRE(found.size() == 2);
  for (const Json& row : found)
    CHECK(row.at("simulate_s").get<double>() >= row.at("simulate_alone_s").get<double>() * (1 - 1e-12));
}

TEST_CASE("a simulation beyond reason is refused when it is asked for, and left out when it is not") {
  const std::string huge =
      "collective alltoall --topology star --ranks 1024 --link-bandwidth 10GB/s --link-latency 0s "
      "--algorithm direct --chunks 8192 --size 1GiB ";
  // 1024 * 1023 * 8192 messages are 8.6e9, of ranks that are alike; for the links' sake each is walked.
  const Called refused = call(huge + "--links --method simulate");
  CHECK(refused.exit == 2);
  CHECK(refused.err.find("expected --method estimate") != std::string::npos);
  CHECK(rows(huge + "--links").at(0).at("simulate_s").is_null());
}

TEST_CASE("a teaching machine is as large as --ranks, or as the largest rank of a group") {
  CHECK(rows("collective all_gather --topology ring --ranks 5 --size 8").at(0).at("ranks") == 5);
  CHECK(rows("collective all_gather --topology ring --group 0,6 --size 8").at(0).at("ranks") == 2);
}

TEST_CASE("--ranks of groups is what the layout has, and the help says so") {
  CHECK(call("groups --help").out.find("as many as the layout has") != std::string::npos);
  CHECK(call("groups --help").out.find("sizes a teaching machine") == std::string::npos);
  CHECK(call("groups --tp 4 --dp 2 --topology dgx-h100 --ranks 8").exit == 0);
  CHECK(call("groups --tp 4 --dp 2 --topology dgx-h100 --ranks 4").err.find("--ranks: 4, and the layout has 8") !=
        std::string::npos);
}

TEST_CASE("the groups of GPU 0 in TP 8 x PP 8 x DP 8") {
  const Json found = rows("groups --tp 8 --pp 8 --dp 8 --rank 0");
  REQUIRE(found.size() == 1);
  CHECK(found.at(0).at("pp") == Json({0, 8, 16, 24, 32, 40, 48, 56}));
  CHECK(found.at(0).at("dp") == Json({0, 64, 128, 192, 256, 320, 384, 448}));
  CHECK(rows("groups --tp 8 --pp 8 --dp 8").size() == 512);
}

TEST_CASE("every shipped machine is listed, passes its own check, shows and exports") {
  const Json list = rows("topology list");
  CHECK(list.size() >= 7);
  for (const Json& entry : list) {
    const auto name = entry.at("name").get<std::string>();
    INFO(name);
    CHECK(call("topology check " + name).out.find("ok: ") == 0);
    CHECK(call("topology show " + name).exit == 0);
    CHECK(call("topology export " + name + " --to dot").out.find("graph") != std::string::npos);
  }
}

TEST_CASE("the same command gives the same bytes") {
  const std::string words = "collective all_reduce " + ring8 + "--algorithm all --size 1KiB:1MiB:x32 --format json";
  CHECK(call(words).out == call(words).out);
}

TEST_CASE("chunks of less than a byte are priced as the fluid they are, with a warning in every document") {
  // 64 B among 8 ranks: blocks of 8 B.
  for (const std::string command : {"collective", "explain collective"}) {
    const std::string ring = command + " all_reduce " + ring8 + "--algorithm ring --size 64 --format json --chunks ";
    const Called fine = call(ring + "9");
    INFO(fine.err);
    CHECK(fine.exit == 0);
    CHECK(fine.err.find("--chunks 9:1:10: warning: 9 chunks of ring at 64 B are 0.889 bytes each") == 0);
    CHECK(fine.err.find("expected --chunks 8 at most") != std::string::npos);
    CHECK(Json::parse(fine.out).at("warnings").size() == 1);
    const Called whole = call(ring + "8");
    CHECK(whole.err.empty());
    CHECK(Json::parse(whole.out).at("warnings").empty());
  }
  CHECK(call("collective all_reduce " + ring8 + "--size 0 --chunks 9").err.empty());
}
