// The parameters of a rank taken apart: those of a layer, and what the ends of the model have.
#include <fmt/format.h>

#include "report/explain.hpp"

namespace collcast {

namespace {

/// Attention whose queries, keys and values come from small ranks.
void add_latent_parameters(Section& out, const StepInputs& in, const LayerParameters& p) {
  const TransformerConfig& m = in.model;
  const LatentAttention& a = m.latent;
  const bool q = a.q_rank > 0;
  out.terms.push_back(
      {"latent attention of a layer", "a ((rq or h) (dn + dr) + rkv (dn + dv) + dv h) / TP",
       fmt::format("{} x ({} x ({} + {}) + {} x ({} + {}) + {} x {}) / {}", m.heads, q ? a.q_rank : m.hidden, a.nope,
                   a.rope, a.kv_rank, a.nope, a.value, a.value, m.hidden, in.layout.tp),
       p.attention, "", "out of the small ranks to the heads, and back; 1/TP of each matrix"});
  out.terms.push_back(
      {"small ranks of a layer", "h (rq + rkv + dr) + rq + rkv",
       fmt::format("{} x ({} + {} + {}) + {} + {}", m.hidden, a.q_rank, a.kv_rank, a.rope, a.q_rank, a.kv_rank),
       p.latent, "", "matrices into them and their norms, whole on every TP rank"});
  if (const SparseAttention& s = m.sparse; s.top_k > 0)
    out.terms.push_back({"indexer of a layer", "rq H d + h (d + H) + 2 d",
                         fmt::format("{} x {} x {} + {} x ({} + {}) + 2 x {}", a.q_rank, s.heads, s.dim, m.hidden,
                                     s.dim, s.heads, s.dim),
                         p.indexer, "",
                         "of sparse attention: queries, keys and weights, and a norm; whole on every TP rank"});
}

/// What a layer with experts has in the place of the MLP.
void add_expert_parameters(Section& out, const StepInputs& in, const LayerParameters& p) {
  const TransformerConfig& m = in.model;
  const Experts& e = m.experts;
  const int matrices = m.gated_mlp ? 3 : 2, etp = in.layout.expert_tp();
  out.terms.push_back(
      {"router of a layer", e.shared_gate ? "h (E + 1)" : "h E",
       fmt::format("{} x {}", m.hidden, e.shared_gate ? fmt::format("({} + 1)", e.count) : fmt::format("{}", e.count)),
       p.router, "", "whole on every TP rank"});
  if (e.shared_ffn > 0)
    out.terms.push_back({"shared experts of a layer", fmt::format("{} h fs / TP", matrices),
                         fmt::format("{} x {} x {} / {}", matrices, m.hidden, e.shared_ffn, in.layout.tp), p.mlp, "",
                         "1/TP of each matrix"});
  if (e.latent > 0)
    out.terms.push_back({"latent of a layer's experts", "2 h l", fmt::format("2 x {} x {}", m.hidden, e.latent),
                         p.expert_latent, "", "down to rows of l elements, and up again; whole on every TP rank"});
  const char* row = e.latent > 0 ? "l" : "h";
  std::string formula = fmt::format("E / EP x {} {} fe / expert TP", matrices, row);
  std::string numbers =
      fmt::format("{} / {} x {} x {} x {} / {}", e.count, in.layout.ep, matrices, m.expert_row(), e.ffn, etp);
  if (m.experts_have_biases()) {
    formula += fmt::format(" + E / EP x ({}fe / expert TP + {})", m.gated_mlp ? "2 " : "", row);
    numbers +=
        fmt::format(" + {} / {} x ({} / {} + {})", e.count, in.layout.ep, (matrices - 1) * e.ffn, etp, m.expert_row());
  }
  out.terms.push_back({"experts of a layer", formula, numbers, p.experts, "",
                       fmt::format("{} of {} experts", e.count / in.layout.ep, e.count)});
}

void add_attention_parameters(Section& out, const StepInputs& in, const LayerParameters& p) {
  const TransformerConfig& m = in.model;
  const int tp = in.layout.tp;
  if (m.latent.kv_rank > 0) {
    add_latent_parameters(out, in, p);
    return;
  }
  const int of_heads = m.attention_gate ? 3 : 2;
  // Fewer KV heads than TP ranks: one on each.
  const bool copies = m.kv_heads < tp;
  out.terms.push_back(
      {"attention of a layer", fmt::format("h d ({}a + 2{}) / TP", of_heads, copies ? " TP" : "k"),
       fmt::format("{} x {} x ({} x {} + 2 x {}) / {}", m.hidden, m.head_dim, of_heads, m.heads,
                   copies ? tp : m.kv_heads, tp),
       p.attention, "",
       fmt::format("query, key, value{} and output matrices; 1/TP of each matrix{}", m.attention_gate ? ", gate" : "",
                   copies ? fmt::format(", of the {} KV heads one", m.kv_heads) : "")});
}

void add_mlp_parameters(Section& out, const StepInputs& in, const LayerParameters& p) {
  const TransformerConfig& m = in.model;
  const int matrices = m.gated_mlp ? 3 : 2;
  if (p.mlp > 0)
    out.terms.push_back({"MLP of a layer", fmt::format("{} h f / TP", matrices),
                         fmt::format("{} x {} x {} / {}", matrices, m.hidden, m.ffn, in.layout.tp), p.mlp, "",
                         fmt::format("{}; 1/TP of each matrix", m.gated_mlp ? "up, gate and down" : "up and down")});
}

void add_norms_and_biases(Section& out, const StepInputs& in, const LayerParameters& p, LayerShape shape) {
  const TransformerConfig& m = in.model;
  const int vectors = (m.parallel_mlp.norms == 1 ? 1 : shape.branches()) * (m.biases ? 2 : 1);
  std::string formula = vectors == 1 && shape.branches() == 1 ? "h" : fmt::format("{} h", vectors),
              numbers = fmt::format("{} x {}", vectors, m.hidden);
  if (shape.is_linear() && m.linear.whole_vectors() > 0) {
    formula += " + dv";
    numbers += fmt::format(" + {}", m.linear.value_dim);
  }
  out.terms.push_back({"norms of a layer", formula, numbers, p.norms, "", "whole on every TP rank"});
  if (!m.biases) return;
  if (m.latent.kv_rank > 0 || shape.has_experts()) {
    if (shape.has_mixer())
      out.terms.push_back({"biases of a layer",
                           {},
                           {},
                           p.sharded_biases + p.replicated_biases,
                           "",
                           "of attention; those of experts are counted with them"});
    return;
  }
  std::string split, split_numbers;
  if (shape.attends()) {
    split = "(a + 2k) d";
    split_numbers = fmt::format("({} + 2 x {}) x {}", m.heads, m.kv_heads, m.head_dim);
  }
  if (shape.has_mlp()) {
    split += fmt::format("{}{}f", split.empty() ? "" : " + ", m.gated_mlp ? "2 " : "");
    split_numbers += fmt::format("{}{}{}", split_numbers.empty() ? "" : " + ", m.gated_mlp ? "2 x " : "", m.ffn);
  }
  const std::string whole = shape.branches() == 1 ? "" : "2 ", whole_numbers = shape.branches() == 1 ? "" : "2 x ";
  out.terms.push_back({"biases of a layer", fmt::format("({}) / TP + {}h", split, whole),
                       fmt::format("({}) / {} + {}{}", split_numbers, in.layout.tp, whole_numbers, m.hidden),
                       p.sharded_biases + p.replicated_biases, "",
                       "those of the output and down matrices are whole on every TP rank"});
}

/// Linear attention in the place of attention.
void add_linear_parameters(Section& out, const StepInputs& in, const LayerParameters& p) {
  const LinearAttention& l = in.model.linear;
  if (l.is_ssd()) {
    out.terms.push_back(
        {"Mamba-2 of a layer", "(h (2 ak dk + 3 av dv + av) + (taps + 1) (2 ak dk + av dv) + 3 av + av dv) / TP",
         fmt::format(
             "({0} x (2 x {1} x {2} + 3 x {3} x {4} + {3}) + ({5} + 1) x (2 x {1} x {2} + {3} x {4}) + 3 x {3} + "
             "{3} x {4}) / {6}",
             in.model.hidden, l.key_heads, l.key_dim, l.value_heads, l.value_dim, l.conv, in.layout.tp),
         p.attention, "",
         "C, B, x, gate and steps; convolution with its biases; decays, biases of steps and what passes by; norm; "
         "output; 1/TP of each"});
    return;
  }
  out.terms.push_back(
      {"linear attention of a layer", "(h (2 ak dk + 3 av dv + 2 av) + taps (2 ak dk + av dv) + 2 av) / TP",
       fmt::format(
           "({0} x (2 x {1} x {2} + 3 x {3} x {4} + 2 x {3}) + {5} x (2 x {1} x {2} + {3} x {4}) + 2 x {3}) / {6}",
           in.model.hidden, l.key_heads, l.key_dim, l.value_heads, l.value_dim, l.conv, in.layout.tp),
       p.attention, "", "queries, keys, values, gate, steps and decays; convolution; output; 1/TP of each"});
}

/// A layer in its parts.
void add_layer_parameters(Section& out, const StepInputs& in, const LayerParameters& p, LayerShape shape) {
  if (shape.attends()) add_attention_parameters(out, in, p);
  if (shape.is_linear()) add_linear_parameters(out, in, p);
  if (shape.has_mlp()) add_mlp_parameters(out, in, p);
  if (shape.has_experts()) add_expert_parameters(out, in, p);
  add_norms_and_biases(out, in, p, shape);
}

/// The parts of a layer as numbers.
std::string layer_sum(const LayerParameters& p) {
  std::string out;
  for (const double part : {p.attention, p.latent, p.indexer, p.mlp, p.router, p.expert_latent, p.experts, p.norms,
                            p.sharded_biases + p.replicated_biases})
    if (part > 0) out += (out.empty() ? "" : " + ") + exact(part);
  return out;
}

}  // namespace

const char* layer_text(LayerShape shape) {
  if (shape.branches() == 1)
    return shape.is_linear()     ? "a layer of linear attention alone"
           : shape.attends()     ? "a layer of attention alone"
           : shape.has_experts() ? "a layer of experts alone"
                                 : "a layer of an MLP alone";
  if (shape.is_linear())
    return shape.has_experts() ? "a layer with linear attention and experts"
                               : "a layer with linear attention and an MLP";
  return shape.has_experts() ? "a layer with experts" : "a layer with an MLP";
}
const char* layers_text(LayerShape shape) {
  if (shape.branches() == 1)
    return shape.is_linear()     ? "layers of linear attention alone"
           : shape.attends()     ? "layers of attention alone"
           : shape.has_experts() ? "layers of experts alone"
                                 : "layers of an MLP alone";
  if (shape.is_linear())
    return shape.has_experts() ? "linear-attention expert layers" : "linear-attention layers with an MLP";
  return shape.has_experts() ? "expert layers" : "layers with an MLP";
}

std::vector<LayerShape> shapes_of_stage(const ParameterTerms& p) {
  std::vector<LayerShape> out;
  for (const LayerShape shape : layer_shapes)
    if (p.layers[shape] > 0) out.push_back(shape);
  return out;
}

StageLayersText stage_layers_text(const StepInputs& in, double layers) {
  const int twins = in.layout.twins(), further = in.model.mtp_layers;
  const auto of_all = [&](double own) { return own * in.layout.pp == in.model.layers * twins; };
  StageLayersText out{twins > 1 ? "2 layers / PP" : "layers / PP",
                      fmt::format("{}{} / {}", twins > 1 ? "2 x " : "", in.model.layers, in.layout.pp), false};
  if (of_all(layers)) return out;
  if (further == 0 || !of_all(layers - further)) return {"layers of the stage", fmt::format("{}", layers), true};
  return {fmt::format("({} + those of multi-token prediction)", out.formula),
          fmt::format("({} + {})", out.numbers, further), false};
}

namespace {

/// The rank's parameters as a sum: what is added up stands in a section's terms, the sum behind them.
class ParameterSum {
 public:
  explicit ParameterSum(Section& out) : out_(out) {}
  void begin(std::string formula, std::string numbers) {
    formula_ = std::move(formula);
    numbers_ = std::move(numbers);
  }
  void add(Term term, const std::string& formula, const std::string& numbers) {
    out_.terms.push_back(std::move(term));
    formula_ += " + " + formula;
    numbers_ += " + " + numbers;
  }
  /// What the rank has once, where it has it.
  void add_once(const char* name, const char* formula, std::string numbers, double value, const char* source) {
    if (value > 0) add({name, formula, std::move(numbers), value, "", source}, name, exact(value));
  }
  void end(double total) {
    out_.terms.push_back({"parameters of the rank", formula_, numbers_, total, "", "all that the rank holds"});
  }

