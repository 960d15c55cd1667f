// A step's gates: which way each figure is held, and what the document says of it.
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <sstream>
#include <utility>

#include "collcast/report/documents.hpp"

using namespace collcast;
using Json = nlohmann::json;

namespace {

StepResult result() {
  StepResult r;
  r.step = Seconds(15.77);
  r.mfu = 0.505;
  r.memory.activations = Bytes(std::int64_t{46} << 30);
  return r;
}

StepReport report(const std::vector<Gate>& gates) {
  StepReport out;
  out.inputs = StepInputs();
  out.result = result();
  out.gates = check_gates(gates, out.result);
  return out;
}

}  // namespace

TEST_CASE("times and memory have a most, rates and utilisations a least; the limit itself is kept") {
  const auto kept = [](const char* figure, double limit) {
    return check_gates(std::vector<Gate>{{figure, limit, {}}}, result()).front().kept();
  };
  CHECK(kept("step_s", 16));
  CHECK(kept("step_s", 15.77));
  CHECK_FALSE(kept("step_s", 15.76));
  CHECK(kept("mfu", 0.5));
  CHECK(kept("mfu", 0.505));
  CHECK_FALSE(kept("mfu", 0.51));
  CHECK(kept("peak_bytes", 0x1p30 * 46));
  CHECK_FALSE(kept("peak_bytes", 0x1p30 * 45));
}

TEST_CASE("each statistic of a run has a gate on its own value of TTFT and of TPOT, which the value itself keeps") {
  StepResult r = result();
  LoadTimes& run = r.inference.emplace().load.emplace();
  double next = 1;  // no two alike
  for (TimeSpread* times : {&run.ttft, &run.tpot})
    for (const TimeStatistic& statistic : time_statistics) (*times).*statistic.of = Seconds(next++ / 3);
  for (const auto& [figure, times] : {std::pair("ttft", &run.ttft), std::pair("tpot", &run.tpot)})
    for (const TimeStatistic& statistic : limited_statistics) {
      const double value = ((*times).*statistic.of).count();
      const auto check_at = [&, name = fmt::format("{}.{}_s", figure, statistic.name)](double limit) {
        return check_gates(std::vector<Gate>{{name, limit, {}}}, r).front();
      };
      CHECK(check_at(value).value == value);
      CHECK(check_at(value).kept());
      CHECK_FALSE(check_at(std::nextafter(value, 0)).kept());
    }
}

TEST_CASE("every figure that can have a gate is a key of the step document") {
  StepReport served = report({});
  served.inputs->serving.emplace();
  served.result.inference.emplace().load.emplace();
  const Json trained = Json::parse(json(report({}))), inference = Json::parse(json(served));
  for (const GateFigure& figure : gate_figures()) {
    INFO(figure.name);
    const std::string name(figure.name);
    if (figure.of == GateFigure::Of::load) {
      const std::size_t dot = name.find('.');
      CHECK(inference.at("inference").at("load").at(name.substr(0, dot)).contains(name.substr(dot + 1)));
      CHECK(name == fmt::format("{}.{}_s", figure.among.substr(0, figure.among.size() - 2), figure.statistic));
      continue;
    }
    const Json& document = figure.of == GateFigure::Of::inference ? inference : trained;
    CHECK((document.contains(name) || document.at("memory").contains(name) || document.at("breakdown").contains(name)));
  }
}

TEST_CASE("a gate is in the document with value, limit and margin, and a broken one at its place") {
  const StepReport r = report({{"step_s", 16, {"s.yaml", 7, 12}}, {"mfu", 0.6, {"s.yaml", 8, 9}}});
  const Json gates = Json::parse(json(r)).at("gates");
  REQUIRE(gates.size() == 2);
  CHECK(gates[0].at("kept") == true);
  CHECK(gates[0].at("margin").get<double>() == Approx(16 - 15.77));
  CHECK(gates[1].at("kept") == false);
  CHECK(gates[1].at("margin").get<double>() == Approx(0.505 - 0.6));
  CHECK(to_text(broken_gates(r)) == "s.yaml:8:9: error: gate broken: mfu is 50.5%\n    hint: expected at least 60%\n");
  std::ostringstream out;
  write_text(out, page(r));
  CHECK(out.str().find("max 16 s") != std::string::npos);
  CHECK(out.str().find("BROKEN") != std::string::npos);
}
