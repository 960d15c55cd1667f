// Sweeps: what --sweep and a scenario's own say, and what is wrong in them, at its place.
#include <catch2/catch.hpp>

#include "collcast/scenario/scenario.hpp"

using namespace collcast;
using Values = std::vector<std::string>;

namespace {

Values values(const std::string& text) {
  Values out;
  for (const SweepValue& value : parse_sweep_values(text).value()) {
    CHECK(value.label == value.yaml);
    out.push_back(value.yaml);
  }
  return out;
}

std::string wrong_values(const std::string& text) {
  const auto read = parse_sweep_values(text);
  REQUIRE_FALSE(read.ok());
  return read.errors().front().message;
}

Result<Scenario> with_sweep(const std::string& sweep, const ScenarioOptions& options = {}) {
  return parse_scenario("schema: collcast.scenario.v1\nname: s\ntopology: none\ntasks: {list: []}\n" + sweep, "s.yaml",
                        options);
}

}  // namespace

TEST_CASE("a sweep's values: lists, ranges that multiply or add up to their end, and one value") {
  CHECK(values("1,2,8") == Values{"1", "2", "8"});
  CHECK(values("100Gb/s, 400Gb/s") == Values{"100Gb/s", "400Gb/s"});
  CHECK(values("1:64:x4") == Values{"1", "4", "16", "64"});
  CHECK(values("1:65:x4") == Values{"1", "4", "16", "64"});
  CHECK(values("3:3:x2") == Values{"3"});
  CHECK(values("0:10:+5") == Values{"0", "5", "10"});
  CHECK(values("8") == Values{"8"});
  CHECK(values("zb-h1,dualpipe") == Values{"zb-h1", "dualpipe"});
  // Commas inside lists, maps and quotes are of one value.
  CHECK(values("[1, 2],[3, 4]") == Values{"[1, 2]", "[3, 4]"});
  CHECK(values("{a: 1, b: 2},x") == Values{"{a: 1, b: 2}", "x"});
  CHECK(values("\"a,b\",'c,d'") == Values{"\"a,b\"", "'c,d'"});
  CHECK(values(" 4 , 8 ") == Values{"4", "8"});
  // Elsewhere they are letters.
  CHECK(values("a],b,it's,c") == Values{"a]", "b", "it's", "c"});
  // A range at the end of what a number holds ends there.
  CHECK(values("4503599627370496:9007199254740992:x2").size() == 2);
}

TEST_CASE("ranges that are none, or never end") {
  CHECK(wrong_values("8:1:x2") == "'8:1:x2' ends before it begins");
  CHECK(wrong_values("1:8:x1") == "'1:8:x1' does not go on");
  CHECK(wrong_values("0:8:x2") == "'0:8:x2' does not go on");
  CHECK(wrong_values("1:8:+0") == "'1:8:+0' does not go on");
  CHECK(wrong_values("1:8:2") == "'1:8:2' is no range of values");
  CHECK(wrong_values("1:8") == "'1:8' is no range of values");
  CHECK(wrong_values("1:8:x") == "'1:8:x' is no range of values");
  CHECK(wrong_values("1:2:3:x2") == "'1:2:3:x2' is no range of values");
  CHECK(wrong_values("1:99999999999999999999:x2") == "'1:99999999999999999999:x2' is no range of values");
  CHECK(wrong_values("1:2000:+1") == "'1:2000:+1' has too many values");
  for (const std::string text : {"100Gb/s:400Gb/s:x2", "0.5:2:x2", "1KiB:1MiB:+4096", "1:8:x1.5"}) {
    INFO(text);
    const auto range = parse_sweep_values(text, {});
    REQUIRE_FALSE(range.ok());
    CHECK(range.errors().at(0).message == "'" + text + "' is no range of values");
    CHECK(range.errors().at(0).hint.find("ranges are of whole numbers alone: list other values, such as ") == 0);
  }
  CHECK(parse_sweep_values("100Gb/s:400Gb/s:x2", {}).errors().at(0).hint.ends_with("100Gb/s,400Gb/s"));
  CHECK(values("a:b:x2") == Values{"a:b:x2"});
  CHECK(wrong_values("1,,2") == "'1,,2' has an empty value");
  CHECK(wrong_values("") == "'' has an empty value");
}

