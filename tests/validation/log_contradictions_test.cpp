// Logs that contradict the collective, the ranks or the GPU that they are scored by.
#include <catch2/catch.hpp>

#include "cli/process.hpp"
#include "collcast/validation/machines.hpp"
#include "readings.hpp"
#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

using Texts = std::vector<std::string>;

std::string rank_line(int rank, int group, const std::string& gpu = "NVIDIA H100 80GB HBM3") {
  return "#  Rank  " + std::to_string(rank) + " Group  " + std::to_string(group) + " Pid 11 on n1 device  " +
         std::to_string(rank) + " [0x07] " + gpu + "\n";
}

/// Eight ranks of one process: a row of 64 MiB in 690.89 us, so of 97.13 GB/s.
std::string log_with(const std::string& test, const std::string& operation, const std::string& busbw) {
  std::string out = test.empty() ? "" : "# Collective test starting: " + test + "_perf\n";
  out += "# nThread 1 nGpus 8 minBytes 8\n# Using devices\n";
  for (int rank = 0; rank < 8; ++rank) out += rank_line(rank, 0);
  const std::string rates = " 690.89 97.13 " + busbw + " 0";
  return out + new_heading + "67108864 16777216 float " + operation + " -1" + rates + rates + "\n" + ending;
}

/// Why the first table is not scored; empty where it is.
std::string unscored(const Result<Readings>& read, const std::string& collective = {}) {
  REQUIRE(read.ok());
  MeasuredTable table = read->tables.at(0);
  if (!collective.empty()) table.facts.collective = collective;
  static Machines all = Machines::shipped(source_tree).value();
  const auto place = all.place(table);
  return place.ok() ? std::string() : to_text(place.errors()[0].where) + ": " + place.errors()[0].message;
}

Texts said(const Diagnostics& all) {
  Texts out;
  for (const Diagnostic& one : all) out.push_back(to_text(one.where) + ": " + one.message);
  return out;
}

}  // namespace

TEST_CASE("a log is not scored under a collective that its bus bandwidths or its operation are not of") {
  // 2 * 7/8 of an all-reduce.
  const std::string log = log_with("", "sum", "169.98");
  CHECK(unscored(log_of(log), "all_reduce").empty());
  const std::string ratio = "; busbw is 1.75 times algbw, all_gather of 8 ranks has 0.875 times";
  CHECK(unscored(log_of(log), "all_gather") == "t.log:14:32: its rows reduce (sum), which all_gather does not" + ratio +
                                                   ": what fits is all_reduce of 8 ranks");
  CHECK(unscored(log_of(log_with("all_gather", "sum", "169.98"))) == unscored(log_of("\n" + log), "all_gather"));
  CHECK(unscored(log_of(log), "reduce_scatter") ==
        "t.log:14:32: its busbw is 1.75 times algbw, reduce_scatter of 8 ranks has 0.875 times: what fits is "
        "all_reduce of 8 ranks");
  // 7/8, which several have: the operation tells some apart.
  const std::string gathers = log_with("", "none", "84.99");
  for (const char* right : {"all_gather", "alltoall", "gather", "scatter"})
    CHECK(unscored(log_of(gathers), right).empty());
  CHECK(unscored(log_of(gathers), "reduce_scatter").find("its rows reduce nothing, which reduce_scatter does") !=
        std::string::npos);
  CHECK(unscored(log_of(gathers), "all_reduce").find("busbw is 0.875 times algbw") != std::string::npos);
  CHECK(unscored(log_of(gathers), "broadcast").find("what fits is all_gather or ") != std::string::npos);
  CHECK(unscored(log_of(log_with("", "sum", "84.99")), "reduce_scatter").empty());
  CHECK(unscored(log_of(log_with("", "sum", "97.13")), "reduce").empty());
  // Before there was an operation in each row a gather may have its one rate twice.
  CHECK(unscored(log_of(log_with("", "", "97.13")), "all_gather").empty());
  CHECK_FALSE(unscored(log_of(log_with("", "none", "97.13")), "all_gather").empty());
  CHECK(unscored(log_of(log_with("", "sum", "50.00")), "all_reduce").find(": no collective of 8 ranks fits") !=
        std::string::npos);
  // What says nothing speaks against nothing.
  CHECK(unscored(log_of(log_with("", "", "N/A")), "all_gather").empty());
}

TEST_CASE("JSON whose args name another test than its rows are of is not scored") {
  std::string row = json_row;
  row.replace(row.find("none"), 4, "sum");
  const std::string rates = R"("alg_bw":0.1,"bus_bw":0.1)";
  for (std::size_t at = 0; (at = row.find(rates)) != std::string::npos;)
    row.replace(at, rates.size(), R"("alg_bw":0.100000,"bus_bw":0.150000)");
  const std::string device = R"({"rank":0,"hostname":"n1","device_info":"NVIDIA H100 80GB HBM3"})";
  const auto read = json_of(json_log(row, device));
  const std::string why = unscored(read);
  CHECK(why.find("its rows reduce (sum), which all_gather does not; busbw is 1.5 times algbw, all_gather of 4 ranks "
                 "has 0.75 times: what fits is all_reduce of 4 ranks") != std::string::npos);
  CHECK(unscored(read, "all_reduce").empty());
}

