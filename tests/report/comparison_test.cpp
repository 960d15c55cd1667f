// What compare finds between two documents, and that it finds nothing where nothing moved too far.
#include "collcast/report/comparison.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <bitset>
#include <pugixml.hpp>
#include <sstream>

#include "report/metrics.hpp"
#include "report/wording.hpp"

using namespace collcast;
using OrderedJson = nlohmann::ordered_json;

namespace {

OrderedJson step_document(double step_s = 10) {
  return {{"schema", "collcast.step.v1"},
          {"tool", {{"name", "collcast"}, {"version", "0.1.0"}}},
          {"scenario", "s"},
          {"step_s", step_s},
          {"tokens_per_s_per_gpu", 1000},
          {"model_flops_per_s_per_gpu", 4e14},
          {"mfu", 0.5},
          {"hfu", 0.5},
          {"layer", {{"forward_s", 1e-3}}},
          {"breakdown", {{"compute_s", 8.0}, {"tp_exposed_s", step_s - 9}, {"bubble_s", 1.0}}},
          {"memory", {{"parameters_bytes", 4}, {"activations_bytes", 6}, {"peak_bytes", 10}}},
          {"inputs", {{"layout", {{"tp", 8}}}}}};
}

OrderedJson collective_document(const std::vector<std::pair<std::string, double>>& algorithms) {
  OrderedJson out{
      {"schema", "collcast.collective.v1"}, {"machine", {{"topology", "ring"}}}, {"rows", OrderedJson::array()}};
  for (const auto& [algorithm, time] : algorithms) {
    out["rows"].push_back({{"collective", "all_reduce"},
                           {"algorithm", algorithm},
                           {"size_bytes", 1048576},
                           {"estimate_s", time},
                           {"simulate_s", time}});
  }
  return out;
}

SavedResult saved(const OrderedJson& document) { return read_saved(document.dump(), "f.json").value().front(); }

Comparison compared(const OrderedJson& base, const OrderedJson& now, const Tolerances& tolerances = {}) {
  return compare({{"s", saved(base)}}, {{"s", saved(now)}}, tolerances).value();
}

const FigureChange& figure(const Comparison& c, const std::string& name) {
  for (const FigureChange& f : c.results.at(0).rows.at(0).figures) {
    if (f.name == name) return f;
  }
  throw std::runtime_error("no figure " + name);
}

Tolerances tolerances(const std::string& text) {
  const auto parsed = parse_tolerance(text).value();
  if (parsed.first.empty()) return {parsed.second, {}};
  return {{}, {parsed}};
}

std::string markdown(const Comparison& c) {
  std::ostringstream out;
  write_markdown(out, page(c));
  return out.str();
}

}  // namespace

TEST_CASE("a document is no worse than itself") {
  for (const OrderedJson& document : {step_document(), collective_document({{"ring", 1e-3}, {"tree", 2e-3}})}) {
    const Comparison c = compared(document, document);
    CHECK(c.kept());
    CHECK(c.count(Finding::within) > 0);
    for (const Finding f : {Finding::better, Finding::worse, Finding::changed, Finding::missing, Finding::added})
      CHECK(c.count(f) == 0);
  }
}

TEST_CASE("a step is worse beyond its tolerance, better where it got faster, and within up to the boundary itself") {
  const auto found = [](double now, const Tolerances& t) {
    return figure(compared(step_document(10), step_document(now), t), "step_s").finding;
  };
  CHECK(found(10.1, {}) == Finding::within);  // 1 % of 10
  CHECK(found(10.2, {}) == Finding::worse);
  CHECK(found(9.8, {}) == Finding::better);
  CHECK(found(10.2, tolerances("step_s=2%")) == Finding::within);
  CHECK(found(10.2, tolerances("2%")) == Finding::within);
  CHECK(found(10.2, tolerances("mfu=5%")) == Finding::worse);
  CHECK(found(10.2, tolerances("step_s=200ms")) == Finding::within);
  CHECK(found(10.2, tolerances("step_s=199ms")) == Finding::worse);
  CHECK(found(10.0000001, tolerances("0%")) == Finding::worse);
  CHECK(found(10, tolerances("0%")) == Finding::within);
}

