// Logs of nccl-tests as they come: every age and layout, and every way that one can be broken.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "readings.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("today's log gives both placements, ranks, nodes, GPU and collective") {
  const auto read = log_of("NCCL version 2.27.3+cuda12.4\n" + devices + new_heading +
                           "           8             2     float     sum      -1    12.50    0.00    0.00       0    "
                           "12.25    0.00    0.00       0\n" +
                           ending);
  REQUIRE(read.ok());
  CHECK(read->warnings.empty());
  REQUIRE(read->tables.size() == 1);
  const MeasuredFacts& facts = read->tables[0].facts;
  CHECK(facts.collective == "all_reduce");
  CHECK(facts.ranks == 2);
  CHECK(facts.nodes == 2);
  CHECK(facts.gpu == "NVIDIA H100 80GB HBM3");
  CHECK(facts.nccl_version == "2.27.3");
  CHECK(facts.datatype == "float");
  const auto& points = read->tables[0].points;
  REQUIRE(points.size() == 2);
  CHECK(points[0].time.count() == Approx(12.5e-6));
  CHECK_FALSE(points[0].in_place);
  CHECK(points[1].time.count() == Approx(12.25e-6));
  CHECK(points[1].in_place);
}

TEST_CASE("the NCCL of a test is the library that nccl-tests' first line names") {
  const std::string row = "8 2 float sum -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0\n";
  const auto test = [&](const std::string& library) {
    return "# nccl-tests version 2.17.8 (b4d5bee) nccl-headers=22809 nccl-library=" + library + "\n" + devices +
           new_heading + row + ending;
  };
  const auto version = [&](const std::string& library) {
    const auto read = log_of(test(library));
    REQUIRE(read.ok());
    CHECK(read->warnings.empty());
    return read->tables.at(0).facts.nccl_version;
  };
  CHECK(version("22902") == "2.29.2");  // two digits each of minor and patch
  CHECK(version("20804") == "2.8.4");
  CHECK(version("2708") == "2.7.8");  // before 2.9: one digit of minor

  // The next test's line stands before its "nThread", which ends the test before.
  const auto two = log_of(test("22703") + test("22902"));
  REQUIRE(two->tables.size() == 2);
  CHECK(two->tables[0].facts.nccl_version == "2.27.3");
  CHECK(two->tables[1].facts.nccl_version == "2.29.2");

  const auto none = log_of("[1,0]<stdout>:" + test("zero"));
  REQUIRE(none->warnings.size() == 1);
  CHECK(to_text(none->warnings[0].where) == "t.log:1:72");  // behind 14 of the launcher's characters and 57 more
  CHECK(none->warnings[0].message == "nccl-library is 'zero': it is as if it were not there");
  CHECK(none->tables.at(0).facts.nccl_version.empty());
}

TEST_CASE("a log's variables are those that NCCL says were set") {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  const std::string row = "8 2 float sum -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0\n";
  const auto set = [](const std::string& variable, const std::string& value, int rank = 0) {
    return "node1:47" + std::to_string(11 + rank) + ":4800 [0] NCCL INFO " + variable + " set by environment to " +
           value + "\n";
  };
  const std::string algorithm = set("NCCL_ALGO", "Ring"), enabled = set("NCCL_NVLS_ENABLE", "0.");
  const auto one = log_of(devices + enabled + algorithm + set("PATH", "/bin") + set("NCCL_ALGO", "Ring.", 1) +
                          new_heading + row + ending);
  REQUIRE(one.ok());
  CHECK(one->warnings.empty());
  CHECK(one->tables.at(0).facts.environment == Variables{{"NCCL_NVLS_ENABLE", "0"}, {"NCCL_ALGO", "Ring"}});
  CHECK(log_of(devices + new_heading + row + ending)->tables.at(0).facts.environment.empty());

  const auto unlike = log_of(devices + algorithm + set("NCCL_ALGO", "Tree", 1) + set("NCCL_ALGO", "Tree", 1) +
                             new_heading + row + ending);
  REQUIRE(unlike->warnings.size() == 1);
  CHECK(to_text(unlike->warnings[0].where) == "t.log:7:1");
  CHECK(unlike->warnings[0].message == "NCCL_ALGO is 'Tree' here and another value before");
  CHECK(unlike->tables.at(0).facts.environment == Variables{{"NCCL_ALGO", "Ring"}});

  // A damaged log cannot make the reader search among more and more.
  std::string lines;
  for (int i = 0; i < 1100; ++i) lines += set("NCCL_X" + std::to_string(i), "1");
  const auto many = log_of(devices + lines + new_heading + row + ending);
  CHECK(many->tables.at(0).facts.environment.size() == 1000);
  REQUIRE(many->warnings.size() == 1);
  CHECK(many->warnings[0].message == "more than 1000 variables of NCCL");

  // Each test has its own, though another rank's line may come before the first one of the test's own.
  const auto two = log_of(devices + algorithm + new_heading + row + ending + set("NCCL_ALGO", "Tree", 1) + devices +
                          set("NCCL_ALGO", "Tree") + new_heading + row + ending + devices + new_heading + row + ending);
  REQUIRE(two->tables.size() == 3);
  CHECK(two->warnings.empty());
  CHECK(two->tables[0].facts.environment == Variables{{"NCCL_ALGO", "Ring"}});
  CHECK(two->tables[1].facts.environment == Variables{{"NCCL_ALGO", "Tree"}});
  CHECK(two->tables[2].facts.environment.empty());
}

