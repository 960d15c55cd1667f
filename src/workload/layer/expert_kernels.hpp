// What a step does with the rows of experts between and behind their products: clamp, activation and biases.
//
// The first product's bias is added in its kernel. The others are Megatron-Core's for grouped experts (TEGroupedMLP in
// megatron/core/transformer/moe/experts.py, weighted_bias_quick_geglu_impl in megatron/core/fusions/
// fused_bias_geglu.py): one kernel for the activation and what the router gave an expert, p; PyTorch's for the rest,
// with w bytes of an element and q of one of p (4 where tokens go by a flex dispatcher, whose p are fp32, else w), of R
// rows with f elements between the products and h behind them:
//   clamp            gate and rest one by one, then side by side again: 8 w R f; there is none without a gate
//     gradient       where it was within: the gate's limit on one side, the rest's on both (a mask of a byte each),
//                    7 w + 8, and side by side again 4 w
//   bias             expert by expert t + b p, all one behind the other, and back to w bytes where p has more:
//                    (w + 5 q) R h, and q + w
//     gradient       g to q bytes (w + q) where p has more, that of t back to w (the same); of b and p a product and
//                    a sum each, 6 q; that of t one behind the other, 2 w. Of a frozen b nothing, 3 q: p has a gradient
//                    as the router's input has
// With moe_grouped_mlp_fusion all of them are in the kernels of the products (Transformer Engine's
// ForwardGroupedMLP_CuTeGEMMSwiGLU_MXFP8 and its backward, of Blackwell's mxfp8), which are left at their time, and so
// is an activation that is recomputed. Servers' experts are one kernel, biases and clamp in it. Left out: what t + b p
// holds in q bytes until it is one and in w bytes again.
#pragma once

#include <string>
#include <vector>

#include "workload/layer/kernels.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

/// Whether all of these are in the kernels of the products.
bool fuses_experts(const StepInputs&);
/// Whether a step has kernels of their own for these.
bool clamps_experts(const StepInputs&);
bool adds_expert_biases(const StepInputs&);
/// What the clamp gives, which the activation keeps for its gradient beside what the clamp keeps: times f elements of
/// a row.
int kept_by_clamp(const StepInputs&);

class ExpertKernels {
 public:
  /// Inputs, timer and share must outlive it.
  ExpertKernels(const StepInputs& in, const KernelTimer& timer, const Share& share);

  std::vector<Operation> clamp() const;
  std::vector<Operation> clamp_gradient() const;
  /// Of what the second product gives.
  std::vector<Operation> bias() const;
  std::vector<Operation> bias_gradient() const;

 private:
  Operation memory(std::string name, double bytes, double kernels) const {
    return timer_.memory(std::move(name), Volume(bytes), kernels);
  }
  bool casts() const { return q_ > w_; }

  const StepInputs& in_;
  const KernelTimer& timer_;
  double w_, q_;
  double between_, behind_;  ///< elements of all rows
  double experts_;
};

}  // namespace collcast::workload