TEST_CASE("a table is not scored under a collective that its bus bandwidths are not of, with a sidecar or without") {
  const auto table_of = [](const std::string& collective, const std::string& busbw) {
    return heading + collective + ",8,10.00,,,0\n" + collective + ",67108864,690.89,97.13," + busbw + ",0\n";
  };
  MeasuredFacts sidecar;
  sidecar.ranks = 8;
  sidecar.nodes = 1;
  sidecar.gpu = "NVIDIA H100 80GB HBM3";
  const auto why = [&](const std::string& collective, const std::string& busbw) {
    sidecar.collective = collective;
    return unscored(csv_of(table_of(collective, busbw), sidecar));
  };
  CHECK(why("all_reduce", "169.98").empty());  // 97.13 * 2 * 7/8
  CHECK(why("all_gather", "84.99").empty());   // 97.13 * 7/8
  CHECK(why("broadcast", "97.13").empty());
  CHECK(
      why("all_gather", "169.98") ==
      "t.csv:3:34: its busbw is 1.75 times algbw, all_gather of 8 ranks has 0.875 times: what fits is all_reduce of 8 "
      "ranks");
  CHECK(
      why("all_reduce", "84.99").starts_with("t.csv:3:34: its busbw is 0.875 times algbw, all_reduce of 8 ranks has "));
  CHECK(why("broadcast", "84.99").starts_with("t.csv:3:33: its busbw is 0.875 times algbw"));
  CHECK(why("all_gather", "").empty());  // says nothing

  const Folder folder;
  folder.write("t.csv", table_of("all_gather", "169.98"));
  for (const std::string command : {"validate", "calibrate"}) {
    const Outcome run = run_shell(
        with_data + "collcast " + command + " --topology dgx-h100 --ranks 8 --nodes 1 --measured t.csv", folder.path());
    INFO(run.err);
    CHECK(run.exit == 2);
    CHECK(run.err.find("busbw is 1.75 times algbw") != std::string::npos);
  }
}

TEST_CASE("neither validate nor calibrate takes a log under another collective, whatever names it") {
  const Folder folder;
  folder.write("x.log", log_with("", "sum", "169.98"));
  folder.write("all_gather.log", log_with("", "sum", "169.98"));
  folder.write("y.log", log_with("all_gather", "sum", "169.98"));
  for (const std::string measured : {"x.log --collective all_gather", "all_gather.log", "y.log"})
    for (const std::string command : {"validate", "calibrate"}) {
      const Outcome run =
          run_shell(with_data + "collcast " + command + " --topology dgx-h100 --measured " + measured, folder.path());
      INFO(run.err);
      CHECK(run.exit == 2);
      CHECK(run.err.find("busbw is 1.75 times algbw") != std::string::npos);
    }
}

TEST_CASE("a log whose ranks are in several groups is not believed, and --ranks decides") {
  const auto doubt = [](bool split) {
    std::string out = "# Collective test starting: broadcast_perf\n# nThread 1 nGpus 8 minBytes 8\n# Using devices\n";
    for (int rank = 0; rank < 8; ++rank) out += rank_line(rank, split && rank > 3 ? 1 : 0);
    const std::string rates = " 690.89 97.13 97.13 0";
    return out + new_heading + "67108864 16777216 float none -1" + rates + rates + "\n" + ending;
  };
  const auto facts = [](const std::string& log) { return log_of(log).value().tables.at(0).facts; };
  CHECK(facts(doubt(false)).doubt.empty());
  const std::string why = "it lists 8 ranks, but in 2 groups, each of which ran a collective of its own";
  CHECK(facts(doubt(true)).doubt == why);
  const auto json = [](int second) {
    return json_of(json_log(json_row, R"({"rank":0,"group":0,"hostname":"n1"},{"rank":4,"group":)" +
                                          std::to_string(second) + R"(,"hostname":"n2"})"))
        .value()
        .tables.at(0)
        .facts.doubt;
  };
  CHECK(json(0).empty());
  CHECK(json(1) == why);
  // A second test of one group has nothing of the first's.
  const auto both = log_of(doubt(true) + doubt(false)).value();
  REQUIRE(both.tables.size() == 2);
  CHECK(both.tables[1].facts.doubt.empty());

  const Folder folder;
  folder.write("b.log", doubt(true));
  const std::string command = with_data + "collcast validate --measured b.log --topology dgx-h100 ";
  const Outcome refused = run_shell(command, folder.path());
  CHECK(refused.exit == 2);
  CHECK(refused.err.find(why) != std::string::npos);
  CHECK(run_shell(command + "--ranks 4 --nodes 1", folder.path()).exit == 0);
}

