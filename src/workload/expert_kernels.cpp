#include "workload/expert_kernels.hpp"

#include <algorithm>
#include <utility>

#include "workload/adapters.hpp"

namespace collcast::workload {

namespace {

bool is_fused(const StepInputs& in) { return in.serving || in.options.moe_grouped_mlp_fusion; }

}  // namespace

bool clamps_experts(const StepInputs& in) { return in.model.experts.clamp && !is_fused(in); }

bool adds_expert_biases(const StepInputs& in) { return in.model.experts_have_biases() && !is_fused(in); }

int kept_by_clamp(const StepInputs& in) { return clamps_experts(in) ? (in.model.gated_mlp ? 2 : 1) : 0; }

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
  const bool gated = in_.model.gated_mlp;
  return {memory("experts clamp", (gated ? 8 : 2) * w_ * between_, gated ? 3 : 1)};
}

std::vector<Operation> ExpertKernels::clamp_gradient() const {
  if (!clamps_experts(in_)) return {};
  const bool gated = in_.model.gated_mlp;
  return {memory("experts clamp gradient", (gated ? 11 * w_ + 8 : 4 * w_ + 6) * between_, gated ? 7 : 4)};
}

std::vector<Operation> ExpertKernels::bias() const {
  if (!adds_expert_biases(in_)) return {};
  const double bytes = w_ + 5 * q_ + (casts() ? q_ + w_ : 0);
  return {memory("experts bias", bytes * behind_, 2 * experts_ + 1 + (casts() ? 1 : 0))};
}

std::vector<Operation> ExpertKernels::bias_gradient() const {
  if (!adds_expert_biases(in_)) return {};
  const bool frozen = is_frozen(in_.options);
  const double of_parameters = frozen ? 0 : 6 * q_;
  const double bytes = (casts() ? 2 * (w_ + q_) : 0) + of_parameters + 2 * w_;
  const double kernels = (frozen ? 0 : 4 * experts_) + (casts() ? experts_ + 1 : 0) + 1;
  return {memory("experts bias gradient", bytes * behind_, kernels)};
}

}  // namespace collcast::workload
