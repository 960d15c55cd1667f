// What one layer keeps of a micro-batch, taken apart: of the first shape that the fullest stage has, and the sums of
// others. The figures are MemoryTerms; only the texts are made here.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

constexpr const char* korthikanti = "Korthikanti et al. 2022, generalised to GQA and gated MLPs";

/// b s, over CP, and that over TP with sequence parallelism.
std::string over_cp(const StepInputs& in) {
  return in.layout.cp > 1 ? fmt::format(" / {}", in.layout.cp) : std::string();
}
std::string tokens(const StepInputs& in) {
  return fmt::format("{} x {}{}", in.batch.micro_batch, in.batch.sequence, over_cp(in));
}
std::string rows(const StepInputs& in) {
  return in.layout.sequence_parallel ? fmt::format("{} / {}", tokens(in), in.layout.tp) : tokens(in);
}

/// "2 T' h + T f / TP": of a layer what products keep as they read it.
std::string cast_formula(const StepInputs& in, const KeptTensors& kept, LayerShape shape) {
  const ProductInputs of = product_inputs(in, kept, shape);
  std::vector<std::string> parts;
  if (of.norms > 0) parts.push_back(kept.read_once == 1 ? "T' h" : fmt::format("{} T' h", kept.read_once));
  if (of.latent > 0) parts.push_back(in.model.latent.q_rank > 0 ? "T' (rq + rkv)" : "T' rkv");
  if (of.mlp > 0) parts.push_back(shape.has_experts() ? "T fs / TP" : "T f / TP");
  const char* row = in.model.experts.latent > 0 ? "l" : "h";
  const std::string of_row = fmt::format("{}{}{}", of.rows > 0 ? row : "", of.rows > 0 && of.experts > 0 ? " + " : "",
                                         of.experts > 0 ? "fe / expert TP" : "");
  if (!of_row.empty()) parts.push_back(fmt::format("T' K expert TP load ({})", of_row));
  if (of.expert_latent > 0) parts.emplace_back("T' l");
  return fmt::format("{}", fmt::join(parts, " + "));
}

/// What a layer keeps of linear attention, or has of it while it is computed once more.
void add_linear_attention(Section& out, const StepInputs& in, const MemoryTerms& terms, const ActivationTerms& a,
                          const char* while_recomputed) {
  const LinearAttention& l = in.model.linear;
  if (l.is_ssd()) {
    out.terms.push_back(
        {"Mamba-2", "w T (2 ak dk + 5 av dv + av) / TP",
         fmt::format("{} x {} x (2 x {} x {} + 5 x {} x {} + {}) / {}", exact(terms.weight_bytes), tokens(in),
                     l.key_heads, l.key_dim, l.value_heads, l.value_dim, l.value_heads, in.layout.tp),
         a.projections.value(), "B",
         fmt::format("what its projection gives, the scan before its gate and behind it, and the norm{}",
                     while_recomputed)});
    return;
  }
  out.terms.push_back(
      {"linear attention", "w T (6 ak dk + 5 av dv + (C + 2) av) / TP",
       fmt::format("{} x {} x (6 x {} x {} + 5 x {} x {} + 66 x {}) / {}", exact(terms.weight_bytes), tokens(in),
                   l.key_heads, l.key_dim, l.value_heads, l.value_dim, l.value_heads, in.layout.tp),
       a.projections.value(), "B",
       fmt::format("in chunks of C = 64 tokens: what its projection, its convolution and its norms give, "
                   "and the rule{}",
                   while_recomputed)});
}

