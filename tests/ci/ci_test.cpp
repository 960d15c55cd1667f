// The GitHub action and the GitLab include as shipped: their own steps, run in a scratch repository.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <iterator>
#include <map>
#include <pugixml.hpp>

#include "cli/process.hpp"

using namespace collcast::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path source = COLLCAST_SOURCE_DIR;
const std::string expression = "${{";

/// A scenario whose steps take longer with `recompute`.
std::string scenario(const std::string& name, const std::string& recompute) {
  return "schema: collcast.scenario.v1\nname: " + name +
         "\ntopology: dgx-h100\nnodes: 1\n"
         "model: {layers: 8, hidden: 4096, heads: 32, ffn: 16384, vocab: 32000}\n"
         "layout: {tp: 8}\nbatch: {sequence: 2048, global_batch: 8}\n"
         "training: {recompute: " +
         recompute + "}\ngates: {mfu: {min: 5%}}\n";
}

void must(const Outcome& outcome) {
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit == 0);
}

/// A repository with one scenario on its main branch and a branch for changes.
class Repository {
 public:
  Repository() {
    fs::create_directories(folder_.path() / "jobs");
    write("jobs/a.yaml", scenario("a", "none"));
    must(shell("git init -q -b main . && git config user.name Test && git config user.email test@localhost"));
    commit("base");
    must(shell("git checkout -q -b change"));
  }
  void write(const std::string& name, const std::string& content) const { folder_.write(name, content); }
  std::string read(const std::string& name) const { return folder_.read(name); }
  bool has(const std::string& name) const { return fs::exists(folder_.path() / name); }
  void commit(const std::string& subject) const { must(shell("git add -A && git commit -q -m '" + subject + "'")); }
  Outcome shell(const std::string& command) const { return run_shell(command, folder_.path()); }

 private:
  Folder folder_;
};

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

using Inputs = std::map<std::string, std::string>;

/// What GitHub does with a value of `env`: an input's value in the place of its expression.
std::string with_inputs(const std::string& value, const YAML::Node& action, const Inputs& inputs) {
  if (value.find(expression) == std::string::npos) return value;
  const std::string prefix = "${{ inputs.", suffix = " }}";
  REQUIRE(value.starts_with(prefix));
  REQUIRE(value.ends_with(suffix));
  const std::string name = value.substr(prefix.size(), value.size() - prefix.size() - suffix.size());
  INFO(name);
  REQUIRE(action["inputs"][name]);
  const auto given = inputs.find(name);
  return given != inputs.end() ? given->second : action["inputs"][name]["default"].as<std::string>("");
}

/// The `run` steps of the action, one after the other, as GitHub runs them: each in a bash of its own.
Outcome github(const Repository& repository, const Inputs& inputs, const std::string& base_ref = "") {
  const fs::path folder = source / ".github" / "actions" / "collcast";
  const YAML::Node action = YAML::LoadFile((folder / "action.yml").string());
  Outcome outcome;
  for (const YAML::Node& step : action["runs"]["steps"]) {
    if (!step["run"]) continue;
    std::string command =
        "unset COLLCAST_SCENARIOS COLLCAST_BASE; export GITHUB_ACTION_PATH=" + quoted(folder.string()) +
        " GITHUB_PATH=$PWD/.git/path GITHUB_BASE_REF=" + quoted(base_ref) + " CI_MERGE_REQUEST_DIFF_BASE_SHA=";
    command += "; export GITHUB_STEP_SUMMARY=$PWD/.git/summary";
    for (const auto& variable : step["env"])
      command += "; export " + variable.first.as<std::string>() + "=" +
                 quoted(with_inputs(variable.second.as<std::string>(), action, inputs));
    REQUIRE(step["shell"].as<std::string>() == "bash");
    command += "; bash --noprofile --norc -eo pipefail -c " + quoted(step["run"].as<std::string>());
    outcome = repository.shell(command);
    if (outcome.exit != 0) return outcome;
  }
  return outcome;
}

YAML::Node gitlab_job() { return YAML::LoadFile((source / ".gitlab" / "collcast.yml").string())[".collcast"]; }

/// What `command` prints with the job's variables, and `variables` put over them.
std::string with_job_variables(const std::string& variables, const std::string& command) {
  std::string out = "export GITHUB_BASE_REF= GITHUB_STEP_SUMMARY=";
  for (const auto& variable : gitlab_job()["variables"])
    out += "; export " + variable.first.as<std::string>() + "=" + quoted(variable.second.as<std::string>());
  return out + "; export " + variables + "; " + command;
}

