// What one layer keeps of a micro-batch until its backward, by the shape that it has; formulas and sources: memory.hpp.
#include "workload/layer/kept.hpp"

#include <algorithm>
#include <initializer_list>

#include "workload/layer/adapters.hpp"
#include "workload/layer/attention_core.hpp"
#include "workload/layer/expert_kernels.hpp"
#include "workload/layer/indexer.hpp"
#include "workload/layer/linear_attention.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

namespace {

/// Norms of a layer that have an input of their own, and those whose output is kept for gradients of weights.
int norm_inputs(const StepInputs& in, LayerShape shape) {
  return in.model.parallel_mlp.norms == 0 ? shape.branches() : 1;
}
int norm_outputs(const StepInputs& in, LayerShape shape) {
  using enum AdapterModule;
  const bool one = in.model.parallel_mlp.norms == 1;
  if (!is_frozen(in.options)) return one ? 1 : shape.branches();
  const auto any = [&](std::initializer_list<AdapterModule> modules) {
    return std::any_of(modules.begin(), modules.end(), [&](AdapterModule m) { return has_adapter(in, m); });
  };
  const bool heads = shape.has_mixer() && any({linear_qkv, linear_q_proj, linear_q_down_proj, linear_kv_down_proj});
  // Experts have rows of their own.
  const bool up = shape.has_feed_forward() && any({linear_fc1}) && (shape.has_mlp() || in.model.experts.shared_ffn > 0);
  return one ? (heads || up ? 1 : 0) : (heads ? 1 : 0) + (up ? 1 : 0);
}

/// Elements of a row of latent attention before and after the norms of its small ranks; what frozen matrices alone read
/// is not kept.
double kept_of_latent(const StepInputs& in) {
  const LatentAttention& l = in.model.latent;
  const bool frozen = is_frozen(in.options);
  const double queries = !frozen || has_adapter(in, AdapterModule::linear_q_up_proj) ? l.q_rank : 0;
  const double keys = !frozen || has_adapter(in, AdapterModule::linear_kv_up_proj) ? l.kv_rank : 0;
  return l.q_rank + l.kv_rank + l.rope + queries + keys;
}

/// Bytes that an element takes less as the products read it than as it is computed; 0 where it is kept as it is. With
/// some layers in bf16 all count as these.
double saved_by_casts(const StepInputs& in) {
  const TrainingOptions& o = in.options;
  if (in.serving || is_frozen(o) || o.save_original_input || o.bf16_first_layers + o.bf16_last_layers > 0) return 0;
  const Precision precision = KernelTimer(in).precision();
  return std::max(0.0, precision.activation - precision.operand);
}

/// Of latent experts, what a rank's own rows are brought down to, or up from.
double latent_elements(const StepInputs& in, const Share& share) { return share.rows * in.model.experts.latent; }

/// Of attention, between the norm before its first product and the residual.
void add_attention(const StepInputs& in, const KeptTensors& tensors, const Share& share, double w,
                   ActivationTerms& kept) {
  kept.projections =
      Volume(w * share.tokens *
             ((tensors.query ? share.query : 0) + share.output + (tensors.query ? 2 : 1) * share.gate +
              SharedKeyCore(in).kept(tensors.key ? share.core_key : 0, tensors.value ? share.core_value : 0)));
  kept.indexer = Volume(kept_by_indexer(in));
  if (share.latent > 0) kept.latent = Volume(w * share.rows * kept_of_latent(in));
  if (!tensors.core) return;
  kept.core =
      Volume(in.options.attention == Attention::flash ? 4 * share.lse
                                                      : share.scores * (w + (in.model.dropout > 0 ? w + 1 : 0)));
}

/// Of the MLP, or of the shared experts.
double mlp_width(const Share& share, LayerShape shape) {
  return shape.has_experts() ? share.shared : shape.has_mlp() ? share.ffn : 0;
}

}  // namespace

