#include "workload/layer/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>

#include "workload/layer/adapters.hpp"
#include "workload/layer/indexer.hpp"
#include "workload/layer/mtp.hpp"

namespace collcast::workload {

namespace {

/// Neither experts nor linear attention nor a pattern: every layer attends to keys and has an MLP.
bool all_layers_are_alike(const TransformerConfig& m) {
  return m.pattern.empty() && m.experts.count == 0 && m.linear.key_heads == 0;
}

double norm_parameters(const TransformerConfig& m) { return (m.biases ? 2.0 : 1.0) * m.hidden; }

/// Of all layers of a model: `of` gives that of one of a shape.
template <class Of>
double sum_of_layers(const TransformerConfig& m, Of of) {
  const PerShape<int> layers = layers_by_shape(m);
  double sum = 0;
  for (const LayerShape shape : layer_shapes)
    if (layers[shape] > 0) sum += layers[shape] * of(shape);
  return sum;
}

void add_linear_attention(const TransformerConfig& m, int tp, LayerParameters& p) {
  const LinearAttention& l = m.linear;
  p.norms += l.whole_vectors();
  p.attention = (m.hidden * (l.columns() + l.values()) + l.split_vectors()) / tp;
}

void add_attention(const TransformerConfig& m, int tp, LayerParameters& p) {
  const double h = m.hidden, d = m.head_dim, a = m.heads;
  const double k = static_cast<double>(kv_heads_per_rank(m, tp)) * tp;  // with copies
  if (m.biases) p.replicated_biases += h;
  if (m.latent.kv_rank > 0) {
    const double q = m.latent.q_rank, kv = m.latent.kv_rank, rope = m.latent.rope, nope = m.latent.nope;
    const double queries = (q > 0 ? q : h) * a * m.key_dim();
    p.attention = (queries + kv * a * (nope + m.value_dim()) + a * m.value_dim() * h) / tp;
    p.latent = h * q + h * (kv + rope) + q + kv;
    if (m.sparse.top_k > 0) p.indexer = indexer_parameters(m);
    return;
  }
  const double gate = m.attention_gate ? a : 0;
  p.attention = (h * d * (a + gate + 2 * k) + a * d * h) / tp;
  if (m.biases) p.sharded_biases += (a + 2 * k) * d / tp;
}

void add_mlp(const TransformerConfig& m, int tp, LayerParameters& p) {
  const double h = m.hidden, f = m.ffn;
  const double up = m.gated_mlp ? 2 * f : f;
  p.mlp = (h * up + f * h) / tp;
  if (!m.biases) return;
  p.sharded_biases += up / tp;
  p.replicated_biases += h;
}

void add_experts(const TransformerConfig& m, const ParallelLayout& l, LayerParameters& p) {
  const double h = m.hidden, matrices = m.gated_mlp ? 3 : 2;
  const double here = static_cast<double>(m.experts.count) / l.ep, etp = l.expert_tp(), row = m.expert_row();
  p.mlp = matrices * h * m.experts.shared_ffn / l.tp;
  p.router = h * (m.experts.count + (m.experts.shared_gate ? 1 : 0));
  p.experts = here * matrices * row * m.experts.ffn / etp;
  if (m.experts_have_biases()) p.experts += here * ((matrices - 1) * m.experts.ffn / etp + row);
  p.expert_latent = 2 * h * m.experts.latent;
}

LayerParameters layer_terms(const TransformerConfig& m, const ParallelLayout& l, LayerShape shape) {
  LayerParameters p;
  p.norms = (m.parallel_mlp.norms == 1 ? 1 : shape.branches()) * norm_parameters(m);
  if (shape.attends()) add_attention(m, l.tp, p);
  if (shape.is_linear()) add_linear_attention(m, l.tp, p);
  if (shape.has_mlp()) add_mlp(m, l.tp, p);
  if (shape.has_experts()) add_experts(m, l, p);
  return p;
}

RankParameters rank_parameters(const LayerParameters& p) { return {p.sharded(), p.replicated(), p.experts}; }

}  // namespace

LayerKind kind_of_layer(const StepInputs& in, int layer) {
  const int first = in.options.bf16_first_layers, last = in.options.bf16_last_layers;
  const int layers = in.model.layers;
  return {layer_shape(in.model, layer), has_window(in.model, layer), !recomputes_layer(in.options, layer),
          layer < first || (layer >= layers - last && layer < layers)};
}

std::vector<LayerKind> layer_kinds() {
  std::vector<LayerKind> all;
  for (const LayerShape shape : layer_shapes)
    for (const bool windowed : {false, true})
      for (const bool whole : {false, true})
        for (const bool bf16 : {false, true}) all.push_back({shape, windowed, whole, bf16});
  return all;
}

LayerKind shown_kind(const StepInputs& in) {
  for (const LayerKind& kind : layer_kinds())
    for (int layer = 0; layer < in.model.layers; ++layer)
      if (kind_of_layer(in, layer) == kind) return kind;
  return {};
}

int kv_heads_per_rank(const TransformerConfig& m, int tp) { return std::max(1, m.kv_heads / tp); }

double vocabulary_rows(const TransformerConfig& m, int tp) { return std::ceil(static_cast<double>(m.vocab) / tp); }

RankParameters layer_parameters(const TransformerConfig& m, const ParallelLayout& l, LayerShape shape) {
  return rank_parameters(layer_terms(m, l, shape));
}

RankParameters embedding_parameters(const TransformerConfig& m, int tp) {
  return {vocabulary_rows(m, tp) * m.hidden, static_cast<double>(m.learned_positions) * m.hidden, 0};
}

RankParameters head_parameters(const TransformerConfig& m, int tp, bool shares_embedding) {
  return {shares_embedding ? 0.0 : vocabulary_rows(m, tp) * m.hidden, norm_parameters(m), 0};
}

bool ends_stand_for_layers(const StepInputs& in) {
  const int layers = in.model.layers;
  const std::int64_t slices = in.layout.slices();
  return in.layout.uneven_stages && layers % slices != 0 && (layers + 2) % slices == 0;
}

bool slices_differ(const StepInputs& in) {
  return in.layout.uneven_stages && in.layout.chunks() > 1 && in.model.layers % in.layout.slices() != 0 &&
         !ends_stand_for_layers(in);
}

namespace {

/// The layers of a slice of a model whose slices differ by one, by their numbers.
struct Layers {
  int first = 0, count = 0;
};
Layers layers_of_uneven_slice(const StepInputs& in, int slice) {
  const std::int64_t slices = in.layout.slices();
  const int each = static_cast<int>(in.model.layers / slices), extra = static_cast<int>(in.model.layers % slices);
  // Round the stages the first so many slices have one more. In a V of the way down the last so many, of the way up the
  // first so many.
  const int turn = static_cast<int>(slices / 2), down = std::min(extra, turn), up = extra - down;
  const auto before = [&](int s) {
    if (!goes_in_v(in.layout.schedule)) return each * s + std::min(s, extra);
    return each * s + std::clamp(s - (turn - down), 0, down) + std::clamp(s - turn, 0, up);
  };
  return {before(slice), before(slice + 1) - before(slice)};
}

}  // namespace

int slice_of(const ParallelLayout& l, int stage, int chunk) {
  if (from_both_ends(l.schedule))
    return chunk == 0 ? std::min(stage, l.pp - 1 - stage) : std::max(stage, l.pp - 1 - stage);
  if (goes_in_v(l.schedule) && chunk == 1) return 2 * l.pp - 1 - stage;
  return chunk * l.pp + stage;
}

namespace {

/// Without those that predict further tokens.
std::vector<StageLayer> layers_of_slices(const StepInputs& in, int stage) {
  const int layers = in.model.layers, pp = in.layout.pp, chunks = in.layout.chunks();
  std::vector<StageLayer> out;
  if (ends_stand_for_layers(in)) {
    // The embedding is the place before layer 0, the head the one after the last.
    const int places = static_cast<int>((layers + 2) / in.layout.slices());
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int i = 0; i < places; ++i)
        if (const int number = slice_of(in.layout, stage, chunk) * places + i - 1; number >= 0 && number < layers)
          out.push_back({number, chunk});
    return out;
  }
  if (slices_differ(in)) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Layers of = layers_of_uneven_slice(in, slice_of(in.layout, stage, chunk));
      for (int i = 0; i < of.count; ++i) out.push_back({of.first + i, chunk});
    }
    return out;
  }
  if (chunks == 1) {
    const int rest = layers % pp, each = layers / pp;
    const int first = stage * each + std::min(stage, rest), count = each + (stage < rest ? 1 : 0);
    for (int i = 0; i < count; ++i) out.push_back({first + i, 0});
    return out;
  }
  // Chunks are of equal stages; more of them than layers are refused elsewhere.
  const int of_chunk = std::max(1, static_cast<int>(layers / in.layout.slices()));
  for (int i = 0; i < of_chunk * chunks; ++i)
    out.push_back({slice_of(in.layout, stage, i / of_chunk) * of_chunk + i % of_chunk, i / of_chunk});
  return out;
}

}  // namespace

