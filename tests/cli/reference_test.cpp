// The reference cases that scenarios are shipped for: each gives the figure that its file says is expected.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <sys/resource.h>

#include "cli/called.hpp"
#include "collcast/base/units.hpp"
#include "support/sample.hpp"

using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

Json step(const std::string& words) {
  const Called called = call("step " + words + " --format json");
  INFO(called.err);
  REQUIRE(called.exit == 0);
  return Json::parse(called.out);
}
double of(const Json& doc, const char* path) { return doc.at(Json::json_pointer(path)).get<double>(); }
double seconds(const Json& doc) { return of(doc, "/step_s"); }
double tflops(const Json& doc) { return of(doc, "/model_flops_per_s_per_gpu") / 1e12; }

}  // namespace

TEST_CASE("512 GPUs as TP 8 x PP 8 x DP 8: the groups of GPU 0") {
  const Json doc = Json::parse(call("groups --tp 8 --pp 8 --dp 8 --rank 0 --format json").out).at("rows").at(0);
  // rank = tp + 8 (pp + 8 dp)
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(doc.at("tp").at(i) == i);
    CHECK(doc.at("pp").at(i) == 8 * i);
    CHECK(doc.at("dp").at(i) == 64 * i);
  }
  CHECK(of(step("gpt3-512gpu --method estimate"), "/gpus") == 512);
}

TEST_CASE("TP inside a node, across two nodes, and strewn over eight") {
  const Json inside = step("gpt3-512gpu"), across = step("gpt3-512gpu --what-if tp-across-nodes"),
             strewn = step("gpt3-512gpu --what-if tp-strewn");
  CHECK_THAT(call("groups --tp 8 --pp 8 --dp 8 --rank 0 --order dp-pp-tp").out, Contains("0, 64"));
  CHECK(seconds(inside) < seconds(across));
  CHECK(seconds(across) < seconds(strewn));
  // A ring's messages go at the rate of its slowest link. Strewn, each of the eight groups of a node has one of the
  // node's eight NICs, 25 GB/s, where inside each GPU has 300 GB/s of NVLink: 12 times, less what NCCL does not take of
  // NVLink and latencies do of both.
  const double times = of(strewn, "/breakdown/tp_exposed_s") / of(inside, "/breakdown/tp_exposed_s");
  CHECK(times > 7);
  CHECK(times < 12);
  // What computes is the same, and the model.
  const auto computing = [](const Json& doc) { return of(doc, "/breakdown/compute_s") - of(doc, "/slowdown/dp_s"); };
  CHECK(computing(strewn) == Approx(computing(inside)));
  CHECK(of(strewn, "/memory/activations_bytes") == of(inside, "/memory/activations_bytes"));
}

TEST_CASE("GPT-3 175B served by TP 8 x PP 64: shares of the pipeline") {
  const Json all = step("gpt3-175b-inference-512gpu"), one = step("gpt3-175b-inference-512gpu --what-if one-request");
  CHECK(of(all, "/gpus") == 512);
  // 32 stages of two layers, 32 of one. The last of 64 prompts leaves when the first has passed all 96 layers and 63
  // more a stage of two: 96 + 63 x 2 = 222 layers, of which that stage works 64 x 2 = 128. Embedding, logits and
  // messages come on top.
  const double layer = of(all, "/inference/prefill/layer_s"), ttft = of(all, "/ttft_s");
  CHECK(ttft > 222 * layer);
  CHECK(ttft < 222 * layer * 1.1);
  CHECK(of(all, "/inference/prefill/breakdown/bubble_s") / ttft == Approx(1 - 128.0 / 222).margin(0.04));
  // 64 sequences in 64 stages: a stage of two layers is never idle.
  CHECK(of(all, "/inference/decode/breakdown/bubble_s") == Approx(0).margin(1e-9));
  // A sequence alone: of 96 layers that stage works two, and has the embedding.
  const double tpot = of(one, "/tpot_s"), work = of(one, "/inference/decode/breakdown/compute_s") +
                                                 of(one, "/inference/decode/breakdown/tp_exposed_s");
  CHECK(work / tpot > 1.5 / 96);
  CHECK(work / tpot < 2.5 / 96);
}

