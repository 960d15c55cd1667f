// collcast.step.v1: one training step, where its time goes, and what it needs of memory.
//
// A graph of measured tasks has no model: what depends on one (tokens, MFU, layer, memory) is null there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "report/document.hpp"
#include "report/faults.hpp"
#include "report/gates.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

/// All communication of a dimension of a rank in a step, and how much of it nothing hides.
struct Communication {
  const char* dimension;
  Seconds total{}, exposed{};
  /// Less than a billionth of the total is the rounding of sums.
  Seconds hidden() const { return total - exposed > 1e-9 * total ? total - exposed : Seconds(0); }
};

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

// --- JSON ---

Json efficiency_json(const KernelEfficiency& e) {
  return {{"overhead_s", e.overhead.count()}, {"compute", e.compute}, {"memory", e.memory}, {"source", e.source}};
}

Json efficiency_json(const std::map<std::string, KernelEfficiency>& table, const std::string& precision) {
  const auto found = table.find(precision);
  return found == table.end() ? Json() : efficiency_json(found->second);
}

/// As scenarios write it: 0 is auto.
Json count_json(int count) { return count == 0 ? Json("auto") : Json(count); }

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
                    {"bucket_bytes", in.options.bucket.value()},
                    {"overlap_pp", in.options.overlap_pp},
                    {"launch_s", in.options.launch.count()},
                    {"optimizer", in.options.optimizer},
                    {"embedding_and_logits", in.options.embedding_and_logits}};
  if (in.options.zero == 3 || !in.options.reshard_after_forward)
    out["options"]["reshard_after_forward"] = in.options.reshard_after_forward;
  if (in.layout.cp > 1) out["options"]["overlap_cp"] = in.options.overlap_cp;
  if (in.model.experts.count > 0) {
    out["options"]["overlap_ep"] = in.options.overlap_ep;
    out["options"]["expert_imbalance"] = in.options.expert_imbalance;
    const double factor = in.options.moe_capacity_factor;
    out["options"]["moe_capacity_factor"] = factor > 0 ? Json(factor) : Json();
  }
}

}  // namespace