TEST_CASE("percentiles of a run of requests are compared, each with a tolerance of its own") {
  const auto served = [](double p99) {
    OrderedJson out = step_document();
    const OrderedJson times{{"mean_s", 1}, {"p50_s", 1}, {"p90_s", 2}, {"p99_s", 3}, {"longest_s", 4}};
    out["ttft_s"] = out["tpot_s"] = 1;
    out["inference"]["load"] = {{"ttft", times}, {"tpot", times}};
    out["inference"]["load"]["ttft"]["p99_s"] = p99;
    return out;
  };
  const Comparison worse = compared(served(3), served(3.1));
  CHECK_FALSE(worse.kept());
  CHECK(figure(worse, "ttft.p99_s").finding == Finding::worse);
  CHECK(figure(worse, "ttft.p90_s").finding == Finding::within);
  CHECK(figure(worse, "tpot.longest_s").now == 4);
  CHECK(compared(served(3), served(3.1), tolerances("ttft.p99_s=100ms")).kept());
  CHECK(figure(compared(served(3), served(2)), "ttft.p99_s").finding == Finding::better);
  // Who had percentiles and has none misses them; who gets them, as from an older version's document, does not break.
  CHECK_FALSE(compared(served(3), step_document()).kept());
  CHECK(compared(step_document(), served(3)).kept());
}

TEST_CASE("a rate is worse where it falls") {
  OrderedJson slower = step_document(), faster = step_document();
  slower["mfu"] = 0.45;
  faster["mfu"] = 0.55;
  CHECK(figure(compared(step_document(), slower), "mfu").finding == Finding::worse);
  CHECK(figure(compared(step_document(), faster), "mfu").finding == Finding::better);
}

TEST_CASE("a job that no longer fits is worse, whatever else stays, and one that fits again is better") {
  OrderedJson fits = step_document(), does_not = step_document();
  fits["memory"]["capacity_bytes"] = 10;     // of 10 that are needed
  does_not["memory"]["capacity_bytes"] = 9;  // one short
  const Comparison lost = compared(fits, does_not);
  CHECK(figure(lost, "over_capacity_bytes").finding == Finding::worse);
  CHECK(figure(lost, "over_capacity_bytes").now == 1);
  CHECK(figure(lost, "peak_bytes").finding == Finding::within);
  CHECK_FALSE(lost.kept());
  CHECK(figure(compared(does_not, fits), "over_capacity_bytes").finding == Finding::better);
  CHECK(figure(compared(fits, fits), "over_capacity_bytes").finding == Finding::within);
  // A tasks scenario has no memory, and no such figure.
  CHECK_THROWS(figure(compared(step_document(), step_document()), "over_capacity_bytes"));
}

TEST_CASE("a figure without a direction is told and breaks nothing") {
  OrderedJson other = step_document();
  other["hfu"] = 0.9;
  const Comparison c = compared(step_document(), other);
  CHECK(figure(c, "hfu").finding == Finding::changed);
  CHECK(c.kept());
  // Its tolerance is "any" in every format: nothing in JSON and CSV.
  const OrderedJson document = OrderedJson::parse(json(c));
  int without = 0;
  for (const OrderedJson& f : document["results"][0]["rows"][0]["figures"]) {
    const bool gated = f["better"] != "neither";
    CHECK(f["tolerance"].is_null() == !gated);
    CHECK(f["tolerance_is_relative"].is_null() == !gated);
    without += gated ? 0 : 1;
  }
  CHECK(without == 2);  // hfu and layer.forward_s
  std::ostringstream table;
  write_csv(table, csv(c));
  CHECK(table.str().find("hfu,0.5,0.9,0.4,,,changed") != std::string::npos);
}