/// A folder of programs: `collcast-gate` as `cmake --install` leaves it.
class Installed {
 public:
  Installed() { fs::create_symlink(source / "tools" / "gate", folder_.path() / "collcast-gate"); }
  std::string in_path() const { return "PATH=" + quoted(folder_.path().string()) + ":$PATH"; }

 private:
  Folder folder_;
};

/// The lines of the job, in one shell.
Outcome gitlab(const Repository& repository, const std::string& variables) {
  const YAML::Node job = gitlab_job();
  std::string command = with_job_variables(variables, "set -e");
  for (const YAML::Node& line : job["script"]) command += "\n" + line.as<std::string>();
  return repository.shell(command);
}

int junit_failures(const std::string& text) {
  pugi::xml_document xml;
  REQUIRE(xml.load_string(text.c_str()));
  return xml.child("testsuites").attribute("failures").as_int(-1);
}

}  // namespace

TEST_CASE("a change that moves nothing passes, and its summary begins with the verdict") {
  const Repository repository;
  const Outcome outcome = github(repository, {{"scenarios", "jobs/a.yaml"}, {"base", "main"}});
  INFO(outcome.err);
  CHECK(outcome.exit == 0);
  const std::string summary = repository.read(".git/summary");
  CHECK(summary.starts_with("## comparison passed: nothing is worse than allowed\n"));
  CHECK(summary.find("## report passed: 1 gate on 1 result, none broken\n") != std::string::npos);
  CHECK(summary == repository.read("collcast-report/summary.md"));
  CHECK(junit_failures(repository.read("collcast-report/compare.xml")) == 0);
  CHECK(junit_failures(repository.read("collcast-report/gates.xml")) == 0);
  CHECK(Json::parse(repository.read("collcast-report/report.json")).at("schema") == "collcast.report.v1");
  // The base was looked at beside the checkout, which is as it was.
  CHECK(repository.shell("git worktree list | wc -l").out == "1\n");
  CHECK(repository.shell("git status --porcelain").out == "?? collcast-report/\n");
}

TEST_CASE("a change that makes a step slower fails, unless its tolerance allows it") {
  const Repository repository;
  repository.write("jobs/a.yaml", scenario("a", "full"));
  repository.commit("recompute");
  const Outcome outcome = github(repository, {{"scenarios", "jobs/a.yaml"}, {"base", "main"}});
  CHECK(outcome.exit == 1);
  CHECK(repository.read(".git/summary").starts_with("## comparison FAILED: "));
  CHECK(repository.read(".git/summary").find("| a | inputs.options.recompute | none | full |") != std::string::npos);
  CHECK(junit_failures(repository.read("collcast-report/compare.xml")) > 0);
  CHECK(github(repository, {{"scenarios", "jobs/a.yaml"}, {"base", "main"}, {"tolerance", "60%"}}).exit == 0);
}

TEST_CASE("a broken gate fails without any base") {
  const Repository repository;
  repository.write("jobs/a.yaml", scenario("a", "none") + "what_if: {strict: {set: {gates.mfu.min: 99%}}}\n");
  const Outcome outcome = github(repository, {{"scenarios", "jobs/a.yaml"}, {"what-if", "strict"}});
  CHECK(outcome.exit == 1);
  CHECK(outcome.err.find("gate broken: mfu is ") != std::string::npos);
  CHECK(repository.read(".git/summary").find("report FAILED: 1 of 1 gate broken") != std::string::npos);
  CHECK_FALSE(repository.has("collcast-report/compare.json"));
  CHECK(junit_failures(repository.read("collcast-report/gates.xml")) == 1);
}

TEST_CASE("the target branch of a pull request is its base") {
  const Repository repository;
  must(repository.shell("git update-ref refs/remotes/origin/main main"));
  repository.write("jobs/a.yaml", scenario("a", "full"));
  CHECK(github(repository, {{"scenarios", "jobs/a.yaml"}}, "main").exit == 1);
}

