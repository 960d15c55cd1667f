// Measured tables and logs as they come: every layout, and every way that a file can be broken.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/process.hpp"
#include "collcast/validation/measured_table.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

const std::string heading = "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\n";

Result<Readings> csv_of(const std::string& text, const std::optional<MeasuredFacts>& sidecar = std::nullopt) {
  std::istringstream in(text);
  return read_table_csv(in, "t.csv", sidecar);
}
Result<Readings> log_of(const std::string& text) {
  std::istringstream in(text);
  return read_nccl_tests_text(in, "t.log");
}
Result<Readings> json_of(const std::string& text) {
  std::istringstream in(text);
  return read_nccl_tests_json(in, "t.json");
}

/// The first error: "file:line:column: message".
std::string first_error(const Result<Readings>& result) {
  REQUIRE_FALSE(result.ok());
  return to_text(result.errors().front().where) + ": " + result.errors().front().message;
}

const std::string devices =
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   4711 on      node1 device  0 [0000:07:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   4712 on      node2 device  0 [0000:07:00] NVIDIA H100 80GB HBM3\n";
const std::string new_heading =
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n";
const std::string ending = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.04\n";

/// A text over and over, and how much of it was taken; gives up where no reader should come to.
class Endless : public std::streambuf {
 public:
  static constexpr std::size_t much = std::size_t{16} << 20;
  explicit Endless(const std::string& text) {
    while (block_.size() < 1000) block_ += text;
  }
  std::size_t taken = 0;

 protected:
  int_type underflow() override {
    if (taken >= much) return traits_type::eof();
    taken += block_.size();
    setg(block_.data(), block_.data(), block_.data() + block_.size());
    return traits_type::to_int_type(block_.front());
  }

 private:
  std::string block_;
};

std::string json_log(const std::string& results, const std::string& device_list = R"({"rank":0,"hostname":"n1"})") {
  return R"({"version":2,"args":["/x/all_gather_perf_mpi","-g","4"],"nccl_version":22703,)"
         R"("config":{"nthreads":1,"ngpus":4,"devices":[)" +
         device_list + "]},\n\"results\":[" + results + "]}";
}
const std::string json_row = R"({"size":1024,"count":256,"type":"float","redop":"none","root":"    -1",)"
                             R"("out_of_place":{"time":10.500000,"alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0},)"
                             R"("in_place":{"time":11.5,"alg_bw":0.1,"bus_bw":0.1,"nwrong":null}})";

}  // namespace

TEST_CASE("a table's rows come with size, time and placement, whatever the order of columns") {
  const auto read = csv_of("inplace,time_us,size_bytes,collective,more\n1,2.5,1024,all_gather,x\n");
  REQUIRE(read.ok());
  REQUIRE(read->tables.size() == 1);
  CHECK(read->tables[0].facts.collective == "all_gather");
  REQUIRE(read->tables[0].points.size() == 1);
  const MeasuredPoint& point = read->tables[0].points[0];
  CHECK(point.size == Bytes(1024));
  CHECK(point.time.count() == Approx(2.5e-6));
  CHECK(point.in_place);
}

TEST_CASE("every wrong cell of a table is an error at its place") {
  const auto read = csv_of(heading + "all_reduce,8x,1.5,0,0,0\nall_reduce,8,-1,0,0,2\nall_reduce,8,x,0,0,0\n" +
                           "all_reduce,99999999999999999999,1,0,0,0\nall_reduce,8,1\n");
  REQUIRE_FALSE(read.ok());
  REQUIRE(read.errors().size() == 6);
  CHECK(to_text(read.errors()[0].where) == "t.csv:2:12");
  CHECK(read.errors()[0].message == "size_bytes is '8x'");
  CHECK(to_text(read.errors()[1].where) == "t.csv:3:14");  // the time
  CHECK(to_text(read.errors()[2].where) == "t.csv:3:21");  // the placement
  CHECK(to_text(read.errors()[3].where) == "t.csv:4:14");
  CHECK(to_text(read.errors()[4].where) == "t.csv:5:12");
  CHECK(read.errors()[5].message == "3 cells in a table of 6 columns");
}