TEST_CASE("the terms that moved explain a figure, the most first, and sum to its change") {
  OrderedJson now = step_document(12);  // TP exposed from 1 to 3
  now["breakdown"]["bubble_s"] = 1.5;
  now["step_s"] = 12.5;
  const FigureChange change = figure(compared(step_document(10), now), "step_s");
  REQUIRE(change.terms.size() == 2);
  CHECK(change.terms[0].name == "tp_exposed_s");
  CHECK(change.terms[1].name == "bubble_s");
  double sum = 0;
  for (const TermChange& t : change.terms) sum += t.now - t.base;
  CHECK(sum == Approx(12.5 - 10));
}

TEST_CASE("inputs that differ are listed") {
  OrderedJson now = step_document();
  now["inputs"]["layout"]["tp"] = 4;
  now["inputs"]["layout"]["pp"] = 2;
  const Comparison c = compared(step_document(), now);
  const auto& facts = c.results.at(0).facts;
  REQUIRE(facts.size() == 2);
  CHECK((facts[0].name == "inputs.layout.tp" && facts[0].base == "8" && facts[0].now == "4"));
  CHECK((facts[1].name == "inputs.layout.pp" && facts[1].base.empty() && facts[1].now == "2"));
  CHECK(c.results.at(0).base_digest != c.results.at(0).digest);
}

TEST_CASE("a document that does not list its inputs has no digest of them") {
  OrderedJson silent = step_document();
  silent.erase("inputs");
  const Comparison c = compared(silent, step_document());
  CHECK(c.results.at(0).base_digest.empty());
  CHECK_FALSE(c.results.at(0).digest.empty());
}

TEST_CASE("inputs that an older document does not list are no inputs that differ") {
  OrderedJson older = step_document();
  older.erase("inputs");
  CHECK(compared(older, step_document()).results.at(0).facts.empty());
  CHECK(compared(step_document(), older).results.at(0).facts.empty());
}

TEST_CASE("two scenarios that are compared under one name are said to be two") {
  OrderedJson other = step_document();
  other["scenario"] = "t";
  const Comparison c = compared(step_document(), other);
  const auto& facts = c.results.at(0).facts;
  REQUIRE(facts.size() == 1);
  CHECK((facts[0].name == "scenario" && facts[0].base == "s" && facts[0].now == "t"));
}

TEST_CASE("a result, a row or a figure that is gone breaks the comparison; one that came does not") {
  const NamedResult a{"a", saved(step_document())}, b{"b", saved(step_document())};
  CHECK_FALSE(compare({a, b}, {a}, {}).value().kept());
  CHECK(compare({a, b}, {a}, {}).value().count(Finding::missing) == 1);
  CHECK(compare({a}, {a, b}, {}).value().kept());
  CHECK(compare({a}, {a, b}, {}).value().count(Finding::added) == 1);

  const OrderedJson one = collective_document({{"ring", 1e-3}});
  OrderedJson two = one;
  two["rows"].push_back(one["rows"][0]);
  two["rows"][1]["size_bytes"] = 2097152;
  CHECK(compared(two, one).count(Finding::missing) == 1);
  CHECK(compared(one, two).count(Finding::added) == 1);

  OrderedJson without = step_document();
  without["mfu"] = nullptr;
  CHECK(figure(compared(step_document(), without), "mfu").finding == Finding::missing);
  CHECK(figure(compared(without, step_document()), "mfu").finding == Finding::added);
}

TEST_CASE("a method that was not run is no missing figure while the other method's time is compared") {
  OrderedJson both = collective_document({{"ring", 1e-3}});
  both["rows"][0]["estimate_s"] = 1e-3;
  both["rows"][0]["simulate_s"] = 1.1e-3;
  for (const auto& [left_out, kept] : {std::pair{"simulate_s", "estimate_s"}, std::pair{"estimate_s", "simulate_s"}}) {
    OrderedJson one = both;
    one["rows"][0][left_out] = nullptr;
    CHECK(figure(compared(both, one), left_out).finding == Finding::changed);
    CHECK(compared(both, one).count(Finding::missing) == 0);
    one["rows"][0][kept] = one["rows"][0][kept].get<double>() * 2;
    CHECK(figure(compared(both, one), kept).finding == Finding::worse);
    // Without either there is nothing left to compare.
    one["rows"][0][kept] = nullptr;
    CHECK(figure(compared(both, one), left_out).finding == Finding::missing);
  }
}

