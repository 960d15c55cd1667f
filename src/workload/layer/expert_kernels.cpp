#include "workload/layer/expert_kernels.hpp"

#include <algorithm>
#include <utility>

#include "workload/layer/adapters.hpp"

namespace collcast::workload {

namespace {

bool has_kernels_of_their_own(const StepInputs& in) { return !in.serving && !fuses_experts(in); }

}  // namespace

bool fuses_experts(const StepInputs& in) { return in.options.moe_grouped_mlp_fusion && !in.serving; }

bool clamps_experts(const StepInputs& in) { return in.model.experts.clamp && has_kernels_of_their_own(in); }

bool adds_expert_biases(const StepInputs& in) { return in.model.experts_have_biases() && has_kernels_of_their_own(in); }

int kept_by_clamp(const StepInputs& in) { return clamps_experts(in) ? 2 : 0; }

ExpertKernels::ExpertKernels(const StepInputs& in, const KernelTimer& timer, const Share& share)
    : in_(in),
      timer_(timer),
      w_(timer.precision().activation),
      q_(in.options.moe_token_dispatcher == TokenDispatcher::flex ? std::max(4.0, w_) : w_),
      between_(share.taken * share.expert),
      behind_(share.taken * share.expert_row),
      experts_(share.local_experts) {}

std::vector<Operation> ExpertKernels::clamp() const {
  if (!clamps_experts(in_)) return {};
  return {memory("experts clamp", 8 * w_ * between_, 3)};
}

std::vector<Operation> ExpertKernels::clamp_gradient() const {
  if (!clamps_experts(in_)) return {};
  return {memory("experts clamp gradient", (11 * w_ + 8) * between_, 7)};
}

std::vector<Operation> ExpertKernels::bias() const {
  if (!adds_expert_biases(in_)) return {};
  const double bytes = w_ + 5 * q_ + (casts() ? q_ + w_ : 0);
  return {memory("experts bias", bytes * behind_, 2 * experts_ + 1 + (casts() ? 1 : 0))};
}

std::vector<Operation> ExpertKernels::bias_gradient() const {
  if (!adds_expert_biases(in_)) return {};
  const double with_gradients = is_frozen(in_.options) ? 1 : 2;  // p, and b
  const double bytes = (casts() ? 2 * (w_ + q_) : 0) + with_gradients * 3 * q_ + 2 * w_;
  const double kernels = with_gradients * 2 * experts_ + (casts() ? experts_ + 1 : 0) + 1;
  return {memory("experts bias gradient", bytes * behind_, kernels)};
}

}  // namespace collcast::workload