TEST_CASE("a row without a time is left out and listed by its line; the others are read") {
  const auto holds = [](const Result<Readings>& read, const std::string& place, const std::string& time) {
    REQUIRE(read.ok());
    REQUIRE(read->untimed.size() == 1);
    CHECK(to_text(read->untimed[0].where) == place);
    CHECK(read->untimed[0].message == "the time is '" + time + "': this row is left out");
    REQUIRE(read->tables.size() == 1);
    CHECK(read->tables[0].points.size() == 1);
  };
  for (const std::string time : {"0.00", "nan", "-nan", "inf", "0"}) {
    INFO(time);
    holds(csv_of(heading + "all_reduce,8," + time + ",0,0,0\nall_reduce,16,2,0,0,0\n"), "t.csv:2:14", time);
    holds(log_of(devices + new_heading + "8 2 float sum -1 " + time + " 0 0 0\n16 4 float sum -1 9.5 0 0 0\n" + ending),
          "t.log:9:18", time);
  }
  std::string zero = json_row;
  zero.replace(zero.find("10.500000"), 9, "0.00");
  holds(json_of(json_log(zero)), "t.json:2:110", "0.00");
  // Nothing else is a time that is none, and a file of such rows alone has nothing to say.
  CHECK(first_error(csv_of(heading + "all_reduce,8,-1,0,0,0\nall_reduce,16,2,0,0,0\n")) ==
        "t.csv:2:14: time_us is '-1'");
  CHECK(first_error(csv_of(heading + "all_reduce,8,0,0,0,0\n")) == "t.csv:2:14: the time is '0': this row is left out");
  CHECK(first_error(log_of(devices + new_heading + "8 2 float sum -1 0.00 0 0 0\n" + ending)) ==
        "t.log:9:18: the time is '0.00': this row is left out");
}

TEST_CASE("a table that is none says what it lacks") {
  CHECK(first_error(csv_of("")) == "t.csv:1:1: the file is empty");
  CHECK(first_error(csv_of("a,b,c\n")) ==
        "t.csv:1:1: the columns collective, size_bytes, time_us, inplace are missing");
  CHECK(first_error(csv_of(heading)) == "t.csv:1:1: no row was measured");
  CHECK(first_error(csv_of(heading + "all_\xff,8,1,0,0,0\n")) == "t.csv:2:5: byte 0xFF is not UTF-8");
  CHECK(first_error(csv_of(heading + std::string("all\0x,8,1,0,0,0\n", 17))) ==
        "t.csv:2:4: a zero byte in a text file");
  CHECK(first_error(csv_of(heading + std::string(longest_line + 1, 'x'))).find("a line of more than 1048576 bytes") !=
        std::string::npos);
}

TEST_CASE("what is no text is refused before its end, for it may have none") {
  for (const std::string& text :
       {std::string(1, '\0'), std::string("x"), std::string("\xff\n"), std::string("\0\n", 2)})
    for (const bool table : {false, true}) {
      INFO("first byte " << static_cast<int>(text[0]) << " of " << text.size() << (table ? ", a table" : ", a log"));
      Endless endless(text);
      std::istream in(&endless);
      CHECK_FALSE((table ? read_table_csv(in, "t.csv", std::nullopt) : read_nccl_tests_text(in, "t.log")).ok());
      CHECK(endless.taken < Endless::much);
    }
  std::string wrong_rows = heading;
  for (int i = 0; i < 20'000; ++i) wrong_rows += "all_reduce,8,x,0,0,0\n";
  const auto read = csv_of(wrong_rows);
  REQUIRE_FALSE(read.ok());
  CHECK(read.errors().back().message == "more than 10000 more errors");
}

TEST_CASE("a table that ends within a row keeps the rows before it and warns") {
  const auto read = csv_of(heading + "all_reduce,8,1.5,0,0,0\nall_reduce,16,1.");
  REQUIRE(read.ok());
  CHECK(read->tables[0].points.size() == 1);
  REQUIRE(read->warnings.size() == 1);
  CHECK(to_text(read->warnings[0].where) == "t.csv:3:1");
}

TEST_CASE("a sidecar's spread reaches its rows") {
  const auto facts = parse_measured_facts(
      "id: a\ncollective: all_reduce\nnodes: 1\nnranks: 2\nsystem: s\nnote: ''\nodd_key: 1\ncomplete: false\nspread:\n"
      "  - {size_bytes: 8, inplace: 0, repetitions: 3, min_us: 1.0, median_us: 2.0, p95_us: 3.0, max_us: 4.0}\n",
      "t.yaml");
  REQUIRE(facts.ok());
  const auto read = csv_of(heading + "all_reduce,8,1.5,0,0,0\nall_reduce,8,1.5,0,0,1\n", *facts);
  REQUIRE(read.ok());
  const auto& points = read->tables[0].points;
  REQUIRE(points[0].spread);
  CHECK(points[0].spread->median.count() == Approx(2e-6));
  CHECK_FALSE(points[1].spread);
  REQUIRE(read->warnings.size() == 1);
  CHECK(read->warnings[0].message.find("complete: false") != std::string::npos);
}

TEST_CASE("a sidecar's mistakes are errors at their places, all at once") {
  const auto facts =
      parse_measured_facts("id: a\ncollective: [x]\nnodes: many\nhealthy: perhaps\nnranks: 0\n", "t.yaml");
  REQUIRE_FALSE(facts.ok());
  REQUIRE(facts.errors().size() == 4);
  CHECK(to_text(facts.errors()[0].where) == "t.yaml:2:13");
  CHECK(to_text(facts.errors()[1].where) == "t.yaml:3:8");
  CHECK(to_text(facts.errors()[2].where) == "t.yaml:4:10");
  CHECK(to_text(facts.errors()[3].where) == "t.yaml:5:9");
  CHECK_FALSE(parse_measured_facts("collective: all_reduce\n", "t.yaml").ok());
}

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
  CHECK(first_error(log_of("caf\xe9\n")) == "t.log:1:4: byte 0xE9 is not UTF-8");
  const auto nothing = log_of("no row here\n");
  REQUIRE(nothing.ok());
  CHECK(nothing->tables.empty());
}

