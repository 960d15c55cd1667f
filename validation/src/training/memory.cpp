// What a GPU holds of a published step: the step's own items (workload/memory.hpp), and around them what the framework,
// the allocator, CUDA and NCCL take. A row measures one of three sums:
//   allocated  tensors of the framework's allocator: the step's items and `framework`
//   reserved   what the allocator holds of the GPU: the same over 0.94, SimuMax's share of reserved memory that is
//              allocated (github.com/MooreThreads/SimuMax)
//   used       what nvidia-smi shows: with the CUDA context and NCCL's buffers
// Each of the framework's own items has its code:
//   DeepSpeed (deepspeed/runtime: pipe/engine.py, zero/stage_1_and_2.py, fp16/fused_optimizer.py, bf16_optimizer.py)
//     messages    a stage keeps of a forward what it sends on, 1/TP of it
//     gradients   bf16: 16-bit ones beside those that sum up in fp32
//     step        one after the other the second gradient of the largest tensor that is added to the first (bf16: its
//                 copy in fp32), a bucket of 5e8 elements for the exchange, the norm of a rank's share of that tensor
//                 in fp64, the share's gradients in one piece of 16 and one of 32 bit (ZeRO 0: every gradient as fp32,
//                 one by one and in one piece), a bucket of gathered weights
//     backward    gradients of a layer's widest tensor and of its residual
//   torchtitan (torchtitan/train.py, torch/distributed/tensor/parallel/loss.py): the loss is not fused; in its backward
//     are there in fp32 the logarithms of the probabilities, the loss's gradient and the logits', with TP a fourth; the
//     layers are not recomputed yet. With TP the head keeps its input of all ranks, and there is that input's gradient
//   nanotron (nanotron/models/llama.py, parallel/tensor_parallel/functional.py): the gate's activation is kept beside
//     what goes into it and out of the product; the loss has the logits in fp32 beside those less their largest
//
// Blocks: PyTorch's allocator gives a piece of a freed block where one is large enough, and never joins two that it got
// from CUDA apart (c10/cuda/CUDACachingAllocator.cpp): what follows one another at the end of a step takes new memory
// where it is larger than all that came before, beside the blocks that the activations had.
#include <algorithm>
#include <numeric>
#include <vector>

#include "collcast/validation/training.hpp"
#include "collcast/workload/terms.hpp"

