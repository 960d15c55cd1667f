// Memory of published steps: what a row measures, and what the framework, the allocator, CUDA and NCCL take besides.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

#include "cli/process.hpp"
#include "collcast/validation/training.hpp"
#include "collcast/workload/terms.hpp"
#include "training_rows.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

TrainingStep step_of(const TrainingRow& row) {
  const Result<ScoredPlace> place = training_machines().place(row);
  REQUIRE(place.ok());
  Result<TrainingStep> step = training_step(row, *place);
  REQUIRE(step.ok());
  return std::move(step).value();
}

/// A GPT of 3.6 billion parameters, two ranks to a replica, under DeepSpeed with ZeRO 1.
TrainingRow deepspeed_row(int replicas) {
  TrainingRow row = gpt_row();
  row.framework = "Megatron-DeepSpeed";
  row.zero = "zero1";
  row.dp = replicas;
  row.gpus = 2 * replicas;
  row.gbs = 16 * replicas;
  return row;
}

/// Llama 3 8B under torchtitan on eight H100.
TrainingRow torchtitan_row(int tp) {
  TrainingRow row;
  row.row_id = "r";
  row.source_id = "torchtitan";
  row.framework = "TorchTitan";
  row.model_id = "llama3-8b";
  row.gpu = "H100-SXM5-80GB";
  row.precision = "bf16";
  row.zero = "fsdp2(zero3)";
  row.recompute = "full";
  row.layers = 32;
  row.hidden = 4096;
  row.ffn = 14336;
  row.heads = 32;
  row.kv_heads = 8;
  row.vocab = 128256;
  row.gated_mlp = 1;
  row.seq = 8192;
  row.gpus = row.gpus_per_node = 8;
  row.tp = tp;
  row.sp = tp > 1 ? 1 : 0;
  row.pp = row.cp = row.mbs = 1;
  row.dp = row.gbs = 8 / tp;
  return row;
}

double framework(const TrainingStep& step) {
  return static_cast<double>(training_memory(step, 8).use.framework.value());
}
double parameters(const TrainingStep& step) { return memory_terms(step.inputs, 0).parameters.total(); }

// Of a layer's backward: gradients of 16 x 2048 tokens, of the MLP's inner width over TP 2, and with dropout two of the
// residual's size.
constexpr double backward = 2.0 * 16 * 2048 * (12288 / 2 + 2 * 3072);
// The embedding's rows of one rank, its largest tensor.
constexpr double largest = 51200.0 / 2 * 3072;

}  // namespace

TEST_CASE("DeepSpeed's ZeRO 1: 22 bytes per parameter at the step of one replica") {
  const TrainingStep step = step_of(deepspeed_row(1));
  const MemoryUse memory = training_memory(step, 8).use;
  // 2 weights, 2 gradients, 12 Adam; at the step all gradients in one piece of 16 bit, then of 32.
  const double p = parameters(step);
  CHECK(static_cast<double>((memory.parameters + memory.gradients + memory.optimizer).value()) == Approx(16 * p));
  // Before, freed and each too small for the next: a second gradient of the embedding, its norm in fp64.
  CHECK(framework(step) == Approx(backward + 2 * largest + 8 * largest + 6 * p));
}

TEST_CASE("DeepSpeed's buffers at the end of a step take freed blocks that are large enough") {
  const TrainingStep step = step_of(deepspeed_row(32));
  // 2 bytes of the embedding, then a bucket of 5e8 elements. In these fit: the norm of the rank's 1/32 in fp64 and its
  // gradients as fp32 in the bucket (8 and 4 bytes of 5.6e7 elements), as fp16 in the first, gathered weights in the
  // bucket again.
  CHECK(parameters(step) / 32 == Approx(5.6e7).epsilon(0.01));
  CHECK(framework(step) == Approx(backward + 2 * largest + 2 * 5e8));

  TrainingRow row = deepspeed_row(32);
  row.zero = "zero0";
  // Every gradient as fp32, one by one and in one piece.
  CHECK(framework(step_of(row)) == Approx(backward + 2 * largest + 2 * 5e8 + 8 * parameters(step)));

  // Megatron's own optimizer: the backward of a layer that has been recomputed, with unfused attention also the scores'
  // addend, 32 heads over TP 2, and a matrix's gradient. The loss is over then: it runs kernel by kernel, and its 16 x
  // 2048 tokens and 51,200 rows over TP 2 count with 10 bytes each.
  row.zero = "0";
  const double unfused = 2.0 * 16 * 2048 * 2048 * 16 + 2.0 * 3072 * 12288 / 2;
  const TrainingStep large = step_of(row);
  const MemoryTerms terms = memory_terms(large.inputs, 0);
  CHECK(terms.loss().value() == 10.0 * 16 * 2048 * 25600);
  REQUIRE(terms.recomputed < terms.loss());
  CHECK(framework(large) == Approx((terms.recomputed - terms.loss()).value() + backward + unfused));
  // Of few rows the recomputed layer is more than the loss.
  row.vocab = 1024;
  CHECK(framework(step_of(row)) == Approx(backward + unfused));
}

