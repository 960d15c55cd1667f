#include "workload/parameters.hpp"

#include <algorithm>
#include <cmath>

namespace collcast::workload {

namespace {

double norm_parameters(const TransformerConfig& m) { return (m.biases ? 2.0 : 1.0) * m.hidden; }

/// Rows of the word embedding on one of `tp` ranks.
double vocabulary_rows(const TransformerConfig& m, int tp) { return std::ceil(static_cast<double>(m.vocab) / tp); }

LayerParameters layer_terms(const TransformerConfig& m, int tp) {
  const double h = m.hidden, d = m.head_dim, a = m.heads, f = m.ffn;
  const double k = static_cast<double>(kv_heads_per_rank(m, tp)) * tp;  // with copies
  const double up = m.gated_mlp ? 2 * f : f;
  LayerParameters p;
  p.attention = (h * d * (a + 2 * k) + a * d * h) / tp;
  p.mlp = (h * up + f * h) / tp;
  p.norms = 2 * norm_parameters(m);
  if (m.biases) {
    p.sharded_biases = ((a + 2 * k) * d + up) / tp;
    p.replicated_biases = 2 * h;
  }
  return p;
}

}  // namespace

int kv_heads_per_rank(const TransformerConfig& m, int tp) { return std::max(1, m.kv_heads / tp); }

RankParameters layer_parameters(const TransformerConfig& m, int tp) {
  const LayerParameters p = layer_terms(m, tp);
  return {p.sharded(), p.replicated()};
}

RankParameters embedding_parameters(const TransformerConfig& m, int tp) {
  return {vocabulary_rows(m, tp) * m.hidden, static_cast<double>(m.learned_positions) * m.hidden};
}

RankParameters head_parameters(const TransformerConfig& m, int tp, bool shares_embedding) {
  return {shares_embedding ? 0.0 : vocabulary_rows(m, tp) * m.hidden, norm_parameters(m)};
}

int stage_layers(const StepInputs& in, int stage) {
  const int layers = in.model.layers, pp = in.layout.pp, rest = layers % pp;
  if (rest == 0 || !in.layout.uneven_stages) return layers / pp;
  if ((layers + 2) % pp == 0) return (layers + 2) / pp - (stage == 0 ? 1 : 0) - (stage == pp - 1 ? 1 : 0);
  return layers / pp + (stage < rest ? 1 : 0);
}

bool has_embedding(const StepInputs& in, int stage) { return in.options.embedding_and_logits && stage == 0; }
bool has_head(const StepInputs& in, int stage) { return in.options.embedding_and_logits && stage == in.layout.pp - 1; }

std::vector<UnitParameters> unit_parameters(const StepInputs& in, int stage) {
  const TransformerConfig& m = in.model;
  const int tp = in.layout.tp;
  std::vector<UnitParameters> units;
  if (has_embedding(in, stage)) {
    const double own = embedding_parameters(m, tp).total();
    units.push_back({own, own});
  }
  const double layer = layer_parameters(m, tp).total();
  units.insert(units.end(), static_cast<std::size_t>(stage_layers(in, stage)), {layer, layer});
  if (has_head(in, stage))
    units.push_back({head_parameters(m, tp, m.tied_embeddings && in.layout.pp == 1).total(),
                     head_parameters(m, tp, false).total()});
  return units;
}

RankParameters stage_parameters(const StepInputs& in, int stage) {
  const ParameterTerms p = parameter_terms(in, stage);
  return {p.sharded(), p.replicated()};
}

Flops model_flops(const StepInputs& in) { return flop_terms(in).model(); }
Flops hardware_flops(const StepInputs& in) { return flop_terms(in).hardware(); }

}  // namespace collcast::workload

namespace collcast {

ParameterTerms parameter_terms(const StepInputs& in, int stage) {
  ParameterTerms terms;
  terms.layers = workload::stage_layers(in, stage);
  terms.layer = workload::layer_terms(in.model, in.layout.tp);
  if (workload::has_embedding(in, stage)) {
    const auto embedding = workload::embedding_parameters(in.model, in.layout.tp);
    terms.embedding = embedding.sharded;
    terms.positions = embedding.replicated;
  }
  if (workload::has_head(in, stage)) {
    const bool shares_embedding = in.model.tied_embeddings && in.layout.pp == 1;
    const auto head = workload::head_parameters(in.model, in.layout.tp, shares_embedding);
    terms.output = head.sharded;
    terms.final_norm = head.replicated;
  }
  return terms;
}

FlopTerms flop_terms(const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const double s = in.batch.sequence, h = m.hidden, d = m.head_dim, a = m.heads, k = m.kv_heads, f = m.ffn;
  FlopTerms flops;
  flops.samples = in.batch.global_batch;
  flops.linear = m.layers * s * (2 * h * (a + 2 * k) * d + 2 * a * d * h + (m.gated_mlp ? 6 : 4) * h * f);
  flops.copies =
      m.layers * s * 4 * h * (static_cast<double>(workload::kv_heads_per_rank(m, in.layout.tp)) * in.layout.tp - k) * d;
  flops.core = m.layers * 4 * a * s * s * d;
  if (in.options.embedding_and_logits) flops.logits = 2 * s * h * m.vocab;
  if (in.options.recompute == Recompute::selective) flops.recomputed = flops.core;
  if (in.options.recompute == Recompute::full) flops.recomputed = flops.linear + flops.copies + flops.core;
  return flops;
}

double parameter_count(const TransformerConfig& m) {
  return m.layers * workload::layer_parameters(m, 1).total() + workload::embedding_parameters(m, 1).total() +
         workload::head_parameters(m, 1, m.tied_embeddings).total();
}

}  // namespace collcast