 private:
  Section& out_;
  std::string formula_, numbers_;
};

/// Layers of the shape that is shown in its parts.
void begin_sum(ParameterSum& sum, const StepInputs& in, const ParameterTerms& p, LayerShape shown, bool alone) {
  const LayerParameters& layer = p.layer[shown];
  if (!alone || shown != mlp_layer) {
    sum.begin(fmt::format("{} x their sum", layers_text(shown)),
              fmt::format("{} x ({})", exact(p.layers[shown]), layer_sum(layer)));
    return;
  }
  const StageLayersText counted = stage_layers_text(in, p.all_layers());
  const std::string parts =
      in.model.latent.kv_rank > 0
          ? layer_sum(layer)
          : fmt::format("{} + {} + {}{}", exact(layer.attention), exact(layer.mlp), exact(layer.norms),
                        in.model.biases ? " + " + exact(layer.sharded_biases + layer.replicated_biases) : "");
  sum.begin(counted.formula + " x layer", fmt::format("{} x ({})", counted.numbers, parts));
}

/// Layers of other shapes: the total of each, and those parts that the one shown in its parts does not have.
void add_other_shapes(Section& out, ParameterSum& sum, const StepInputs& in, const ParameterTerms& p,
                      LayerShape shown) {
  for (const LayerShape shape : shapes_of_stage(p)) {
    if (shape == shown) continue;
    const LayerParameters& of = p.layer[shape];
    if (shape.is_linear() && !shown.is_linear()) add_linear_parameters(out, in, of);
    if (!shape.has_mixer() && shape.has_mlp()) add_mlp_parameters(out, in, of);
    if (!shape.has_mixer() && shape.has_experts()) add_expert_parameters(out, in, of);
    sum.add({layer_text(shape),
             shape == mlp_layer ? "the same, its MLP in the place of router and experts" : "sum of its parts",
             layer_sum(of), of.total(), "", ""},
            fmt::format("{} x theirs", layers_text(shape)),
            fmt::format("{} x {}", exact(p.layers[shape]), exact(of.total())));
  }
}

/// Of so many layers, where there are any.
void add_adapters_of(ParameterSum& sum, const char* name, const char* of, double layers, const AdapterParameters& a) {
  if (!(layers > 0)) return;
  sum.add(
      {name, "r (n + m) of each matrix n x m: 1/TP of the side that TP splits",
       fmt::format("{} + {}{}", exact(a.sharded), exact(a.replicated), a.experts > 0 ? " + " + exact(a.experts) : ""),
       a.total(), "",
       fmt::format("low-rank, trained in the place of all other weights; split and whole on every TP rank{}",
                   a.experts > 0 ? ", and of the rank's experts" : "")},
      fmt::format("{} x adapters of one", of), fmt::format("{} x {}", exact(layers), exact(a.total())));
}

void add_adapters(ParameterSum& sum, const StepInputs& in, const ParameterTerms& p) {
  if (!p.frozen) return;
  const bool experts = in.model.experts.count > 0 && p.expert_layers() > 0;
  add_adapters_of(sum, experts ? "adapters of a layer with an MLP" : "adapters of a layer",
                  experts ? "layers with an MLP" : "layers", p.layers[mlp_layer], p.adapters[mlp_layer]);
  add_adapters_of(sum, "adapters of a layer with experts", "expert layers", p.layers[expert_layer],
                  p.adapters[expert_layer]);
}

/// Rows of a matrix over the vocabulary that a rank has.
std::string vocabulary_numbers(const StepInputs& in) {
  return fmt::format("ceil({} / {}) x {}", in.model.vocab, in.layout.tp, in.model.hidden);
}

/// What the first and the last stage have besides layers.
void add_ends(ParameterSum& sum, const StepInputs& in, const ParameterTerms& p) {
  const TransformerConfig& m = in.model;
  const bool last = !in.layout.ends_together() || in.layout.pp == 1;
  const std::string vocabulary = vocabulary_numbers(in);
  sum.add_once("embedding", "ceil(V / TP) h", vocabulary, p.embedding, "first stage; rows padded to a multiple of TP");
  sum.add_once("positions", "positions h", fmt::format("{} x {}", m.learned_positions, m.hidden), p.positions,
               "first stage");
  sum.add_once("output matrix", "ceil(V / TP) h", vocabulary, p.output,
               !last               ? "first stage"
               : m.tied_embeddings ? "last stage; a copy of the tied embedding"
                                   : "last stage");
  sum.add_once("final norm", m.biases ? "2 h" : "h", fmt::format("{} x {}", m.biases ? 2 : 1, m.hidden), p.final_norm,
               last ? "last stage" : "first stage");
}

/// What multi-token prediction has besides its layers.
void add_mtp(ParameterSum& sum, const StepInputs& in, const ParameterTerms& p) {
  const TransformerConfig& m = in.model;
  const int further = m.mtp_layers, norms = m.biases ? 6 : 3;
  sum.add_once("MTP projections", "2 h^2 / TP of each",
               fmt::format("{} x 2 x {} x {} / {}", further, m.hidden, m.hidden, in.layout.tp), p.mtp_projections,
               "of multi-token prediction: embeddings and hidden states side by side, brought to h");
  sum.add_once("MTP norms", m.biases ? "6 h of each" : "3 h of each",
               fmt::format("{} x {} x {}", further, norms, m.hidden), p.mtp_norms,
               "before the projection two, and the final one");
  sum.add_once("MTP embedding", "ceil(V / TP) h", vocabulary_numbers(in), p.mtp_embedding,
               in.serving ? "last stage; a copy" : "last stage; a copy, whose gradients both ends sum up");
}

}  // namespace

Section parameters_section(const StepInputs& in, const ParameterTerms& p, int stage) {
  Section out;
  out.title = fmt::format("parameters of the fullest rank (stage {})", stage);
  // A layer of the first shape in its parts, of others the total.
  const std::vector<LayerShape> shapes = shapes_of_stage(p);
  const LayerShape shown = shapes.empty() ? mlp_layer : shapes.front();
  add_layer_parameters(out, in, p.layer[shown], shown);
  ParameterSum sum(out);
  begin_sum(sum, in, p, shown, shapes.size() <= 1);
  add_other_shapes(out, sum, in, p, shown);
  add_adapters(sum, in, p);
  add_ends(sum, in, p);
  add_mtp(sum, in, p);
  sum.end(p.total());
  return out;
}

}  // namespace collcast
