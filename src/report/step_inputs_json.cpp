// What a step is forecast of, as collcast.step.v1 and collcast.plan.v1 say it under `inputs`.
#include <fmt/format.h>

#include "collcast/report/documents.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "collcast/workload/precisions.hpp"
#include "report/document.hpp"

namespace collcast {

namespace {

Json efficiency_json(const KernelEfficiency& e) {
  Json out{{"overhead_s", e.overhead.count()}, {"compute", e.compute}, {"memory", e.memory}, {"source", e.source}};
  if (e.sustained < 1) out["sustained"] = e.sustained;
  return out;
}

Json efficiency_json(const std::map<std::string, KernelEfficiency>& table, const std::string& precision) {
  const auto found = table.find(precision);
  return found == table.end() ? Json() : efficiency_json(found->second);
}

/// As scenarios write it: 0 is auto.
Json count_json(int count) { return count == 0 ? Json("auto") : Json(count); }

/// What is sent otherwise than as it is: what the scenario says of it.
void add_communication(Json& options, const TrainingOptions& o) {
  const CommunicationFormats& f = o.communication;
  if (f != CommunicationFormats{}) {
    Json formats;
    const auto put = [&](const char* key, std::optional<WireFormat> format) {
      if (format) formats[key] = to_string(*format);
    };
    put("tp_gather", f.tp_gather);
    put("tp_reduce", f.tp_reduce);
    put("ep_dispatch", f.ep_dispatch);
    put("ep_combine", f.ep_combine);
    put("parameters", f.parameters);
    put("gradients", f.gradients);
    formats["scale_block"] = f.scale_block;
    options["communication"] = formats;
  }
  if (const GradientCompression& c = o.compression; c.method != CompressionMethod::none) {
    Json compression{{"method", to_string(c.method)}, {"error_feedback", c.error_feedback}};
    if (c.method == CompressionMethod::powersgd) {
      compression["rank"] = c.rank;
      compression["min_rate"] = c.min_rate;
    } else {
      compression["ratio"] = c.ratio;
      compression["moved_bytes"] = c.moved;
    }
    options["gradient_compression"] = compression;
  }
  if (o.delayed_all_reduce) options["delayed_all_reduce"] = true;
}

/// Which layers are not in the step's precision, and what of activations is kept for the backward.
void add_layers(Json& options, const TrainingOptions& o) {
  if (o.bf16_first_layers > 0) options["num_layers_at_start_in_bf16"] = o.bf16_first_layers;
  if (o.bf16_last_layers > 0) options["num_layers_at_end_in_bf16"] = o.bf16_last_layers;
  if (o.recompute_modules != TrainingOptions().recompute_modules) {
    Json modules = Json::array();
    for (const RecomputeModule module : o.recompute_modules) modules.push_back(to_string(module));
    options["recompute_modules"] = modules;
  }
  if (o.recompute_layers < 1) options["recompute_layers"] = o.recompute_layers;
}

/// What most frameworks do, where it is done otherwise.
void add_execution(Json& options, const TrainingOptions& o) {
  if (o.launch_backward) options["launch_backward_s"] = o.launch_backward->count();
  if (o.zero == 3 || !o.reshard_after_forward) options["reshard_after_forward"] = o.reshard_after_forward;
  if (o.no_sync) options["no_sync"] = true;
  if (!o.fuse_loss) options["cross_entropy_loss_fusion"] = false;
  if (o.save_original_input) options["save_original_input"] = true;
  if (o.cpu_offloading_num_layers > 0) options["cpu_offloading_num_layers"] = o.cpu_offloading_num_layers;
  if (!o.fuse_accumulation) options["gradient_accumulation_fusion"] = false;
}

void add_adapters(Json& options, const StepInputs& in) {
  const LowRankAdapters& lora = in.options.lora;
  if (lora.rank == 0) return;
  Json modules = Json::array();
  for (const AdapterModule module : lora.targets(in.model)) modules.push_back(to_string(module));
  options["lora"] = {
      {"rank", lora.rank}, {"target_modules", modules}, {"trained_parameters", adapter_parameter_count(in)}};
  if (lora.base_weights != BaseWeights::as_computed) options["lora"]["base_weights"] = to_string(lora.base_weights);
}

/// What the optimizer keeps otherwise than in fp32, and elsewhere than on the GPU.
void add_optimizer(Json& options, const TrainingOptions& o) {
  if (const auto& aware = o.precision_aware_optimizer)
    options["precision_aware_optimizer"] = {{"exp_avg_dtype", to_string(aware->exp_avg_dtype)},
                                            {"exp_avg_sq_dtype", to_string(aware->exp_avg_sq_dtype)},
                                            {"main_params_dtype", to_string(aware->main_params_dtype)},
                                            {"store_param_remainders", keeps_remainders(o)}};
  if (const auto& offload = o.optimizer_state_offload)
    options["optimizer_state_offload"] = {{"fraction", offload->fraction}, {"chunk_size_mb", offload->chunk_size_mb}};
}

void add_experts(Json& options, const StepInputs& in) {
  if (in.model.experts.count == 0) return;
  const TrainingOptions& o = in.options;
  options["overlap_ep"] = o.overlap_ep;
  options["moe_grouped_gemm"] = o.moe_grouped_gemm;
  options["moe_grouped_mlp_fusion"] = o.moe_grouped_mlp_fusion;
  options["moe_token_dispatcher"] = to_string(o.moe_token_dispatcher);
  options["expert_imbalance"] = o.expert_imbalance;
  options["moe_capacity_factor"] = o.moe_capacity_factor > 0 ? Json(o.moe_capacity_factor) : Json();
}

/// What is trained at once, and how.
void add_training(Json& out, const StepInputs& in) {
  const TrainingOptions& o = in.options;
  out["batch"] = {{"sequence", in.batch.sequence},
                  {"micro_batch", in.batch.micro_batch},
                  {"global_batch", in.batch.global_batch},
                  {"micro_batches", in.batch.micro_batches(in.layout)}};
  Json& options = out["options"];
  options = {{"precision", o.precision},
             {"recompute", to_string(o.recompute)},
             {"attention", to_string(o.attention)},
             {"zero", o.zero},
             {"gradient_bytes", o.gradient_bytes},
             {"overlap_dp", o.overlap_dp},
             {"bucket_bytes", o.bucket.value_or(default_bucket).value()},
             {"overlap_pp", o.overlap_pp},
             {"launch_s", o.launch.count()},
             {"optimizer", o.optimizer},
             {"embedding_and_logits", o.embedding_and_logits}};
  add_layers(options, o);
  add_execution(options, o);
  if (in.layout.pp > 1) options["align_grad_reduce"] = o.align_grad_reduce;
  if (in.layout.tp > 1) options["overlap_tp"] = to_string(o.overlap_tp);
  add_communication(options, o);
  add_adapters(options, in);
  add_optimizer(options, o);
  if (in.layout.cp > 1) options["overlap_cp"] = o.overlap_cp;
  add_experts(options, in);
}

/// What nobody said as it is taken.
Json load_json(const Serving& s) {
  return {{"concurrency", s.clients()},
          {"requests", s.run_requests()},
          {"range_ratio", s.load->range_ratio},
          {"max_batched_tokens", s.load->max_batched_tokens},
          {"recv_interval", s.load->recv_interval},
          {"seed", s.load->seed}};
}

Json speculation_json(const Serving& s) {
  const Speculation& of = *s.speculation;
  return {{"method", to_string(of.method)},
          {"num_speculative_tokens", of.tokens},
          {"acceptance_rate", of.acceptance_rate ? Json(*of.acceptance_rate) : Json()},
          {"tokens_per_pass", s.tokens_per_pass()}};
}

Json model_json(const TransformerConfig& m) {
  Json out = {{"name", m.name},
              {"layers", m.layers},
              {"hidden", m.hidden},
              {"heads", m.heads},
              {"kv_heads", m.kv_heads},
              {"head_dim", m.head_dim},
              {"ffn", m.ffn},
              {"vocab", m.vocab},
              {"gated_mlp", m.gated_mlp},
              {"tied_embeddings", m.tied_embeddings},
              {"biases", m.biases},
              {"causal", m.causal},
              {"learned_positions", m.learned_positions},
              {"dropout", m.dropout},
              {"parameters", parameter_count(m)}};
  if (const Experts& e = m.experts; e.count > 0) {
    out["active_parameters"] = active_parameter_count(m);
    out["experts"] = {{"count", e.count},
                      {"top_k", e.top_k},
                      {"ffn", e.ffn},
                      {"shared_ffn", e.shared_ffn},
                      {"shared_gate", e.shared_gate},
                      {"dense_layers", e.dense_layers},
                      {"every", e.every},
                      {"groups", e.groups},
                      {"group_top_k", e.group_top_k},
                      {"layers", expert_layers(m)}};
    if (e.latent > 0) out["experts"]["latent"] = e.latent;
    if (m.experts_have_biases()) out["experts"]["biases"] = true;
    if (e.clamp) out["experts"]["clamp"] = true;
  }
  if (const LatentAttention& a = m.latent; a.kv_rank > 0)
    out["mla"] = {{"q_rank", a.q_rank}, {"kv_rank", a.kv_rank}, {"nope", a.nope}, {"rope", a.rope}, {"value", a.value}};
  if (const SlidingWindow& w = m.window; w.tokens > 0)
    out["window"] = {{"tokens", w.tokens},
                     {"full_every", w.full_every},
                     {"full_first", w.full_first},
                     {"full_at", w.full_at},
                     {"layers", windowed_layers(m)}};
  if (const LinearAttention& l = m.linear; l.key_heads > 0)
    out["linear_attention"] = {{"key_heads", l.key_heads}, {"value_heads", l.value_heads},
                               {"key_dim", l.key_dim},     {"value_dim", l.value_dim},
                               {"conv", l.conv},           {"full_every", l.full_every},
                               {"full_at", l.full_at},     {"layers", linear_layers(m)},
                               {"rule", to_string(l.rule)}};
  if (!m.pattern.empty()) out["hybrid_layer_pattern"] = m.pattern;
  if (m.mtp_layers > 0) out["mtp_num_layers"] = m.mtp_layers;
  if (m.attention_gate) out["attention_gate"] = true;
  if (const SparseAttention& a = m.sparse; a.top_k > 0)
    out["sparse_attention"] = {{"heads", a.heads}, {"dim", a.dim}, {"top_k", a.top_k}};
  if (const ParallelMlp& p = m.parallel_mlp; p.norms > 0)
    out["parallel_mlp"] = {{"norms", p.norms}, {"one_reduce", p.one_reduce}};
  return out;
}

Json layout_json(const StepInputs& in) {
  Json out = {{"tp", in.layout.tp},
              {"pp", in.layout.pp},
              {"dp", in.layout.dp},
              {"cp", in.layout.cp},
              {"ep", in.layout.ep},
              {"vpp", in.layout.vpp},
              {"sequence_parallel", in.layout.sequence_parallel},
              {"uneven_stages", in.layout.uneven_stages},
              {"order", to_string(in.layout.order)},
              {"schedule", to_string(in.layout.schedule)}};
  if (is_own(in.layout.schedule)) {
    out["schedule_name"] = in.layout.own->name;
    out["schedule_digest"] = fmt::format("{:016x}", digest(*in.layout.own));
  }
  if (in.layout.dp_shard > 0) out["dp_shard"] = in.layout.dp_shard;
  if (in.model.experts.count > 0) out["etp"] = in.layout.expert_tp();
  if (in.layout.cp > 1) out["cp_exchange"] = to_string(in.layout.cp_exchange);
  return out;
}

Json serving_json(const StepInputs& in, const Serving& s) {
  Json out = {{"batch", s.batch},
              {"prompt_tokens", s.prompt_tokens},
              {"output_tokens", s.output_tokens},
              {"microbatches", s.micro_batches},
              {"precision", in.options.precision},
              {"kv_element_bytes", s.kv_bytes},
              {"batching", to_string(s.batching)}};
  if (linear_layers(in.model) > 0) out["state_element_bytes"] = s.state_bytes;
  if (in.model.window.tokens > 0) out["kv_window"] = s.kv_window;
  if (s.first_token_overhead > Seconds{}) out["first_token_overhead_s"] = s.first_token_overhead.count();
  if (s.load) out["load"] = load_json(s);
  if (s.speculation) out["speculative"] = speculation_json(s);
  if (in.model.experts.count > 0) out["expert_imbalance"] = in.options.expert_imbalance;
  return out;
}

Json collectives_json(const StepInputs& in, const CollectivePolicy& collectives, Sharing sharing) {
  Json out = {{"algorithm", collectives.algorithm},
              {"chunks", count_json(collectives.chunks)},
              {"channels", count_json(collectives.channels)},
              {"sharing", sharing == Sharing::fifo ? "fifo" : "max_min"},
              {"base_latency_s", collectives.base_latency.count()}};
  for (const Dimension d : in.priorities) out["priorities"].push_back(to_string(d));
  for (const auto& [dimension, weight] : in.weights) out["weights"][std::string(to_string(dimension))] = weight;
  if (collectives.library == Library::nccl) out["environment"] = text_of(collectives.environment);
  return out;
}

Json kernels_json(const StepInputs& in) {
  const std::string core = core_precision(in.options);
  Json out;
  out["name"] = in.kernels.name;
  if (in.gpu.kernel_scale != 1) out["scale"] = in.gpu.kernel_scale;
  if (in.gpu.power_limit != 1) out["power_limit"] = in.gpu.power_limit;
  out["gemm"] = efficiency_json(in.kernels.gemm, linear_precision(in.options));
  out["measured_gemm"] = Json();
  if (const auto found = in.kernels.measured_gemm.find(linear_precision(in.options));
      found != in.kernels.measured_gemm.end())
    out["measured_gemm"] = {{"table", found->second.name()}, {"products", found->second.products()}};
  const std::string linear = linear_precision(in.options);
  if (in.model.experts.count > 0 && in.kernels.grouped_gemm.contains(linear))
    out["grouped_gemm"] = efficiency_json(in.kernels.grouped_gemm, linear);
  if (in.model.experts.count > 0 && in.kernels.grouped_gemm_gradient.contains(linear))
    out["grouped_gemm_gradient"] = efficiency_json(in.kernels.grouped_gemm_gradient, linear);
  out["core_precision"] = core;
  out["core_gemm"] = efficiency_json(in.kernels.gemm, core);
  out["attention"] = efficiency_json(in.kernels.attention, core);
  if (const Json gradient = efficiency_json(in.kernels.attention_gradient, core); !gradient.is_null())
    out["attention_gradient"] = gradient;
  out["memory_bound"] = efficiency_json(in.kernels.memory_bound);
  return out;
}

}  // namespace

Json inputs_json(const StepInputs& in, const CollectivePolicy& collectives, Sharing sharing) {
  Json out;
  out["model"] = model_json(in.model);
  out["layout"] = layout_json(in);
  if (in.serving)
    out["inference"] = serving_json(in, *in.serving);
  else
    add_training(out, in);
  out["collectives"] = collectives_json(in, collectives, sharing);
  out["kernels"] = kernels_json(in);
  return out;
}

}  // namespace collcast
