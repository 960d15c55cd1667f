// collcast.sweep.v1: the page and the document.
#include <fmt/format.h>

#include <algorithm>
#include <map>
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
bool trains(const Row& row) { return row.step && row.step->inputs && !serves(row); }
bool fits(const Row& row) {
  const MemoryUse& memory = row.step->result.memory;
  return !row.step->inputs || memory.peak() <= memory.capacity;
}

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

std::string step_time(const Row& row) { return format_seconds(row.step->result.step); }
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
    {"TPOT", [](const Row& row) { return format_seconds(row.step->result.inference->decode.time()); }},
    {"output tokens/s", [](const Row& row) { return figure_text(row.step->result.inference->tokens_per_s); }},
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
const std::vector<Told> task_columns{{"step", step_time}};

const std::vector<Told>& columns(const SweepReport& report) {
  const auto any = [&](bool (*is)(const Row&)) { return std::ranges::any_of(report.rows, is); };
  return any(serves) ? serving_columns : any(trains) ? training_columns : task_columns;
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

/// The row that fits with the least of something; nothing where none fits.
const Row* least(const SweepReport& report, double (*of)(const StepResult&)) {
  const Row* out = nullptr;
  for (const Row& row : report.rows)
    if (row.step && fits(row) && (out == nullptr || of(row.step->result) < of(out->step->result))) out = &row;
  return out;
}

std::string best_text(const SweepReport& report) {
  if (std::ranges::any_of(report.rows, serves)) {
    const Row* most = least(report, [](const StepResult& r) { return -r.inference->tokens_per_s; });
    const Row* quickest = least(report, [](const StepResult& r) { return r.inference->decode.time().count(); });
    if (most == nullptr) return "none of them fits the GPUs' memory";
    return fmt::format("of those that fit, most tokens/s: {} ({}); shortest TPOT: {} ({})", name_of(report, *most),
                       figure_text(most->step->result.inference->tokens_per_s), name_of(report, *quickest),
                       format_seconds(quickest->step->result.inference->decode.time()));
  }
  if (of_other_sizes(report)) {
    const Row* most = least(report, [](const StepResult& r) { return -r.tokens_per_s_per_gpu; });
    if (most == nullptr) return "none of them fits the GPUs' memory";
    return fmt::format("of those that fit, most tokens/s per GPU: {} ({} on {})", name_of(report, *most),
                       per_gpu(*most), gpus(*most) == 1 ? "1 GPU" : fmt::format("{} GPUs", gpus(*most)));
  }
  const Row* shortest = least(report, [](const StepResult& r) { return r.step.count(); });
  if (shortest == nullptr) return "none of them fits the GPUs' memory";
  return fmt::format("{}shortest step: {} ({})", trains(*shortest) ? "of those that fit, " : "",
                     name_of(report, *shortest), format_seconds(shortest->step->result.step));
}

Json row_json(const SweepReport& report, const Row& row) {
  Json out{{"values", Json::object()}};
  for (std::size_t i = 0; i < report.axes.size(); ++i)
    out["values"][report.axes[i]] = row.values[i].empty() ? Json() : Json(row.values[i]);
  const StepReport blank{};
  const StepReport& step = row.step ? *row.step : blank;
  const StepResult& r = step.result;
  const auto where = [](bool there, Json value) { return there ? value : Json(); };
  const bool ran = row.step.has_value(), has_model = ran && step.inputs;
  out["step_s"] = where(ran, r.step.count());
  out["estimate_s"] = where(ran, r.estimate.count());
  out["simulate_s"] = number(r.simulate);
  out["ttft_s"] = where(serves(row), serves(row) ? r.inference->prefill.time().count() : 0);
  out["tpot_s"] = where(serves(row), serves(row) ? r.inference->decode.time().count() : 0);
  out["tokens_per_s"] = where(serves(row), serves(row) ? r.inference->tokens_per_s : 0);
  out["tokens_per_s_per_gpu"] = where(has_model, r.tokens_per_s_per_gpu);
  out["mfu"] = where(trains(row), r.mfu);
  out["gpus"] = where(has_model, has_model ? step.inputs->layout.world() : 0);
  out["breakdown"] = where(ran, breakdown_json(serves(row) ? r.inference->decode.breakdown : r.breakdown));
  out["memory"] = where(has_model, memory_json(r.memory));
  out["partial"] = step.partial;
  out["warnings"] = r.warnings;
  out["reason"] = where(!ran, row.reason);
  return out;
}

Json document_json(const SweepReport& report) {
  Json out = document("collcast.sweep.v1");
  out["scenario"] = report.scenario;
  out["title"] = report.title;
  out["axes"] = report.axes;
  out["rows"] = Json::array();
  for (const Row& row : report.rows) out["rows"].push_back(row_json(report, row));
  out["partial"] = report.partial;
  out["warnings"] = report.said;
  return out;
}

}  // namespace

std::string json(const SweepReport& report) { return text(document_json(report)); }

Table csv(const SweepReport& report) {
  Json rows = Json::array();
  const Json document = document_json(report), parts = breakdown_json({});
  for (const Json& from : document["rows"]) {
    Json row = Json::object();
    for (const auto& [path, value] : from["values"].items())
      row[csv_name(path)] = value.is_null() ? Json() : Json(csv_name(value.get<std::string>()));
    for (const char* figure : {"step_s", "estimate_s", "simulate_s", "ttft_s", "tpot_s", "tokens_per_s",
                               "tokens_per_s_per_gpu", "mfu", "gpus", "partial", "reason"})
      row[figure] = from[figure];
    const auto add = [&](const char* part, const std::string& key) {
      row[fmt::format("{}.{}", part, key)] = from[part].is_null() ? Json() : from[part][key];
    };
    for (const auto& [key, unused] : parts.items()) add("breakdown", key);
    for (const char* key : {"peak_bytes", "capacity_bytes"}) add("memory", key);
    rows.push_back(std::move(row));
  }
  return csv_rows(rows);
}

Page page(const SweepReport& report) {
  Page out;
  out.title = report.title.empty() ? report.scenario : fmt::format("{}: {}", report.scenario, report.title);
  Table ran = rows_table(report), refused = refused_table(report);
  if (!ran.rows.empty()) {
    out.blocks.push_back(std::move(ran));
    out.blocks.push_back(Paragraph{best_text(report), Paragraph::Tone::plain});
  }
  if (!refused.rows.empty()) out.blocks.push_back(std::move(refused));
  if (std::ranges::any_of(report.rows, [](const Row& row) { return row.step && !fits(row); }))
    out.blocks.push_back(Paragraph{"!: more than the GPU has", Paragraph::Tone::note});
  out.blocks.push_back(Paragraph{
      "communication: what nothing hides, as a share of the step, or of TPOT; each row is what 'collcast step' says "
      "with --set of its values (--what-if of its variant), which has all its parts and limits",
      Paragraph::Tone::note});
  return out;
}

}  // namespace collcast