TEST_CASE("rows with wrong results are left out with a warning") {
  const auto read = log_of(devices + new_heading + "8 2 float sum -1 9.50 0 0 3 9.25 0 0 0\n" + ending);
  REQUIRE(read.ok());
  CHECK(read->tables[0].points.size() == 1);
  REQUIRE(read->warnings.size() == 1);
  CHECK(read->warnings[0].message == "3 results were wrong: this row is left out");
}

TEST_CASE("the JSON of nccl-tests gives rows, ranks of all processes and the collective") {
  const auto read = json_of(json_log(json_row, R"({"rank":0,"hostname":"n1"},{"rank":4,"hostname":"n2"})"));
  REQUIRE(read.ok());
  CHECK(read->warnings.empty());
  const MeasuredTable& table = read->tables.at(0);
  CHECK(table.facts.collective == "all_gather");
  CHECK(table.facts.nccl_version == "2.27.3");
  CHECK(table.facts.ranks == 8);  // two processes of four GPUs, each named by its first
  CHECK(table.facts.nodes == 2);
  REQUIRE(table.points.size() == 2);
  CHECK(table.points[0].time.count() == Approx(10.5e-6));
  CHECK(table.points[1].in_place);
}

TEST_CASE("JSON that lost a device is not believed, whichever it was") {
  std::vector<std::string> device{R"({"rank":0,"hostname":"n1"})", R"({"rank":4,"hostname":"n2"})",
                                  R"({"rank":8,"hostname":"n3"})", R"({"rank":12,"hostname":"n4"})"};
  const auto doubt = [&](std::size_t lost) {
    std::string list, row = json_row;
    for (std::size_t i = 0; i < device.size(); ++i)
      if (i != lost) list += (list.empty() ? "" : ",") + device[i];
    // The bandwidths of 16 ranks: 15/16.
    const std::string rates = R"("alg_bw":0.1,"bus_bw":0.1)";
    for (std::size_t at = 0; (at = row.find(rates)) != std::string::npos;)
      row.replace(at, rates.size(), R"("alg_bw":0.100000,"bus_bw":0.093750)");
    return json_of(json_log(row, list)).value().tables.at(0).facts.doubt;
  };
  CHECK(doubt(4).empty());
  CHECK(doubt(0) == "it lists 12 ranks, but rank 12 is one of them");
  CHECK(doubt(1) == "it lists 12 ranks, but rank 12 is one of them");
  CHECK(doubt(3) == "it lists 12 ranks, but its bus bandwidths are those of 16");
}

TEST_CASE("JSON whose bandwidths are of more ranks than it lists is not believed") {
  const std::string two = R"({"rank":0,"hostname":"n1"},{"rank":4,"hostname":"n2"})";
  const auto doubt = [&](const std::string& bus_bw) {
    std::string row = json_row;
    const std::string rates = R"("alg_bw":0.1,"bus_bw":0.1)";
    for (std::size_t at = 0; (at = row.find(rates)) != std::string::npos;)
      row.replace(at, rates.size(), R"("alg_bw":0.100000,"bus_bw":)" + bus_bw);
    return json_of(json_log(row, two)).value().tables.at(0).facts.doubt;
  };
  CHECK(doubt("0.100000").empty());                        // no (n-1)/n of any n
  CHECK(doubt("0.087500").empty());                        // 7/8
  CHECK(doubt("0.093750").find("it lists 8 ranks") == 0);  // 15/16
}

