// Several results on one page: the verdict of their gates, what each format holds, and the page's markup.
#include "collcast/report/overview.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "collcast/report/documents.hpp"

using namespace collcast;
using OrderedJson = nlohmann::ordered_json;

namespace {

OrderedJson step(const std::string& name, bool kept) {
  return {
      {"schema", "collcast.step.v1"},
      {"tool", {{"name", "collcast"}, {"version", "0.1.0"}}},
      {"scenario", name},
      {"title", "A step"},
      {"machine", {{"topology", "dgx-a100"}, {"digest", "fnv1a64:1"}}},
      {"inputs", {{"batch", 8}}},
      {"step_s", 10},
      {"mfu", 0.5},
      {"breakdown", {{"compute_s", 9}, {"bubble_s", 1}}},
      {"gates", {{{"figure", "step_s"}, {"bound", "max"}, {"limit", kept ? 12 : 8}, {"value", 10}, {"kept", kept}}}}};
}

Overview overview(const std::vector<OrderedJson>& documents) {
  Overview out;
  for (const OrderedJson& document : documents) {
    const SavedResult saved = read_saved(document.dump(), "f.json").value().front();
    out.items.push_back({NamedResult(saved.name, saved), {}});
  }
  return out;
}

std::string markdown(const Overview& o) {
  std::ostringstream out;
  write_markdown(out, page(o));
  return out.str();
}

}  // namespace

TEST_CASE("the verdict comes first and counts the gates") {
  CHECK(markdown(overview({step("a", true), step("b", true)}))
            .starts_with("## report passed: 2 gates on 2 results, none broken\n"));
  CHECK(markdown(overview({step("a", true), step("b", false)})).starts_with("## report FAILED: 1 of 2 gates broken\n"));
  OrderedJson without = step("a", true);
  without["gates"] = OrderedJson::array();
  CHECK(markdown(overview({without})).starts_with("## report on 1 result: no gates\n"));
}

TEST_CASE("a job that does not fit its GPUs breaks a gate that nobody has to state") {
  OrderedJson large = step("large", true);
  large["memory"] = {{"peak_bytes", 90}, {"capacity_bytes", 80}};
  const Overview o = overview({large});
  CHECK(o.broken() == 1);
  CHECK(markdown(o).find("over_capacity_bytes") != std::string::npos);
  OrderedJson variant = large;
  variant["what_if"] = "half-the-cluster";
  CHECK(overview({variant}).broken() == 0);
  large["memory"]["capacity_bytes"] = 90;
  CHECK(overview({large}).broken() == 0);
}

TEST_CASE("tables that are far slower than their forecast are on the page, in Markdown and HTML") {
  const OrderedJson fault = {{"cause", "gdr"}, {"evidence", "small fine, <large> slow"}, {"look_first", "peermem"}};
  const OrderedJson table = {{"id", "t"},
                             {"topology", "dgx-a100"},
                             {"bands", {{"large", {{"n", 3}, {"mean_ape", 0.5}, {"median_ape", 0.5}}}}},
                             {"faults", {fault, {{"cause", "rails"}, {"evidence", "e"}, {"look_first", "l"}}}}};
  OrderedJson document = {{"schema", "collcast.validate.v1"},
                          {"tool", {{"name", "collcast"}, {"version", "0.1.0"}}},
                          {"tables", {table}},
                          {"summary", OrderedJson::array()},
                          {"unscored", OrderedJson::array()}};
  const Overview o = overview({document});
  CHECK(markdown(o).find("| t | gdr (small fine, ") != std::string::npos);
  CHECK(markdown(o).find("slow), else rails |") != std::string::npos);
  CHECK(html(o).find("gdr (small fine, &lt;large&gt; slow), else rails") != std::string::npos);
  document["tables"][0]["faults"] = OrderedJson::array();
  CHECK(markdown(overview({document})).find("far slower") == std::string::npos);
  document["tables"][0].erase("faults");  // of an older version
  CHECK(markdown(overview({document})).find("far slower") == std::string::npos);
}

