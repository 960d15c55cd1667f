// collcast.step.v1: one training step or a batch of inference, where its time goes, and what it needs of memory.
//
// A graph of measured tasks has no model: what depends on one (tokens, MFU, layer, memory) is null there.
#include <fmt/format.h>

#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "collcast/workload/precisions.hpp"
#include "report/communication.hpp"
#include "report/document.hpp"
#include "report/faults.hpp"
#include "report/gates.hpp"
#include "report/metrics.hpp"
#include "report/sent.hpp"
#include "report/unfolded.hpp"
#include "report/wording.hpp"

namespace collcast {

std::vector<Communication> communication(const StepResult& r) {
  const Breakdown& b = r.breakdown;
  std::vector<Communication> out{{"tp", {}, b.tp_exposed},
                                 {"pp", {}, b.pp_exposed},
                                 {"dp", {}, b.dp_exposed},
                                 {"cp", {}, b.cp_exposed},
                                 {"ep", {}, b.ep_exposed}};
  for (const CollectiveCost& c : r.collectives) {
    out[static_cast<std::size_t>(c.dimension)].total += c.time * static_cast<double>(c.count);
  }
  return out;
}

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

/// What is trained at once, and how.
void add_training(Json& out, const StepInputs& in) {
  out["batch"] = {{"sequence", in.batch.sequence},
                  {"micro_batch", in.batch.micro_batch},
                  {"global_batch", in.batch.global_batch},
                  {"micro_batches", in.batch.micro_batches(in.layout)}};
  out["options"] = {{"precision", in.options.precision},
                    {"recompute", to_string(in.options.recompute)},
                    {"attention", to_string(in.options.attention)},
                    {"zero", in.options.zero},
                    {"gradient_bytes", in.options.gradient_bytes},
                    {"overlap_dp", in.options.overlap_dp},
                    {"bucket_bytes", in.options.bucket.value_or(default_bucket).value()},
                    {"overlap_pp", in.options.overlap_pp},
                    {"launch_s", in.options.launch.count()},
                    {"optimizer", in.options.optimizer},
                    {"embedding_and_logits", in.options.embedding_and_logits}};
  if (in.options.bf16_first_layers > 0) out["options"]["num_layers_at_start_in_bf16"] = in.options.bf16_first_layers;
  if (in.options.bf16_last_layers > 0) out["options"]["num_layers_at_end_in_bf16"] = in.options.bf16_last_layers;
  if (in.options.recompute_modules != TrainingOptions().recompute_modules) {
    Json modules = Json::array();
    for (const RecomputeModule module : in.options.recompute_modules) modules.push_back(to_string(module));
    out["options"]["recompute_modules"] = modules;
  }
  if (in.options.recompute_layers < 1) out["options"]["recompute_layers"] = in.options.recompute_layers;
  if (in.options.launch_backward) out["options"]["launch_backward_s"] = in.options.launch_backward->count();
  if (in.options.zero == 3 || !in.options.reshard_after_forward)
    out["options"]["reshard_after_forward"] = in.options.reshard_after_forward;
  if (in.options.no_sync) out["options"]["no_sync"] = true;
  if (!in.options.fuse_loss) out["options"]["cross_entropy_loss_fusion"] = false;
  if (in.options.save_original_input) out["options"]["save_original_input"] = true;
  if (in.options.cpu_offloading_num_layers > 0)
    out["options"]["cpu_offloading_num_layers"] = in.options.cpu_offloading_num_layers;
  if (!in.options.fuse_accumulation) out["options"]["gradient_accumulation_fusion"] = false;
  if (in.layout.tp > 1) out["options"]["overlap_tp"] = to_string(in.options.overlap_tp);
  add_communication(out["options"], in.options);
  if (const LowRankAdapters& lora = in.options.lora; lora.rank > 0) {
    Json modules = Json::array();
    for (const AdapterModule module : lora.targets(in.model)) modules.push_back(to_string(module));
    out["options"]["lora"] = {
        {"rank", lora.rank}, {"target_modules", modules}, {"trained_parameters", adapter_parameter_count(in)}};
    if (lora.base_weights != BaseWeights::as_computed)
      out["options"]["lora"]["base_weights"] = to_string(lora.base_weights);
  }
  if (const auto& aware = in.options.precision_aware_optimizer)
    out["options"]["precision_aware_optimizer"] = {{"exp_avg_dtype", to_string(aware->exp_avg_dtype)},
                                                   {"exp_avg_sq_dtype", to_string(aware->exp_avg_sq_dtype)},
                                                   {"main_params_dtype", to_string(aware->main_params_dtype)},
                                                   {"store_param_remainders", keeps_remainders(in.options)}};
  if (const auto& offload = in.options.optimizer_state_offload)
    out["options"]["optimizer_state_offload"] = {{"fraction", offload->fraction},
                                                 {"chunk_size_mb", offload->chunk_size_mb}};
  if (in.layout.cp > 1) out["options"]["overlap_cp"] = in.options.overlap_cp;
  if (in.model.experts.count > 0) {
    out["options"]["overlap_ep"] = in.options.overlap_ep;
    out["options"]["moe_grouped_gemm"] = in.options.moe_grouped_gemm;
    out["options"]["moe_grouped_mlp_fusion"] = in.options.moe_grouped_mlp_fusion;
    out["options"]["moe_token_dispatcher"] = to_string(in.options.moe_token_dispatcher);
    out["options"]["expert_imbalance"] = in.options.expert_imbalance;
    const double factor = in.options.moe_capacity_factor;
    out["options"]["moe_capacity_factor"] = factor > 0 ? Json(factor) : Json();
  }
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

namespace {

Json collective_json(const CollectiveCost& c) {
  return {{"name", c.name},
          {"dimension", to_string(c.dimension)},
          {"collective", to_string(c.request.kind)},
          {"algorithm", c.algorithm},
          {"ranks", c.request.group.size()},
          {"groups_at_once", c.request.alongside.size() + 1},
          {"size_bytes", c.request.size.value()},
          {"time_s", c.time.count()},
          {"count", c.count}};
}

Json path_json(const PathTimes& t) {
  Json out{
      {"compute_s", t.compute.count()},     {"tp_s", t.tp.count()},    {"pp_s", t.pp.count()}, {"dp_s", t.dp.count()},
      {"optimizer_s", t.optimizer.count()}, {"wait_s", t.wait.count()}};
  if (t.cp > Seconds{}) out["cp_s"] = t.cp.count();
  if (t.ep > Seconds{}) out["ep_s"] = t.ep.count();
  return out;
}

Json path_json(const std::optional<CriticalPath>& path) {
  if (!path) return {};
  Json out = path_json(path->time);
  out["by_stage"] = Json::array();
  for (std::size_t stage = 0; stage < path->by_stage.size(); ++stage) {
    Json row{{"stage", stage}};
    row.update(path_json(path->by_stage[stage]));
    out["by_stage"].push_back(std::move(row));
  }
  out["runs"] = Json::array();
  for (const PathRun& run : path->runs) {
    Json row{{"first_stage", run.first_stage},
             {"last_stage", run.last_stage},
             {"what", run.what},
             {"times", run.times},
             {"time_s", run.time.total().count()}};
    row.update(path_json(run.time));
    out["runs"].push_back(std::move(row));
  }
  return out;
}

Json operations_json(const std::vector<Operation>& operations) {
  Json out = Json::array();
  for (const Operation& op : operations) {
    out.push_back({{"name", op.name},
                   {"flops", op.flops.value()},
                   {"bytes", op.bytes.value()},
                   {"time_s", op.time.count()},
                   {"bound", op.bound},
                   {"level", op.level()},
                   {"kernels", std::llround(op.kernels)},
                   {"measured_ratio", op.measured_ratio > 0 ? Json(op.measured_ratio) : Json()}});
  }
  return out;
}

Json passes_json(const LayerOperations& operations) {
  return {{"forward", operations_json(operations.forward)},
          {"backward", operations_json(operations.backward)},
          {"recompute", operations_json(operations.recompute)}};
}

/// The members of `object`, or null in their place where there is no model.
Json null_unless(bool has_model, Json object) {
  if (has_model) return object;
  for (auto& item : object.items()) item.value() = nullptr;
  return object;
}

Json phase_json(const ServingPhase& phase) {
  Json out{{"time_s", phase.time().count()},       {"estimate_s", phase.estimate.count()},
           {"simulate_s", number(phase.simulate)}, {"breakdown", breakdown_json(phase.breakdown)},
           {"layer_s", phase.layer.count()},       {"layer_comm_s", phase.layer_comm.count()},
           {"collectives", Json::array()},         {"operations", operations_json(phase.operations)}};
  if (!phase.linear_operations.empty()) out["linear_operations"] = operations_json(phase.linear_operations);
  if (!phase.feed_forward_operations.empty())
    out["feed_forward_operations"] = operations_json(phase.feed_forward_operations);
  for (const CollectiveCost& c : phase.collectives) out["collectives"].push_back(collective_json(c));
  return out;
}

void add_inference(Json& out, const InferenceResult& r, const StepInputs& in) {
  out["ttft_s"] = r.prefill.time().count();
  out["tpot_s"] = r.decode.time().count();
  out["tokens_per_s"] = r.tokens_per_s;
  out["inference"] = {{"prefill", phase_json(r.prefill)}, {"decode", phase_json(r.decode)}};
  out["inference"]["decode"]["first_token_s"] = r.first_token.count();
  out["inference"]["decode"]["last_token_s"] = r.last_token.count();
  if (in.serving->speculation) out["inference"]["decode"]["pass_s"] = r.decode.pass.time().count();
  if (r.load) out["inference"]["load"] = load_times_json(*r.load);
  if (!r.full_pass) return;
  Json& prefill = out["inference"]["prefill"];
  prefill["prompt_s"] = r.prefill.pass.time().count();
  prefill["full_pass_prompts"] = r.full_pass->prompts;
  prefill["full_pass_s"] = r.full_pass->pass.time().count();
  prefill["further_prompt_s"] = r.further_prompt().count();
}

void add_interval(Json& out, const StepReport& report) {
  const auto put = [&](const char* name, const std::optional<TimeRange>& span) {
    if (span) out["interval"][name] = range_json(*span);
  };
  put("step", report.interval);
  put("ttft", report.ttft_interval);
  put("tpot", report.tpot_interval);
}

Json document_json(const StepReport& report) {
  const StepResult& r = report.result;
  const bool has_model = report.inputs.has_value();
  Json out = document("collcast.step.v1");
  out["scenario"] = report.scenario;
  out["title"] = report.title;
  out["what_if"] = report.what_if.empty() ? Json() : Json(report.what_if);
  out["machine"] = machine(report.machine);
  out["gpus"] = has_model ? Json(report.inputs->layout.world()) : Json();
  // Tasks are measured: no library runs their collectives.
  out["library"] = has_model ? Json(report.machine.library) : Json();
  out["step_s"] = r.step.count();
  out["estimate_s"] = r.estimate.count();
  out["simulate_s"] = number(r.simulate);
  const bool trains = has_model && !r.inference;
  out["tokens_per_s_per_gpu"] = has_model ? Json(r.tokens_per_s_per_gpu) : Json();
  out.update(null_unless(
      trains, {{"model_flops_per_s_per_gpu", r.model_flops_per_gpu.value()}, {"mfu", r.mfu}, {"hfu", r.hfu}}));
  out["micro_batches"] = has_model ? Json(r.micro_batches) : Json();
  if (r.inference) add_inference(out, *r.inference, *report.inputs);
  add_interval(out, report);
  if (const auto& measured = report.measured)
    out["measured"] = {{"step_s", measured->time.count()},
                       {"error", r.step / measured->time - 1},
                       {"kernel_scale", measured->kernel_scale ? Json(*measured->kernel_scale) : Json()}};
  out["layer"] = null_unless(trains, {{"forward_s", r.layer.forward.count()},
                                      {"backward_s", r.layer.backward.count()},
                                      {"tp_comm_s", r.layer.tp_comm.count()},
                                      {"tp_exposed_s", r.layer.tp_exposed.count()}});
  if (r.layer.cp_comm > Seconds{}) {
    out["layer"]["cp_comm_s"] = r.layer.cp_comm.count();
    out["layer"]["cp_exposed_s"] = r.layer.cp_exposed.count();
  }
  if (r.layer.ep_comm > Seconds{}) {
    out["layer"]["ep_comm_s"] = r.layer.ep_comm.count();
    out["layer"]["ep_exposed_s"] = r.layer.ep_exposed.count();
  }
  out["breakdown_stage"] = has_model ? Json(r.stage.stage) : Json();
  out["breakdown"] = breakdown_json(r.breakdown);
  out["slowdown"] = null_unless(trains, {{"rate", r.slowdown.rate},
                                         {"tp_s", r.slowdown.tp.count()},
                                         {"cp_s", r.slowdown.cp.count()},
                                         {"ep_s", r.slowdown.ep.count()},
                                         {"dp_s", r.slowdown.dp.count()}});
  out["memory"] = null_unless(has_model, memory_json(r.memory));
  out["memory_by_stage"] = Json::array();
  for (const MemoryUse& stage : r.memory_by_stage) out["memory_by_stage"].push_back(memory_json(stage));
  out["compute_to_communication"] = r.compute_to_communication > 0 ? Json(r.compute_to_communication) : Json();
  out["communication"] = Json::array();
  for (const Communication& c : communication(r)) {
    // Context and expert parallelism are told of where there is any.
    const std::string_view name = c.dimension;
    if (trains && (c.total > Seconds{} || (name != "cp" && name != "ep")))
      out["communication"].push_back({{"dimension", c.dimension},
                                      {"total_s", c.total.count()},
                                      {"exposed_s", c.exposed.count()},
                                      {"hidden_s", c.hidden().count()}});
  }
  out["collectives"] = Json::array();
  for (const CollectiveCost& c : r.collectives) out["collectives"].push_back(collective_json(c));
  if (trains)
    if (Json sent = sent_json(*report.inputs, r.stage); !sent.empty()) out["sent_otherwise"] = std::move(sent);
  out["critical_path"] = path_json(r.critical_path);
  out["operations"] = passes_json(r.operations);
  if (!r.linear_operations.empty()) out["linear_operations"] = passes_json(r.linear_operations);
  if (!r.feed_forward_operations.empty()) out["feed_forward_operations"] = passes_json(r.feed_forward_operations);
  if (report.faults) out["faults"] = effect_json(*report.faults, r);
  if (r.classes > 0) out["folding"] = {{"ranks", r.ranks}, {"classes", r.classes}};
  if (report.unfolded) out["unfolded"] = unfolded_json(*report.unfolded, r);
  out["gates"] = gates_json(report.gates);
  out["partial"] = report.partial;
  out["warnings"] = r.warnings;
  for (const std::string& warning : report.said) out["warnings"].push_back(warning);
  out["inputs"] = has_model ? inputs_json(*report.inputs, report.collectives, report.sharing) : Json();
  if (report.faults) out["inputs"]["faults"] = faults_json(report.faults->machine.faults);
  if (report.faults && report.faults->machine.placement.any())
    out["inputs"]["placement"] = placement_json(report.faults->machine.placement);
  return out;
}

}  // namespace

std::string json(const StepReport& report) { return text(document_json(report)); }

Table csv(const StepReport& report) { return csv_values(document_json(report)); }

}  // namespace collcast