TEST_CASE("a scenario that the base lacks is added; alone it has nothing to be compared with") {
  const Repository repository;
  repository.write("jobs/b.yaml", scenario("b", "none"));
  CHECK(github(repository, {{"scenarios", "jobs/a.yaml\njobs/b.yaml\n"}, {"base", "main"}}).exit == 0);
  CHECK(Json::parse(repository.read("collcast-report/compare.json")).at("counts").at("added") == 1);
  CHECK(github(repository, {{"scenarios", "jobs/b.yaml"}, {"base", "main"}}).out.find("## nothing to compare") == 0);
}

TEST_CASE("a scenario that is wrong ends the job with its place") {
  const Repository repository;
  repository.write("jobs/a.yaml", scenario("a", "sometimes"));
  const Outcome outcome = github(repository, {{"scenarios", "jobs/a.yaml"}, {"base", "main"}});
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("jobs/a.yaml:8:23: error: training.recompute is 'sometimes'") != std::string::npos);
}

TEST_CASE("a base that was wrong does not keep its own repair out") {
  const Repository repository;
  must(repository.shell("git checkout -q main"));
  repository.write("jobs/a.yaml", scenario("a", "sometimes"));
  repository.commit("broken");
  must(repository.shell("git checkout -q change"));
  const Outcome outcome = github(repository, {{"scenarios", "jobs/a.yaml"}, {"base", "main"}});
  CHECK(outcome.exit == 0);
  CHECK(outcome.err.find("the base could not be forecast") != std::string::npos);
}

TEST_CASE("one scenario of the base that is wrong lets no other in unseen, and is named") {
  const Repository repository;
  must(repository.shell("git checkout -q main"));
  repository.write("jobs/two.yaml", scenario("two", "none") + "colour: red\n");
  repository.commit("broken");
  must(repository.shell("git checkout -q change && git reset -q --hard main"));
  repository.write("jobs/a.yaml", scenario("a", "full"));
  repository.write("jobs/two.yaml", scenario("two", "none"));
  const Outcome outcome = github(repository, {{"scenarios", "jobs/a.yaml jobs/two.yaml"}, {"base", "main"}});
  CHECK(outcome.exit == 1);
  CHECK(outcome.err.find("gate: jobs/two.yaml of the base could not be forecast:\n") != std::string::npos);
  CHECK(outcome.err.find("'colour'") != std::string::npos);
  const std::string summary = repository.read(".git/summary");
  CHECK(summary.starts_with("## comparison FAILED: "));
  CHECK(summary.find("\nNot compared, as the base could not be forecast:\n\n- `jobs/two.yaml`\n") != std::string::npos);
  CHECK(Json::parse(repository.read("collcast-report/compare.json")).at("counts").at("added") == 1);
}

TEST_CASE("a scenario named from the root of the file system is compared as by its path from here") {
  const Repository repository;
  repository.write("jobs/a.yaml", scenario("a", "full"));
  const std::string gate = quoted((source / "tools" / "gate").string()) + " --base main ";
  CHECK(repository.shell(gate + "\"$PWD\"/jobs/a.yaml").exit == 1);
  CHECK(repository.shell("cd jobs && " + gate + "\"$PWD\"/a.yaml").exit == 1);
  // The base has no such folder.
  must(repository.shell("mkdir -p deep/er"));
  CHECK(repository.shell("cd deep/er && " + gate + "\"$PWD\"/../../jobs/a.yaml").exit == 1);
  // Outside of the repository there is no base, and nothing that could be compared.
  const Folder elsewhere;
  elsewhere.write("a.yaml", scenario("a", "none"));
  const Outcome outcome = repository.shell(gate + quoted((elsewhere.path() / "a.yaml").string()));
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("/a.yaml' is not in the repository ") != std::string::npos);
}

TEST_CASE("a saved report can be the base, and a commit that is not there is named") {
  const Repository repository;
  CHECK(github(repository, {{"scenarios", "jobs/a.yaml"}, {"output", "before"}}).exit == 0);
  CHECK(github(repository, {{"scenarios", "jobs/a.yaml"}, {"base", "before/report.json"}}).exit == 0);
  const Outcome outcome = github(repository, {{"scenarios", "jobs/a.yaml"}, {"base", "origin/gone"}});
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("'origin/gone' is no commit here; was it fetched?") != std::string::npos);
}

