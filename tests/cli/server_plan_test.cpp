// collcast plan of a server as called: the first place beside `collcast step` of every layout, what it carries, and
// every way to get it wrong.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/called.hpp"

using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

const std::string served = "llama3-70b-inference-8xh100";

std::string set_to(const std::string& path, const Json& value) { return " --set " + path + "=" + value.dump(); }

/// The options of `collcast step` that make it a layout of the plan.
std::string as_step(const Json& l) {
  return set_to("layout.tp", l["tp"]) + set_to("layout.pp", l["pp"]) + set_to("layout.dp", l["dp"]) +
         set_to("inference.batch", l["batch"]) + set_to("inference.microbatches", l["microbatches"]);
}

std::string scenario_file(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::temp_directory_path() / name;
  std::ofstream(file) << text;
  return file.string();
}

const std::string own_server =
    "schema: collcast.scenario.v1\nname: own\ntopology: dgx-h100\nnodes: 1\nmodel: {layers: 8, hidden: 1024, heads: "
    "16, "
    "ffn: 4096, vocab: 32000}\nlayout: {tp: 2}\n";

}  // namespace

TEST_CASE("the first of a server's plan is the best of running `step` on every layout of it") {
  for (const char* method : {"estimate", "simulate"}) {
    const Json plan = document_of("plan " + served + " --batch 4,32 --method " + method);
    CHECK(plan["schema"] == "collcast.plan.v1");
    CHECK(plan["objective"] == "tokens_per_s_per_gpu");
    REQUIRE(plan["ranked"].size() == plan["feasible"]);
    double most = 0, shortest = 1e300;
    int fitting = 0;
    for (int tp = 1; tp <= 8; tp *= 2)
      for (int pp = 1; tp * pp <= 8; pp *= 2)
        for (const int batch : {4, 32})
          for (int cut = 1; cut <= batch; cut *= 2) {
            const Json layout{{"tp", tp}, {"pp", pp}, {"dp", 8 / tp / pp}, {"batch", batch}, {"microbatches", cut}};
            const Json step = document_of("step " + served + as_step(layout) + " --method " + method);
            if (step["memory"]["peak_bytes"] > step["memory"]["capacity_bytes"]) continue;
            ++fitting;
            most = std::max(most, step["tokens_per_s_per_gpu"].get<double>());
            shortest = std::min(shortest, step["tpot_s"].get<double>());
          }
    CHECK(plan["feasible"] == fitting);
    CHECK(plan["ranked"][0]["tokens_per_s_per_gpu"].get<double>() == Approx(most).epsilon(1e-9));
    const Json prompt = document_of("plan " + served + " --batch 4,32 --objective tpot --method " + method);
    CHECK(prompt["ranked"][0]["tpot_s"].get<double>() == Approx(shortest).epsilon(1e-9));
    // Every one of them is the step's own figures.
    for (const std::size_t i : {std::size_t{0}, plan["ranked"].size() / 2, plan["ranked"].size() - 1}) {
      const Json& l = plan["ranked"][i];
      const Json step = document_of("step " + served + as_step(l) + " --method " + method);
      for (const char* figure : {"ttft_s", "tpot_s", "tokens_per_s", "tokens_per_s_per_gpu", "step_s"})
        CHECK(l[figure].get<double>() == Approx(step[figure].get<double>()).epsilon(1e-9));
      CHECK(l["memory"] == step["memory"]);
      for (const char* phase : {"prefill", "decode"})
        for (const auto& [part, time] : l[phase]["breakdown"].items())
          CHECK(time.get<double>() ==
                Approx(step["inference"][phase]["breakdown"][part].get<double>()).epsilon(1e-9).margin(1e-11));
      CHECK(l["mfu"].is_null());
    }
  }
}

TEST_CASE("limits of a server's plan are its scenario's gates, or those of the options in their place") {
  const auto ttfts = [](const std::string& more) {
    const Json plan = document_of("plan " + served + " --simulate 0" + more);
    double most = 0;
    for (const Json& l : plan["ranked"]) most = std::max(most, l["ttft_s"].get<double>());
    return std::pair(most, plan["feasible"].get<int>());
  };
  const auto [most, all] = ttfts("");
  CHECK(most > 3);
  CHECK(ttfts(" --set gates.ttft_s.max=3s").first <= 3);
  CHECK(ttfts(" --max-ttft 3s") == ttfts(" --set gates.ttft_s.max=3s"));
  CHECK(ttfts(" --set gates.ttft_s.max=1s --max-ttft 3s") == ttfts(" --max-ttft 3s"));
  const Json none = document_of("plan " + served + " --simulate 0 --max-tpot 1us");
  CHECK(none["feasible"] == 0);
  CHECK(none["limits"] == Json::parse(R"([{"figure": "tpot_s", "bound": "max", "limit": 1e-06}])"));
  CHECK(none["nearest_to_limits"]["excess"] == Approx(none["nearest_to_limits"]["tpot_s"].get<double>() / 1e-6));
  CHECK_THAT(call("plan " + served + " --simulate 0 --max-tpot 1us").out,
             Contains("no layout that fits keeps the limits; the nearest, TP 8 x PP 1 x DP 1, batch 16"));
}