TEST_CASE("Megatron: gradients of the last layer's residual and activation function beside all that a stage keeps") {
  TrainingRow row = gpt_row();
  row.vocab = 12800;
  row.tp = 1;
  row.pp = 4;
  row.vpp = "1";
  row.dp = 16;
  row.mbs = 2;
  row.recompute = "none";
  const TrainingStep classic = step_of(row);
  REQUIRE(training_memory(classic, 8).use.stage < 3);  // no head
  const double tokens = 2 * 2048, unfused = 2 * (tokens * 2048 * 32 + 3072.0 * 12288);
  // With dropout two gradients of the residual's size, and one of the MLP's inner width.
  CHECK(framework(classic) == Approx(2 * tokens * (2 * 3072 + 12288) + unfused));

  row.framework = "Megatron-Core";  // no dropout, flash attention
  const TrainingStep core = step_of(row);
  const double dummies = static_cast<double>(core.kept_besides.value());
  CHECK(framework(core) == Approx(2 * tokens * (3072 + 12288) + dummies));
  row.gated_mlp = 1;  // the gate's gradient and the other half's
  const TrainingStep gated = step_of(row);
  CHECK(framework(gated) - static_cast<double>(gated.kept_besides.value()) == Approx(2 * tokens * (3072 + 2 * 12288)));
  // Over TP 2 half of the inner width; with sequence parallelism half of the residual, and once all of it gathered.
  row.tp = 2;
  row.sp = 1;
  row.dp = 8;
  const TrainingStep split = step_of(row);
  CHECK(framework(split) - static_cast<double>(split.kept_besides.value()) ==
        Approx(2 * tokens * (3072 / 2 + 3072 + 12288)));

  // The loss is over when the layer's backward begins: what its logits took counts already.
  row.pp = 1;
  row.dp = 32;
  row.vocab = 1024;
  const TrainingStep whole = step_of(row);
  const MemoryTerms terms = memory_terms(whole.inputs, 0);
  const double loss = (terms.logits + terms.probabilities).value();
  REQUIRE(loss > 0);
  CHECK(framework(whole) - static_cast<double>(whole.kept_besides.value()) ==
        Approx(2 * tokens * (3072 / 2 + 3072 + 12288) - loss));
}

TEST_CASE("llm-foundry's loss is fused: two bytes of a logit and two of its gradient") {
  TrainingRow row = torchtitan_row(1);
  row.source_id = "llm-foundry";
  row.framework = "llm-foundry/Composer FSDP";
  row.zero = "fsdp(zero3)";
  row.gated_mlp = 0;
  const TrainingStep step = step_of(row);
  const MemoryUse use = training_memory(step, 8).use, usual = peak_memory(step.inputs, 8);
  CHECK(static_cast<double>((usual.buffers - use.buffers).value()) == Approx((2 + 4 - 2 - 2) * 8192.0 * 128256));
  CHECK(use.framework == Bytes(0));
}

TEST_CASE("DeepSpeed's bf16 keeps 16-bit gradients beside those that sum up in fp32") {
  TrainingRow row = deepspeed_row(32);
  row.precision = "bf16(fp32 grad accumulation)";
  const TrainingStep step = step_of(row);
  CHECK(step.inputs.options.gradient_bytes == 4);
  // Besides the embedding's gradient once more as fp32, and a bucket of gathered weights.
  CHECK(framework(step) == Approx(backward + 2 * parameters(step) + 4 * largest + 2 * 5e8));
}

TEST_CASE("a stage of DeepSpeed keeps what it sends on, a share on each TP rank") {
  TrainingRow row = deepspeed_row(8);
  row.vocab = 12800;  // few logits, so that the first stage is the fullest
  row.pp = 4;
  row.vpp = "1";
  row.gpus = 64;
  row.gbs = 16 * 8 * 6;
  const TrainingStep step = step_of(row);
  REQUIRE(training_memory(step, 8).use.stage == 0);
  // Four micro-batches in flight, 2 bytes x 16 x 2048 tokens x 3072 / 2 each.
  const double messages = 4 * 2.0 * 16 * 2048 * 3072 / 2;
  // All gradients of the stage are less than a bucket; the embedding is larger than a matrix of the MLP.
  REQUIRE(parameters(step) < 5e8);
  const double embedding = 12800.0 / 2 * 3072;
  CHECK(framework(step) == Approx(messages + backward + 2 * embedding + 2 * parameters(step)));
}

