// A step at several points: --sweep, a scenario's own sweep, --what-if all.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>

#include "cli/called.hpp"
#include "cli/process.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

TEST_CASE("each row of a sweep is what the step says with its values set") {
  for (const std::string step : {"step llama3-70b-64xh100", "step llama3-70b-inference-8xh100 --method estimate"}) {
    const bool serves = step.find("inference") != std::string::npos;
    const std::string batch = serves ? "inference.batch" : "batch.micro_batch";
    const Json sweep = document_of(step + " --sweep " + batch + "=1:4:x2 --sweep layout.tp=4,8");
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

TEST_CASE("percentiles of a run of requests are in a sweep, as the step says them, and a comparison breaks on them") {
  const Folder folder;
  const std::string step = "step llama3-70b-inference-8xh100 --what-if benchmark-run --method estimate";
  const std::string base = (folder.path() / "a.json").string(), now = (folder.path() / "b.json").string();
  REQUIRE(call(step + " --sweep inference.load.recv_interval=1,30 --output " + base).exit == 0);
  const Json sweep = document_of(step + " --sweep inference.load.recv_interval=1,30");
  for (const Json& point : sweep["rows"]) {
    const std::string interval = point["values"]["inference.load.recv_interval"];
    const Json one = document_of(step + " --set inference.load.recv_interval=" + interval);
    CHECK(point["load"] == one["inference"]["load"]);
  }
  CHECK(document_of("step llama3-70b-inference-8xh100 --method estimate --sweep inference.batch=1")["rows"][0]["load"]
            .is_null());
  CHECK_THAT(call(step + " --sweep inference.load.recv_interval=1,30").out,
             Contains("TTFT p99") && Contains("TPOT p99"));
  CHECK_THAT(call(step + " --sweep inference.load.recv_interval=1,30 --format csv").out, Contains(",load.tpot.p90_s,"));
  CHECK(call("compare " + base + " " + base).exit == 0);
  REQUIRE(call(step +
               " --set inference.load.max_batched_tokens=2048 --sweep inference.load.recv_interval=1,30 --output " +
               now)
              .exit == 0);
  const std::string all = " --tolerance 100% --tolerance ttft.p50_s=";
  CHECK(call("compare " + base + " " + now + all + "100%").exit == 0);
  const Called broken = call("compare " + base + " " + now + all + "0.1%");
  CHECK(broken.exit == 1);
  CHECK_THAT(broken.out, Contains("ttft.p50_s"));
}

TEST_CASE("a scenario's own sweep is run, unless --sweep or --set says otherwise") {
  const std::string step = "step llama3-70b-batches-8xh100 --method estimate";
  CHECK(document_of(step)["rows"].size() == 10);
  const Json other = document_of(step + " --sweep layout.tp=4,8");
  CHECK(other["axes"] == Json({"layout.tp"}));
  const Json fixed = document_of(step + " --set inference.prompt_tokens=512");
  CHECK(fixed["axes"] == Json({"inference.batch"}));
  CHECK(document_of(step + " --set inference.prompt_tokens=512 --set inference.batch=2")["schema"] ==
        "collcast.step.v1");
  // Elsewhere it has no effect, and that is said.
  CHECK_THAT(call("report --method estimate llama3-70b-batches-8xh100").err,
             Contains("warning: the scenario's sweep has no effect here"));
}

TEST_CASE("all variants stand beside the scenario as it is") {
  const Json all = document_of("step gpt3-512gpu --what-if all --method estimate");
  CHECK(all["axes"] == Json({"what_if"}));
  REQUIRE(all["rows"].size() == 5);
  CHECK(all["rows"][0]["values"]["what_if"].is_null());
  CHECK(all["rows"][0]["step_s"] == document_of("step gpt3-512gpu --method estimate")["step_s"]);
  for (std::size_t i = 1; i < 5; ++i) {
    const std::string variant = all["rows"][i]["values"]["what_if"];
    CHECK(all["rows"][i]["step_s"] == document_of("step gpt3-512gpu --method estimate --what-if " + variant)["step_s"]);
  }
  const std::string page = call("step gpt3-512gpu --what-if all --method estimate").out;
  CHECK_THAT(page, Contains("as it is") && Contains("difference") && Contains("tp-across-nodes"));
  CHECK(document_of("step gpt3-512gpu --what-if all --sweep layout.dp=4,8 --method estimate")["rows"].size() == 10);
  const Folder folder;
  folder.write("s.yaml",
               "schema: collcast.scenario.v1\nname: s\ntopology: ring\n"
               "tasks: {list: [{name: a, stream: c, duration: 1ms, category: compute}]}\n");
  const std::string file = (folder.path() / "s.yaml").string();
  CHECK_THAT(call("step " + file + " --what-if all").err, Contains("this scenario has no variants"));
  CHECK(document_of("step " + file + " --sweep tasks.list.0.duration=1ms,2ms")["rows"][1]["step_s"] == 0.002);
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
  CHECK_THAT(typo.err, Contains("--sweep layout.tpp=2,4:1:16: error: unknown path 'layout.tpp'") &&
                           Contains("did you mean 'layout.tp'?"));
  // Where none can be, every reason is there once.
  const Called all = call("step llama3-70b-64xh100 --sweep layout.tp=3,5 --sweep batch.micro_batch=1,2");
  CHECK(all.exit == 2);
  for (const std::string tp : {"tp 3 does not divide heads 64", "tp 5 does not divide heads 64"})
    CHECK(all.err.find(tp) != std::string::npos);
  CHECK(all.err.find("tp 3 does not divide heads 64") == all.err.rfind("tp 3 does not divide heads 64"));
}

TEST_CASE("values that no other can make right are errors at their places, all at once, and no point is run") {
  const std::string base = "step llama3-70b-64xh100 --method estimate";
  const Called typed = call(base + " --sweep training.precision=bf16,fp61 --sweep layout.tp=8,x --set nodes=none");
  CHECK(typed.exit == 2);
  CHECK(typed.out.empty());
  CHECK_THAT(typed.err, Contains("--sweep training.precision=bf16,fp61:1:33: error: training.precision is 'fp61'") &&
                            Contains("--sweep layout.tp=8,x:1:21: error: layout.tp is 'x'") &&
                            Contains("--set nodes=none:1:13: error: nodes is 'none'"));
  // What reads well and does not fit the rest is a row.
  const Called fits = call(base + " --sweep layout.tp=3,8");
  CHECK(fits.exit == 0);
  const Folder folder;
  folder.write("s.yaml",
               "schema: collcast.scenario.v1\nname: s\ntopology: dgx-h100\nnodes: 1\n"
               "model: {name: m, layers: 4, hidden: 1024, heads: 16, ffn: 4096, vocab: 32000}\nlayout: {dp: 4}\n"
               "batch: {sequence: 512, micro_batch: 2, global_batch: 8}\n"
               "sweep: {layout.dp: [2, z], training.zero: [7, 1]}\ntraining: {precision: bf16}\n");
  const std::string file = (folder.path() / "s.yaml").string();
  const Called own = call("step " + file + " --method estimate");
  CHECK(own.exit == 2);
  CHECK_THAT(own.err,
             Contains("s.yaml:8:24: error: layout.dp is 'z'") && Contains("s.yaml:8:44: error: training.zero is '7'"));
  // A path that is set is as it is set, and another sweep is in the place of the file's.
  CHECK(call("step " + file + " --method estimate --set layout.dp=2 --set training.zero=1").exit == 0);
  CHECK(call("step " + file + " --method estimate --sweep layout.dp=2,4").exit == 0);
}

TEST_CASE("what is swept need not be in the scenario") {
  const Folder folder;
  const std::string model = "{layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, gated_mlp: true";
  const auto write = [&](const std::string& name, const std::string& vocab) {
    folder.write(name, "schema: collcast.scenario.v1\nname: s\ntopology: dgx-h100\nnodes: 1\nmodel: " + model + vocab +
                           "}\nlayout: {tp: 8}\nbatch: {sequence: 4096, global_batch: 16}\n"
                           "what_if: {larger: {set: {batch.global_batch: 32}}}\n");
    return "step " + (folder.path() / name).string();
  };
  const std::string lacking = write("a.yaml", ""), whole = write("b.yaml", ", vocab: 1000");
  const std::string swept = " --sweep model.vocab=128000,32000,64000 --method estimate";
  const Json rows = document_of(lacking + swept)["rows"];
  CHECK(rows.size() == 3);
  CHECK(rows == document_of(whole + swept)["rows"]);
  CHECK(document_of(lacking + swept + " --what-if all")["rows"].size() == 6);
  // It is set beside all the same, and where no point can be, what is wrong is said.
  CHECK_THAT(call(lacking + swept + " --set model.vocab=8").err, Contains("'model.vocab' is set and swept"));
  const Called none = call(lacking + " --sweep model.vocab=32000,64000 --set layout.tp=3");
  CHECK_THAT(none.err, Contains("sweep at model.vocab=32000: ") && !Contains("is missing"));
  // A value that can never be is said, not that the scenario lacks what is swept.
  for (const char* values : {"x,32000", "32000,x"}) {
    const Called never = call(lacking + " --sweep model.vocab=" + values);
    CHECK(never.exit == 2);
    CHECK_THAT(never.err, Contains("model.vocab is 'x'") && !Contains("is missing"));
  }
  const std::string two = " --sweep layout.dp=1,2 --sweep model.vocab=32000,64000 --method estimate";
  CHECK(document_of(lacking + two)["rows"].size() == 4);
  CHECK_THAT(call(lacking + " --sweep layout.dp=1,2").err, Contains("required key 'vocab' is missing"));
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
  // Minutes of points: with more and more time some are done, and never all.
  Called some;
  for (const std::string limit : {"300ms", "1s", "3s", "9s"}) {
    some =
        call("step llama3-405b-16384xh100 --sweep batch.global_batch=4096:4000000:+4096 --format json --time-limit " +
             limit);
    if (some.exit == 0) break;
  }
  REQUIRE(some.exit == 0);
  const Json doc = Json::parse(some.out);
  CHECK(doc["partial"] == true);
  CHECK(doc["rows"].size() < 900);
  CHECK_THAT(some.err, Contains("of 976 points are done"));
}

TEST_CASE("variants and sweeps that set the same are refused, and so is what is set beside") {
  const Called variant = call("step llama3-70b-64xh100 --what-if all --sweep nodes=8,16");
  CHECK(variant.exit == 2);
  CHECK_THAT(variant.err, Contains("'nodes' is swept, and the variant 'half-cluster' sets 'nodes'"));
  const Folder folder;
  const auto shell = [&](const std::string& words) { return run_shell("collcast step " + words, folder.path()); };
  CHECK_THAT(shell("llama3-70b-64xh100 --sweep 'layout={tp: 8},{tp: 4}' --set layout.tp=2").err,
             Contains("error: 'layout' is swept, and 'layout.tp' set"));
  const Called library = call("step llama3-70b-64xh100 --sweep collectives.library=nccl,ideal --library nccl");
  CHECK_THAT(library.out + library.err, Contains("'ideal' contradicts --library nccl"));
  const Json both = document_of("step llama3-70b-64xh100 --method estimate --sweep collectives.library=nccl,ideal");
  CHECK(both["library"].is_null());
  CHECK(both["rows"][0]["library"] == "nccl");
  CHECK(both["rows"][1]["library"] == "ideal");
  CHECK(both["rows"][0]["step_s"] != both["rows"][1]["step_s"]);
  // A file's sweep gives way to --set on what it is within.
  const Outcome whole = shell(
      "llama3-70b-batches-8xh100 --set 'inference={batch: 4, prompt_tokens: 77, output_tokens: 5}' --format json");
  CHECK(Json::parse(whole.out)["schema"] == "collcast.step.v1");
}

TEST_CASE("the best is told where rows can be held against each other, and of what") {
  const auto page = [](const std::string& words) { return call("step " + words + " --method estimate").out; };
  CHECK_THAT(page("llama3-70b-64xh100 --sweep layout.pp=2,4"), Contains("tokens/s per GPU: ") || Contains("step: "));
  CHECK_THAT(page("llama3-70b-64xh100 --sweep batch.global_batch=64,512"),
             Contains("most tokens/s per GPU: batch.global_batch=512"));
  CHECK_THAT(page("llama3-70b-64xh100 --sweep model.layers=40,80"), !Contains("of those that fit"));
  CHECK_THAT(page("llama3-70b-64xh100 --sweep title=a,b"), !Contains("of those that fit"));
  CHECK_THAT(page("llama3-70b-inference-8xh100 --sweep layout.tp=4,8"), Contains("most tokens/s per GPU: layout.tp=4"));
  CHECK_THAT(page("llama3-70b-inference-8xh100 --sweep inference.batch=4,8"),
             Contains("most tokens/s: inference.batch=8"));
  CHECK_THAT(page("llama3-70b-batches-8xh100"), !Contains("of those that fit"));
}

TEST_CASE("what a stranger writes is shown, not sent to the terminal") {
  const Called called = call("step llama3-70b-64xh100 --method estimate --sweep title=\x1b[31m,b");
  CHECK(called.out.find('\x1b') == std::string::npos);
  CHECK(called.err.find('\x1b') == std::string::npos);
}

TEST_CASE("gates are not checked in a sweep, and that is said") {
  const Called called =
      call("step llama3-8b-8xh100 --method estimate --set gates.step_s.max=1ms --sweep batch.micro_batch=1,2");
  CHECK(called.exit == 0);
  CHECK_THAT(called.err, Contains("the scenario's gates are not checked in a sweep"));
}

TEST_CASE("a sweep has the inputs that its points share, which comparing names once") {
  const Folder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string step = "step llama3-70b-64xh100 --method estimate --sweep layout.tp=4,8";
  const Json inputs = document_of(step)["inputs"];
  CHECK(inputs["model"]["layers"] == 80);
  CHECK_FALSE(inputs["layout"].contains("tp"));  // differs
  CHECK(inputs["layout"].contains("cp"));
  CHECK(document_of("step overlap-175b-layer --what-if all")["inputs"].is_null());  // tasks
  REQUIRE(call(step + " --output " + path("a.json")).exit == 0);
  REQUIRE(call(step + " --set training.recompute=full --output " + path("b.json")).exit == 0);
  const Called compared = call("compare " + path("a.json") + " " + path("b.json") + " --tolerance 100% --format json");
  const Json result = Json::parse(compared.out)["results"][0];
  CHECK(result["inputs"] == Json::parse(R"([{"name": "inputs.options.recompute", "base": "none", "new": "full"}])"));
  for (const Json& row : result["rows"]) CHECK(row["choices"].empty());
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
  REQUIRE(call(step + " --library ideal --output " + path("c.json")).exit == 0);
  CHECK_THAT(call("compare " + path("a.json") + " " + path("c.json")).out, Contains("library") && Contains("ideal"));
  // Damaged by hand: what is of the wrong kind is an error at its place, what is missing is no crash.
  folder.write("axes.json", R"({"schema": "collcast.sweep.v1", "tool": {"version": "1"}, "scenario": "s", "title": "t",
    "rows": [{"step_s": "x", "values": {"a": "1"}}, 3, {"values": []}]})");
  const Called damaged = call("report " + path("axes.json"));
  CHECK(damaged.exit == 2);
  CHECK_THAT(damaged.err, Contains("axes.json:2:25: error"));
  folder.write("bare.json", R"({"schema": "collcast.sweep.v1", "tool": {"version": "1"}, "scenario": "s", "title": "t",
    "rows": [{"step_s": 1}, {"step_s": 2}]})");
  CHECK_THAT(call("report " + path("bare.json")).out + call("report " + path("bare.json")).err,
             Contains("point") || Contains("error"));
  const std::string csv = call(step + " --format csv").out;
  CHECK(csv.find("layout.tp,topology,library,step_s,estimate_s,simulate_s,") == 0);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
}

