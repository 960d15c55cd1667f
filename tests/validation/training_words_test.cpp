// Words of rows of training steps: a scenario's and the sources' count whole, and what else a row says is told.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "training_rows.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

Result<TrainingStep> read(const TrainingRow& row) {
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  return training_step(row, *place);
}

TrainingStep step(const TrainingRow& row) {
  Result<TrainingStep> out = read(row);
  INFO(messages(out.errors()));
  REQUIRE(out.ok());
  return std::move(out).value();
}

std::string refusal(const TrainingRow& row) { return messages(read(row).errors()); }

bool says(const TrainingStep& of, const std::string& what) {
  return std::ranges::find(of.assumed, what) != of.assumed.end();
}

TrainingRow with_zero(const std::string& word) {
  TrainingRow row = gpt_row();
  row.zero = word;
  return row;
}

TrainingRow with_schedule(const std::string& word) {
  TrainingRow row = gpt_row();
  row.pp = 2;
  row.dp = 16;
  row.schedule = word;
  row.vpp = "2";
  return row;
}

}  // namespace

TEST_CASE("every schedule of a scenario and of the sources is a row's, each as a whole word") {
  using enum PipelineSchedule;
  for (const PipelineSchedule one :
       {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_1p, zb_2p, zb_v, dualpipe, dualpipe_v}) {
    CAPTURE(to_string(one));
    CHECK(step(with_schedule(std::string(to_string(one)))).inputs.layout.schedule == one);
  }
  CHECK(step(with_schedule("DualPipe-V")).inputs.layout.schedule == dualpipe_v);
  CHECK(step(with_schedule("1F1B-I")).inputs.layout.schedule == interleaved);
  CHECK(says(step(with_schedule("interleaved-1f1b flexible")),
             "the schedule interleaved-1f1b flexible counts as interleaved"));
  CHECK(refusal(with_schedule("1f1b-flush")) ==
        "the schedule 1f1b-flush is not modelled: expected one of: gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-1p, "
        "zb-2p, zb-v, dualpipe, dualpipe-v, interleaved-1f1b, 1f1b-i");
}

TEST_CASE("a row's sharding is a stage of ZeRO by number or name, or FSDP's; what it leaves open is told") {
  for (int stage = 0; stage <= 3; ++stage)
    for (const char* spelling : {"", "zero", "ZeRO-", "ZeRO "}) {
      CAPTURE(spelling, stage);
      CHECK(step(with_zero(spelling + std::to_string(stage))).inputs.options.zero == stage);
    }
  // Weights that are whole from a forward to its backward are not split as ZeRO 3 does.
  CHECK(step(with_zero("fsdp(grad+opt sharded, no reshard after fwd)")).inputs.options.zero == 2);
  CHECK(step(with_zero("fsdp2")).inputs.layout.shards() == 32);
  CHECK(step(with_zero("fsdp+dp")).inputs.options.zero == 3);
  CHECK(says(step(with_zero("fsdp+dp")), "the sharding fsdp+dp counts as fsdp over all replicas"));
  CHECK(says(step(with_zero("fsdp (offloaded)")), "the sharding fsdp (offloaded) counts as fsdp"));
  const std::string unknown = refusal(with_zero("fsdp-offloaded"));
  CHECK(unknown.starts_with("the sharding fsdp-offloaded is not modelled: expected one of: 0, zero0, 1, zero1, "));
  CHECK(unknown.ends_with("hsdp, fsdpN"));
}

TEST_CASE("the number behind fsdp is how many replicas share a state, and dp may count the copies") {
  TrainingRow row = with_zero("fsdp16");
  CHECK(step(row).inputs.layout.dp == 32);
  CHECK(step(row).inputs.layout.shards() == 16);
  row.dp = 2;  // 2 copies x 16 x TP 2 are the 64 GPUs
  const TrainingStep copies = step(row);
  CHECK(copies.inputs.layout.dp == 32);
  CHECK(copies.inputs.layout.shards() == 16);
  CHECK(copies.inputs.options.zero == 3);
  CHECK(says(copies, "dp 2 counts the copies of what 16 share: 32 replicas"));
  row.dp = 4;
  CHECK(refusal(row) == "tp 2 x pp 1 x cp 1 x dp 4 are 8 GPUs, not 64");
}

TEST_CASE("every precision of training is a row's, and one that is scaled otherwise counts as its width, as is told") {
  TrainingRow row = gpt_row();
  row.gpu = "H100-SXM5-80GB";
  for (const std::string& precision : training_precisions()) {
    CAPTURE(precision);
    row.precision = precision;
    CHECK(step(row).inputs.options.precision == precision);
  }
  row.precision = "fp32";  // what is computed in 32 bits has gradients of as many, though fp16's have two bytes
  CHECK(step(row).inputs.options.gradient_bytes == 4);
  row.precision = "fp8-rowwise";
  CHECK(says(step(row), "the precision fp8-rowwise counts as fp8"));
  row.precision = "bf16(fp32 grad accumulation)";
  CHECK(says(step(row), "the precision bf16(fp32 grad accumulation) counts as bf16"));
  row.precision = "bf16x3";
  CHECK(refusal(row) ==
        "the precision bf16x3 is not modelled: did you mean 'bf16'? expected one of: bf16, fp16, fp8, fp4, fp32, tf32, "
        "mxfp8, nvfp4");
}

