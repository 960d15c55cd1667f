// Between what a step is on a calibrated machine.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace collcast::test;
using Catch::Contains;

namespace {

std::string overlay(const std::string& machine, const std::string& residuals) {
  return "schema: collcast.overlay.v1\nfitted_by: \"collcast 0.1.0\"\nmachines:\n  - machine: " + machine +
         "\n    library: nccl\n    factors: {launch: 1}\n" + residuals;
}
const std::string spread =
    "    median_error:\n"
    "      small: {rows: 9, before: 0.2, after: 0.1, low: 0.75, high: 1.5}\n"
    "      medium: {rows: 9, before: 0.2, after: 0.1, low: 0.75, high: 1.5}\n"
    "      large: {rows: 9, before: 0.2, after: 0.1, low: 0.5, high: 2}\n";

nlohmann::json step(const Folder& folder, const std::string& words) {
  const Outcome run = run_shell("collcast step " + words + " --overlay o.yaml --format json", folder.path());
  INFO(run.err);
  REQUIRE(run.exit == 0);
  return nlohmann::json::parse(run.out);
}

}  // namespace

TEST_CASE("a step on a calibrated machine is between that with all collectives short and with all long") {
  const Folder folder;
  folder.write("o.yaml", overlay("dgx-a100", spread));
  // Nothing of TP is beside anything, and its messages are large, 2 B x 2048 x 4 x 6144 = 96 MiB: half of its time
  // less, or once more of it.
  const nlohmann::json doc = step(folder, "korthikanti-22b-layer --what-if exposed");
  const double exposed = doc["breakdown"]["tp_exposed_s"], whole = doc["step_s"];
  REQUIRE(exposed > 0.01 * whole);
  CHECK(doc["interval"]["step"]["low_s"].get<double>() == Approx(whole - 0.5 * exposed).epsilon(1e-9));
  CHECK(doc["interval"]["step"]["high_s"].get<double>() == Approx(whole + exposed).epsilon(1e-9));
  CHECK_FALSE(doc["interval"].contains("ttft"));
  const std::string page = run_shell("collcast step korthikanti-22b-layer --overlay o.yaml", folder.path()).out +
                           run_shell("collcast explain step korthikanti-22b-layer --overlay o.yaml", folder.path()).out;
  CHECK_THAT(page, Contains("8 of 10 measurements") && Contains("the step takes "));
}

TEST_CASE("a forecast outside its own interval is said to be, wherever the interval is printed") {
  const Folder folder;
  const std::string unheld =
      "    median_error:\n"
      "      small: {rows: 9, before: 0.2, after: 0.1, low: 1.5, high: 2}\n"
      "      medium: {rows: 9, before: 0.2, after: 0.1, low: 1.5, high: 2}\n"
      "      large: {rows: 9, before: 0.2, after: 0.1, low: 1.5, high: 2}\n";
  const std::string a100 = " --topology dgx-a100 --size 1MiB", layer = " korthikanti-22b-layer --what-if exposed";
  const std::string plan = " llama3-8b-8xh100 --tp 2 --pp 1 --dp 4 --micro-batch 1 --recompute none --zero 1";
  for (const std::string& command : {"collective all_reduce" + a100, "explain collective all_reduce" + a100,
                                     "step" + layer, "explain step" + layer, "plan" + plan}) {
    INFO(command);
    const std::string machine = command.starts_with("plan") ? "dgx-h100" : "dgx-a100";
    const auto outside = [&](const std::string& residuals) {
      folder.write("o.yaml", overlay(machine, residuals));
      const Outcome run = run_shell("collcast " + command + " --overlay o.yaml", folder.path());
      REQUIRE(run.exit == 0);
      CHECK(run.out.find("8 of 10") != std::string::npos);
      return run.out.find("the forecast itself is outside: the measurements lay elsewhere") != std::string::npos;
    };
    CHECK(outside(unheld));
    CHECK_FALSE(outside(spread));
  }
}

TEST_CASE("library ideal's prices have the interval behind the calibration's base latency") {
  const Folder folder;
  folder.write("o.yaml",
               "schema: collcast.overlay.v1\nfitted_by: \"collcast 0.1.0\"\nmachines:\n  - machine: dgx-a100\n"
               "    base_latency: 20us\n    latency_scale: 1\n    efficiency: {nvlink: 1, pcie: 1, network: 1}\n" +
                   spread);
  const nlohmann::json doc = step(folder, "korthikanti-22b-layer --what-if exposed --library ideal --method estimate");
  const double exposed = doc["breakdown"]["tp_exposed_s"], whole = doc["step_s"];
  CHECK(doc["interval"]["step"]["low_s"].get<double>() == Approx(whole - 0.5 * exposed).epsilon(1e-9));
  CHECK(doc["interval"]["step"]["high_s"].get<double>() == Approx(whole + exposed).epsilon(1e-9));
}

TEST_CASE("of a batch that is served both of its times have an interval") {
  const Folder folder;
  folder.write("o.yaml", overlay("dgx-h100", spread));
  const nlohmann::json doc = step(folder, "llama3-70b-inference-8xh100");
  for (const char* time : {"ttft", "tpot"}) {
    INFO(time);
    const nlohmann::json& span = doc["interval"][time];
    const double is = doc[std::string(time) + "_s"];
    CHECK(span["low_s"].get<double>() < is);
    CHECK(span["high_s"].get<double>() > is);
  }
}

TEST_CASE("a plan's layouts have the intervals that their steps have, and say which is the best at either end") {
  const Folder folder;
  folder.write("o.yaml", overlay("dgx-h100", spread));
  const std::string plan =
      "collcast plan llama3-70b-64xh100 --tp 4,8 --recompute none --sequence-parallel true --zero 1 --micro-batch 1 "
      "--simulate 2 --overlay o.yaml";
  const nlohmann::json doc = nlohmann::json::parse(run_shell(plan + " --format json", folder.path()).out);
  REQUIRE(doc["ranked"].size() > 2);
  int compared = 0;
  for (const nlohmann::json& layout : doc["ranked"]) {
    const double is = layout["step_s"], low = layout["interval"]["low_s"], high = layout["interval"]["high_s"];
    CHECK(low < is);
    CHECK(high > is);
    if (layout["tp"] != 8 || layout["pp"] != 4) continue;  // the scenario's own layout
    ++compared;
    const nlohmann::json own =
        step(folder, "llama3-70b-64xh100 --method estimate --set training.zero=1")["interval"]["step"];
    const double scale = is / layout["estimate_s"].get<double>();
    CHECK(low == Approx(scale * own["low_s"].get<double>()).epsilon(1e-9));
    CHECK(high == Approx(scale * own["high_s"].get<double>()).epsilon(1e-9));
  }
  CHECK(compared == 1);
  CHECK_THAT(run_shell(plan, folder.path()).out,
             Contains("8 of 10") && (Contains("best at either end") || Contains("would be the best")));
  CHECK_THAT(run_shell(plan + " --format csv", folder.path()).out, Contains(",interval.low_s,interval.high_s,"));
  folder.write("o.yaml", overlay("dgx-h100", ""));
  CHECK(run_shell(plan + " --format json", folder.path()).out.find("interval") == std::string::npos);
}

TEST_CASE("an overlay that does not say how far measurements were gives no interval") {
  const Folder folder;
  folder.write("o.yaml", overlay("dgx-a100", ""));
  CHECK_FALSE(step(folder, "korthikanti-22b-layer").contains("interval"));
}
