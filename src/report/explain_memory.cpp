// Memory taken apart: the parameters of the fullest rank, what one layer keeps, and each item made of them.
//
// The figures are MemoryTerms, which the forecast sums; only the texts are made here.
#include <fmt/format.h>

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

void add_layer_parameters(Section& out, const StepInputs& in, const LayerParameters& p) {
  const TransformerConfig& m = in.model;
  const int tp = in.layout.tp;
  const char* shared = "1/TP of each matrix";
  out.terms.push_back({"attention of a layer", "h d (2a + 2k) / TP",
                       fmt::format("{} x {} x (2 x {} + 2 x {}) / {}", m.hidden, m.head_dim, m.heads, m.kv_heads, tp),
                       p.attention, "", fmt::format("query, key, value and output matrices; {}", shared)});
  const int matrices = m.gated_mlp ? 3 : 2;
  out.terms.push_back({"MLP of a layer", fmt::format("{} h f / TP", matrices),
                       fmt::format("{} x {} x {} / {}", matrices, m.hidden, m.ffn, tp), p.mlp, "",
                       fmt::format("{}; {}", m.gated_mlp ? "up, gate and down" : "up and down", shared)});
  out.terms.push_back({"norms of a layer", m.biases ? "4 h" : "2 h", fmt::format("{} x {}", m.biases ? 4 : 2, m.hidden),
                       p.norms, "", "whole on every TP rank"});
  if (!m.biases) return;
  out.terms.push_back(
      {"biases of a layer", m.gated_mlp ? "((a + 2k) d + 2 f) / TP + 2 h" : "((a + 2k) d + f) / TP + 2 h",
       fmt::format("(({} + 2 x {}) x {} + {}{}) / {} + 2 x {}", m.heads, m.kv_heads, m.head_dim,
                   m.gated_mlp ? "2 x " : "", m.ffn, tp, m.hidden),
       p.sharded_biases + p.replicated_biases, "", "those of the output and down matrices are whole on every TP rank"});
}

/// How many layers a stage has: "80 / 8", or their number where stages are uneven.
std::string stage_layers_text(const StepInputs& in, double layers) {
  if (in.model.layers % in.layout.pp != 0) return fmt::format("{}", layers);
  return fmt::format("{} / {}", in.model.layers, in.layout.pp);
}

Section parameters_section(const StepInputs& in, const MemoryTerms& terms) {
  const ParameterTerms& p = terms.parameters;
  const TransformerConfig& m = in.model;
  Section out;
  out.title = fmt::format("parameters of the fullest rank (stage {})", terms.stage);
  add_layer_parameters(out, in, p.layer);
  std::string formula = in.model.layers % in.layout.pp == 0 ? "layers / PP x layer" : "layers of the stage x layer";
  std::string numbers = fmt::format("{} x ({} + {} + {}{})", stage_layers_text(in, p.layers), exact(p.layer.attention),
                                    exact(p.layer.mlp), exact(p.layer.norms),
                                    m.biases ? " + " + exact(p.layer.sharded_biases + p.layer.replicated_biases) : "");
  const auto add = [&](const char* name, const char* its_formula, std::string its_numbers, double value,
                       const char* source) {
    if (!(value > 0)) return;
    out.terms.push_back({name, its_formula, std::move(its_numbers), value, "", source});
    formula += fmt::format(" + {}", name);
    numbers += fmt::format(" + {}", exact(value));
  };
  const std::string vocabulary = fmt::format("ceil({} / {}) x {}", m.vocab, in.layout.tp, m.hidden);
  add("embedding", "ceil(V / TP) h", vocabulary, p.embedding, "first stage; rows padded to a multiple of TP");
  add("positions", "positions h", fmt::format("{} x {}", m.learned_positions, m.hidden), p.positions, "first stage");
  add("output matrix", "ceil(V / TP) h", vocabulary, p.output,
      m.tied_embeddings ? "last stage; a copy of the tied embedding" : "last stage");
  add("final norm", m.biases ? "2 h" : "h", fmt::format("{} x {}", m.biases ? 2 : 1, m.hidden), p.final_norm,
      "last stage");
  out.terms.push_back({"parameters of the rank", formula, numbers, p.total(), "", "all that the rank holds"});
  return out;
}

