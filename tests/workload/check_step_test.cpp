// What does not fit together is said all at once, with the nearest value that works.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "workload/layer/parameters.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

StepInputs good() { return inputs(small_model(), layout(2, 2, 2), 1024, 4); }

Diagnostics checked(const StepInputs& in, int ranks = 64) { return check_step(in, ranks, Location{"s.yaml", 3, 1}); }

/// The one diagnostic of `in`.
Diagnostic only(const StepInputs& in, int ranks = 64) {
  const Diagnostics found = checked(in, ranks);
  INFO(to_text(found));
  REQUIRE(found.size() == 1);
  CHECK(found[0].where.line == 3);
  return found[0];
}

}  // namespace

TEST_CASE("uneven stages: layers that pp does not divide, but none without a layer, nor a chunk") {
  StepInputs in = inputs(small_model(), layout(1, 3, 1), 512, 3);
  in.model.layers = 8;
  CHECK_FALSE(check_step(in, 8, {}).empty());
  in.layout.uneven_stages = true;
  CHECK(check_step(in, 8, {}).empty());
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.vpp = 2;
  CHECK(check_step(in, 8, {}).empty());
  in.layout.vpp = 3;
  REQUIRE(check_step(in, 8, {}).size() == 1);
  CHECK(check_step(in, 8, {}).front().message == "vpp 3 x pp 3 are more slices than the layers 8");
  CHECK(check_step(in, 8, {}).front().hint == "use vpp 2 or less");
  in = inputs(small_model(), layout(1, 5, 1), 512, 5);
  in.layout.uneven_stages = true;
  in.model.layers = 3;  // with embedding and head one each: nothing else on the end stages
  REQUIRE(check_step(in, 8, {}).size() == 1);
  CHECK(check_step(in, 8, {}).front().message == "pp 5 leaves stages without one of the 3 layers");
}

TEST_CASE("what does not fit is said where the hint wants a change, with the place of what it does not fit") {
  struct Case {
    const char* path;  // of the value to change
    void (*spoil)(StepInputs&);
    std::vector<const char*> seen;  // paths of the others
  };
  const std::vector<Case> cases{
      {"layout.tp", [](StepInputs& in) { in.layout.tp = 32; }, {"model.heads"}},
      {"layout.tp",
       [](StepInputs& in) {
         in.model.heads = 12;
         in.model.kv_heads = 6;
         in.layout.tp = 4;
       },
       {"model.kv_heads"}},
      {"layout.pp", [](StepInputs& in) { in.layout.pp = 3; }, {"model.layers"}},
      {"layout.dp",
       [](StepInputs& in) {
         in.layout.dp = 32;
         in.batch.global_batch = 64;
       },
       {"nodes"}},
      {"batch.global_batch", [](StepInputs& in) { in.batch.global_batch = 3; }, {"batch.micro_batch", "layout.dp"}},
      {"layout.vpp", [](StepInputs& in) { in.layout.vpp = 2; }, {"layout.schedule"}},
      {"layout.vpp",
       [](StepInputs& in) {
         in.layout.schedule = PipelineSchedule::interleaved;
         in.layout.vpp = 3;
       },
       {"model.layers", "layout.pp"}},
      {"layout.schedule",
       [](StepInputs& in) {
         in.layout.schedule = PipelineSchedule::interleaved;
         in.layout.pp = 1;
       },
       {"layout.pp"}},
      {"batch.global_batch",
       [](StepInputs& in) {
         in.layout.schedule = PipelineSchedule::interleaved;
         in.batch.global_batch = 12;
       },
       {"layout.pp", "layout.schedule"}},
      {"batch.sequence", [](StepInputs& in) { in.model.learned_positions = 8; }, {"model.learned_positions"}},
      {"model.kv_heads", [](StepInputs& in) { in.model.kv_heads = 10; }, {"model.heads"}},
      {"training.precision", [](StepInputs& in) { in.options.precision = "bf61"; }, {}},
      {"training.precision", [](StepInputs& in) { in.gpu.peak.erase("bf16"); }, {"topology.gpu.peak"}},
      {"training.precision", [](StepInputs& in) { in.kernels.gemm.erase("bf16"); }, {"topology.gpu.kernels"}},
      {"training.bucket", [](StepInputs& in) { in.options.bucket = Bytes(1); }, {}},
      {"training.zero", [](StepInputs& in) { in.options.zero = 4; }, {}},
      {"training.no_sync",
       [](StepInputs& in) {
         in.options.zero = 2;
         in.options.no_sync = true;
       },
       {"training.zero"}},
      {"layout.dp_shard", [](StepInputs& in) { in.layout.dp_shard = 3; }, {"layout.dp"}},
      {"model.layers", [](StepInputs& in) { in.model.layers = 0; }, {}},
  };
  Origins origins(Location{"s.yaml", 1, 1});
  std::map<std::string, std::string> place;
  for (const Case& c : cases) {
    for (const char* path : c.seen) place[path] = "";
    place[c.path] = "";
  }
  int line = 10;
  for (auto& [path, text] : place) {
    origins.set(path, {"s.yaml", ++line, 5});
    text = "s.yaml:" + std::to_string(line) + ":5";
  }
  for (const Case& c : cases) {
    StepInputs in = good();
    c.spoil(in);
    const Diagnostics found = check_step(in, 64, origins);
    INFO(c.path << "\n" << to_text(found));
    REQUIRE_FALSE(found.empty());
    CHECK(to_text(found[0].where) == place[c.path]);
    for (const char* path : c.seen) CHECK_THAT(found[0].message, Catch::Contains("(" + place[path] + ")"));
  }
}