TEST_CASE("paths that meet, and values that are there twice") {
  CHECK(paths_meet("layout", "layout"));
  CHECK(paths_meet("layout", "layout.tp"));
  CHECK(paths_meet("layout.tp", "layout"));
  CHECK_FALSE(paths_meet("layout.tp", "layout.tpp"));
  CHECK_FALSE(paths_meet("layout.tp", "layout.pp"));
  const auto wrong_of = [](const std::vector<std::string>& texts) {
    std::vector<SweepAxis> axes;
    for (const std::string& text : texts) axes.push_back(parse_sweep(text).value());
    return to_text(check_sweep(axes));
  };
  CHECK(wrong_of({"layout.tp=1,2", "layout.pp=1,2"}).empty());
  CHECK(wrong_of({"a=1,2,1"}).find("--sweep a=1,2,1:1:15: error: value '1' is there twice") == 0);
  CHECK(wrong_of({"layout={tp: 1}", "layout.tp=2"}).find("'layout.tp' is swept, and 'layout', too") !=
        std::string::npos);
}

TEST_CASE("a value in quotes is called by its text, and set as it is") {
  const auto scenario = parse_scenario(
      "schema: collcast.scenario.v1\nname: s\ntopology: ring\n"
      "tasks: {list: [{name: a, stream: c, duration: 1ms, category: compute}]}\n"
      "sweep: {title: [\"a\\\"b\", \"x\\\\y\", \"new\\nline\"]}\n",
      "s.yaml", {{{COLLCAST_SOURCE_DIR "/topologies"}, {}}, {}, {}, {}});
  REQUIRE(scenario.ok());
  const std::vector<SweepValue>& titles = scenario->sweep.at(0).values;
  CHECK(titles.at(0).label == "a\"b");
  CHECK(titles.at(0).yaml == "\"a\\\"b\"");
  CHECK(titles.at(1).yaml == "\"x\\\\y\"");
  CHECK(titles.at(2).yaml == "\"new\\x0Aline\"");
  CHECK(titles.at(2).label.find('\n') == std::string::npos);
}

TEST_CASE("--sweep's places are in what was typed") {
  const auto axis = parse_sweep("layout.tp=1:8:x2");
  REQUIRE(axis.ok());
  CHECK(axis->path == "layout.tp");
  CHECK(axis->values.size() == 4);
  CHECK(to_text(axis->where) == "--sweep layout.tp=1:8:x2:1:9");
  CHECK(to_text(axis->values.at(3).where) == "--sweep layout.tp=1:8:x2:1:19");
  CHECK(to_text(parse_sweep("a=1, 22,3")->values.at(1).where) == "--sweep a=1, 22,3:1:14");
  CHECK(to_text(parse_sweep("layout.tp").errors()).find("--sweep layout.tp:1:18: error: 'layout.tp' has no '='") == 0);
  CHECK(to_text(parse_sweep("=1").errors()).find("--sweep =1:1:9: error: '=1' names no path") == 0);
  CHECK(to_text(parse_sweep("a=8:1:x2").errors()).find("--sweep a=8:1:x2:1:11: error: '8:1:x2' ends before") == 0);
}

