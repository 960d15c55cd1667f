// Activations of layers with linear attention, beside those of the same layers with attention to keys: what is not of
// attention is the same in both. Kept until the backward are
//   in elements of a token  columns of the projection in, channels of the convolution, queries and keys behind their
//                           norm, the inverse of the chunk's triangle (C of each head), what the rule gives and the
//                           norm behind it (flash-linear-attention, ops/gated_delta_rule/chunk.py: save_for_backward)
// all in w bytes, in fp8 and fp4 too (so is what a gate of attention leaves); the states are computed once more. Left
// out: decays and steps in fp32.
#include <algorithm>

#include "workload/linear_attention.hpp"

namespace collcast::workload {

namespace {

/// Of a stage, so that none brings back attention to keys.
bool every_recomputed_layer_is_linear(const MemoryTerms& terms) {
  double recomputed = 0, linear = 0;
  for (const MemoryTerms::Chunk& c : terms.of_chunk) {
    recomputed += c.layers + c.expert_layers - c.whole_layers - c.whole_expert_layers;
    linear += c.linear_layers - c.whole_linear_layers;
  }
  return recomputed == linear;
}

/// What selective recomputation brings back of one layer beside what attention to keys would (memory.cpp).
Volume brought_back_without_attention(const StepInputs& in, const MemoryTerms& terms) {
  const RecomputeModules& modules = in.options.recompute_modules;
  const bool together = std::any_of(modules.begin(), modules.end(), is_single_operation);
  const auto of = [&](const ActivationTerms& all, const ActivationTerms& kept) {
    return (all.norms - kept.norms) * (together ? 1 : 0.5) + (all.mlp - kept.mlp) + (all.experts - kept.experts);
  };
  Volume most;
  if (terms.parameters.layers > 0) most = std::max(most, of(terms.whole_layer, terms.layer));
  if (terms.parameters.expert_layers > 0) most = std::max(most, of(terms.whole_expert_layer, terms.expert_layer));
  return most;
}

}  // namespace

void put_linear_layers(const StepInputs& in, MemoryTerms& terms) {
  if (terms.parameters.linear_layers == 0) return;
  const Share share(in);
  const LinearShare linear(in);
  const double w = terms.weight_bytes, tokens = share.tokens;
  const bool experts = terms.parameters.expert_layers > 0, full = in.options.recompute == Recompute::full;
  const auto more_than = [&](const ActivationTerms& a) {
    return Volume(w * tokens * kept_by_linear_attention(linear)) - a.projections - a.core;
  };
  const ActivationTerms& whole = experts ? terms.whole_expert_layer : terms.whole_layer;
  terms.whole_linear_more.kept = more_than(whole);
  if (!full) terms.linear_more.kept = more_than(experts ? terms.expert_layer : terms.layer);
  if (splits_backward(in.layout.schedule))
    terms.linear_more.weights = terms.whole_linear_more.weights =
        Volume(w * tokens *
               (linear.columns + linear.values - share.query - share.gate - share.output - share.key - share.value));
  if (terms.recomputed == Volume{}) return;
  const bool all = every_recomputed_layer_is_linear(terms);
  if (!full) {
    // Nothing of it is computed once more but norms and the projection out.
    if (all) terms.recomputed = terms.recomputed_beside_weights = brought_back_without_attention(in, terms);
    return;
  }
  const Volume more = all ? terms.whole_linear_more.kept : std::max(terms.whole_linear_more.kept, Volume{});
  const Volume inputs(w * tokens * (linear.values - share.output));
  terms.recomputed += more;
  terms.recomputed_beside_weights += all ? more - inputs : std::max(more - inputs, Volume{});
}

}  // namespace collcast::workload
