// MFU and HFU taken apart: the model's FLOPs, what recomputation adds, and the rate that the step makes of them.
#include <fmt/format.h>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"

namespace collcast {

namespace {

std::string flops(double value) { return format_count(value) + "FLOP"; }

void add_flops(Section& out, const StepInputs& in, const FlopTerms& f) {
  const TransformerConfig& m = in.model;
  const int s = in.batch.sequence, matrices = m.gated_mlp ? 3 : 2;
  out.terms.push_back({"linear layers", fmt::format("2 s L (h d (2a + 2k) + {} h f)", matrices),
                       fmt::format("2 x {} x {} x ({} x {} x (2 x {} + 2 x {}) + {} x {} x {})", s, m.layers, m.hidden,
                                   m.head_dim, m.heads, m.kv_heads, matrices, m.hidden, m.ffn),
                       f.linear, "FLOP",
                       "2 per token and parameter of a matrix; forward of one sample through the whole model"});
  out.terms.push_back({"attention core", "4 L a s^2 d",
                       fmt::format("4 x {} x {} x {} x {} x {}", m.layers, m.heads, s, s, m.head_dim), f.core, "FLOP",
                       "scores and values, whole matrices also where attention is causal"});
  if (f.logits > 0)
    out.terms.push_back({"logits", "2 s h V", fmt::format("2 x {} x {} x {}", s, m.hidden, m.vocab), f.logits, "FLOP",
                         "forward of one sample"});
  const bool logits = f.logits > 0;
  out.terms.push_back(
      {"model FLOP of a step", fmt::format("3 B (linear layers + attention core{})", logits ? " + logits" : ""),
       fmt::format("3 x {} x ({} + {}{})", in.batch.global_batch, flops(f.linear), flops(f.core),
                   logits ? " + " + flops(f.logits) : ""),
       f.model().value(), "FLOP", "a backward is two forwards; counted as Narayanan et al. 2021, all GPUs together"});
  if (!(f.recomputed > 0)) return;
  const bool full = in.options.recompute == Recompute::full;
  out.terms.push_back(
      {"hardware FLOP of a step",
       full ? "model FLOP + B (linear layers + attention core)" : "model FLOP + B attention core",
       full ? fmt::format("{} + {} x ({} + {})", flops(f.model().value()), in.batch.global_batch, flops(f.linear),
                          flops(f.core))
            : fmt::format("{} + {} x {}", flops(f.model().value()), in.batch.global_batch, flops(f.core)),
       f.hardware().value(), "FLOP",
       full ? "every layer's forward runs twice" : "the attention core's forward runs twice"});
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
