// A step at several points: --sweep, a scenario's own sweep, --what-if all.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "cli/called.hpp"
#include "cli/process.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

Json document(const std::string& command) {
  const Called called = call(command + " --format json");
  CAPTURE(command, called.err);
  REQUIRE(called.exit == 0);
  return Json::parse(called.out);
}

}  // namespace

TEST_CASE("each row of a sweep is what the step says with its values set") {
  for (const std::string step : {"step llama3-70b-64xh100", "step llama3-70b-inference-8xh100 --method estimate"}) {
    const bool serves = step.find("inference") != std::string::npos;
    const std::string batch = serves ? "inference.batch" : "batch.micro_batch";
    const Json sweep = document(step + " --sweep " + batch + "=1:4:x2 --sweep layout.tp=4,8");
    CHECK(sweep["schema"] == "collcast.sweep.v1");
    CHECK(sweep["axes"] == Json({batch, "layout.tp"}));
    REQUIRE(sweep["rows"].size() == 6);
    std::size_t row = 0;
    for (const std::string value : {"1", "2", "4"})
      for (const std::string tp : {"4", "8"}) {
        const Json& point = sweep["rows"][row++];
        CHECK(point["values"] == Json({{batch, value}, {"layout.tp", tp}}));
        const Called alone = call(step + " --set " + batch + "=" + value + " --set layout.tp=" + tp + " --format json");
        CHECK((alone.exit == 0) == point["reason"].is_null());
        if (alone.exit != 0) {
          CHECK(point["step_s"].is_null());
          continue;
        }
        const Json one = Json::parse(alone.out);
        for (const char* figure :
             {"step_s", "estimate_s", "simulate_s", "tokens_per_s_per_gpu", "gpus", "mfu", "memory"})
          CHECK(point[figure] == one[figure]);
        for (const char* figure : {"ttft_s", "tpot_s", "tokens_per_s"})
          CHECK(point[figure] == (serves ? one[figure] : Json()));
        CHECK(point["breakdown"] == (serves ? one["inference"]["decode"]["breakdown"] : one["breakdown"]));
      }
  }
}

TEST_CASE("a scenario's own sweep is run, unless --sweep or --set says otherwise") {
  const std::string step = "step llama3-70b-batches-8xh100 --method estimate";
  CHECK(document(step)["rows"].size() == 10);
  const Json other = document(step + " --sweep layout.tp=4,8");
  CHECK(other["axes"] == Json({"layout.tp"}));
  const Json fixed = document(step + " --set inference.prompt_tokens=512");
  CHECK(fixed["axes"] == Json({"inference.batch"}));
  CHECK(document(step + " --set inference.prompt_tokens=512 --set inference.batch=2")["schema"] == "collcast.step.v1");
  // Elsewhere it has no effect, and that is said.
  CHECK_THAT(call("report --method estimate llama3-70b-batches-8xh100").err,
             Contains("warning: the scenario's sweep has no effect here"));
}

TEST_CASE("all variants stand beside the scenario as it is") {
  const Json all = document("step gpt3-512gpu --what-if all --method estimate");
  CHECK(all["axes"] == Json({"what_if"}));
  REQUIRE(all["rows"].size() == 5);
  CHECK(all["rows"][0]["values"]["what_if"].is_null());
  CHECK(all["rows"][0]["step_s"] == document("step gpt3-512gpu --method estimate")["step_s"]);
  for (std::size_t i = 1; i < 5; ++i) {
    const std::string variant = all["rows"][i]["values"]["what_if"];
    CHECK(all["rows"][i]["step_s"] == document("step gpt3-512gpu --method estimate --what-if " + variant)["step_s"]);
  }
  const std::string page = call("step gpt3-512gpu --what-if all --method estimate").out;
  CHECK_THAT(page, Contains("as it is") && Contains("difference") && Contains("tp-across-nodes"));
  CHECK(document("step gpt3-512gpu --what-if all --sweep layout.dp=4,8 --method estimate")["rows"].size() == 10);
  CHECK_THAT(call("step llama3-70b-batches-8xh100 --what-if all").err, Contains("this scenario has no variants"));
}

