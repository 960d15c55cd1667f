// report as a command: inputs of all kinds, exit codes, files by suffix.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <set>
#include <sstream>

#include "cli/process.hpp"
#include "collcast/report/overview.hpp"

using namespace collcast::test;
using Json = nlohmann::json;

namespace {
const std::string one_table =
    std::string(COLLCAST_SOURCE_DIR) + "/validation/data/nccl-tests/a100-cw-1x8-all_reduce.csv";
}  // namespace

TEST_CASE("report exits with 1 where a gate of a scenario is broken, and says where") {
  CHECK(run_shell("collcast report llama3-8b-8xh100", ".").exit == 0);
  const Outcome broken = run_shell("collcast report llama3-8b-8xh100 --what-if full-recompute", ".");
  CHECK(broken.exit == 1);
  CHECK(broken.out.starts_with("report FAILED: 2 of 3 gates broken\n"));
  CHECK(broken.err.find("llama3-8b-8xh100.yaml:17:17: error: gate broken: step_s is ") != std::string::npos);
}

TEST_CASE("a variant's broken gate is told from the base's, by the name that JUnit has") {
  const Folder folder;
  const Outcome broken =
      run_shell("collcast report llama3-8b-8xh100 --what-if all --method estimate --format junit", folder.path());
  CHECK(broken.exit == 1);
  std::set<std::string> lines;
  int gates = 0;
  std::istringstream err(broken.err);
  for (std::string line; std::getline(err, line);) {
    if (line.find("gate broken: ") == std::string::npos) continue;
    ++gates;
    lines.insert(line);
    // Of these all are variants': "PLACE: error: gate broken: ... (NAME)".
    const std::size_t from = line.rfind(" (") + 2;
    const std::string name = line.substr(from, line.rfind(')') - from);
    CHECK(name.starts_with("llama3-8b-8xh100, what if "));
    CHECK(broken.out.find("<testsuite name=\"" + name + "\"") != std::string::npos);
  }
  CHECK(gates > 2);
  CHECK(std::ssize(lines) == gates);
}

TEST_CASE("what a scenario is warned of stands once on the error stream, however many variants it has") {
  const Folder folder;
  folder.write("s.yaml",
               "schema: collcast.scenario.v1\nname: s\ntopology: dgx-h100\nnodes: 1\n"
               "model: {layers: 4, hidden: 1024, heads: 8, ffn: 4096, vocab: 1024}\n"
               "layout: {tp: 2, dp: 4}\nbatch: {sequence: 1024, global_batch: 8}\n"
               "faults: [{link: node0.gpu0, bandwidth: 50GB/s}]\n"
               "what_if:\n  a: {title: a, set: {batch.global_batch: 16}}\n"
               "  b: {title: b, set: {batch.global_batch: 32, faults: [{link: node0.gpu0, bandwidth: 40GB/s}]}}\n");
  const Outcome all = run_shell("collcast report s.yaml --what-if all --method estimate", folder.path());
  CHECK(all.exit == 0);
  const auto count = [&](const std::string& text) {
    int times = 0;
    for (std::size_t at = all.err.find(text); at != std::string::npos; at = all.err.find(text, at + 1)) ++times;
    return times;
  };
  CHECK(count("s.yaml:8:17: warning: library nccl knows no single links") == 1);
  CHECK(count("--library ideal says that it is meant") == count("library nccl knows no single links"));
  // The page has it of each.
  CHECK(all.out.find("what if a") != std::string::npos);
}

TEST_CASE("report exits with 1 where a saved result has a broken gate") {
  const Folder folder;
  REQUIRE(run_shell("collcast step llama3-8b-8xh100 --what-if full-recompute --output s.json", folder.path()).exit ==
          1);
  CHECK(run_shell("collcast report s.json", folder.path()).exit == 1);
  CHECK(run_shell("collcast report - <s.json", folder.path()).exit == 1);
  CHECK(run_shell("collcast report .", folder.path()).exit == 1);
}

