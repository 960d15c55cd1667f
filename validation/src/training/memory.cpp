// What a GPU holds of a published step: what `step` says (collcast/workload/memory_use.hpp), and what its framework
// allocates besides. A row measures one of three sums:
//   allocated  tensors of the framework's allocator: the step's items and `framework`
//   reserved   what the allocator holds of the GPU: with fragments
//   used       what nvidia-smi shows: with the CUDA context and NCCL's buffers
// Each of the framework's own items has its code:
//   DeepSpeed (deepspeed/runtime: pipe/engine.py, zero/stage_1_and_2.py, fp16/fused_optimizer.py, bf16_optimizer.py)
//     messages    a stage keeps of a forward what it sends on, 1/TP of it
//     gradients   bf16: 16-bit ones beside those that sum up in fp32
//     step        one after the other the second gradient of the largest tensor that is added to the first (bf16: its
//                 copy in fp32), a bucket of 5e8 elements for the exchange, the norm of a rank's share of that tensor
//                 in fp64, the share's gradients in one piece of 16 and one of 32 bit (ZeRO 0: every gradient as fp32,
//                 one by one and in one piece), a bucket of gathered weights
//     backward    of the last layer, as Megatron's
//   torchtitan (torchtitan/train.py, torch/distributed/tensor/parallel/loss.py): the loss is not fused; in its backward
//     are there in fp32 the logarithms of the probabilities, the loss's gradient and the logits', with TP a fourth; the
//     layers are not recomputed yet. The 16-bit logits are freed before (`del pred`), but their block stays, too small
//     for any of these. With TP the head keeps its input of all ranks, and there is that input's gradient
//   nanotron (nanotron/models/llama.py, parallel/tensor_parallel/functional.py): the gate's activation is kept beside
//     what goes into it and out of the product; the loss has the logits in fp32 beside those less their largest
//   InternEvo (internlm/solver/optimizer/fsdp_optimizer.py, hybrid_zero_optim.py; PyTorch's AdamW, not fused): in the
//     step the gradients of a rank's share once more in fp32, AdamW's root of the second moments and its denominator,
//     and without FSDP the 16-bit gradients in one piece
//   llm-foundry (llmfoundry/models/mpt/modeling_mpt.py: loss_fn, fused_crossentropy unless said otherwise): of the
//     logits there are themselves and their gradient, in 16 bit, and no probabilities in fp32
//   Megatron-LM (megatron/core/tensor_parallel/layers.py, megatron/model/transformer.py), while the last layer of a
//     stage begins its backward with all that is kept still there (where the head is, in place of its loss)
//     backward    gradients of the residual, with dropout of what is added to it, too, with sequence parallelism once
//                 more gathered; of what comes out of the MLP's activation function and goes into it, when the output
//                 itself is free again
//     unfused     the gradient of one matrix in 16 bit, which autograd is given though it is summed up in fp32 already,
//                 and a buffer of the scores' size that their product takes as its addend
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

/// Gradients while the last layer's activation function has its backward. What recomputation brings back of the layer
/// the step counts.
double last_layer_backward(const StepInputs& in, const MemoryTerms& terms) {
  const double width = static_cast<double>(in.model.ffn) / in.layout.tp * (in.model.gated_mlp ? 2 : 1);
  const double gathered = in.layout.sequence_parallel && in.layout.tp > 1 ? terms.tokens : 0;
  const double residual = terms.rows * (in.model.dropout > 0 ? 2 : 1) + gathered;
  return terms.weight_bytes * (residual * in.model.hidden + terms.tokens * width);
}

double of_deepspeed(const StepInputs& in, const MemoryTerms& terms) {
  constexpr double bucket = 5e8, fp16 = 2, fp32 = 4, fp64 = 8;
  const double p = terms.parameters.total(), largest = largest_tensor(in, terms.parameters);
  const double tokens = terms.tokens, hidden = in.model.hidden, shards = terms.optimizer_shares;
  const bool exchanged = in.layout.dp > 1, bf16 = in.options.precision == "bf16";
  const double exchange = exchanged ? std::min(p, std::max(bucket, largest)) : 0;
  const double messages = in.layout.pp > 1 ? fp16 * tokens * hidden / in.layout.tp * terms.in_flight : 0;
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
  return messages + last_layer_backward(in, terms) + (bf16 ? fp16 * p : 0) + new_memory(step);
}

double of_torchtitan(const StepInputs& in, const MemoryTerms& terms) {
  const double logits = terms.probabilities.value() / 4;
  if (!(logits > 0)) return 0;
  const bool split = in.layout.tp > 1;
  const double head = split ? 2 * terms.weight_bytes * terms.tokens * in.model.hidden : 0;
  const double loss = ((split ? 16 : 12) + terms.weight_bytes) * logits + head;
  return std::max(0.0, loss - terms.loss_or_recomputed().value());
}

