// Low-rank adapters (LoRA: Hu et al. 2021, arXiv 2106.09685) beside the matrices of a layer, whose own weights are
// frozen. With T tokens, rank r and a matrix of n inputs and m outputs on this rank (T x n times n x m):
//   forward           A = X a, T n r, and A b, T r m; a kernel that scales and one that adds: 2 w T m and 3 w T m
//   input gradient    of A, T m r, and of X, T r n; scaled as above, and added to what the matrix gives: 3 w T n
//   weight gradients  of b, r T m, and of a, n T r
// in the precision of attention and logits, at the rate that memory or products of so few columns have. Parameters: a
// column-parallel matrix (QKV, MLP up) has a whole, h r, on every TP rank and its part of b, r m; a row-parallel one
// (projection, MLP down) its part of a, n r, and b whole, r h, so that the matrix's own sum over the TP ranks is the
// adapter's, too. Frameworks that split both (Megatron-Bridge, megatron/bridge/peft/utils.py, ParallelLinearAdapter)
// send T r elements besides, some hundredths of what the layer sends: left out. So are the sum over the TP ranks, once
// a step, of the gradients of what is whole on each (r h of a matrix: each rank has a part), dropout before an adapter,
// and that the first layer's backward ends at its adapters.
//
// What is frozen has no gradients, and none of its inputs is kept for them.
#pragma once

#include <vector>

#include "workload/share.hpp"

namespace collcast::workload {

/// Whether adapters are trained instead of the model's weights.
bool is_frozen(const TrainingOptions&);
/// Whether a matrix has an adapter.
bool has_adapter(const TrainingOptions&, AdapterModule);

/// Of one layer on one rank.
struct AdapterParameters {
  double sharded = 0;     ///< 1/TP of the layer's
  double replicated = 0;  ///< the same on every TP rank
  double total() const { return sharded + replicated; }
};
AdapterParameters layer_adapters(const StepInputs&);

/// Elements that the backward needs besides, per token: of what the adapters' first matrices give, r each.
double adapter_width(const TrainingOptions&);

/// Forward FLOPs of a token in the adapters of one layer, all TP ranks together.
double adapter_flops(const StepInputs&);
/// The same of one matrix's.
double adapter_flops(const StepInputs&, AdapterModule);

/// Kernels beside those of a matrix; none where it has no adapter.
class AdapterKernels {
 public:
  AdapterKernels(const StepInputs& in, const KernelTimer& timer, const Share& share)
      : rank_(in.options.lora.rank), timer_(timer), tokens_(share.tokens) {}
  std::vector<Operation> forward(const Linear&) const;
  std::vector<Operation> input_gradient(const Linear&) const;
  std::vector<Operation> weight_gradient(const Linear&) const;

 private:
  Operation product(std::string name, double rows, double columns, double inner) const;
  Operation scaled(std::string name, double width) const;
  Operation added(std::string name, double width) const;

  double rank_;
  const KernelTimer& timer_;
  double tokens_;
};

}  // namespace collcast::workload