TEST_CASE("a 175B layer on 8 A100 before and after overlap: 120 ms and 95 ms, 1.26 times") {
  const Json after = step("overlap-175b-layer"), before = step("overlap-175b-layer --what-if serial");
  // 80 ms of computing and 40 ms of communication, of which 25 ms run under the second half of the computing.
  CHECK(seconds(before) == Approx(80e-3 + 40e-3).epsilon(1e-12));
  CHECK(seconds(after) == Approx(80e-3 + (40e-3 - 25e-3)).epsilon(1e-12));
  CHECK(seconds(before) / seconds(after) == Approx(1.26).margin(0.005));
  CHECK(of(after, "/breakdown/tp_exposed_s") == Approx(15e-3));
}

TEST_CASE("GPT-3 175B by Megatron on 64 A100: 13.75 s, three chunks a stage") {
  // Korthikanti et al. 2022, table 5. Published stage times, replayed, leave interleaved steps 9 to 16 % short.
  const double forecast = seconds(step("gpt3-interleaved-64xa100"));
  CHECK(forecast < 13.75);
  CHECK(forecast > 13.75 * 0.94);
}

TEST_CASE("DeepSeek-V3's step is between one with all of the exchange exposed and one with the most hidden") {
  // 14.8e12 tokens in steps of 15360 x 4096 are 235,240 steps; 2.664e6 hours of 2048 H800: 2.664e6 x 3600 / 2048 /
  // 235,240.
  const double published = 2.664e6 * 3600 / 2048 / (14.8e12 / (15360.0 * 4096));
  CHECK(published == Approx(19.9).margin(0.05));
  CHECK(seconds(step("deepseek-v3-2048xh800 --method estimate")) > 1.5 * published);
  CHECK(seconds(step("deepseek-v3-2048xh800 --what-if dualpipe --method estimate")) == Approx(published).epsilon(0.06));
  // As the report tells it, with the layer that predicts a second token: without what 20 of 132 SMs lose to the
  // exchange, and losses of a cluster.
  const double reported = seconds(step("deepseek-v3-2048xh800 --what-if as-reported --method estimate"));
  CHECK((reported < published && reported > 0.85 * published));
}

TEST_CASE("Mixtral 8x7B by Megatron-Core on 64 H100: 468 TFLOP/s a GPU") {
  const double forecast = tflops(step("mixtral-8x7b-64xh100"));
  // What the scenario says: a fifth above, as routing is even and nothing waits for the host.
  CHECK(forecast > 468);
  CHECK(forecast < 468 * 1.28);
}

TEST_CASE("Llama-3 405B on 16,384 H100: 380 to 430 TFLOP/s a GPU") {
  // Of all of the model's FLOPs the causal mask leaves out half of the attention core: 12 L s a d a token (three passes
  // of 4 s a d), half of which are 6 x 126 layers x 16384 x s. The report does not say which it counts.
  const auto held = [](const char* variant, double sequence, double published, double whole, double halved) {
    INFO(variant);
    const Json doc = step(std::string("llama3-405b-16384xh100 ") + variant);
    const double half = 6 * 126 * 16384 * sequence * of(doc, "/tokens_per_s_per_gpu") / 1e12;
    CHECK(tflops(doc) / published == Approx(whole).margin(0.015));
    CHECK((tflops(doc) - half) / published == Approx(halved).margin(0.015));
  };
  held("", 131072, 380, 1.445, 1.03);
  held("--what-if 8k", 8192, 400, 1.155, 1.11);
  held("--what-if 8k-8192-gpus", 8192, 430, 1.185, 1.145);
  // Split by FSDP, weights gathered under the first forwards: nearer to nothing exposed than ZeRO-1's gather behind the
  // optimizer. For every micro-batch it would be more than twice as long.
  const double zero_1 = seconds(step("llama3-405b-16384xh100 --what-if 8k --method estimate"));
  const double fsdp = seconds(step("llama3-405b-16384xh100 --what-if 8k-fsdp --method estimate"));
  CHECK(fsdp < zero_1);
  CHECK(fsdp > 0.95 * zero_1);
  CHECK(seconds(step("llama3-405b-16384xh100 --what-if 8k-fsdp-reshard --method estimate")) > 2 * fsdp);
}

