// Low-rank adapters (LoRA: Hu et al. 2021, arXiv 2106.09685) beside the matrices of a layer, whose own weights are
// frozen. With T tokens, rank r and a matrix of n inputs and m outputs on this rank (T x n times n x m):
//   forward           A = X a, T n r, and A b, T r m; a kernel that scales and one that adds: 2 w T m and 3 w T m
//   input gradient    of A, T m r, and of X, T r n; scaled as above, and added to what the matrix gives: 3 w T n
//   weight gradients  of b, r T m, and of a, n T r
// in the precision of attention and logits, at the rate that memory or products of so few columns have. Parameters: a
// column-parallel matrix (QKV, MLP up) has a whole, h r, on every TP rank and its part of b, r m; a row-parallel one
// (projection, MLP down) its part of a, n r, and b whole, r h, so that the matrix's own sum over the TP ranks is the
// adapter's, too. Latent attention: beside the matrices into the small ranks, which every TP rank has, both are whole;
// out of them as QKV. Experts: each has a pair of its own, on the rank that has it and split with it as an MLP is;
// their T is the rows that came to the rank, r of each kept, and where the experts of a rank are one kernel their
// adapters are, too.
//
// Frameworks that split both (Megatron-Bridge, megatron/bridge/peft/utils.py, ParallelLinearAdapter) send T r elements
// besides, some hundredths of what the layer sends: left out. So are the sum over the TP ranks, once a step, of the
// gradients of what is whole on each (r h of a matrix: each rank has a part), dropout before an adapter, one pair that
// all experts of a layer share, adapters of the router, and that the first layer's backward ends at its adapters.
//
// What is frozen has no gradients, and none of its inputs is kept for them.
//
// QLoRA (Dettmers et al. 2023, arXiv 2305.14314): the layers' matrices are kept in NF4, 4 bits with a scale for 64 of
// them, and the scales in 8 bits with one of 32 for 256 (double quantisation): 4 + 8/64 + 32/(64 256) = 4.127 bits.
// Every pass that reads a matrix (forward, once more, gradient of its input) brings it back first, a kernel bound by
// memory: n m (0.516 + w) bytes. It is there beside the step's memory while its product runs; of experts that are one
// kernel all of a rank's. Embedding, head, norms, biases, router and adapters stay as they are. Left out: kernels that
// bring weights back within the product, paged optimizers.
#pragma once

#include <functional>
#include <vector>

#include "collcast/workload/terms.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

/// Whether adapters are trained instead of the model's weights.
bool is_frozen(const TrainingOptions&);
/// Whether a matrix, which the model's layers have, has an adapter.
bool has_adapter(const StepInputs&, AdapterModule);

/// A matrix with an adapter on one rank.
struct Adapted {
  AdapterModule module;
  double in, out;            ///< its sides
  double rows;               ///< that pass it in a micro-batch
  double rows_in, rows_out;  ///< of these what the rank keeps of its input, and of the gradients of what it gives
  enum class Split { none, in, out } split;
  enum class Of { attention, mlp, shared_experts, experts } of;
  double count = 1;  ///< of experts: as many as the rank has
};
/// Bytes of a parameter in NF4 with double quantisation.
inline constexpr double nf4_bytes = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;
/// Whether the matrices of layers are kept so.
bool is_quantised(const TrainingOptions&);
/// Elements of the largest matrix of a layer that a pass brings back at once.
double largest_matrix(const StepInputs&, LayerShape);

/// Of a layer that attends to keys; linear attention has none.
std::vector<Adapted> adapted_matrices(const StepInputs&, LayerShape);

AdapterParameters layer_adapters(const StepInputs&, LayerShape);

/// Elements that the backward needs besides, of a layer and micro-batch: of what the adapters' first matrices give, r
/// a row; and those that a zero-bubble backward leaves to the weight gradients: inputs of both matrices, and gradients
/// of what they give.
double kept_by_adapters(const StepInputs&, LayerShape);
double waiting_of_adapters(const StepInputs&, LayerShape);
/// Of these the inputs, which the layer's backward has anyway.
double inputs_of_adapters(const StepInputs&, LayerShape);

/// Forward FLOPs of a token in the adapters of one layer, or in some of them, all ranks together; of the experts' in
/// those that it is sent to.
double adapter_flops(const StepInputs&, LayerShape, const std::function<bool(const Adapted&)>& takes = {});

/// Kernels beside those of a matrix; none where it has no adapter.
class AdapterKernels {
 public:
  AdapterKernels(const StepInputs& in, const KernelTimer& timer) : rank_(in.options.lora.rank), timer_(timer) {}
  /// Of so many rows; with several `matrices` each row meets one of them, as in LinearKernels.
  std::vector<Operation> forward(const Linear&, double rows, double matrices = 1) const;
  std::vector<Operation> input_gradient(const Linear&, double rows, double matrices = 1) const;
  std::vector<Operation> weight_gradient(const Linear&, double rows, double matrices = 1) const;

 private:
  struct Rows {
    double count, matrices;
  };
  /// Of rows, n and m elements wide, and n x m: any of these from the other two.
  Operation product(std::string name, Rows, double n, double m) const;
  Operation passes(std::string name, Rows, double count, double width) const;

  double rank_;
  const KernelTimer& timer_;
};

}  // namespace collcast::workload