std::vector<StageLayer> layers_of_stage(const StepInputs& in, int stage) {
  std::vector<StageLayer> out = layers_of_slices(in, stage);
  if (in.model.mtp_layers > 0 && has_head(in, stage))
    for (int i = 0; i < in.model.mtp_layers; ++i) out.push_back({in.model.layers + i, in.layout.chunks() - 1});
  return out;
}

int stage_layers(const StepInputs& in, int stage) { return static_cast<int>(layers_of_stage(in, stage).size()); }

bool stages_differ(const StepInputs& in) {
  return in.layout.uneven_stages || in.model.mtp_layers > 0 ||
         (!all_layers_are_alike(in.model) && shapes_of(in.model).size() > 1) || in.options.recompute_layers < 1 ||
         in.options.bf16_first_layers + in.options.bf16_last_layers > 0;
}

bool replicates_tokens(const StepInputs& in) {
  return in.serving && in.model.experts.count > 0 && in.layout.tp > 1 && !in.layout.sequence_parallel;
}

bool has_embedding(const StepInputs& in, int stage) {
  return in.options.embedding_and_logits && slice_of(in.layout, stage, 0) == 0;
}
bool has_head(const StepInputs& in, int stage) {
  return in.options.embedding_and_logits &&
         slice_of(in.layout, stage, in.layout.chunks() - 1) + 1 == in.layout.slices();
}

