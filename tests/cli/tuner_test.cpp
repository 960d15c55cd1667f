// A tuner's table: what its rules choose is what is shown, and whose choice it is is said.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "cli/called.hpp"
#include "cli/process.hpp"

using namespace collcast::test;
using Json = nlohmann::json;

namespace {

/// `command` of an all-reduce on the eight GPUs of a dgx-a100, where NCCL has 24 channels: its rings' 12, twice.
Json with_rules(const std::string& rules, const std::string& command, const std::string& options) {
  const Folder folder;
  folder.write("rules.csv", rules);
  return document_of(command + " all_reduce --topology dgx-a100 --tuner '" + (folder.path() / "rules.csv").string() +
                     "' " + options);
}

const Json& channels_of(const Json& explained) {
  for (const Json& term : explained.at("terms"))
    if (term.at("name") == "channels") return term;
  FAIL("no term is the run's channels");
  return explained;
}

std::vector<std::string> notes_on_rules(const Json& report) {
  std::vector<std::string> out;
  for (const std::string note : report.at("notes"))
    if (note.find("rules.csv") != std::string::npos) out.push_back(note);
  return out;
}
using Said = std::vector<std::string>;

const std::string two_of_tree = "# sizes\nallreduce,0,65536,tree,ll,2,1,8\n";

}  // namespace

TEST_CASE("the row of NCCL's table that a tuner's rule takes has the rule's channels and the run's time") {
  const Json priced = with_rules(two_of_tree, "collective", "--size 64KiB --method estimate").at("rows").at(0);
  CHECK(priced.at("channels") == 2);
  const Json doc = with_rules(two_of_tree, "explain collective", "--size 64KiB");
  int taken = 0;
  for (const Json& row : doc.at("tables").at(1).at("rows")) {
    if (row.back() != "<- taken") continue;
    ++taken;
    CHECK(row.at(0) == "tree");
    CHECK(row.at(1) == "LL");
    CHECK(row.at(5) == "2");
    // Its own 16 channels are faster.
    CHECK(row.at(6) == "43.24 us");
  }
  CHECK(taken == 1);
  CHECK(priced.at("estimate_s").get<double>() == Approx(43.24e-6).epsilon(1e-4));
}

TEST_CASE("whose number of channels it is: the tuner's rule where that states one, else NCCL's") {
  const auto said = [](const std::string& rule) {
    const Json term = channels_of(with_rules(rule, "explain collective", "--size 64KiB"));
    return term.at("value").dump() + ": " + term.at("source").get<std::string>();
  };
  CHECK(said(two_of_tree) == "2.0: line 2 of rules.csv");
  CHECK(said("allreduce,0,65536,ring,simple,99,1,8\n") == "24.0: all that there are; line 1 of rules.csv asks for 99");
  // 64 KiB are worth two channels of Simple to NCCL.
  CHECK(said("allreduce,0,65536,ring,simple,-1,1,8\n") == "2.0: of those above, as many as the size is worth to NCCL");
}

TEST_CASE("among all algorithms a tuner's choice runs as its rule has it, and the note says which it is") {
  const Json all = with_rules(two_of_tree, "collective", "--size 64KiB --method estimate --algorithm all");
  CHECK(notes_on_rules(all) == Said{"line 2 of rules.csv decides at 64 KiB: tree LL"});
  int of_rule = 0;
  for (const Json& row : all.at("rows"))
    if (row.at("algorithm") == "tree" && row.at("protocol") == "LL") {
      ++of_rule;
      CHECK(row.at("channels") == 2);
    }
  CHECK(of_rule == 1);
  CHECK(all.at("rows").size() == 6);  // rings and trees with three protocols each
}

TEST_CASE("notes on a tuner say channels that are not there, each size once, and of which algorithm no rule is") {
  const std::string both = "--size 64KiB,1MiB --method estimate ";
  CHECK(notes_on_rules(with_rules("allreduce,0,99999999,ring,simple,99,1,8\n", "collective", both)) ==
        Said{"line 1 of rules.csv decides at 64 KiB, 1 MiB; of its 99 channels there are 24"});
  CHECK(notes_on_rules(with_rules("allreduce,0,99999999,ring,simple,24,1,8\n", "collective", both)) ==
        Said{"line 1 of rules.csv decides at 64 KiB, 1 MiB"});
  CHECK(
      notes_on_rules(with_rules(two_of_tree, "collective", "--nodes 2 --groups-of 8 --size 64KiB --method estimate")) ==
      Said{"line 2 of rules.csv decides at 64 KiB"});
  CHECK(notes_on_rules(with_rules(two_of_tree, "collective", "--size 64KiB --method estimate --algorithm ring")) ==
        Said{"no rule of rules.csv for ring matches and can be run"});
  CHECK(notes_on_rules(with_rules(two_of_tree, "collective", "--size 1MiB --method estimate")) ==
        Said{"no rule of rules.csv matches and can be run"});
}