TEST_CASE("what stands behind a word for recomputation is told, and a longer word is another one") {
  TrainingRow row = gpt_row();
  row.recompute = "none/selective per recipe";
  CHECK(step(row).inputs.options.recompute == Recompute::none);
  CHECK(says(step(row), "the recomputation none/selective per recipe counts as none"));
  row.recompute = "fully sharded";
  CHECK(refusal(row) == "the recomputation fully sharded is not modelled");
}

TEST_CASE("a Megatron of before 2022 alone adds gradients apart: not one without a date, nor ever Megatron-Core") {
  TrainingRow row = gpt_row();
  const auto is_fused = [&](const char* framework, const char* date) {
    row.framework = framework;
    row.date = date;
    return step(row).inputs.options.fuse_accumulation;
  };
  CHECK_FALSE(is_fused("Megatron-LM", "2021-04"));
  CHECK(is_fused("Megatron-LM", ""));
  for (const char* framework : {"Megatron-Core", "Megatron-Bridge 25.09"})
    for (const char* date : {"", "2021"}) CHECK(is_fused(framework, date));
  CHECK_FALSE(is_fused("Megatron-DeepSpeed", ""));
}

TEST_CASE("a time in which no GPU computes the model's FLOPs is a reason not to score the row") {
  TrainingTables tables;
  tables.rows = {gpt_row(), gpt_row(), gpt_row()};
  // 64 A100 of 312 TFLOP/s. Forward and backward of 512 sequences: 72 B s L h^2 (1 + s/6h + V/12Lh), 1.24 s at the peak
  const double h = 3072, flops = 72.0 * 512 * 2048 * 30 * h * h * (1 + 2048 / (6 * h) + 51200 / (12 * 30 * h));
  const double least = flops / (64 * 312e12);
  tables.rows[0].iter_s = 1e-9;
  tables.rows[1].iter_s = 0.99 * least;
  tables.rows[2].iter_s = 1.01 * least;
  const TrainingReport report = validate_training(tables, training_machines(), {{}, false, {}});
  REQUIRE(report.unscored.size() == 2);
  CHECK(report.unscored[0].why.starts_with(
      "iter_s says 1 ns for a step, more than the GPUs can compute: at their peak it takes 1."));
  REQUIRE(report.rows.size() == 1);
  CHECK(report.rows[0].measured->count() == Approx(1.01 * least));
}

TEST_CASE("Megatron-LM is Megatron-Core with Transformer Engine by name, in fp8, and since that is its default") {
  TrainingRow row = gpt_row();
  row.gpu = "H100-SXM5-80GB";
  row.intra_net = "NVLink4 450GB/s/dir";
  row.inter_gbps_per_gpu = 400;
  const auto attention = [&](const char* framework, const char* date, const char* precision) {
    row.framework = framework;
    row.date = date;
    row.precision = precision;
    return step(row).inputs.options.attention;
  };
  CHECK(attention("Megatron-LM", "2024-02", "bf16") == Attention::unfused);
  CHECK(attention("Megatron-LM", "2024-09", "bf16") == Attention::flash);
  CHECK(attention("Megatron-LM", "2025-06", "bf16") == Attention::flash);
  for (const char* date : {"", "Oct 2021", "2024/01", "2024"})
    CHECK(attention("Megatron-LM", date, "bf16") == Attention::unfused);
  for (const char* date : {"2025", "2024-10/2025-04"})
    CHECK(attention("Megatron-LM", date, "bf16") == Attention::flash);
  CHECK(attention("Megatron-LM + TE", "2023-06", "bf16") == Attention::flash);
  CHECK(attention("Megatron-LM", "2023-06", "fp8") == Attention::flash);
  CHECK(attention("Megatron-LM + TE 1.2", "2023-06", "bf16") == Attention::flash);
  CHECK(attention("Megatron-LM fork", "2025-06", "bf16") == Attention::unfused);
  CHECK(attention("Megatron-DeepSpeed", "2025-06", "bf16") == Attention::unfused);
}

TEST_CASE("what contradicts a row's schedule or model, and words that are not known, are told") {
  TrainingRow row = with_schedule("1f1b");
  row.vpp = "3";
  CHECK(says(step(row), "vpp 3 counts as 1, as 1f1b is not interleaved"));
  row.vpp = "1";
  CHECK_FALSE(says(step(row), "vpp 1 counts as 1, as 1f1b is not interleaved"));
  TrainingRow in_a_v = with_schedule("zb-v");
  CHECK(step(in_a_v).assumed.size() == step(with_schedule("zb-h1")).assumed.size() - 1);  // of vpp 2 nothing is told
  in_a_v.vpp = "3";
  CHECK(says(step(in_a_v), "vpp 3 counts as the two chunks of zb-v"));
  row = gpt_row();
  row.vpp = "2";
  CHECK(says(step(row), "vpp 2 counts as 1, as there is one stage"));
  row = gpt_row();
  row.ep = 4;
  CHECK(says(step(row), "ep 4 counts as 1, as the model has no experts"));
  row = gpt_row();
  row.task = "banana";
  row.overlap = "keep steps";  // of which "ep" is a part, not a word
  CHECK(says(step(row), "the task banana counts as pretrain"));
  CHECK(says(step(row), "overlap is 'keep steps', of which no word is known: as if not stated"));
  row.task = "Whole run";
  CHECK(refusal(row) == "a whole run: its time has restarts and evaluation in it");
}

TEST_CASE("a row says in small or capital letters that it ran out of memory") {
  TrainingRow row = gpt_row();
  row.published = "OOM";
  CHECK(row.out_of_memory());
  row.published = "iter_s";
  CHECK_FALSE(row.out_of_memory());
}
