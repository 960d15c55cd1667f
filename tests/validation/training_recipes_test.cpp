// What Megatron-Bridge's recipes have that its tables do not say: told by release, model, GPU and precision.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collcast/scenario/scenario.hpp"
#include "collcast/validation/training.hpp"
#include "training_rows.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

TrainingStep step_by_recipe(const TrainingRow& row) {
  const auto place = training_machines().place(row);
  REQUIRE(place.ok());
  Result<TrainingStep> step = training_step(row, *place);
  REQUIRE(step.ok());
  return std::move(step).value();
}

/// Of a dense model on 64 GPUs that says nothing of sequence parallelism, overlap and recomputation.
TrainingRow dense_row(const char* framework, const char* model, const char* gpu, const char* precision, int tp) {
  TrainingRow row = gpt_row();
  row.framework = framework;
  row.task = "pretrain";
  row.model_id = model;
  row.gpu = gpu;
  row.precision = precision;
  row.recompute = "";
  row.tp = tp;
  row.dp = 64 / tp;
  row.mbs = 1;
  return row;
}

bool says(const TrainingStep& step, const std::string& what) { return std::ranges::count(step.assumed, what) == 1; }

}  // namespace

TEST_CASE("recipes in bf16, and DeepSeek-V3's in any precision, have a precision-aware optimizer") {
  const auto optimizer = [](const char* framework, const char* model, const char* precision) {
    const TrainingStep step = step_by_recipe(dense_row(framework, model, "H100-SXM5-80GB", precision, 4));
    return step.inputs.options.precision_aware_optimizer;
  };
  const auto llama = optimizer("Megatron-Bridge 26.02", "llama3-70b", "bf16");
  REQUIRE(llama);
  CHECK(llama->exp_avg_dtype == StateFormat::fp32);
  CHECK(llama->store_param_remainders);
  CHECK_FALSE(optimizer("Megatron-Bridge 26.02", "llama3-70b", "fp8"));
  CHECK_FALSE(optimizer("NeMo 24.07", "llama3-70b", "bf16"));
  const auto deepseek = optimizer("Megatron-Bridge 26.02", "deepseek-v3", "fp8");
  REQUIRE(deepseek);
  CHECK(deepseek->exp_avg_dtype == StateFormat::bf16);
}

TEST_CASE("with TP every recipe splits the sequence, and some run TP in rings") {
  const auto step = [](const char* framework, const char* model, const char* gpu, const char* precision, int tp = 4) {
    return step_by_recipe(dense_row(framework, model, gpu, precision, tp));
  };
  const auto is = [](const TrainingStep& s, bool sequence_parallel, TpOverlap overlap) {
    return s.inputs.layout.sequence_parallel == sequence_parallel && s.inputs.options.overlap_tp == overlap;
  };
  using enum TpOverlap;
  const char* const h100 = "H100-SXM5-80GB";
  CHECK(is(step("Megatron-Bridge 26.02", "llama3-70b", h100, "fp8"), true, ring));
  CHECK(is(step("Megatron-Bridge 26.02", "llama3.1-405b", "GB200-186GB", "mxfp8"), true, ring));
  CHECK(is(step("Megatron-Bridge 26.02", "llama3.1-405b", "GB200-186GB", "nvfp4"), true, backward));
  CHECK(is(step("Megatron-Bridge 26.02", "gpt3-175b", h100, "fp8"), true, backward));
  CHECK(is(step("Megatron-Bridge 25.09", "qwen3-235b-a22b", "GB200-186GB", "fp8"), true, ring));
  CHECK(is(step("Megatron-Bridge 25.09", "qwen3-235b-a22b", h100, "fp8"), true, backward));
  CHECK(is(step("Megatron-Bridge 26.02", "llama3-70b", h100, "fp8", 1), false, backward));
  // No other framework has these recipes, and what a row says counts.
  CHECK(is(step("Megatron-Core 0.8", "llama3-70b", h100, "fp8"), false, backward));
  TrainingRow row = dense_row("Megatron-Bridge 26.02", "llama3-70b", h100, "fp8", 4);
  row.task = "lora";
  CHECK(is(step_by_recipe(row), true, backward));
  row.task = "pretrain", row.overlap = "none";
  CHECK(is(step_by_recipe(row), true, none));
  row.sp = 0;
  CHECK_FALSE(step_by_recipe(row).inputs.layout.sequence_parallel);
  row.sp = std::nullopt;
  CHECK(says(step_by_recipe(row), "sp not stated: 1, as Megatron-Bridge's recipes have it with TP"));
}

