// Measured tables, JSON and folders as they come, and every way that a file can be broken; logs: nccl_log_test.cpp.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/process.hpp"
#include "collcast/validation/measured_table.hpp"
#include "readings.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

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

TEST_CASE("a table whose cells are quoted, or have blanks around them, is the same table") {
  const auto points_of = [](const std::string& text) {
    const auto read = csv_of(text);
    REQUIRE(read.ok());
    CHECK(read->warnings.empty());
    std::string out;
    for (const MeasuredTable& table : read->tables)
      for (const MeasuredPoint& p : table.points)
        out += table.facts.collective + " " + std::to_string(p.size.value()) + " " + std::to_string(p.time.count()) +
               (p.in_place ? " in\n" : " out\n");
    return out;
  };
  const std::string plain = heading + "all_reduce,1024,13,0.08,0.08,0\nall_gather,4096,40,0.1,0.1,1\n";
  // As R's write.csv and PowerShell's Export-Csv write it, and as people do.
  std::string quoted = "\"", spaced;
  for (const char c : plain) {
    quoted += c == ',' ? "\",\"" : c == '\n' ? "\"\n\"" : std::string(1, c);
    spaced += c == ',' ? " ,\t" : std::string(1, c);
  }
  quoted.pop_back();
  CHECK(points_of(plain) == "all_reduce 1024 0.000013 out\nall_gather 4096 0.000040 in\n");
  CHECK(points_of(quoted) == points_of(plain));
  CHECK(points_of(spaced) == points_of(plain));
  CHECK(first_error(csv_of(heading + "all_reduce,\"8,1.5,0,0,0\nall_reduce,8,1.5,0,0,0\n")) ==
        "t.csv:2:12: a quoted cell that does not end before the next comma");
  CHECK(first_error(csv_of("collective,\"size_bytes\nx\",time_us,inplace\n")) ==
        "t.csv:1:12: a quoted cell that does not end before the next comma");
}