std::vector<UnitParameters> unit_parameters(const StepInputs& in, int stage) {
  const TransformerConfig& m = in.model;
  const int tp = in.layout.tp;
  const bool frozen = is_frozen(in.options);
  std::vector<UnitParameters> units;
  if (has_embedding(in, stage)) {
    const double held = embedding_parameters(m, tp).total();
    units.push_back({frozen ? 0 : held, held});
  }
  const auto unit_of = [&](const RankParameters& base, const AdapterParameters& adapters) {
    const bool go_apart = in.layout.experts_apart();
    const double trained = adapters.total(), held = base.total() + trained;
    const double trained_apart = go_apart ? adapters.experts : 0, apart = go_apart ? base.experts + trained_apart : 0;
    return frozen ? UnitParameters{trained - trained_apart, held - apart, trained_apart, apart}
                  : UnitParameters{held - apart, held - apart, apart, apart};
  };
  PerShape<UnitParameters> layer;
  for (const LayerShape shape : shapes_of(m))
    layer[shape] = unit_of(layer_parameters(m, in.layout, shape), layer_adapters(in, shape));
  for (const StageLayer& each : layers_of_stage(in, stage)) units.push_back(layer[layer_shape(m, each.number)]);
  if (has_head(in, stage)) {
    const double mtp = mtp_parameters(m, tp).total() + mtp_embedding_copy(in);
    // The modules' look-ups read the embedding's own matrix, where the head has neither it nor a copy.
    const bool reads_it = m.mtp_layers > 0 && in.layout.ends_together() && !m.tied_embeddings;
    const double read = reads_it ? embedding_parameters(m, tp).sharded : 0;
    units.push_back({frozen ? 0 : head_parameters(m, tp, m.tied_embeddings && in.layout.ends_together()).total() + mtp,
                     head_parameters(m, tp, false).total() + mtp + read});
  }
  return units;
}