TEST_CASE("rows of Nemotron 3, which state no sizes, have its layers") {
  const auto step = [](const char* model, const char* gpu, const char* precision, int ep) {
    TrainingRow row = dense_row("Megatron-Bridge 26.04", model, gpu, precision, 1);
    row.layers = row.hidden = row.ffn = row.heads = row.kv_heads = row.vocab = std::nullopt;
    row.gpus = row.dp = ep;
    row.ep = ep;
    return step_by_recipe(row);
  };
  const auto config = [](const char* name) {
    std::ifstream in(std::string(COLLCAST_SOURCE_DIR) + "/scenarios/models/" + name + "/config.json");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const Result<TransformerConfig> model = parse_hf_config(text, "config.json");
    REQUIRE(model.ok());
    return *model;
  };
  const TrainingStep nano = step("Nemotron_3_Nano", "B200-SXM-180GB", "mxfp8", 8);
  CHECK(nano.inputs.model.pattern == config("nemotron3-nano-30b-a3b").pattern);
  CHECK(parameter_count(nano.inputs.model) == parameter_count(config("nemotron3-nano-30b-a3b")));
  CHECK(active_parameter_count(nano.inputs.model) == active_parameter_count(config("nemotron3-nano-30b-a3b")));
  CHECK((nano.inputs.layout.ep == 8 && nano.inputs.options.moe_token_dispatcher == TokenDispatcher::flex));
  CHECK(says(nano, "layers and sizes not stated: 52 layers, by the model's config.json"));
  // Two layers behind those of the model predict two tokens more.
  const TrainingStep super = step("Nemotron_3_Super", "GB300-288GB", "mxfp8", 64);
  const TransformerConfig alone = config("nemotron3-super-120b-a12b");
  CHECK(super.inputs.model.pattern == alone.pattern);
  CHECK(super.inputs.model.mtp_layers == 2);
  TransformerConfig cut = super.inputs.model;
  cut.mtp_layers = 0;
  CHECK(parameter_count(cut) == parameter_count(alone));
  CHECK(says(super,
             "layers and sizes not stated: 88 layers and 2 that predict further tokens, by the model's config.json"));
  CHECK(step("Nemotron_3_5_Lightning", "GB200-186GB", "mxfp8", 8).inputs.model.mtp_layers == 1);
  CHECK(parameter_count(step("Nemotron_3_Ultra", "GB300-288GB", "mxfp8", 64).inputs.model) ==
        Approx(550e9).epsilon(0.04));
  using enum RecomputeModule;
  CHECK(step("Nemotron_3_Nano", "H100-SXM5-80GB", "bf16", 8).inputs.options.recompute_modules ==
        RecomputeModules{moe, layernorm});
}

