// Activations of layers with linear attention, beside those of the same layers with attention to keys: what is not of
// attention is the same in both. Kept until the backward are
//   in elements of a token  columns of the projection in, channels of the convolution, queries and keys behind their
//                           norm, the inverse of the chunk's triangle (C of each head), what the rule gives and the
//                           norm behind it (flash-linear-attention, ops/gated_delta_rule/chunk.py: save_for_backward)
// all in w bytes; the states are computed once more. Left out: decays and steps in fp32.
#include <algorithm>

#include "workload/linear_attention.hpp"

namespace collcast::workload {

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
  if (!full || terms.recomputed == Volume{}) return;
  const Volume more = std::max(terms.whole_linear_more.kept, Volume{});
  terms.recomputed += more;
  terms.recomputed_beside_weights += std::max(more - Volume(w * tokens * (linear.values - share.output)), Volume{});
}

}  // namespace collcast::workload