TEST_CASE("an interleaved schedule needs stages, chunks that divide them and whole rounds of micro-batches") {
  StepInputs in = good();  // 8 layers on 2 stages, 4 micro-batches of 2 sequences on each of 2 replicas
  in.layout.schedule = PipelineSchedule::interleaved;
  for (const int vpp : {1, 2, 4}) {
    in.layout.vpp = vpp;
    CHECK(checked(in).empty());
  }
  in.layout.vpp = 3;
  CHECK(only(in).message == "vpp 3 does not divide the 4 layers of a stage, layers 8 / pp 2");
  CHECK(only(in).hint == "use vpp 2 or 4, or uneven_stages: true");
  in.layout.uneven_stages = true;
  CHECK(checked(in).empty());
  in.layout.vpp = 6;
  CHECK(only(in).message == "vpp 6 x pp 2 are more slices than the layers 8");
  CHECK(only(in).hint == "use vpp 4 or less");
  in.layout.uneven_stages = false;
  in.layout.vpp = 8;
  CHECK(only(in).hint == "use vpp 4");
  in.layout.vpp = 0;
  CHECK(only(in).hint == "expected at least 1");

  in.layout.vpp = 2;
  in.batch.global_batch = 12;
  CHECK(only(in).message ==
        "global_batch 12 is 3 micro-batches, not a multiple of pp 2, as schedule interleaved needs");
  CHECK(only(in).hint == "use 8 or 16");
  in.batch.global_batch = 4;
  CHECK(only(in).hint == "use 8");
  in.batch.global_batch = 18;  // no whole number of micro-batches either: what is offered is good for both
  CHECK(only(in).hint == "use 16 or 24");

  in.batch.global_batch = 16;
  in.layout.pp = 1;
  CHECK(only(in).message == "schedule interleaved needs at least 2 pipeline stages; pp is 1");
  CHECK(only(in).hint == "use pp 2, or schedule: 1f1b with vpp: 1");
  in.model.layers = 1;
  CHECK(only(in).hint == "use schedule: 1f1b with vpp: 1");

  in = good();
  in.layout.vpp = 2;
  CHECK(only(in).message == "vpp 2 needs schedule interleaved; the schedule is 1f1b");
  CHECK(only(in).hint == "use schedule: interleaved, or vpp 1");
  // 10^7 turns: 2.5 million micro-batches of 2 x 2 samples in 2 chunks of 2 stages.
  in = good();
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.vpp = 2;
  in.batch.global_batch = 10'000'000;
  CHECK(checked(in).empty());
  in.batch.global_batch = 10'000'008;
  CHECK(only(in).hint == "use 10000000 or less");
  // Two mistakes, two diagnostics.
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.vpp = 3;
  in.batch.global_batch = 12;
  CHECK(checked(in).size() == 2);
}

