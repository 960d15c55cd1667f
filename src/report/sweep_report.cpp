// collcast.sweep.v1: the page and the document.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "collcast/base/units.hpp"
#include "collcast/report/sweep_document.hpp"
#include "report/document.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

using Row = SweepReport::Row;

const char* const variants = "what_if";

bool serves(const Row& row) { return row.step && row.step->result.inference; }
bool serves_a_run(const Row& row) { return serves(row) && row.step->result.inference->load; }
bool trains(const Row& row) { return row.step && row.step->inputs && !serves(row); }
bool fits(const Row& row) { return !row.step->inputs || row.step->result.memory.fits(); }

std::string value_of(const SweepReport& report, const Row& row, std::size_t axis) {
  const std::string& value = row.values[axis];
  return value.empty() && report.axes[axis] == variants ? "as it is" : value;
}

/// "layout.tp=4, layout.pp=2"
std::string name_of(const SweepReport& report, const Row& row) {
  std::string out;
  for (std::size_t i = 0; i < report.axes.size(); ++i)
    out += fmt::format("{}{}={}", i == 0 ? "" : ", ", report.axes[i], value_of(report, row, i));
  return out;
}

std::string share(Seconds part, Seconds whole) {
  return whole > Seconds{} ? fmt::format("{:.1f}%", 100 * (part / whole)) : "-";
}

Seconds exposed(const Breakdown& b) { return b.tp_exposed + b.pp_exposed + b.cp_exposed + b.ep_exposed + b.dp_exposed; }

/// Of a kind of step: what a column is called, and what it says of a row.
struct Told {
  const char* name;
  std::string (*cell)(const Row&);
};

int gpus(const Row& row) { return row.step->inputs ? row.step->inputs->layout.world() : 0; }
bool of_other_sizes(const SweepReport& report) {
  std::set<int> sizes;
  for (const Row& row : report.rows)
    if (row.step) sizes.insert(gpus(row));
  return sizes.size() > 1;
}

/// With a mark where there was no time for the simulation.
std::string time_of(const Row& row, Seconds time) { return format_seconds(time) + (row.step->partial ? " *" : ""); }
std::string step_time(const Row& row) { return time_of(row, row.step->result.step); }
std::string tpot(const Row& row) { return time_of(row, row.step->result.inference->decode.time()); }
std::string tokens(const Row& row) { return figure_text(row.step->result.inference->tokens_per_s); }
std::string per_gpu(const Row& row) { return figure_text(row.step->result.tokens_per_s_per_gpu); }
std::string peak(const Row& row) {
  return fmt::format("{:.2f}", static_cast<double>(row.step->result.memory.peak().value()) / (1 << 30));
}
std::string of_the_gpu(const Row& row) {
  const MemoryUse& memory = row.step->result.memory;
  const double used = static_cast<double>(memory.peak().value()) / static_cast<double>(memory.capacity.value());
  return fmt::format("{:.0f}%{}", 100 * used, fits(row) ? "" : " !");
}

const std::vector<Told> training_columns{
    {"step", step_time},
    {"tokens/s per GPU", per_gpu},
    {"MFU", [](const Row& row) { return fmt::format("{:.1f}%", 100 * row.step->result.mfu); }},
    {"communication", [](const Row& row) { return share(exposed(row.step->result.breakdown), row.step->result.step); }},
    {"bubble", [](const Row& row) { return share(row.step->result.breakdown.bubble, row.step->result.step); }},
    {"peak [GiB]", peak},
    {"of the GPU", of_the_gpu}};
const std::vector<Told> serving_columns{
    {"TTFT", [](const Row& row) { return format_seconds(row.step->result.inference->prefill.time()); }},
    {"TPOT", tpot},
    {"output tokens/s", tokens},
    {"per GPU", per_gpu},
    {"communication",
     [](const Row& row) {
       const ServingPhase& decode = row.step->result.inference->decode;
       return share(exposed(decode.breakdown), decode.time());
     }},
    {"bubble",
     [](const Row& row) {
       const ServingPhase& decode = row.step->result.inference->decode;
       return share(decode.breakdown.bubble, decode.time());
     }},
    {"peak [GiB]", peak},
    {"of the GPU", of_the_gpu}};
/// With the 99th percentile of a run of requests behind each mean.
std::string percentile(const Row& row, TimeSpread LoadTimes::*times) {
  const std::optional<LoadTimes>& load = row.step->result.inference->load;
  return load ? time_of(row, ((*load).*times).p99) : std::string();
}
std::vector<Told> with_percentiles(std::vector<Told> columns) {
  columns.insert(columns.begin() + 2, {"TPOT p99", [](const Row& row) { return percentile(row, &LoadTimes::tpot); }});
  columns.insert(columns.begin() + 1, {"TTFT p99", [](const Row& row) { return percentile(row, &LoadTimes::ttft); }});
  return columns;
}
const std::vector<Told> load_columns = with_percentiles(serving_columns);
const std::vector<Told> task_columns{{"step", step_time}};