TEST_CASE("unlike GPUs of a test are warned of once, at the first that differs") {
  const std::string head = "# nThread 1 nGpus 1 minBytes 8\n# Using devices\n";
  const std::string row = "8 2 float sum -1 9.50 0.00 0.00 0 9.25 0.00 0.00 0\n";
  const auto read = log_of(head + rank_line(0, 0) + rank_line(1, 0) + rank_line(2, 0, "NVIDIA A100-SXM4-80GB") +
                           rank_line(3, 0, "NVIDIA A100-SXM4-80GB") + new_heading + row + ending);
  REQUIRE(read.ok());
  CHECK(said(read->warnings) == Texts{"t.log:5:1: rank 2 is on 'NVIDIA A100-SXM4-80GB', the first on 'NVIDIA H100 80GB "
                                      "HBM3': the ranks have unlike GPUs"});
  CHECK(read->tables.at(0).facts.gpu == "NVIDIA H100 80GB HBM3");
  // Each of two tests on its own GPUs is none.
  const std::string a100 = rank_line(0, 0, "NVIDIA A100-SXM4-80GB") + rank_line(1, 0, "NVIDIA A100-SXM4-80GB");
  CHECK(log_of(head + rank_line(0, 0) + rank_line(1, 0) + new_heading + row + ending + head + a100 + new_heading + row +
               ending)
            ->warnings.empty());
  const auto json = json_of(json_log(json_row, R"({"rank":0,"hostname":"n1","device_info":"NVIDIA H100"},)"
                                               R"({"rank":4,"hostname":"n2","device_info":"NVIDIA A100"})"));
  REQUIRE(json.ok());
  REQUIRE(json->warnings.size() == 1);
  CHECK(json->warnings[0].message ==
        "rank 4 is on 'NVIDIA A100', the first on 'NVIDIA H100': the ranks have unlike GPUs");
  CHECK(json->warnings[0].where.line == 1);
}

TEST_CASE("a row's count is its size once or per rank, and of no other number") {
  const auto points = [](const std::string& count, const std::string& type, const std::string& lines) {
    const std::string row = "1048576 " + count + " " + type + " none -1 39.00 26.89 26.89 0 39.00 26.89 26.89 0\n";
    const auto read = log_of("# nThread 1 nGpus 1 minBytes 8\n# Using devices\n" + lines + new_heading +
                             "8 2 float none -1 9.50 0.00 0.00 0 9.25 0.00 0.00 0\n" + row + ending);
    REQUIRE(read.ok());
    return read->tables.at(0).points.size();
  };
  const std::string two = rank_line(0, 0) + rank_line(1, 0);
  CHECK(points("262144", "float", two) == 4);
  CHECK(points("131072", "float", two) == 4);
  CHECK(points("262144", "int8", two) == 2);  // four times as much
  CHECK(points("65536", "float", two) == 2);
  // A list that cannot be whole tells nothing of it.
  CHECK(points("65536", "float", rank_line(0, 0) + rank_line(3, 0)) == 4);
  CHECK(points("65536", "float", rank_line(0, 0) + rank_line(1, 1)) == 4);
  CHECK(points("65536", "float", "") == 4);
}

TEST_CASE("a log whose rows are all wrong says so, and not that it has none") {
  const auto log = log_of(devices + new_heading + "8 2 float sum -1 9.5 0 0 3 9.5 0 0 4\n" + ending);
  REQUIRE_FALSE(log.ok());
  REQUIRE(log.errors().size() == 2);
  CHECK(log.errors()[0].message == "3 results out of place were wrong: this row is left out");
}

TEST_CASE("what a launcher writes before every line is no part of a row, whatever it is") {
  const std::string row = "8 2 float sum -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0\n";
  const auto behind = [](const std::string& text, const std::string& prefix, const std::string& others) {
    std::string out;
    bool odd = false;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, odd = !odd)
      out += (odd ? others : prefix) + text.substr(at, text.find('\n', at) + 1 - at);
    return out;
  };
  const std::pair<const char*, const char*> prefixes[] = {
      {"[0] ", "[11] "},                                                           // hydra -prepend-rank
      {"node1: ", "gpu-node10: "},                                                 // pdsh, clush
      {"[pod/nccl-0/main] ", "[pod/nccl-10/main] "},                               // kubectl logs --prefix
      {"nccl-1  | ", "nccl-10 | "},                                                // docker compose
      {"[default0]:", "[default7]:"},                                              // torchrun
      {"Sun Nov 29 10:00:00 2026<stdout>:", "Sun Nov 29 10:00:01 2026<stdout>:"},  // mpirun --timestamp-output
      {"Sun Nov 29 10:00:00 2026[1,0]<stdout>:", "Sun Nov 29 10:00:01 2026[1,10]<stdout>:"},  // with --tag-output
  };
  for (const auto& [prefix, others] : prefixes) {
    INFO(prefix);
    const auto read = log_of(behind(devices + new_heading + row + row + ending, prefix, others));
    REQUIRE(read.ok());
    CHECK(to_text(read->warnings) == "");
    REQUIRE(read->tables.size() == 1);
    CHECK(read->tables[0].facts.ranks == 2);
    CHECK(read->tables[0].facts.nodes == 2);
    CHECK(read->tables[0].points.size() == 4);
  }
}