TEST_CASE("torchtitan's loss: three tensors of fp32 per logit and the block of the 16-bit ones, no layer recomputed") {
  const double logits = 8192.0 * 128256;
  const TrainingStep step = step_of(torchtitan_row(1));
  const double recomputed = memory_terms(step.inputs, 0).recomputed.value();
  REQUIRE(recomputed < 6 * logits);
  CHECK(framework(step) == Approx((12 + 2 - 6) * logits));  // the step counts 6 bytes per logit

  // With TP four, and the head's input of all ranks with its gradient.
  const TrainingStep split = step_of(torchtitan_row(8));
  CHECK(framework(split) == Approx((16 + 2 - 6) * logits / 8 + 2 * 2.0 * 8192 * 4096));
}

TEST_CASE("nanotron keeps the gate's activation, sums gradients up in fp32, and has the logits twice in its loss") {
  TrainingRow row = torchtitan_row(1);
  row.source_id = "nanotron";
  row.framework = "Nanotron 0.5";
  row.zero = "zero1";
  row.recompute = "none";
  const TrainingStep step = step_of(row);
  CHECK(step.inputs.options.gradient_bytes == 4);
  // 2 bytes x 8192 tokens x 14336 in each of 32 layers, and once more 4 bytes per logit.
  CHECK(framework(step) == Approx(2.0 * 8192 * 14336 * 32 + 4.0 * 8192 * 128256));
  row.recompute = "full";
  CHECK(framework(step_of(row)) == Approx(4.0 * 8192 * 128256));
}

TEST_CASE(
    "InternEvo's step: gradients in fp32 and two tensors of AdamW for a rank's share, with ZeRO 1 a flat copy, too") {
  TrainingRow row = torchtitan_row(1);
  row.source_id = "internevo";
  row.framework = "InternEvo";
  row.zero = "fsdp";
  const TrainingStep split = step_of(row);
  CHECK(framework(split) == Approx(12 * parameters(split) / 8));
  row.zero = "zero1";
  const TrainingStep step = step_of(row);
  CHECK(framework(step) == Approx(14 * parameters(step) / 8));
  row.zero = "zero1 in groups of 4";
  CHECK(framework(step_of(row)) == Approx(14 * parameters(step) / 4));

  row.mem_kind = "GB as printed";
  CHECK(memory_measure(row) == MemoryMeasure::used);
  row.mem_gib = 39;
  CHECK(*measured_memory(row) == Bytes(std::int64_t{39} << 30));
}

TEST_CASE("what a row measures: allocated, reserved or used, each with the parts of the one before") {
  TrainingRow row = deepspeed_row(32);
  row.mem_kind = "nvidia-smi GB";
  CHECK(memory_measure(row) == MemoryMeasure::used);
  row.mem_kind = "peak reserved/active per rank";
  CHECK(memory_measure(row) == MemoryMeasure::reserved);
  row.mem_kind = "peak allocated, worst rank";
  CHECK(memory_measure(row) == MemoryMeasure::allocated);
  row.mem_kind = "peak per rank";
  CHECK(memory_measure(row) == MemoryMeasure::allocated);
  row.source_id = "torchtitan";  // whose metrics print what is reserved
  CHECK(memory_measure(row) == MemoryMeasure::reserved);

  row.mem_kind = "nvidia-smi GB";
  TrainingMemory memory = training_memory(step_of(row), 8);
  // Fragments are of what the framework allocates, too.
  REQUIRE(memory.use.framework > Bytes(0));
  CHECK(static_cast<double>(memory.use.allocated().value()) ==
        Approx(0.94 * static_cast<double>(memory.use.reserved().value())));
  REQUIRE(memory.use.fits());
  CHECK(memory.measured() == memory.use.peak());
  memory.use.capacity = memory.use.reserved();  // the allocator gives back blocks before it fails
  CHECK(memory.measured() == memory.use.capacity);
  memory.measure = MemoryMeasure::reserved;
  CHECK(memory.measured() == memory.use.reserved());
  memory.measure = MemoryMeasure::allocated;
  CHECK(memory.measured() == memory.use.allocated());
}