TEST_CASE("a table that breaks off anywhere keeps the rows before") {
  for (const std::string quote : {"", "\""}) {
    const std::string last = fmt::format("{0}all_reduce{0},{0}2048{0},{0}20{0},{0}{0},{0}{0},{0}1{0}", quote);
    const std::string before = heading + "all_reduce,1024,12.5,,,0\n";
    for (std::size_t kept = 1; kept < last.size(); ++kept) {
      INFO(last.substr(0, kept));
      const auto read = csv_of(before + last.substr(0, kept));
      REQUIRE(read.ok());
      CHECK(read->tables.at(0).points.size() == 1);
      CHECK_FALSE(read->tables[0].facts.complete);
      REQUIRE(read->warnings.size() == 1);
      CHECK(read->warnings[0].message == "the file ends within this row");
    }
    CHECK(csv_of(before + last)->tables.at(0).points.size() == 2);
  }
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

TEST_CASE("a bandwidth of a table is a number from 0, or nothing") {
  const auto read = csv_of(heading + "all_reduce,8,1.5,abc,-3,0\nall_reduce,8,1.5,,,0\n");
  REQUIRE(read.errors().size() == 2);
  CHECK(to_text(read.errors()[0].where) == "t.csv:2:18");
  CHECK(read.errors()[0].message == "algbw_gbps is 'abc'");
  CHECK(read.errors()[0].hint == "expected GB/s from 0, or nothing");
  CHECK(to_text(read.errors()[1].where) == "t.csv:2:22");
  CHECK(read.errors()[1].message == "busbw_gbps is '-3'");
  CHECK(csv_of(heading + "all_reduce,8,1.5,,,0\nall_reduce,8,1.5,0,1e-2,0\n").ok());
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

TEST_CASE("rows that are left out are kept in bounded number, and all counted") {
  std::string rows = heading + "all_reduce,8,2,0,0,0\n", log = devices + new_heading + "8 2 float sum -1 9.5 0 0 0\n";
  std::string wrong = log;
  for (int i = 0; i < 5000; ++i) {
    rows += "all_reduce,8,nan,0,0,0\n";
    log += "8 2 float sum -1 nan 0 0 0\n";
    wrong += "8 2 float sum -1 9.5 0 0 3\n";
  }
  const auto table = csv_of(rows), text = log_of(log + ending), bad = log_of(wrong + ending);
  REQUIRE(table.ok());
  CHECK(table->untimed.size() == most_left_out);
  CHECK(table->more_untimed.at("t.csv") == 5000 - most_left_out);
  REQUIRE(text.ok());
  CHECK(text->untimed.size() == most_left_out);
  CHECK(text->more_untimed.at("t.log") == 5000 - most_left_out);
  REQUIRE(bad.ok());
  CHECK(bad->warnings.size() == 11);  // ten with their places, and a number
  CHECK(bad->wrong.size() == 11);
  CHECK(bad->warnings.back().message == "4990 more rows with wrong results are left out");
}

TEST_CASE("a time below a nanosecond is none") {
  const auto read = csv_of(heading + "all_reduce,8,1e-300,0,0,0\nall_reduce,8,0.05,0,0,0\n");
  REQUIRE(read.ok());
  CHECK(read->untimed.size() == 1);
  CHECK(read->tables.at(0).points.size() == 1);
}

TEST_CASE("a column of a table is there once") {
  CHECK(first_error(csv_of("collective,size_bytes,time_us,time_us,inplace\nall_reduce,8,1,2,0\n")) ==
        "t.csv:1:31: the column time_us is there twice");
  CHECK(csv_of("collective,size_bytes,time_us,inplace,a,a\nall_reduce,8,1,0,x,x\n").ok());  // nobody reads those
}

TEST_CASE("a test that says that its results were wrong is believed") {
  std::string failed = ending;
  failed.replace(failed.find("0 OK"), 4, "5 FAILED");
  const auto log = log_of(devices + new_heading + "8 2 float sum -1 9.5 0 0 0\n" + failed);
  REQUIRE(log.ok());
  REQUIRE(log->warnings.size() == 1);
  CHECK(to_text(log->warnings[0].where) == "t.log:10:1");
  std::string whole = json_log(json_row);
  whole.insert(whole.size() - 1, R"(,"out_of_bounds":{"count":5,"okay":"false"})");
  const auto json = json_of(whole);
  REQUIRE(json.ok());
  REQUIRE(json->warnings.size() == 1);
  CHECK(json->warnings[0].message == "the test says that its results were wrong");
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
  CHECK(read->tables[0].spread_of(points[0])->median.count() == Approx(2e-6));
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
  const auto twice = parse_measured_facts("id: a\ncollective: all_reduce\nnodes: 1\nnranks: 2\nnodes: 4\n", "t.yaml");
  REQUIRE(twice.errors().size() == 1);
  CHECK(to_text(twice.errors()[0].where) == "t.yaml:5:1");
  CHECK(twice.errors()[0].message == "key 'nodes' is given twice");
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

TEST_CASE("nothing stands in JSON twice, behind its end or in the place of a number unseen") {
  const std::string whole = json_log(json_row);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string out = whole;
    out.replace(out.find(from), from.size(), to);
    return json_of(out);
  };
  CHECK(first_error(with("\"size\":1024", "\"size\":1024,\"size\":8")).find("the size of a result is there twice") !=
        std::string::npos);
  CHECK(
      first_error(with("\"time\":10.500000", "\"time\":10.5,\"time\":1")).find("the time of a result is there twice") !=
      std::string::npos);
  CHECK(first_error(with("\"time\":10.500000", "\"time\":[1]")).find("the time is a list") != std::string::npos);
  CHECK(first_error(with("\"size\":1024", "\"size\":{}")).find("the size is a map") != std::string::npos);
  std::string again = whole;
  again.insert(again.size() - 1, ",\"results\":[]");
  CHECK(first_error(json_of(again)).find("'results' is there twice") != std::string::npos);
  CHECK(first_error(json_of(whole + "\n" + whole)).find("t.json:3:1: this is not JSON") == 0);
  // A zero byte is no end.
  for (const std::string& behind : {std::string("\0more", 5), std::string("\n\0", 2), std::string("srun: Killed\n")}) {
    const auto read = json_of(whole + behind);
    REQUIRE(read.ok());
    REQUIRE(read->warnings.size() == 1);
    CHECK(read->warnings[0].message == "what stands behind the JSON is not read");
    CHECK(read->tables.at(0).facts.complete);
  }
  const auto twice = json_of(json_log(json_row, R"({"rank":0,"hostname":"n1"},{"rank":0,"hostname":"n2"})"));
  CHECK(twice.value().tables.at(0).facts.doubt == "it lists rank 0 twice, again as config.devices[1] (t.json:1:158)");
}

TEST_CASE("nothing of a JSON file vanishes because it stands in another's place") {
  const auto said = [](const std::string& text) {
    const auto read = json_of(text);
    std::vector<std::string> out;
    for (const Diagnostic& one : read.errors()) out.push_back(one.message);
    return out;
  };
  using Messages = std::vector<std::string>;
  const auto with_env = [&](const std::string& env) {
    std::string log = json_log(json_row);
    log.insert(1, "\"env\":" + env + ",");
    return log;
  };
  CHECK(said(with_env("{\"NCCL_ALGO\":\"Ring\"}")) == Messages{"env is a map"});
  CHECK(said(with_env("\"NCCL_ALGO=Ring\"")) == Messages{"env is a text ('NCCL_ALGO=Ring')"});
  CHECK(said(with_env("\"\"")) == Messages{"env is a text"});
  CHECK(said(with_env("[\"NCCL_ALGO=Ring\",5,[],null]")) ==
        Messages{"env[1] is a number ('5')", "env[2] is a list", "env[3] is null"});
  CHECK(json_of(with_env("null")).ok());
  CHECK(said(json_log(json_row, R"({"rank":0,"hostname":"n1"},5)")) == Messages{"config.devices[1] is a number ('5')"});
  CHECK(said("{\"config\":[],\"results\":[" + json_row + "]}") == Messages{"config is a list"});
  CHECK(said("{\"config\":{\"devices\":{}},\"results\":[" + json_row + "]}") == Messages{"config.devices is a map"});
  CHECK(said("{\"results\":{}}") == Messages{"results is a map"});
  const std::string half = R"({"size":8,"out_of_place":)";
  CHECK(said(json_log(json_row + "," + half + R"(5,"in_place":{"time":1}})")) ==
        Messages{"results[1].out_of_place is a number ('5')"});
  CHECK(said(json_log(half + R"(true,"in_place":[1]})")) ==
        Messages{"results[0].out_of_place is a truth", "results[0].in_place is a list"});
  const auto read = json_of(with_env("{}"));
  REQUIRE_FALSE(read.ok());
  CHECK(to_text(read.errors().front().where) == "t.json:1:8");
  CHECK(read.errors().front().hint == "expected a list of variables: [\"NCCL_ALGO=Ring\"]");
}

TEST_CASE("a result of JSON without a time is counted with its place") {
  const auto untimed = [](const std::string& row) {
    const auto read = json_of(json_log(json_row + ",\n" + row));
    INFO(to_text(read.errors()));
    REQUIRE(read.ok());
    CHECK(read->tables.at(0).points.size() == 2 + (row.find("\"time\"") != std::string::npos ? 1 : 0));
    std::vector<std::string> out;
    for (const Diagnostic& one : read->untimed) out.push_back(std::to_string(one.where.line) + ": " + one.message);
    CHECK(read->tables.at(0).facts.complete == out.empty());
    return out;
  };
  using Messages = std::vector<std::string>;
  CHECK(untimed(R"({"size":8})") == Messages{"3: results[1] has no time: this row is left out"});
  CHECK(untimed(R"({"size":8,"out_of_place":null})") == Messages{"3: results[1] has no time: this row is left out"});
  CHECK(untimed(R"({"size":8,"out_of_place":{"alg_bw":1},"in_place":{"time":1}})") ==
        Messages{"3: results[1].out_of_place has no time: this row is left out"});
  // A test without an in-place half, and a row of no bytes.
  CHECK(untimed(R"({"size":8,"out_of_place":{"time":1}})").empty());
  CHECK(untimed(R"({"size":0})").empty());
}

TEST_CASE("all errors of a JSON file are said at once") {
  const auto row = [](const std::string& size, const std::string& time) {
    return R"({"size":)" + size + R"(,"out_of_place":{"time":)" + time + "}}";
  };
  const auto read = json_of(json_log(row("8", "1") + ",\n" + row("-64", "1") + ",\n\"lost\",\n" + row("64", "-3") +
                                     ",\n[1],\n" + row("{}", "1") + ",\n7,\n" + R"({"out_of_place":{"time":1}})"));
  REQUIRE_FALSE(read.ok());
  std::vector<std::string> said;
  for (const Diagnostic& one : read.errors()) said.push_back(std::to_string(one.where.line) + ": " + one.message);
  CHECK(said == std::vector<std::string>{"3: the size is '-64'", "4: results[2] is 'lost'", "5: the time is '-3'",
                                         "6: results[4] is a list", "7: the size is a map", "8: results[6] is a number",
                                         "9: a result without size"});
}

TEST_CASE("variables of a JSON file are followed as a sidecar's are") {
  std::string log = json_log(json_row);
  log.insert(1, R"("env":["PATH=/bin","NCCL_ALGO=Ring","NCCL_ALGO=Tree","FI_PROVIDER=efa","NCCL_VERSION=2.27","X"],)");
  const auto read = json_of(log);
  REQUIRE(read.ok());
  CHECK(read->warnings.empty());
  CHECK(read->tables.at(0).facts.environment ==
        std::vector<std::pair<std::string, std::string>>{{"NCCL_ALGO", "Ring"}, {"FI_PROVIDER", "efa"}});
}

TEST_CASE("what a reader does not know is passed over with one warning that names and counts it") {
  std::string log = json_log(R"({"size":8,"colour":1,"out_of_place":{"time":1,"colour":2,"tiem":3}})");
  log.insert(1, R"("enviroment":{"NCCL_ALGO":"Ring"},)");
  const auto json = json_of(log);
  REQUIRE(json.ok());
  REQUIRE(json->warnings.size() == 1);
  CHECK(to_text(json->warnings[0].where) == "t.json");
  CHECK(json->warnings[0].message == "3 keys are passed over: 'enviroment', 'colour' and 'tiem'");

  const auto csv = csv_of("collective,size_bytes,a,time_us,b,inplace,c,d,e,f\nall_reduce,8,1,1.5,1,0,1,1,1,1\n");
  REQUIRE(csv.ok());
  REQUIRE(csv->warnings.size() == 1);
  CHECK(to_text(csv->warnings[0].where) == "t.csv:1:1");
  CHECK(csv->warnings[0].message == "6 columns are passed over: 'a', 'b', 'c', 'd' and 2 more");

  // A thousand are kept; of more no number is known.
  const auto of_many = [](int columns) {
    std::string names = "collective,size_bytes,time_us,inplace", cells = "all_reduce,8,1.5,0";
    for (int i = 0; i < columns; ++i) {
      names += ",x" + std::to_string(i);
      cells += ",1";
    }
    const auto many = csv_of(names + "\n" + cells + "\n");
    REQUIRE(many.ok());
    REQUIRE(many->warnings.size() == 1);
    return many->warnings[0].message;
  };
  CHECK(of_many(1000) == "1000 columns are passed over: 'x0', 'x1', 'x2', 'x3' and 996 more");
  CHECK(of_many(1001) == "more than 1000 columns are passed over: 'x0', 'x1', 'x2', 'x3' and others");

  const Folder folder;
  folder.write("t.csv", heading + "all_reduce,8,1.5,0,0,0\n");
  folder.write("t.yaml", "id: t\ncollective: all_reduce\nnodes: 1\nnranks: 8\nunits: us\ngpus_per_nod: 8\n");
  const auto table = load_measured((folder.path() / "t.csv").string(), {"command line"});
  REQUIRE(table.ok());
  REQUIRE(table->warnings.size() == 1);
  CHECK(table->warnings[0].where.file.ends_with("t.yaml"));
  CHECK(table->warnings[0].message == "one key is passed over: 'gpus_per_nod'");
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
  // Between semicolons or tabs the reader says what it expects.
  CHECK(measured_format("collective;size_bytes;time_us;inplace\n") == MeasuredFormat::csv);
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
