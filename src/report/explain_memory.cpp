// Memory of a training rank taken apart: what one layer keeps, and each item made of that and of the parameters
// (explain_parameters.cpp).
//
// The figures are MemoryTerms, which the forecast sums; only the texts are made here.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/workload/own_schedule.hpp"
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
std::string cast_formula(const StepInputs& in, const KeptTensors& kept, bool experts) {
  const ProductInputs of = product_inputs(in, kept, experts);
  std::vector<std::string> parts;
  if (of.norms > 0) parts.push_back(kept.read_once == 1 ? "T' h" : fmt::format("{} T' h", kept.read_once));
  if (of.latent > 0) parts.push_back(in.model.latent.q_rank > 0 ? "T' (rq + rkv)" : "T rkv");
  if (of.mlp > 0) parts.push_back(experts ? "T fs / TP" : "T f / TP");
  const std::string of_row = fmt::format("{}{}{}", of.rows > 0 ? "h" : "", of.rows > 0 && of.experts > 0 ? " + " : "",
                                         of.experts > 0 ? "fe / expert TP" : "");
  if (!of_row.empty()) parts.push_back(fmt::format("T' K expert TP load ({})", of_row));
  return fmt::format("{}", fmt::join(parts, " + "));
}

/// What a layer keeps of linear attention in the place of attention.
void add_linear_attention(Section& out, const StepInputs& in, const MemoryTerms& terms) {
  const LinearAttention& l = in.model.linear;
  const bool full = in.options.recompute == Recompute::full;
  const Volume more = full ? terms.whole_linear_more.kept : terms.linear_more.kept;
  const ActivationTerms& a = terms.parameters.expert_layers > 0 ? (full ? terms.whole_expert_layer : terms.expert_layer)
                                                                : (full ? terms.whole_layer : terms.layer);
  out.terms.push_back(
      {"linear attention, more", "w T (6 ak dk + 5 av dv + (C + 2) av) / TP - projections - attention core",
       fmt::format("{} x {} x (6 x {} x {} + 5 x {} x {} + 66 x {}) / {} - {} - {}", exact(terms.weight_bytes),
                   tokens(in), l.key_heads, l.key_dim, l.value_heads, l.value_dim, l.value_heads, in.layout.tp,
                   exact(a.projections.value()), exact(a.core.value())),
       more.value(), "B",
       fmt::format("a layer with linear attention keeps so much more{}, in chunks of C = 64 tokens",
                   full ? " while it is recomputed" : "")});
}