namespace {

/// A log of an all-reduce of eight ranks in one process, without some of its lines of ranks.
std::string eight_ranks(const std::vector<int>& lost, int gpus_per_process, const std::string& rates) {
  std::string out = "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus " +
                    std::to_string(gpus_per_process) + " minBytes 8\n# Using devices\n";
  for (int rank = 0; rank < 8; ++rank)
    if (std::find(lost.begin(), lost.end(), rank) == lost.end())
      out += "#  Rank  " + std::to_string(rank) + " Group  0 Pid 11 on n1 device  " + std::to_string(rank) +
             " [0x07] Tesla V100-SXM2-32GB\n";
  return out + new_heading + "67108864 16777216 float sum -1 690.89 " + rates + " 0 690.89 " + rates + " 0\n" + ending;
}

}  // namespace

TEST_CASE("a log that lost some of its lines of ranks is not believed") {
  const auto doubt = [](const std::string& text) { return log_of(text).value().tables.at(0).facts.doubt; };
  // 67108864 B in 690.89 us: 97.13 GB/s; times 2 * 7/8: 169.98.
  const std::string rates = "97.13 169.98";
  CHECK(doubt(eight_ranks({}, 8, rates)).empty());
  CHECK(doubt(eight_ranks({}, 1, rates)).empty());
  CHECK(doubt(eight_ranks({3}, 1, rates)) == "it lists 7 ranks, but rank 7 is one of them");
  CHECK(doubt(eight_ranks({7}, 8, rates)) == "it lists 7 ranks, but its processes have 8 GPUs together");
  CHECK(doubt(eight_ranks({7}, 1, rates)) == "it lists 7 ranks, but its bus bandwidths are those of 8");
  // Two decimals cannot tell seven from eight ranks at so low a rate: 0.10 * 1.714 = 0.17, 0.10 * 1.75 = 0.18.
  std::string slow = eight_ranks({7}, 1, "0.10 0.18");
  for (std::size_t at = 0; (at = slow.find(" 690.89 ", at)) != std::string::npos;) slow.replace(at, 8, " 671088.64 ");
  CHECK(doubt(slow).empty());
  CHECK(doubt(eight_ranks({7}, 1, "97.13 97.13")) == "it lists 7 ranks, but its bus bandwidths are those of 2");
  // A broadcast has one rate, whatever the ranks, and old tools print the same twice for a gather.
  std::string broadcast = eight_ranks({7}, 1, "97.13 97.13");
  broadcast.replace(broadcast.find("all_reduce"), 10, "broadcast");
  CHECK(doubt(broadcast).empty());
  std::string gather = eight_ranks({7}, 1, "97.13 97.13");
  gather.replace(gather.find("all_reduce"), 10, "all_gather");
  CHECK(doubt(gather).empty());
  gather = eight_ranks({7}, 1, "97.13 84.99");
  gather.replace(gather.find("all_reduce"), 10, "all_gather");
  CHECK(doubt(gather) == "it lists 7 ranks, but its bus bandwidths are those of 8");
}