TEST_CASE("a folder that is no repository is told from a commit that was not fetched") {
  const Folder folder;
  folder.write("a.yaml", scenario("a", "none"));
  const Outcome outcome =
      run_shell(quoted((source / "tools" / "gate").string()) + " --base main a.yaml", folder.path());
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("gate: no git repository here, which --base main needs") != std::string::npos);
  CHECK(outcome.err.find("fetch-depth") == std::string::npos);
}

TEST_CASE("the example of the GitHub job installs git before the checkout, whose image has none") {
  std::ifstream page(source / "docs" / "reporting.md");
  const std::string text(std::istreambuf_iterator<char>(page), {});
  const std::string begin = "```yaml\n# .github/workflows/forecast.yml\n";
  const std::size_t at = text.find(begin);
  REQUIRE(at != std::string::npos);
  const YAML::Node job =
      YAML::Load(text.substr(at + begin.size(), text.find("```\n", at + 3) - at - begin.size()))["jobs"]["forecast"];
  CHECK(job["container"].as<std::string>() == "debian:12");
  CHECK(job["steps"][0]["run"].as<std::string>().find("apt-get install -y git") != std::string::npos);
  CHECK(job["steps"][1]["uses"].as<std::string>().starts_with("actions/checkout@"));
}

TEST_CASE("the report is kept under the name that the job gives, as GitHub refuses a second of one name in a run") {
  const YAML::Node action = YAML::LoadFile((source / ".github" / "actions" / "collcast" / "action.yml").string());
  int uploads = 0;
  for (const YAML::Node& step : action["runs"]["steps"]) {
    if (!step["uses"] || !step["uses"].as<std::string>().starts_with("actions/upload-artifact@")) continue;
    ++uploads;
    const std::string name = step["with"]["name"].as<std::string>();
    CHECK(with_inputs(name, action, {}) == "collcast-report");
    CHECK(with_inputs(name, action, {{"artifact", "report-h100"}}) == "report-h100");
    CHECK(with_inputs(step["with"]["path"].as<std::string>(), action, {{"output", "forecast"}}) == "forecast");
  }
  CHECK(uploads == 1);
}

TEST_CASE("what stands in an input is never run") {
  const Repository repository;
  for (const char* input : {"scenarios", "base", "tolerance", "what-if", "output"}) {
    for (const char* text :
         {"$(touch pwned)", "x; touch pwned", "`touch pwned`", "' ; touch pwned ; '", "--help; touch pwned", "*"}) {
      INFO(input << " = " << text);
      Inputs inputs{{"scenarios", "jobs/a.yaml"}, {"base", "main"}};
      inputs[input] = text;
      github(repository, inputs);
      CHECK_FALSE(repository.has("pwned"));
    }
  }
  const YAML::Node action = YAML::LoadFile((source / ".github" / "actions" / "collcast" / "action.yml").string());
  for (const YAML::Node& step : action["runs"]["steps"])
    CHECK(step["run"].as<std::string>("").find(expression) == std::string::npos);
}

TEST_CASE("the GitLab job does the same, and its JUnit files are where it says") {
  const Repository repository;
  const Installed installed;
  const std::string base =
      installed.in_path() + " COLLCAST_SCENARIOS=jobs/a.yaml CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git rev-parse main)";
  const Outcome same = gitlab(repository, base);
  INFO(same.err);
  CHECK(same.exit == 0);
  CHECK(same.out.find("## comparison passed") != std::string::npos);
  repository.write("jobs/a.yaml", scenario("a", "full"));
  CHECK(gitlab(repository, base).exit == 1);
  const YAML::Node artifacts = gitlab_job()["artifacts"];
  const auto kept = [&](const std::string& variables) {
    return repository
        .shell(with_job_variables(variables, "ls -d " + artifacts["paths"][0].as<std::string>() + " " +
                                                 artifacts["reports"]["junit"].as<std::string>()))
        .out;
  };
  CHECK(kept(base) == "collcast-report/\ncollcast-report/compare.xml\ncollcast-report/gates.xml\n");
  CHECK(gitlab(repository, base + " COLLCAST_TOLERANCE=60%").exit == 0);
  const std::string elsewhere = base + " COLLCAST_TOLERANCE=60% COLLCAST_OUTPUT=forecast";
  CHECK(gitlab(repository, elsewhere).exit == 0);
  CHECK(kept(elsewhere) == "forecast/\nforecast/compare.xml\nforecast/gates.xml\n");
}