Section activations_section(const StepInputs& in, const MemoryTerms& terms) {
  const TransformerConfig& m = in.model;
  const std::string w = exact(terms.weight_bytes);
  const int tp = in.layout.tp;
  const bool dropout = m.dropout > 0, experts = terms.parameters.expert_layers > 0;
  const ActivationTerms& a = experts ? terms.expert_layer : terms.layer;
  Section out;
  out.title = "activations kept of one layer and micro-batch";
  out.text.push_back(
      {fmt::format("w = {} bytes per element ({}); T = b s{} = {} tokens; T' = {}{}", w, in.options.precision,
                   in.layout.cp > 1 ? " / CP" : "", exact(terms.tokens), exact(terms.rows),
                   in.layout.sequence_parallel ? ", T/TP with sequence parallelism" : ""),
       Paragraph::Tone::plain});
  const auto add = [&](std::string name, std::string formula, std::string numbers, Volume value, std::string source) {
    if (value > Volume{})
      out.terms.push_back({std::move(name), std::move(formula), std::move(numbers), value.value(), "B", source});
  };
  const KeptTensors kept = kept_tensors(in, experts);
  const int norms = m.parallel_mlp.norms, tensors = kept.norms;
  std::string of_norms = norms == 0   ? "input and output of both norms"
                         : norms == 1 ? "input and output of the one norm"
                                      : "the one input of both norms, and their outputs";
  if (terms.parameters.frozen) of_norms = "inputs of the norms, and of adapters what they read";
  if (tensors < all_tensors(in, experts).norms) of_norms += ", but for what is computed once more";
  add("norms and residuals", dropout ? fmt::format("T' h ({} w + 2)", tensors) : fmt::format("T' h {} w", tensors),
      fmt::format("{} x {} x ({} x {}{})", rows(in), m.hidden, tensors, w, dropout ? " + 2" : ""), a.norms,
      of_norms + (dropout ? ", two dropout masks" : ""));
  const int widths = experts ? kept.experts : kept.mlp;
  if (m.latent.kv_rank > 0) {
    add_latent_activations(out, in, terms, experts, tokens(in), m.latent.q_rank > 0 ? rows(in) : tokens(in));
  } else {
    const int gates = !m.attention_gate ? 0
                      : kept.query      ? 2
                                        : 1,
              of_heads = (kept.query ? 2 : 1) + gates, of_keys = (kept.key ? 1 : 0) + (kept.value ? 1 : 0);
    std::string what = kept.query ? "query, " : "";
    if (kept.key) what += "key, ";
    if (kept.value) what += "value, ";
    add("projections", fmt::format("w T ({}a + {}{}) d / TP", of_heads, of_keys, m.kv_heads < tp ? " TP" : "k"),
        fmt::format("{} x {} x ({} x {} + {} x {}) x {} / {}", w, tokens(in), of_heads, m.heads, of_keys,
                    std::max(m.kv_heads, tp), m.head_dim, tp),
        a.projections,
        (what.empty() ? "the core's output" : what + "and the core's output") + (gates == 2
                                                                                     ? "; the gate, and what it leaves"
                                                                                 : gates == 1 ? "; what the gate leaves"
                                                                                              : ""));
  }
  if (experts)
    add("shared experts", fmt::format("{} w T fs / TP", kept.mlp),
        fmt::format("{} x {} x {} x {} / {}", kept.mlp, w, tokens(in), m.experts.shared_ffn, tp), a.mlp,
        "what the activation function reads and writes");
  if (experts)
    add("experts",
        fmt::format("w T' K expert TP load ({}{} fe / expert TP) + 8 T' E", kept.expert_rows ? "h + " : "", widths),
        fmt::format("{} x {} x {} x {} x {} x ({}{} x {} / {}) + 8 x {} x {}", w, rows(in), m.experts.top_k,
                    in.layout.expert_tp(), exact(expert_load(in.options, in.layout)),
                    kept.expert_rows ? fmt::format("{} + ", m.hidden) : "", widths, m.experts.ffn,
                    in.layout.expert_tp(), rows(in), m.experts.count),
        a.experts,
        kept.expert_rows ? "rows that came to the experts of the busiest rank, what the activation function reads and "
                           "writes, probabilities of the router"
                         : "of the rows of the busiest rank what the activation function reads and writes, "
                           "probabilities of the router");
  else
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
  if (!experts && m.latent.kv_rank == 0)
    add("adapters", "w T r for each",
        fmt::format("{} x {} x {} x {}", w, tokens(in), in.options.lora.rank, in.options.lora.targets(m).size()),
        a.adapters, "what their first matrices give");
  else
    add("adapters", "w r rows of each",
        fmt::format("{} x {} x {}", w, in.options.lora.rank,
                    exact(a.adapters.value() / (terms.weight_bytes * in.options.lora.rank))),
        a.adapters, "what their first matrices give, of the rows that pass each: T, T', those that came to experts");
  add("layer input", "w T' h", fmt::format("{} x {} x {}", w, rows(in), m.hidden), a.input,
      "full recomputation keeps nothing else");
  std::string sum;
  for (const Term& term : out.terms) sum += (sum.empty() ? "" : " + ") + format_bytes(Volume(term.value));
  if (a.cast > Volume{}) {
    const double operand = terms.operand_bytes;
    sum += " - " + format_bytes(a.cast);
    add("less, in " + in.options.precision, fmt::format("(w - i) ({})", cast_formula(in, kept, experts)),
        fmt::format("({} - {}) x {}", w, exact(operand), exact(product_inputs(in, kept, experts).total())), a.cast,
        fmt::format("inputs that products alone need are kept as these read them, i = {} bytes an element",
                    exact(operand)));
  }
  out.terms.push_back({"activations of a layer", "sum", sum, a.total().value(), "B", korthikanti});
  if (terms.parameters.linear_layers > 0) add_linear_attention(out, in, terms);
  if (experts && terms.parameters.layers > 0)
    out.terms.push_back({"of a layer with an MLP",
                         {},
                         {},
                         terms.layer.total().value(),
                         "B",
                         "the same with its MLP in the place of the experts"});
  return out;
}

