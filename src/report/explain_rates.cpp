// MFU and HFU taken apart: the model's FLOPs, what recomputation adds, and the rate that the step makes of them.
#include <fmt/format.h>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"

namespace collcast {

namespace {

std::string flops(double value) { return format_count(value) + "FLOP"; }

/// Layers that attend to keys: all, those without linear attention, or of a hybrid model its own.
const char* attending_text(const TransformerConfig& m) {
  return !m.pattern.empty() ? "La" : linear_layers(m) > 0 ? "(L - Ll)" : "L";
}

/// Of a model whose layers are all attention and an MLP.
bool has_plain_layers(const TransformerConfig& m) {
  return m.experts.count == 0 && m.latent.kv_rank == 0 && linear_layers(m) == 0 && !m.attention_gate &&
         attending_layers(m) == m.all_layers() && mlp_layers(m) == m.all_layers();
}

Term plain_linear_term(const StepInputs& in, const FlopTerms& f) {
  const TransformerConfig& m = in.model;
  const int matrices = m.gated_mlp ? 3 : 2;
  return {"linear layers",
          fmt::format("2 s L (h d (2a + 2k) + {} h f)", matrices),
          fmt::format("2 x {} x {} x ({} x {} x (2 x {} + 2 x {}) + {} x {} x {})", in.batch.sequence, m.all_layers(),
                      m.hidden, m.head_dim, m.heads, m.kv_heads, matrices, m.hidden, m.ffn),
          f.linear,
          "FLOP",
          "2 per token and parameter of a matrix; forward of one sample through the whole model"};
}

/// Of a token in the matrices of attention, in those of the MLP, and of the experts that it is sent to.
Term linear_flop_term(const StepInputs& in, const FlopTerms& f) {
  if (has_plain_layers(in.model)) return plain_linear_term(in, f);
  const TransformerConfig& m = in.model;
  const LatentAttention& a = m.latent;
  const Experts& e = m.experts;
  const int matrices = m.gated_mlp ? 3 : 2, with_experts = expert_layers(m), dense = mlp_layers(m);
  std::string formula, numbers;
  const int linear = linear_layers(m);
  if (a.kv_rank == 0) {
    const int of_heads = m.attention_gate ? 3 : 2;
    formula = fmt::format("{} h d ({}a + 2k)", attending_text(m), of_heads);
    numbers = fmt::format("{} x {} x {} x ({} x {} + 2 x {})", attending_layers(m), m.hidden, m.head_dim, of_heads,
                          m.heads, m.kv_heads);
  } else if (a.q_rank > 0) {
    formula = "L (h (rq + rkv + dr) + a (rq (dn + dr) + rkv (dn + dv) + dv h))";
    numbers = fmt::format("{} x ({} x ({} + {} + {}) + {} x ({} x ({} + {}) + {} x ({} + {}) + {} x {}))",
                          m.all_layers(), m.hidden, a.q_rank, a.kv_rank, a.rope, m.heads, a.q_rank, a.nope, a.rope,
                          a.kv_rank, a.nope, a.value, a.value, m.hidden);
  } else {
    formula = "L (h (rkv + dr) + a (h (dn + dr) + rkv (dn + dv) + dv h))";
    numbers = fmt::format("{} x ({} x ({} + {}) + {} x ({} x ({} + {}) + {} x ({} + {}) + {} x {}))", m.all_layers(),
                          m.hidden, a.kv_rank, a.rope, m.heads, m.hidden, a.nope, a.rope, a.kv_rank, a.nope, a.value,
                          a.value, m.hidden);
  }
  if (const LinearAttention& l = m.linear; linear > 0) {
    formula += fmt::format(" + Ll h (2 ak dk + 3 av dv + {}av)", l.is_ssd() ? "" : "2 ");
    numbers += fmt::format(" + {} x {} x (2 x {} x {} + 3 x {} x {} + {} x {})", linear, m.hidden, l.key_heads,
                           l.key_dim, l.value_heads, l.value_dim, l.is_ssd() ? 1 : 2, l.value_heads);
  }
  if (dense > 0) {
    formula += fmt::format(" + Ld {} h f", matrices);
    numbers += fmt::format(" + {} x {} x {} x {}", dense, matrices, m.hidden, m.ffn);
  }
  if (with_experts > 0) {
    const int routes = e.count + (e.shared_gate ? 1 : 0);
    const char* routed = e.shared_gate ? "E + 1" : "E";
    if (e.latent > 0) {
      formula += fmt::format(" + Le (h ({} + 2 l + {} fs) + {} l K fe)", routed, matrices, matrices);
      numbers += fmt::format(" + {} x ({} x ({} + 2 x {} + {} x {}) + {} x {} x {} x {})", with_experts, m.hidden,
                             routes, e.latent, matrices, e.shared_ffn, matrices, e.latent, e.top_k, e.ffn);
    } else {
      formula += fmt::format(" + Le h ({} + {} (K fe + fs))", routed, matrices);
      numbers += fmt::format(" + {} x {} x ({} + {} x ({} x {} + {}))", with_experts, m.hidden, routes, matrices,
                             e.top_k, e.ffn, e.shared_ffn);
    }
  }
  return {"linear layers",
          fmt::format("2 s ({})", formula),
          fmt::format("2 x {} x ({})", in.batch.sequence, numbers),
          f.linear,
          "FLOP",
          "2 per token and parameter of a matrix that it passes; forward of one sample through the model"};
}

/// Scores and values of the layers that attend to keys.
Term attending_core(const TransformerConfig& m, int s, const FlopTerms& f) {
  const char* whole = "scores and values, whole matrices also where attention is causal";
  if (m.latent.kv_rank > 0)
    return {"attention core",
            "2 L a s^2 (dn + dr + dv)",
            fmt::format("2 x {} x {} x {} x {} x ({} + {} + {})", m.all_layers(), m.heads, s, s, m.latent.nope,
                        m.latent.rope, m.latent.value),
            f.core,
            "FLOP",
            whole};
  return {"attention core",
          fmt::format("4 {} a s^2 d", attending_text(m)),
          fmt::format("4 x {} x {} x {} x {} x {}", attending_layers(m), m.heads, s, s, m.head_dim),
          f.core,
          "FLOP",
          whole};
}

/// And of those with linear attention.
void with_linear_core(Term& core, const TransformerConfig& m, int s) {
  const LinearAttention& l = m.linear;
  const int linear = linear_layers(m);
  core.formula = fmt::format("4 {} a s^2 d + Ll s {}", attending_text(m),
                             l.is_ssd() ? "7 av dk dv" : "(8 av dk dv + 2 taps (2 ak dk + av dv))");
  if (l.is_ssd())
    core.numbers = fmt::format("4 x {0} x {1} x {2} x {2} x {3} + {4} x {2} x 7 x {5} x {6} x {7}", attending_layers(m),
                               m.heads, s, m.head_dim, linear, l.value_heads, l.key_dim, l.value_dim);
  else
    core.numbers = fmt::format(
        "4 x {0} x {1} x {2} x {2} x {3} + {4} x {2} x (8 x {5} x {6} x {7} + 2 x {8} x (2 x {9} x {6} + {5} x {7}))",
        attending_layers(m), m.heads, s, m.head_dim, linear, l.value_heads, l.key_dim, l.value_dim, l.conv,
        l.key_heads);
  core.source = "whole matrices also where attention is causal; linear attention token by token, as Megatron-LM counts";
}

/// Of layers with a window what their queries see.
void with_windows(Term& core, const TransformerConfig& m, int s) {
  const int windowed = windowed_layers(m);
  core.formula += " (L - Lw + Lw seen / all) / L";
  core.numbers +=
      fmt::format(" x ({} - {} + {} x {} / {}) / {}", m.all_layers(), windowed, windowed,
                  format_count(causal_keys(0, s, m.window.tokens)), format_count(causal_keys(0, s)), m.all_layers());
  core.source = fmt::format(
      "whole matrices also where attention is causal; of layers with a window of {} tokens the "
      "share of a causal layer's keys that their queries see",
      m.window.tokens);
}

/// What sparse attention leaves of it.
void with_chosen_keys(Term& core, const TransformerConfig& m, int s, const FlopTerms& f) {
  core.formula += " x met / all";
  core.numbers += fmt::format(" x {} / {}", exact(causal_keys(0, s, m.sparse.top_k)), exact(causal_keys(0, s)));
  core.source = fmt::format(
      "whole matrices also where attention is causal, times the share of a causal layer's keys that queries with {} at "
      "most meet",
      m.sparse.top_k);
  if (!(f.indexer > 0)) core.source += ": all of these tokens, with nothing for the indexer to choose";
}

Term core_flop_term(const TransformerConfig& m, int s, const FlopTerms& f) {
  Term core = attending_core(m, s, f);
  if (linear_layers(m) > 0) with_linear_core(core, m, s);
  if (windowed_layers(m) > 0) with_windows(core, m, s);
  if (m.sparse.top_k > 0) with_chosen_keys(core, m, s, f);
  return core;
}

/// What the indexer of sparse attention computes.
void add_indexer_flops(Section& out, const StepInputs& in, const FlopTerms& f) {
  if (!(f.indexer > 0)) return;
  const TransformerConfig& m = in.model;
  const SparseAttention& a = m.sparse;
  const int s = in.batch.sequence;
  const std::string seen = exact(causal_keys(0, s, a.top_k)), all = exact(causal_keys(0, s));
  const std::string products =
      fmt::format("({} x {} x {} + {} x ({} + {}))", m.latent.q_rank, a.heads, a.dim, m.hidden, a.dim, a.heads);
  out.terms.push_back({"indexer", "2 L s (rq H d + h (d + H) + H d s)",
                       fmt::format("2 x {} x {} x ({} + {} x {} x {})", m.all_layers(), s, products, a.heads, a.dim, s),
                       f.indexer, "FLOP", "forward of one sample: its products, and scores as whole matrices"});
  if (f.indexer_gradients > 0)
    out.terms.push_back({"indexer's backward", "2 L s (rq H d + h (d + H) + 2 H d s x met / all)",
                         fmt::format("2 x {} x {} x ({} + 2 x {} x {} x {} x {} / {})", m.all_layers(), s, products,
                                     a.heads, a.dim, s, seen, all),
                         f.indexer_gradients, "FLOP",
                         "gradients of its weights, and of scores at the chosen keys; its inputs have none"});
}

/// "A + indexer + indexer's backward": what a step has of them besides, in words and numbers; empty without.
std::pair<std::string, std::string> indexer_of_step(const FlopTerms& f, int samples) {
  if (!(f.indexer > 0)) return {};
  return {f.indexer_gradients > 0 ? " + B (indexer + indexer's backward)" : " + B indexer",
          fmt::format(" + {} x ({}{})", samples, flops(f.indexer),
                      f.indexer_gradients > 0 ? " + " + flops(f.indexer_gradients) : "")};
}

/// What is beside the layers.
void add_end_flops(Section& out, const StepInputs& in, const FlopTerms& f) {
  const TransformerConfig& m = in.model;
  const int s = in.batch.sequence;
  if (f.logits > 0)
    out.terms.push_back(m.mtp_layers == 0
                            ? Term{"logits", "2 s h V", fmt::format("2 x {} x {} x {}", s, m.hidden, m.vocab), f.logits,
                                   "FLOP", "forward of one sample"}
                            : Term{"logits", "2 s h V of each token that is predicted",
                                   fmt::format("2 x {} x {} x {} x (1 + {})", s, m.hidden, m.vocab, m.mtp_layers),
                                   f.logits, "FLOP", "forward of one sample"});
  if (f.mtp > 0)
    out.terms.push_back({"MTP projections", "4 s h^2 of each further token",
                         fmt::format("{} x 4 x {} x {} x {}", m.mtp_layers, s, m.hidden, m.hidden), f.mtp, "FLOP",
                         "forward of one sample"});
}

Term model_flop_term(const StepInputs& in, const FlopTerms& f) {
  std::string ends, of_ends;  // beside the layers
  if (f.logits > 0) {
    ends += " + logits";
    of_ends += " + " + flops(f.logits);
  }
  if (f.mtp > 0) {
    ends += " + MTP projections";
    of_ends += " + " + flops(f.mtp);
  }
  const auto [indexer, of_indexer] = indexer_of_step(f, in.batch.global_batch);
  if (f.frozen)
    return {"model FLOP of a step",
            fmt::format("B (2 (linear layers{}) + 3 (attention core + adapters)){}", ends, indexer),
            fmt::format("{} x (2 x ({}{}) + 3 x ({} + {})){}", in.batch.global_batch, flops(f.linear), of_ends,
                        flops(f.core), flops(f.adapters), of_indexer),
            f.model().value(),
            "FLOP",
            "frozen matrices have no gradients of weights; some frameworks count them as if they had"};
  return {
      "model FLOP of a step",
      fmt::format("3 B (linear layers + attention core{}){}", ends, indexer),
      fmt::format("3 x {} x ({} + {}{}){}", in.batch.global_batch, flops(f.linear), flops(f.core), of_ends, of_indexer),
      f.model().value(),
      "FLOP",
      "a backward is two forwards; counted as Narayanan et al. 2021, all GPUs together"};
}

/// Where modules come back that are not the usual ones, or of some layers alone.
Term hardware_of_modules(const StepInputs& in, const FlopTerms& f, bool full, bool all_layers) {
  std::string of;
  for (const RecomputeModule module : in.options.recompute_modules)
    of += fmt::format("{}{}", of.empty() ? "" : ", ", to_string(module));
  const std::string share =
      all_layers ? "" : fmt::format(" in {:.4g} % of the layers", 100 * in.options.recompute_layers);
  return {"hardware FLOP of a step",
          "model FLOP + B what is computed once more",
          fmt::format("{} + {} x {}", flops(f.model().value()), in.batch.global_batch, flops(f.recomputed)),
          f.hardware().value(),
          "FLOP",
          fmt::format("the forward of {} runs twice{}", full ? "a layer" : of, share)};
}

/// With what is computed once more.
Term hardware_flop_term(const StepInputs& in, const FlopTerms& f) {
  const bool full = in.options.recompute == Recompute::full, all = in.options.recompute_layers == 1;
  if (!all || (!full && in.options.recompute_modules != TrainingOptions().recompute_modules))
    return hardware_of_modules(in, f, full, all);
  const std::string model = flops(f.model().value());
  if (full)
    return {"hardware FLOP of a step",
            fmt::format("model FLOP + B (linear layers + attention core{}{})", f.indexer > 0 ? " + indexer" : "",
                        f.frozen ? " + adapters" : ""),
            fmt::format("{} + {} x ({} + {}{}{})", model, in.batch.global_batch, flops(f.linear), flops(f.core),
                        f.indexer > 0 ? " + " + flops(f.indexer) : "", f.frozen ? " + " + flops(f.adapters) : ""),
            f.hardware().value(),
            "FLOP",
            "every layer's forward runs twice"};
  return {"hardware FLOP of a step",
          linear_layers(in.model) > 0 ? "model FLOP + B attention core of the layers that attend"
                                      : "model FLOP + B attention core",
          fmt::format("{} + {} x {}", model, in.batch.global_batch, flops(f.recomputed)),
          f.hardware().value(),
          "FLOP",
          "the attention core's forward runs twice"};
}

void add_flops(Section& out, const StepInputs& in, const FlopTerms& f) {
  const TransformerConfig& m = in.model;
  if (m.mtp_layers > 0)
    out.terms.push_back({"layers L", "layers + those of multi-token prediction",
                         fmt::format("{} + {}", m.layers, m.mtp_layers), static_cast<double>(m.all_layers()), "", ""});
  out.terms.push_back(linear_flop_term(in, f));
  out.terms.push_back(core_flop_term(m, in.batch.sequence, f));
  add_indexer_flops(out, in, f);
  add_end_flops(out, in, f);
  out.terms.push_back(model_flop_term(in, f));
  if (f.recomputed > 0) out.terms.push_back(hardware_flop_term(in, f));
}

}  // namespace

Section rates_section(const StepInputs& in, const StepResult& r) {
  Section out;
  out.title = "rates";
  const double tokens = static_cast<double>(in.batch.global_batch) * in.batch.sequence;
  const int world = in.layout.world();
  out.terms.push_back(
      {"tokens/s per GPU", "sequence x global batch / (step x GPUs)",
       fmt::format("{} x {} / ({} x {})", in.batch.sequence, in.batch.global_batch, format_seconds(r.step), world),
       tokens / (r.step.count() * world), "", ""});
  const FlopTerms f = flop_terms(in);
  add_flops(out, in, f);
  const auto peak = in.gpu.peak.find(in.options.precision);
  check(peak != in.gpu.peak.end(), "a step's precision has a peak");
  const std::string against = fmt::format("{} peak of {}, data sheet", in.options.precision, in.gpu.model);
  out.terms.push_back({"model FLOP/s per GPU", "model FLOP / (step x GPUs)",
                       fmt::format("{} / ({} x {})", flops(f.model().value()), format_seconds(r.step), world),
                       r.model_flops_per_gpu.value(), "FLOP/s", ""});
  out.terms.push_back({"MFU", "model FLOP/s per GPU / peak",
                       fmt::format("{} / {}", format_flop_rate(r.model_flops_per_gpu), format_flop_rate(peak->second)),
                       r.mfu, "", against});
  if (f.recomputed > 0)
    out.terms.push_back({"HFU", "hardware FLOP / (step x GPUs x peak)",
                         fmt::format("{} / ({} x {} x {})", flops(f.hardware().value()), format_seconds(r.step), world,
                                     format_flop_rate(peak->second)),
                         r.hfu, "", against});
  else
    out.terms.push_back({"HFU", "MFU", {}, r.hfu, "", "nothing is recomputed"});
  return out;
}

}  // namespace collcast
