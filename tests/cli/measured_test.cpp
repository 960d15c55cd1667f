// What a step took that somebody ran, and the scale of its kernels that says so.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/called.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

TEST_CASE("the scale that --measured finds makes the step as measured") {
  for (const std::string step : {"step llama3-70b-64xh100", "step llama3-8b-fsdp-64xh100 --method estimate",
                                 "step gpt3-512gpu --library ideal", "step mixtral-8x7b-64xh100 --method estimate"}) {
    const double forecast = document_of(step)["step_s"];
    for (const double factor : {0.8, 1.0, 1.3}) {
      const double measured = factor * forecast;
      const Json doc = document_of(step + " --measured " + std::to_string(measured) + "s");
      CAPTURE(step, factor, doc["measured"].dump());
      CHECK(doc["step_s"] == forecast);
      CHECK(doc["measured"]["error"].get<double>() == Approx(1 / factor - 1).margin(1e-5));
      const double scale = doc["measured"]["kernel_scale"];
      CHECK((scale > 1.0001) == (factor > 1.0001));
      const Json again = document_of(step + " --set topology.gpu.kernel_scale=" + std::to_string(scale));
      // By closed form; a simulation beside it may part by what it parts by already.
      CHECK(again["estimate_s"].get<double>() / document_of(step)["estimate_s"].get<double>() ==
            Approx(factor).epsilon(1e-4));
      if (factor != 1.0) CHECK(again["inputs"]["kernels"]["scale"].get<double>() == Approx(scale).epsilon(1e-5));
    }
  }
}

TEST_CASE("a scale is of every kernel, and of nothing else") {
  const Json plain = document_of("step llama3-70b-64xh100 --method estimate"),
             scaled = document_of("step llama3-70b-64xh100 --method estimate --set topology.gpu.kernel_scale=1.5");
  for (const char* pass : {"forward", "backward"})
    for (std::size_t i = 0; i < plain["operations"][pass].size(); ++i)
      CHECK(scaled["operations"][pass][i]["time_s"].get<double>() ==
            Approx(1.5 * plain["operations"][pass][i]["time_s"].get<double>()));
  const auto computing = [](const Json& doc) {
    return doc["breakdown"]["compute_s"].get<double>() - doc["slowdown"]["dp_s"].get<double>();
  };
  CHECK(computing(scaled) == Approx(1.5 * computing(plain)).epsilon(1e-6));
  CHECK(scaled["breakdown"]["optimizer_s"].get<double>() ==
        Approx(1.5 * plain["breakdown"]["optimizer_s"].get<double>()).epsilon(1e-6));
  for (std::size_t i = 0; i < plain["collectives"].size(); ++i)
    CHECK(scaled["collectives"][i]["time_s"] == plain["collectives"][i]["time_s"]);
  const Json served = document_of("step llama3-70b-inference-8xh100 --method estimate"),
             slower =
                 document_of("step llama3-70b-inference-8xh100 --method estimate --set topology.gpu.kernel_scale=1.5");
  for (std::size_t i = 0; i < served["inference"]["decode"]["operations"].size(); ++i)
    CHECK(slower["inference"]["decode"]["operations"][i]["time_s"].get<double>() ==
          Approx(1.5 * served["inference"]["decode"]["operations"][i]["time_s"].get<double>()));
}

TEST_CASE("a kernel's level is told: roofline, or as measured") {
  const std::string page = call("step llama3-70b-64xh100 --method estimate --operations").out;
  CHECK_THAT(page, Contains("as measured") && Contains("memory    roofline"));
  CHECK_THAT(call("step llama3-70b-64xh100 --method estimate --operations --set topology.gpu.kernel_scale=1.5").out,
             Contains("all times x 1.5 (gpu.kernel_scale)"));
}

TEST_CASE("a measured time that is none, or of what is no training step") {
  CHECK_THAT(call("step llama3-70b-64xh100 --measured 2s --method estimate").out,
             Contains("no scale of its kernels from 0.1 to 10 makes it that"));
  for (const std::string time : {"0s", "-1s", "5", "fast"}) {
    const Called called = call("step llama3-70b-64xh100 --measured " + time);
    CHECK(called.exit == 2);
    CHECK_THAT(called.err,
               Contains("--measured " + time + ":1:12: error: '" + time + "' is no time that a step takes"));
  }
  for (const std::string other : {"llama3-70b-inference-8xh100", "overlap-175b-layer"})
    CHECK_THAT(call("step " + other + " --measured 2s").err, Contains("--measured is the time of a training step"));
  CHECK_THAT(call("step llama3-70b-64xh100 --measured 18s --sweep layout.tp=4,8").err,
             Contains("--measured is of one step, and a sweep has several"));
  CHECK_THAT(call("step llama3-70b-64xh100 --set topology.gpu.kernel_scale=0").err,
             Contains("expected a number from 0.1 to 10"));
}

TEST_CASE("a GPU with less power than usual computes slower, and every command warns by how much and how roughly") {
  const std::string step = "step llama3-70b-64xh100 --method estimate", limit = " --set topology.gpu.power_limit=";
  const Json usual = document_of(step), less = document_of(step + limit + "51.2%");
  CHECK(less["inputs"]["kernels"]["power_limit"] == 0.512);
  CHECK_FALSE(usual["inputs"]["kernels"].contains("power_limit"));
  const auto rate = [](const Json& of) { return of["inputs"]["kernels"]["gemm"]["compute"].get<double>(); };
  CHECK(rate(less) == Approx(0.8 * rate(usual)));
  CHECK(less["step_s"].get<double>() > usual["step_s"].get<double>());
  CHECK(less["step_s"].get<double>() < usual["step_s"].get<double>() / 0.8);
  const auto warned = Contains(
      "GPUs at 51.2% of their usual power (gpu.power_limit): products and attention at 0.8 of "
      "the clock, its cube root, which is rough");
  CHECK_THAT(less["warnings"].dump(), warned);
  for (const std::string& other : {step, std::string("plan llama3-70b-64xh100 --simulate 0 --top 1"),
                                   step + " --sweep training.recompute=none,full",
                                   std::string("step llama3-70b-inference-8xh100 --method estimate")})
    CHECK_THAT(call(other + limit + "51.2%").err, warned);
  CHECK_THAT(call("topology show dgx-h100 --set gpu.power_limit=51.2%").out,
             Contains("power limit") && Contains("51.2%"));
  CHECK_THAT(call("explain step llama3-70b-64xh100 --method estimate" + limit + "51.2%").out,
             Contains("of the clock (gpu.power_limit)"));
  const Called refused = call(step + limit + "10%");
  CHECK(refused.exit == 2);
  CHECK_THAT(refused.err, Contains("10%") && Contains("from 30% to 100%"));
  CHECK(call(step + limit + "101%").exit == 2);
}
