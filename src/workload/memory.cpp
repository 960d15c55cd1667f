#include "workload/memory.hpp"

#include <algorithm>
#include <cmath>

#include "workload/parameters.hpp"
#include "workload/share.hpp"

namespace collcast::workload {

namespace {

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(std::ceil(bytes))); }

Volume activations_with(const StepInputs& in, Recompute recompute) {
  const Share share(in);
  const double w = KernelTimer(in).precision().activation;
  const bool dropout = in.model.dropout > 0;
  if (recompute == Recompute::full) return Volume(w * share.rows * share.hidden);

  const double norms = share.rows * share.hidden * (4 * w + (dropout ? 2 : 0));
  const double projections = w * share.tokens * (2 * share.query + 2 * share.key);
  const double mlp = w * share.tokens * share.ffn * (in.model.gated_mlp ? 3 : 2);
  double core = 0;
  if (recompute == Recompute::none)
    core = in.options.attention == Attention::flash ? 4 * share.lse : share.scores * (w + (dropout ? w + 1 : 0));
  return Volume(norms + projections + mlp + core);
}

}  // namespace

Volume layer_activations(const StepInputs& in) { return activations_with(in, in.options.recompute); }
Volume layer_working_set(const StepInputs& in) { return activations_with(in, Recompute::none); }

int in_flight(const StepInputs& in, int stage) {
  const int m = in.batch.micro_batches(in.layout);
  return in.layout.schedule == PipelineSchedule::gpipe ? m : std::min(m, in.layout.pp - stage);
}

MemoryUse stage_memory(const StepInputs& in, int stage) {
  const Precision precision = KernelTimer(in).precision();
  const Share share(in);
  const double w = precision.activation;
  const double parameters = stage_parameters(in, stage).total();
  const double layers = static_cast<double>(in.model.layers) / in.layout.pp;
  const double rows = share.rows * share.hidden;

  double kept = layers * layer_activations(in).value(), transient = 0, saved_probabilities = 0;
  if (in.options.recompute == Recompute::full) transient += layer_working_set(in).value();
  // What selective recomputation brings back of one layer, beside what the layer kept.
  if (in.options.recompute == Recompute::selective)
    transient += (layer_working_set(in) - layer_activations(in)).value();
  if (has_embedding(in, stage) && in.model.dropout > 0) kept += rows;
  if (has_head(in, stage)) {
    kept += 2 * w * rows;
    saved_probabilities = 4 * share.tokens * share.vocab;
    transient += w * share.tokens * share.vocab + saved_probabilities;
  }

  MemoryUse use;
  use.stage = stage;
  use.parameters = whole(w * parameters);
  use.gradients = whole(in.options.gradient_bytes * parameters);
  if (in.options.optimizer)
    use.optimizer = whole(precision.optimizer * parameters / (in.options.zero >= 1 ? in.layout.dp : 1));
  // One micro-batch's probabilities are in the buffers; GPipe holds those of every one in flight.
  use.activations = whole(in_flight(in, stage) * kept + (in_flight(in, stage) - 1) * saved_probabilities);
  use.buffers = whole(transient);
  use.peak = use.parameters + use.gradients + use.optimizer + use.activations + use.buffers;
  use.capacity = in.gpu.memory;
  return use;
}

}  // namespace collcast::workload