RankParameters stage_parameters(const StepInputs& in, int stage) {
  const ParameterTerms p = parameter_terms(in, stage);
  return {p.sharded(), p.replicated(), p.experts()};
}

RankParameters trained_parameters(const StepInputs& in, int stage) {
  if (!is_frozen(in.options)) return stage_parameters(in, stage);
  const ParameterTerms p = parameter_terms(in, stage);
  return {p.sum([&](LayerShape s) { return p.adapters[s].sharded; }),
          p.sum([&](LayerShape s) { return p.adapters[s].replicated; }), p.trained_experts()};
}

Flops model_flops(const StepInputs& in) { return flop_terms(in).model(); }
Flops hardware_flops(const StepInputs& in) { return flop_terms(in).hardware(); }

}  // namespace collcast::workload

namespace collcast {

double adapter_parameter_count(const StepInputs& in) {
  StepInputs whole = in;
  whole.layout = {};
  return workload::sum_of_layers(in.model,
                                 [&](LayerShape shape) { return workload::layer_adapters(whole, shape).total(); });
}

ParameterTerms parameter_terms(const StepInputs& in, int stage) {
  ParameterTerms terms;
  for (const workload::StageLayer& each : workload::layers_of_stage(in, stage))
    ++terms.layers[layer_shape(in.model, each.number)];
  for (const LayerShape shape : layer_shapes) {
    if (!(terms.layers[shape] > 0)) continue;
    terms.layer[shape] = workload::layer_terms(in.model, in.layout, shape);
    terms.adapters[shape] = workload::layer_adapters(in, shape);
  }
  terms.frozen = workload::is_frozen(in.options);
  if (workload::has_embedding(in, stage)) {
    const auto embedding = workload::embedding_parameters(in.model, in.layout.tp);
    terms.embedding = embedding.sharded;
    terms.positions = embedding.replicated;
  }
  if (workload::has_head(in, stage)) {
    const bool shares_embedding = in.model.tied_embeddings && in.layout.ends_together();
    const auto head = workload::head_parameters(in.model, in.layout.tp, shares_embedding);
    terms.output = head.sharded;
    terms.final_norm = head.replicated;
    const auto mtp = workload::mtp_parameters(in.model, in.layout.tp);
    terms.mtp_projections = mtp.sharded;
    terms.mtp_norms = mtp.replicated;
    terms.mtp_embedding = workload::mtp_embedding_copy(in);
  }
  return terms;
}

namespace {

/// Of one token in the matrices of attention.
double attention_flops(const TransformerConfig& m) {
  const double h = m.hidden, d = m.head_dim, a = m.heads, k = m.kv_heads;
  if (m.latent.kv_rank == 0) return 2 * h * (a + (m.attention_gate ? a : 0) + 2 * k) * d + 2 * a * d * h;
  const LayerParameters p = workload::layer_terms(m, {}, mlp_layer);
  // Norms are no matrices.
  return 2 * (p.attention + p.latent - m.latent.q_rank - m.latent.kv_rank);
}

/// Of one token in the matrices of linear attention, and in its convolution and the rule of its states as it would go
/// token by token: what is kept of a state meets the key and the value, and the query (as Megatron-LM counts:
/// num_floating_point_operations).
double linear_attention_flops(const TransformerConfig& m) {
  return 2 * m.hidden * (m.linear.columns() + m.linear.values());
}
double linear_core_flops(const TransformerConfig& m) {
  if (m.linear.is_ssd()) return 7 * m.linear.state();
  return 8 * m.linear.state() + 2 * m.linear.conv * m.linear.channels();
}

/// Of one token in the MLP of a layer, or in the router and the experts that it is sent to.
double feed_forward_flops(const TransformerConfig& m, LayerShape shape) {
  if (!shape.has_feed_forward()) return 0;
  const double h = m.hidden, each = m.gated_mlp ? 6 : 4;
  if (shape.has_mlp()) return each * h * m.ffn;
  const Experts& e = m.experts;
  return 2 * h * (e.count + (e.shared_gate ? 1 : 0)) + 4 * h * e.latent +
         each * (m.expert_row() * static_cast<double>(e.top_k) * e.ffn + h * e.shared_ffn);
}

/// Of one token in the matrices of a layer that selective recomputation passes once more.
double flops_again(const StepInputs& in, LayerShape shape) {
  using workload::Adapted;
  const TransformerConfig& m = in.model;
  const auto adapters = [&](const std::function<bool(const Adapted&)>& takes) {
    return workload::adapter_flops(in, shape, takes);
  };
  const auto beside = [&](std::initializer_list<AdapterModule> modules) {
    return adapters([&](const Adapted& a) { return std::ranges::count(modules, a.module) > 0; });
  };
  const auto again = [&](RecomputeModule module) { return recomputes(in.options, module) ? 1.0 : 0.0; };
  const double h = m.hidden, d = m.head_dim, a = m.heads, each = m.gated_mlp ? 6 : 4;
  const double k = static_cast<double>(workload::kv_heads_per_rank(m, in.layout.tp)) * in.layout.tp;  // with copies
  const double gated = m.attention_gate ? 2 : 1;
  // What the projection out gives no backward of a layer needs that ends with it.
  const double o_proj = shape.has_feed_forward() ? again(RecomputeModule::o_proj) : 0;
  double sum = 2 * h * d *
               (a * (gated * again(RecomputeModule::q_proj) + o_proj) +
                k * (again(RecomputeModule::k_proj) + again(RecomputeModule::v_proj)));
  if (!shape.has_mixer()) {
    sum = 0;
  } else if (shape.is_linear()) {
    sum = 2 * m.linear.values() * h * o_proj;
  } else if (const LatentAttention& l = m.latent; l.kv_rank > 0) {
    const double up = (l.q_rank > 0 ? l.q_rank : h) * m.key_dim() + l.kv_rank * (l.nope + m.value_dim());
    sum = 2 * a * (again(RecomputeModule::mla_up_proj) * up + o_proj * m.value_dim() * h);
    sum += again(RecomputeModule::mla_up_proj) *
           beside({AdapterModule::linear_q_proj, AdapterModule::linear_q_up_proj, AdapterModule::linear_kv_up_proj});
  }
  sum += o_proj * beside({AdapterModule::linear_proj});
  if (!shape.has_feed_forward()) return sum;
  if (shape.has_experts()) {
    if (again(RecomputeModule::moe) > 0)
      return sum + feed_forward_flops(m, shape) + beside({AdapterModule::linear_fc1, AdapterModule::linear_fc2});
    return sum + again(RecomputeModule::shared_experts) *
                     (each * h * m.experts.shared_ffn +
                      adapters([](const Adapted& one) { return one.of == Adapted::Of::shared_experts; }));
  }
  if (again(RecomputeModule::mlp) > 0)
    return sum + feed_forward_flops(m, shape) + beside({AdapterModule::linear_fc1, AdapterModule::linear_fc2});
  return sum + 2 * h * m.ffn * (again(RecomputeModule::gate_proj) + again(RecomputeModule::up_proj));
}

}  // namespace

FlopTerms flop_terms(const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const double s = in.batch.sequence, h = m.hidden, d = m.head_dim, a = m.heads, k = m.kv_heads;
  const double linear = linear_layers(m), attending = attending_layers(m);
  FlopTerms flops;
  flops.samples = in.batch.global_batch;
  flops.linear = s * (attending * attention_flops(m) + linear * linear_attention_flops(m) +
                      workload::sum_of_layers(m, [&](LayerShape shape) { return feed_forward_flops(m, shape); }));
  if (m.latent.kv_rank == 0)
    flops.copies = attending * s * 4 * h *
                   (static_cast<double>(workload::kv_heads_per_rank(m, in.layout.tp)) * in.layout.tp - k) * d;
  const double core = 2 * a * s * s * (m.key_dim() + m.value_dim());
  // No discount for causal attention; of a window what it leaves of a causal layer.
  const bool sparse = m.sparse.top_k > 0;
  const double layers = m.all_layers(), windowed = sparse ? layers : windowed_layers(m);
  const double seen = causal_keys(0, s, workload::most_keys(m)) / causal_keys(0, s);
  flops.core = attending * core + linear * s * linear_core_flops(m);
  if (windowed > 0) flops.core *= (layers - windowed + windowed * seen) / layers;
  if (workload::chooses_keys(m, in.batch.sequence)) {
    const double products = 2 * s * workload::indexer_products(m), scores = 2.0 * m.sparse.heads * m.sparse.dim * s * s;
    flops.indexer = layers * (products + scores);
    if (!workload::is_frozen(in.options)) flops.indexer_gradients = layers * (products + 2 * seen * scores);
  }
  if (in.options.embedding_and_logits) flops.logits = 2 * s * h * m.vocab * (1 + m.mtp_layers);
  flops.mtp = m.mtp_layers * s * 4 * h * h;
  const auto adapters = [&](LayerShape shape) { return s * workload::adapter_flops(in, shape); };
  flops.adapters = workload::sum_of_layers(m, adapters);
  flops.frozen = workload::is_frozen(in.options);
  const bool full = in.options.recompute == Recompute::full;
  if (full && in.options.recompute_layers == 1)
    flops.recomputed = flops.linear + flops.copies + flops.core + flops.indexer + flops.adapters;
  if (in.options.recompute == Recompute::none || flops.recomputed > 0) return flops;
  const bool of_core = full || recomputes(in.options, RecomputeModule::core_attn);
  for (int layer = 0; layer < m.all_layers(); ++layer) {
    if (!recomputes_layer(in.options, layer)) continue;
    const LayerShape shape = layer_shape(m, layer);
    if (!full)
      flops.recomputed += s * flops_again(in, shape);
    else
      flops.recomputed += s * feed_forward_flops(m, shape) + adapters(shape);
    if (full && shape.is_linear()) flops.recomputed += s * (linear_attention_flops(m) + linear_core_flops(m));
    if (full && shape.attends())
      flops.recomputed += s * attention_flops(m) + (flops.copies + flops.indexer) / attending;
    if (of_core && shape.attends()) flops.recomputed += core * (sparse || has_window(m, layer) ? seen : 1);
  }
  return flops;
}

LayerShape layer_shape(const TransformerConfig& m, int layer) {
  if (!m.pattern.empty()) {
    if (layer >= m.layers) return m.experts.count > 0 ? expert_layer : mlp_layer;
    const char letter = m.pattern[static_cast<std::size_t>(layer) % m.pattern.size()];
    return {letter == 'M'   ? Mixer::linear_attention
            : letter == '*' ? Mixer::attention
                            : Mixer::none,
            letter == 'E'   ? FeedForward::experts
            : letter == '-' ? FeedForward::mlp
                            : FeedForward::none};
  }
  return {has_linear_attention(m, layer) ? Mixer::linear_attention : Mixer::attention,
          has_experts(m, layer) ? FeedForward::experts : FeedForward::mlp};
}

PerShape<int> layers_by_shape(const TransformerConfig& m) {
  PerShape<int> count;
  if (workload::all_layers_are_alike(m))
    count[mlp_layer] = m.all_layers();
  else
    for (int layer = 0; layer < m.all_layers(); ++layer) ++count[layer_shape(m, layer)];
  return count;
}

std::vector<LayerShape> shapes_of(const TransformerConfig& m) {
  if (workload::all_layers_are_alike(m)) return {mlp_layer};
  const PerShape<int> count = layers_by_shape(m);
  std::vector<LayerShape> out;
  for (const LayerShape shape : layer_shapes)
    if (count[shape] > 0) out.push_back(shape);
  return out;
}

namespace {

/// The number of a layer's like: those that predict further tokens are as the last.
int as_last(const TransformerConfig& m, int layer) { return layer < m.layers ? layer : m.layers - 1; }

int layers_with(const TransformerConfig& m, bool (LayerShape::*part)() const) {
  return static_cast<int>(workload::sum_of_layers(m, [&](LayerShape shape) { return (shape.*part)() ? 1 : 0; }));
}

}  // namespace

bool has_experts(const TransformerConfig& m, int layer) {
  const Experts& e = m.experts;
  if (!m.pattern.empty()) return layer_shape(m, layer).has_experts();
  layer = as_last(m, layer);
  return e.count > 0 && layer >= e.dense_layers && layer % e.every == e.phase &&
         std::find(e.dense_at.begin(), e.dense_at.end(), layer) == e.dense_at.end();
}

int expert_layers(const TransformerConfig& m) { return layers_with(m, &LayerShape::has_experts); }

bool has_window(const TransformerConfig& m, int layer) {
  const SlidingWindow& w = m.window;
  layer = as_last(m, layer);
  return w.tokens > 0 && layer >= w.full_first && (w.full_every == 0 || (layer + 1) % w.full_every != 0) &&
         std::find(w.full_at.begin(), w.full_at.end(), layer) == w.full_at.end();
}

int windowed_layers(const TransformerConfig& m) {
  int count = 0;
  if (m.window.tokens > 0)
    for (int layer = 0; layer < m.all_layers(); ++layer) count += has_window(m, layer) ? 1 : 0;
  return count;
}

bool has_linear_attention(const TransformerConfig& m, int layer) {
  const LinearAttention& l = m.linear;
  if (!m.pattern.empty()) return layer_shape(m, layer).is_linear();
  layer = as_last(m, layer);
  return l.key_heads > 0 && (l.full_every == 0 || (layer + 1) % l.full_every != 0) &&
         std::find(l.full_at.begin(), l.full_at.end(), layer) == l.full_at.end();
}

int linear_layers(const TransformerConfig& m) { return layers_with(m, &LayerShape::is_linear); }

int mlp_layers(const TransformerConfig& m) { return layers_with(m, &LayerShape::has_mlp); }

int attending_layers(const TransformerConfig& m) { return layers_with(m, &LayerShape::attends); }

double causal_keys(double kept, double tokens, int window) {
  // Those of the first queries, which the window does not cut, and of the others.
  const double whole = window == 0 ? tokens : std::clamp(window - kept, 0.0, tokens);
  return whole * kept + whole * (whole + 1) / 2 + (tokens - whole) * window;
}

double parameter_count(const TransformerConfig& m) {
  return workload::sum_of_layers(m,
                                 [&](LayerShape shape) { return workload::layer_parameters(m, {}, shape).total(); }) +
         workload::embedding_parameters(m, 1).total() + workload::head_parameters(m, 1, m.tied_embeddings).total() +
         workload::mtp_parameters(m, 1).total();
}

double active_parameter_count(const TransformerConfig& m) {
  if (m.experts.count == 0) return parameter_count(m);
  const double left_out = 1.0 - static_cast<double>(m.experts.top_k) / m.experts.count;
  return parameter_count(m) - expert_layers(m) * left_out * workload::layer_parameters(m, {}, expert_layer).experts;
}

}  // namespace collcast