TEST_CASE("1f1b and gpipe have as many turns at most as an interleaved schedule") {
  // 10^7 turns: 5 million micro-batches of 2 x 2 samples on 2 stages.
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
    StepInputs in = good();
    in.layout.schedule = schedule;
    in.batch.global_batch = 20'000'000;
    CHECK(checked(in).empty());
    in.batch.global_batch = 20'000'004;
    CHECK(only(in).message == "global_batch 20000004 makes more than 10000000 turns of micro-batches x pp 2");
    CHECK(only(in).hint == "use 20000000 or less");
  }
}

TEST_CASE("a step that fits has nothing to say") { CHECK(checked(good()).empty()); }

TEST_CASE("tp must divide heads and ffn and fit kv_heads; the hint does all three") {
  StepInputs in = good();
  in.layout.tp = 3;
  // 16 heads, 8 kv_heads, ffn 4096: one tp is one mistake.
  CHECK(only(in).message ==
        "tp 3 does not divide heads 16, ffn 4096, and neither divides kv_heads 8 nor is a multiple of it");
  CHECK(only(in).hint == "use tp 2 or 4");
  // Where each head has its own keys and values, kv_heads is the same number again.
  in.model.kv_heads = in.model.heads;
  CHECK(only(in).message == "tp 3 does not divide heads 16, ffn 4096");
}

TEST_CASE("tp above the number of kv_heads is a multiple of it") {
  StepInputs in = good();
  in.layout.tp = 16;  // 8 kv_heads, two ranks each
  CHECK(checked(in).empty());
  in.model.kv_heads = 1;
  CHECK(checked(in).empty());
  // 12 heads, 6 kv_heads: of the divisors 1, 2, 3, 4, 6, 12 all but 4 divide 6 or are a multiple of it.
  in.model.heads = 12;
  in.model.kv_heads = 6;
  in.model.ffn = 12 * 512;
  in.layout.tp = 4;
  CHECK(only(in).message == "tp 4 neither divides kv_heads 6 nor is a multiple of it");
  CHECK(only(in).hint == "use tp 3 or 6");
}

TEST_CASE("sequence parallelism cuts the sequence") {
  StepInputs in = good();
  in.layout.sequence_parallel = true;
  in.batch.sequence = 1001;
  const Diagnostic d = only(in);
  CHECK(d.message == "tp 2 does not divide sequence (sequence_parallel) 1001");
  CHECK(d.hint == "use tp 1");
}

TEST_CASE("with CP sequence parallelism cuts a rank's part of the sequence") {
  StepInputs in = good();
  in.layout.sequence_parallel = true;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.cp = 2;
  in.batch.sequence = 1020;  // two pieces of 255 tokens each, 510 in all: 255 rows for each of TP 2
  CHECK(checked(in).empty());
  in.layout.tp = 4;  // 127.5 rows
  in.layout.dp = 1;
  CHECK(only(in).message == "tp 4 does not divide sequence / cp (sequence_parallel) 510");
  CHECK(only(in).hint == "use tp 2");
}

TEST_CASE("pp must divide the layers") {
  StepInputs in = good();
  in.layout.pp = 3;
  CHECK(only(in).message == "pp 3 does not divide layers 8");
  CHECK(only(in).hint == "use pp 2 or 4, or uneven_stages: true");
}

TEST_CASE("the global batch is whole micro-batches of all replicas") {
  StepInputs in = good();
  in.batch.global_batch = 18;  // 2 x 2 = 4 per pass
  CHECK(only(in).message == "global_batch 18 is not a multiple of micro_batch 2 x dp 2");
  CHECK(only(in).hint == "use 16 or 20");
  in.batch.global_batch = 3;
  CHECK(only(in).hint == "use 4");
}