const std::vector<Told>& columns(const SweepReport& report) {
  const auto any = [&](bool (*is)(const Row&)) { return std::ranges::any_of(report.rows, is); };
  return any(serves_a_run) ? load_columns
         : any(serves)     ? serving_columns
         : any(trains)     ? training_columns
                           : task_columns;
}

std::vector<Column> axis_columns(const SweepReport& report) {
  std::vector<Column> out;
  for (const std::string& axis : report.axes)
    out.push_back({axis == variants ? "what if" : axis, "", axis == variants ? Align::left : Align::right});
  return out;
}

std::vector<std::string> cells(const SweepReport& report, const Row& row) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < report.axes.size(); ++i) out.push_back(value_of(report, row, i));
  return out;
}

/// Variants alone are told beside the scenario as it is, the first row.
bool beside_the_first(const SweepReport& report) {
  return report.axes == std::vector<std::string>{variants} && report.rows.front().step && !serves(report.rows.front());
}

Table rows_table(const SweepReport& report) {
  Table out{{}, axis_columns(report), {}};
  const bool beside = beside_the_first(report), sizes = of_other_sizes(report);
  if (sizes) out.columns.push_back({"GPUs", "", Align::right});
  for (const Told& column : columns(report)) {
    out.columns.push_back({column.name, "", Align::right});
    if (beside && std::string_view(column.name) == "step") out.columns.push_back({"difference", "", Align::right});
  }
  for (const Row& row : report.rows) {
    if (!row.step) continue;
    std::vector<std::string> line = cells(report, row);
    if (sizes) line.push_back(fmt::format("{}", gpus(row)));
    for (const Told& column : columns(report)) {
      line.push_back(column.cell(row));
      if (beside && std::string_view(column.name) == "step")
        line.push_back(&row == &report.rows.front() ? ""
                                                    : relative_text(report.rows.front().step->result.step.count(),
                                                                    row.step->result.step.count()));
    }
    out.rows.push_back(std::move(line));
  }
  return out;
}

/// Each reason once, with the values that all its points have, and how many these are.
Table refused_table(const SweepReport& report) {
  Table out{"what cannot be", axis_columns(report), {}};
  out.columns.push_back({"points", "", Align::right});
  out.columns.push_back({"why", "", Align::left});
  std::map<std::string, std::vector<const Row*>> by_reason;
  std::vector<std::string> reasons;
  for (const Row& row : report.rows) {
    if (row.step) continue;
    if (by_reason[row.reason].empty()) reasons.push_back(row.reason);
    by_reason[row.reason].push_back(&row);
  }
  for (const std::string& reason : reasons) {
    const std::vector<const Row*>& points = by_reason[reason];
    std::vector<std::string> line = cells(report, *points.front());
    for (std::size_t i = 0; i < line.size(); ++i)
      if (std::ranges::any_of(points, [&](const Row* row) { return row->values[i] != points.front()->values[i]; }))
        line[i] = "...";
    line.push_back(fmt::format("{}", points.size()));
    line.push_back(reason);
    out.rows.push_back(std::move(line));
  }
  return out;
}

/// Whether rows can be held against each other: the same model does as much for each request, or as many tokens.
bool is_alike(const SweepReport& report, bool (*same)(const StepInputs&, const StepInputs&)) {
  const Row* first = nullptr;
  for (const Row& row : report.rows) {
    if (!row.step) continue;
    if (first == nullptr) first = &row;
    if (row.step->inputs.has_value() != first->step->inputs.has_value()) return false;
    if (row.step->inputs && !same(*first->step->inputs, *row.step->inputs)) return false;
  }
  return true;
}

bool same_model(const StepInputs& a, const StepInputs& b) {
  return a.model.name == b.model.name && parameter_count(a.model) == parameter_count(b.model) &&
         a.model.layers == b.model.layers && a.batch.sequence == b.batch.sequence;
}
bool same_requests(const StepInputs& a, const StepInputs& b) {
  return a.serving && b.serving && a.serving->prompt_tokens == b.serving->prompt_tokens &&
         a.serving->output_tokens == b.serving->output_tokens;
}
bool same_work(const StepInputs& a, const StepInputs& b) {
  return a.batch.global_batch == b.batch.global_batch && a.layout.world() == b.layout.world();
}

