#include "workload/parameters.hpp"

#include <cmath>

namespace collcast::workload {

namespace {

double norm_parameters(const TransformerConfig& m) { return (m.biases ? 2.0 : 1.0) * m.hidden; }

/// Rows of the word embedding on one of `tp` ranks.
double vocabulary_rows(const TransformerConfig& m, int tp) { return std::ceil(static_cast<double>(m.vocab) / tp); }

/// Forward FLOPs of one sample.
struct ForwardFlops {
  double linear = 0, core = 0;  ///< of all layers
  double logits = 0;
};
ForwardFlops forward_flops(const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const double s = in.batch.sequence, h = m.hidden, d = m.head_dim, a = m.heads, k = m.kv_heads, f = m.ffn;
  ForwardFlops flops;
  flops.linear = m.layers * s * (2 * h * (a + 2 * k) * d + 2 * a * d * h + (m.gated_mlp ? 6 : 4) * h * f);
  flops.core = m.layers * 4 * a * s * s * d;
  if (in.options.embedding_and_logits) flops.logits = 2 * s * h * m.vocab;
  return flops;
}

}  // namespace

RankParameters layer_parameters(const TransformerConfig& m, int tp) {
  const double h = m.hidden, d = m.head_dim, a = m.heads, k = m.kv_heads, f = m.ffn;
  const double up = m.gated_mlp ? 2 * f : f;
  RankParameters p;
  p.sharded = h * d * (a + 2 * k) + a * d * h + h * up + f * h;
  p.replicated = 2 * norm_parameters(m);
  if (m.biases) {
    p.sharded += (a + 2 * k) * d + up;
    p.replicated += 2 * h;
  }
  p.sharded /= tp;
  return p;
}

RankParameters embedding_parameters(const TransformerConfig& m, int tp) {
  return {vocabulary_rows(m, tp) * m.hidden, static_cast<double>(m.learned_positions) * m.hidden};
}

RankParameters head_parameters(const TransformerConfig& m, int tp, bool shares_embedding) {
  return {shares_embedding ? 0.0 : vocabulary_rows(m, tp) * m.hidden, norm_parameters(m)};
}

bool has_embedding(const StepInputs& in, int stage) { return in.options.embedding_and_logits && stage == 0; }
bool has_head(const StepInputs& in, int stage) { return in.options.embedding_and_logits && stage == in.layout.pp - 1; }

RankParameters stage_parameters(const StepInputs& in, int stage) {
  const RankParameters layer = layer_parameters(in.model, in.layout.tp);
  const double layers = static_cast<double>(in.model.layers) / in.layout.pp;
  RankParameters sum{layers * layer.sharded, layers * layer.replicated};
  const auto add = [&](const RankParameters& p) {
    sum.sharded += p.sharded;
    sum.replicated += p.replicated;
  };
  if (has_embedding(in, stage)) add(embedding_parameters(in.model, in.layout.tp));
  if (has_head(in, stage)) add(head_parameters(in.model, in.layout.tp, in.model.tied_embeddings && in.layout.pp == 1));
  return sum;
}

Flops model_flops(const StepInputs& in) {
  const ForwardFlops f = forward_flops(in);
  return Flops(3.0 * in.batch.global_batch * (f.linear + f.core + f.logits));
}

Flops hardware_flops(const StepInputs& in) {
  const ForwardFlops f = forward_flops(in);
  double again = 0;
  if (in.options.recompute == Recompute::selective) again = f.core;
  if (in.options.recompute == Recompute::full) again = f.linear + f.core;
  return model_flops(in) + Flops(in.batch.global_batch * again);
}

}  // namespace collcast::workload

namespace collcast {

double parameter_count(const TransformerConfig& m) {
  return m.layers * workload::layer_parameters(m, 1).total() + workload::embedding_parameters(m, 1).total() +
         workload::head_parameters(m, 1, m.tied_embeddings).total();
}

}  // namespace collcast