TEST_CASE("a recipe's recomputation is that of the preset with the row's layout") {
  using enum RecomputeModule;
  const auto recomputed = [](const char* framework, const char* model, const char* gpu, const char* precision, int ep,
                             int micro_batch, const char* stated = "") {
    TrainingRow row = dense_row(framework, model, gpu, precision, 1);
    row.experts = 128;
    row.topk = 4;
    row.ep = ep;
    row.mbs = micro_batch;
    row.recompute = stated;
    const TrainingStep step = step_by_recipe(row);
    const TrainingOptions& o = step.inputs.options;
    const bool any = o.recompute == Recompute::selective;
    CHECK(says(step, "recompute not stated: none") == (!any && std::string(stated).empty()));
    return any ? o.recompute_modules : RecomputeModules{};
  };
  const RecomputeModules of_gpt_oss{layernorm, moe_act};
  CHECK(recomputed("Megatron-Bridge 26.04", "gpt-oss-120b", "GB200-186GB", "bf16", 64, 4) == of_gpt_oss);
  CHECK(recomputed("Megatron-Bridge 26.04.01", "gpt-oss-120b", "B200-SXM-180GB", "bf16", 8, 4) == of_gpt_oss);
  CHECK(recomputed("Megatron-Bridge 25.11", "deepseek-v3", "GB200-186GB", "bf16", 64, 1) ==
        RecomputeModules{mla_up_proj});
  CHECK(recomputed("Megatron-Bridge 26.04.01", "deepseek-v3", "B200-SXM-180GB", "mxfp8", 32, 1) ==
        RecomputeModules{mla_up_proj, mlp});
  CHECK(recomputed("Megatron-Bridge 25.09", "deepseek-v3", "H100-SXM5-80GB", "fp8", 64, 1) ==
        RecomputeModules{mla_up_proj, mlp});
  // Another GPU, precision, release or layout is another preset.
  CHECK(recomputed("Megatron-Bridge 26.04", "gpt-oss-120b", "GB300-288GB", "bf16", 64, 4).empty());
  CHECK(recomputed("Megatron-Bridge 26.06", "gpt-oss-120b", "GB200-186GB", "mxfp8", 64, 4).empty());
  CHECK(recomputed("Megatron-Bridge 25.11", "gpt-oss-120b", "GB200-186GB", "bf16", 64, 4).empty());
  CHECK(recomputed("Megatron-Bridge 26.04", "gpt-oss-120b", "GB200-186GB", "bf16", 64, 1).empty());
  CHECK(recomputed("Megatron-Bridge 26.04", "gpt-oss-120b", "GB200-186GB", "bf16", 64, 4, "none").empty());
}

TEST_CASE(
    "a recipe with FSDP moves the activations of its layers to the host's memory, without which it would not fit") {
  const auto offloaded = [](const char* framework, const char* model, const char* gpu, const char* precision,
                            int micro_batch, const char* zero = "fsdp") {
    TrainingRow row = dense_row(framework, model, gpu, precision, 1);
    row.mbs = micro_batch;
    row.zero = zero;
    row.recompute = "none";
    row.layers = 100;
    const TrainingStep step = step_by_recipe(row);
    const int layers = step.inputs.options.cpu_offloading_num_layers;
    CHECK(step.inputs.host_bandwidth.value() > 0);
    CHECK(says(step, "activations of " + std::to_string(layers) +
                         " layers in the host's memory, as Megatron-Bridge's recipe says") == (layers > 0));
    return layers;
  };
  CHECK(offloaded("Megatron-Bridge 26.02", "llama3-70b", "GB300-288GB", "fp8", 2) == 20);
  CHECK(offloaded("Megatron-Bridge 25.09", "llama3-70b", "GB200-186GB", "fp8-cs", 2) == 40);
  CHECK(offloaded("Megatron-Bridge 26.02", "llama3-70b", "GB200-186GB", "bf16", 1) == 20);
  CHECK(offloaded("Megatron-Bridge 26.02", "llama3-70b", "B200-SXM-180GB", "fp8", 1) == 5);
  CHECK(offloaded("Megatron-Bridge 25.09", "llama3.1-405b", "GB200-186GB", "fp8", 1) == 80);
  CHECK(offloaded("Megatron-Bridge 25.11", "llama3.1-405b", "GB200-186GB", "fp8", 1) == 92);
  CHECK(offloaded("Megatron-Bridge 25.11", "llama3.1-405b", "GB300-288GB", "fp8", 1) == 10);
  // Other presets, and runs without FSDP.
  CHECK(offloaded("Megatron-Bridge 26.02", "llama3-70b", "GB200-186GB", "fp8", 1) == 0);
  CHECK(offloaded("Megatron-Bridge 26.02", "llama3-70b", "GB200-186GB", "fp8", 2, "dist-opt") == 0);
  CHECK(offloaded("Megatron-Bridge 26.02", "llama3-8b", "GB200-186GB", "fp8", 2) == 0);
  CHECK(offloaded("NeMo 24.07", "llama3-70b", "GB200-186GB", "fp8", 2) == 0);
}