/// What the experts keep of their rows, of latent ones, and of the router.
void add_experts(Section& out, const StepInputs& in, const MemoryTerms& terms, const ActivationTerms& a,
                 const KeptTensors& kept) {
  const TransformerConfig& m = in.model;
  const Experts& e = m.experts;
  if (!(a.experts > Volume{})) return;
  const bool latent = e.latent > 0;
  std::string formula = fmt::format("w T' K expert TP load ({}{} fe / expert TP)",
                                    !kept.expert_rows ? ""
                                    : latent          ? "l + "
                                                      : "h + ",
                                    kept.experts);
  std::string numbers = fmt::format("{} x {} x {} x {} x {} x ({}{} x {} / {})", exact(terms.weight_bytes), rows(in),
                                    e.top_k, in.layout.expert_tp(), exact(expert_load(in.options, in.layout)),
                                    kept.expert_rows ? fmt::format("{} + ", m.expert_row()) : "", kept.experts, e.ffn,
                                    in.layout.expert_tp());
  if (latent) {
    formula += " + w T' l";
    numbers += fmt::format(" + {} x {} x {}", exact(terms.weight_bytes), rows(in), e.latent);
  }
  std::string source = kept.expert_rows
                           ? "rows that came to the experts of the busiest rank, what the activation function reads "
                             "and writes, probabilities of the router"
                           : "of the rows of the busiest rank what the activation function reads and writes, "
                             "probabilities of the router";
  if (e.clamp && kept.experts > 3) source += "; what the activation function reads as it is before its clamp, too";
  if (latent) source += ", latent rows that are brought up again";
  out.terms.push_back({"experts", formula + " + 8 T' E", numbers + fmt::format(" + 8 x {} x {}", rows(in), e.count),
                       a.experts.value(), "B", std::move(source)});
}

/// What the MLP or the experts of a layer keep.
void add_feed_forward(Section& out, const StepInputs& in, const MemoryTerms& terms, LayerShape shape) {
  const TransformerConfig& m = in.model;
  const std::string w = exact(terms.weight_bytes);
  const int tp = in.layout.tp;
  const bool experts = shape.has_experts();
  const ActivationTerms& a = terms.layer[shape];
  const KeptTensors kept = kept_tensors(in, shape);
  const KeptTerms add(out);
  if (experts)
    add("shared experts", fmt::format("{} w T fs / TP", kept.mlp),
        fmt::format("{} x {} x {} x {} / {}", kept.mlp, w, tokens(in), m.experts.shared_ffn, tp), a.mlp,
        "what the activation function reads and writes");
  if (experts)
    add_experts(out, in, terms, a, kept);
  else
    add("MLP", fmt::format("{} w T f / TP", kept.mlp),
        fmt::format("{} x {} x {} x {} / {}", kept.mlp, w, tokens(in), m.ffn, tp), a.mlp,
        "what the activation function reads and writes");
}

/// A layer of another shape than the one that is taken apart.
void add_other_shape(Section& out, const StepInputs& in, const MemoryTerms& terms, LayerShape shape, LayerShape shown) {
  const ActivationTerms& a = terms.layer[shape];
  const std::string name = std::string("of ") + layer_text(shape);
  if (shape == mlp_layer) {
    out.terms.push_back({name, {}, {}, a.total().value(), "B", "the same with its MLP in the place of the experts"});
    return;
  }
  if (shape.is_linear() && !shown.is_linear() && a.input == Volume{}) add_linear_attention(out, in, terms, a, "");
  if (!shape.has_mixer()) add_feed_forward(out, in, terms, shape);
  std::string parts;
  for (const Volume part : {a.norms, a.projections, a.mlp, a.experts, a.core, a.input})
    if (part > Volume{}) parts += (parts.empty() ? "" : " + ") + format_bytes(part);
  if (a.cast > Volume{}) parts += " - " + format_bytes(a.cast);
  out.terms.push_back({name, "sum of its parts", parts, a.total().value(), "B", ""});
}

/// What w, T and T' stand for.
Paragraph symbols_of_layer(const StepInputs& in, const MemoryTerms& terms) {
  return {fmt::format("w = {} bytes per element ({}); T = b s{} = {} tokens; T' = {}{}", exact(terms.weight_bytes),
                      in.options.precision, in.layout.cp > 1 ? " / CP" : "", exact(terms.tokens), exact(terms.rows),
                      in.layout.sequence_parallel ? ", T/TP with sequence parallelism" : ""),
          Paragraph::Tone::plain};
}