TEST_CASE("what a page lists of calibrations and validations does not depend on how machines and tables are called") {
  const OrderedJson parameter = {{"name", "hop"}, {"value", 2}, {"least", 1}, {"most", 6}, {"fitted", true}};
  const OrderedJson range = {{"least_size_bytes", 8},
                             {"most_size_bytes", 1024},
                             {"least_ranks", 2},
                             {"most_ranks", 2},
                             {"collectives", {"reduce"}}};
  for (const std::string name :
       {"a", "range of a", "parameter of a: b", "a: b", "digest of a", "tables of x", "unused x"}) {
    CAPTURE(name);
    const OrderedJson machine = {{"topology", name},          {"digest", "0123"},
                                 {"tables", {"t"}},           {"bands", OrderedJson::object()},
                                 {"parameters", {parameter}}, {"fitted_to", range}};
    const OrderedJson calibration = {{"schema", "collcast.calibrate.v1"},
                                     {"tool", {{"name", "collcast"}, {"version", "0.1.0"}}},
                                     {"library", "nccl"},
                                     {"machines", {machine}},
                                     {"unused", {{{"id", name}, {"why", "broken"}}}},
                                     {"inputs", {{"measured_digest", "4567"}}}};
    const std::string text = markdown(overview({calibration}));
    CHECK(text.find("| " + name + " | nccl | 8 B to 1 KiB, 2 ranks, reduce | t |") != std::string::npos);
    CHECK(text.find("| " + name + " | hop | 2; may be 1 to 6 |") != std::string::npos);
    CHECK(text.find("| " + name + " | broken |") != std::string::npos);
    CHECK(text.find("| collcast 0.1.0 | 0123 | fnv1a64:") != std::string::npos);
    const OrderedJson validation = {{"schema", "collcast.validate.v1"},
                                    {"tool", {{"name", "collcast"}, {"version", "0.1.0"}}},
                                    {"library", "nccl"},
                                    {"summary", OrderedJson::array()},
                                    {"tables", OrderedJson::array()},
                                    {"inputs", {{"machines", {{name, {{"digest", "89ab"}, {"calibrated", false}}}}}}}};
    CHECK(markdown(overview({validation})).find("| collcast 0.1.0 | 89ab | fnv1a64:") != std::string::npos);
  }
}

TEST_CASE("a calibration is on the page with its parameters and their bounds, its range and the error left") {
  const OrderedJson band = {{"n", 3},
                            {"median_ape_before", 0.5},
                            {"median_ape_after", 0.25},
                            {"measured_to_predicted_p10", 0.75},
                            {"measured_to_predicted_p90", nullptr}};
  const OrderedJson hop = {{"name", "hop"}, {"value", 1.6},   {"least", 0.4},
                           {"most", 6},     {"fitted", true}, {"bound", "hop ended at its bound of 1.6 (<why>)"}};
  const OrderedJson host = {{"name", "host"}, {"value", 1}, {"least", 0.25}, {"most", 15}, {"fitted", false}};
  const OrderedJson range = {{"least_size_bytes", 1024},
                             {"most_size_bytes", 1 << 20},
                             {"least_ranks", 8},
                             {"most_ranks", 16},
                             {"collectives", {"all_gather", "all_reduce"}}};
  const OrderedJson machine = {{"topology", "dgx-h100"},    {"digest", "0123456789abcdef"},
                               {"tables", {"a", "b"}},      {"bands", {{"small", band}, {"large", {{"n", 0}}}}},
                               {"parameters", {hop, host}}, {"fitted_to", range}};
  OrderedJson document = {{"schema", "collcast.calibrate.v1"},
                          {"tool", {{"name", "collcast"}, {"version", "0.1.0"}}},
                          {"library", "nccl"},
                          {"machines", {machine}},
                          {"unused", {{{"id", "c"}, {"why", "broken"}}}},
                          {"warnings", {"still far off"}}};
  const std::string text = markdown(overview({document}));
  CHECK(text.find("hop | 1.6; may be 0.4 to 6; hop ended at its bound of 1.6 (") != std::string::npos);
  CHECK(text.find("host | 1; may be 0.25 to 15; as described: no row depends on it |") != std::string::npos);
  CHECK(text.find("| dgx-h100 | nccl | 1 KiB to 1 MiB, 8 to 16 ranks, all_gather, all_reduce | a, b |") !=
        std::string::npos);
  CHECK(text.find(": dgx-h100 below 64 KiB | nccl | 3 | 50% | 25% | 0.75 |") != std::string::npos);
  CHECK(text.find("above 4 MiB") == std::string::npos);
  CHECK(text.find("| c | broken |") != std::string::npos);
  CHECK(text.find("still far off") != std::string::npos);
  CHECK(html(overview({document})).find("(&lt;why&gt;)") != std::string::npos);
  CHECK(text.find("| collcast.calibrate.v1 | collcast 0.1.0 | 0123456789abcdef |") != std::string::npos);
  document["machines"].push_back(machine);
  document["machines"][1]["topology"] = "dgx-a100";
  CHECK(markdown(overview({document})).find("| dgx-h100 0123456789abcdef; dgx-a100 0123456789abcdef |") !=
        std::string::npos);
  document["machines"].erase(1);
  document["machines"][0].erase("parameters");  // of an older version
  document["machines"][0].erase("fitted_to");
  document["machines"][0].erase("digest");
  CHECK(markdown(overview({document})).find("may be") == std::string::npos);
  document["machines"] = 3;
  CHECK_FALSE(read_saved(document.dump(), "c.json").ok());
}