TEST_CASE("a layout larger than the machine says how many replicas fit") {
  CHECK(only(good(), 7).message == "tp 2 x pp 2 x dp 2 needs 8 GPUs, the machine has 7");
  CHECK(only(good(), 7).hint == "use dp 1, or more nodes");
  CHECK(only(good(), 3).message == "tp 2 x pp 2 needs 4 GPUs, the machine has 3");
  CHECK(only(good(), 3).hint == "use a smaller tp or pp, or more nodes");
  CHECK(checked(good(), 8).empty());
}

TEST_CASE("a precision that is unknown, or that the GPU or the kernel table lacks") {
  StepInputs in = good();
  in.options.precision = "bf61";
  CHECK(only(in).message == "unknown precision 'bf61'");
  in.options.precision = "tf32";
  in.options.attention = Attention::unfused;
  CHECK(only(in).message == "the kernel table 'ideal' (gemm) has no figure for tf32");
  in.options.precision = "fp32";
  in.options.attention = Attention::flash;
  CHECK(only(in).message == "the kernel table 'ideal' (attention) has no figure for fp32");
  in = good();
  in.options.precision = "fp8";
  in.gpu.peak.erase("fp8");
  CHECK(only(in).message == "the data sheet of round has no figure for fp8");
  in.kernels.gemm.erase("fp8");  // the same cause
  CHECK(only(in).message == "the data sheet of round has no figure for fp8");
  in = good();
  in.gpu = {};
  CHECK(only(in).message == "the machine has no GPUs that compute");
}

TEST_CASE("buckets that cut the gradients into dust are refused with the smallest that does not") {
  StepInputs in = good();
  in.options.bucket = Bytes(1);
  CHECK_THAT(only(in).message, Catch::Contains("a gradient bucket of 1 B cuts"));
  // FSDP has no buckets: its unit is the layer.
  StepInputs split = in;
  split.options.zero = 3;
  split.layout.pp = 1;
  CHECK(checked(split).empty());
  in.layout.dp = 1;
  CHECK(checked(in).empty());
}