TEST_CASE("another algorithm for the same question is a choice that differs, not another row") {
  const Comparison c = compared(collective_document({{"ring", 1e-3}}), collective_document({{"tree", 0.5e-3}}));
  CHECK(c.count(Finding::missing) == 0);
  CHECK(figure(c, "estimate_s").finding == Finding::better);
  const auto& facts = c.results.at(0).rows.at(0).facts;
  REQUIRE(facts.size() == 1);
  CHECK((facts[0].name == "algorithm" && facts[0].base == "ring" && facts[0].now == "tree"));
}

namespace {

struct Way {
  std::string algorithm, protocol;
  double time;
};

/// A sweep of library nccl, at one size, over the ways that NCCL was left.
OrderedJson sweep(const std::vector<Way>& ways, const std::string& asked) {
  OrderedJson out = collective_document({});
  out["inputs"] = {{"algorithm", asked}};
  for (const Way& way : ways)
    out["rows"].push_back({{"collective", "all_reduce"},
                           {"algorithm", way.algorithm},
                           {"protocol", way.protocol},
                           {"library", "nccl"},
                           {"size_bytes", 1048576},
                           {"estimate_s", way.time}});
  return out;
}

}  // namespace

TEST_CASE("of a sweep over ways each pairs with itself, whichever subset another sweep has") {
  const std::vector<Way> all{{"ring", "LL", 1e-3},   {"ring", "LL128", 2e-3},   {"ring", "Simple", 3e-3},
                             {"tree", "LL", 1.5e-3}, {"tree", "LL128", 2.5e-3}, {"tree", "Simple", 3.5e-3}};
  const auto pick = [&](unsigned set) {
    std::vector<Way> out;
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((set >> i & 1U) != 0) out.push_back(all[i]);
    return sweep(out, "all");
  };
  for (unsigned base = 1; base < 64; ++base) {
    for (unsigned now = 1; now < 64; ++now) {
      const Comparison c = compared(pick(base), pick(now));
      const auto count = [](unsigned set) { return static_cast<int>(std::bitset<6>(set).count()); };
      INFO(base << " against " << now);
      REQUIRE(c.count(Finding::worse) == 0);
      REQUIRE(c.count(Finding::better) == 0);
      REQUIRE(c.count(Finding::missing) == count(base & ~now));
      REQUIRE(c.count(Finding::added) == count(now & ~base));
      REQUIRE(c.count(Finding::within) == count(base & now));
    }
  }
  CHECK(compared(pick(1), pick(1)).results.at(0).rows.at(0).name == "all_reduce 1 MiB, ring LL");
}

TEST_CASE(
    "the library is said where it differs, once, whether a document has it among its inputs or in its rows alone") {
  const auto by = [](const char* library, bool in_inputs) {
    OrderedJson out = sweep({{"ring", "LL", 1e-3}}, "auto");
    out["rows"][0]["library"] = library;
    if (in_inputs) out["inputs"]["library"] = library;
    if (library == std::string("nccl")) out["inputs"]["environment"] = "";  // without a variable: no difference
    return out;
  };
  for (const bool older : {false, true}) {
    const Comparison c = compared(by("ideal", !older), by("nccl", true));
    const auto& facts = c.results.at(0).facts;
    REQUIRE(facts.size() == 1);
    CHECK((facts[0].name == "library" && facts[0].base == "ideal" && facts[0].now == "nccl"));
  }
  CHECK(compared(by("nccl", false), by("nccl", true)).results.at(0).facts.empty());
  CHECK(compared(by("ideal", true), by("nccl", true)).results.at(0).base_digest !=
        compared(by("ideal", true), by("nccl", true)).results.at(0).digest);
}

