// Training steps: rows as inputs of a step, what they are scored by, and the command.
#include "collcast/validation/training.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "cli/process.hpp"
#include "training_rows.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;

namespace {

std::string why_not(const TrainingRow& row) {
  const Result<ScoredPlace> place = training_machines().place(row);
  if (!place) return place.errors().front().message;
  const Result<TrainingStep> step = training_step(row, *place);
  return step ? std::string() : step.errors().front().message;
}

const std::string training_data = std::string(COLLCAST_SOURCE_DIR) + "/validation/data/training/";

}  // namespace

TEST_CASE("a row is put on the machine of its GPU, with the network that it states") {
  TrainingRow row = gpt_row();
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  CHECK(place->machine.name == "dgx-a100");
  CHECK(place->nodes == 8);
  CHECK(place->remark.empty());

  row.inter_gbps_per_gpu = 50;  // a quarter of dgx-a100's
  const Result<ScoredPlace> slow = training_machines().place(row);
  REQUIRE(slow.ok());
  const auto rate = [](const ScoredPlace& at) { return std::get<LeafSpineNetwork>(at.machine.network).bandwidth; };
  if (slow->machine.name == place->machine.name) CHECK(rate(*slow).value() == Approx(rate(*place).value() / 4));
  CHECK(slow->machine.gpu.model == "A100-SXM4-80GB");

  row.gpu = "TPUv3";
  CHECK(why_not(row) == "no machine has the GPU 'TPUv3'");
}

TEST_CASE("rows whose network rates are nearly the same each have their own, in any order") {
  TrainingRow faster = gpt_row(), slower = gpt_row();
  faster.inter_gbps_per_gpu = 2.5;
  slower.inter_gbps_per_gpu = 1.6;
  CHECK(training_machines().place(faster)->remark.ends_with(" at 2.5 Gb/s per GPU instead of 200"));
  const auto predicted = [](std::vector<TrainingRow> rows) {
    TrainingTables tables;
    tables.rows = std::move(rows);
    return validate_training(tables, training_machines(), {{}, false, {}}).rows;
  };
  const double alone = predicted({faster}).at(0).predicted.count();
  const auto both = predicted({faster, slower}), turned = predicted({slower, faster});
  CHECK(both.at(0).predicted.count() == alone);
  CHECK(turned.at(1).predicted.count() == alone);
  // Gradients of 2 bytes of each half of 3.6e9 parameters, summed over 8 nodes: 2 x 7/8 x 2 x 3.6 GB = 12.6 GB through
  // a node's 8 NICs, 5 s at 2.5 Gb/s each and 7.9 s at 1.6.
  CHECK(both.at(1).predicted.count() > alone + 2);
  CHECK(turned.at(0).predicted == both.at(1).predicted);
}

TEST_CASE("a board of a chip that is known in other nodes than the row's goes into those of its size") {
  TrainingRow row = gpt_row();
  row.gpu = "H100-96GB-HBM2e";
  row.gpus = 128;
  row.gpus_per_node = 8;
  row.intra_net = "NVLink4 450GB/s/dir";
  row.inter_gbps_per_gpu = 400;
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  CHECK(place->machine.name == "dgx-h100");
  CHECK(place->machine.gpu.model == "H100-SXM5-94GB");
  CHECK(place->measured);
  CHECK(place->nodes == 16);
  CHECK(place->remark == "GPUs of snellius-h100 in nodes of dgx-h100");
  row.gpu = "H100-96GB-HBM2e-500W";
  const Result<ScoredPlace> limited = training_machines().place(row);
  REQUIRE(limited.ok());
  CHECK(limited->remark ==
        "GPUs of snellius-h100 in nodes of dgx-h100; 500 W of the 700 that the GPU usually has: 0.894 of the clock");
  CHECK(limited->kernels.gemm.at("bf16").compute ==
        Approx(0.894 * place->kernels.gemm.at("bf16").compute).epsilon(1e-3));
  CHECK(limited->kernels.memory_bound.memory == place->kernels.memory_bound.memory);
  row.gpu = "H100-96GB-HBM2e-700W";
  REQUIRE(training_machines().place(row).ok());
  CHECK(training_machines().place(row)->machine.gpu.power_limit == 1);
  for (const char* other : {"H100-80GB-350W", "H200-SXM-141GB-500W"}) {
    row.gpu = other;
    const Result<ScoredPlace> unknown = training_machines().place(row);
    REQUIRE(unknown.ok());
    CHECK(unknown->machine.gpu.power_limit == 1);
    CHECK_THAT(unknown->remark, Catch::Contains("W of the GPU's name have no part"));
  }
  row.gpu = "H100-96GB-HBM2e";
  row.gpus_per_node = 4;
  REQUIRE(training_machines().place(row).ok());
  CHECK(training_machines().place(row)->machine.name == "snellius-h100");
  // Of a size that nobody described, and of one that is not stated, as before.
  for (const std::optional<int> size : {std::optional<int>(6), std::optional<int>()}) {
    row.gpus_per_node = size;
    REQUIRE(training_machines().place(row).ok());
    CHECK(training_machines().place(row)->machine.name == "snellius-h100");
  }
}