TEST_CASE("logs of every age are read: no root, no operation, one placement, extra columns, a launcher's label") {
  const auto times = [](const std::string& head, const std::string& row) {
    const auto read = log_of(head + row + "\n" + ending);
    INFO(row);
    REQUIRE(read.ok());
    std::vector<double> out;
    for (const MeasuredPoint& p : read->tables.at(0).points) out.push_back(std::round(p.time.count() * 1e9) / 1e3);
    return out;
  };
  const std::vector<double> both{9.5, 9.25};
  const std::string old_heading = "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n";
  CHECK(times(old_heading, "8 2 float sum 9.50 0.00 0.00 0e+00 9.25 0.00 0.00 0e+00") == both);
  CHECK(times(old_heading, "8 2 float 9.50 0.00 0.00 0e+00 9.25 0.00 0.00 0e+00") == both);
  CHECK(times("#  bytes  N  type  op  time  algbw  busbw  res  time  algbw  busbw  res\n",
              "8 2 float sum 0.0095 0.00 0.00 0e+00 0.00925 0.00 0.00 N/A") == both);
  CHECK(times("", "8 2 float none -1 9.50 0.00 0.00 0 9.25 0.00 0.00 0") == both);
  CHECK(times(new_heading, "8 2 float sum -1 9.50 0.00 0.00 0 N/A N/A N/A N/A") == std::vector<double>{9.5});
  CHECK(times(new_heading, "8 2 float sum -1 9.25 0.00 0.00 0") == std::vector<double>{9.25});
  CHECK(times(new_heading, "[1,0]<stdout>: 8 2 float sum -1 9.50 0.00 0.00 0 9.25 0.00 0.00 0") == both);
  CHECK(times(new_heading, "0: 8 2 float sum -1 9.50 0.00 0.00 0 9.25 0.00 0.00 0") == both);
  const std::string stamp = "2026-01-02T03:04:05.25Z ";
  CHECK(times(new_heading, stamp + "8 2 float sum -1 9.50 0.00 0.00 0 9.25 0.00 0.00 0") == both);
  CHECK(times(stamp + new_heading, stamp + "[1,0]<stdout>: 8 2 float sum -1 9.50 0.00 0.00 0 9.25 0.00 0.00 0") ==
        both);
  CHECK(times("# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong "
              "i_min i_max i_p99 i_cv%\n",
              "8 2 float sum -1 9.50 0 0 0 1 2 3 4 9.25 0 0 0 1 2 3 4") == both);
  CHECK(times("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp\n",
              "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0 2026-01-02 03:04:05") == both);
}

TEST_CASE("rows under a heading that leaves no columns for them are errors") {
  for (const std::string heading :
       {"# size timestamp time", "# size time timestamp", "# size time", "# size time time", "# size time x time"}) {
    INFO(heading);
    const auto read = log_of(heading + "\n 8 2 float 9.50\n 16 4 float 9.50\n# Out of bounds values : 0 OK\n");
    REQUIRE_FALSE(read.ok());
    CHECK(to_text(read.errors()).find("a row of 4 columns") != std::string::npos);
  }
}

TEST_CASE("a log from before 2.0 has milliseconds and an end without '#'") {
  const std::string head =
      "# Using devices\n#   Rank  0 on       n1 device  0 [0x06] Tesla P100-SXM2-16GB\n"
      "#   Rank  1 on       n1 device  1 [0x07] Tesla P100-SXM2-16GB\n\n"
      "#                                       out-of-place                    in-place\n"
      "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n";
  const auto read =
      log_of(head +
             "     1048576        262144   float     sum    0.039  27.07  27.07    0e+00    0.038  27.31  "
             "27.31    0e+00\n Out of bounds values : 0 OK\n Avg bus bandwidth    : 27.19\n");
  REQUIRE(read.ok());
  CHECK(read->warnings.empty());
  CHECK(read->untimed.empty());
  const MeasuredTable& table = read->tables.at(0);
  CHECK(table.facts.complete);
  CHECK(table.facts.ranks == 2);
  REQUIRE(table.points.size() == 2);
  CHECK(table.points[0].time.count() == Approx(39e-6));
  CHECK(table.points[1].time.count() == Approx(38e-6));
}