TEST_CASE("a token's experts are read as fast as a memory-bound kernel reads, on every GPU") {
  // Bytes over the data sheet's rate of 4.8 and 8 TB/s: at least 0.8 of it, of which launches take a few microseconds.
  for (const auto& [machine, bandwidth] : {std::pair{"dgx-h200", 4.8e12}, {"dgx-b200", 8e12}}) {
    const Json doc = step(std::string("deepseek-v3.2-inference-8xh200 --method estimate --topology ") + machine);
    int seen = 0;
    for (const Json& op : doc.at("inference").at("decode").at("operations")) {
      const std::string name = op.at("name");
      if (name != "experts up+gate" && name != "experts down") continue;
      INFO(machine << ": " << name);
      const double floor = op.at("bytes").get<double>() / bandwidth;
      CHECK(op.at("time_s").get<double>() > floor);
      CHECK(op.at("time_s").get<double>() < floor / 0.8 + 5e-6);
      ++seen;
    }
    CHECK(seen == 2);
  }
}

TEST_CASE("what a scenario's head says is forecast is forecast") {
  // "# forecast of VARIANT: 5.813 s, 463 TFLOP/s" or ", 6.618 s exposed to TP", in the digits of a table.
  static const std::regex line(R"(# forecast(?: of ([a-z0-9-]+))?: ([^,\n]+), ([0-9.]+) (s exposed to TP|TFLOP/s)\n)");
  int said = 0;
  for (const auto& file : std::filesystem::directory_iterator(COLLCAST_SOURCE_DIR "/scenarios")) {
    if (file.path().extension() != ".yaml") continue;
    std::ostringstream read;
    read << std::ifstream(file.path()).rdbuf();
    const std::string text = read.str();
    for (std::sregex_iterator i(text.begin(), text.end(), line), end; i != end; ++i, ++said) {
      INFO(file.path().filename() << ": " << (*i)[0]);
      const std::string variant = (*i)[1];
      const Json doc = step(file.path().stem().string() + (variant.empty() ? "" : " --what-if " + variant));
      CHECK(collcast::format_seconds(collcast::Seconds(seconds(doc))) == (*i)[2]);
      if ((*i)[4] == "TFLOP/s")
        CHECK(std::to_string(std::lround(tflops(doc))) == (*i)[3]);
      else
        CHECK(collcast::format_seconds(collcast::Seconds(of(doc, "/breakdown/tp_exposed_s"))) == (*i)[3].str() + " s");
    }
    // A figure that is not held to is none that a line of its own begins with.
    CHECK(std::regex_search(text, std::regex("[Tt]he forecast is [0-9.]+ s")) == false);
  }
  CHECK(said == 8);
}

TEST_CASE("16,384 GPUs by simulation take no more than 1 GB, as symmetric ranks are one") {
  // Of the command, and no longer than it runs. A sanitizer keeps terabytes of addresses for itself.
  rlimit before{}, after{};
  REQUIRE(::getrlimit(RLIMIT_DATA, &before) == 0);
  const Json doc = step(sanitized ? "llama3-405b-16384xh100" : "llama3-405b-16384xh100 --memory-limit 1GB");
  REQUIRE(::getrlimit(RLIMIT_DATA, &after) == 0);
  CHECK(after.rlim_cur == before.rlim_cur);
  CHECK(doc.at("partial") == false);
  CHECK(of(doc, "/simulate_s") > 0);
  CHECK(of(doc, "/gpus") == 16384);
  CHECK(of(doc, "/folding/ranks") == 16384);
  CHECK(of(doc, "/folding/classes") == 16);
}

TEST_CASE("the folded Llama-3 405B step is that of every rank for itself where nothing else is on its links") {
  const Json one = step("llama3-405b-16384xh100 --what-if one-replica --unfolded");
  CHECK(of(one, "/unfolded/ranks") == 128);
  CHECK(one.at("/unfolded/step_s"_json_pointer) == one.at("simulate_s"));
  // With CP and DP rings of several ranks of a node on the NICs of the pipeline it is longer, by what meets there.
  // Without overlap, as kernels of the unfolded step keep their rate beside DP.
  const Json more = step("llama3-405b-16384xh100 --what-if 1024-gpus --unfolded --set training.overlap_dp=false");
  CHECK(of(more, "/unfolded/ranks") == 1024);
  CHECK(of(more, "/unfolded/step_s") >= of(more, "/simulate_s"));
  CHECK(of(more, "/unfolded/step_s") < 1.02 * of(more, "/simulate_s"));
}