namespace collcast {

namespace {

constexpr double mib = 0x1p20;

/// PyTorch's on an A100, as BigScience measured it (chronicles-prequel.md).
constexpr double context_bytes = 1573 * mib;

/// Of a connection's receiver: Simple 4 MiB, LL 512 KiB, LL128 4800 KiB (NCCL, src/init.cc: DEFAULT_*_BUFFSIZE).
constexpr double connection_bytes = 4 * mib + 0.5 * mib + 4800 * 1024;

/// Of a communicator: a ring has one sender, a tree of one node two; between nodes a tree has up to three.
double communicator_bytes(bool in_a_node) {
  // Channels of eight GPUs behind NVSwitch, and two for each of four NICs.
  constexpr double in_node = 24, between_nodes = 8;
  return connection_bytes * (in_a_node ? in_node * 3 : between_nodes * 4);
}

/// Groups that a Megatron makes communicators of, by the dimension that they are along.
double nccl_bytes(const ParallelLayout& l, int gpus_per_node) {
  if (l.world() == 1) return 0;
  const int inner = l.tp * l.cp;
  double sum = communicator_bytes(l.world() <= gpus_per_node);
  if (l.tp > 1) sum += communicator_bytes(l.tp <= gpus_per_node);
  if (l.cp > 1) sum += communicator_bytes(inner <= gpus_per_node);
  if (l.ep > 1) sum += communicator_bytes(inner * l.ep <= gpus_per_node);
  if (l.dp > 1) sum += communicator_bytes(inner * l.dp <= gpus_per_node);
  // Stages, those of both ends, and each replica of the model.
  if (l.pp > 1) sum += (l.tp > 1 ? 3 : 2) * communicator_bytes(l.world() / l.dp <= gpus_per_node);
  return sum;
}

/// Groups of buffers: those of one are there at once, and freed before the next.
using Buffers = std::vector<std::vector<double>>;

/// What they take of the GPU in that order.
double new_memory(const Buffers& groups) {
  std::vector<double> blocks;
  for (const std::vector<double>& group : groups) {
    std::vector<double> free = blocks;
    for (const double size : group) {
      std::sort(free.begin(), free.end());
      const auto fits = std::lower_bound(free.begin(), free.end(), size);
      if (fits == free.end())
        blocks.push_back(size);
      else
        *fits -= size;
    }
  }
  return std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

double largest_tensor(const StepInputs& in, const ParameterTerms& p) {
  const double matrix = static_cast<double>(in.model.hidden) * in.model.ffn / in.layout.tp;
  return std::max({p.embedding, p.output, matrix});
}

double of_deepspeed(const StepInputs& in, const MemoryTerms& terms) {
  constexpr double bucket = 5e8, fp16 = 2, fp32 = 4, fp64 = 8;
  const double p = terms.parameters.total(), largest = largest_tensor(in, terms.parameters);
  const double tokens = terms.tokens, hidden = in.model.hidden, shards = terms.optimizer_shares;
  const bool exchanged = in.layout.dp > 1, bf16 = in.options.precision == "bf16";
  const double exchange = exchanged ? std::min(p, std::max(bucket, largest)) : 0;
  const double messages = in.layout.pp > 1 ? fp16 * tokens * hidden / in.layout.tp * terms.in_flight : 0;
  const double backward = fp16 * tokens * (static_cast<double>(in.model.ffn) / in.layout.tp + hidden);
  Buffers step;
  if (bf16)
    step = {{fp32 * largest}};
  else if (terms.zero == 0)
    step = {{fp16 * largest}, {fp16 * exchange}, {fp32 * p, fp32 * p}};
  else
    step = {{fp16 * largest},
            {fp16 * exchange},
            {fp64 * std::min(largest, p / shards)},
            {fp16 * p / shards, fp32 * p / shards}};
  if (exchanged && terms.zero > 0) step.push_back({fp16 * std::min(p, bucket)});
  return messages + backward + (bf16 ? fp16 * p : 0) + new_memory(step);
}

double of_torchtitan(const StepInputs& in, const MemoryTerms& terms) {
  const double logits = terms.probabilities.value() / 4;
  if (!(logits > 0)) return 0;
  const bool split = in.layout.tp > 1;
  const double head = split ? 2 * terms.weight_bytes * terms.tokens * in.model.hidden : 0;
  const double loss = (split ? 16 : 12) * logits + head;
  // What the step counts at this moment beside its states and what is kept.
  return std::max(0.0, loss - (terms.recomputed + terms.logits + terms.probabilities).value());
}

double of_nanotron(const StepInputs& in, const MemoryTerms& terms) {
  const double width = terms.weight_bytes * terms.tokens * in.model.ffn / in.layout.tp;
  const bool kept = in.model.gated_mlp && in.options.recompute != Recompute::full;
  return (kept ? width * terms.parameters.layers / terms.chunks * terms.in_flight : 0) + terms.probabilities.value();
}

double framework_bytes(const TrainingStep& step, const MemoryTerms& terms) {
  const double kept = static_cast<double>(step.kept_besides.value());
  if (step.framework == Framework::deepspeed) return kept + of_deepspeed(step.inputs, terms);
  if (step.framework == Framework::torchtitan) return kept + of_torchtitan(step.inputs, terms);
  if (step.framework == Framework::nanotron) return kept + of_nanotron(step.inputs, terms);
  return kept;
}

Bytes whole_bytes(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

TrainingMemory of_stage(const TrainingStep& step, int stage, int gpus_per_node) {
  const MemoryTerms terms = memory_terms(step.inputs, stage);
  TrainingMemory out;
  out.stage = stage;
  out.parameters = whole_bytes(terms.weights());
  out.gradients = whole_bytes(terms.gradients());
  out.optimizer = whole_bytes(terms.optimizer());
  out.activations = whole_bytes(terms.activations().value());
  out.buffers = whole_bytes(terms.buffers().value());
  out.framework = whole_bytes(framework_bytes(step, terms));
  constexpr double allocated_of_reserved = 0.94;
  const double allocated = static_cast<double>(out.allocated().value());
  out.fragments = whole_bytes(allocated / allocated_of_reserved - allocated);
  out.context = whole_bytes(context_bytes);
  out.nccl = whole_bytes(nccl_bytes(step.inputs.layout, gpus_per_node));
  return out;
}

}  // namespace

TrainingMemory training_memory(const TrainingStep& step, int gpus_per_node) {
  TrainingMemory most = of_stage(step, 0, gpus_per_node);
  for (int stage = 1; stage < step.inputs.layout.pp; ++stage)
    if (const TrainingMemory other = of_stage(step, stage, gpus_per_node); other.allocated() > most.allocated())
      most = other;
  most.measure = step.measure;
  return most;
}

MemoryMeasure memory_measure(const TrainingRow& row) {
  const auto has = [&](const char* word) { return row.mem_kind.find(word) != std::string::npos; };
  if (has("nvidia-smi")) return MemoryMeasure::used;
  // torchtitan's metrics print the most that was reserved (torchtitan/metrics.py).
  if (has("reserved") || row.source_id == "torchtitan") return MemoryMeasure::reserved;
  return MemoryMeasure::allocated;
}

std::optional<Bytes> measured_memory(const TrainingRow& row) {
  if (!row.mem_gib || row.out_of_memory()) return std::nullopt;
  // nvidia-smi prints MiB, and BigScience's "80GB" is more than the 79.35 GiB that an A100 shows.
  const double unit = row.mem_kind == "nvidia-smi GB" ? 1000 * mib : 1024 * mib;
  return whole_bytes(*row.mem_gib * unit);
}

Bytes visible_memory(Bytes data_sheet) {
  // A data sheet's GB are GiB, and a part is the driver's: of an A100 of 80 GB nvidia-smi shows 81251 MiB.
  constexpr double gb = 1e9, gib = 0x1p30, shown = 81251.0 / 81920;
  return whole_bytes(static_cast<double>(data_sheet.value()) / gb * gib * shown);
}

}  // namespace collcast