void add_norms(const KeptTerms& add, const StepInputs& in, const MemoryTerms& terms, LayerShape shape) {
  const TransformerConfig& m = in.model;
  const std::string w = exact(terms.weight_bytes);
  const int norms = m.parallel_mlp.norms, tensors = kept_tensors(in, shape).norms, branches = shape.branches();
  const bool dropout = m.dropout > 0;
  std::string of_norms = branches == 1 ? "input and output of its norm"
                         : norms == 0  ? "input and output of both norms"
                         : norms == 1  ? "input and output of the one norm"
                                       : "the one input of both norms, and their outputs";
  if (terms.parameters.frozen) of_norms = "inputs of the norms, and of adapters what they read";
  if (tensors < all_tensors(in, shape).norms) of_norms += ", but for what is computed once more";
  if (dropout) of_norms += branches == 1 ? ", a dropout mask" : ", two dropout masks";
  add("norms and residuals",
      dropout ? fmt::format("T' h ({} w + {})", tensors, branches) : fmt::format("T' h {} w", tensors),
      fmt::format("{} x {} x ({} x {}{})", rows(in), m.hidden, tensors, w,
                  dropout ? fmt::format(" + {}", branches) : ""),
      terms.layer[shape].norms, of_norms);
}

/// Query, key and value of attention that has one for each head or group, and what its core gives.
void add_projections(const KeptTerms& add, const StepInputs& in, const MemoryTerms& terms, LayerShape shape) {
  const TransformerConfig& m = in.model;
  const KeptTensors kept = kept_tensors(in, shape);
  const int tp = in.layout.tp,
            gates = !m.attention_gate ? 0
                    : kept.query      ? 2
                                      : 1,
            of_heads = (kept.query ? 2 : 1) + gates, of_keys = (kept.key ? 1 : 0) + (kept.value ? 1 : 0);
  std::string what = kept.query ? "query, " : "";
  if (kept.key) what += "key, ";
  if (kept.value) what += "value, ";
  what += what.empty() ? "the core's output" : "and the core's output";
  if (gates > 0) what += gates == 2 ? "; the gate, and what it leaves" : "; what the gate leaves";
  add("projections", fmt::format("w T ({}a + {}{}) d / TP", of_heads, of_keys, m.kv_heads < tp ? " TP" : "k"),
      fmt::format("{} x {} x ({} x {} + {} x {}) x {} / {}", exact(terms.weight_bytes), tokens(in), of_heads, m.heads,
                  of_keys, std::max(m.kv_heads, tp), m.head_dim, tp),
      terms.layer[shape].projections, what);
}

void add_attention(Section& out, const StepInputs& in, const MemoryTerms& terms, LayerShape shape) {
  if (shape.is_linear()) {
    if (terms.layer[shape].projections > Volume{}) add_linear_attention(out, in, terms, terms.layer[shape], "");
  } else if (shape.attends() && in.model.latent.kv_rank > 0) {
    add_latent_activations(out, in, terms, shape, tokens(in), rows(in));
  } else if (shape.attends()) {
    add_projections(KeptTerms(out), in, terms, shape);
  }
}

void add_kept_core(const KeptTerms& add, const StepInputs& in, const MemoryTerms& terms, Volume core) {
  const int tp = in.layout.tp, sequence = in.batch.sequence;
  const bool dropout = in.model.dropout > 0;
  const std::string w = exact(terms.weight_bytes);
  if (in.options.attention == Attention::flash)
    add("attention core", in.layout.cp > 1 ? "4 b a s / (TP CP)" : "4 b a s / TP",
        fmt::format("4 x {} x {} x {} / {}{}", in.batch.micro_batch, in.model.heads, sequence, tp, over_cp(in)), core,
        "flash attention keeps one fp32 number per row");
  else
    add("attention core", dropout ? "b a s^2 (2 w + 1) / TP" : "b a s^2 w / TP",
        fmt::format("{} x {} x {} x {} x {} / {}", in.batch.micro_batch, in.model.heads, sequence, sequence,
                    dropout ? fmt::format("(2 x {} + 1)", w) : w, tp),
        core, dropout ? "probabilities, mask and what dropout gives" : "probabilities");
}