TEST_CASE("a row whose algbw is not its size over its time is left out, rounding and conventions are not") {
  // 1 MiB in 39 us are 26.9 GB/s.
  const std::string good = "1048576 262144 float sum -1 39.0 26.89 26.89 0 39.0 26.89 26.89 0\n";
  const auto left_out = [&](const std::string& row) {
    const auto read = log_of(devices + new_heading + good + row + ending);
    REQUIRE(read.ok());
    std::vector<std::string> out;
    for (const Diagnostic& d : read->untimed) out.push_back(to_text(d.where) + ": " + d.message);
    CHECK(read->tables.at(0).points.size() == 4 - out.size());
    return out;
  };
  using Texts = std::vector<std::string>;
  CHECK(
      left_out("1048576 262144 float sum -1 0.039 27.07 27.07 0 39.0 26.89 26.89 0\n") ==
      Texts{"t.log:10:29: 1048576 B in 0.039 us are 2.69e+04 GB/s, but its algbw is 27.07 GB/s: this row is left out"});
  CHECK(left_out("1048576 262144 float sum -1 39.0 26.89 26.89 0 39000 26.89 26.89 0\n").size() == 1);
  // Rounded to nothing, or to whole microseconds; without a rank's own share; no number.
  CHECK(left_out("8 2 float sum -1 13 0.00 0.00 0 13.2 0.00 0.00 0\n").empty());
  CHECK(left_out("8192 2048 float sum -1 1 12.00 12.00 0 1 6.00 6.00 0\n").empty());
  CHECK(left_out("1048576 262144 float sum -1 39.0 13.45 13.45 0 39.0 26.9 23.5 0\n").empty());
  CHECK(left_out("1048576 262144 float sum -1 39.0 N/A N/A 0 3.9e+01 0.01 0.01 0\n").empty());

  const auto table = csv_of(heading + "all_reduce,1048576,39,26.9,26.9,0\nall_reduce,1048576,0.039,26.9,26.9,1\n");
  REQUIRE(table.ok());
  CHECK(table->tables.at(0).points.size() == 1);
  REQUIRE(table->untimed.size() == 1);
  CHECK(to_text(table->untimed[0].where) == "t.csv:3:20");
  CHECK(first_error(csv_of(heading + "all_reduce,1048576,0.039,26.9,26.9,1\n")).find("but its algbw is 26.9 GB/s") !=
        std::string::npos);

  std::string wrong = json_row;
  wrong.replace(wrong.find("11.5"), 4, "0.0115");
  const auto json = json_of(json_log(wrong));
  REQUIRE(json.ok());
  CHECK(json->tables.at(0).points.size() == 1);
  REQUIRE(json->untimed.size() == 1);
  CHECK(json->untimed[0].message.find("1024 B in 0.0115 us are 89 GB/s, but its algbw is 0.1 GB/s") == 0);
}

TEST_CASE("a row whose size is not its count of elements is left out, in text and in JSON") {
  const auto left_out = [](const std::string& size, const std::string& count, const std::string& type) {
    // Two ranks, in text and in JSON.
    const std::string row = size + " " + count + " " + type + " none -1 12.50 N/A N/A 0 N/A N/A N/A N/A\n";
    const auto text =
        log_of(devices + new_heading + "8 2 float none -1 12.5 0.00 0.00 0 N/A N/A N/A N/A\n" + row + ending);
    REQUIRE(text.ok());
    const auto json = json_of(json_log(json_row + ",\n{\"size\":" + size + ",\"count\":" + count + ",\"type\":\"" +
                                           type + R"(","out_of_place":{"time":12.5}})",
                                       R"({"rank":0,"hostname":"n1"},{"rank":1,"hostname":"n2"})"));
    REQUIRE(json.ok());
    const bool out = !text->untimed.empty();
    CHECK(json->untimed.size() == text->untimed.size());
    CHECK(text->tables.at(0).points.size() == (out ? 1 : 2));
    CHECK(json->tables.at(0).points.size() == (out ? 2 : 3));
    CHECK(text->tables.at(0).facts.complete == !out);
    CHECK(json->tables.at(0).facts.complete == !out);
    if (out) CHECK(json->untimed[0].message == text->untimed[0].message);
    return out ? to_text(text->untimed[0].where) + ": " + text->untimed[0].message : std::string();
  };
  CHECK(left_out("1048576", "2621", "float") ==
        "t.log:10:9: 1048576 B are not 2621 elements of float: this row is left out");
  CHECK_FALSE(left_out("1048576", "262145", "float").empty());
  CHECK_FALSE(left_out("1048576", "524288", "float").empty());  // twice as much as there is
  const std::vector<std::pair<std::string, std::int64_t>> types{{"int8", 1},  {"uint8", 1},    {"f8e4m3", 1},
                                                                {"half", 2},  {"bfloat16", 2}, {"int32", 4},
                                                                {"float", 4}, {"int64", 8},    {"double", 8}};
  for (const auto& [type, width] : types)
    for (const std::int64_t size : {8, 24, 1 << 20, 1000000 * 8}) {
      CAPTURE(type, size);
      CHECK(left_out(std::to_string(size), std::to_string(size / width), type).empty());
      // Gathers have what one of the ranks sends.
      if (size / width > 1) CHECK(left_out(std::to_string(size), std::to_string(size / width / 2), type).empty());
      CHECK_FALSE(left_out(std::to_string(size), std::to_string(size / width + 1), type).empty());
    }
  CHECK(left_out("10", "2", "float").empty());  // a part of an element is none
  CHECK(left_out("64", "0", "float").empty());  // too small for the ranks
}