TEST_CASE("two validations are named by their files, so that rows and charts can be told apart") {
  const Folder folder;
  folder.write("before.json", run_shell("collcast validate --measured " + one_table + " --format json", ".").out);
  std::filesystem::create_directories(folder.path() / "new");
  folder.write("new/after.json", folder.read("before.json"));
  const std::string page = run_shell("collcast report before.json new/after.json --format markdown", folder.path()).out;
  CHECK(page.find("validation (before)") != std::string::npos);
  CHECK(page.find("validation (after)") != std::string::npos);
  CHECK(page.find("new/after") == std::string::npos);
  const std::string alone = run_shell("collcast report before.json --format markdown", folder.path()).out;
  CHECK(alone.find("validation") != std::string::npos);
  CHECK(alone.find("(before)") == std::string::npos);
}

TEST_CASE("a folder's documents that are no results are passed over with a note, those of another version are not") {
  const Folder folder;
  REQUIRE(run_shell("collcast report llama3-8b-8xh100 --method estimate --output report.json && collcast compare "
                    "report.json report.json --output compare.json",
                    folder.path())
              .exit == 0);
  const Outcome outcome = run_shell("collcast report . --format json", folder.path());
  CHECK(outcome.exit == 0);
  CHECK(outcome.err.find("compare.json' is a collcast.compare.v1 and no result: passed over") != std::string::npos);
  CHECK(Json::parse(outcome.out).at("results").size() == 1);
  CHECK(run_shell("collcast compare . .", folder.path()).exit == 0);
  CHECK(run_shell("collcast report compare.json", folder.path()).exit == 2);
  folder.write("later.json", R"({"schema": "collcast.step.v2"})");
  CHECK(run_shell("collcast report .", folder.path()).exit == 2);
  folder.write("later.json", R"({"schema": "else.v1"})");
  CHECK(run_shell("collcast report .", folder.path()).exit == 2);
}

TEST_CASE("--what-if all puts every variant beside the base") {
  const Outcome outcome =
      run_shell("collcast report llama3-70b-64xh100 --what-if all --method estimate --format json", ".");
  CHECK(outcome.exit == 0);
  const Json results = Json::parse(outcome.out).at("results");
  REQUIRE(results.size() == 6);
  CHECK(results[0].at("what_if").is_null());
  CHECK(results[5].at("what_if") == "no-sequence-parallel");
}

TEST_CASE("a variant that cannot be is left out with the reason, beside those that can") {
  const Folder folder;
  const std::string model = std::string(COLLCAST_SOURCE_DIR) + "/scenarios/models/llama3-8b/config.json";
  folder.write("job.yaml",
               "schema: collcast.scenario.v1\nname: job\ntopology: dgx-h100\nnodes: 1\nmodel: {config: " + model +
                   "}\nlayout: {dp: 8}\nbatch: {sequence: 1024, micro_batch: 1, global_batch: 8}\n"
                   "training: {zero: 3}\nwhat_if:\n  odd: {set: {batch.micro_batch: 3}}\n"
                   "  split: {set: {training.zero: 2}}\n");
  const Outcome outcome =
      run_shell("collcast report job.yaml --what-if all --method estimate --format json", folder.path());
  CHECK(outcome.exit == 0);
  const Json report = Json::parse(outcome.out);
  CHECK(report.at("results").size() == 2);
  REQUIRE(report.at("left_out").size() == 1);
  CHECK(report.at("left_out")[0].get<std::string>().starts_with(
      "what_if 'odd' of job.yaml: cannot be: global_batch 8 is not a multiple of micro_batch 3 (job.yaml:10:"));
  CHECK(outcome.err.find("left out: what_if 'odd'") != std::string::npos);
  // A report that is read back says it again, and CI sees it skipped.
  folder.write("saved.json", outcome.out);
  const Outcome again = run_shell("collcast report saved.json --format json", folder.path());
  CHECK(Json::parse(again.out).at("left_out") == report.at("left_out"));
  CHECK(again.err.find("left out: what_if 'odd'") != std::string::npos);
  const Outcome cases = run_shell("collcast report saved.json --format junit", folder.path());
  CHECK(cases.out.find("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"1\"") != std::string::npos);
  CHECK(cases.out.find("<testcase classname=\"left out\" name=\"what_if 'odd' of job.yaml\">") != std::string::npos);
  CHECK(cases.out.find("<skipped message=\"what_if 'odd' of job.yaml: cannot be: ") != std::string::npos);
  // What is asked for alone is an error.
  CHECK(run_shell("collcast report job.yaml --what-if odd", folder.path()).exit == 2);
}