ActivationTerms activations_with(const StepInputs& in, const KeptTensors& tensors, LayerShape shape) {
  const Share share(in);
  const double w = KernelTimer(in).precision().activation;
  const bool dropout = in.model.dropout > 0;
  ActivationTerms kept;
  kept.norms = Volume(share.rows * share.hidden * (tensors.norms * w + (dropout ? shape.branches() : 0)));
  if (shape.attends()) add_attention(in, tensors, share, w, kept);
  // Nothing of it is computed once more but norms and the product behind.
  if (shape.is_linear()) kept.projections = Volume(w * share.tokens * kept_by_linear_attention(LinearShare(in)));
  kept.mlp = Volume(w * share.tokens * mlp_width(share, shape) * tensors.mlp);
  if (shape.has_experts() && tensors.dispatched)
    kept.experts =
        Volume(w * (share.taken * ((tensors.expert_rows ? share.expert_row : 0) + share.expert * tensors.experts) +
                    latent_elements(in, share)) +
               8 * share.rows * in.model.experts.count);
  kept.adapters = Volume(w * kept_by_adapters(in, shape));
  kept.cast = Volume(saved_by_casts(in) * product_inputs(in, tensors, shape).total());
  return kept;
}

ActivationTerms kept_activations(const StepInputs& in, LayerShape shape) {
  if (in.options.recompute != Recompute::full) return activations_with(in, kept_tensors(in, shape), shape);
  const Share share(in);
  ActivationTerms kept;
  kept.input = Volume(KernelTimer(in).precision().activation * share.rows * share.hidden);
  return kept;
}

namespace {

/// Inputs of the matrices of attention and gradients of what they give, or of these the inputs of those behind others:
/// elements.
double waiting_of_attention(const StepInputs& in, const Share& s, LayerShape shape) {
  if (!shape.has_mixer()) return 0;
  if (shape.is_linear()) {
    const LinearShare linear(in);
    return s.tokens * (linear.columns + linear.values);
  }
  return s.tokens * (s.query + s.gate + s.output + SharedKeyCore(in).kept(s.key, s.value)) + s.rows * 2 * s.latent +
         waiting_of_indexer(in);
}
double inputs_of_attention(const StepInputs& in, const Share& s, LayerShape shape) {
  if (!shape.has_mixer()) return 0;
  if (shape.is_linear()) return s.tokens * LinearShare(in).values;
  const double ranks = in.model.latent.q_rank + in.model.latent.kv_rank;
  return s.tokens * s.output + (s.latent > 0 ? s.rows * ranks : 0);
}

}  // namespace

Volume kept_for_weights(const StepInputs& in, const Share& s, LayerShape shape) {
  const double w = KernelTimer(in).precision().activation, rows = s.rows * s.hidden;
  const double widths = in.model.gated_mlp ? 3 : 2;
  const double attention = waiting_of_attention(in, s, shape);
  if (is_frozen(in.options)) return Volume(w * waiting_of_adapters(in, shape));
  // Inputs of the matrices, and gradients of what they give: attention and MLP beside each other have one of these.
  const int tensors = all_tensors(in, shape).norms;
  if (!shape.has_experts()) return Volume(w * (tensors * rows + attention + s.tokens * mlp_width(s, shape) * widths));
  return Volume(w * (2 * shape.branches() * rows + attention + s.tokens * s.shared * widths +
                     s.taken * (2 * s.expert_row + s.expert * widths) + 2 * latent_elements(in, s)));
}

Volume inputs_of_weights(const StepInputs& in, const Share& s, LayerShape shape) {
  if (!splits_backward(in.layout.schedule)) return {};
  const double w = KernelTimer(in).precision().activation;
  if (is_frozen(in.options)) return Volume(w * inputs_of_adapters(in, shape));
  const double attention = inputs_of_attention(in, s, shape);
  const double mlp = s.tokens * mlp_width(s, shape);
  const double experts = shape.has_experts() ? s.taken * (s.expert_row + s.expert) + latent_elements(in, s) : 0;
  return Volume(w * (norm_outputs(in, shape) * s.rows * s.hidden + attention + mlp + experts));
}

Volume layer_activations(const StepInputs& in, LayerShape shape) { return kept_activations(in, shape).total(); }

}  // namespace collcast::workload