Json inputs_json(const StepInputs& in, const CollectivePolicy& collectives, Sharing sharing) {
  Json out;
  out["model"] = {{"name", in.model.name},
                  {"layers", in.model.layers},
                  {"hidden", in.model.hidden},
                  {"heads", in.model.heads},
                  {"kv_heads", in.model.kv_heads},
                  {"head_dim", in.model.head_dim},
                  {"ffn", in.model.ffn},
                  {"vocab", in.model.vocab},
                  {"gated_mlp", in.model.gated_mlp},
                  {"tied_embeddings", in.model.tied_embeddings},
                  {"biases", in.model.biases},
                  {"causal", in.model.causal},
                  {"learned_positions", in.model.learned_positions},
                  {"dropout", in.model.dropout},
                  {"parameters", parameter_count(in.model)}};
  if (const Experts& e = in.model.experts; e.count > 0) {
    out["model"]["active_parameters"] = active_parameter_count(in.model);
    out["model"]["experts"] = {{"count", e.count},
                               {"top_k", e.top_k},
                               {"ffn", e.ffn},
                               {"shared_ffn", e.shared_ffn},
                               {"shared_gate", e.shared_gate},
                               {"dense_layers", e.dense_layers},
                               {"every", e.every},
                               {"layers", expert_layers(in.model)}};
  }
  if (const LatentAttention& a = in.model.latent; a.kv_rank > 0)
    out["model"]["mla"] = {
        {"q_rank", a.q_rank}, {"kv_rank", a.kv_rank}, {"nope", a.nope}, {"rope", a.rope}, {"value", a.value}};
  out["layout"] = {{"tp", in.layout.tp},
                   {"pp", in.layout.pp},
                   {"dp", in.layout.dp},
                   {"cp", in.layout.cp},
                   {"ep", in.layout.ep},
                   {"vpp", in.layout.vpp},
                   {"sequence_parallel", in.layout.sequence_parallel},
                   {"uneven_stages", in.layout.uneven_stages},
                   {"order", to_string(in.layout.order)},
                   {"schedule", to_string(in.layout.schedule)}};
  if (in.layout.dp_shard > 0) out["layout"]["dp_shard"] = in.layout.dp_shard;
  if (in.model.experts.count > 0) out["layout"]["etp"] = in.layout.expert_tp();
  if (in.layout.cp > 1) out["layout"]["cp_exchange"] = to_string(in.layout.cp_exchange);
  if (const auto& s = in.serving) {
    out["inference"] = {{"batch", s->batch},
                        {"prompt_tokens", s->prompt_tokens},
                        {"output_tokens", s->output_tokens},
                        {"microbatches", s->micro_batches},
                        {"precision", in.options.precision},
                        {"kv_element_bytes", s->kv_bytes}};
    if (in.model.experts.count > 0) out["inference"]["expert_imbalance"] = in.options.expert_imbalance;
  } else {
    add_training(out, in);
  }
  out["collectives"] = {{"algorithm", collectives.algorithm},
                        {"chunks", count_json(collectives.chunks)},
                        {"channels", count_json(collectives.channels)},
                        {"sharing", sharing == Sharing::fifo ? "fifo" : "max_min"},
                        {"base_latency_s", collectives.base_latency.count()}};
  if (collectives.library == Library::nccl) out["collectives"]["environment"] = text_of(collectives.environment);
  const std::string core = core_precision(in.options);
  Json kernels;
  kernels["name"] = in.kernels.name;
  kernels["gemm"] = efficiency_json(in.kernels.gemm, in.options.precision);
  kernels["measured_gemm"] = Json();
  if (const auto found = in.kernels.measured_gemm.find(in.options.precision); found != in.kernels.measured_gemm.end())
    kernels["measured_gemm"] = {{"table", found->second.name()}, {"products", found->second.products()}};
  kernels["core_precision"] = core;
  kernels["core_gemm"] = efficiency_json(in.kernels.gemm, core);
  kernels["attention"] = efficiency_json(in.kernels.attention, core);
  kernels["memory_bound"] = efficiency_json(in.kernels.memory_bound);
  out["kernels"] = kernels;
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
                   {"measured_ratio", op.measured_ratio > 0 ? Json(op.measured_ratio) : Json()}});
  }
  return out;
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
  for (const CollectiveCost& c : phase.collectives) out["collectives"].push_back(collective_json(c));
  return out;
}

void add_inference(Json& out, const InferenceResult& r) {
  out["ttft_s"] = r.prefill.time().count();
  out["tpot_s"] = r.decode.time().count();
  out["tokens_per_s"] = r.tokens_per_s;
  out["inference"] = {{"prefill", phase_json(r.prefill)}, {"decode", phase_json(r.decode)}};
  out["inference"]["decode"]["first_token_s"] = r.first_token.count();
  out["inference"]["decode"]["last_token_s"] = r.last_token.count();
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
  if (r.inference) add_inference(out, *r.inference);
  out["layer"] = null_unless(trains, {{"forward_s", r.layer.forward.count()},
                                      {"backward_s", r.layer.backward.count()},
                                      {"tp_comm_s", r.layer.tp_comm.count()},
                                      {"tp_exposed_s", r.layer.tp_exposed.count()}});
  if (r.layer.ep_comm > Seconds{}) {
    out["layer"]["ep_comm_s"] = r.layer.ep_comm.count();
    out["layer"]["ep_exposed_s"] = r.layer.ep_exposed.count();
  }
  out["breakdown_stage"] = has_model ? Json(r.stage.stage) : Json();
  out["breakdown"] = breakdown_json(r.breakdown);
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
  out["critical_path"] = path_json(r.critical_path);
  out["operations"] = {{"forward", operations_json(r.operations.forward)},
                       {"backward", operations_json(r.operations.backward)},
                       {"recompute", operations_json(r.operations.recompute)}};
  if (report.faults) out["faults"] = effect_json(*report.faults, r);
  out["gates"] = gates_json(report.gates);
  out["warnings"] = r.warnings;
  for (const std::string& warning : report.said) out["warnings"].push_back(warning);
  out["inputs"] = has_model ? inputs_json(*report.inputs, report.collectives, report.sharing) : Json();
  if (report.faults) out["inputs"]["faults"] = faults_json(report.faults->faults);
  return out;
}

