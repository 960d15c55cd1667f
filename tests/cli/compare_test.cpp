// compare and gates as commands: exit codes, files, folders, standard input.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace collcast::test;
using Json = nlohmann::json;

namespace {

std::string step(double step_s, const std::string& name = "s") {
  return Json{{"schema", "collcast.step.v1"},
              {"tool", {{"name", "collcast"}, {"version", "0.1.0"}}},
              {"scenario", name},
              {"step_s", step_s},
              {"breakdown", {{"compute_s", 8}, {"tp_exposed_s", step_s - 8}}}}
      .dump();
}

}  // namespace

TEST_CASE("compare exits with 1 on a breach, 0 without one, 2 on bad input") {
  const Folder folder;
  folder.write("base.json", step(10));
  folder.write("new.json", step(11));
  folder.write("cut.json", step(11).substr(0, 100));
  folder.write("other.json", "{\"version\": \"2.17.9\", \"results\": []}");
  const auto exit = [&](const std::string& words) {
    return run_shell("collcast compare " + words, folder.path()).exit;
  };
  CHECK(exit("base.json base.json") == 0);
  CHECK(exit("base.json new.json") == 1);
  CHECK(exit("new.json base.json") == 0);
  CHECK(exit("base.json new.json --tolerance step_s=10%") == 0);
  CHECK(exit("base.json cut.json") == 2);
  CHECK(exit("other.json new.json") == 2);
  CHECK(exit("base.json .") == 2);
  CHECK(exit("base.json missing.json") == 2);
  const Outcome wrong = run_shell("collcast compare cut.json other.json", folder.path());
  CHECK(wrong.out.empty());
  CHECK(wrong.err.find("cut.json:1:101: error: the JSON ends before it is complete") == 0);
  CHECK(wrong.err.find("other.json:1:1: error: this is no result of collcast") != std::string::npos);
  REQUIRE(
      run_shell("collcast collective broadcast --topology ring --size 1KiB --output ring.json", folder.path()).exit ==
      0);
  CHECK(run_shell("collcast compare base.json ring.json", folder.path()).err ==
        "command line: error: BASE is a collcast.step.v1 ('s') and NEW a collcast.collective.v1 ('broadcast on ring')\n"
        "    hint: expected two results of one command\n");
}

TEST_CASE("compare reads one side from standard input") {
  const Folder folder;
  folder.write("base.json", step(10));
  CHECK(run_shell("collcast compare base.json - <base.json", folder.path()).exit == 0);
  CHECK(run_shell("collcast compare - base.json <base.json", folder.path()).exit == 0);
  const Outcome bad = run_shell("echo '{' | collcast compare - base.json", folder.path());
  CHECK(bad.exit == 2);
  CHECK(bad.err.find("standard input:2:1: error: the JSON ends") == 0);
}

TEST_CASE("folders are paired by the names of their files") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "base");
  std::filesystem::create_directories(folder.path() / "new");
  std::filesystem::create_directories(folder.path() / "empty");
  folder.write("base/a.json", step(10, "one name"));
  folder.write("base/b.json", step(10, "gone"));
  folder.write("new/a.json", step(10, "another name"));
  folder.write("new/c.json", step(10, "came"));
  folder.write("new/notes.txt", "not looked at");
  const Outcome outcome = run_shell("collcast compare base new --format json", folder.path());
  CHECK(outcome.exit == 1);
  const Json document = Json::parse(outcome.out);
  CHECK(document.at("schema") == "collcast.compare.v1");
  CHECK(document.at("kept") == false);
  CHECK(document.at("counts").at("missing") == 1);
  CHECK(document.at("counts").at("added") == 1);
  CHECK(document.at("counts").at("worse") == 0);
  CHECK(document.at("results").at(0).at("name") == "a");
  CHECK(run_shell("collcast compare base empty", folder.path()).err.find("'empty' holds no JSON files") !=
        std::string::npos);
}

TEST_CASE("a folder's file may be named as anything and stays text") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "base");
  const std::string name = "<script>x|\n\xff.json";
  folder.write("base/" + name, step(10));
  const Outcome markdown = run_shell(
      "collcast compare base base --output o.md --output o.xml --output o.json --output o.csv", folder.path());
  CHECK(markdown.exit == 0);
  CHECK(folder.read("o.md").find("<script>") == std::string::npos);
  CHECK(folder.read("o.xml").find("<script>") == std::string::npos);
  CHECK(
      Json::parse(folder.read("o.json")).at("results").at(0).at("name").get<std::string>().find("<script>x|\\u000a") ==
      0);
}