void add_kept_adapters(const KeptTerms& add, const StepInputs& in, const MemoryTerms& terms, LayerShape shape) {
  const std::string w = exact(terms.weight_bytes);
  const Volume adapters = terms.layer[shape].adapters;
  const LowRankAdapters& lora = in.options.lora;
  if (!shape.has_experts() && in.model.latent.kv_rank == 0)
    add("adapters", "w T r for each",
        fmt::format("{} x {} x {} x {}", w, tokens(in), lora.rank, lora.targets(in.model).size()), adapters,
        "what their first matrices give");
  else
    add("adapters", "w r rows of each",
        fmt::format("{} x {} x {}", w, lora.rank, exact(adapters.value() / (terms.weight_bytes * lora.rank))), adapters,
        "what their first matrices give, of the rows that pass each: T, T', those that came to experts");
}

/// By what inputs are smaller that products alone need.
void add_cast(const KeptTerms& add, const StepInputs& in, const MemoryTerms& terms, LayerShape shape) {
  const KeptTensors kept = kept_tensors(in, shape);
  const std::string operand = exact(terms.operand_bytes);
  add("less, in " + in.options.precision, fmt::format("(w - i) ({})", cast_formula(in, kept, shape)),
      fmt::format("({} - {}) x {}", exact(terms.weight_bytes), operand, exact(product_inputs(in, kept, shape).total())),
      terms.layer[shape].cast,
      fmt::format("inputs that products alone need are kept as these read them, i = {} bytes an element", operand));
}

/// The sum of what stands in the section, and what is less of it.
void add_kept_sum(Section& out, const StepInputs& in, const MemoryTerms& terms, LayerShape shape) {
  const ActivationTerms& a = terms.layer[shape];
  std::string sum;
  for (const Term& term : out.terms) sum += (sum.empty() ? "" : " + ") + format_bytes(Volume(term.value));
  if (a.cast > Volume{}) {
    sum += " - " + format_bytes(a.cast);
    add_cast(KeptTerms(out), in, terms, shape);
  }
  out.terms.push_back({"activations of a layer", "sum", sum, a.total().value(), "B", korthikanti});
}

}  // namespace

Section activations_section(const StepInputs& in, const MemoryTerms& terms) {
  const std::vector<LayerShape> shapes = shapes_of_stage(terms.parameters);
  const LayerShape shape = shapes.empty() ? mlp_layer : shapes.front();
  const ActivationTerms& a = terms.layer[shape];
  Section out;
  out.title = "activations kept of one layer and micro-batch";
  out.text.push_back(symbols_of_layer(in, terms));
  const KeptTerms add(out);
  add_norms(add, in, terms, shape);
  add_attention(out, in, terms, shape);
  add_feed_forward(out, in, terms, shape);
  add_kept_core(add, in, terms, a.core);
  add_kept_adapters(add, in, terms, shape);
  add("layer input", "w T' h", fmt::format("{} x {} x {}", exact(terms.weight_bytes), rows(in), in.model.hidden),
      a.input, "full recomputation keeps nothing else");
  add_kept_sum(out, in, terms, shape);
  for (const LayerShape other : shapes)
    if (other != shape) add_other_shape(out, in, terms, other, shape);
  const auto linear = std::ranges::find_if(shapes, &LayerShape::is_linear);
  if (in.options.recompute == Recompute::full && linear != shapes.end())
    add_linear_attention(out, in, terms, terms.whole_layer[*linear], ", while a layer is recomputed");
  return out;
}

}  // namespace collcast