TEST_CASE("terms explain a change only where both sides have them and they sum to it") {
  const auto phases = [](double time, const std::vector<double>& parts) {
    OrderedJson out = collective_document({{"ring", time}});
    out["rows"][0]["phases"] = OrderedJson::array();
    for (const double part : parts) out["rows"][0]["phases"].push_back({{"shape", "ring"}, {"time_s", part}});
    return out;
  };
  const OrderedJson of_two = phases(3e-3, {1e-3, 2e-3}), longer = phases(5e-3, {1e-3, 4e-3}), none = phases(5e-3, {});
  CHECK(figure(compared(of_two, longer), "estimate_s").terms.size() == 1);
  CHECK(figure(compared(of_two, none), "estimate_s").terms.empty());
  CHECK(figure(compared(none, of_two), "estimate_s").terms.empty());
  // A step whose parts do not make it up, as a file that was edited may have.
  OrderedJson edited = step_document(12);
  edited["step_s"] = 13;
  CHECK(figure(compared(step_document(10), step_document(12)), "step_s").terms.size() == 1);
  CHECK(figure(compared(step_document(10), edited), "step_s").terms.empty());
}

TEST_CASE("what was chosen pairs by size, whatever algorithm and protocol it is") {
  const Comparison c = compared(sweep({{"ring", "LL", 1e-3}}, "auto"), sweep({{"tree", "Simple", 2e-3}}, "auto"));
  CHECK(c.count(Finding::missing) == 0);
  CHECK(figure(c, "estimate_s").finding == Finding::worse);
  REQUIRE(c.results.at(0).rows.at(0).facts.size() == 2);
  CHECK(c.results.at(0).rows.at(0).facts[1].name == "protocol");
}

TEST_CASE("a row of a list that was cut may leave it") {
  OrderedJson plan{{"schema", "collcast.plan.v1"}, {"feasible", 3}, {"ranked", OrderedJson::array()}};
  for (int tp : {1, 2})
    plan["ranked"].push_back(
        {{"tp", tp}, {"pp", 1}, {"dp", 1}, {"step_s", 1.0 * tp}, {"peak_bytes", 10}, {"mfu", 0.5}});
  OrderedJson shorter = plan;
  shorter["ranked"].erase(1);
  CHECK(compared(plan, shorter).kept());
  // Whole, and --top 1 of the same: neither way is a layout gone, nor one come.
  plan["feasible"] = 2;
  shorter["feasible"] = 2;
  CHECK(compared(plan, shorter).kept());
  CHECK(compared(shorter, plan).count(Finding::added) == 0);
  // Both whole: the second layout no longer fits.
  shorter["feasible"] = 1;
  CHECK(compared(plan, shorter).count(Finding::missing) == 1);
  CHECK_FALSE(compared(plan, shorter).kept());
  CHECK(compared(shorter, plan).count(Finding::added) == 1);
}

TEST_CASE("errors of a validation are held by percentage points") {
  const auto document = [](double ape) {
    return OrderedJson{
        {"schema", "collcast.validate.v1"},
        {"tables", {{{"id", "t"}, {"bands", {{"large", {{"n", 3}, {"mean_ape", ape}, {"median_ape", 0.02}}}}}}}},
        {"summary", {{"all_reduce", {{"large", {{"n", 3}, {"mean_ape", ape}}}}}}},
        {"unscored", OrderedJson::array()}};
  };
  CHECK(compared(document(0.05), document(0.059)).kept());
  const Comparison worse = compared(document(0.05), document(0.061));
  CHECK(worse.count(Finding::worse) == 2);  // the table and the summary
  CHECK(worse.results.at(0).rows.at(0).name == "summary all_reduce large");
  CHECK(worse.results.at(0).rows.at(1).name == "t large");
}

TEST_CASE("results of two kinds, or two of one name, cannot be compared") {
  const NamedResult step{"a", saved(step_document())}, collective{"a", saved(collective_document({{"ring", 1.0}}))};
  CHECK(to_text(compare({step}, {collective}, {}).errors()).find("collcast.step.v1 in BASE") != std::string::npos);
  CHECK(to_text(compare({step, step}, {step}, {}).errors()).find("two results named 'a'") != std::string::npos);
}