// --- the page ---

constexpr int bar_width = 40;

std::string percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "-"; }

std::string bar(double part, double whole) {
  if (!(whole > 0) || !(part > 0)) return "";
  const double share = std::clamp(part / whole, 0.0, 1.0);
  return std::string(static_cast<std::size_t>(std::lround(share * bar_width)), '#');
}

std::string inputs_text(const StepInputs& in) {
  std::string degrees = fmt::format("TP {} x PP {} x DP {}", in.layout.tp, in.layout.pp, in.layout.dp);
  if (in.layout.cp > 1) degrees += fmt::format(" x CP {} ({})", in.layout.cp, to_string(in.layout.cp_exchange));
  if (in.layout.ep > 1) degrees += fmt::format(", EP {}", in.layout.ep);
  if (in.model.experts.count > 0 && in.layout.expert_tp() != in.layout.tp)
    degrees += fmt::format(", expert TP {}", in.layout.expert_tp());
  if (in.layout.vpp > 1) degrees += fmt::format(", VPP {}", in.layout.vpp);
  if (in.layout.sequence_parallel) degrees += ", sequence parallel";
  if (in.options.zero >= 2) degrees += fmt::format(", ZeRO-{}", in.options.zero);
  if (in.options.zero >= 1 && in.layout.shard_copies() > 1)
    degrees += fmt::format(" in shards of {} replicas", in.layout.dp_shard);
  std::string active;
  if (in.model.experts.count > 0)
    active = fmt::format(", {} of a token", format_count(active_parameter_count(in.model)));
  std::string out = fmt::format("{} ({} parameters{}) as {}; ", in.model.name, format_count(parameter_count(in.model)),
                                active, degrees);
  if (const auto& s = in.serving)
    return out +
           fmt::format("{} a replica, {} tokens in and {} out, in {} of {}",
                       s->batch == 1 ? "1 sequence" : fmt::format("{} sequences", s->batch), s->prompt_tokens,
                       s->output_tokens,
                       s->micro_batches == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", s->micro_batches),
                       s->batch / s->micro_batches);
  out += fmt::format("{} x {} tokens per step in {} of {}", in.batch.global_batch, in.batch.sequence,
                     in.batch.micro_batches(in.layout) == 1
                         ? "1 micro-batch"
                         : fmt::format("{} micro-batches", in.batch.micro_batches(in.layout)),
                     in.batch.micro_batch);
  return out;
}

/// Beside "they agree", which says nothing about either.
constexpr const char* not_modelled =
    "not modelled: kernels slowed by communication beside them, collectives of different groups in each other's way, "
    "launch gaps of the CPU, "
    "data loading, failures; closed form and simulation share these limits, and only measurements tell how far both "
    "are off (docs/steps.md).";

constexpr const char* nccl_in_steps =
    "library nccl: collectives take the time of NCCL's closed form, in the simulated timeline too; groups at once "
    "share "
    "a node's NICs evenly, and are not in each other's way inside a node (docs/nccl.md).";

constexpr const char* faults_in_steps =
    "faults: every rank is simulated, ranks that are alike once; the closed form has every replica as slow as the "
    "slowest one of each stage. The layer, the communication and the collectives are those of the slowest ranks "
    "(docs/steps.md).";

bool nccl_collectives(const StepReport& report) {
  const auto& inference = report.result.inference;
  return report.machine.library == "nccl" &&
         !(inference ? inference->decode.collectives : report.result.collectives).empty();
}

