// The program as a process: pipes that close, disks that are full, terminals.
#include "cli/process.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

using namespace collcast::test;

namespace {

const char* const list = "collcast topology list";
const std::filesystem::path here = std::filesystem::temp_directory_path();

/// The command lines of a help text: those that begin with "  collcast ", with the lines they go on in.
std::vector<std::string> examples(const std::string& help) {
  std::vector<std::string> out;
  bool goes_on = false;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (goes_on)
      out.back() += line;
    else if (line.starts_with("  collcast "))
      out.push_back(line);
    else
      continue;
    goes_on = out.back().ends_with('\\');
    if (goes_on) out.back().pop_back();
  }
  return out;
}

bool has_escapes(const std::string& text) { return text.find('\033') != std::string::npos; }

}  // namespace

TEST_CASE("every help text ends in examples, and all of them work") {
  const Folder folder;
  for (const char* command : {"", "collective", "step", "groups", "topology", "topology list", "topology show",
                              "topology check", "topology export", "explain", "explain collective", "explain step"}) {
    const auto found = examples(run_shell(std::string("collcast ") + command + " --help", here).out);
    CHECK_FALSE(found.empty());
    for (const std::string& example : found) {
      INFO(example);
      const Outcome outcome = run_shell(example, folder.path());
      INFO(outcome.err);
      CHECK(outcome.exit == 0);
    }
  }
}

TEST_CASE("a full disk is an error, for results as for help") {
  for (const char* command : {list, "collcast --help", "collcast --version", "collcast groups --tp 2 --format json"}) {
    const Outcome outcome = run_shell(std::string(command) + " >/dev/full", here);
    CHECK(outcome.exit == 2);
    CHECK(outcome.err == "standard output: error: the result could not be written: No space left on device\n");
  }
}

TEST_CASE("a pipe that nobody reads is an error, not a signal") {
  // The reader is gone before the writer starts: `sleep` holds the pipe's writing end until then.
  const Outcome outcome = run_shell("{ sleep 0.2; collcast groups --tp 512; echo $? >&2; } | true", here);
  CHECK(outcome.err == "standard output: error: the result could not be written: Broken pipe\n2\n");
}

TEST_CASE("a closed standard output is an error") {
  const Outcome outcome = run_shell(std::string(list) + " >&-", here);
  CHECK(outcome.exit == 2);
}

TEST_CASE("colour only on a terminal, and not against NO_COLOR") {
  CHECK_FALSE(has_escapes(run_shell(list, here).out));
  CHECK(has_escapes(run_on_terminal(list, here).out));
  CHECK_FALSE(has_escapes(run_on_terminal(std::string("NO_COLOR=1 ") + list, here).out));
  CHECK(has_escapes(run_on_terminal(std::string("NO_COLOR= ") + list, here).out));  // empty does not count
  CHECK_FALSE(has_escapes(run_on_terminal(std::string("TERM=dumb ") + list, here).out));
  CHECK_FALSE(has_escapes(run_on_terminal(std::string(list) + " | cat", here).out));
}

TEST_CASE("results go to standard output and diagnostics to standard error") {
  const Outcome good = run_shell(list, here);
  CHECK(good.exit == 0);
  CHECK(good.err.empty());
  const Outcome bad = run_shell("collcast topology show no-such", here);
  CHECK(bad.exit == 2);
  CHECK(bad.out.empty());
  CHECK(bad.err.find("no-such") != std::string::npos);
}

TEST_CASE("--output writes the file and nothing on standard output") {
  const Folder folder;
  const Outcome outcome = run_shell("collcast groups --tp 2 --output groups.json", folder.path());
  CHECK(outcome.exit == 0);
  CHECK(outcome.out.empty());
  CHECK(folder.read("groups.json").find("collcast.groups.v1") != std::string::npos);
  CHECK(folder.listing() == "groups.json");
}

TEST_CASE("a failed command leaves the old file alone") {
  const Folder folder;
  folder.write("groups.json", "old");
  CHECK(run_shell("collcast groups --tp 0 --output groups.json", folder.path()).exit == 2);
  CHECK(folder.read("groups.json") == "old");
}

TEST_CASE("the program finds its data from anywhere, also through a link to it") {
  const Folder folder;
  std::filesystem::create_symlink(COLLCAST_EXECUTABLE, folder.path() / "cc");
  CHECK(run_shell("./cc topology list", folder.path()).out == run_shell(list, here).out);
}

TEST_CASE("COLLCAST_DATA that holds nothing is named") {
  const Folder folder;
  const Outcome outcome = run_shell("COLLCAST_DATA=. collcast topology list", folder.path());
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("COLLCAST_DATA") != std::string::npos);
}