/// "shortest step: layout.tp=8 (17.2 s)": the row that fits, wholly worked out, with the least of something, and how
/// many are as good; empty where none fits or all are alike.
std::string best_row(const SweepReport& report, const char* what, double (*of)(const StepResult&),
                     std::string (*shown)(const Row&)) {
  constexpr double tie = 1e-6;
  std::vector<const Row*> able;
  for (const Row& row : report.rows)
    if (row.step && fits(row) && !row.step->partial) able.push_back(&row);
  if (able.empty()) return {};
  const auto value = [&](const Row* row) { return of(row->step->result); };
  const Row* best = *std::ranges::min_element(able, {}, value);
  const auto ties = static_cast<std::size_t>(std::ranges::count_if(
      able, [&](const Row* row) { return value(row) - value(best) <= tie * std::abs(value(best)); }));
  if (ties == able.size()) return {};
  std::string out = fmt::format("{}: {} ({})", what, name_of(report, *best), shown(*best));
  if (ties > 1) out += fmt::format(" and {} more", ties - 1);
  return out;
}

double least_tokens(const StepResult& r) { return -r.tokens_per_s_per_gpu; }

std::string best_text(const SweepReport& report) {
  const bool served = std::ranges::any_of(report.rows, serves);
  if (!is_alike(report, same_model) || (served && !is_alike(report, same_requests))) return {};
  std::vector<std::string> parts;
  const auto add = [&](std::string part) {
    if (!part.empty()) parts.push_back(std::move(part));
  };
  if (served) {
    if (of_other_sizes(report))
      add(best_row(report, "most tokens/s per GPU", least_tokens, per_gpu));
    else
      add(best_row(
          report, "most tokens/s", [](const StepResult& r) { return -r.inference->tokens_per_s; }, tokens));
    add(best_row(
        report, "shortest TPOT", [](const StepResult& r) { return r.inference->decode.time().count(); }, tpot));
  } else if (is_alike(report, same_work)) {
    add(best_row(
        report, "shortest step", [](const StepResult& r) { return r.step.count(); }, step_time));
  } else {
    add(best_row(report, "most tokens/s per GPU", least_tokens, per_gpu));
  }
  if (parts.empty()) return {};
  const bool has_memory = std::ranges::any_of(report.rows, [](const Row& row) { return row.step && row.step->inputs; });
  return fmt::format("{}{}", has_memory ? "of those that fit, " : "", fmt::join(parts, "; "));
}

/// What all rows say alike; nothing where they differ.
std::optional<std::string> common(const SweepReport& report, std::string (*of)(const StepReport&)) {
  std::set<std::string> all;
  for (const Row& row : report.rows)
    if (row.step) all.insert(of(*row.step));
  return all.size() == 1 ? std::optional(*all.begin()) : std::nullopt;
}
/// What both say alike, key by key; null where nothing is.
Json alike(const Json& a, const Json& b) {
  if (a == b) return a;
  Json out;
  if (!a.is_object() || !b.is_object()) return out;
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key)) continue;
    if (Json same = alike(value, b[key]); value == b[key] || !same.is_null()) out[key] = std::move(same);
  }
  return out;
}

/// Inputs that every point has alike; null of tasks.
Json common_inputs(const SweepReport& report) {
  std::optional<Json> out;
  for (const Row& row : report.rows) {
    if (!row.step || !row.step->inputs) continue;
    Json its = inputs_json(*row.step->inputs, row.step->collectives, row.step->sharing);
    out = out ? alike(*out, its) : std::move(its);
  }
  return out.value_or(Json());
}

std::string library_of(const StepReport& step) { return step.inputs ? step.machine.library : std::string(); }
std::string machine_of(const StepReport& step) { return machine(step.machine).dump(); }
std::string where_text(const StepReport& step) {
  const int gpus = step.inputs ? step.inputs->layout.world() : step.machine.ranks;
  const std::string library = library_of(step);
  return fmt::format("on {}{}", gpus_text(gpus, step.machine), library.empty() ? "" : ", library " + library);
}

