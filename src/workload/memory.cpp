#include "workload/memory.hpp"

#include <algorithm>
#include <cmath>

#include "collcast/workload/search.hpp"
#include "workload/parameters.hpp"
#include "workload/share.hpp"

namespace collcast::workload {

namespace {

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(std::ceil(bytes))); }

ActivationTerms activations_with(const StepInputs& in, Recompute recompute) {
  const Share share(in);
  const double w = KernelTimer(in).precision().activation;
  const bool dropout = in.model.dropout > 0;
  ActivationTerms kept;
  if (recompute == Recompute::full) {
    kept.input = Volume(w * share.rows * share.hidden);
    return kept;
  }
  kept.norms = Volume(share.rows * share.hidden * (4 * w + (dropout ? 2 : 0)));
  kept.projections = Volume(w * share.tokens * (2 * share.query + 2 * share.key));
  kept.mlp = Volume(w * share.tokens * share.ffn * (in.model.gated_mlp ? 3 : 2));
  if (recompute == Recompute::none)
    kept.core =
        Volume(in.options.attention == Attention::flash ? 4 * share.lse : share.scores * (w + (dropout ? w + 1 : 0)));
  return kept;
}

}  // namespace

Volume layer_activations(const StepInputs& in) { return activations_with(in, in.options.recompute).total(); }
Volume layer_working_set(const StepInputs& in) { return activations_with(in, Recompute::none).total(); }

int in_flight(const StepInputs& in, int stage) {
  const int m = in.batch.micro_batches(in.layout);
  return in.layout.schedule == PipelineSchedule::gpipe ? m : std::min(m, in.layout.pp - stage);
}

MemoryUse stage_memory(const StepInputs& in, int stage) {
  const MemoryTerms terms = memory_terms(in, stage);
  const double parameters = terms.parameters.total();
  MemoryUse use;
  use.stage = stage;
  use.parameters = whole(terms.weight_bytes * parameters);
  use.gradients = whole(terms.gradient_bytes * parameters);
  use.optimizer = whole(terms.optimizer_bytes * parameters / terms.optimizer_shares);
  use.activations = whole(terms.activations().value());
  use.buffers = whole(terms.buffers().value());
  use.peak = use.parameters + use.gradients + use.optimizer + use.activations + use.buffers;
  use.capacity = in.gpu.memory;
  return use;
}

}  // namespace collcast::workload

namespace collcast {

MemoryTerms memory_terms(const StepInputs& in, int stage) {
  const workload::Precision precision = workload::KernelTimer(in).precision();
  const workload::Share share(in);
  const double w = precision.activation, rows = share.rows * share.hidden;

  MemoryTerms terms;
  terms.stage = stage;
  terms.parameters = parameter_terms(in, stage);
  terms.weight_bytes = w;
  terms.gradient_bytes = in.options.gradient_bytes;
  terms.optimizer_bytes = in.options.optimizer ? precision.optimizer : 0;
  terms.optimizer_shares = in.options.zero >= 1 ? in.layout.dp : 1;
  terms.tokens = share.tokens;
  terms.rows = share.rows;
  terms.layer = workload::activations_with(in, in.options.recompute);
  terms.in_flight = workload::in_flight(in, stage);
  if (in.options.recompute == Recompute::full) terms.recomputed = workload::layer_working_set(in);
  // What selective recomputation brings back of one layer, beside what the layer kept.
  if (in.options.recompute == Recompute::selective)
    terms.recomputed = workload::layer_working_set(in) - terms.layer.total();
  if (workload::has_embedding(in, stage) && in.model.dropout > 0) terms.embedding_mask = Volume(rows);
  if (workload::has_head(in, stage)) {
    terms.final_norm = Volume(2 * w * rows);
    terms.probabilities = Volume(4 * share.tokens * share.vocab);
    terms.logits = Volume(w * share.tokens * share.vocab);
  }
  return terms;
}

MemoryUse peak_memory(const StepInputs& in) {
  // A middle stage holds no more of anything than the first: as many layers, as many micro-batches, no embedding.
  const MemoryUse first = workload::stage_memory(in, 0);
  if (in.layout.pp == 1) return first;
  const MemoryUse last = workload::stage_memory(in, in.layout.pp - 1);
  return last.peak > first.peak ? last : first;
}

}  // namespace collcast