TEST_CASE("JSON with more devices in a process than it has GPUs, or with no version, says so") {
  const auto of = [](int devices, const std::string& pid) {
    std::string list;
    for (int i = 0; i < devices; ++i)
      list += (i > 0 ? "," : "") + ("{\"rank\":" + std::to_string(i) + ",\"pid\":" + pid + ",\"hostname\":\"n1\"}");
    return json_of(json_log(json_row, list)).value().tables.at(0).facts;
  };
  // json_log's process has four GPUs.
  CHECK(of(4, "11").doubt.empty());
  CHECK(of(4, "11").ranks == 4);
  CHECK(of(8, "11").doubt == "its config gives a process 4 GPUs, but process 11 on 'n1' has 8 devices");
  CHECK(of(1, "11").ranks == 4);  // the first of each process alone

  const auto version = [](const std::string& number) {
    std::string text = json_log(json_row);
    text.replace(text.find("22703"), 5, number);
    return json_of(text).value();
  };
  CHECK(version("22703").warnings.empty());
  CHECK(version("null").warnings.empty());
  const auto negative = version("-1");
  REQUIRE(negative.warnings.size() == 1);
  CHECK(negative.warnings[0].message == "nccl_version is '-1': it is as if it were not there");
  CHECK(negative.warnings[0].where.column > 1);
  CHECK(negative.tables.at(0).facts.nccl_version.empty());
}

TEST_CASE("CPU time is no time of a collective: its rows are left out, counted at their heading") {
  std::string of_cpu = new_heading;
  for (std::size_t at = 0; (at = of_cpu.find("   time", at)) != std::string::npos;) of_cpu.replace(at, 7, "cputime");
  const std::string rows =
      "8 2 float sum -1 3.50 0.00 0.00 0 3.25 0.00 0.00 0\n16 4 float sum -1 3.5 0.00 0.00 0 3.25 0.00 0.00 0\n";
  const std::string left_out =
      "2 rows of CPU time (nccl-tests -C 1), which is what the host takes for its calls and not how long the "
      "collective "
      "takes: left out";
  // Alone they are no table; the place is the heading's word, behind what a launcher puts before a line, too.
  CHECK(first_error(log_of(devices + of_cpu + rows + ending)) == "t.log:7:55: " + left_out);
  std::string labelled = "0: ";
  for (const char c : of_cpu + rows) labelled += c == '\n' ? "\n0: " : std::string(1, c);
  CHECK(first_error(log_of(labelled)) == "t.log:2:58: " + left_out);
  // Before or behind a test of times, which is as without them.
  const std::string timed = devices + new_heading + rows + ending;
  for (const bool first : {false, true}) {
    const auto read =
        log_of(first ? devices + of_cpu + rows + ending + timed : timed + devices + of_cpu + rows + ending);
    REQUIRE(read.ok());
    REQUIRE(read->tables.size() == 1);
    CHECK(read->tables[0].points.size() == 4);
    CHECK(read->tables[0].facts.ranks == 2);
    CHECK(read->tables[0].facts.complete);
    REQUIRE(read->untimed.size() == 1);
    CHECK(read->untimed[0].message == left_out);
  }
  // In JSON it is a key; beside it another row's time counts.
  const std::string cpu_row = R"({"size":8,"out_of_place":{"cpu_time":3.5,"alg_bw":1},"in_place":{"cpu_time":3.25}})";
  CHECK(first_error(json_of(json_log(cpu_row + ",\n" + cpu_row))) == "t.json:2:52: " + left_out);
  const auto read = json_of(json_log(json_row + "," + cpu_row));
  REQUIRE(read.ok());
  CHECK(read->tables.at(0).points.size() == 2);
  CHECK_FALSE(read->tables.at(0).facts.complete);
  REQUIRE(read->untimed.size() == 1);
  CHECK(read->untimed[0].message.starts_with("1 row of CPU time"));
}

