// What a rank that serves needs of memory, and what would help where that is too much (serving.hpp).
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collcast/base/units.hpp"
#include "workload/layer/attention_core.hpp"
#include "workload/layer/indexer.hpp"
#include "workload/layer/linear_attention.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory_remedies.hpp"
#include "workload/serving/serving.hpp"
#include "workload/warnings.hpp"

namespace collcast::workload {

namespace {

PassMemoryTerms terms_of_pass(const StepInputs& in, const StepInputs& pass, const ParameterTerms& held, int stage) {
  const Share share(pass);
  const double widths = in.model.gated_mlp ? 2 : 1;
  PassMemoryTerms out;
  out.rows = share.tokens;
  out.logit_rows = pass.batch.micro_batch;
  out.element_bytes = KernelTimer(pass).precision().activation;
  out.hidden = share.hidden;
  const SharedKeyCore shared(pass);
  const bool prompts = pass.batch.context == 0;
  out.attention =
      share.query + share.gate + (prompts && shared.query > 0 ? shared.query + shared.output : share.key + share.value);
  const auto has = [&](const auto& of) { return held.sum([&](LayerShape s) { return (s.*of)() ? 1 : 0; }) > 0; };
  if (!has(&LayerShape::attends)) out.attention = 0;
  if (has(&LayerShape::is_linear)) out.attention = std::max(out.attention, LinearShare(pass).columns);
  if (has(&LayerShape::has_mlp) || in.model.pattern.empty()) out.mlp = widths * share.ffn;
  if (has(&LayerShape::has_experts)) {
    out.expert_rows = share.taken;
    out.expert_width = share.expert_row + widths * share.expert;
  }
  if (has_head(in, stage)) out.vocab = in.model.vocab;
  if (has_head(in, stage) && in.model.mtp_layers > 0) out.mtp = 2 * share.hidden;
  if (in.layout.pp > 1) out.messages = Volume(2 * tp_bytes(pass));
  return out;
}

}  // namespace

std::vector<std::string> serving_warnings(const StepInputs& in, const Fabric& fabric, const MemoryUse& m) {
  std::vector<std::string> list;
  if (!m.fits()) {
    const MemoryPart &breaks = breaking_part(m), &largest = largest_part(m);
    const bool named = largest.size == breaks.size || largest.size == &MemoryUse::kv_cache;
    const std::string other =
        named ? "" : format_bytes(volume(m.*largest.size)) + " of them for " + largest.name + " and ";
    list.push_back("stage " + std::to_string(m.stage) + " needs " + format_bytes(volume(m.peak())) + " of the GPU's " +
                   format_bytes(volume(m.capacity)) + ", " + other + format_bytes(volume(m.kv_cache)) +
                   " of them for keys and values; what breaks the limit: " + breaks.name + "; " +
                   what_would_fit(in, fabric));
  }
  for (std::string& unused : unused_by_server(in)) list.push_back(std::move(unused));
  if (in.serving->micro_batches < in.layout.pp)
    list.push_back(too_few_micro_batches(in.serving->micro_batches, in.layout.pp) +
                   "; more microbatches of a larger batch, or a smaller pp would help");
  return list;
}

Diagnostics check_serving_memory(const StepInputs& in, const Origins& origins) {
  for (int stage = 0; stage < in.layout.pp; ++stage) {
    const ServingMemoryTerms terms = serving_memory_terms(in, stage);
    const Volume needed = terms.weights() + terms.kept() + terms.activations() + terms.buffers();
    if (needed.value() > most_bytes)
      return {{origins.of(terms.weights().value() > most_bytes ? "model" : "inference.batch"),
               "a rank needs " + format_bytes(needed) + " of memory",
               "expected up to " + format_bytes(Volume(most_bytes))}};
  }
  return {};
}

MemoryUse serving_memory(const StepInputs& in, int stage, int gpus_per_node) {
  const ServingMemoryTerms terms = serving_memory_terms(in, stage);
  MemoryUse use;
  use.stage = stage;
  use.parameters = whole(terms.weights().value());
  use.kv_cache = whole(terms.kept().value());
  use.activations = whole(terms.activations().value());
  use.buffers = whole(terms.buffers().value());
  use.capacity = in.gpu.memory;
  add_runtime(use, talking_layout(in), in.nccl_buffers, gpus_per_node, use.parameters + use.kv_cache);
  return use;
}

}  // namespace collcast::workload

namespace collcast {

using namespace workload;

ParallelLayout talking_layout(const StepInputs& in) {
  ParallelLayout layout = in.layout;
  if (!in.serving) {
    if (in.options.zero == 0) layout.dp_shard = 0;
    return layout;
  }
  // What experts give of tokens that all ranks of TP have is summed up as all else is.
  if (layout.tp > 1 && !layout.sequence_parallel) layout.ep = 1, layout.etp = 0;
  // Replicas of the experts have nothing to exchange: as few replicas as make whole ranks of TP and of experts.
  const std::int64_t sharing = std::int64_t{layout.expert_tp()} * layout.ep;
  layout.dp = static_cast<int>(sharing / std::gcd(sharing, std::int64_t{layout.tp}));
  return layout;
}

ServingMemoryTerms serving_memory_terms(const StepInputs& in, int stage) {
  const StepInputs prompts = prompt_pass(in), tokens = token_pass(in, 0);
  const KernelTimer timer(prompts);
  const Share share(prompts);
  ServingMemoryTerms out;
  out.stage = stage;
  out.parameters = parameter_terms(in, stage);
  out.matrix_bytes = timer.precision().weight;
  out.end_bytes = timer.precision().activation;
  const LatentAttention& latent = in.model.latent;
  out.kept_bytes = in.serving->kv_bytes;
  out.kept_elements = latent.kv_rank > 0 ? latent.kv_rank + latent.rope : share.key + share.value;
  out.indexer_bytes = indexer_cache_bytes(in.model);
  out.sequences = in.serving->batch;
  out.kept_tokens = in.serving->kept_tokens();
  out.window_tokens = std::min<double>(out.kept_tokens, in.model.window.tokens + in.serving->verified_tokens() - 1);
  const std::vector<StageLayer> layers = layers_of_stage(in, stage);
  for (const StageLayer& layer : layers) {
    if (!layer_shape(in.model, layer.number).has_mixer()) continue;
    ++(has_linear_attention(in.model, layer.number)                  ? out.state_layers
       : in.serving->kv_window && has_window(in.model, layer.number) ? out.windowed_layers
                                                                     : out.full_layers);
  }
  if (out.state_layers > 0) {
    const LinearShare linear(prompts);
    out.state = linear.state;
    out.state_bytes = in.serving->state_bytes;
    out.inputs = linear.inputs;
    out.input_bytes = timer.precision().activation;
  }
  out.prompts = terms_of_pass(in, prompts, out.parameters, stage);
  if (const std::optional<RequestLoad>& load = in.serving->load) {
    // A pass of them has parts of several prompts, or a part of one.
    const double in_a_pass =
        std::min<double>(load->max_batched_tokens, 1.0 * in.serving->batch * in.serving->prompt_tokens);
    out.prompts.expert_rows *= in_a_pass / in.serving->mean_prompt_tokens();
    out.prompts.rows *= in_a_pass / in.serving->mean_prompt_tokens();
  }
  out.tokens = terms_of_pass(in, tokens, out.parameters, stage);
  out.tokens.logit_rows *= in.serving->verified_tokens();
  return out;
}

}  // namespace collcast