TEST_CASE("broken gates stand above kept ones, with value, limit and margin") {
  const std::string text = markdown(overview({step("a", true), step("b", false)}));
  const std::size_t broken = text.find("| BROKEN | b | step_s | 10 s | max 8 s | -2 s |");
  CHECK(broken < text.find("| kept | a | step_s | 10 s | max 12 s | +2 s |"));
  CHECK(text.find("compute 90%, bubble 10%") != std::string::npos);
}

TEST_CASE("steps, plans and collectives say by which library") {
  OrderedJson nccl = step("a", true), plan{{"schema", "collcast.plan.v1"}, {"scenario", "p"}, {"library", "ideal"}};
  nccl["library"] = "nccl";
  plan["ranked"] = {{{"tp", 1}, {"step_s", 1.0}, {"peak_bytes", 10}, {"mfu", 0.5}}};
  const OrderedJson sweep{
      {"schema", "collcast.collective.v1"},
      {"machine", {{"topology", "m"}}},
      {"rows", {{{"collective", "broadcast"}, {"library", "nccl"}, {"size_bytes", 1024}, {"estimate_s", 1e-3}}}}};
  const std::string text = markdown(overview({nccl, step("tasks", true), plan, sweep}));
  CHECK(text.find("| a | dgx-a100 | nccl | 10 s |") != std::string::npos);
  CHECK(text.find("| tasks | dgx-a100 | - | 10 s |") != std::string::npos);
  CHECK(text.find("| plan of p: best layout | ideal | 1 s |") != std::string::npos);
  CHECK(text.find("| broadcast on m: broadcast 1 KiB | nccl | 1 ms |") != std::string::npos);
}

TEST_CASE("layouts of a plan that were not simulated are marked, and the CSV says of each by which method") {
  OrderedJson plan{{"schema", "collcast.plan.v1"}, {"scenario", "p"}, {"library", "ideal"}};
  plan["ranked"] = {{{"tp", 1}, {"step_s", 1.0}, {"estimate_s", 2.0}, {"simulate_s", 1.0}, {"peak_bytes", 10}},
                    {{"tp", 2}, {"step_s", 3.0}, {"estimate_s", 3.0}, {"simulate_s", nullptr}, {"peak_bytes", 10}}};
  const std::string text = markdown(overview({plan}));
  CHECK(text.find("best layout | ideal | 1 s |") != std::string::npos);
  CHECK(text.find(" | ideal | 3 s * |") != std::string::npos);
  CHECK(text.find("by closed form, not simulated") != std::string::npos);
  const Table table = csv(overview({plan, step("a", true)}));
  const auto method = table.columns.size() - 1;
  CHECK(table.columns[method].title == "method");
  for (const auto& row : table.rows) {
    const bool second = row[2].find("TP 2") != std::string::npos, of_plan = row[1] == "collcast.plan.v1";
    CHECK(row[method] == (!of_plan ? "" : second ? "estimate" : "simulate"));
  }
  plan["ranked"].erase(1);
  CHECK(markdown(overview({plan})).find("not simulated") == std::string::npos);
}

TEST_CASE("a sweep that was stopped is said to be partial") {
  OrderedJson sweep{
      {"schema", "collcast.collective.v1"}, {"machine", {{"topology", "m"}}}, {"rows", OrderedJson::array()}};
  CHECK(markdown(overview({sweep})).find("partial") == std::string::npos);
  sweep["partial"] = false;
  CHECK(markdown(overview({sweep})).find("partial") == std::string::npos);
  sweep["partial"] = true;
  CHECK(markdown(overview({sweep})).find("partial: it was stopped") != std::string::npos);
}

TEST_CASE("the JSON holds the documents as they were, and is read back as their results") {
  const Overview o = overview({step("a", true), step("b", false)});
  const OrderedJson document = OrderedJson::parse(json(o));
  CHECK(document.at("schema") == "collcast.report.v1");
  CHECK(document.at("kept") == false);
  CHECK(document.at("results").at(1) == step("b", false));
  const auto read = read_saved(json(o), "r.json").value();
  REQUIRE(read.size() == 2);
  CHECK(read[1].name == "b");
  CHECK_FALSE(read[1].gates.at(0).kept);
}

TEST_CASE("names as long as they may be are told apart, and stay so when read back") {
  const std::string longest(500, 'x');
  Overview o = overview({step(longest, true), step(longest, true), step(longest, true), step("b", true)});
  tell_apart(o, {std::string("jobs/") + std::string(300, 'f') + ".yaml", "two.json", "two.json", "b.json"});
  const auto read = read_saved(json(o), "r.json").value();
  std::set<std::string> names;
  for (std::size_t i = 0; i < read.size(); ++i) {
    names.insert(NamedResult(read[i].name, read[i]).name);
    CHECK(NamedResult(read[i].name, read[i]).name == o.items[i].result.name);
  }
  CHECK(names.size() == 4);
  CHECK(o.items[3].result.name == "b");
  CHECK(o.items[2].result.name.ends_with(" (2)"));
}