TEST_CASE("several tests in one log are several tables") {
  const std::string row = "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n";
  std::string second = devices;
  second.replace(second.find("all_reduce"), 10, "all_gather");
  const auto read = log_of(devices + new_heading + row + ending + second + new_heading + row + ending);
  REQUIRE(read.ok());
  REQUIRE(read->tables.size() == 2);
  CHECK(read->tables[0].facts.collective == "all_reduce");
  CHECK(read->tables[1].facts.collective == "all_gather");
  CHECK(read->tables[1].facts.ranks == 2);
}

TEST_CASE("a log that breaks off keeps its finished rows and says so") {
  const std::string row = "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n";
  const auto within = log_of(devices + new_heading + row + "16 4 float sum -1 9.5");
  REQUIRE(within.ok());
  CHECK(within->tables[0].points.size() == 2);
  CHECK_FALSE(within->tables[0].facts.complete);
  REQUIRE(within->warnings.size() == 1);
  CHECK(within->warnings[0].message == "the log ends within this row");
  const auto after = log_of(devices + new_heading + row);
  REQUIRE(after.ok());
  REQUIRE(after->warnings.size() == 1);
  CHECK(after->warnings[0].message.find("the test did not finish") != std::string::npos);
  // Other blanks than those between columns are a blank line.
  for (const char* blanks : {"\r ", " \f", "\v\n\r"}) CHECK(log_of(devices + new_heading + row + blanks).ok());
}

TEST_CASE("a log that breaks off and is written on keeps its finished rows") {
  const std::string row = "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n";
  for (const char* left : {"16 4 float sum -1 9.5\n", "16 4 float sum -1 9.50 0 0srun: error: node1: task 3: Killed\n",
                           "16 4 float sum -1 9.50 0 0\nsrun: error: node1: task 3: Killed\n"}) {
    const auto died = log_of(devices + new_heading + row + left);
    INFO(left);
    REQUIRE(died.ok());
    CHECK(died->tables[0].points.size() == 2);
    CHECK_FALSE(died->tables[0].facts.complete);
    CHECK_FALSE(died->warnings.empty());
  }
  // Rows that others follow, or that a finished test has, are wrong.
  CHECK(first_error(log_of(new_heading + row + "16 4 float sum -1 9.50 0 0\n" + row)) ==
        "t.log:5:1: a row of 8 columns");
  CHECK(first_error(log_of(new_heading + row + "16 4 float sum -1 9.50 0 0\n" + ending)) ==
        "t.log:5:1: a row of 8 columns");
}

TEST_CASE("a log's wrong rows are errors at their places, foreign lines are none") {
  const std::string row = "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n";
  const auto foreign = log_of("slurmstepd: hello\nnode1:12:34 [0] NCCL INFO Channel 00/02 : 0 1\n" + devices +
                              new_heading + "node1: NCCL WARN x\n" + row + ending);
  REQUIRE(foreign.ok());
  CHECK(foreign->tables[0].points.size() == 2);
  CHECK(first_error(log_of(new_heading + "8 2 float sum -1 9.50 0 0\n" + ending)) == "t.log:4:1: a row of 8 columns");
  CHECK(first_error(log_of(new_heading + "8 2 float sum -1 -9.50 0 0 0 9.25 0 0 0\n")) ==
        "t.log:4:18: the time is '-9.50'");
  CHECK(first_error(log_of(new_heading + "99999999999999999999 2 float sum -1 9 0 0 0 9 0 0 0\n")) ==
        "t.log:4:1: the size is '99999999999999999999'");
  CHECK(first_error(log_of(new_heading + row + "-16 4 float sum -1 9.50 0 0 0 9.25 0 0 0\n" + ending)) ==
        "t.log:5:1: the size is '-16'");
  CHECK(first_error(log_of(new_heading + row + "16 four float sum -1 9.50 0 0 0 9.25 0 0 0\n" + ending)) ==
        "t.log:5:4: the count is 'four'");
  CHECK(first_error(log_of("caf\xe9\n")) == "t.log:1:4: byte 0xE9 is not UTF-8");
  const auto nothing = log_of("no row here\n");
  REQUIRE(nothing.ok());
  CHECK(nothing->tables.empty());
}

namespace {

/// A log with two rows, the first behind `before` and with `colour` on its size, and its first time.
Result<Readings> two_rows(const std::string& before, const std::string& size, const std::string& time = "12.50") {
  return log_of(devices + new_heading + before + size + " 256 float sum -1 " + time +
                " 0.08 0.08 0 12.25 0.08 0.08 0\n2048 512 float sum -1 13.00 0.16 0.16 0 12.50 0.16 0.16 0\n" + ending);
}

}  // namespace

