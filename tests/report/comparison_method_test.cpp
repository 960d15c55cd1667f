// What compare finds where one side is simulated and the other by closed form: no verdict on what follows from the
// time.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <pugixml.hpp>
#include <sstream>

#include "collcast/report/comparison.hpp"

using namespace collcast;
using OrderedJson = nlohmann::ordered_json;

namespace method_test {

namespace {

/// A step of 100 tokens; `simulate_s` of nothing: not run.
OrderedJson step_document(double estimate_s, const std::optional<double>& simulate_s) {
  const double step_s = simulate_s.value_or(estimate_s);
  return {{"schema", "collcast.step.v1"},
          {"scenario", "s"},
          {"step_s", step_s},
          {"estimate_s", estimate_s},
          {"simulate_s", simulate_s ? OrderedJson(*simulate_s) : OrderedJson()},
          {"tokens_per_s_per_gpu", 100 / step_s},
          {"model_flops_per_s_per_gpu", 1e14 / step_s},
          {"mfu", 1 / step_s},
          {"hfu", 1 / step_s},
          {"breakdown", {{"compute_s", 2.0}, {"bubble_s", step_s - 2}}},
          {"memory", {{"parameters_bytes", 10}, {"peak_bytes", 10}}},
          {"inputs", {{"layout", {{"tp", 8}}}}}};
}

/// Either time of nothing: not run.
OrderedJson collective_document(const std::optional<double>& estimate_s, const std::optional<double>& simulate_s) {
  const auto json_of = [](const std::optional<double>& value) { return value ? OrderedJson(*value) : OrderedJson(); };
  return {{"schema", "collcast.collective.v1"},
          {"machine", {{"topology", "ring"}}},
          {"rows",
           {{{"collective", "alltoall"},
             {"algorithm", "naive"},
             {"size_bytes", 1048576},
             {"estimate_s", json_of(estimate_s)},
             {"simulate_s", json_of(simulate_s)},
             {"busbw_bytes_per_s", 1048576 / (simulate_s ? *simulate_s : *estimate_s)}}}}};
}

OrderedJson layout(int tp, double estimate_s, const std::optional<double>& simulate_s, int peak_bytes = 10) {
  OrderedJson out{{"tp", tp}, {"pp", 1}, {"dp", 8 / tp}, {"peak_bytes", peak_bytes}, {"estimate_s", estimate_s}};
  out["step_s"] = simulate_s.value_or(estimate_s);
  out["simulate_s"] = simulate_s ? OrderedJson(*simulate_s) : OrderedJson();
  out["mfu"] = 1 / out["step_s"].get<double>();
  return out;
}

OrderedJson plan_document(const std::vector<OrderedJson>& ranked) {
  return {{"schema", "collcast.plan.v1"}, {"feasible", ranked.size()}, {"ranked", ranked}};
}

OrderedJson sweep_document(double estimate_s, const std::optional<double>& simulate_s) {
  OrderedJson row = layout(8, estimate_s, simulate_s);
  row["values"] = {{"layout.tp", "8"}};
  return {{"schema", "collcast.sweep.v1"}, {"scenario", "s"}, {"rows", OrderedJson::array({row})}};
}

Comparison compared(const OrderedJson& base, const OrderedJson& now, const Tolerances& tolerances = {}) {
  const auto saved = [](const OrderedJson& document) {
    return NamedResult("s", read_saved(document.dump(), "f.json").value().front());
  };
  return compare({saved(base)}, {saved(now)}, tolerances).value();
}

const FigureChange& figure(const Comparison& c, const std::string& name, std::size_t row = 0) {
  for (const FigureChange& f : c.results.at(0).rows.at(row).figures) {
    if (f.name == name) return f;
  }
  throw std::runtime_error("no figure " + name);
}

std::string text(const Comparison& c) {
  std::ostringstream out;
  write_text(out, page(c));
  return out.str();
}

void check_no_verdict(const Comparison& c) {
  CHECK(c.kept());
  CHECK(c.count(Finding::worse) == 0);
  CHECK(c.count(Finding::better) == 0);
}

}  // namespace

TEST_CASE("a simulated figure of a collective is no worse and no better than one by closed form") {
  const OrderedJson both = collective_document(1e-3, 3e-3), estimate = collective_document(1e-3, std::nullopt);
  for (const auto& [base, now] : {std::pair{both, estimate}, std::pair{estimate, both}}) {
    const Comparison c = compared(base, now);
    check_no_verdict(c);
    CHECK(figure(c, "busbw_bytes_per_s").finding == Finding::changed);
    CHECK(figure(c, "busbw_bytes_per_s").by_another_method);
    CHECK(figure(c, "estimate_s").finding == Finding::within);
    CHECK_FALSE(figure(c, "estimate_s").by_another_method);
  }
  // A word of the user does not make one of the other.
  const Tolerances strict{std::nullopt, {{"busbw_bytes_per_s", {0, true}}}};
  check_no_verdict(compared(estimate, both, strict));
}

TEST_CASE("a simulated step is no worse and no better than one by closed form, nor is what follows from its time") {
  const OrderedJson both = step_document(7.5, 8.0), estimate = step_document(7.5, std::nullopt);
  for (const auto& [base, now] : {std::pair{both, estimate}, std::pair{estimate, both}}) {
    const Comparison c = compared(base, now);
    check_no_verdict(c);
    for (const char* name : {"step_s", "tokens_per_s_per_gpu", "model_flops_per_s_per_gpu", "mfu", "hfu"}) {
      INFO(name);
      CHECK(figure(c, name).finding == Finding::changed);
      CHECK(figure(c, name).by_another_method);
      // Parts by two methods explain no change.
      CHECK(figure(c, name).terms.empty());
    }
    CHECK(figure(c, "estimate_s").finding == Finding::within);
    CHECK_FALSE(figure(c, "peak_bytes").by_another_method);
    const auto& facts = c.results.at(0).rows.at(0).facts;
    REQUIRE(facts.size() == 1);
    CHECK(facts[0].name == "method");
  }
}

TEST_CASE("the closed form of both holds a row in the place of what is by another method") {
  const OrderedJson both = step_document(7.5, 8.0);
  const Comparison worse = compared(both, step_document(7.8, std::nullopt));
  CHECK_FALSE(worse.kept());
  CHECK(worse.count(Finding::worse) == 1);
  CHECK(figure(worse, "estimate_s").finding == Finding::worse);
  CHECK(compared(both, step_document(7.8, std::nullopt), {std::nullopt, {{"estimate_s", {0.05, true}}}}).kept());
  CHECK(figure(compared(both, step_document(7.2, std::nullopt)), "estimate_s").finding == Finding::better);
  // What is not of the time is held as ever.
  OrderedJson larger = step_document(7.5, std::nullopt);
  larger["memory"]["peak_bytes"] = 11;
  CHECK(figure(compared(both, larger), "peak_bytes").finding == Finding::worse);
}

TEST_CASE("what both sides have by one method is judged as ever") {
  const Comparison simulated = compared(step_document(7.5, 8.0), step_document(7.5, 9.0));
  CHECK(figure(simulated, "step_s").finding == Finding::worse);
  CHECK_FALSE(figure(simulated, "step_s").by_another_method);
  CHECK_FALSE(figure(simulated, "step_s").terms.empty());
  CHECK_THROWS(figure(simulated, "estimate_s"));
  CHECK(figure(compared(step_document(7.5, std::nullopt), step_document(8.0, std::nullopt)), "step_s").finding ==
        Finding::worse);
  CHECK(figure(compared(collective_document(1e-3, 3e-3), collective_document(std::nullopt, 4e-3)), "busbw_bytes_per_s")
            .finding == Finding::worse);
  // Older documents, which do not say by which method they are.
  OrderedJson older = step_document(7.5, std::nullopt);
  older.erase("estimate_s");
  older.erase("simulate_s");
  CHECK(figure(compared(older, step_document(7.5, 8.0)), "step_s").finding == Finding::worse);
}

TEST_CASE("layouts of plans and points of sweeps, too, are held by the closed form of both") {
  for (const bool of_sweep : {false, true}) {
    const auto document = [&](double estimate_s, const std::optional<double>& simulate_s) {
      return of_sweep ? sweep_document(estimate_s, simulate_s) : plan_document({layout(8, estimate_s, simulate_s)});
    };
    const OrderedJson simulated = document(3, 3.5), estimate = document(3, std::nullopt);
    check_no_verdict(compared(simulated, estimate));
    check_no_verdict(compared(estimate, simulated));
    CHECK(figure(compared(estimate, simulated), "step_s").finding == Finding::changed);
    CHECK(figure(compared(estimate, simulated), "mfu").by_another_method);
    CHECK(figure(compared(estimate, document(3.1, 3.5)), "estimate_s").finding == Finding::worse);
  }
}

TEST_CASE("a best layout that another method chose is held by nothing, its layouts are") {
  const OrderedJson estimate = plan_document({layout(8, 3, std::nullopt), layout(4, 3.1, std::nullopt, 20)});
  const OrderedJson simulated = plan_document({layout(4, 3.1, 3.2, 20), layout(8, 3, 3.5)});
  check_no_verdict(compared(estimate, simulated));
  check_no_verdict(compared(simulated, estimate));
  CHECK(figure(compared(estimate, simulated), "peak_bytes").by_another_method);
  const OrderedJson slower = plan_document({layout(4, 3.3, 3.4, 20), layout(8, 3, 3.5)});
  CHECK(compared(estimate, slower).count(Finding::worse) == 1);
}

TEST_CASE("each format says what is by another method") {
  const Comparison c = compared(collective_document(1e-3, std::nullopt), collective_document(1e-3, 3e-3));
  CHECK(text(c).find("changed, by another method") != std::string::npos);
  CHECK(text(c).find("1 row is simulated on one side and by closed form on the other") != std::string::npos);
  int reasons = 0;
  const OrderedJson document = OrderedJson::parse(json(c));
  for (const OrderedJson& f : document["results"][0]["rows"][0]["figures"]) {
    CHECK(f.contains("reason") == (f["figure"] == "busbw_bytes_per_s"));
    if (f.contains("reason")) reasons += f["reason"] == "by another method" ? 1 : 0;
  }
  CHECK(reasons == 1);
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit(c).c_str()));
  CHECK(xml.child("testsuites").attribute("failures").as_int() == 0);
  CHECK(junit(c).find("by another method: not judged") != std::string::npos);
  const Comparison same = compared(collective_document(1e-3, 3e-3), collective_document(1e-3, 4e-3));
  CHECK(text(same).find("closed form on the other") == std::string::npos);
  CHECK(json(same).find("reason") == std::string::npos);
}

}  // namespace method_test