TEST_CASE("JUnit has a suite per result and a failure per broken gate") {
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit(overview({step("a", true), step("<b>", false)})).c_str()));
  CHECK(xml.child("testsuites").attribute("tests").as_int() == 2);
  CHECK(xml.child("testsuites").attribute("failures").as_int() == 1);
  const pugi::xml_node suite = xml.child("testsuites").last_child();
  CHECK(std::string(suite.attribute("name").value()) == "<b>");
  CHECK(std::string(suite.child("testcase").child("failure").attribute("message").value()) ==
        "broken: step_s is 10 s, max 8 s");
}

TEST_CASE("CSV has a line per figure, with its gate") {
  std::ostringstream out;
  write_csv(out, csv(overview({step("a", true)})));
  CHECK(out.str().find("a,collcast.step.v1,,step_s,10.0,max,12.0,true,\n") != std::string::npos);
  CHECK(out.str().find("a,collcast.step.v1,,mfu,0.5,,,,\n") != std::string::npos);
}

TEST_CASE("every result says what wrote it and what it was made from") {
  const std::string text = markdown(overview({step("a", true)}));
  CHECK(text.find("| a | collcast.step.v1 | collcast 0.1.0 | fnv1a64:1 | fnv1a64:") != std::string::npos);
  OrderedJson other = step("a", true);
  other["inputs"]["batch"] = 7;
  CHECK(overview({step("a", true)}).items[0].result.result.digest != overview({other}).items[0].result.result.digest);
}

TEST_CASE("a page escapes names in its text and in its data") {
  if (!html_lacks().empty()) return;  // this build has none; tests/html tests the others in a browser
  OrderedJson bad = step("</script><script>alert(1)</script>", true);
  bad["title"] = "<!-- <b> & \"";
  bad["inputs"]["</script>"] = "</ScRiPt>";
  const std::string text = html(overview({bad}));
  const std::string body = text.substr(0, text.find("<script>"));  // before our own
  CHECK(body.find("alert(1)") != std::string::npos);
  CHECK(body.find("<script>alert") == std::string::npos);
  CHECK(body.find("</ScRiPt>") == std::string::npos);
  CHECK(body.find("<!--") == std::string::npos);
  CHECK(body.find("<b>") == std::string::npos);
  CHECK(text.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("a timeline chart keeps every stream's span, and merges only what is alike and near") {
  Schedule schedule;
  const StreamId compute = schedule.add_stream({"compute", Rank(0)}), tp = schedule.add_stream({"tp", Rank(0)});
  Timeline timeline;
  const auto add = [&](StreamId stream, const char* category, std::int64_t start, std::int64_t finish) {
    schedule.add(stream, Delay{}, {}, {"op", category});
    Interval interval;
    interval.start = SimTime(Picoseconds(start));
    interval.finish = SimTime(Picoseconds(finish));
    timeline.ops.push_back(interval);
  };
  constexpr std::int64_t second = 1'000'000'000'000;
  constexpr int operations = 1000;
  for (int i = 0; i < operations; ++i) add(compute, "forward", i * second, (i + 1) * second);
  add(tp, "tp", 10 * second, 20 * second);
  timeline.finish = SimTime(Picoseconds(operations * second));

  const TimelineChart whole = timeline_chart(schedule, timeline);
  CHECK(whole.tracks == std::vector<std::string>{"stage 0 compute", "stage 0 tp"});
  CHECK(whole.bars.size() == operations + 1);
  const TimelineChart merged = timeline_chart(schedule, timeline, 100);
  CHECK(merged.bars.size() <= 100);
  CHECK(merged.bars.front().start_s == 0);
  CHECK(merged.bars.back().category == "tp");
  double covered = 0;
  for (const TimelineChart::Bar& bar : merged.bars) covered += bar.category == "forward" ? bar.end_s - bar.start_s : 0;
  CHECK(covered == Approx(operations));
}

TEST_CASE("rows of a timeline say each stage once, of training and of a server") {
  Schedule schedule;
  for (std::uint32_t stage = 0; stage < 2; ++stage) {
    const std::string name = "stage " + std::to_string(stage);
    for (const std::string& stream : {name, name + " messages"}) schedule.add_stream({stream, Rank(8 * stage)});
    schedule.add_stream({"compute", Rank(8 * stage)});
  }
  schedule.add_stream({"fabric", {}});
  CHECK(timeline_chart(schedule, {}).tracks ==
        std::vector<std::string>{"stage 0", "stage 0 messages", "stage 0 compute", "stage 1", "stage 1 messages",
                                 "stage 1 compute", "fabric"});
}