TEST_CASE("steps measured with activations on the host are as much longer as forecast, and hold as much less") {
  std::ifstream file(COLLCAST_SOURCE_DIR "/validation/data/one-gpu/steps-offload.csv");
  const Result<TrainingTables> tables = read_training_csv(file, "steps-offload.csv");
  REQUIRE(tables.ok());
  const TrainingReport report = validate_training(*tables, training_machines(), {});
  struct Run {
    double measured = 0, forecast = 0, measured_bytes = 0, forecast_bytes = 0;
  };
  std::map<std::string, Run> plain;  // by GPU, model and tokens
  std::vector<std::pair<std::string, Run>> offloaded;
  for (const TrainingDeviation& row : report.rows) {
    const auto of = std::ranges::find(tables->rows, row.row_id, &TrainingRow::row_id);
    REQUIRE(of != tables->rows.end());
    const Run run{row.measured->count(), row.predicted.count(), static_cast<double>(row.measured_memory->value()),
                  static_cast<double>(row.memory.use.allocated().value())};
    const std::string job = of->gpu + " " + of->model_id + " " + std::to_string(*of->seq);
    if (of->notes.find("on the host") == std::string::npos)
      plain[job] = run;
    else
      offloaded.emplace_back(job, run);
  }
  REQUIRE(plain.size() == 4);
  REQUIRE(offloaded.size() == 7);
  for (const auto& [job, run] : offloaded) {
    const Run& without = plain.at(job);
    INFO(job);
    CHECK(run.forecast / without.forecast == Approx(run.measured / without.measured).epsilon(0.1));
    CHECK(without.forecast_bytes - run.forecast_bytes ==
          Approx(without.measured_bytes - run.measured_bytes).epsilon(0.01));
  }
}