Table summary_table(const StepReport& report) {
  const StepResult& r = report.result;
  Table out{{}, {{"", "", Align::left}, {"", "", Align::right}, {"", "", Align::left}}, {}};
  const auto row = [&](std::string name, std::string value, std::string remark = "") {
    out.rows.push_back({std::move(name), std::move(value), std::move(remark)});
  };
  row("step time", format_seconds(r.step), r.simulate ? "simulated" : "closed form");
  if (r.simulate) {
    const std::string difference = difference_text(*r.simulate, r.estimate);
    // With NCCL's collectives at one price in both, that the sums agree proves less.
    const char* same = nccl_collectives(report) ? "collectives by closed form in both" : "they agree";
    row("closed form", format_seconds(r.estimate), difference.empty() ? same : "simulation " + difference);
  }
  if (!report.inputs) return out;
  row("tokens/s per GPU", figure_text(r.tokens_per_s_per_gpu));
  row("model FLOP/s per GPU", format_flop_rate(r.model_flops_per_gpu));
  row("MFU", fmt::format("{:.1f}%", 100 * r.mfu), "of the data-sheet peak");
  row("HFU", fmt::format("{:.1f}%", 100 * r.hfu), "recomputation counted");
  return out;
}

Table layer_table(const LayerTimes& layer) {
  Table out{"one layer, one micro-batch",
            {{"", "", Align::left}, {"", "", Align::right}},
            {{"forward", format_seconds(layer.forward)},
             {"backward", format_seconds(layer.backward)},
             {"TP communication", format_seconds(layer.tp_comm)},
             {"of which exposed", format_seconds(layer.tp_exposed)}}};
  if (layer.ep_comm > Seconds{}) {
    out.rows.push_back({"EP communication", format_seconds(layer.ep_comm)});
    out.rows.push_back({"of which exposed", format_seconds(layer.ep_exposed)});
  }
  return out;
}

/// ", of the slowest stage (stage 3)" where there is more than one.
std::string of_stage(const StepReport& report) {
  if (!report.inputs || report.inputs->layout.pp == 1) return {};
  return fmt::format(", of the slowest stage (stage {})", report.result.stage.stage);
}

Table breakdown_table(const StepReport& report) {
  const StepResult& r = report.result;
  Table out{"where the time goes" + of_stage(report),
            {{"part", "", Align::left}, {"time", "", Align::right}, {"share", "", Align::right}, {"", "", Align::left}},
            {}};
  const Breakdown& b = r.breakdown;
  const std::array<std::pair<const char*, Seconds>, 9> parts{{{"compute", b.compute},
                                                              {"TP exposed", b.tp_exposed},
                                                              {"PP exposed", b.pp_exposed},
                                                              {"CP exposed", b.cp_exposed},
                                                              {"EP exposed", b.ep_exposed},
                                                              {"DP exposed", b.dp_exposed},
                                                              {"bubble", b.bubble},
                                                              {"optimizer", b.optimizer},
                                                              {"other", b.other}}};
  const double step = r.step.count();
  for (const auto& [name, time] : parts) {
    // Less than a billionth of the step is the rounding of sums.
    if (!(std::abs(time.count()) > 1e-9 * step)) continue;
    out.rows.push_back({name, format_seconds(time), percent(time.count(), step), bar(time.count(), step)});
  }
  out.rows.push_back({"step", format_seconds(r.step), "100.0%", ""});
  return out;
}