TEST_CASE("the default bucket is as large as the gradients need, and it is said where that is more") {
  // 175 G parameters x 4 bytes = 700 GB: 17,500 buckets of 40 MB, 10,000 of 70 MB.
  StepInputs in = inputs(gpt_175b(), layout(1, 1, 16), 2048, 1);
  CHECK(checked(in).empty());
  const StepResult usual = forecast_on_two(in);
  const auto of_buckets = [](const StepResult& r) {
    return std::ranges::count_if(r.warnings, [](const std::string& w) { return w.starts_with("gradient buckets of"); });
  };
  CHECK(of_buckets(usual) == 1);
  // It is what the user gets who asks for that size, of which nothing is said.
  const double gradients = 4 * workload::stage_parameters(in, 0).total();
  StepInputs own = in;
  own.options.bucket = Bytes(static_cast<std::int64_t>(std::ceil(gradients / 10'000)));
  CHECK(*own.options.bucket > default_bucket);
  const StepResult asked = forecast_on_two(own);
  CHECK(asked.step == usual.step);
  CHECK(of_buckets(asked) == 0);
  // One that is asked for is never enlarged, though it be as large as the default is.
  for (const Bytes size : {default_bucket - Bytes(1), default_bucket}) {
    own.options.bucket = size;
    CHECK_THAT(only(own).message, Catch::Contains("into more than 10000 pieces"));
  }
  // A quarter of that model's layers is 44 G parameters, 175 GB: 4375 buckets of 40 MB, which is what both say.
  in.model.layers /= 4;
  own = in;
  own.options.bucket = default_bucket;
  CHECK(forecast_on_two(own).step == forecast_on_two(in).step);
}

TEST_CASE("absurd sizes are refused, not tried") {
  StepInputs in = good();
  in.model.layers = 2'000'000'000;
  CHECK(only(in).message == "layers is 2000000000");
  in = good();
  in.layout.tp = in.layout.pp = in.layout.dp = 2'000'000'000;
  CHECK(checked(in).size() >= 4);
}

TEST_CASE("memory beyond what bytes are counted to is refused, at what makes it so large") {
  const auto refused = [](const StepInputs& in, const char* path) {
    Origins origins(Location{"s.yaml", 1, 1});
    origins.set(path, Location{"s.yaml", 7, 3});
    REQUIRE(check_step(in, 64, origins).empty());
    const Diagnostics found = check_memory(in, origins);
    REQUIRE(found.size() == 1);
    INFO(found[0].message);
    CHECK(found[0].where.line == 7);
    CHECK(found[0].hint == "expected up to 1 EiB");
    CHECK_FALSE(countable_peak_memory(in, 8));
  };
  // In flight 10^7 micro-batches of 10^7 tokens.
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 10'000'000, 10'000'000);
  in.layout.schedule = PipelineSchedule::gpipe;
  in.batch.micro_batch = 1;
  in.batch.global_batch = 10'000'000;
  refused(in, "batch.sequence");
  // As many in flight as there are turns, each of 20 samples of 10^6 tokens.
  in.batch.sequence = 1'000'000;
  in.batch.micro_batch = 20;
  in.batch.global_batch = 200'000'000;
  refused(in, "batch.global_batch");
  // 10^4 layers of 10^14 parameters and more.
  in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.model.layers = 10'000;
  in.model.hidden = in.model.ffn = 10'000'000;
  in.model.heads = in.model.kv_heads = 100;
  in.model.head_dim = 100'000;
  refused(in, "model");
}

TEST_CASE("gradients and weights are split on any schedule, over shards that divide the replicas") {
  StepInputs in = good();  // pp 2, dp 2
  for (const int zero : {2, 3}) {
    in.options.zero = zero;
    for (const PipelineSchedule schedule :
         {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1, PipelineSchedule::zb_v,
          PipelineSchedule::dualpipe, PipelineSchedule::dualpipe_v}) {
      in.layout.schedule = schedule;
      CHECK(checked(in).empty());
    }
    in.layout.schedule = PipelineSchedule::one_f_one_b;
  }
  in.layout.dp_shard = 4;
  CHECK(only(in).message == "dp_shard 4 does not divide dp 2");
  CHECK(only(in).hint == "use dp_shard 2");
  in.layout.dp_shard = -1;
  CHECK(only(in).hint == "expected at least 1, or 0 for all of dp");
}

TEST_CASE("gradients are summed up whole where they would be split, in any format") {
  StepInputs in = good();
  in.options.no_sync = true;
  in.options.zero = 1;
  CHECK(checked(in).empty());
  in.options.zero = 2;
  CHECK(only(in).message == "zero 2 splits gradients after every micro-batch, which no_sync puts off");
  CHECK(only(in).hint == "use zero 1, which is zero 2 put off, or zero 3");
  in.options.zero = 3;
  CHECK(checked(in).empty());
  in.options.communication.gradients = WireFormat::bf16;
  in.options.communication.parameters = WireFormat::fp8;
  CHECK(checked(in).empty());
  in.options.reshard_after_forward = false;
  CHECK(checked(in).empty());
}

TEST_CASE("context parallelism needs an order with a place for it, flash attention, and pieces that are whole") {
  StepInputs in = good();
  in.layout.cp = 2;
  CHECK(only(in).message == "cp 2 has no place in the order tp-pp-dp");
  CHECK(only(in).hint == "use order: tp-cp-ep-dp-pp");
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  CHECK(checked(in).empty());
  in.options.attention = Attention::unfused;
  CHECK(only(in).hint == "use attention: flash");
  in.options.attention = Attention::flash;
  in.layout.cp = 3;
  CHECK(only(in).message == "twice cp 3 does not divide sequence 1024");
  CHECK(only(in).hint == "use cp 2 or 4");
  in.model.causal = false;
  CHECK(only(in).message == "cp 3 does not divide sequence 1024");
  in.layout.cp_exchange = ContextExchange::ulysses;
  in.layout.cp = 16;
  in.layout.pp = in.layout.dp = 1;
  CHECK(only(in).message == "cp 16 does not divide the 8 heads of a TP rank, which cp_exchange ulysses splits");
  CHECK(only(in).hint == "use cp 8, or cp_exchange: ring");
}

TEST_CASE("a zero-bubble schedule is gone through turn by turn, and has no chunks") {
  StepInputs in = good();
  in.layout.schedule = PipelineSchedule::zb_h2;
  CHECK(checked(in).empty());
  in.layout.vpp = 2;
  CHECK(only(in).message == "vpp 2 needs schedule interleaved; the schedule is zb-h2");
  in.layout.vpp = 1;
  in.batch.global_batch = 2'000'000'000;
  CHECK(only(in).message == "global_batch 2000000000 makes more than 10000000 turns of 3 x micro-batches x pp 2");
}

TEST_CASE("zb-v has two chunks on each stage, equal ones unless stages may be uneven, and takes no other number") {
  StepInputs in = good();
  in.layout.schedule = PipelineSchedule::zb_v;
  in.model.layers = 12;
  CHECK(checked(in).empty());
  in.layout.vpp = 2;
  CHECK(only(in).message == "vpp 2 has no effect on schedule zb-v, which has two chunks on each stage");
  CHECK(only(in).hint == "leave it out, or use schedule: interleaved");
  in.layout.vpp = 1;
  // 2 x 2 stages; those of 16 GPUs that are left are others' business.
  in.model.layers = 6;
  CHECK(only(in).message == "schedule zb-v has two chunks on each stage; 2 x pp 2 does not divide layers 6");
  CHECK(only(in).hint == "use pp 1 or 3, or uneven_stages: true");
  in.layout.uneven_stages = true;
  CHECK(checked(in).empty());
  in.model.layers = 7;
  CHECK(checked(in).empty());
  in.layout.uneven_stages = false;
  CHECK(only(in).message == "schedule zb-v has two chunks on each stage; 2 x pp 2 does not divide layers 7");
  CHECK(only(in).hint == "use uneven_stages: true");
  in.model.layers = 3;
  in.layout.pp = 3;
  in.layout.uneven_stages = true;
  CHECK(only(in, 64).message == "schedule zb-v has two chunks on each stage; 2 x pp 3 are more than the layers 3");
  CHECK(only(in, 64).hint == "use pp 1");
  in.layout.uneven_stages = false;
  in.model.layers = 7;
  in.layout.pp = 7;
  CHECK(only(in, 64).hint == "use schedule: zb-h1");
  // As many micro-batches as its turns allow, more than stages or fewer.
  in.layout.pp = 2;
  in.model.layers = 12;
  in.batch.global_batch = in.batch.micro_batch * in.layout.dp;
  CHECK(checked(in).empty());
  in.batch.global_batch = 2'000'000'000;
  CHECK(only(in).message == "global_batch 2000000000 makes more than 10000000 turns of 6 x micro-batches x pp 2");
  in.layout.schedule = PipelineSchedule::dualpipe_v;
  in.layout.pp = 4;
  in.batch.global_batch = in.batch.micro_batch * in.layout.dp;
  in.model.layers = 12;
  in.layout.vpp = 1;
  CHECK(only(in).message.starts_with(
      "schedule dualpipe-v has two chunks on each stage; 2 x pp 4 does not divide layers 12"));
}

TEST_CASE("DualPipe wants pairs of stages, a slice for each, and as many micro-batches from either end") {
  StepInputs in = good();
  in.layout.schedule = PipelineSchedule::dualpipe;
  in.layout.pp = 2;
  in.model.layers = 12;
  CHECK(checked(in, 64).empty());
  const int passes = in.batch.micro_batch * in.layout.dp;
  in.batch.global_batch = 3 * passes;
  CHECK(only(in, 64).message == "global_batch " + std::to_string(3 * passes) +
                                    " is 3 micro-batches; schedule dualpipe has as many from either end");
  CHECK(only(in, 64).hint == "use " + std::to_string(2 * passes) + " or " + std::to_string(4 * passes));
  in.batch.global_batch = passes;
  CHECK(only(in, 64).hint == "use " + std::to_string(2 * passes));
  in.batch.global_batch = 4 * passes;
  in.layout.pp = 3;
  CHECK(only(in, 64).message == "schedule dualpipe has pairs of pipeline stages; pp is 3");
  CHECK(only(in, 64).hint == "use pp 2 or 4");
  in.layout.pp = 1;
  CHECK(only(in, 64).hint == "use pp 2");
  in.layout.pp = 8;
  CHECK(only(in, 64).message ==
        "schedule dualpipe has a slice of the model for each stage; pp 8 does not divide layers 12");
  CHECK(only(in, 64).hint == "use uneven_stages: true, or pp 6 or 12");
  in.layout.uneven_stages = true;
  CHECK(checked(in, 64).empty());
  in.layout.pp = 16;
  CHECK(only(in, 128).message ==
        "schedule dualpipe has a slice of the model for each stage; pp 16 are more than the layers 12");
  CHECK(only(in, 128).hint == "use pp 12");
  in.layout.uneven_stages = false;
  in.model.layers = 7;
  in.layout.pp = 7;
  CHECK(only(in, 64).hint == "use schedule: zb-h1");
  in.layout.pp = 4;
  CHECK(only(in, 64).hint == "use uneven_stages: true");
  in.model.layers = 12;
  in.layout.vpp = 2;
  CHECK(only(in, 64).message == "vpp 2 has no effect on schedule dualpipe, which has two chunks on each stage");
}

TEST_CASE("an order that is made for times has a million turns at most") {
  StepInputs in = good();
  in.batch.global_batch = in.layout.dp * in.batch.micro_batch * 170'000;
  for (const PipelineSchedule schedule : {PipelineSchedule::zb_1p, PipelineSchedule::zb_2p}) {
    in.layout.schedule = schedule;
    CHECK(only(in).message.find("makes more than 1000000 turns of 3 x micro-batches x pp 2") != std::string::npos);
  }
  in.layout.schedule = PipelineSchedule::zb_h1;
  CHECK(checked(in).empty());
}

TEST_CASE("a sequence beyond the learned positions is refused") {
  StepInputs in = good();
  in.model.learned_positions = 1000;
  CHECK(only(in).hint == "use a sequence of at most 1000");
}

TEST_CASE("sizes below one and values that are not modelled are found together") {
  StepInputs in = good();
  in.model.layers = 0;
  in.model.dropout = 1;
  in.layout.cp = 0;
  in.layout.dp = -1;
  in.batch.micro_batch = 0;
  in.options.zero = 4;
  in.options.gradient_bytes = 8;
  in.options.bucket = Bytes(0);
  CHECK(checked(in).size() == 8);
}

TEST_CASE("independent mistakes are found together") {
  StepInputs in = good();
  in.layout.pp = 3;
  in.batch.global_batch = 17;
  in.options.precision = "int3";
  CHECK(checked(in, 4).size() == 4);
}

TEST_CASE("what is wrong by itself does not hide what does not go together") {
  StepInputs in = inputs(small_model(), layout(3, 3, 1), 1024, 8);
  in.model.experts = {8, 9, 512, 0, false, 0, 1, 0, {}};
  in.options.gradient_bytes = 3;
  in.layout.ep = 5;
  in.layout.sequence_parallel = true;
  const std::string text = to_text(check_step(in, 8, Origins()));
  INFO(text);
  for (const char* part : {"a token cannot go to 9 of 8 experts", "gradient_bytes is 3",
                           "tp 3 does not divide heads 16", "ep 5 does not divide the 8 experts",
                           "pp 3 does not divide layers 8", "tp 3 x pp 3 needs 9 GPUs, the machine has 8"})
    CHECK(text.find(part) != std::string::npos);
  // Nothing is said of a value by which another one's error is known.
  in.model.kv_heads = 0;
  CHECK(to_text(check_step(in, 8, Origins())).find("kv_heads 0 is") == std::string::npos);
}