TEST_CASE("percentiles of a run of requests limit and rank a server's plan, which tells them and the run") {
  const std::string run = "plan " + served + " --simulate 0 --what-if benchmark-run --batch 16,32,64";
  const Json all = document_of(run), kept = document_of(run + " --max-ttft p99=2s,p50=1s --objective ttft.p99");
  CHECK(kept["feasible"] < all["feasible"]);
  CHECK(kept["objective"] == "ttft.p99");
  CHECK(kept["limits"][0]["figure"] == "ttft.p99_s");
  double last = 0;
  for (const Json& l : kept["ranked"]) {
    const double p99 = l["load"]["ttft"]["p99_s"];
    CHECK(p99 <= 2);
    CHECK(p99 >= last);
    last = p99;
  }
  // The scenario's gates are limits, too, of the same layouts; an option takes the place of its own alone.
  CHECK(document_of(run + " --set gates.ttft_s.p99.max=2s")["feasible"] == kept["feasible"]);
  CHECK(document_of(run + " --max-ttft 'p99=2s, p50=1s' --objective ttft.p99") == kept);
  CHECK(document_of(run + " --set gates.ttft_s.p99.max=1ms --max-ttft p99=2s")["feasible"] == kept["feasible"]);
  CHECK(document_of(run + " --set gates.ttft_s.p99.max=1ms --max-ttft 2s")["feasible"] == 0);
  const std::string page = call(run + " --max-ttft p99=2s").out;
  CHECK_THAT(page,
             Contains("  TTFT  TTFT p99  ") && Contains("ttft.p99_s is above its limit, 2 s") &&
                 Contains("each replica serves a run: as many clients as its batch at once, ten requests of each, "
                          "of 80% of these lengths and more, at most 8192 tokens in a pass"));
  CHECK_THAT(call(run + " --format csv").out, Contains(",load.ttft.p99_s,"));
}

TEST_CASE("a percentile without a run of requests is answered with the same goal without one") {
  const std::string plan = "plan " + served + " --simulate 0 ";
  for (const auto& [goal, without] :
       {std::pair("--objective ttft.p99", "--objective ttft"),
        std::pair("--objective tpot.longest", "--objective tpot"), std::pair("--max-ttft p99=2s", "--max-ttft 2s"),
        std::pair("--max-tpot p50=9ms", "--max-tpot 50ms")}) {
    const Called called = call(plan + goal);
    CHECK(called.exit == 2);
    CHECK_THAT(called.err, Contains(std::string("or a goal without a statistic, such as ") + without + "\n"));
    CHECK(call(plan + without).exit == 0);
  }
}

TEST_CASE("what a server's plan searches comes from its file, options and settings, in that order") {
  const std::string serving = "inference: {batch: 8, prompt_tokens: 64, output_tokens: 4}\n";
  const std::string file = scenario_file(
      "server-plan.yaml", own_server + serving + "search: {tp: [2, 4], batch: [2, 6], micro_batch: [1, 2]}\n");
  const Json plan = document_of("plan " + file + " --simulate 0 --pp 1");
  for (const Json& l : plan["ranked"]) {
    CHECK((l["tp"] == 2 || l["tp"] == 4));
    CHECK((l["batch"] == 2 || l["batch"] == 6));
    CHECK(l["microbatch"] <= 2);
  }
  CHECK(plan["feasible"] == 8);
  CHECK(document_of("plan " + file + " --simulate 0 --pp 1 --batch 4")["feasible"] == 4);
  const Json kept =
      document_of("plan " + served + " --simulate 0 --set inference.batch=8 --set inference.microbatches=2");
  for (const Json& l : kept["ranked"]) CHECK((l["batch"] == 8 && l["microbatch"] == 4));
  CHECK(kept["notes"].size() == 2);

  CHECK_THAT(
      call("plan " + scenario_file("wrong.yaml", own_server + serving + "search: {zero: [1], batch: [0]}\n")).err,
      Contains("wrong.yaml:8:10: error: 'search.zero' has no meaning here") &&
          Contains("the scenario is of 'inference'") && Contains("'0'"));
  CHECK_THAT(call("plan " + scenario_file("trains.yaml", own_server + "batch: {sequence: 64, global_batch: 8}\n"
                                                                      "search: {batch: [4]}\n"))
                 .err,
             Contains("trains.yaml:8:10: error: 'search.batch' has no meaning here") &&
                 Contains("the scenario is not of 'inference'"));
}