TEST_CASE("a tolerance that is none says what was expected") {
  for (const char* text : {"stp_s=2%", "step_s=2", "step_s=2GiB", "step_s=-1%", "step_s=", "=2%", "2", "", "mfu=2s",
                           "peak_bytes=nan%", "mean_ape=-1points"}) {
    INFO(text);
    const auto parsed = parse_tolerance(text);
    REQUIRE_FALSE(parsed.ok());
    CHECK_FALSE(parsed.errors().front().hint.empty());
  }
  CHECK(parse_tolerance("mean_ape=2points").value().second.amount == Approx(0.02));
  const auto misspelt = parse_tolerance("tep_s=2%");
  REQUIRE_FALSE(misspelt.ok());
  CHECK(misspelt.errors()[0].hint.find("did you mean 'step_s'? expected one of: ") == 0);
  for (const std::string& name : gated_figures()) {
    CHECK(parse_tolerance(name + "=2%").ok());
    CHECK((misspelt.errors()[0].hint + ",").find(" " + name + ",") != std::string::npos);
  }
}

TEST_CASE("names that mean something to a browser, a table, a terminal or a spreadsheet stay text") {
  const std::string name = "=<script>alert(1)</script>|a\nb\x1b[31m`c`![x](http://e)]]>\"";
  OrderedJson base = step_document(), now = step_document(20);
  base["scenario"] = now["scenario"] = name;
  now["inputs"]["layout"]["tp"] = name;
  const SavedResult b = saved(base), n = saved(now);
  const Comparison c = compare({{b.name, b}}, {{n.name, n}}, {}).value();

  const std::string md = markdown(c);
  CHECK(md.find("<script>") == std::string::npos);
  CHECK(md.find("](http") == std::string::npos);
  CHECK(md.find(name) == std::string::npos);
  // Every line of the table has its eight cells: unescaped bars only between them.
  std::istringstream lines(md);
  int rows_of_it = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| =")) continue;
    ++rows_of_it;
    std::size_t bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1U : 0U;
    CHECK((bars == 9 || bars == 5));
  }
  CHECK(rows_of_it > 0);
  std::ostringstream text, rows;
  write_text(text, page(c));
  CHECK(text.str().find('\x1b') == std::string::npos);
  CHECK(text.str().find("a\nb") == std::string::npos);
  write_csv(rows, csv(c));
  CHECK(rows.str().find("\n\"'=") != std::string::npos);  // a spreadsheet sees text
  CHECK(OrderedJson::parse(json(c)).at("results").at(0).at("name").get<std::string>().find('\n') == std::string::npos);
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit(c).c_str()));
  const std::string suite = xml.child("testsuites").child("testsuite").attribute("name").value();
  CHECK(suite.find("<script>alert(1)</script>|a\\u000ab\\u001b[31m") != std::string::npos);
}

TEST_CASE("JUnit counts its cases and fails those that break") {
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit(compared(step_document(10), step_document(12))).c_str()));
  const pugi::xml_node suites = xml.child("testsuites");
  CHECK(suites.attribute("failures").as_int() == 1);
  int cases = 0;
  for (const pugi::xml_node& one : suites.child("testsuite").children("testcase")) {
    ++cases;
    CHECK(one.child("failure").empty() == (std::string_view(one.attribute("name").value()) != "step_s"));
  }
  CHECK(suites.attribute("tests").as_int() == cases);
}

TEST_CASE("the page begins with the verdict and names what moved the step") {
  const std::string broken = markdown(compared(step_document(10), step_document(12)));
  CHECK(broken.starts_with("## comparison FAILED: 1 figure worse than allowed\n"));
  CHECK(broken.find("TP exposed +2 s") != std::string::npos);
  CHECK(markdown(compared(step_document(), step_document())).starts_with("## comparison passed"));
}

TEST_CASE("a change is a percentage as people write it") {
  CHECK(relative_text(100, 0.3) == "-100%");
  CHECK(relative_text(1000, 6) == "-99%");
  CHECK(relative_text(1, 3) == "+200%");
  CHECK(relative_text(100, 102.5) == "+2.5%");
  CHECK(difference_text(Seconds(1.996), Seconds(1)) == "+100%");
  CHECK(difference_text(Seconds(1.024), Seconds(1)) == "+2.4%");
  CHECK(difference_text(Seconds(1), Seconds(1)).empty());
}
