// The examples that the help texts end in, run as a user does.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/process.hpp"

using namespace collcast::test;

namespace {

const std::filesystem::path anywhere = std::filesystem::temp_directory_path();

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

// In their order: calibrate writes what examples of validate read. Left out are those that need GPUs or several hosts,
// and two over all shipped tables that take long and that the long tests and tests/validation run.
void check_measuring_examples(const std::string& data) {
  const Folder folder;
  const std::filesystem::path source = COLLCAST_SOURCE_DIR;
  for (const char* name : {"logs", "tables"}) std::filesystem::create_directory(folder.path() / name);
  for (const char* name : {"my.log", "logs/my.log"})
    std::filesystem::copy_file(source / "tests/golden/inputs/all_reduce.log", folder.path() / name);
  for (const char* name : {"aic-h100-sxm-n8-nccl2.23-all_gather.csv", "aic-h100-sxm-n8-nccl2.23-all_gather.yaml"})
    std::filesystem::copy_file(source / "validation/data/nccl-tests" / name, folder.path() / "tables" / name);
  folder.write("all_reduce_perf", "#!/bin/sh\ncat my.log\n");
  std::filesystem::permissions(folder.path() / "all_reduce_perf", std::filesystem::perms::owner_all);
  int run = 0;
  for (const char* command : {"calibrate", "validate", "measure"})
    for (std::string example : examples(run_shell(std::string("collcast ") + command + " --help", anywhere).out)) {
      const auto has = [&](const char* word) { return example.find(word) != std::string::npos; };
      if (has("--backend nccl") || has("--rendezvous") || has("measure kernels")) continue;
      if (has("--output residuals.json") || example.ends_with("validate --library ideal")) continue;
      if (has("collcast measure")) example += " --warmup 0 --repetitions 1";
      INFO(example);
      const Outcome outcome = run_shell("export COLLCAST_DATA='" + data + "'\n" + example, folder.path());
      INFO(outcome.err);
      CHECK(outcome.exit == (has("--training --budget") ? 1 : 0));  // a gate that shows what missing is like
      ++run;
    }
  CHECK(run >= 14);
}

/// The shipped data with every sixteenth measured table of collectives, in `folder`; how many tables those are.
int write_fewer_tables(const std::filesystem::path& folder) {
  const std::filesystem::path source = COLLCAST_SOURCE_DIR, below = "validation/data", tables = below / "nccl-tests";
  std::filesystem::create_directories(folder / tables);
  for (const char* whole : {"topologies", "scenarios"})
    std::filesystem::create_directory_symlink(source / whole, folder / whole);
  for (const char* whole : {"training", "inference"})
    std::filesystem::create_directory_symlink(source / below / whole, folder / below / whole);
  std::vector<std::filesystem::path> sidecars;
  for (const auto& entry : std::filesystem::directory_iterator(source / tables))
    if (entry.path().extension() == ".yaml") sidecars.push_back(entry.path().filename());
  std::ranges::sort(sidecars);
  int taken = 0;
  for (std::size_t i = 0; i < sidecars.size(); i += 16, ++taken)
    for (const char* suffix : {".yaml", ".csv"}) {
      const auto name = std::filesystem::path(sidecars[i]).replace_extension(suffix);
      std::filesystem::create_symlink(source / tables / name, folder / tables / name);
    }
  return taken;
}

}  // namespace

// Of measure, validate and calibrate the next case runs the examples.
TEST_CASE("help texts end in examples, and they work") {
  const Folder folder;
  // The user's own files that the examples name.
  const std::filesystem::path source = COLLCAST_SOURCE_DIR, real = source / "tests/exchange/data";
  std::filesystem::copy_file(source / "docs/guide/nc96.yaml", folder.path() / "my-machine.yaml");
  std::filesystem::copy_file(real / "azure-nc96v4-a100pcie-graph.xml", folder.path() / "graph.xml");
  std::filesystem::copy_file(real / "oci-h100-full-dump-topo.xml", folder.path() / "topo.xml");
  std::filesystem::copy_file(source / "docs/guide/ring-all-gather.xml", folder.path() / "mine.xml");
  folder.write("nccl_tuner.conf", "allreduce,0,1048576,tree,ll128,4,-1,-1\n");
  for (const char* command : {"", "collective", "step", "plan", "groups", "topology", "topology list", "topology show",
                              "topology check", "topology import", "topology export", "compare", "report", "explain",
                              "explain collective", "explain step", "backends"}) {
    const auto found = examples(run_shell(std::string("collcast ") + command + " --help", anywhere).out);
    CHECK_FALSE(found.empty());
    for (const std::string& example : found) {
      INFO(example);
      const Outcome outcome = run_shell(example, folder.path());
      INFO(outcome.err);
      CHECK(outcome.exit == 0);
    }
  }
}

TEST_CASE("the examples of calibrate, validate and measure work") {
  const Folder data;
  CHECK(write_fewer_tables(data.path()) > 10);
  check_measuring_examples(data.path());
}

// A minute and a half of one core, for the same lines: only with --long (cli_long).
TEST_CASE("the examples of calibrate, validate and measure work on all shipped tables", "[.][long]") {
  check_measuring_examples(COLLCAST_SOURCE_DIR);
}