TEST_CASE("a scenario's sweep is read with its errors, all at once") {
  const auto text = [](const std::string& sweep) { return to_text(with_sweep(sweep).errors()); };
  const std::string all = text("sweep: {layout.tp: [], layout.pp: 4:1:x2, layout.dp: {a: 1}}\n");
  CHECK(all.find("s.yaml:5:20: error: sweep.layout.tp has no values") != std::string::npos);
  CHECK(all.find("s.yaml:5:35: error: '4:1:x2' ends before it begins") != std::string::npos);
  CHECK(all.find("error: sweep.layout.dp") != std::string::npos);
  CHECK(text("sweep: {layout.tp: [1, [2, 3]]}\n").find("s.yaml:5:24: error: sweep.layout.tp") != std::string::npos);
  CHECK(text("sweep: {}\n").find("s.yaml:5:8: error: sweep") != std::string::npos);
  CHECK(text("sweep: 3\n").find("s.yaml:5:8: error: sweep") != std::string::npos);
  CHECK(text("sweep: {a: 1:400:+1, b: 1:3:+1}\n").find("error: the sweep has more than 1000 points") !=
        std::string::npos);
  ScenarioOptions sets;
  sets.overrides = {{"sweep.layout.tp", "4", {"--set sweep.layout.tp=4", 1, 7}, {}}};
  CHECK(to_text(with_sweep("", sets).errors()).find("--set sweep.layout.tp=4:1:7: error: 'sweep' cannot be set") !=
        std::string::npos);
}

TEST_CASE("a swept value that can never be is told once, beside the errors of the rest, and one that may be is not") {
  ScenarioOptions own;
  own.checks_values_of_sweep = true;
  const auto read = [](const std::string& sweep, const ScenarioOptions& options) {
    return to_text(parse_scenario("schema: collcast.scenario.v1\nname: s\ntopology: none\n"
                                  "model: {name: m, layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocab: 32000}\n"
                                  "batch: {sequence: 512, micro_batch: 2, global_batch: 8}\nlayout: {dp: much}\n" +
                                      sweep,
                                  "s.yaml", options)
                       .errors());
  };
  const auto scenario = [&](const std::string& sweep) { return read(sweep, own); };
  const auto times = [](const std::string& text, const std::string& what) {
    int out = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++out;
    return out;
  };
  const std::string without = scenario("");
  REQUIRE(times(without, "error: ") == 2);  // dp, and the machine
  // Each alone is told at its place, and together they are told each; others are none.
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"layout.tp: [1, x, -1, 1.5]", "layout.tp is "},          {"training.zero: [0, 4]", "training.zero is '4'"},
      {"training.precision: [fp61]", "training.precision is "}, {"training.overlap_dp: [1]", "training.overlap_dp is "},
      {"training.bucket: [40]", "training.bucket is '40'"},     {"layout.tq: [1, 2]", "unknown path 'layout.tq'"},
      {"layout.pp: [[1, 2]]", "sweep.layout.pp is "},           {"model.heads: ['[1']", "model.heads"}};
  const std::vector<int> told{3, 1, 1, 1, 1, 1, 2, 1};
  std::string all;
  int sum = 2;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const std::string alone = scenario("sweep: {" + wrong[i].first + "}\n");
    INFO(alone);
    CHECK(times(alone, "error: ") == 2 + told[i]);
    CHECK(times(alone, "s.yaml:7:") == told[i]);
    CHECK_THAT(alone, Catch::Contains(wrong[i].second));
    all += (i == 0 ? "" : ", ") + wrong[i].first;
    sum += told[i];
  }
  CHECK(times(scenario("sweep: {" + all + "}\n"), "error: ") == sum);
  // Values that do not fit the rest are for the points to tell: stages, and what needs another setting.
  CHECK(scenario("sweep: {layout.pp: [3, 5], layout.vpp: [7], layout.tp: [64]}\n") == without);
  // Those of --sweep are in the place of the file's.
  ScenarioOptions other;
  other.sweep = {parse_sweep("layout.pp=1,q").value()};
  const std::string typed = read("sweep: {layout.tp: [x]}\n", other);
  CHECK_THAT(typed, Catch::Contains("--sweep layout.pp=1,q:1:21: error: layout.pp is 'q'"));
  CHECK(times(typed, "error: ") == 3);
  CHECK(read("sweep: {layout.tp: [x]}\n", {}) == without);
}
