// collcast.step.v1: one training step or a batch of inference, where its time goes, and what it needs of memory.
// What it is forecast of: step_inputs_json.cpp.
//
// A graph of measured tasks has no model: what depends on one (tokens, MFU, layer, memory) is null there.
#include <cmath>

#include "collcast/report/documents.hpp"
#include "report/communication.hpp"
#include "report/document.hpp"
#include "report/faults.hpp"
#include "report/gates.hpp"
#include "report/host_waits.hpp"
#include "report/sent.hpp"
#include "report/step_tables.hpp"
#include "report/unfolded.hpp"

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

/// What was forecast, and for what.
void add_head(Json& out, const StepReport& report) {
  const bool has_model = report.inputs.has_value();
  out["scenario"] = report.scenario;
  out["title"] = report.title;
  out["what_if"] = report.what_if.empty() ? Json() : Json(report.what_if);
  out["machine"] = machine(report.machine);
  out["gpus"] = has_model ? Json(report.inputs->layout.world()) : Json();
  // Tasks are measured: no library runs their collectives.
  out["library"] = has_model ? Json(report.machine.library) : Json();
}

/// Whether a model is trained: a server has none to train, and a graph of tasks no model.
bool is_training(const StepReport& report) { return report.inputs && !report.result.inference; }

void add_rates(Json& out, const StepReport& report) {
  const StepResult& r = report.result;
  const bool has_model = report.inputs.has_value();
  out["step_s"] = r.step.count();
  out["estimate_s"] = r.estimate.count();
  out["simulate_s"] = number(r.simulate);
  out["tokens_per_s_per_gpu"] = has_model ? Json(r.tokens_per_s_per_gpu) : Json();
  out.update(
      null_unless(is_training(report),
                  {{"model_flops_per_s_per_gpu", r.model_flops_per_gpu.value()}, {"mfu", r.mfu}, {"hfu", r.hfu}}));
  out["micro_batches"] = has_model ? Json(r.micro_batches) : Json();
}

Json measured_json(const StepReport::Measured& measured, Seconds forecast) {
  return {{"step_s", measured.time.count()},
          {"error", forecast / measured.time - 1},
          {"kernel_scale", measured.kernel_scale ? Json(*measured.kernel_scale) : Json()}};
}

Json layer_times_json(const LayerTimes& layer, bool trains) {
  Json out = null_unless(trains, {{"forward_s", layer.forward.count()},
                                  {"backward_s", layer.backward.count()},
                                  {"tp_comm_s", layer.tp_comm.count()},
                                  {"tp_exposed_s", layer.tp_exposed.count()}});
  if (layer.cp_comm > Seconds{}) {
    out["cp_comm_s"] = layer.cp_comm.count();
    out["cp_exposed_s"] = layer.cp_exposed.count();
  }
  if (layer.ep_comm > Seconds{}) {
    out["ep_comm_s"] = layer.ep_comm.count();
    out["ep_exposed_s"] = layer.ep_exposed.count();
  }
  return out;
}

Json slowdown_json(const Slowdown& s, bool trains) {
  return null_unless(trains, {{"rate", s.rate},
                              {"tp_s", s.tp.count()},
                              {"cp_s", s.cp.count()},
                              {"ep_s", s.ep.count()},
                              {"dp_s", s.dp.count()}});
}

/// Of a training step; context and expert parallelism are told of where there is any.
Json communication_json(const StepReport& report) {
  Json out = Json::array();
  if (!is_training(report)) return out;
  for (const Communication& c : communication(report.result)) {
    const std::string_view name = c.dimension;
    if (c.total > Seconds{} || (name != "cp" && name != "ep"))
      out.push_back({{"dimension", c.dimension},
                     {"total_s", c.total.count()},
                     {"exposed_s", c.exposed.count()},
                     {"hidden_s", c.hidden().count()}});
  }
  return out;
}

void add_memory(Json& out, const StepReport& report) {
  const StepResult& r = report.result;
  out["memory"] = null_unless(report.inputs.has_value(), memory_json(r.memory));
  out["memory_by_stage"] = Json::array();
  for (const MemoryUse& stage : r.memory_by_stage) out["memory_by_stage"].push_back(memory_json(stage));
}

/// What is sent, and what of it computing waits for.
void add_communication(Json& out, const StepReport& report) {
  const StepResult& r = report.result;
  out["compute_to_communication"] = r.compute_to_communication > 0 ? Json(r.compute_to_communication) : Json();
  out["communication"] = communication_json(report);
  out["collectives"] = Json::array();
  for (const CollectiveCost& c : r.collectives) out["collectives"].push_back(collective_json(c));
  if (!is_training(report)) return;
  if (Json sent = sent_json(*report.inputs, r.stage); !sent.empty()) out["sent_otherwise"] = std::move(sent);
}

void add_operations(Json& out, const StepResult& r) {
  out["operations"] = passes_json(r.operations);
  if (!r.linear_operations.empty()) out["linear_operations"] = passes_json(r.linear_operations);
  if (!r.feed_forward_operations.empty()) out["feed_forward_operations"] = passes_json(r.feed_forward_operations);
}

void add_warnings(Json& out, const StepReport& report) {
  out["warnings"] = report.result.warnings;
  for (std::string& text : machine_warnings(report.machine)) out["warnings"].push_back(std::move(text));
  for (const std::string& warning : report.said) out["warnings"].push_back(warning);
}

void add_inputs(Json& out, const StepReport& report) {
  out["inputs"] = report.inputs ? inputs_json(*report.inputs, report.collectives, report.sharing) : Json();
  if (!report.faults) return;
  const MachineState& machine = report.faults->machine;
  out["inputs"]["faults"] = faults_json(machine.faults);
  if (machine.placement.any()) out["inputs"]["placement"] = placement_json(machine.placement);
}

Json document_json(const StepReport& report) {
  const StepResult& r = report.result;
  Json out = document("collcast.step.v1");
  add_head(out, report);
  add_rates(out, report);
  if (r.inference) add_inference(out, *r.inference, *report.inputs);
  add_interval(out, report);
  if (report.measured) out["measured"] = measured_json(*report.measured, r.step);
  out["layer"] = layer_times_json(r.layer, is_training(report));
  out["breakdown_stage"] = report.inputs ? Json(r.stage.stage) : Json();
  out["breakdown"] = breakdown_json(r.breakdown);
  out["slowdown"] = slowdown_json(r.slowdown, is_training(report));
  if (const auto waits = host_waits(report)) out["host_waits_s"] = waits->count();
  add_memory(out, report);
  add_communication(out, report);
  out["critical_path"] = path_json(r.critical_path);
  add_operations(out, r);
  if (report.faults) out["faults"] = effect_json(*report.faults, r);
  if (r.classes > 0) out["folding"] = {{"ranks", r.ranks}, {"classes", r.classes}};
  if (report.unfolded) out["unfolded"] = unfolded_json(*report.unfolded, r);
  out["gates"] = gates_json(report.gates);
  out["partial"] = report.partial;
  add_warnings(out, report);
  add_inputs(out, report);
  return out;
}

}  // namespace

std::string json(const StepReport& report) { return text(document_json(report)); }

Table csv(const StepReport& report) { return csv_values(document_json(report)); }

}  // namespace collcast