/// "84.2% compute, 15.8% TP": the larger first, without those that would read 0.0%.
std::string shares_text(const PathTimes& t) {
  std::array<std::pair<const char*, Seconds>, 8> parts{{{"compute", t.compute},
                                                        {"TP", t.tp},
                                                        {"CP", t.cp},
                                                        {"EP", t.ep},
                                                        {"PP", t.pp},
                                                        {"DP", t.dp},
                                                        {"optimizer", t.optimizer},
                                                        {"waits", t.wait}}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (const auto& [name, time] : parts) {
    if (time / t.total() >= 0.0005)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", percent(time.count(), t.total().count()), name);
  }
  return out;
}

Table path_table(const CriticalPath& path) {
  Table out{fmt::format("critical path of the simulation: {}", shares_text(path.time)),
            {{"where", "", Align::left},
             {"what", "", Align::left},
             {"times", "", Align::right},
             {"time", "", Align::right},
             {"share", "", Align::right}},
            {}};
  const double all = path.time.total().count();
  for (const PathRun& run : path.runs) {
    const std::string where = run.first_stage == run.last_stage
                                  ? fmt::format("stage {}", run.first_stage)
                                  : fmt::format("stages {} ... {}", run.first_stage, run.last_stage);
    out.rows.push_back({where, run.what, fmt::format("{}", run.times), format_seconds(run.time.total()),
                        percent(run.time.total().count(), all)});
  }
  return out;
}

Table communication_table(const StepReport& report) {
  const StepResult& r = report.result;
  Table out{"communication of a rank, hidden and exposed" + of_stage(report),
            {{"", "", Align::left},
             {"in total", "", Align::right},
             {"hidden", "", Align::right},
             {"exposed", "", Align::right}},
            {}};
  for (const Communication& c : communication(r)) {
    std::string name(c.dimension);
    for (char& letter : name) letter = static_cast<char>(letter - 'a' + 'A');
    if (c.total.count() > 0)
      out.rows.push_back({name, format_seconds(c.total), format_seconds(c.hidden()), format_seconds(c.exposed)});
  }
  return out;
}

/// Where a rank waits for more than its own messages.
bool waits_for_others(const StepResult& r) {
  for (const Communication& c : communication(r))
    if (c.exposed > c.total * (1 + 1e-9) && c.total.count() > 0) return true;
  return false;
}

std::string gigabytes(Bytes b) { return fmt::format("{:.2f}", static_cast<double>(b.value()) / 0x1p30); }

Table memory_table(const MemoryUse& m) {
  Table out{fmt::format("memory of the fullest rank (stage {})", m.stage),
            {{"item", "", Align::left},
             {"size", "GiB", Align::right},
             {"of the GPU", "", Align::right},
             {"", "", Align::left}},
            {}};
  const std::array<std::pair<const char*, Bytes>, 7> items{{{"parameters", m.parameters},
                                                            {"KV cache", m.kv_cache},
                                                            {"gradients", m.gradients},
                                                            {"optimizer state", m.optimizer},
                                                            {"activations", m.activations},
                                                            {"buffers", m.buffers},
                                                            {"peak", m.peak}}};
  const auto capacity = static_cast<double>(m.capacity.value());
  for (const auto& [name, bytes] : items) {
    const std::string_view item = name;
    const bool serves = m.kv_cache > Bytes(0);
    if (serves ? item == "gradients" || item == "optimizer state" : item == "KV cache") continue;
    const auto size = static_cast<double>(bytes.value());
    out.rows.push_back({name, gigabytes(bytes), percent(size, capacity), bar(size, capacity)});
  }
  out.rows.push_back({"capacity", gigabytes(m.capacity), "", ""});
  return out;
}

Table collectives_table(const StepReport& report, const std::vector<CollectiveCost>& collectives, const char* per) {
  Table out{fmt::format("collectives, per rank and {}{}", per, of_stage(report)),
            {{"collective", "", Align::left},
             {"algorithm", "", Align::left},
             {"ranks", "", Align::right},
             {"groups at once", "", Align::right},
             {"size", "", Align::right},
             {"time of one", "", Align::right},
             {"count", "", Align::right},
             {"in total", "", Align::right}},
            {}};
  for (const CollectiveCost& c : collectives) {
    out.rows.push_back({c.name, c.algorithm, fmt::format("{}", c.request.group.size()),
                        fmt::format("{}", c.request.alongside.size() + 1), size_text(c.request.size),
                        format_seconds(c.time), fmt::format("{}", c.count),
                        format_seconds(c.time * static_cast<double>(c.count))});
  }
  return out;
}

void append_operations(Table& out, const char* pass, const std::vector<Operation>& operations) {
  for (const Operation& op : operations) {
    out.rows.push_back(
        {pass, op.name, format_count(op.flops.value()), format_bytes(op.bytes), format_seconds(op.time), op.bound});
  }
}

Table operations_table(const LayerOperations& operations) {
  Table out{"kernels of one layer, one micro-batch",
            {{"pass", "", Align::left},
             {"kernel", "", Align::left},
             {"FLOP", "", Align::right},
             {"moved", "", Align::right},
             {"time", "", Align::right},
             {"bound by", "", Align::left}},
            {}};
  append_operations(out, "forward", operations.forward);
  append_operations(out, "backward", operations.backward);
  append_operations(out, "recompute", operations.recompute);
  return out;
}

/// One of several numbers of the same thing, and how the other method's differs.
std::string by_other_method(const ServingPhase& phase, bool same_prices) {
  if (!phase.simulate) return "closed form";
  const std::string difference = difference_text(*phase.simulate, phase.estimate);
  if (!difference.empty()) return "simulated; closed form " + format_seconds(phase.estimate);
  return same_prices ? "simulated; collectives by closed form" : "simulated, as by closed form";
}

Table serving_table(const StepReport& report) {
  const StepResult& r = report.result;
  const InferenceResult& s = *r.inference;
  const bool same = nccl_collectives(report);
  Table out{{}, {{"", "", Align::left}, {"", "", Align::right}, {"", "", Align::left}}, {}};
  out.rows = {{"TTFT", format_seconds(s.prefill.time()), by_other_method(s.prefill, same)},
              {"TPOT", format_seconds(s.decode.time()), by_other_method(s.decode, same)},
              {"with the shortest context", format_seconds(s.first_token), "closed form"},
              {"with the longest", format_seconds(s.last_token), "closed form"},
              {"output tokens/s", figure_text(s.tokens_per_s), "of all replicas, while they decode"},
              {"from prompts to last tokens", format_seconds(r.step), "TTFT and all further tokens"},
              {"output tokens/s per GPU", figure_text(r.tokens_per_s_per_gpu), "over that time"}};
  return out;
}

Table phases_table(const StepReport& report) {
  const InferenceResult& s = *report.result.inference;
  Table out{"where the time goes" + of_stage(report),
            {{"part", "", Align::left},
             {"TTFT", "", Align::right},
             {"share", "", Align::right},
             {"TPOT", "", Align::right},
             {"share", "", Align::right},
             {"", "", Align::left}},
            {}};
  const double ttft = s.prefill.time().count(), tpot = s.decode.time().count();
  const auto row = [&](const char* name, Seconds prefill, Seconds decode) {
    // Less than a millionth of both is the rounding of sums and of the simulator's clock.
    if (!(prefill.count() > 1e-6 * ttft) && !(decode.count() > 1e-6 * tpot)) return;
    const auto shown = [](Seconds time, double all) {
      return format_seconds(time.count() > 1e-6 * all ? time : Seconds{});
    };
    out.rows.push_back({name, shown(prefill, ttft), percent(prefill.count(), ttft), shown(decode, tpot),
                        percent(decode.count(), tpot), bar(decode.count(), tpot)});
  };
  const Breakdown &a = s.prefill.breakdown, &b = s.decode.breakdown;
  row("compute", a.compute, b.compute);
  row("TP exposed", a.tp_exposed, b.tp_exposed);
  row("EP exposed", a.ep_exposed, b.ep_exposed);
  row("PP exposed", a.pp_exposed, b.pp_exposed);
  row("bubble", a.bubble, b.bubble);
  out.rows.push_back(
      {"all", format_seconds(s.prefill.time()), "100.0%", format_seconds(s.decode.time()), "100.0%", ""});
  return out;
}

Table layers_table(const InferenceResult& s) {
  return {"one layer, one micro-batch",
          {{"", "", Align::left}, {"prompts", "", Align::right}, {"a token each", "", Align::right}},
          {{"kernels and communication", format_seconds(s.prefill.layer), format_seconds(s.decode.layer)},
           {"of which TP and EP", format_seconds(s.prefill.layer_comm), format_seconds(s.decode.layer_comm)}}};
}

Table serving_operations(const InferenceResult& s) {
  Table out = operations_table({});
  append_operations(out, "prompts", s.prefill.operations);
  append_operations(out, "a token", s.decode.operations);
  return out;
}

constexpr const char* not_modelled_of_serving =
    "all sequences of the batch come at once, with prompts and answers of one length; not modelled: requests that come "
    "and go, prompts in chunks beside tokens, speculative tokens, the host's scheduling and launch gaps "
    "(docs/steps.md).";

void add_serving(Page& out, const StepReport& report) {
  const InferenceResult& s = *report.result.inference;
  out.blocks.push_back(serving_table(report));
  if (!report.gates.empty()) out.blocks.push_back(gates_table(report.gates));
  out.blocks.push_back(phases_table(report));
  out.blocks.push_back(layers_table(s));
  out.blocks.push_back(memory_table(report.result.memory));
  if (!s.prefill.collectives.empty()) {
    out.blocks.push_back(collectives_table(report, s.prefill.collectives, "batch of prompts"));
    out.blocks.push_back(collectives_table(report, s.decode.collectives, "token of the batch"));
  }
  if (report.list_operations) out.blocks.push_back(serving_operations(s));
  if (report.machine.calibrated)
    out.blocks.push_back(
        Paragraph{calibrated_text(report.machine, report.collectives.base_latency), Paragraph::Tone::note});
  if (nccl_collectives(report)) out.blocks.push_back(Paragraph{nccl_in_steps, Paragraph::Tone::note});
  out.blocks.push_back(Paragraph{not_modelled_of_serving, Paragraph::Tone::note});
  for (const std::string& warning : report.result.warnings)
    out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
}

}  // namespace

