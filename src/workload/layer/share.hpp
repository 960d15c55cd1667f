// Sizes of one rank's share of a layer for one micro-batch, and the linear layers in them.
#pragma once

#include "workload/layer/kernels.hpp"
#include "workload/layer/segments.hpp"

namespace collcast::workload {

struct Share {
  double tokens = 0;  ///< of the micro-batch on this rank: T = b s/c
  double rows = 0;    ///< tokens of norms, residuals and dropout: T/t with sequence parallelism, else T
  double hidden = 0;
  double query = 0, key = 0;     ///< a d / t and max(k/t, 1) d
  double value = 0, output = 0;  ///< the same, unless latent attention has values of another size: of k and of a heads
  double core_key = 0, core_value = 0;  ///< as the core has them: with Ulysses a KV head on each rank of CP at least
  double gate = 0;                      ///< of what attention gives: a d / t, where the model has one
  double latent = 0;                    ///< latent attention: r_q + r_kv + d_r
  double ffn = 0;                       ///< f / t
  double vocab = 0;                     ///< rows of the padded vocabulary: V/t, rounded up
  double scores = 0;                    ///< elements of the attention matrix: b a s (s + kept) / (t c)
  double lse = 0;                       ///< rows of the attention matrix: b a s / (t c)
  Flops core{};                         ///< a product of queries and keys over the whole matrix: 2 d per element
  double of_values = 1;                 ///< a product with values, in the place of keys: d_v / d
  double sent = 0;                      ///< rows that go to experts from this rank: T'K
  double taken = 0;          ///< rows that the experts of this rank compute, on the busiest one: T'K expert TP x load
  double shared = 0;         ///< f_s / t
  double expert = 0;         ///< f_e / expert TP
  double local_experts = 0;  ///< E / EP
  double expert_row = 0;     ///< elements of a row that is sent to experts: h, or l of latent ones

  explicit Share(const StepInputs&);
};

/// Y[T, out] = X[T, in] W[in, out].
struct Linear {
  const char* name;
  double in, out;
  bool adapter = false;  ///< beside it there is one (adapters.hpp)
};

/// Kernels of a linear layer. Its bias is added by the GEMM's epilogue. The weight gradient is added to the
/// gradient buffer by the GEMM (read and write).
class LinearKernels {
 public:
  LinearKernels(const StepInputs& in, const KernelTimer& timer, const Share& share)
      : in_(in), timer_(timer), tokens_(share.tokens) {}
  Operation forward(const Linear& l) const { return forward(l, tokens_); }
  Operation input_gradient(const Linear& l) const { return input_gradient(l, tokens_); }
  Operation weight_gradient(const Linear& l) const { return weight_gradient(l, tokens_); }
  /// Of `rows` instead of all tokens; with several `matrices` each row meets one of them (a grouped GEMM).
  Operation forward(const Linear&, double rows, double matrices = 1) const;
  Operation input_gradient(const Linear&, double rows, double matrices = 1) const;
  Operation weight_gradient(const Linear&, double rows, double matrices = 1) const;

 private:
  Operation timed(std::string name, GemmPass, const GemmShape&, Volume, double matrices) const;
  const StepInputs& in_;
  const KernelTimer& timer_;
  double tokens_;
};

/// The collective that ends a block of column- then row-parallel matrices, and the one before it.
struct TpCollectives {
  std::optional<CollectiveKind> gather;  ///< with sequence parallelism only
  std::optional<CollectiveKind> reduce;
  std::optional<CollectiveKind> columns;  ///< all of what a column-parallel product gives

  explicit TpCollectives(const ParallelLayout&);
};

/// What is done with the gradients of so many parameters behind every backward. Without fused accumulation new ones
/// which a backward has left in 16 bit, are added to what is summed up over the micro-batches: read, read, write. With
/// ZeRO-2 and 3 they are cast to the format in which they are reduced, and back. One kernel stands for that of each
/// parameter tensor.
std::vector<Operation> gradient_accumulation(const StepInputs&, const KernelTimer&, double parameters);

/// The backward of column-parallel matrices, behind `first`: with sequence parallelism their input is gathered once
/// more for the weight gradients, and what they find for their input is reduced.
struct ColumnBackward {
  const char* before;
  std::vector<Operation> first;
  const char* name;
  std::vector<Operation> inputs, weights;
  double bytes = 0;        ///< gathered and reduced; 0: those of all tokens' hidden states
  bool gathered = false;   ///< already, for what is computed once more
  double input_bytes = 0;  ///< gathered for the gradients of weights, where these are not `bytes`
};
/// With TrainingOptions::overlap_tp the gather runs beside the gradients of inputs, which do not need it, and the
/// reduction beside those of weights (Korthikanti et al. 2022, section 4.2.2; Megatron-LM,
/// megatron/core/tensor_parallel/layers.py). A zero-bubble backward has none of the latter and hides nothing.
std::vector<Segment> column_backward(const StepInputs&, ColumnBackward);

/// Behind those that are there.
void add_segments(std::vector<Segment>& to, std::vector<Segment> more);

/// Joins segments that no collective separates; keeps the later name.
std::vector<Segment> joined(std::vector<Segment>);

}  // namespace collcast::workload
