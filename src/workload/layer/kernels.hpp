// The time of one kernel: overhead + max(FLOPs / (compute * peak), bytes / (memory * bandwidth)).
//
// Products are measured for milliseconds; a step of a second keeps a GPU at its power limit, where its clocks are lower
// (`sustained`). Peak and bandwidth are the GPU's data sheet, the other three come from measured kernels
// (topologies/kernels). Quantisation to tiles and waves is left out.
//
// A server's tokens are replayed from a graph (CUDA graphs: on by default in vLLM, SGLang and TensorRT-LLM). The fitted
// overheads of fp8 and fp4 are of products launched one by one with the kernels that cast their operands, 17 and 12 us
// against 3 or 4 us in bf16, which a decode of R1 in 71 us a layer (8 GPUs, 4 requests, measured) has no room for: of a
// token's products the overhead is that of bf16. Of fewer rows than were measured the ratio is that of twice as
// many, or four times: they read the same weights. All experts of a server's rank are one kernel (fused MoE), of one
// overhead.
#pragma once

#include <string>

#include "collcast/workload/step.hpp"
#include "workload/layer/precision.hpp"

namespace collcast::workload {

class KernelTimer {
 public:
  /// `inputs` has passed check_step and outlives the timer.
  explicit KernelTimer(const StepInputs& inputs);

  const Precision& precision() const { return precision_; }

  /// GEMM of a linear layer.
  Operation linear(std::string name, GemmPass, const GemmShape&, Volume) const;
  /// `matrices` of them one after the other, each of its rows: each has its overhead.
  Operation grouped(std::string name, GemmPass, Flops, Volume, double matrices) const;
  /// That a pass through so many experts' matrices takes: one where they are grouped and such kernels' times are known.
  double kernels_of_experts(double matrices) const { return groups_experts() ? 1 : matrices; }
  /// `aligned`: rows of the logits are a multiple of 8 bytes long. Else tensor cores are fed in pieces of 2 or 4 bytes,
  /// at a quarter of the peak (docs/steps.md, "Kernels").
  Operation logits(std::string name, GemmPass, const GemmShape&, Volume, bool aligned = true) const;
  /// GEMMs of unfused attention; several kernels one after the other have an overhead each.
  Operation core_gemm(std::string name, Flops, Volume, double kernels = 1) const;
  /// The same where rows of the operands are no multiple of 16 bytes long: tensor cores cannot be fed, and vector units
  /// compute at their fp32 rate (NVIDIA, Matrix multiplication background user's guide, "Requirements to use tensor
  /// cores"; docs/steps.md).
  Operation unaligned_gemm(std::string name, Flops, Volume) const;
  Operation flash(std::string name, Flops, Volume, bool backward) const;  ///< fused attention
  /// Attention of a few queries to many kept keys and values: it streams them as a memory-bound kernel does.
  Operation cached_attention(std::string name, Flops, Volume) const;
  /// Products of an indexer's queries with keys: in fp8 where a server's GPU has it, else as attention. Of a token with
  /// many kept keys as cached_attention: streaming them takes longer than multiplying them.
  Operation index_scores(std::string name, Flops, Volume) const;
  /// Element-wise, norms, optimizer.
  Operation memory(std::string name, Volume, double kernels = 1) const;

 private:
  Operation gemm(std::string name, const std::string& precision, GemmPass, const GemmShape&, Volume) const;
  bool groups_experts() const;
  bool replayed() const { return inputs_.serving && inputs_.batch.context > 0; }
  /// Its time without what launching it by itself takes.
  Operation from_graph(Operation, const KernelEfficiency&) const;
  Operation timed(Operation, const KernelEfficiency&, FlopRate peak, double kernels = 1) const;
  /// No faster than products run for as long as a step takes: the GPU's power limit.
  Operation sustained(Operation, const KernelEfficiency&, FlopRate peak) const;

  const StepInputs& inputs_;
  Precision precision_;
};

}  // namespace collcast::workload