TEST_CASE("a GPU without a kernel table has the one that stands in, and the row says so") {
  TrainingRow row = gpt_row();
  row.gpu = "V100-SXM3-32GB";
  row.gpus_per_node = 16;
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  CHECK(place->machine.name == "dgx2-v100");
  CHECK_FALSE(place->measured);
  CHECK_THAT(place->remark, Catch::Contains("kernels were not measured on V100-SXM3-32GB: the table 'data-sheet'"));
  // Beside measured machines those without a table are for no row that has one, however like they are.
  for (const char* gpu : {"A100-SXM4-80GB", "H100-SXM5-80GB", "H200-SXM-141GB", "B200"}) {
    row.gpu = gpu;
    for (const int per_node : {4, 8, 16}) {
      row.gpus_per_node = per_node;
      const Result<ScoredPlace> known = training_machines().place(row);
      REQUIRE(known.ok());
      CHECK(known->measured);
    }
  }
}

TEST_CASE("a row's words are a step's inputs") {
  TrainingRow row = gpt_row();
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  const Result<TrainingStep> step = training_step(row, *place);
  REQUIRE(step.ok());
  const StepInputs& in = step->inputs;
  CHECK(in.layout.tp == 2);
  CHECK(in.layout.dp == 32);
  CHECK(in.batch.micro_batches(in.layout) == 1);
  CHECK(in.options.recompute == Recompute::full);
  CHECK(in.options.precision == "fp16");
  CHECK(in.model.head_dim == 96);
  CHECK(in.model.tied_embeddings);
  const std::string habits = "as " + row.framework +
                             " runs: unfused attention, dropout 0.1, gradients of 2 bytes, added up by kernels of "
                             "their own, the loss kernel by kernel, 85 us between kernel launches, 15 us in backwards";
  CHECK(step->assumed == std::vector<std::string>{habits + ", gradients exchanged behind it, TP exposed"});
  // What the row says is not taken.
  row.overlap = "dp";
  CHECK(training_step(row, *place)->assumed == std::vector<std::string>{habits});

  row.recompute = "selective(attention core)";
  row.zero = "dist-opt";
  row.precision = "bf16(fp32 grad accumulation)";
  const Result<TrainingStep> other = training_step(row, *place);
  REQUIRE(other.ok());
  CHECK(other->inputs.options.recompute == Recompute::selective);
  CHECK(other->inputs.options.zero == 1);
  CHECK(other->inputs.options.gradient_bytes == 4);
}

TEST_CASE("Transformer Engine keeps a gradient per shape of weights besides: about a layer of them") {
  TrainingRow row = gpt_row();
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  CHECK(training_step(row, *place)->kept_besides == Bytes(0));
  row.framework = "Megatron-LM + TE 2.11";
  // 12 h^2 weights of a layer on two ranks, 2 bytes each.
  CHECK(training_step(row, *place)->kept_besides == Bytes(std::int64_t{12} * 3072 * 3072));
}