Section activations_section(const StepInputs& in, const MemoryTerms& terms) {
  const TransformerConfig& m = in.model;
  const std::string w = exact(terms.weight_bytes);
  const int tp = in.layout.tp;
  const bool dropout = m.dropout > 0;
  const ActivationTerms& a = terms.layer;
  Section out;
  out.title = "activations kept of one layer and micro-batch";
  out.text.push_back(
      {fmt::format("w = {} bytes per element ({}); T = b s{} = {} tokens; T' = {}{}", w, in.options.precision,
                   in.layout.cp > 1 ? " / CP" : "", exact(terms.tokens), exact(terms.rows),
                   in.layout.sequence_parallel ? ", T/TP with sequence parallelism" : ""),
       Paragraph::Tone::plain});
  const auto add = [&](const char* name, std::string formula, std::string numbers, Volume value, const char* source) {
    if (value > Volume{})
      out.terms.push_back({name, std::move(formula), std::move(numbers), value.value(), "B", source});
  };
  add("norms and residuals", dropout ? "T' h (4 w + 2)" : "T' h 4 w",
      fmt::format("{} x {} x (4 x {}{})", rows(in), m.hidden, w, dropout ? " + 2" : ""), a.norms,
      dropout ? "input and output of both norms, two dropout masks" : "input and output of both norms");
  add("projections", "w T (2a + 2k) d / TP",
      fmt::format("{} x {} x (2 x {} + 2 x {}) x {} / {}", w, tokens(in), m.heads, m.kv_heads, m.head_dim, tp),
      a.projections, "query, key, value, and the core's output");
  const int widths = m.gated_mlp ? 3 : 2;
  add("MLP", fmt::format("{} w T f / TP", widths),
      fmt::format("{} x {} x {} x {} / {}", widths, w, tokens(in), m.ffn, tp), a.mlp,
      "what the activation function reads and writes");
  if (in.options.attention == Attention::flash)
    add("attention core", in.layout.cp > 1 ? "4 b a s / (TP CP)" : "4 b a s / TP",
        fmt::format("4 x {} x {} x {} / {}{}", in.batch.micro_batch, m.heads, in.batch.sequence, tp, over_cp(in)),
        a.core, "flash attention keeps one fp32 number per row");
  else
    add("attention core", dropout ? "b a s^2 (2 w + 1) / TP" : "b a s^2 w / TP",
        fmt::format("{} x {} x {} x {} x {} / {}", in.batch.micro_batch, m.heads, in.batch.sequence, in.batch.sequence,
                    dropout ? fmt::format("(2 x {} + 1)", w) : w, tp),
        a.core, dropout ? "probabilities, mask and what dropout gives" : "probabilities");
  add("layer input", "w T' h", fmt::format("{} x {} x {}", w, rows(in), m.hidden), a.input,
      "full recomputation keeps nothing else");
  std::string sum;
  for (const Term& term : out.terms) sum += (sum.empty() ? "" : " + ") + format_bytes(Volume(term.value));
  out.terms.push_back({"activations of a layer", "sum", sum, a.total().value(), "B", korthikanti});
  return out;
}