TEST_CASE("points that cannot be are told with the reason; where none can, that is the error") {
  const Called some = call("step llama3-70b-64xh100 --method estimate --sweep layout.tp=3,8,5 --sweep nodes=1,8");
  CHECK(some.exit == 0);
  CHECK_THAT(some.out, Contains("what cannot be") && Contains("tp 3 does not divide heads 64"));
  CHECK_THAT(some.out, !Contains("/scenarios/"));
  const Called none = call("step llama3-70b-64xh100 --sweep layout.tp=3,5");
  CHECK(none.exit == 2);
  CHECK_THAT(none.err,
             Contains("--sweep layout.tp=3,5:1:") && Contains("error: sweep at layout.tp=3: tp 3 does not divide"));
  const Called typo = call("step llama3-70b-64xh100 --sweep layout.tpp=2,4");
  CHECK(typo.exit == 2);
  CHECK_THAT(typo.err,
             Contains("--sweep layout.tpp=2,4:1:16: error: sweep at layout.tpp=2: unknown path 'layout.tpp'") &&
                 Contains("did you mean 'layout.tp'?"));
}

TEST_CASE("what is of one step, set twice or too much is refused, all at once") {
  const Called called = call(
      "step llama3-70b-64xh100 --sweep layout.tp=4,8 --trace t.json --operations --unfolded --write-schedule s.yaml");
  CHECK(called.exit == 2);
  for (const char* option : {"--trace", "--operations", "--unfolded", "--write-schedule"})
    CHECK_THAT(called.err, Contains(std::string(option) + " is of one step, and a sweep has several"));
  CHECK_THAT(call("step llama3-70b-64xh100 --sweep layout.tp=4,8 --set layout.tp=2").err,
             Contains("--sweep layout.tp=4,8:1:9: error: 'layout.tp' is set and swept"));
  CHECK_THAT(call("step llama3-70b-64xh100 --sweep layout.tp=4 --sweep layout.tp=8").err,
             Contains("'layout.tp' is swept twice"));
  CHECK_THAT(call("step llama3-70b-64xh100 --sweep batch.micro_batch=1:900:+1 --sweep layout.tp=4,8").err,
             Contains("the sweep has more than 1000 points"));
  CHECK_THAT(call("step gpt3-512gpu --what-if all --sweep batch.micro_batch=1:900:+1").err,
             Contains("variants and sweep have more than 1000 points"));
}

TEST_CASE("a sweep whose time is over says what is done") {
  const Called none = call("step llama3-70b-64xh100 --sweep layout.tp=4,8 --time-limit 1ns");
  CHECK(none.exit == 2);
  CHECK_THAT(none.err, Contains("no point of the sweep was done"));
  // Seconds of points, of which some are done in a quarter of one.
  const Called some =
      call("step llama3-70b-64xh100 --sweep batch.global_batch=128:30000:+128 --time-limit 250ms --format json");
  if (some.exit == 0) {
    const Json doc = Json::parse(some.out);
    CHECK(doc["partial"] == true);
    CHECK(doc["rows"].size() < 234);
    CHECK_THAT(some.err, Contains("of 234 points are done"));
  }
}

TEST_CASE("sweeps are compared and reported point by point, and read as CSV") {
  const Folder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string step = "step llama3-70b-64xh100 --method estimate --sweep layout.tp=3,4,8";
  REQUIRE(call(step + " --output " + path("a.json")).exit == 0);
  REQUIRE(call(step + " --link-bandwidth 100Gb/s --output " + path("b.json")).exit == 0);
  CHECK(call("compare " + path("a.json") + " " + path("a.json")).exit == 0);
  const Called slower = call("compare " + path("a.json") + " " + path("b.json") + " --format json");
  CHECK(slower.exit == 1);
  CHECK_THAT(slower.out, Contains("layout.tp=8") && Contains("layout.tp=4") && !Contains("layout.tp=3"));
  CHECK_THAT(call("report " + path("a.json") + " --format markdown").out, Contains("layout.tp=8"));
  const std::string csv = call(step + " --format csv").out;
  CHECK(csv.find("layout.tp,step_s,estimate_s,simulate_s,") == 0);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
}