TEST_CASE("Megatron pads a vocabulary to 128 rows for each TP rank") {
  TrainingRow row = gpt_row();
  row.vocab = 50'257;
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  CHECK(training_step(row, *place)->inputs.model.vocab == 50'432);  // 197 x 256
  row.framework = "InternEvo";
  CHECK(training_step(row, *place)->inputs.model.vocab == 50'257);
}

TEST_CASE("vTrain's single node leaves GPT-2's vocabulary as it is: so many whole rows on each TP rank") {
  TrainingRow row = gpt_row();
  row.vocab = 51'200;
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  CHECK(training_step(row, *place)->inputs.model.vocab == 51'200);
  row.source_id = "vtrain-single";
  const Result<TrainingStep> halves = training_step(row, *place);
  CHECK(halves->inputs.model.vocab == 50'256);
  REQUIRE(halves->assumed.size() == 2);
  CHECK(halves->assumed[0] == "vocab 25128 on each TP rank, not padded");
  row.tp = 1;
  row.dp = 64;
  CHECK(training_step(row, *place)->inputs.model.vocab == 50'257);
}

TEST_CASE("BLOOM's search launched kernel by kernel: each has its launch in its own time") {
  TrainingRow row = gpt_row();
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  const StepInputs usual = training_step(row, *place)->inputs;
  row.source_id = "bloom-prequel";
  const Result<TrainingStep> step = training_step(row, *place);
  const StepInputs& blocking = step->inputs;
  CHECK(usual.options.launch > Seconds{});
  CHECK(blocking.options.launch == Seconds{});
  CHECK_FALSE(blocking.options.launch_backward);
  const auto later = [&](const KernelEfficiency& by, const KernelEfficiency& than) {
    return by.overhead == than.overhead + step->collective_launch;
  };
  CHECK(later(blocking.kernels.gemm.at("fp16"), usual.kernels.gemm.at("fp16")));
  CHECK(later(blocking.kernels.attention.at("fp16"), usual.kernels.attention.at("fp16")));
  CHECK(later(blocking.kernels.memory_bound, usual.kernels.memory_bound));
  // Of each kernel that of the mean one, as nobody goes ahead.
  CHECK(step->collective_launch < usual.options.launch);
  CHECK(step->collective_launch > *usual.options.launch_backward);
  REQUIRE(step->assumed.size() == 2);
  CHECK(step->assumed[0].find("CUDA_LAUNCH_BLOCKING=1") == 0);
}

TEST_CASE("DeepSpeed's ZeRO 1 sums gradients by all-reduce; a host that waits adds a launch to each collective") {
  TrainingRow row = gpt_row();
  row.zero = "zero1";
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  const CollectiveTime by_kind = [](const CollectiveRequest& r) -> Result<Seconds> {
    return Seconds(r.kind == CollectiveKind::all_reduce ? 2 : r.kind == CollectiveKind::reduce_scatter ? 1 : 0.5);
  };
  const auto price = [&](CollectiveKind kind) {
    TrainingStep step = std::move(training_step(row, *place)).value();
    step.inputs.layout.sequence_parallel = row.sp == 1;
    return *as_run(step, by_kind)({kind, Group::listed({Rank(0), Rank(1)}), Bytes(1), 0, {}});
  };
  CHECK(price(CollectiveKind::reduce_scatter) == Seconds(1));  // Megatron's own optimizer
  row.framework = "Megatron-DeepSpeed";
  CHECK(price(CollectiveKind::reduce_scatter) == Seconds(2));
  CHECK(price(CollectiveKind::all_gather) == Seconds(0.5));
  REQUIRE(training_step(row, *place)->assumed.size() == 2);
  CHECK(training_step(row, *place)->assumed[0] == "gradients summed by all-reduce, as DeepSpeed does with ZeRO 1");
  row.source_id = "bloom-prequel";
  const Seconds launch = training_step(row, *place)->collective_launch;
  CHECK(launch > Seconds{});
  CHECK(price(CollectiveKind::reduce_scatter) == Seconds(2) + launch);
  CHECK(price(CollectiveKind::all_gather) == Seconds(0.5) + launch);
  row.sp = 1;  // reduce-scatters are also of activations then
  CHECK(price(CollectiveKind::reduce_scatter) == Seconds(1) + launch);
  row.zero = "zero0";
  CHECK_FALSE(training_step(row, *place)->gradients_by_all_reduce);
}

TEST_CASE("InternEvo sums gradients by all-reduce; groups that share a state are a row's") {
  TrainingRow row = gpt_row();
  row.framework = "InternEvo";
  row.zero = "zero1 over all DP";
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  CHECK(training_step(row, *place)->gradients_by_all_reduce);
  CHECK(training_step(row, *place)->inputs.layout.shards() == 32);
  row.zero = "zero1 in groups of 8";
  CHECK(training_step(row, *place)->inputs.layout.shards() == 8);
  row.zero = "zero1 in groups of 64";
  CHECK(training_step(row, *place)->inputs.layout.shards() == 32);
  row.zero = "zero1 in groups of some";
  CHECK_FALSE(training_step(row, *place).ok());
}

TEST_CASE("hsdp splits a state over the replicas of a node") {
  TrainingRow row = gpt_row();
  row.framework = "fms-fsdp";
  row.zero = "hsdp";
  row.tp = 1;
  row.sp = 0;
  row.dp = 64;
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  const Result<TrainingStep> step = training_step(row, *place);
  REQUIRE(step.ok());
  CHECK(step->inputs.options.zero == 3);
  CHECK(step->inputs.layout.shards() == 8);
  row.tp = 2;
  row.dp = 32;
  CHECK(training_step(row, *place).value().inputs.layout.shards() == 4);
  row.gpus_per_node.reset();
  CHECK_FALSE(training_step(row, *place).ok());
}

TEST_CASE("attention runs as fast as the kernels that a framework had") {
  TrainingRow row = gpt_row();
  const auto rate = [&](const std::string& framework) {  // of the peak
    row.framework = framework;
    const Result<ScoredPlace> place = training_machines().place(row);
    REQUIRE(place.ok());
    const StepInputs in = training_step(row, *place)->inputs;
    CHECK(place->kernels.attention.at("bf16").compute >= in.kernels.attention.at("bf16").compute);
    return in.kernels.attention.at("bf16").compute;
  };
  const double table = rate("NeMo");
  CHECK(rate("llm-foundry/Composer FSDP") == Approx(0.325));
  CHECK(rate("InternEvo") == Approx(0.325));
  CHECK(rate("TorchTitan") == table);  // 230 of 312 TFLOP/s are more than the table's kernels reach
  row.gpu = "H100-SXM5-80GB";
  // 0.325 x 312 TFLOP/s x 335 / 230, and 317 as it was measured, of 989.4.
  CHECK(rate("llm-foundry/Composer FSDP") == Approx(0.1493).epsilon(1e-3));
  CHECK(rate("TorchTitan") == Approx(317 / 989.4).epsilon(1e-3));
  CHECK(rate("NeMo") > 335 / 989.4);
  const auto step = [&](const std::string& framework, const std::string& notes) {
    row.framework = framework;
    row.notes = notes;
    return training_step(row, *training_machines().place(row))->inputs;
  };
  const auto backward = [&](const std::string& framework, const std::string& notes) {
    return step(framework, notes).kernels.attention_gradient.at("bf16").compute;
  };
  CHECK(backward("TorchTitan", "") == Approx(257 / 989.4).epsilon(1e-3));
  CHECK(backward("PyTorch 2.11", "attention flash") == Approx(257 / 989.4).epsilon(1e-3));
  CHECK(backward("PyTorch 2.11", "attention cudnn") == backward("NeMo", ""));
  CHECK(step("PyTorch 2.11", "weights, gradients and states bf16; each layer compiled").options.gradient_bytes == 2);
  CHECK_FALSE(step("PyTorch 2.11", "each layer compiled").options.fuse_loss);
  CHECK(step("PyTorch 2.11", "each layer and the loss compiled").options.fuse_loss);
  CHECK_FALSE(step("Megatron-LM", "").options.fuse_loss);
  CHECK_FALSE(step("TorchTitan", "eager").options.fuse_loss);
  CHECK(step("TorchTitan", "compile").options.fuse_loss);
}

TEST_CASE("experts and latent attention come from the row and its model, the rest from the framework's habits") {
  TrainingRow row = gpt_row();
  row.framework = "Megatron-Bridge 26.02";
  row.experts = 128;
  row.topk = 8;
  row.moe_ffn = 768;
  row.shared_experts = 2;
  row.dense_layers = 1;
  row.ep = 8;
  row.sp = std::nullopt;
  row.kv_lora = 512;
  row.q_lora = 1536;
  row.qk_nope = 128;
  row.qk_rope = 64;
  row.v_head = 128;
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  const StepInputs in = training_step(row, *place)->inputs;
  CHECK((in.model.experts.count == 128 && in.model.experts.top_k == 8 && in.model.experts.ffn == 768));
  CHECK((in.model.experts.shared_ffn == 1536 && in.model.experts.dense_layers == 1));
  CHECK((in.model.latent.kv_rank == 512 && in.model.key_dim() == 192 && in.model.value_dim() == 128));
  CHECK((in.layout.ep == 8 && in.layout.etp == 1 && in.layout.sequence_parallel));
  row.framework = "NeMo";
  CHECK(training_step(row, *place)->inputs.layout.etp == 2);
  // 64 GPUs as tp 2 x ep 8 x 4 replicas of the experts: 32 of everything else.
  row.dp = 4;
  CHECK(training_step(row, *place)->inputs.layout.dp == 32);
  row.dp = 5;
  CHECK(why_not(row) == "tp 2 x pp 1 x cp 1 x dp 5 are 10 GPUs, not 64");
}

TEST_CASE("words for recomputation stand for modules, or for a share of the layers") {
  using M = RecomputeModule;
  const auto read = [](const TrainingRow& of) {
    const Result<ScoredPlace> place = training_machines().place(of);
    REQUIRE(place.ok());
    return training_step(of, *place);
  };
  TrainingRow row = gpt_row();
  row.framework = "TorchTitan";
  row.precision = "bf16";
  row.gated_mlp = 1;
  row.tp = 1;
  row.dp = 64;
  const auto options = [&](const char* word) {
    row.recompute = word;
    const Result<TrainingStep> step = read(row);
    INFO(to_text(step.errors()));
    REQUIRE(step.ok());
    return step->inputs.options;
  };
  const auto has = [](const TrainingOptions& o, std::vector<M> modules) {
    const std::set<M> named(o.recompute_modules.begin(), o.recompute_modules.end());
    return o.recompute == Recompute::selective && named == std::set<M>(modules.begin(), modules.end());
  };
  CHECK(has(options("selective(per-op)"), {M::layernorm, M::k_proj, M::o_proj, M::up_proj, M::mlp_act}));
  row.tp = 2;
  row.dp = 32;
  CHECK_FALSE(recomputes(options("selective(per-op)"), M::o_proj));
  CHECK(options("selective(every other layer)").recompute == Recompute::full);
  CHECK(options("selective(every other layer)").recompute_layers == 0.5);
  CHECK(options("RMSNorm + MLA up-projections").recompute_modules == RecomputeModules{M::layernorm, M::mla_up_proj});
  CHECK(options("selective(attention core)").recompute == Recompute::none);  // flash attention
  // HFU over MFU: with all layers 4/3 but for the logits, which are never computed once more.
  row.recompute = "selective(per-op/ratio)";
  CHECK(to_text(read(row).errors()).find("of how many layers") != std::string::npos);
  row.mfu_pct = 60;
  row.hfu_pct = 70;
  const TrainingOptions some = options("selective(per-op/ratio)");
  CHECK(some.recompute == Recompute::full);
  CHECK(some.recompute_layers == Approx(0.5).epsilon(0.05));
  row.hfu_pct = 90;
  CHECK(options("selective(per-op/ratio)").recompute_layers == 1);
}

TEST_CASE("rows of fine-tuning have adapters beside queries, keys and values, of their recipe's rank") {
  TrainingRow row = gpt_row();
  const auto adapters = [&row] {
    const Result<ScoredPlace> place = training_machines().place(row);
    REQUIRE(place.ok());
    const Result<TrainingStep> step = training_step(row, *place);
    REQUIRE(step.ok());
    return step->inputs.options.lora;
  };
  row.task = "lora";
  for (const auto& [framework, rank] : {std::pair{"NeMo 24.07", 32}, {"NeMo", 16}, {"Megatron-Bridge 26.06", 16}}) {
    row.framework = framework;
    CHECK(adapters().rank == rank);
    CHECK(adapters().target_modules == std::vector{AdapterModule::linear_qkv});
  }
  row.task = "pretrain";
  CHECK(adapters().rank == 0);
}

TEST_CASE("what no step can be yet, and what a row does not state, is a reason") {
  const auto changed = [](auto change) {
    TrainingRow row = gpt_row();
    change(row);
    return why_not(row);
  };
  CHECK(changed([](TrainingRow& r) { r.experts = 8; }) == "not stated: topk");
  CHECK(changed([](TrainingRow& r) { r.schedule = "Chimera"; }).starts_with("the schedule Chimera is not modelled: "));
  CHECK(changed([](TrainingRow& r) { r.zero = "hsdp-3"; }).starts_with("the sharding hsdp-3 is not modelled: "));
  CHECK(changed([](TrainingRow& r) { r.recompute = "some of it"; }) == "the recomputation some of it is not modelled");
  CHECK(changed([](TrainingRow& r) { r.precision = "int4"; }).starts_with("the precision int4 is not modelled: "));
  CHECK(changed([](TrainingRow& r) { r.precision = "nvfp4 or fp8 (not resolved)"; }) ==
        "the precision is not resolved: nvfp4 or fp8 (not resolved)");
  CHECK(changed([](TrainingRow& r) { r.dp = 16; }) == "tp 2 x pp 1 x cp 1 x dp 16 are 32 GPUs, not 64");
  CHECK(changed([](TrainingRow& r) { r.seq = std::nullopt, r.mbs = std::nullopt; }) == "not stated: seq, mbs");
  CHECK(changed([](TrainingRow& r) { r.pp = 2, r.dp = 16; }) == "not stated: vpp");
}

TEST_CASE("a step's time is what its row states or implies") {
  TrainingRow row = gpt_row();
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  const StepInputs in = training_step(row, *place)->inputs;
  CHECK(measured_step(row, in)->time == Seconds(4));
  row.iter_s = std::nullopt;
  row.tok_s_gpu = 4096;  // 512 samples of 2048 tokens on 64 GPUs: 16384 tokens each
  CHECK(measured_step(row, in)->time.count() == Approx(4));
  row.tok_s_gpu = std::nullopt;
  row.samples_s = 128;
  CHECK(measured_step(row, in)->time.count() == Approx(4));
  row.samples_s = std::nullopt;
  CHECK_FALSE(measured_step(row, in).has_value());
  // Narayanan et al. 2021: 96 B s L h^2 (1 + s/6h + V/16Lh) with full recomputation.
  row.tflops_gpu = 138;
  row.tflops_kind = "hardware(full-recompute formula)";
  const double h = 3072, flops = 96.0 * 512 * 2048 * 30 * h * h * (1 + 2048 / (6 * h) + 51200 / (16 * 30 * h));
  CHECK(measured_step(row, in)->time.count() == Approx(flops / (138e12 * 64)));
}

TEST_CASE("validate --training: every shipped row is scored or has its reason, the same twice") {
  const Folder folder;
  const auto first = run_shell(training_command + "--format json", folder.path());
  const auto second = run_shell(training_command + training_data + " --format json", folder.path());
  REQUIRE(first.exit == 0);
  CHECK(first.out == second.out);
  const Json doc = Json::parse(first.out);
  CHECK(doc["schema"] == "collcast.validate.v1");
  CHECK(doc["tables"].empty());
  CHECK(doc["rows"].size() + doc["unscored"].size() == 1837);
  for (const Json& row : doc["rows"]) {
    if (row["measured_s"].is_null()) continue;
    const double measured = row["measured_s"], predicted = row["predicted_s"];
    CHECK(row["ape"].get<double>() == Approx(std::abs(predicted - measured) / measured));
    double parts = 0;
    for (const auto& [name, part] : row["breakdown"].items()) parts += part.get<double>();
    CHECK(parts == Approx(predicted));
  }
  for (const Json& row : doc["unscored"]) CHECK_FALSE(row["why"].get<std::string>().empty());
}

TEST_CASE("validate --training: budgets by tier, wrong ones with their place, options of tables refused") {
  const Folder folder;
  const std::string file = training_data + "vtrain_multi.csv ";
  CHECK(run_shell(training_command + file + "--budget vtrain-multi.A=99%", folder.path()).exit == 0);
  const auto missed = run_shell(training_command + file + "--format csv --budget calibrated.A=0.001%", folder.path());
  CHECK(missed.exit == 1);
  CHECK(missed.err.starts_with("budget calibrated all.A: missed"));
  const auto wrong = run_shell(training_command + file + "--budget D=1%,vtrain.A=1%,A=1", folder.path());
  CHECK(wrong.exit == 2);
  CHECK(wrong.err.find("unknown tier 'D'") != std::string::npos);
  CHECK(wrong.err.find("unknown source 'vtrain'") != std::string::npos);
  CHECK(wrong.err.find("did you mean 'vtrain-multi'?") != std::string::npos);
  CHECK(wrong.err.find("the limit is '1'") != std::string::npos);
  const auto refused = run_shell(training_command + file + "--part 1/2 --leave-one-out", folder.path());
  CHECK(refused.exit == 2);
  CHECK(refused.err.find("--part has no effect with --training") != std::string::npos);
  CHECK(refused.err.find("--leave-one-out has no effect with --training") != std::string::npos);
}