TEST_CASE(
    "a published step of which no framework is known has the memory that `step` says, against the same capacity") {
  TrainingRow row = gpt_row();
  row.framework = "in-house";
  row.pp = 4;
  row.vpp = "1";
  row.dp = 8;
  row.recompute = "none";
  const TrainingStep step = step_of(row);
  const MemoryUse use = training_memory(step, 8).use, same = peak_memory(step.inputs, 8);
  REQUIRE(use.framework == Bytes(0));
  CHECK(use.stage == same.stage);
  for (const MemoryPart& part : memory_parts) CHECK(use.*part.size == same.*part.size);
  CHECK(use.peak() == same.peak());
  CHECK(use.capacity == same.capacity);
}

TEST_CASE("zero bubble's rows ran in fp16, whose gradients have two bytes") {
  TrainingRow row = gpt_row();
  row.framework = "Megatron-LM fork";
  row.precision = "fp16/bf16";
  CHECK(step_of(row).inputs.options.precision == "bf16");
  row.source_id = "zero-bubble";
  const TrainingStep step = step_of(row);
  CHECK(step.inputs.options.precision == "fp16");
  CHECK(step.inputs.options.gradient_bytes == 2);
}

TEST_CASE("nvidia-smi's GB are a thousand MiB: 80 of them fit an A100 of 80 GB; others' are 1e9 bytes") {
  TrainingRow row;
  CHECK_FALSE(measured_memory(row));
  row.mem_gib = 80;
  CHECK(*measured_memory(row) == Bytes(std::int64_t{80} << 30));
  row.mem_kind = "nvidia-smi GB";
  CHECK(*measured_memory(row) == Bytes(std::int64_t{80000} << 20));
  row.mem_kind = "GB as printed, max over stages";
  CHECK(*measured_memory(row) == Bytes(std::int64_t{80'000'000'000}));
  const Result<ScoredPlace> place = training_machines().place(gpt_row());
  REQUIRE(place.ok());
  CHECK(place->machine.gpu.memory == Bytes(std::int64_t{81251} << 20));
  CHECK(place->machine.gpu.memory > *measured_memory(row));
  row.published = "oom";
  CHECK_FALSE(measured_memory(row));
}

TEST_CASE("chunks of one layer: as many as a stage's layers, embedding and head counted where only then pp divides") {
  TrainingRow row = deepspeed_row(1);
  row.zero = "0";
  row.schedule = "1F1B-I";
  row.vpp = "1 layer per chunk";
  row.tp = 1;
  row.pp = 8;
  row.gpus = 8;
  row.layers = 22;  // 24 places on 8 stages
  CHECK(step_of(row).inputs.layout.vpp == 3);
  row.layers = 32;
  CHECK(step_of(row).inputs.layout.vpp == 4);
}

TEST_CASE("SimuMax's script gives Llama 3.1 405B sixteen KV heads, whatever its column says") {
  TrainingRow row = torchtitan_row(8);
  row.framework = "Megatron-LM @23e00ed + TE 2.11";
  row.model_id = "llama3.1-405b";
  row.zero = "zero1 (distributed optimizer)";
  CHECK(step_of(row).inputs.model.kv_heads == 8);
  row.source_id = "simumax-b200";
  CHECK(step_of(row).inputs.model.kv_heads == 16);
}

TEST_CASE("validate --training: memory of the shipped rows in parts that sum up, and how near it is") {
  const Folder folder;
  const auto run = run_shell(training_command + "--format json", folder.path());
  REQUIRE(run.exit == 0);
  const nlohmann::json doc = nlohmann::json::parse(run.out);
  for (const nlohmann::json& row : doc["rows"]) {
    const auto part = [&](const char* name) { return row["memory"][std::string(name) + "_bytes"].get<std::int64_t>(); };
    const std::int64_t model =
        part("parameters") + part("gradients") + part("optimizer") + part("activations") + part("buffers");
    CHECK(part("allocated") == model + part("framework"));
    CHECK(part("reserved") == part("allocated") + part("fragments"));
    CHECK(part("used") == part("reserved") + part("context") + part("nccl"));
    const bool used = row["memory_measure"] == "used";
    CHECK(row["predicted_memory_bytes"] ==
          std::min(part(row["memory_measure"].get<std::string>().c_str()),
                   used ? part("capacity") : std::numeric_limits<std::int64_t>::max()));
  }
  for (const nlohmann::json& all : doc["summary"]) {
    if (all["source_id"] != "all" || all["tier"] != "A") continue;
    CHECK(all["memory"]["n"] == 123);
    CHECK(all["memory"]["median_ape"].get<double>() < 0.02);
    CHECK(all["memory"]["mean_ape"].get<double>() < 0.03);
    CHECK(all["oom"]["measured"] == 3);
    CHECK(all["oom"]["flagged"] == 2);  // the third needs less than rows that ran
    CHECK(all["oom"]["flagged_but_ran"].get<int>() <= 7);
  }
}