Term in_flight_term(const StepInputs& in, const MemoryTerms& terms) {
  const int m = in.batch.micro_batches(in.layout);
  const int pp = in.layout.pp, vpp = in.layout.vpp;
  if (in.layout.schedule == PipelineSchedule::interleaved)
    return {"chunks in flight",
            "min(2 (PP - 1 - stage) + (VPP - 1) PP + 1, m VPP)",
            fmt::format("min(2 x ({} - 1 - {}) + ({} - 1) x {} + 1, {} x {})", pp, terms.stage, vpp, pp, m, vpp),
            static_cast<double>(terms.in_flight),
            "",
            fmt::format("interleaved 1F1B: each a micro-batch in one of {} chunks of the stage", vpp)};
  if (splits_backward(in.layout.schedule))
    return {"micro-batches in flight",
            {},
            {},
            static_cast<double>(terms.in_flight),
            "",
            "zero bubble: forwards without their backward, where the order of work holds most"};
  const bool gpipe = in.layout.schedule == PipelineSchedule::gpipe;
  return {"micro-batches in flight",
          gpipe ? "m" : "min(m, PP - stage)",
          gpipe ? fmt::format("{}", m) : fmt::format("min({}, {} - {})", m, in.layout.pp, terms.stage),
          static_cast<double>(terms.in_flight),
          "",
          gpipe ? "GPipe keeps all" : "1F1B"};
}

/// Interleaved: what comes besides is of the chunks at an end of the model.
Term chunk_activations_term(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  std::string formula = "in flight x layers of a chunk x activations of a layer";
  std::string numbers = fmt::format("{} x {} / {} / {} x {}", terms.in_flight, in.model.layers, in.layout.pp,
                                    in.layout.vpp, format_bytes(terms.layer.total()));
  const auto add = [&](int count, const char* name, Volume value) {
    if (count <= 0 || !(value > Volume{})) return;
    formula += fmt::format(" + {}", name);
    numbers += fmt::format(" + {} x {}", count, format_bytes(value));
  };
  add(terms.first_in_flight, "first chunk in flight x dropout mask of the embedding (T' h)", terms.embedding_mask);
  add(terms.last_in_flight, "last chunk in flight x final norm (2 w T' h)", terms.final_norm);
  add(terms.last_in_flight - 1, "(last chunk in flight - 1) x the loss's probabilities (4 T V / TP)",
      terms.probabilities);
  return {"activations", formula,
          numbers,       static_cast<double>(use.activations.value()),
          "B",           "kept until their backward; where the order of work holds most"};
}

Term activations_term(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  if (in.layout.schedule == PipelineSchedule::interleaved) return chunk_activations_term(in, terms, use);
  std::string formula = "layers of the stage x activations of a layer";
  std::string numbers =
      fmt::format("{} x {}", stage_layers_text(in, terms.parameters.layers), format_bytes(terms.layer.total()));
  const auto add = [&](const char* name, Volume value) {
    if (!(value > Volume{})) return;
    formula += fmt::format(" + {}", name);
    numbers += fmt::format(" + {}", format_bytes(value));
  };
  add("dropout mask of the embedding (T' h)", terms.embedding_mask);
  add("final norm (2 w T' h)", terms.final_norm);
  formula = fmt::format("in flight x ({})", formula);
  numbers = fmt::format("{} x ({})", terms.in_flight, numbers);
  if (terms.waiting > 0) {
    formula += " + waiting x layers of the stage x kept for weight gradients (w (4 T' h + T (2a + 2k) d / TP + MLP))";
    numbers += fmt::format(" + {} x {} / {} x {}", terms.waiting, in.model.layers, in.layout.pp,
                           format_bytes(terms.layer.weights));
  }
  if (terms.in_flight > 1 && terms.probabilities > Volume{}) {
    formula += " + (in flight - 1) x the loss's probabilities (4 T V / TP)";
    numbers += fmt::format(" + ({} - 1) x {}", terms.in_flight, format_bytes(terms.probabilities));
  }
  return {
      "activations", formula, numbers, static_cast<double>(use.activations.value()), "B", "kept until their backward"};
}