TEST_CASE("a saved plan that nothing fits says so, with the reasons") {
  const Folder folder;
  REQUIRE(run_shell("collcast plan gpt3-plan-64xa100 --ranks 16 --simulate 0 --output plan.json", folder.path()).exit ==
          0);
  const Outcome page = run_shell("collcast report plan.json", folder.path());
  CHECK(page.exit == 0);
  CHECK(page.out.find("no layout fits; rejected: ") != std::string::npos);
  CHECK(page.out.find("optimizer state do not fit the GPU)") != std::string::npos);
}

TEST_CASE("a saved plan whose layouts break a server's limits names the nearest, and compare holds it") {
  const Folder folder;
  const std::string plan = "collcast plan llama3-70b-inference-8xh100 --max-tpot 1ms --simulate 0 --output ";
  REQUIRE(run_shell(plan + "a.json", folder.path()).exit == 0);
  REQUIRE(run_shell(plan + "b.json --set topology.gpu.memory_bandwidth=1000GB/s", folder.path()).exit == 0);
  const Outcome page = run_shell("collcast report a.json", folder.path());
  CHECK(page.out.find("no layout that fits keeps the limits; the nearest: TP 8") != std::string::npos);
  CHECK(page.out.find("no layout fits") == std::string::npos);
  const Outcome slower = run_shell("collcast compare a.json b.json", folder.path());
  CHECK(slower.exit == 1);
  CHECK(slower.out.find("nearest to the limits") != std::string::npos);
}

TEST_CASE("of a saved sweep points that do not fit are marked, and those that cannot be are told") {
  const Folder folder;
  REQUIRE(run_shell("collcast step llama3-8b-fsdp-64xh100 --sweep batch.micro_batch=1,2,4 --method estimate --output "
                    "sweep.json",
                    folder.path())
              .exit == 0);
  const Outcome page = run_shell("collcast report sweep.json", folder.path());
  CHECK(page.exit == 0);
  CHECK(page.out.find(" GiB !\n") != std::string::npos);
  CHECK(page.out.find("!: more than the GPU has") != std::string::npos);
  CHECK(page.out.find("batch.micro_batch=4 cannot be: global_batch 128 is not a multiple") != std::string::npos);
  const Outcome lines = run_shell("collcast report sweep.json --format csv", folder.path());
  CHECK(lines.out.find("over_capacity_bytes") != std::string::npos);
}

TEST_CASE("scenarios, results and folders come in the order given; all that is wrong is said at once") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "results");
  REQUIRE(run_shell("collcast collective all_reduce --topology ring --ranks 4 --size 8 --output results/sweep.json",
                    folder.path())
              .exit == 0);
  const Outcome outcome = run_shell("collcast report results overlap-175b-layer --format json", folder.path());
  CHECK(outcome.exit == 0);
  const Json results = Json::parse(outcome.out).at("results");
  CHECK(results.at(0).at("schema") == "collcast.collective.v1");
  CHECK(results.at(1).at("scenario") == "overlap-175b-layer");
  const Outcome wrong = run_shell("collcast report no-such a.json --output page.md", folder.path());
  CHECK(wrong.exit == 2);
  CHECK(wrong.err.find("'no-such'") != std::string::npos);
  CHECK(wrong.err.find("'a.json'") != std::string::npos);
  CHECK(folder.listing() == "results");
}

TEST_CASE("what report writes as JSON compares with itself") {
  const Folder folder;
  REQUIRE(run_shell("collcast report llama3-8b-8xh100 overlap-175b-layer --output r.json --output r.md", folder.path())
              .exit == 0);
  const Outcome same = run_shell("collcast compare r.json r.json", folder.path());
  CHECK(same.exit == 0);
  CHECK(same.out.find("2 results compared") != std::string::npos);
}

