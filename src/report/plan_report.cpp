// collcast.plan.v1 as JSON and CSV.
#include <fmt/format.h>

#include <algorithm>

#include "collcast/report/plan_document.hpp"
#include "report/document.hpp"
#include "report/faults.hpp"
#include "report/plan_page.hpp"

namespace collcast {

namespace {

/// As design.md names them.
Json layout_json(const LayoutChoice& c, const ParallelLayout& base) {
  return {{"tp", c.tp},
          {"pp", c.pp},
          {"dp", c.dp},
          {"cp", c.cp},
          {"ep", c.ep},
          {"vpp", c.vpp},
          {"microbatch", c.micro_batch},
          {"recompute", to_string(c.recompute)},
          {"zero", c.zero},
          {"sequence_parallel", c.sequence_parallel},
          {"schedule", to_string(schedule_of(c, base.schedule))}};
}

/// The same, what only a server has (recompute, zero, vpp, cp and schedule say nothing of it), and what a layout has of
/// the expert TP and the sharding group that were asked for.
Json layout_json(const LayoutChoice& c, const StepInputs& base) {
  Json out = layout_json(c, base.layout);
  if (base.serving) {
    out["batch"] = c.batch;
    out["microbatches"] = c.batch / c.micro_batch;
  }
  if (base.model.experts.count > 0) out["etp"] = expert_tp_of(c, base);
  if (base.layout.dp_shard > 0) out["dp_shard"] = dp_shard_of(c, base.layout);
  return out;
}

void add_server(Json& out, const PlannedServer& s) {
  out["ttft_s"] = s.times().ttft.count();
  out["tpot_s"] = s.times().tpot.count();
  out["tokens_per_s"] = s.tokens_per_s;
  if (s.ttft_interval) out["ttft_interval"] = range_json(*s.ttft_interval);
  if (s.tpot_interval) out["tpot_interval"] = range_json(*s.tpot_interval);
  out["prefill"] = {{"breakdown", breakdown_json(s.prefill)}};
  out["decode"] = {{"breakdown", breakdown_json(s.decode)}};
  if (s.load) out["load"] = load_times_json(*s.load);
}

Json planned_json(const PlannedLayout& p, const StepInputs& base) {
  Json out = layout_json(p.choice, base);
  out["step_s"] = p.step().count();
  out["method"] = p.simulate ? "simulate" : "estimate";
  out["estimate_s"] = p.estimate.count();
  out["simulate_s"] = number(p.simulate);
  if (p.interval) out["interval"] = range_json(*p.interval);
  out["tokens_per_s_per_gpu"] = p.rates.tokens_per_s_per_gpu;
  out["mfu"] = p.server ? Json() : Json(p.rates.mfu);
  out["hfu"] = p.server ? Json() : Json(p.rates.hfu);
  if (p.server) add_server(out, *p.server);
  out["peak_bytes"] = p.memory.peak().value();
  out["headroom_bytes"] = p.headroom().value();
  out["breakdown"] = breakdown_json(p.breakdown);
  out["memory"] = memory_json(p.memory);
  if (p.described)
    out["described"] = {{"step_s", p.described->step().count()},
                        {"estimate_s", p.described->estimate.count()},
                        {"simulate_s", number(p.described->simulate)},
                        {"slowdown", p.step() / p.described->step()}};
  return out;
}

Json ranked_json(const PlanReport& report) {
  Json out = Json::array();
  const std::size_t count = std::min(report.rows.value_or(report.result.ranked.size()), report.result.ranked.size());
  for (std::size_t i = 0; i < count; ++i) {
    Json row{{"rank", i + 1}};
    row.update(planned_json(report.result.ranked[i], report.inputs.base));
    out.push_back(std::move(row));
  }
  return out;
}

Json why_json(const WhyLayout& w, const StepInputs& base) {
  Json out{{"rank", w.rank > 0 ? Json(w.rank) : Json()}};
  out.update(layout_json(w.choice, base));
  out["objections"] = w.objections;
  out["method"] = "estimate";
  out["estimate_s"] = number(w.step);
  out["breakdown"] = w.step ? breakdown_json(w.breakdown) : Json();
  out["memory"] = w.memory ? memory_json(*w.memory) : Json();
  if (!w.server) return out;
  out["tokens_per_s_per_gpu"] = w.tokens_per_s_per_gpu;
  add_server(out, *w.server);
  return out;
}

Json variant_json(const PlanVariant& v) {
  Json out;
  out["what_if"] = v.name.empty() ? Json() : Json(v.name);
  out["machine"] = machine(v.machine);
  out["gpus"] = v.gpus;
  out["partial"] = v.partial;
  out["evaluated"] = v.evaluated;
  out["feasible"] = v.feasible;
  out["best"] = v.best ? planned_json(*v.best, v.base) : Json();
  return out;
}

Json limits_json(const std::vector<Gate>& limits) {
  Json out = Json::array();
  for (const Gate& gate : limits) {
    out.push_back(
        {{"figure", gate.figure}, {"bound", to_string(gate_figure(gate.figure).bound)}, {"limit", gate.limit}});
  }
  return out;
}

/// A server's inputs, less what is searched in the place of some of them.
Json server_inputs_json(const PlanInputs& in) {
  Json out = inputs_json(in.base, in.collectives, in.engine.sharing);
  for (const char* key : {"tp", "pp", "dp", "cp", "ep", "vpp", "schedule", "sequence_parallel"})
    out["layout"].erase(key);
  for (const char* key : {"batch", "microbatches"}) out["inference"].erase(key);
  // What follows the batch is each layout's own.
  if (const auto& load = in.base.serving->load) {
    if (load->concurrency == 0) out["inference"]["load"].erase("concurrency");
    if (load->concurrency == 0 && load->requests == 0) out["inference"]["load"].erase("requests");
  }
  out["gpus"] = in.gpus;
  out["objective"] = to_string(in.objective);
  out["limits"] = limits_json(in.limits);
  out["search"] = {
      {"tp", in.space.tp},
      {"pp", in.space.pp},
      {"dp", in.space.dp},
      {"batch", in.space.batch.empty() ? std::vector<int>{in.base.serving->batch} : in.space.batch},
      {"micro_batch", in.space.micro_batch},
      {"sequence_parallel", in.space.sequence_parallel.empty() ? std::vector<bool>{in.base.layout.sequence_parallel}
                                                               : in.space.sequence_parallel}};
  if (in.base.model.experts.count > 0 || !in.space.ep.empty()) out["search"]["ep"] = in.space.ep;
  return out;
}

/// The step's inputs, and what was searched in the place of some of them: an empty list is all that fits.
Json inputs_json(const PlanReport& report) {
  const PlanInputs& in = report.inputs;
  if (in.base.serving) return server_inputs_json(in);
  Json out = inputs_json(in.base, in.collectives, in.engine.sharing);
  for (const char* key : {"tp", "pp", "dp", "vpp", "sequence_parallel"}) out["layout"].erase(key);
  for (const char* key : {"micro_batch", "micro_batches"}) out["batch"].erase(key);
  for (const char* key : {"recompute", "zero"}) out["options"].erase(key);
  out["gpus"] = in.gpus;
  Json recompute = Json::array();
  for (const Recompute r : in.space.recompute) recompute.push_back(to_string(r));
  out["search"] = {{"tp", in.space.tp},
                   {"pp", in.space.pp},
                   {"dp", in.space.dp},
                   {"micro_batch", in.space.micro_batch},
                   {"sequence_parallel", in.space.sequence_parallel},
                   {"recompute", recompute},
                   {"zero", in.space.zero},
                   {"vpp", in.space.vpp},
                   {"values", to_string(in.space.values)}};
  const bool all = in.space.values == SearchValues::all;
  if (in.base.layout.cp > 1 || !in.space.cp.empty() || all) out["search"]["cp"] = in.space.cp;
  if (in.base.layout.ep > 1 || !in.space.ep.empty() || (all && in.base.model.experts.count > 0))
    out["search"]["ep"] = in.space.ep;
  if (!in.machine.faults.empty()) out["faults"] = faults_json(in.machine.faults);
  if (in.machine.placement.any()) out["placement"] = placement_json(in.machine.placement);
  return out;
}

/// Which search it was.
void add_search(Json& out, const PlanReport& report) {
  const StepInputs& in = report.inputs.base;
  out["scenario"] = report.scenario;
  out["title"] = report.title;
  out["what_if"] = report.what_if.empty() ? Json() : Json(report.what_if);
  out["machine"] = machine(report.machine);
  out["library"] = report.machine.library;
  out["model"] = {{"name", in.model.name}, {"parameters", parameter_count(in.model)}};
  if (in.serving)
    out["inference"] = {{"prompt_tokens", in.serving->prompt_tokens}, {"output_tokens", in.serving->output_tokens}};
  else
    out["batch"] = {{"sequence", in.batch.sequence}, {"global_batch", in.batch.global_batch}};
  out["order"] = to_string(in.layout.order);
  out["gpus"] = report.inputs.gpus;
  out["notes"] = report.notes;
  out["warnings"] = report.said;
  for (std::string& text : machine_warnings(report.machine)) out["warnings"].push_back(std::move(text));
}

Json rejected_json(const std::vector<Rejection>& rejected) {
  Json out = Json::array();
  for (const Rejection& rejection : rejected) {
    Json one{{"reason", rejection.reason}, {"count", rejection.count}};
    if (rejection.nearest) {
      one["nearest"] = limits_json({rejection.nearest->gate}).front();
      one["nearest"]["value"] = rejection.nearest->value;
    }
    out.push_back(std::move(one));
  }
  return out;
}

Json smallest_json(const PlanResult& r, const StepInputs& base) {
  if (!r.smallest) return {};
  Json out = layout_json(r.smallest->choice, base);
  out["memory"] = memory_json(r.smallest->memory);
  out["peak_is_bound"] = r.smallest->at_most;
  return out;
}

Json would_fit_json(const std::vector<NearMiss>& near_misses, const StepInputs& base) {
  Json out = Json::array();
  for (const NearMiss& miss : near_misses) {
    Json one = layout_json(miss.choice, base);
    one["change"] = to_string(miss.kind);
    one["gpus"] = miss.gpus;
    one["nodes"] = miss.nodes;
    one["peak_bytes"] = miss.memory.peak().value();
    one["peak_is_bound"] = miss.at_most;
    out.push_back(std::move(one));
  }
  return out;
}

/// What servers were held to.
void add_limits(Json& out, const PlanReport& report) {
  out["objective"] = to_string(report.inputs.objective);
  out["limits"] = limits_json(report.inputs.limits);
  out["nearest_to_limits"] = Json();
  if (!report.result.nearest) return;
  out["nearest_to_limits"] = planned_json(report.result.nearest->layout, report.inputs.base);
  out["nearest_to_limits"]["excess"] = report.result.nearest->excess;
}

Json why_json(const Why& why, const StepInputs& base) {
  Json out;
  out["asked"] = why_json(why.asked, base);
  out["best"] = why.best ? why_json(*why.best, base) : Json();
  out["runner_up"] = why.runner_up ? why_json(*why.runner_up, base) : Json();
  out["differences"] = why.sentences;
  return out;
}

Json document_json(const PlanReport& report) {
  const PlanResult& r = report.result;
  const StepInputs& in = report.inputs.base;
  Json out = document("collcast.plan.v1");
  add_search(out, report);
  out["partial"] = r.partial;
  out["evaluated"] = r.evaluated;
  out["feasible"] = r.feasible;
  out["ranked"] = ranked_json(report);
  out["pareto"] = Json::array();
  for (const PlannedLayout& p : r.pareto) out["pareto"].push_back(planned_json(p, in));
  out["rejected"] = rejected_json(r.rejected);
  out["smallest_rejected"] = smallest_json(r, in);
  out["would_fit"] = would_fit_json(r.near_misses, in);
  if (in.serving) add_limits(out, report);
  if (report.why) out["why"] = why_json(*report.why, in);
  if (!report.variants.empty()) {
    out["variants"] = Json::array();
    for (const PlanVariant& v : report.variants) out["variants"].push_back(variant_json(v));
  }
  out["inputs"] = inputs_json(report);
  return out;
}

/// Cells of a row by the dotted paths of their values.
void flatten(const Json& value, const std::string& path, Json& row) {
  if (!value.is_object()) {
    row[path] = value;
    return;
  }
  for (const auto& [key, item] : value.items())
    flatten(item, path.empty() ? key : fmt::format("{}.{}", path, key), row);
}

/// Every column of a plan of training, or of servers, without a value: all that a layout may have, whichever have it.
Json blank_row(const PlanReport& report) {
  Json row{{"part", nullptr},  {"what_if", nullptr}, {"topology", nullptr},
           {"nodes", nullptr}, {"gpus", nullptr},    {"rank", nullptr}};
  const StepInputs& base = report.inputs.base;
  PlannedLayout blank;
  blank.interval.emplace();
  if (base.serving) {
    blank.server.emplace();
    blank.server->load.emplace();
    blank.server->ttft_interval = blank.server->tpot_interval = TimeRange{};
    blank.memory.kv_cache = Bytes(1);
  } else {
    blank.described.emplace();
    blank.memory.gradient_copies = blank.memory.on_host = blank.memory.by_moment.front() = Bytes(1);
  }
  // What only some have keeps its place among them.
  Json values = planned_json(blank, base);
  values.erase("etp");
  values.erase("dp_shard");
  for (const auto& [key, value] : values.items()) {
    if (key == "step_s") row["etp"] = nullptr;
    if (key == "step_s" && !base.serving) row["dp_shard"] = nullptr;
    flatten(value, key, row);
  }
  row["objections"] = nullptr;
  row["partial"] = nullptr;
  for (Json& cell : row) cell = nullptr;
  return row;
}

Json csv_row(const PlanReport& report, std::string_view part, const std::string& what_if, int gpus,
             const MachineSummary& machine, bool partial, const Json& values) {
  Json row = blank_row(report);
  row["partial"] = partial;
  row["part"] = part;
  if (!what_if.empty()) row["what_if"] = what_if;
  row["topology"] = machine.topology;
  row["nodes"] = machine.nodes;
  row["gpus"] = gpus;
  flatten(values, "", row);
  return row;
}

/// The ranking, then what was asked to be compared: the best of each variant, layouts beside the best.
Json csv_table(const PlanReport& report) {
  Json rows = Json::array({blank_row(report)});
  const auto add = [&](std::string_view part, const Json& values) {
    rows.push_back(
        csv_row(report, part, report.what_if, report.inputs.gpus, report.machine, report.result.partial, values));
  };
  for (const Json& row : ranked_json(report)) add("ranked", row);
  for (const PlanVariant& v : report.variants) {
    Json values = Json::object();
    if (v.best) {
      values["rank"] = 1;
      values.update(planned_json(*v.best, v.base));
    } else {
      values["objections"] = none_fits_text(!v.partial, v.evaluated, report.stopped_by);
    }
    rows.push_back(csv_row(report, "variant", v.name, v.gpus, v.machine, v.partial, values));
  }
  const auto add_why = [&](std::string_view part, const WhyLayout& w) {
    Json values = why_json(w, report.inputs.base);
    values["objections"] = w.objections.empty() ? Json() : Json(fmt::format("{}", fmt::join(w.objections, "; ")));
    values["step_s"] = values["estimate_s"];
    for (const char* whole : {"breakdown", "memory"})
      if (values[whole].is_null()) values.erase(whole);
    if (w.memory) values["peak_bytes"] = w.memory->peak().value();
    if (w.memory) values["headroom_bytes"] = (w.memory->capacity - w.memory->peak()).value();
    add(part, values);
  };
  if (report.why) {
    add_why("why.asked", report.why->asked);
    if (report.why->runner_up) add_why("why.runner_up", *report.why->runner_up);
    if (report.why->best && !report.why->of_best()) add_why("why.best", *report.why->best);
  }
  return rows;
}

}  // namespace

std::string json(const PlanReport& report) { return text(document_json(report)); }

Table csv(const PlanReport& report) {
  Table out = csv_rows(csv_table(report));
  out.rows.erase(out.rows.begin());
  return out;
}

}  // namespace collcast