Term in_flight_term(const StepInputs& in, const MemoryTerms& terms) {
  const int m = in.batch.passes(in.layout);
  const int pp = in.layout.pp, vpp = in.layout.vpp;
  if (in.layout.schedule == PipelineSchedule::interleaved)
    return {"chunks in flight",
            "min(2 (PP - 1 - stage) + (VPP - 1) PP + 1, m VPP)",
            fmt::format("min(2 x ({} - 1 - {}) + ({} - 1) x {} + 1, {} x {})", pp, terms.stage, vpp, pp, m, vpp),
            static_cast<double>(terms.in_flight),
            "",
            fmt::format("interleaved 1F1B: each a micro-batch in one of {} chunks of the stage", vpp)};
  if (from_both_ends(in.layout.schedule) && terms.in_flight == pp + 1)
    return {"chunks in flight",
            "PP + 1",
            fmt::format("{} + 1", pp),
            static_cast<double>(terms.in_flight),
            "",
            "DualPipe: forwards without their backward, each a micro-batch in one of 2 chunks of the stage"};
  if (goes_in_v(in.layout.schedule) && !is_own(in.layout.schedule))
    return {"chunks in flight",
            {},
            {},
            static_cast<double>(terms.in_flight),
            "",
            "forwards without their backward, each a micro-batch in one of 2 chunks of the stage, where "
            "the order of work holds most"};
  if (is_own(in.layout.schedule))
    return {
        in.layout.chunks() > 1 ? "chunks in flight" : "micro-batches in flight",
        {},
        {},
        static_cast<double>(terms.in_flight),
        "",
        fmt::format("'{}': forwards without their backward, where the order of work holds most", in.layout.own->name)};
  if (made_for_times(in.layout.schedule))
    return {"micro-batches in flight",
            {},
            {},
            static_cast<double>(terms.in_flight),
            "",
            fmt::format("forwards without their backward, where the order made for these times holds most; it may hold "
                        "{} micro-batches, or one that waits",
                        in.layout.schedule == PipelineSchedule::zb_2p ? "2 PP" : "PP")};
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

/// Of a stage with experts: its layers and what each kind of them keeps.
const char* kept_formula(const MemoryTerms& terms) {
  return terms.parameters.layers > 0 ? "expert layers x activations of one + layers with an MLP x of one"
                                     : "expert layers x activations of one";
}
/// What a layer keeps from a zero-bubble backward to its weight gradients.
std::string kept_for_weights(const MemoryTerms& terms) {
  return terms.parameters.frozen ? "(w rows (n + m + 2 r) of each adapter beside n x m)"
                                 : "(w (4 T' h + T (2a + 2k) d / TP + MLP))";
}

std::string kept_numbers(const MemoryTerms& terms) {
  std::string out =
      fmt::format("{} x {}", exact(terms.parameters.expert_layers), format_bytes(terms.expert_layer.total()));
  if (terms.parameters.layers > 0)
    out += fmt::format(" + {} x {}", exact(terms.parameters.layers), format_bytes(terms.layer.total()));
  return out;
}

/// Whether layers are left out of recomputation.
bool leaves_out(const MemoryTerms& terms) {
  return std::any_of(terms.of_chunk.begin(), terms.of_chunk.end(),
                     [](const MemoryTerms::Chunk& c) { return c.whole_layers + c.whole_expert_layers > 0; });
}

bool chunks_are_alike(const MemoryTerms& terms) {
  return !leaves_out(terms) &&
         std::all_of(terms.of_chunk.begin(), terms.of_chunk.end(), [&](const MemoryTerms::Chunk& c) {
           return c.layers == terms.of_chunk.front().layers && c.expert_layers == terms.of_chunk.front().expert_layers;
         });
}

/// Where the chunks of a stage differ in their layers: what each keeps, and keeps for its weight gradients.
std::pair<std::string, std::string> kept_by_chunk(const MemoryTerms& terms) {
  const bool experts = terms.parameters.expert_layers > 0, waits = terms.waiting > 0;
  std::string numbers;
  const auto add = [&](int count, double layers, Volume of_layer, double expert_layers, Volume of_expert_layer) {
    numbers +=
        fmt::format("{}{} x ({} x {}", numbers.empty() ? "" : " + ", count, exact(layers), format_bytes(of_layer));
    numbers += experts ? fmt::format(" + {} x {})", exact(expert_layers), format_bytes(of_expert_layer)) : ")";
  };
  for (const MemoryTerms::Chunk& c : terms.of_chunk)
    add(c.in_flight, c.layers - c.whole_layers, terms.layer.total(), c.expert_layers - c.whole_expert_layers,
        terms.expert_layer.total());
  for (const MemoryTerms::Chunk& c : terms.of_chunk)
    if (c.whole_layers + c.whole_expert_layers > 0)
      add(c.in_flight, c.whole_layers, terms.whole_layer.total(), c.whole_expert_layers,
          terms.whole_expert_layer.total());
  for (const MemoryTerms::Chunk& c : terms.of_chunk)
    if (waits) add(c.waiting, c.layers, terms.layer.weights, c.expert_layers, terms.expert_layer.weights);
  const char* each = experts ? "(layers with an MLP x of one + expert layers x of one)" : "(its layers x of one)";
  std::string formula = fmt::format("chunk by chunk in flight x {} of activations", each);
  if (leaves_out(terms)) formula += ", of layers with recomputation and then of those without";
  if (waits) formula += fmt::format(" + waiting x {} of what is kept for weight gradients", each);
  return {formula, numbers};
}

/// Of layers with linear attention what they keep besides, or less.
void add_linear_activations(const MemoryTerms& terms, std::string& formula, std::string& numbers) {
  const Volume more = terms.linear_activations();
  if (more == Volume{}) return;
  const bool less = more < Volume{};
  formula += less ? " - what layers with linear attention keep less" : " + what layers with linear attention keep more";
  numbers += fmt::format(" {} {}", less ? "-" : "+", format_bytes(less ? Volume{} - more : more));
}

/// With chunks: what comes besides is of those at an end of the model.
Term chunk_activations_term(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  const int chunks = in.layout.chunks();
  const std::string layers = stage_layers_text(in, terms.parameters.layers);
  std::string formula = "in flight x layers of a chunk x activations of a layer";
  std::string numbers =
      fmt::format("{} x {} / {} x {}", terms.in_flight, layers, chunks, format_bytes(terms.layer.total()));
  if (terms.parameters.expert_layers > 0) {
    formula = fmt::format("in flight / {} x ({})", goes_in_v(in.layout.schedule) ? "2" : "VPP", kept_formula(terms));
    numbers = fmt::format("{} / {} x ({})", terms.in_flight, chunks, kept_numbers(terms));
  }
  if (!chunks_are_alike(terms)) {
    std::tie(formula, numbers) = kept_by_chunk(terms);
  } else if (terms.waiting > 0 && terms.parameters.expert_layers > 0) {
    formula += fmt::format(" + waiting / {} x what the layers keep for weight gradients",
                           goes_in_v(in.layout.schedule) ? "2" : "VPP");
    numbers += fmt::format(" + {} / {} x ({} x {} + {} x {})", terms.waiting, chunks,
                           exact(terms.parameters.expert_layers), format_bytes(terms.expert_layer.weights),
                           exact(terms.parameters.layers), format_bytes(terms.layer.weights));
  } else if (terms.waiting > 0) {
    formula += " + waiting x layers of a chunk x kept for weight gradients " + kept_for_weights(terms);
    numbers += fmt::format(" + {} x {} / {} x {}", terms.waiting, layers, chunks, format_bytes(terms.layer.weights));
  }
  const auto add = [&](int count, const char* name, Volume value) {
    if (count <= 0 || !(value > Volume{})) return;
    formula += fmt::format(" + {}", name);
    numbers += fmt::format(" + {} x {}", count, format_bytes(value));
  };
  add(terms.first_in_flight, "first chunk in flight x dropout mask of the embedding (T' h)", terms.embedding_mask);
  add(terms.last_in_flight,
      terms.parameters.frozen ? "last chunk in flight x final norm (w T' h)"
                              : "last chunk in flight x final norm (2 w T' h)",
      terms.final_norm);
  add(terms.last_waiting, "last chunk waiting x head's input and the logits' gradient (w (T' h + T V / TP))",
      terms.head_weights);
  add(terms.last_in_flight - 1, "(last chunk in flight - 1) x the loss's probabilities (4 T V / TP)",
      terms.probabilities);
  add_linear_activations(terms, formula, numbers);
  return {"activations", formula,
          numbers,       static_cast<double>(use.activations.value()),
          "B",           "kept until their backward; where the order of work holds most"};
}

Term activations_term(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  if (in.layout.schedule == PipelineSchedule::interleaved || in.layout.chunks() > 1 || leaves_out(terms))
    return chunk_activations_term(in, terms, use);
  std::string formula = "layers of the stage x activations of a layer";
  std::string numbers =
      fmt::format("{} x {}", stage_layers_text(in, terms.parameters.layers), format_bytes(terms.layer.total()));
  const bool experts = terms.parameters.expert_layers > 0;
  if (experts) {
    formula = kept_formula(terms);
    numbers = kept_numbers(terms);
  }
  const auto add = [&](const char* name, Volume value) {
    if (!(value > Volume{})) return;
    formula += fmt::format(" + {}", name);
    numbers += fmt::format(" + {}", format_bytes(value));
  };
  add("dropout mask of the embedding (T' h)", terms.embedding_mask);
  add(terms.parameters.frozen ? "final norm (w T' h)" : "final norm (2 w T' h)", terms.final_norm);
  if (terms.on_host() > Volume{}) {
    formula += " - what the host has of a micro-batch";
    numbers += fmt::format(" - {}", format_bytes(terms.on_host() / terms.in_flight));
  }
  formula = fmt::format("in flight x ({})", formula);
  numbers = fmt::format("{} x ({})", terms.in_flight, numbers);
  if (terms.waiting > 0 && experts) {
    formula += " + waiting x what the layers keep for weight gradients";
    numbers += fmt::format(" + {} x ({} x {} + {} x {})", terms.waiting, exact(terms.parameters.expert_layers),
                           format_bytes(terms.expert_layer.weights), exact(terms.parameters.layers),
                           format_bytes(terms.layer.weights));
  } else if (terms.waiting > 0) {
    formula += " + waiting x layers of the stage x kept for weight gradients " + kept_for_weights(terms);
    numbers += fmt::format(" + {} x {} x {}", terms.waiting, stage_layers_text(in, terms.parameters.layers),
                           format_bytes(terms.layer.weights));
  }
  if (terms.waiting > 0 && terms.head_weights > Volume{}) {
    formula += " + waiting x head's input and the logits' gradient (w (T' h + T V / TP))";
    numbers += fmt::format(" + {} x {}", terms.waiting, format_bytes(terms.head_weights));
  }
  if (terms.in_flight > 1 && terms.probabilities > Volume{}) {
    formula += " + (in flight - 1) x the loss's probabilities (4 T V / TP)";
    numbers += fmt::format(" + ({} - 1) x {}", terms.in_flight, format_bytes(terms.probabilities));
  }
  add_linear_activations(terms, formula, numbers);
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
  if (use.moment == MemoryMoment::optimizer) {
    add("16-bit gradients as fp32 (4 bytes of the rank's part)", terms.buffers_of_optimizer());
  } else {
    if (use.moment == MemoryMoment::backward && terms.brought_back() > terms.loss()) {
      const bool core = in.options.recompute_modules == TrainingOptions().recompute_modules;
      add(in.options.cpu_offloading_num_layers > 0 ? "activations of the layer that comes back from the host"
          : in.options.recompute == Recompute::full && terms.ends_backward
              ? "activations of the layer that is recomputed, without the inputs that wait"
          : in.options.recompute == Recompute::full ? "all activations of the layer that is recomputed"
          : core                                    ? "attention core of the layer that is recomputed"
                                                    : "what comes back of the layer that is recomputed",
          terms.brought_back());
    } else if (terms.loss() > Volume{}) {
      add("logits (w T V / TP)", terms.logits);
      add("the loss's probabilities (4 T V / TP)", terms.probabilities);
      add("the logits less their largest, in fp32 (4 T V / TP)", terms.shifted);
    }
    const char* all = terms.apart > 0 && terms.expert_shares == 1 ? "all weights but experts" : "all weights";
    add(in.options.reshard_after_forward ? "weights of the units that are gathered" : all, terms.gathered);
    add("the largest matrix in 4 bit, brought back", terms.dequantised);
    if (use.moment == MemoryMoment::backward || terms.sums_whole)
      add("gradients that are not split yet", terms.unreduced);
  }
  out.terms.push_back(
      {"buffers", formula, numbers, static_cast<double>(use.buffers.value()), "B",
       formula.empty() ? "nothing is recomputed, and no logits on this stage" : "once, not per micro-batch"});
}

/// What delaying and compressing gradients takes.
void add_gradient_copies(Section& out, const MemoryTerms& terms, const MemoryUse& use) {
  std::string formula, numbers;
  const auto add = [&](const char* name, Volume value) {
    if (!(value > Volume{})) return;
    formula += (formula.empty() ? "" : " + ") + std::string(name);
    numbers += (numbers.empty() ? "" : " + ") + format_bytes(value);
  };
  add("gradients of the step before", terms.stale);
  add("error feedback", terms.error_feedback);
  add("P and Q of low rank", terms.low_rank);
  if (!formula.empty())
    out.terms.push_back({"gradient copies", formula, numbers, static_cast<double>(use.gradient_copies.value()), "B",
                         "whole on each rank, beside the gradients that are summed up"});
}

/// Bytes of each parameter, and of how many ranks this one has a part.
Term state_term(const char* name, double bytes, const MemoryTerms& terms, int shares, int from, const ParallelLayout& l,
                Bytes value, std::string source) {
  const bool trained = from < 3 && terms.parameters.frozen;
  const double of = trained ? terms.parameters.trained() : terms.parameters.total();
  const double apart = trained ? terms.trained_apart : terms.apart;
  const std::string count = exact(of);
  if (apart > 0 && terms.zero >= from && shares * terms.expert_shares > 1)
    return {name,
            trained ? "bytes each x (adapters but experts' / shards + experts' / their replicas)"
                    : "bytes each x (parameters but experts / shards + experts / their replicas)",
            fmt::format("{} x ({} / {} + {} / {})", exact(bytes), exact(of - apart), shares, exact(apart),
                        terms.expert_shares),
            static_cast<double>(value.value()),
            "B",
            std::move(source)};
  const std::string over =
      shares > 1 ? fmt::format(" / {}", l.shard_copies() > 1 || l.cp * l.twins() > 1 ? "shards" : "DP") : std::string();
  return {name,
          (trained ? "bytes each x adapters of the rank" : "bytes each x parameters of the rank") + over,
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

/// Of what is there beside the step's own items.
void add_runtime_terms(Section& out, const StepInputs& in, const MemoryUse& use, int gpus_per_node) {
  const auto value = [](Bytes bytes) { return static_cast<double>(bytes.value()); };
  const bool copies = use.gradient_copies > Bytes(0);
  out.terms.push_back(
      {"allocated",
       fmt::format("parameters + gradients + optimizer + activations + buffers{}", copies ? " + gradient copies" : ""),
       fmt::format("{} + {} + {} + {} + {}{}", format_bytes(volume(use.parameters)),
                   format_bytes(volume(use.gradients)), format_bytes(volume(use.optimizer)),
                   format_bytes(volume(use.activations)), format_bytes(volume(use.buffers)),
                   copies ? " + " + format_bytes(volume(use.gradient_copies)) : std::string()),
       value(use.allocated()), "B", "tensors of the step"});
  out.terms.push_back({"fragments", "allocated / allocated of reserved - allocated",
                       fmt::format("{0} / {1} - {0}", format_bytes(volume(use.allocated())), allocated_of_reserved),
                       value(use.fragments), "B", "SimuMax's share of what the allocator reserves"});
  out.terms.push_back(nccl_term(in.layout, use, gpus_per_node));
  out.terms.push_back(context_term(use));
}

Section items_section(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use, int gpus_per_node) {
  Section out;
  out.title = fmt::format("memory of the fullest rank (stage {}), {}", terms.stage, moment_text(use.moment));
  Table moments{"allocated at each moment", {{"moment", "", Align::left}, {"size", "", Align::right}}, {}};
  for (const MemoryMoment moment : memory_moments)
    moments.rows.push_back(
        {std::string(moment_text(moment)), format_bytes(volume(use.by_moment[static_cast<std::size_t>(moment)]))});
  out.tables.push_back(std::move(moments));
  if (terms.base_bytes < terms.weight_bytes)
    out.terms.push_back(
        {"parameters", "4.127 bits each x matrices of layers + bytes each x the rest",
         fmt::format("{} x {} + {} x {}", exact(terms.base_bytes), exact(terms.parameters.base_matrices()),
                     exact(terms.weight_bytes), exact(terms.parameters.total() - terms.parameters.base_matrices())),
         static_cast<double>(use.parameters.value()), "B",
         "NF4 with double quantisation (Dettmers et al. 2023); embedding, head, norms and adapters in 16 "
         "bit"});
  else
    out.terms.push_back(state_term("parameters", terms.weight_bytes, terms, terms.weight_shares, 3, in.layout,
                                   use.parameters,
                                   fmt::format("weights in {}", terms.weight_bytes < 4 ? "16 bit" : "fp32")));
  out.terms.push_back(state_term("gradients", terms.gradient_bytes, terms, terms.gradient_shares, 2, in.layout,
                                 use.gradients, "as kept for the reduction: training.gradient_bytes"));
  if (terms.optimizer_bytes > 0)
    out.terms.push_back(state_term("optimizer", terms.optimizer_bytes, terms, terms.optimizer_shares, 1, in.layout,
                                   use.optimizer, optimizer_source(in, terms)));
  else
    out.terms.push_back({"optimizer", {}, {}, 0, "B", "training.optimizer is false"});
  if (use.moment == MemoryMoment::optimizer) {
    out.terms.push_back({"activations", {}, {}, 0, "B", "none are kept at the optimizer's step"});
  } else {
    out.terms.push_back(in_flight_term(in, terms));
    out.terms.push_back(activations_term(in, terms, use));
    if (use.on_host > Bytes(0))
      out.terms.push_back({"activations on the host",
                           fmt::format("in flight x what the first {} layers keep (cpu_offloading_num_layers)",
                                       in.options.cpu_offloading_num_layers),
                           fmt::format("{} x {}", terms.in_flight, format_bytes(terms.on_host() / terms.in_flight)),
                           static_cast<double>(use.on_host.value()), "B", "no part of what the GPU holds"});
  }
  add_buffers(out, in, terms, use);
  add_gradient_copies(out, terms, use);
  add_runtime_terms(out, in, use, gpus_per_node);
  out.terms.push_back(peak_term(use));
  return out;
}

}  // namespace

Term nccl_term(const ParallelLayout& layout, const MemoryUse& use, int gpus_per_node) {
  const Communicators of = communicators(layout, gpus_per_node);
  return {"NCCL's buffers",
          "bytes of a connection x (communicators within a node x their connections + those across nodes x theirs)",
          fmt::format("{} x ({} x {} + {} x {})", format_bytes(Volume(connection_bytes)), of.within, connections_within,
                      of.across, connections_across),
          static_cast<double>(use.nccl.value()),
          "B",
          "NCCL's DEFAULT_*_BUFFSIZE; channels of eight GPUs behind NVSwitch"};
}

Term context_term(const MemoryUse& use) {
  return {"CUDA context",
          {},
          {},
          static_cast<double>(use.context.value()),
          "B",
          "PyTorch on an A100, as BigScience measured it"};
}

Term peak_term(const MemoryUse& use) {
  return {"peak",
          "allocated + fragments + NCCL's buffers + CUDA context",
          fmt::format("{} + {} + {} + {}", format_bytes(volume(use.allocated())), format_bytes(volume(use.fragments)),
                      format_bytes(volume(use.nccl)), format_bytes(volume(use.context))),
          static_cast<double>(use.peak().value()),
          "B",
          fmt::format("of {} that CUDA has to give", size_text(use.capacity))};
}

std::vector<Section> memory_sections(const StepInputs& in, const StepResult& result, int gpus_per_node) {
  const MemoryUse& use = result.memory;
  const MemoryTerms terms = memory_terms(in, use.stage, result.made);
  return {parameters_section(in, terms.parameters, terms.stage), activations_section(in, terms),
          items_section(in, terms, use, gpus_per_node)};
}

}  // namespace collcast