TEST_CASE("colours of a terminal are no part of a row") {
  const Result<Readings> plain = two_rows("  ", "1024"), coloured = two_rows("\x1b[1;32m", "1024\x1b[0m");
  REQUIRE(coloured.ok());
  CHECK(coloured->warnings.empty());
  REQUIRE(coloured->tables.size() == 1);
  CHECK(coloured->tables[0].points.size() == plain->tables.at(0).points.size());
  CHECK(coloured->tables[0].facts.complete);
  // Whatever an escape sequence breaks off with.
  for (const char* cut : {"\x1b", "\x1b[", "\x1b[3", "\x1b]0;title"}) (void)two_rows(cut, "1024");
  CHECK(two_rows("\x1b[31m", "-1024\x1b[0m").errors().at(0).where.column == 6);
}

TEST_CASE("a row behind words that nobody knows is left out, which is said") {
  for (const char* before : {"> ", "? ", "node1: "}) {
    const Result<Readings> read = two_rows(before, "1024");
    REQUIRE(read.ok());
    REQUIRE(read->untimed.size() == 1);
    CHECK(read->untimed[0].message.find(" stands before the size: this row is left out") != std::string::npos);
    REQUIRE(read->tables.size() == 1);
    CHECK(read->tables[0].points.size() == 2);
    CHECK_FALSE(read->tables[0].facts.complete);
  }
  CHECK(two_rows("0: ", "1024")->untimed.empty());
}

TEST_CASE("a row and a line of NCCL's in one line is left out, which is said, wherever the one begins in the other") {
  const std::string info = "node1:4711:4800 [0] NCCL INFO AllReduce: opCount 3 sendbuff 0x7f recvbuff 0x7f count 4";
  const std::string good = "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n", row = "16 4 float sum -1 9.50 0 0 0 9.25 0 0 0";
  const auto holds = [&](const std::string& line) {
    INFO(line);
    const auto read = log_of(devices + new_heading + good + line + "\n" + good + ending);
    REQUIRE(read.ok());
    CHECK(read->tables.at(0).points.size() == 4);
    CHECK_FALSE(read->tables[0].facts.complete);
    REQUIRE(read->untimed.size() == 1);
    CHECK(read->untimed[0].message.find("left out") != std::string::npos);
  };
  holds(info + " " + row);
  // Behind size, count and type the test measures, and prints on.
  for (std::size_t kept = row.find("float") + 5; kept <= row.size(); ++kept)
    holds(row.substr(0, kept) + " " + info + "\n" + row.substr(kept));
  // On lines of its own it is none of the test's.
  const auto apart = log_of(devices + new_heading + good + info + "\n" + row + "\n" + ending);
  REQUIRE(apart.ok());
  CHECK(apart->untimed.empty());
  CHECK(apart->tables.at(0).facts.complete);
}

TEST_CASE("a test that another follows before its end did not finish") {
  const std::string row = "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n";
  const auto read = log_of(devices + new_heading + row + devices + new_heading + row + ending);
  REQUIRE(read.ok());
  REQUIRE(read->tables.size() == 2);
  CHECK_FALSE(read->tables[0].facts.complete);
  CHECK(read->tables[1].facts.complete);
  REQUIRE(read->warnings.size() == 1);
  CHECK(read->warnings[0].message == "another test begins before the end of the one before: it did not finish");
  const auto whole = log_of(devices + new_heading + row + ending + devices + new_heading + row + ending);
  CHECK(whole->warnings.empty());
  CHECK(whole->tables.at(0).facts.complete);
}

TEST_CASE("a row of an unknown type is left out, of an unknown operation it counts, and both are said") {
  const std::string good = " float sum -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0\n";
  const auto read = log_of(devices + new_heading + "8 2" + good +
                           "16 4 bfloat99 sum -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0\n"
                           "32 8 float frob -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0\n"
                           "64 16 float frob -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0\n" +
                           ending);
  REQUIRE(read.ok());
  CHECK(read->tables.at(0).points.size() == 6);
  REQUIRE(read->untimed.size() == 1);
  CHECK(read->untimed[0].message == "the type is 'bfloat99': this row is left out");
  CHECK(read->untimed[0].where.column == 6);
  // Once a file.
  CHECK(std::ranges::count_if(read->warnings, [](const Diagnostic& w) {
          return w.message == "the operation is 'frob': such rows count as others do";
        }) == 1);
  // Other programs' lines that begin with numbers are none.
  CHECK(log_of(devices + new_heading + "8 2" + good + "16 4 nodes were busy for 1 2 or 3 of the last 7 days\n" + ending)
            ->untimed.empty());
}