TEST_CASE("several outputs are written at once, or none of them") {
  const Folder folder;
  folder.write("base.json", step(10));
  folder.write("new.json", step(11));
  const Outcome outcome = run_shell(
      "collcast compare base.json new.json --output v.md --output v.json --output v.csv --output v.xml", folder.path());
  CHECK(outcome.exit == 1);
  CHECK(outcome.out.empty());
  CHECK(folder.read("v.md").starts_with("## comparison FAILED"));
  CHECK(folder.read("v.xml").find("<failure") != std::string::npos);
  CHECK(folder.read("v.csv").starts_with("result,row,figure,"));
  const Outcome refused =
      run_shell("collcast compare base.json new.json --output w.md --output no/such/folder/w.json", folder.path());
  CHECK(refused.exit == 2);
  CHECK(folder.listing().find("w.md") == std::string::npos);
}

TEST_CASE("the same two files give the same bytes") {
  const Folder folder;
  folder.write("base.json", step(10));
  folder.write("new.json", step(11));
  for (const char* format : {"table", "json", "csv", "markdown", "junit"}) {
    const std::string words = std::string("collcast compare base.json new.json --format ") + format;
    CHECK(run_shell(words, folder.path()).out == run_shell(words, folder.path()).out);
  }
}

TEST_CASE("what step writes compares with itself, and collective and plan too") {
  const Folder folder;
  for (const char* command :
       {"step llama3-8b-8xh100", "collective all_reduce --topology dgx-h100 --algorithm all --size 8:1GiB:x32",
        "collective all_gather --topology ring --ranks 8 --groups-of 4 --concurrent",
        "plan llama3-8b-8xh100 --simulate 0", "plan llama3-8b-8xh100 --simulate 0 --top 2",
        "step overlap-175b-layer"}) {
    INFO(command);
    REQUIRE(run_shell(std::string("collcast ") + command + " --output r.json", folder.path()).exit == 0);
    const Outcome outcome = run_shell("collcast compare r.json r.json", folder.path());
    CHECK(outcome.err == "");
    CHECK(outcome.exit == 0);
  }
}

TEST_CASE("nothing is worse or better for being simulated, either way round") {
  const Folder folder;
  const std::string question =
      "collective alltoall --topology dgx-h100 --nodes 16 --library ideal --algorithm naive --size 1MiB";
  const std::string step = "step llama3-70b-straggler-64xh100 --what-if jitter";
  for (const auto& [command, less] :
       {std::pair{question, " --method estimate"}, std::pair{step, " --time-limit 1ms"}}) {
    INFO(command);
    REQUIRE(run_shell("collcast " + command + " --output both.json", folder.path()).exit == 0);
    REQUIRE(run_shell("collcast " + command + less + " --output less.json", folder.path()).exit == 0);
    for (const char* sides : {"both.json less.json", "less.json both.json"}) {
      const Outcome outcome = run_shell(std::string("collcast compare ") + sides + " --format json", folder.path());
      CHECK(outcome.exit == 0);
      const Json counts = Json::parse(outcome.out).at("counts");
      CHECK(counts.at("worse") == 0);
      CHECK(counts.at("better") == 0);
      CHECK(outcome.out.find("by another method") != std::string::npos);
    }
  }
}

TEST_CASE("a tolerance of a figure that neither result has is a warning with the nearest that they have") {
  const Folder folder;
  folder.write("base.json", step(10));
  const Outcome outcome = run_shell("collcast compare base.json base.json --tolerance ttft_s=2%", folder.path());
  CHECK(outcome.exit == 0);
  CHECK(outcome.err.find("--tolerance ttft_s: warning: neither BASE nor NEW has ttft_s: its tolerance holds nothing\n"
                         "    hint: ") == 0);
  CHECK(outcome.err.find("step_s") != std::string::npos);
  CHECK(run_shell("collcast compare base.json base.json --tolerance step_s=2% --tolerance 3%", folder.path()).err ==
        "");
}

TEST_CASE("a broken gate of a scenario is exit 1 at its place, and the result is still there") {
  const Outcome kept = run_shell("collcast step llama3-8b-8xh100", ".");
  CHECK(kept.exit == 0);
  CHECK(kept.err.empty());
  const Outcome broken = run_shell("collcast step llama3-8b-8xh100 --set gates.step_s.max=1s --format json", ".");
  CHECK(broken.exit == 1);
  CHECK(broken.err.find("--set gates.step_s.max=1s:1:24: error: gate broken: step_s is ") == 0);
  CHECK(Json::parse(broken.out).at("gates").at(0).at("kept") == false);
}