TEST_CASE("a GitLab job without collcast clones and builds it, and runs the clone's gate") {
  const Repository repository;
  const Folder origin, bin;
  // A collcast whose build takes no time: its cmake puts the one under test in place.
  fs::create_directories(origin.path() / "tools");
  fs::copy_file(source / "tools" / "gate", origin.path() / "tools" / "gate");
  origin.write("tools/setup", "#!/bin/sh\n");
  bin.write("cmake", "#!/bin/sh\nmkdir -p build/release/bin && ln -sf \"$REAL_COLLCAST\" build/release/bin/collcast\n");
  must(
      run_shell("chmod +x tools/* && git init -q -b main . && git add -A && git -c user.name=Test -c "
                "user.email=test@localhost commit -q -m collcast",
                origin.path()));
  must(run_shell("chmod +x cmake", bin.path()));
  const Outcome outcome = gitlab(
      repository, "COLLCAST_SCENARIOS=jobs/a.yaml REAL_COLLCAST=$(command -v collcast) COLLCAST_REPOSITORY=file://" +
                      origin.path().string() + " PATH=" + bin.path().string() + ":/usr/bin:/bin");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit == 0);
  CHECK(repository.has(".collcast/tools/gate"));
  CHECK(outcome.out.find("## report passed") != std::string::npos);
}

TEST_CASE("the gate says how it is used") {
  const std::string gate = quoted((source / "tools" / "gate").string());
  const Outcome help = run_shell(gate + " --help", ".");
  CHECK(help.exit == 0);
  CHECK(help.out.find("--tolerance FIGURE=AMOUNT") != std::string::npos);
  CHECK(run_shell(gate, ".").exit == 2);
  CHECK(run_shell(gate + " --bas main", ".").err.find("unknown option '--bas'") != std::string::npos);
  CHECK(run_shell(gate + " --base", ".").err.find("--base needs a value") != std::string::npos);
  CHECK(run_shell("PATH=/usr/bin:/bin " + gate + " x.yaml", ".").exit == 3);
}

TEST_CASE(
    "the check of layers reads what targets link, however they are written, and holds the page's table to its own") {
  // The sources alone: without public headers nothing is compiled.
  const Folder tree;
  for (const char* folder : {"tools", "docs/decisions", "validation"}) fs::create_directories(tree.path() / folder);
  fs::copy_file(source / "tools" / "check-layers", tree.path() / "tools" / "check-layers");
  const std::string libraries = "docs/decisions/0001-layers-and-libraries.md";
  for (const std::string& page : {std::string("docs/design.md"), libraries})
    fs::copy_file(source / page, tree.path() / page);
  fs::copy(source / "src", tree.path() / "src", fs::copy_options::recursive);
  for (const char* folder : {"src", "runner"})
    fs::copy(source / "validation" / folder, tree.path() / "validation" / folder, fs::copy_options::recursive);
  const auto said = [&] { return run_shell("tools/check-layers", tree.path()); };
  must(said());
  const auto changed = [&](const std::string& file, const std::string& from, const std::string& to) {
    const std::string before = tree.read(file);
    REQUIRE(before.find(from) != std::string::npos);
    std::string after = before;
    tree.write(file, after.replace(after.find(from), from.size(), to));
    const Outcome outcome = said();
    tree.write(file, before);
    CHECK(outcome.exit == 1);
    return outcome.err;
  };
  CHECK(changed("validation/runner/CMakeLists.txt", "collcast_base collcast_collective",
                "collcast_base collcast_validation")
            .find("validation/runner/CMakeLists.txt: runner may not link validation") != std::string::npos);
  CHECK(changed("src/cli/CMakeLists.txt", "collcast_base collcast_topology", "collcast_base collcast_mpi")
            .find("src/cli/CMakeLists.txt: cli may not link mpi") != std::string::npos);
  CHECK(changed("src/cost/CMakeLists.txt", "USES ", "USES engine ").find("cost may not link engine") !=
        std::string::npos);
  CHECK(changed("docs/design.md", "CLI11, Boost.Math", "CLI11").find("cli keeps Boost.Math, CLI11 inside") !=
        std::string::npos);
  CHECK(changed("docs/design.md", "| workload, evaluate | oneTBB |", "| workload | oneTBB |")
            .find("planner uses workload, evaluate") != std::string::npos);
  CHECK(changed(libraries, "| Gloo 0.5 |", "| GLOO |").find("no row says why Gloo") != std::string::npos);
}