Json row_json(const SweepReport& report, const Row& row) {
  Json out{{"values", Json::object()}};
  for (std::size_t i = 0; i < report.axes.size(); ++i)
    out["values"][report.axes[i]] = row.values[i].empty() ? Json() : Json(row.values[i]);
  for (const char* key :
       {"topology", "machine_digest", "library", "inputs_digest", "step_s", "estimate_s", "simulate_s", "ttft_s",
        "tpot_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "gpus", "breakdown", "memory", "load"})
    out[key] = nullptr;
  out["partial"] = row.step && row.step->partial;
  out["warnings"] = row.step ? row.step->result.warnings : std::vector<std::string>{};
  out["reason"] = row.step ? Json() : Json(row.reason);
  if (!row.step) return out;
  const StepReport& step = *row.step;
  const StepResult& r = step.result;
  out["topology"] = step.machine.topology;
  out["machine_digest"] = step.machine.digest;
  out["step_s"] = r.step.count();
  out["estimate_s"] = r.estimate.count();
  out["simulate_s"] = number(r.simulate);
  out["breakdown"] = breakdown_json(r.inference ? r.inference->decode.breakdown : r.breakdown);
  if (!step.inputs) return out;
  out["library"] = step.machine.library;
  out["inputs_digest"] = digest(inputs_json(*step.inputs, step.collectives, step.sharing));
  out["tokens_per_s_per_gpu"] = r.tokens_per_s_per_gpu;
  out["gpus"] = gpus(row);
  out["memory"] = memory_json(r.memory);
  if (!r.inference) {
    out["mfu"] = r.mfu;
    return out;
  }
  out["ttft_s"] = r.inference->prefill.time().count();
  out["tpot_s"] = r.inference->decode.time().count();
  out["tokens_per_s"] = r.inference->tokens_per_s;
  if (r.inference->load) out["load"] = load_times_json(*r.inference->load);
  return out;
}

Json document_json(const SweepReport& report) {
  Json out = document("collcast.sweep.v1");
  out["scenario"] = report.scenario;
  out["title"] = report.title;
  out["axes"] = report.axes;
  const auto first = std::ranges::find_if(report.rows, [](const Row& row) { return row.step.has_value(); });
  out["machine"] = first != report.rows.end() && common(report, machine_of) ? machine(first->step->machine) : Json();
  const std::optional<std::string> library = common(report, library_of);
  out["library"] = library && !library->empty() ? Json(*library) : Json();
  out["rows"] = Json::array();
  for (const Row& row : report.rows) out["rows"].push_back(row_json(report, row));
  out["partial"] = report.partial;
  out["warnings"] = report.said;
  out["inputs"] = common_inputs(report);
  return out;
}

}  // namespace

std::string json(const SweepReport& report) { return text(document_json(report)); }

Table csv(const SweepReport& report) {
  Json rows = Json::array();
  const Json document = document_json(report), parts = breakdown_json({}), load = load_times_json({});
  for (const Json& from : document["rows"]) {
    Json row = Json::object();
    for (const auto& [path, value] : from["values"].items())
      row[csv_name(path)] = value.is_null() ? Json() : Json(csv_name(value.get<std::string>()));
    for (const char* figure : {"topology", "library", "step_s", "estimate_s", "simulate_s", "ttft_s", "tpot_s",
                               "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "gpus", "partial", "reason"})
      row[figure] = from[figure];
    const auto add = [&](const char* part, const std::string& key) {
      row[fmt::format("{}.{}", part, key)] = from[part].is_null() ? Json() : from[part][key];
    };
    for (const auto& [key, unused] : parts.items()) add("breakdown", key);
    for (const char* key : {"peak_bytes", "capacity_bytes"}) add("memory", key);
    for (const char* times : {"ttft", "tpot"})
      for (const auto& [key, unused] : load[times].items())
        row[fmt::format("load.{}.{}", times, key)] = from["load"].is_null() ? Json() : from["load"][times][key];
    rows.push_back(std::move(row));
  }
  return csv_rows(rows);
}

Page page(const SweepReport& report) {
  Page out;
  out.title = report.title.empty() ? report.scenario : fmt::format("{}: {}", report.scenario, report.title);
  const auto note = [&](const char* text) { out.blocks.push_back(Paragraph{text, Paragraph::Tone::note}); };
  const auto any = [&](bool (*is)(const Row&)) { return std::ranges::any_of(report.rows, is); };
  if (std::optional<std::string> where = common(report, where_text))
    out.blocks.push_back(Paragraph{std::move(*where), Paragraph::Tone::plain});
  Table ran = rows_table(report), refused = refused_table(report);
  if (!ran.rows.empty()) out.blocks.push_back(std::move(ran));
  if (std::string best = best_text(report); !best.empty())
    out.blocks.push_back(Paragraph{std::move(best), Paragraph::Tone::plain});
  if (!refused.rows.empty()) out.blocks.push_back(std::move(refused));
  if (any([](const Row& row) { return row.step && !fits(row); })) note("!: more than the GPU has");
  if (any([](const Row& row) { return row.step && row.step->partial; })) note("*: the closed form alone");
  if (any(serves) || any(trains)) note("communication: what nothing hides, as a share of the step, or of TPOT");
  note(
      "each row is what 'collcast step' says with --set of its values (--what-if of its variant), which has all its "
      "parts, warnings and limits");
  return out;
}

}  // namespace collcast