TEST_CASE("a row without its size or its count is left out, which is said with its line") {
  std::string stamped = new_heading;
  stamped.insert(stamped.find("#wrong\n") + 6, " timestamp");
  for (const auto& [head, behind] :
       {std::pair<std::string, const char*>{new_heading, ""}, {stamped, " 2025-11-25 07:00:00"}}) {
    const auto row = [&, end = behind](const std::string& front) {
      return front + " sum -1 12.50 0.00 0.00 0 12.25 0.00 0.00 0" + end + "\n";
    };
    const auto read = log_of(devices + head + row("8 2 float") + row("16 float") + row("32 8 float") + ending);
    REQUIRE(read.ok());
    REQUIRE(read->tables.size() == 1);
    CHECK(read->tables[0].points.size() == 4);
    CHECK_FALSE(read->tables[0].facts.complete);
    REQUIRE(read->untimed.size() == 1);
    CHECK(read->untimed[0].message == "the size or the count in front of 'float' is missing: this row is left out");
    const std::string before = devices + head + row("8 2 float");
    CHECK(read->untimed[0].where.line == std::ranges::count(before, '\n') + 1);
    CHECK(read->untimed[0].where.column == 4);
    // Nor is a row of an unknown type passed over in silence where a time stamp ends it.
    CHECK(log_of(before + row("16 4 bfloat99") + ending)->untimed.size() == 1);
  }
  // "8 float" in other lines is no row.
  CHECK(log_of(devices + new_heading + "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n8 float values are 32 bytes\n" + ending)
            ->untimed.empty());
}

TEST_CASE("what a JSON says of itself is said: errors, a later version, words that nobody knows") {
  const auto read = json_of(R"({"version": 99, "args": ["all_reduce_perf"], "nccl_version": 22703,
    "config": {"nthreads": 1, "ngpus": 2, "devices": []}, "errors": ["boom"], "results": [
    {"size": 8, "count": 2, "type": "bfloat99", "redop": "   frob", "root": "-1",
     "out_of_place": {"time": 12.5, "alg_bw": 0, "bus_bw": 0, "nwrong": 0}}]})");
  INFO(to_text(read.errors()));
  REQUIRE(read.ok());
  std::string said;
  for (const Diagnostic& warning : read->warnings) said += warning.message + "\n";
  CHECK(said ==
        "version is 99\nthe test says 'boom'\nthe type is 'bfloat99': such rows count as others do\n"
        "the operation is 'frob': such rows count as others do\n");
}

TEST_CASE("an infinite time is none, and not too short a one") {
  CHECK(two_rows("", "1024", "inf")->untimed.at(0).hint.find("too short") == std::string::npos);
  CHECK(two_rows("", "1024", "0.00")->untimed.at(0).hint.find("too short") == 0);
}

TEST_CASE("rows with wrong results are left out with a warning") {
  const auto read = log_of(devices + new_heading + "8 2 float sum -1 9.50 0 0 3 9.25 0 0 0\n" + ending);
  REQUIRE(read.ok());
  CHECK(read->tables[0].points.size() == 1);
  REQUIRE(read->warnings.size() == 1);
  CHECK(read->warnings[0].message == "3 results out of place were wrong: this row is left out");
}

TEST_CASE("a rank that is listed twice is named with its place") {
  const auto with_again = [](const std::vector<int>& lost) {
    std::string log = eight_ranks(lost, 1, "97.13 169.98");
    const std::string line = "#  Rank  2 Group  0 Pid 11 on n1 device  2 [0x07] Tesla V100-SXM2-32GB\n";
    log.insert(log.find(line), line);
    return log_of(log).value();
  };
  // Beside a rank that is missing nothing can be scored; beside all of them it is odd, and said.
  const Readings lacking = with_again({3});
  REQUIRE(lacking.warnings.size() == 1);
  CHECK(to_text(lacking.warnings[0].where) == "t.log:7:1");
  CHECK(lacking.warnings[0].message == "rank 2 is listed twice");
  CHECK(lacking.tables.at(0).facts.doubt ==
        "it lists 7 ranks, but rank 7 is one of them; rank 2 is listed twice (t.log:7:1)");
  const Readings whole = with_again({});
  REQUIRE(whole.warnings.size() == 1);
  CHECK(whole.warnings[0].message == "rank 2 is listed twice");
  CHECK(whole.tables.at(0).facts.doubt.empty());
}