TEST_CASE("copies of a scenario are told apart, and what report says of them compares with itself") {
  const Folder folder;
  const std::string yaml =
      "schema: collcast.scenario.v1\nname: twin\ntopology: dgx-h100\n"
      "model: {layers: 8, hidden: 4096, heads: 32, ffn: 16384, vocab: 32000}\n"
      "layout: {tp: 8}\nbatch: {sequence: 2048, global_batch: 8}\n";
  std::filesystem::create_directories(folder.path() / "b");
  for (const char* file : {"one.yaml", "two.yaml", "b/two.yaml"}) folder.write(file, yaml);
  const Outcome report =
      run_shell("collcast report one.yaml two.yaml b/two.yaml --method estimate --format json", folder.path());
  REQUIRE(report.exit == 0);
  CHECK(Json::parse(report.out).at("names") == Json{"twin (one)", "twin (two)", "twin (two) (2)"});
  folder.write("r.json", report.out);
  const Outcome compared = run_shell("collcast compare r.json r.json --format json", folder.path());
  INFO(compared.err);
  CHECK(compared.exit == 0);
  CHECK(Json::parse(compared.out).at("results").size() == 3);
  // Once more through a file: the names stay.
  CHECK(run_shell("collcast report r.json --format json", folder.path()).out == report.out);
}

TEST_CASE("saved results of one name keep the names of their files in what report writes") {
  const Folder folder;
  folder.write("x.json", run_shell("collcast step llama3-8b-8xh100 --method estimate --format json", ".").out);
  folder.write("y.json", folder.read("x.json"));
  folder.write("r.json", run_shell("collcast report x.json y.json --format json", folder.path()).out);
  CHECK(Json::parse(folder.read("r.json")).at("names") == Json{"llama3-8b-8xh100 (x)", "llama3-8b-8xh100 (y)"});
  CHECK(run_shell("collcast compare r.json r.json", folder.path()).exit == 0);
  // Names that are not those of the results.
  Json report = Json::parse(folder.read("r.json"));
  report["names"] = {"one"};
  folder.write("r.json", report.dump(2));
  const Outcome outcome = run_shell("collcast compare r.json r.json", folder.path());
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("names is not one text for each result") != std::string::npos);
}

TEST_CASE("a page is one file that names nothing outside itself, or exit 3 says what this build lacks") {
  const Folder folder;
  const Outcome outcome = run_shell("collcast report llama3-8b-8xh100 --output page.html", folder.path());
  if (!collcast::html_lacks().empty()) {
    CHECK(outcome.exit == 3);
    CHECK(outcome.err.find("this build of collcast writes no HTML: " + collcast::html_lacks()) != std::string::npos);
    CHECK(folder.listing().empty());
    return;
  }
  CHECK(outcome.exit == 0);
  CHECK(folder.listing() == "page.html");
  const std::string page = folder.read("page.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  for (const char* outside : {" src=", "<link", "@import", "url("}) {
    INFO(outside);
    CHECK(page.substr(0, page.find("<script")).find(outside) == std::string::npos);
  }
}

TEST_CASE("a log or a table is told from a scenario and a result, with the command that reads it") {
  const Folder folder;
  folder.write("a.log", "# nThread 1 nGpus 8\n#  size count type redop root time algbw busbw #wrong\n");
  folder.write("t.csv", "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\nall_reduce,8,9.5,0,0,0\n");
  folder.write("j.json", R"({"version": 2, "results": [{"out_of_place": {"bus_bw": 1}}]})");
  const std::pair<std::string, const char*> files[]{{"a.log", ":2:42"}, {"t.csv", ":1:42"}, {"j.json", ":1:46"}};
  for (const auto& [name, place] : files) {
    for (const std::string& command : {"report " + name, "compare " + name + " " + name}) {
      const Outcome outcome = run_shell("collcast " + command, folder.path());
      INFO(outcome.err);
      CHECK(outcome.exit == 2);
      CHECK(outcome.err.find(name + place + ": error: this is a measured table or a log of nccl-tests") == 0);
      CHECK(outcome.err.find("expected a JSON result of collcast; 'collcast validate --measured " + name) !=
            std::string::npos);
    }
    const Outcome piped = run_shell("collcast compare - " + name + " < " + name, folder.path());
    CHECK(piped.exit == 2);
    CHECK(piped.err.find(std::string("standard input") + place + ": error: this is a measured table") == 0);
  }
}