double of_nanotron(const StepInputs& in, const MemoryTerms& terms) {
  const double width = terms.weight_bytes * terms.tokens * in.model.ffn / in.layout.tp;
  const bool kept = in.model.gated_mlp && in.options.recompute != Recompute::full;
  return (kept ? width * terms.parameters.all_layers() / terms.chunks * terms.in_flight : 0) +
         (std::max(terms.loss() + terms.probabilities, terms.brought_back()) - terms.loss_or_recomputed()).value();
}

double of_internevo(const MemoryTerms& terms) {
  constexpr double fp16 = 2, fp32 = 4;
  const double share = terms.parameters.total() / terms.optimizer_shares;
  return (3 * fp32 + (terms.zero < 3 ? fp16 : 0)) * share;
}

double of_megatron(const StepInputs& in, const MemoryTerms& terms) {
  // What a layer of experts needs in its backward is not known.
  if (in.model.experts.count > 0) return 0;
  double backward = last_layer_backward(in, terms);
  if (in.options.attention == Attention::unfused) {
    const double scores = terms.tokens * in.batch.sequence * in.model.heads / in.layout.tp;
    const double matrix = static_cast<double>(in.model.hidden) * in.model.ffn / in.layout.tp;
    backward += terms.weight_bytes * (scores + matrix);
  }
  // The loss is over when that backward begins, and what recomputation brought back of the layer is there.
  return std::max(terms.brought_back().value() + backward - terms.loss_or_recomputed().value(), 0.0);
}

double framework_bytes(const TrainingStep& step, const MemoryTerms& terms) {
  const double kept = static_cast<double>(step.kept_besides.value());
  if (step.framework == Framework::deepspeed) return kept + of_deepspeed(step.inputs, terms);
  if (step.framework == Framework::torchtitan) return kept + of_torchtitan(step.inputs, terms);
  if (step.framework == Framework::nanotron) return kept + of_nanotron(step.inputs, terms);
  if (step.framework == Framework::internevo) return kept + of_internevo(terms);
  if (step.framework == Framework::megatron) return kept + of_megatron(step.inputs, terms);
  return kept;
}

Bytes whole_bytes(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

MemoryUse of_stage(const TrainingStep& step, int stage, int gpus_per_node, const Orders& made) {
  MemoryUse out = stage_memory(step.inputs, stage, gpus_per_node, made);
  const MemoryTerms terms = memory_terms(step.inputs, stage, made);
  out.framework = whole_bytes(framework_bytes(step, terms));
  // What frameworks allocate beside is of a backward, and of the steps that follow at once.
  Volume buffers = terms.buffers_of_backward();
  if (step.framework == Framework::llm_foundry)
    buffers = std::max(2 * terms.logits, terms.brought_back()) + terms.gathered + terms.unreduced;
  out.activations = whole_bytes(terms.activations().value());
  out.buffers = whole_bytes(buffers.value());
  out.by_moment = {};
  add_runtime(out, step.inputs.layout, step.inputs.nccl_buffers, gpus_per_node);
  return out;
}

}  // namespace

TrainingMemory training_memory(const TrainingStep& step, int gpus_per_node, const Orders& made) {
  TrainingMemory out{of_stage(step, 0, gpus_per_node, made), step.measure};
  for (int stage = 1; stage < step.inputs.layout.pp; ++stage)
    if (const MemoryUse other = of_stage(step, stage, gpus_per_node, made); other.allocated() > out.use.allocated())
      out.use = other;
  return out;
}

MemoryMeasure memory_measure(const TrainingRow& row) {
  const auto has = [&](const char* word) { return row.mem_kind.find(word) != std::string::npos; };
  // InternEvo's table of what chats with the models take beside it has the context in it, too.
  if (has("nvidia-smi") || row.source_id == "internevo") return MemoryMeasure::used;
  // torchtitan's metrics print the most that was reserved (torchtitan/metrics.py).
  if (has("reserved") || row.source_id == "torchtitan") return MemoryMeasure::reserved;
  return MemoryMeasure::allocated;
}

std::optional<Bytes> measured_memory(const TrainingRow& row) {
  if (!row.mem_gib || row.out_of_memory()) return std::nullopt;
  // nvidia-smi prints MiB, and BigScience's "80GB" is more than the 79.35 GiB that an A100 shows. InternEvo's are GiB:
  // a chat with its 20B model takes "39", and the weights alone are 40.2e9 bytes.
  constexpr double mib = 0x1p20, gb = 1e9;
  const double unit = row.mem_kind == "nvidia-smi GB"                                             ? 1000 * mib
                      : row.mem_kind.starts_with("GB as printed") && row.source_id != "internevo" ? gb
                                                                                                  : 1024 * mib;
  return whole_bytes(*row.mem_gib * unit);
}

}  // namespace collcast