TEST_CASE("options of training have no place in a server's plan, nor a server's in one of training") {
  for (const char* option : {"--recompute none", "--zero 1", "--cp 2", "--vpp 2", "--why tp=8,zero=1",
                             "--why recompute=full", "--why cp=2", "--why vpp=2"}) {
    INFO(option);
    const Called wrong = call("plan " + served + " " + option);
    CHECK(wrong.exit == 2);
    CHECK(wrong.out.empty());
    CHECK_THAT(wrong.err, Contains("is of training, and the scenario is of inference"));
  }
  for (const char* option : {"--batch 4", "--objective tpot", "--max-ttft 1s", "--max-tpot 1s", "--why batch=4"}) {
    INFO(option);
    const Called wrong = call(std::string("plan llama3-8b-8xh100 --simulate 0 ") + option);
    CHECK(wrong.exit == 2);
    CHECK_THAT(wrong.err, Contains("is of a server, and the scenario trains"));
  }
  // All of it at once.
  const std::string both = call("plan " + served + " --zero 1 --vpp 2").err;
  CHECK_THAT(both, Contains("--zero is of training") && Contains("--vpp is of training"));
}

TEST_CASE("values of a server's plan that are none are told with what was expected") {
  for (const auto& [option, said] : {std::pair("--objective tptt", "did you mean 'tpot'?"),
                                     {"--objective fast", "tokens_per_s_per_gpu"},
                                     {"--max-ttft 5", "expected a time above 0, such as 50ms"},
                                     {"--max-ttft 0s", "'0s' is no time to keep"},
                                     {"--max-tpot fast", "'fast' is no time to keep"},
                                     {"--max-ttft p9=1s", "did you mean 'p90'?"},
                                     {"--max-ttft 1s,p99=x", ":1:15: error: 'x' is no time to keep"},
                                     {"--max-ttft '1s ,  p99=x'", ":1:18: error: 'x' is no time to keep"},
                                     {"--max-ttft '1s, p9=2s'", ":1:16: error: --max-ttft: unknown word 'p9'"},
                                     {"--max-ttft p99=1s,p99=2s", "'p99' has its limit already"},
                                     {"--max-ttft 1s,p99=2s", ":1:15: error: ttft.p99_s is of the requests of a run"},
                                     {"--objective tpot.p50", ":1:13: error: tpot.p50 is of the requests of a run"},
                                     {"--batch 0", "--batch"},
                                     {"--batch 100001", "100000"},
                                     {"--batch 4,x", "'x'"},
                                     {"--why batch=x", "'x'"},
                                     {"--why 1000", "there is no layout number 1000"}}) {
    INFO(option);
    const Called wrong = call("plan " + served + " --simulate 0 " + option);
    CHECK(wrong.exit == 2);
    CHECK_THAT(wrong.err, Contains(said));
  }
}

TEST_CASE("a server's plan is written in every format, reported, and compared") {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string words = "plan " + served + " --simulate 0 --batch 8,16 --why 2 --what-if all";
  for (const char* format : {"table", "markdown", "csv", "json"}) {
    const Called called = call(words + " --format " + format);
    CHECK(called.exit == 0);
    CHECK_THAT(called.out, Contains("tp"));
    CHECK(called.out == call(words + " --threads 3 --format " + format).out);
  }
  const std::string csv = call(words + " --format csv").out;
  CHECK_THAT(csv.substr(0, csv.find('\n')),
             Contains(",ttft_s,tpot_s,tokens_per_s,") && Contains("memory.kv_cache_bytes"));
  const std::string base = (folder / "server-base.json").string(), now = (folder / "server-now.json").string();
  REQUIRE(call("plan " + served + " --simulate 0 --format json --output " + base).exit == 0);
  REQUIRE(
      call("plan " + served + " --simulate 0 --set inference.kv_precision=fp8 --format json --output " + now).exit ==
      0);
  CHECK_THAT(call("report " + base + " --format markdown").out, Contains("ttft_s") && Contains("tpot_s"));
  CHECK(call("compare " + base + " " + base).exit == 0);
  CHECK_THAT(call("compare " + base + " " + now).out, Contains("tpot_s"));
}

TEST_CASE("on a calibrated machine a server's plan says between what its two times are, and which variant is best") {
  const Json plan = document_of("plan " + served + " --overlay nccl-tests --simulate 2 --top 3");
  for (const Json& l : plan["ranked"])
    for (const char* time : {"ttft", "tpot"}) {
      const Json& range = l[std::string(time) + "_interval"];
      CHECK(range["low_s"] <= range["high_s"]);
    }
  const Json step = document_of("step " + served + as_step(plan["ranked"][0]) + " --overlay nccl-tests");
  CHECK(plan["ranked"][0]["tpot_interval"]["low_s"].get<double>() ==
        Approx(step["interval"]["tpot"]["low_s"].get<double>()).epsilon(1e-9));
}