std::string json(const StepReport& report) { return text(document_json(report)); }

Table csv(const StepReport& report) { return csv_values(document_json(report)); }

Page page(const StepReport& report) {
  const StepResult& r = report.result;
  Page out;
  out.title = report.title.empty() ? report.scenario : fmt::format("{}: {}", report.scenario, report.title);
  if (!report.what_if.empty()) out.title += fmt::format(", what if {}", report.what_if);
  if (report.inputs) out.blocks.push_back(Paragraph{inputs_text(*report.inputs), Paragraph::Tone::plain});
  // A graph of tasks says no layout: what it runs on is the machine as it is.
  const int gpus = report.inputs ? report.inputs->layout.world() : report.machine.ranks;
  const std::string library = report.inputs ? ", library " + report.machine.library : std::string();
  out.blocks.push_back(
      Paragraph{fmt::format("on {}{}", gpus_text(gpus, report.machine), library), Paragraph::Tone::plain});
  if (report.faults)
    out.blocks.push_back(Paragraph{"faults: " + faults_text(report.faults->faults), Paragraph::Tone::plain});
  if (r.inference) {
    add_serving(out, report);
    return out;
  }
  out.blocks.push_back(summary_table(report));
  if (report.faults) add_effect(out, *report.faults, r);
  if (!report.gates.empty()) out.blocks.push_back(gates_table(report.gates));
  if (report.inputs) out.blocks.push_back(layer_table(r.layer));
  out.blocks.push_back(breakdown_table(report));
  if (!r.collectives.empty()) out.blocks.push_back(communication_table(report));
  if (waits_for_others(r))
    out.blocks.push_back(Paragraph{
        "exposed is more than the total where a stage also waits for messages of other stages", Paragraph::Tone::note});
  if (r.critical_path && !r.critical_path->runs.empty()) out.blocks.push_back(path_table(*r.critical_path));
  if (report.inputs) out.blocks.push_back(memory_table(r.memory));
  if (!r.collectives.empty()) out.blocks.push_back(collectives_table(report, r.collectives, "step"));
  if (report.list_operations && report.inputs) out.blocks.push_back(operations_table(r.operations));
  if (report.machine.calibrated)
    out.blocks.push_back(
        Paragraph{calibrated_text(report.machine, report.collectives.base_latency), Paragraph::Tone::note});
  if (nccl_collectives(report)) out.blocks.push_back(Paragraph{nccl_in_steps, Paragraph::Tone::note});
  if (report.faults) out.blocks.push_back(Paragraph{faults_in_steps, Paragraph::Tone::note});
  if (report.inputs) out.blocks.push_back(Paragraph{not_modelled, Paragraph::Tone::note});
  for (const std::string& warning : r.warnings) out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
  return out;
}

}  // namespace collcast
