// A step's gates: which way each figure is held, and what the document says of it.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

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

TEST_CASE("every figure that can have a gate is a key of the step document") {
  StepReport served = report({});
  served.inputs->serving.emplace();
  served.result.inference.emplace();
  const Json trained = Json::parse(json(report({}))), inference = Json::parse(json(served));
  for (const GateFigure& figure : gate_figures()) {
    INFO(figure.name);
    const Json& document = figure.of == GateFigure::Of::inference ? inference : trained;
    const std::string name(figure.name);
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