void add_buffers(Section& out, const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  std::string formula, numbers;
  const auto add = [&](const char* name, Volume value) {
    if (!(value > Volume{})) return;
    formula += (formula.empty() ? "" : " + ") + std::string(name);
    numbers += (numbers.empty() ? "" : " + ") + format_bytes(value);
  };
  add(in.options.recompute == Recompute::full ? "all activations of the layer that is recomputed"
                                              : "attention core of the layer that is recomputed",
      terms.recomputed);
  add("logits (w T V / TP)", terms.logits);
  add("the loss's probabilities (4 T V / TP)", terms.probabilities);
  add(in.options.reshard_after_forward ? "weights of the units that are gathered" : "all weights", terms.gathered);
  add("gradients that are not split yet", terms.unreduced);
  out.terms.push_back(
      {"buffers", formula, numbers, static_cast<double>(use.buffers.value()), "B",
       formula.empty() ? "nothing is recomputed, and no logits on this stage" : "once, not per micro-batch"});
}

/// Bytes of each parameter, and of how many ranks this one has a part.
Term state_term(const char* name, double bytes, const std::string& count, int shares, const ParallelLayout& l,
                Bytes value, std::string source) {
  const std::string over =
      shares > 1 ? fmt::format(" / {}", l.shard_copies() > 1 || l.cp > 1 ? "shards" : "DP") : std::string();
  return {name,
          "bytes each x parameters of the rank" + over,
          fmt::format("{} x {}{}", exact(bytes), count, shares > 1 ? fmt::format(" / {}", shares) : std::string()),
          static_cast<double>(value.value()),
          "B",
          std::move(source)};
}

std::string optimizer_source(const StepInputs& in, const MemoryTerms& terms) {
  std::string out = terms.weight_bytes < 4 ? "fp32 master weight and two moments, 4 bytes each"
                                           : "two moments of 4 bytes; the fp32 weights are their own master";
  return terms.optimizer_shares > 1 ? out + fmt::format("; ZeRO-{} splits them over the replicas", in.options.zero)
                                    : out;
}

Section items_section(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  const std::string count = exact(terms.parameters.total());
  const auto value = [](Bytes bytes) { return static_cast<double>(bytes.value()); };
  Section out;
  out.title = fmt::format("memory of the fullest rank (stage {})", terms.stage);
  out.terms.push_back(state_term("parameters", terms.weight_bytes, count, terms.weight_shares, in.layout,
                                 use.parameters,
                                 fmt::format("weights in {}", terms.weight_bytes < 4 ? "16 bit" : "fp32")));
  out.terms.push_back(state_term("gradients", terms.gradient_bytes, count, terms.gradient_shares, in.layout,
                                 use.gradients, "as kept for the reduction: training.gradient_bytes"));
  if (terms.optimizer_bytes > 0)
    out.terms.push_back(state_term("optimizer", terms.optimizer_bytes, count, terms.optimizer_shares, in.layout,
                                   use.optimizer, optimizer_source(in, terms)));
  else
    out.terms.push_back({"optimizer", {}, {}, 0, "B", "training.optimizer is false"});
  out.terms.push_back(in_flight_term(in, terms));
  out.terms.push_back(activations_term(in, terms, use));
  add_buffers(out, in, terms, use);
  out.terms.push_back({"peak", "parameters + gradients + optimizer + activations + buffers",
                       fmt::format("{} + {} + {} + {} + {}", format_bytes(volume(use.parameters)),
                                   format_bytes(volume(use.gradients)), format_bytes(volume(use.optimizer)),
                                   format_bytes(volume(use.activations)), format_bytes(volume(use.buffers))),
                       value(use.peak), "B",
                       fmt::format("of {} on the GPU; left out: CUDA context, communication buffers, fragmentation",
                                   size_text(use.capacity))});
  return out;
}

}  // namespace

std::vector<Section> memory_sections(const StepInputs& in, const MemoryUse& use) {
  const MemoryTerms terms = memory_terms(in, use.stage);
  return {parameters_section(in, terms), activations_section(in, terms), items_section(in, terms, use)};
}

}  // namespace collcast