TEST_CASE("broken JSON says where; a run that died keeps its rows") {
  const std::string whole = json_log(json_row + ",\n" + json_row);
  const auto cut = json_of(whole.substr(0, whole.size() - 40));
  REQUIRE(cut.ok());
  CHECK(cut->tables[0].points.size() == 2);
  CHECK_FALSE(cut->tables[0].facts.complete);
  REQUIRE(cut->warnings.size() == 1);
  CHECK(cut->warnings[0].where.line == 3);
  // What others wrote behind it as the job died.
  const auto died = json_of(whole.substr(0, whole.size() - 40) + "\nsrun: error: node1: task 3: Killed\n");
  REQUIRE(died.ok());
  CHECK(died->tables[0].points.size() == 2);
  CHECK_FALSE(died->tables[0].facts.complete);
  REQUIRE(died->warnings.size() == 1);
  CHECK(died->warnings[0].message.find("the test did not finish") != std::string::npos);
  // Results that go on behind a fault are no end.
  CHECK(first_error(json_of(json_log(json_row + ",\n{,\n" + json_row + ",\n" + json_row))).find("this is not JSON") !=
        std::string::npos);
  CHECK(first_error(json_of("")) == "t.json:1:1: the file is empty");
  CHECK(first_error(json_of("{\"results\": [}")).find("t.json:1:14: this is not JSON") == 0);
  CHECK(first_error(json_of("{\"a\": 1}")) == "t.json:1:1: there is no list 'results' in this JSON");
  CHECK(first_error(json_of(json_log(R"({"size":-8,"out_of_place":{"time":1}})"))).find("the size is '-8'") !=
        std::string::npos);
  CHECK(first_error(json_of(json_log(R"({"size":8,"out_of_place":{"time":"nan"}})"))).find("the time is 'nan'") !=
        std::string::npos);
  CHECK(first_error(json_of("{\"a\":" + std::string(100, '['))).find("too deeply nested") != std::string::npos);
  CHECK(first_error(json_of("{\"a\": \"\xff\"}")).find("this is not JSON") != std::string::npos);
}

TEST_CASE("JSON beyond its limit is refused while it is read") {
  const std::string endless = "{\"a\": [" + std::string(most_json_bytes, ' ') + "]}";
  CHECK(first_error(json_of(endless)).find("more than 64 MiB of JSON") != std::string::npos);
}

TEST_CASE("a log of 100 MB is read in the memory of its rows") {
  const Folder folder;
  folder.write("head", devices + new_heading);
  folder.write("tail", "8 2 float sum -1 9.50 0 0 0 9.25 0 0 0\n" + ending);
  // A hundred megabytes of NCCL's chatter before two rows.
  const auto made = run_shell(
      "yes 'node1:1:2 [0] NCCL INFO Channel 00/02 : 0 1' | head -c 104857600 > middle; "
      "echo >> middle; cat head middle tail > big.log; true",
      folder.path());
  REQUIRE(made.exit == 0);
  const auto read = load_measured((folder.path() / "big.log").string(), {"command line"});
  INFO(to_text(read.errors()));
  REQUIRE(read.ok());
  CHECK(read->tables.at(0).points.size() == 2);
}

TEST_CASE("formats are told by content, not by name") {
  CHECK(measured_format("collective,size_bytes,time_us,inplace\n") == MeasuredFormat::csv);
  CHECK(measured_format("\n {\"version\": 2") == MeasuredFormat::json);
  CHECK(measured_format("# nThread 1 nGpus 8\n") == MeasuredFormat::text);
  CHECK_FALSE(measured_format("id,collective,system\n"));
  CHECK_FALSE(measured_format("  \n"));
}