TEST_CASE("how tokens get to their experts is what a recipe of the row's release, model, GPU and precision says") {
  const auto sent = [](const char* framework, const char* model, const char* gpu, const char* precision, int ep = 8) {
    TrainingRow row = gpt_row();
    row.framework = framework;
    row.model_id = model;
    row.gpu = gpu;
    row.precision = precision;
    row.experts = 128;
    row.topk = 8;
    row.tp = 1;
    row.dp = 64;
    row.ep = ep;
    const auto place = training_machines().place(row);
    REQUIRE(place.ok());
    Result<TrainingStep> step = training_step(row, *place);
    REQUIRE(step.ok());
    return std::move(step).value();
  };
  const auto is = [](const TrainingStep& step, TokenDispatcher dispatcher, bool beside) {
    const TrainingOptions& o = step.inputs.options;
    return o.moe_token_dispatcher == dispatcher && o.overlap_ep == beside;
  };
  constexpr auto alltoall = TokenDispatcher::alltoall, flex = TokenDispatcher::flex;
  CHECK(is(sent("Megatron-Bridge 26.06", "qwen3-30b-a3b", "GB300-288GB", "mxfp8"), flex, true));
  CHECK(is(sent("Megatron-Bridge 26.06", "qwen3-30b-a3b", "GB300-288GB", "bf16"), flex, false));
  CHECK(is(sent("Megatron-Bridge 26.04.01", "qwen3-30b-a3b", "GB300-288GB", "mxfp8"), flex, false));
  CHECK(is(sent("Megatron-Bridge 26.04", "qwen3-235b-a22b", "H100-SXM5-80GB", "fp8"), alltoall, true));
  CHECK(is(sent("Megatron-Bridge 25.11", "qwen3-30b-a3b", "GB200-186GB", "mxfp8"), alltoall, false));
  CHECK(is(sent("Megatron-Bridge 25.09", "deepseek-v3", "H100-SXM5-80GB", "fp8"), flex, true));
  // Patch releases come after the release, and no other framework has these recipes.
  CHECK(is(sent("Megatron-Bridge 26.06", "qwen3-30b-a3b", "B200-SXM-180GB", "mxfp8"), flex, false));
  CHECK(is(sent("Megatron-Bridge 26.06.01", "qwen3-30b-a3b", "B200-SXM-180GB", "mxfp8"), flex, true));
  CHECK(is(sent("Megatron-Core 26.06", "qwen3-30b-a3b", "GB300-288GB", "mxfp8"), alltoall, false));
  CHECK(is(sent("Megatron-Bridge 26.06", "qwen3-30b-a3b", "GB300-288GB", "mxfp8", 1), alltoall, false));
  const auto says = [](const TrainingStep& step, const char* what) {
    return std::ranges::count(step.assumed, what) == 1;
  };
  CHECK(says(sent("Megatron-Bridge 26.06", "qwen3-30b-a3b", "GB300-288GB", "mxfp8"),
             "tokens sent once to a node and a rank, beside computing, experts' kernels fused, as Megatron-Bridge's "
             "recipe says"));
  CHECK(says(sent("Megatron-Bridge 25.11", "qwen3-30b-a3b", "GB200-186GB", "mxfp8"),
             "tokens by an all-to-all that nothing hides, as no recipe is known"));
  const auto fused = [](const TrainingStep& step) { return step.inputs.options.moe_grouped_mlp_fusion; };
  CHECK(fused(sent("Megatron-Bridge 26.06", "gpt-oss-120b", "GB300-288GB", "mxfp8")));
  CHECK_FALSE(fused(sent("Megatron-Bridge 26.06", "gpt-oss-120b", "GB300-288GB", "bf16")));
  CHECK_FALSE(fused(sent("Megatron-Bridge 26.04", "deepseek-v3", "B200-SXM-180GB", "mxfp8")));
  const TrainingStep ultra = sent("Megatron-Bridge 26.08", "nemotron_3_ultra", "GB300-288GB", "mxfp8");
  CHECK((fused(ultra) && is(ultra, flex, false)));
  const TrainingStep behind = sent("Megatron-Bridge 25.09", "deepseek-v3", "H100-SXM5-80GB", "fp8");
  CHECK_FALSE(behind.inputs.options.overlap_dp);
}

TEST_CASE("how inputs of products are kept is said where the precision makes it matter, as the step has it") {
  const auto of = [](const char* framework, const char* precision) {
    return step_by_recipe(dense_row(framework, "llama3-70b", "H100-SXM5-80GB", precision, 4));
  };
  const auto said = [](const TrainingStep& step) { return step.assumed.back(); };
  using Catch::Matchers::Contains;
  for (const char* framework : {"Megatron-Bridge 26.02", "Megatron-Core 0.8", "NeMo 24.09"}) {
    CHECK_FALSE(of(framework, "fp8").inputs.options.save_original_input);
    CHECK_THAT(said(of(framework, "fp8")), Contains(", inputs of products kept in fp8"));
    CHECK_THAT(said(of(framework, "bf16")), !Contains("inputs of products"));
  }
  CHECK_THAT(said(of("Megatron-Bridge 26.02", "nvfp4")), Contains(", inputs of products kept in fp4"));
  CHECK(of("TorchTitan", "fp8").inputs.options.save_original_input);
  CHECK_THAT(said(of("TorchTitan", "fp8")), Contains(", inputs of products kept in 16 bit"));
  CHECK_FALSE(of("TorchTitan", "bf16").inputs.options.save_original_input);
  CHECK_THAT(said(of("TorchTitan", "bf16")), !Contains("inputs of products"));
}