TEST_CASE("an MFU above the data sheet's peak has a warning in every command that shows steps, and no other has") {
  const std::string what = "more than a GPU can compute: check gpu.kernel_scale (0.1)";
  const std::string slow = "llama3-8b-8xh100 --set topology.gpu.kernel_scale=";
  for (const std::string command : {"step ", "plan --tp 2 --pp 1 --method estimate ", "explain step "}) {
    INFO(command);
    const Called told = call(command + slow + "0.1 --format json"), usual = call(command + slow + "1 --format json");
    CHECK((told.out.find(what) != std::string::npos && usual.out.find("than a GPU can") == std::string::npos));
  }
  const Called swept = call("step llama3-8b-8xh100 --sweep topology.gpu.kernel_scale=1,0.1,0.15");
  CHECK(swept.err.find("topology.gpu.kernel_scale=0.1: MFU is ") != std::string::npos);
  CHECK(swept.err.find("; so it is at 1 more point\n") != std::string::npos);
}

TEST_CASE("a faster NVLink makes no step with gradients of each micro-batch longer, zb-2p none than zb-h1") {
  const Folder folder;
  const std::string file = (folder.path() / "experts.yaml").string();
  std::ofstream(file) << R"(schema: collcast.scenario.v1
name: experts
topology: dgx-h100
ranks: 256
model: {hidden: 4096, ffn: 14336, layers: 8, heads: 32, vocab: 32000, gated_mlp: true,
        experts: {count: 16, top_k: 1, ffn: 2048, shared_ffn: 2048, dense_layers: 1}}
layout: {tp: 8, pp: 8, dp: 4, ep: 4, etp: 1, order: tp-cp-ep-dp-pp, sequence_parallel: true, schedule: zb-2p}
batch: {global_batch: 32, micro_batch: 1, sequence: 4096}
training: {precision: bf16, recompute: selective, overlap_ep: true, zero: 2}
)";
  const Json sweep = document_of("step " + file +
                                 " --method estimate --sweep layout.schedule=zb-h1,zb-2p"
                                 " --sweep topology.node.links.0.bandwidth=450GB/s,600GB/s,700GB/s,900GB/s");
  std::map<std::string, std::vector<double>> steps;
  for (const Json& point : sweep["rows"]) steps[point["values"]["layout.schedule"]].push_back(point["step_s"]);
  REQUIRE(steps["zb-h1"].size() == 4);
  REQUIRE(steps["zb-2p"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(steps["zb-2p"][i] <= steps["zb-h1"][i] * (1 + 1e-9));
    if (i > 0) CHECK(steps["zb-2p"][i] < steps["zb-2p"][i - 1]);
  }
}