TEST_CASE("a folder gives all its tables; what is in it and no measurement is named") {
  const Folder folder;
  folder.write("a.csv", heading + "all_reduce,8,1.5,0,0,0\n");
  folder.write("a.yaml", "id: table-a\ncollective: all_reduce\nsystem: s\nnodes: 1\nnranks: 2\n");
  folder.write("all_gather.txt", "8 2 float none -1 9.50 0 0 0 9.25 0 0 0\n" + ending);
  folder.write("INDEX.csv", "id,collective\n");
  folder.write("shopping.txt", "milk\n");
  const auto read = load_measured(folder.path().string(), {"command line"});
  REQUIRE(read.ok());
  REQUIRE(read->tables.size() == 2);
  CHECK(read->tables[0].facts.id == "table-a");
  CHECK(read->tables[1].facts.id == "all_gather");
  CHECK(read->tables[1].facts.collective == "all_gather");
  REQUIRE(read->warnings.size() == 1);
  CHECK(read->warnings[0].where.file.find("shopping.txt") != std::string::npos);
}

TEST_CASE("a sidecar that says otherwise than its table is not believed") {
  const auto doubt = [](const std::string& rows, const std::string& facts) {
    const auto sidecar = parse_measured_facts("id: a\nsystem: s\nnodes: 1\n" + facts, "t.yaml");
    REQUIRE(sidecar.ok());
    return csv_of(heading + rows, *sidecar).value().tables.at(0).facts.contradiction;
  };
  // busbw / algbw of an all_reduce is 2 (n-1)/n: 1.75 of 8 ranks.
  const std::string row = "all_reduce,1048576,10.5,100.00,175.00,0\n";
  const std::string of_8 = "collective: all_reduce\nnranks: 8\n";
  CHECK(doubt(row, of_8).empty());
  CHECK(doubt(row, "collective: all_reduce\nnranks: 4\n") ==
        "its sidecar says 4 ranks, but its bus bandwidths are those of 8");
  CHECK(doubt(row, "collective: broadcast\nnranks: 8\n") == "its sidecar is of broadcast, its rows are of all_reduce");
  CHECK(doubt(row + "broadcast,8,1.5,0.01,0.01,0\n", "collective: broadcast\nnranks: 8\n").empty());
  const auto spread = [](const std::string& size, const std::string& least, const std::string& most) {
    return "spread: [{size_bytes: " + size + ", inplace: 0, min_us: " + least + ", median_us: " + least +
           ", p95_us: " + most + ", max_us: " + most + "}]\n";
  };
  CHECK(doubt(row, of_8 + spread("1048576", "10.4", "10.6")).empty());
  CHECK(doubt(row, of_8 + spread("1048576", "10.55", "10.6")).empty());  // within rounding
  CHECK(doubt(row, of_8 + spread("1048576", "20", "30")) ==
        "its sidecar has repetitions of 20 us to 30 us at 1 MiB, its row says 10.5 us");
  CHECK(doubt(row, of_8 + spread("4096", "10.4", "10.6")) == "its sidecar has repetitions of none of its sizes");
}

TEST_CASE("a log that is no plain text any more is answered with what it is and how to turn it back") {
  const Folder folder;
  const std::string log = devices + new_heading;
  const auto wide = [&](bool mark, bool big) {
    std::string out = !mark ? "" : big ? "\xFE\xFF" : "\xFF\xFE";
    for (const char c : log) out += big ? std::string(1, '\0') + c : c + std::string(1, '\0');
    return out;
  };
  const auto said = [&](const std::string& content) {
    folder.write("a.log", content);
    const auto read = load_measured((folder.path() / "a.log").string(), {"command line"});
    REQUIRE(read.errors().size() == 1);
    CHECK(read.errors()[0].where.line == 1);
    return read.errors()[0].message + "; " + read.errors()[0].hint;
  };
  for (const bool mark : {true, false})
    for (const bool big : {true, false}) {
      const std::string text = said(wide(mark, big));
      INFO(text);
      CHECK(text.find("UTF-16 text, as '>' of Windows PowerShell writes it") != std::string::npos);
      CHECK(text.find(mark  ? "iconv -f UTF-16 -t UTF-8"
                      : big ? "iconv -f UTF-16BE"
                            : "iconv -f UTF-16LE") != std::string::npos);
    }
  using namespace std::string_literals;
  CHECK(said("\x1F\x8B\x08\x00more"s).find("compressed (gzip); expected text: gzip -dc ") != std::string::npos);
  CHECK(said("\x28\xB5\x2F\xFDmore").find("compressed (zstd)") != std::string::npos);
  CHECK(said("PK\x03\x04more").find("compressed (zip)") != std::string::npos);
  std::istringstream pipe("\x1F\x8B\x08\x00more"s);
  CHECK(load_measured_stream(pipe, "standard input").errors().at(0).hint.find("gzip -dc FILE |") != std::string::npos);
}