namespace collcast {

namespace {

using workload::has_adapter;
using workload::is_frozen;
using workload::norm_inputs;
using workload::norm_outputs;

/// What the activation function gives is read by the down matrix alone, which is frozen.
bool drops_activation(const StepInputs& in) {
  return is_frozen(in.options) && !has_adapter(in, AdapterModule::linear_fc2);
}

}  // namespace

KeptTensors all_tensors(const StepInputs& in, LayerShape shape) {
  KeptTensors all;
  // Norms beside each other have one input. What a frozen matrix reads is kept for its adapter alone.
  all.norms = norm_inputs(in, shape) + norm_outputs(in, shape);
  const bool latent = shape.attends() && in.model.latent.kv_rank > 0;
  if (in.model.parallel_mlp.norms != 1)
    all.read_once = (latent || !shape.has_mixer() ? 0 : 1) + (shape.has_mlp() ? 1 : 0);
  all.mlp = all.experts = in.model.gated_mlp ? 3 : 2;
  if (drops_activation(in)) --all.mlp, --all.experts;
  all.experts += workload::kept_by_clamp(in);
  all.expert_rows = !is_frozen(in.options) || has_adapter(in, AdapterModule::linear_fc1);
  return all;
}

KeptTensors kept_tensors(const StepInputs& in, LayerShape shape) {
  KeptTensors kept = all_tensors(in, shape);
  const auto again = [&](RecomputeModule module) { return recomputes(in.options, module); };
  const int behind_each = in.model.parallel_mlp.norms;
  if (again(RecomputeModule::layernorm)) kept.norms -= norm_outputs(in, shape);
  if (again(RecomputeModule::o_proj) && behind_each == 0 && shape.branches() == 2) --kept.norms;
  const bool up = again(RecomputeModule::mla_up_proj);
  kept.query = !up && !again(RecomputeModule::q_proj);
  kept.key = !up && !again(RecomputeModule::k_proj);
  kept.value = !up && !again(RecomputeModule::v_proj);
  kept.core = !again(RecomputeModule::core_attn);
  if (again(RecomputeModule::layernorm)) kept.read_once = 0;
  if (shape.has_experts()) {
    kept.dispatched = !again(RecomputeModule::moe);
    if (again(RecomputeModule::moe_act)) kept.experts -= (drops_activation(in) ? 0 : 1) + workload::kept_by_clamp(in);
    if (!kept.dispatched) kept.experts = 0;
    if (!kept.dispatched || again(RecomputeModule::shared_experts)) kept.mlp = 0;
    kept.activated = kept.mlp > 0;
    kept.experts_activated = !again(RecomputeModule::moe_act);
    return kept;
  }
  for (const RecomputeModule one : {RecomputeModule::gate_proj, RecomputeModule::up_proj, RecomputeModule::mlp_act})
    if (again(one) && !(one == RecomputeModule::mlp_act && drops_activation(in))) --kept.mlp;
  if (again(RecomputeModule::mlp)) kept.mlp = 0;
  kept.activated = kept.mlp > 0 && !again(RecomputeModule::mlp_act);
  return kept;
}

// The first norm's output goes to two products in latent attention, the second's to the router, too; what attention
// gives is kept by attention.
ProductInputs product_inputs(const StepInputs& in, const KeptTensors& kept, LayerShape shape) {
  const workload::Share share(in);
  const LatentAttention& l = in.model.latent;
  ProductInputs of;
  of.norms = kept.read_once * share.rows * share.hidden;
  if (shape.attends() && share.latent > 0) of.latent = share.rows * (l.q_rank + l.kv_rank);
  if (kept.activated) of.mlp = share.tokens * workload::mlp_width(share, shape);
  if (!shape.has_experts() || !kept.dispatched) return of;
  if (kept.expert_rows) of.rows = share.taken * share.expert_row;
  of.expert_latent = workload::latent_elements(in, share);
  if (kept.experts_activated) of.experts = share.taken * share.expert;
  return of;
}

}  // namespace collcast
