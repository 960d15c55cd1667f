#include "collcast/report/overview.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/document.hpp"
#include "report/junit.hpp"
#include "report/metrics.hpp"
#include "report/overview_calibrations.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

const SavedFigure* figure_of(const SavedRow& row, std::string_view name) {
  const auto found =
      std::find_if(row.figures.begin(), row.figures.end(), [&](const SavedFigure& f) { return f.name == name; });
  return found == row.figures.end() || !found->value ? nullptr : &*found;
}

std::string shown_figure(const SavedRow& row, std::string_view name) {
  const SavedFigure* figure = figure_of(row, name);
  return figure == nullptr ? "-" : value_text(*figure->value, unit_of(name));
}

bool is_too_large(const SavedRow& row) {
  const SavedFigure* over = figure_of(row, "over_capacity_bytes");
  return over != nullptr && *over->value > 0;
}

/// "93.93 GiB !": more than the GPU has.
std::string shown_peak(const SavedRow& row) {
  return shown_figure(row, "peak_bytes") + (is_too_large(row) ? " !" : "");
}

std::string fact_of(const SavedResult& result, std::string_view name) {
  for (const SavedFact& fact : result.facts) {
    if (fact.name == name) return fact.value;
  }
  return {};
}

/// "dgx-h100", or "dgx-h100, calibrated".
std::string machine_of(const SavedResult& result) {
  return fact_of(result, "machine.topology") + (fact_of(result, "machine.calibrated") == "true" ? ", calibrated" : "");
}

/// How its collectives run; "-" where it has none, or is too old to say.
std::string library_of(const SavedResult& result) {
  const std::string library = fact_of(result, "library");
  return library.empty() ? "-" : library;
}

std::string verdict(const Overview& o) {
  const std::string results = counted(static_cast<std::int64_t>(o.items.size()), "result");
  const auto gates = static_cast<std::int64_t>(o.gates());
  if (gates == 0) return fmt::format("report on {}: no gates", results);
  if (o.broken() == 0) return fmt::format("report passed: {} on {}, none broken", counted(gates, "gate"), results);
  return fmt::format("report FAILED: {} of {} broken", o.broken(), counted(gates, "gate"));
}

/// Columns that no row has a value in.
void leave_out_empty(Table& table) {
  for (std::size_t i = table.columns.size(); i-- > 1;) {
    const bool any = std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row[i] != "-"; });
    if (any) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
}

/// How a layout's step was found; empty: it is no layout, or its document does not say.
std::string method_of(const SavedRow& row) {
  for (const SavedFact& fact : row.facts)
    if (fact.name == "method") return fact.value;
  return {};
}

/// Of a layout that was not simulated beside others that may have been.
bool is_closed_form(const SavedRow& row) { return method_of(row) == "estimate"; }

/// Rows of the same kind of result share a table: a column per figure, a row per row.
Table figures_table(const Overview& o, const std::string& schema, std::string title,
                    const std::vector<std::string>& figures) {
  // The table of what was validated says it of all rows.
  const bool library = schema != "collcast.validate.v1";
  Table out{std::move(title), {{"result", "", Align::left}}, {}};
  if (library) out.columns.push_back({"library", "", Align::left});
  for (const std::string& name : figures) out.columns.push_back({name, "", Align::right});
  for (const OverviewItem& item : o.items) {
    if (item.result.result.schema != schema) continue;
    for (const SavedRow& row : item.result.result.rows) {
      const bool calibrated = fact_of(item.result.result, "machine.calibrated") == "true";
      const std::string result = item.result.name + (calibrated ? ", calibrated" : "");
      std::vector<std::string> cells{row.name.empty() ? result : result + ": " + row.name};
      if (library) cells.push_back(library_of(item.result.result));
      for (const std::string& name : figures)
        cells.push_back(name == "peak_bytes"
                            ? shown_peak(row)
                            : shown_figure(row, name) + (name == "step_s" && is_closed_form(row) ? " *" : ""));
      out.rows.push_back(std::move(cells));
    }
  }
  leave_out_empty(out);
  return out;
}

Table gates_table(const Overview& o) {
  Table out{"gates",
            {{"verdict", "", Align::left},
             {"result", "", Align::left},
             {"figure", "", Align::left},
             {"value", "", Align::right},
             {"limit", "", Align::right},
             {"margin", "", Align::right}},
            {}};
  for (const OverviewItem& item : o.items) {
    for (const SavedGate& g : item.result.result.gates) {
      const Unit unit = unit_of(g.figure);
      const double margin = g.bound == "max" ? g.limit - g.value : g.value - g.limit;
      out.rows.push_back({g.kept ? "kept" : "BROKEN", item.result.name, g.figure, value_text(g.value, unit),
                          fmt::format("{} {}", g.bound, value_text(g.limit, unit)), change_text(margin, unit)});
    }
  }
  std::stable_partition(out.rows.begin(), out.rows.end(), [](const auto& row) { return row.front() == "BROKEN"; });
  return out;
}

/// The parts of `of`, the largest first, as shares: "compute 74%, TP exposed 22%".
std::string shares_text(const SavedRow& row, std::string_view of) {
  std::vector<SavedTerm> terms;
  double sum = 0;
  for (const SavedTerm& term : row.terms) {
    if (term.of != of) continue;
    terms.push_back(term);
    sum += term.value;
  }
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.value > b.value; });
  std::string out;
  for (const SavedTerm& term : terms) {
    if (!(term.value >= 0.005 * sum)) break;
    out += fmt::format("{}{} {:.0f}%", out.empty() ? "" : ", ", term_text(term.name), 100 * term.value / sum);
  }
  return out;
}

Table steps_table(const Overview& o) {
  Table out{"steps",
            {{"result", "", Align::left},
             {"machine", "", Align::left},
             {"library", "", Align::left},
             {"step", "", Align::right},
             {"tokens/s per GPU", "", Align::right},
             {"MFU", "", Align::right},
             {"peak memory", "", Align::right},
             {"where the time goes", "", Align::left}},
            {}};
  // Where something is served, from the last on: columns that training leaves empty.
  const auto served = [](const OverviewItem& item) {
    return item.result.result.schema == "collcast.step.v1" &&
           figure_of(item.result.result.rows.front(), "ttft_s") != nullptr;
  };
  const bool serves = std::any_of(o.items.begin(), o.items.end(), served);
  if (serves)
    out.columns.insert(out.columns.end() - 1,
                       {{"TTFT", "", Align::right}, {"TPOT", "", Align::right}, {"decoding", "", Align::right}});
  for (const OverviewItem& item : o.items) {
    if (item.result.result.schema != "collcast.step.v1") continue;
    const SavedRow& row = item.result.result.rows.front();
    out.rows.push_back({item.result.name, machine_of(item.result.result), library_of(item.result.result),
                        shown_figure(row, "step_s"), shown_figure(row, "tokens_per_s_per_gpu"),
                        shown_figure(row, "mfu"), shown_peak(row), shares_text(row, "step_s")});
    if (serves)
      out.rows.back().insert(out.rows.back().end() - 1, {shown_figure(row, "ttft_s"), shown_figure(row, "tpot_s"),
                                                         shown_figure(row, "tokens_per_s")});
  }
  return out;
}

/// A validation's machines: by name where they are few, else their number; how many of them are calibrated.
std::string machines_text(const SavedResult& result) {
  constexpr std::string_view prefix = "inputs.machines.", suffix = ".calibrated";
  constexpr std::size_t few = 3;
  std::vector<std::string> names;
  std::int64_t calibrated = 0;
  for (const SavedFact& fact : result.facts) {
    if (!fact.name.starts_with(prefix) || !fact.name.ends_with(suffix)) continue;
    const std::string name = fact.name.substr(prefix.size(), fact.name.size() - prefix.size() - suffix.size());
    names.push_back(fact.value == "true" ? name + ", calibrated" : name);
    calibrated += fact.value == "true" ? 1 : 0;
  }
  if (names.empty()) return "-";
  if (names.size() <= few) return fmt::format("{}", fmt::join(names, "; "));
  const auto count = static_cast<std::int64_t>(names.size());
  return calibrated == 0 ? counted(count, "machine")
                         : fmt::format("{}, {} calibrated", counted(count, "machine"), calibrated);
}

/// On what the forecasts of a validation were made; a document of an older version does not say.
Table validations_table(const Overview& o) {
  Table out{"validated on",
            {{"result", "", Align::left},
             {"machine", "", Align::left},
             {"library", "", Align::left},
             {"method", "", Align::left},
             {"tables", "", Align::right}},
            {}};
  for (const OverviewItem& item : o.items) {
    const SavedResult& r = item.result.result;
    if (r.schema != "collcast.validate.v1") continue;
    const auto text = [&](const char* name) {
      std::string fact = fact_of(r, name);
      return fact.empty() ? std::string("-") : fact;
    };
    out.rows.push_back(
        {item.result.name, machines_text(r), text("library"), text("inputs.method"), text("inputs.tables")});
  }
  return out;
}

/// Tables that are far slower than their forecast.
Table faults_table(const Overview& o) {
  Table out{"far slower than forecast at large sizes",
            {{"result", "", Align::left}, {"table", "", Align::left}, {"likeliest cause", "", Align::left}},
            {}};
  for (const OverviewItem& item : o.items)
    for (const SavedFact& fact : item.result.result.facts)
      if (fact.about == SavedFact::About::fault) out.rows.push_back({item.result.name, fact.of, fact.value});
  return out;
}

/// Of the document's machine; of the machines of a calibration or validation with their names, where they are few.
std::string machine_digests(const SavedResult& result) {
  if (const std::string one = fact_of(result, "machine.digest"); !one.empty()) return one;
  constexpr std::size_t few = 3;
  std::vector<const SavedFact*> all;
  for (const SavedFact& fact : result.facts)
    if (fact.about == SavedFact::About::machine_digest) all.push_back(&fact);
  if (all.size() == 1) return all.front()->value;
  if (all.size() > few) return counted(static_cast<std::int64_t>(all.size()), "machine");
  std::vector<std::string> texts;
  for (const SavedFact* fact : all) texts.push_back(fmt::format("{} {}", fact->of, fact->value));
  return fmt::format("{}", fmt::join(texts, "; "));
}

Table provenance_table(const Overview& o) {
  Table out{"provenance",
            {{"result", "", Align::left},
             {"document", "", Align::left},
             {"written by", "", Align::left},
             {"digest of the machine", "", Align::left},
             {"digest of all inputs", "", Align::left}},
            {}};
  for (const OverviewItem& item : o.items) {
    const SavedResult& r = item.result.result;
    out.rows.push_back({item.result.name, r.schema, r.version.empty() ? std::string("-") : "collcast " + r.version,
                        machine_digests(r), r.digest});
  }
  return out;
}

void add_if_any(Table table, Page& out) {
  constexpr std::size_t most = 60;
  if (table.rows.empty()) return;
  const std::size_t rows = table.rows.size();
  table.rows.resize(std::min(rows, most));
  out.blocks.push_back(std::move(table));
  if (rows > most)
    out.blocks.push_back(Paragraph{fmt::format("{} more are in the JSON", rows - most), Paragraph::Tone::note});
}

/// With a note under the table where a layout of it was not simulated.
void add_plans(const Overview& o, Page& out) {
  add_if_any(figures_table(o, "collcast.plan.v1", "plans",
                           {"step_s", "tokens_per_s_per_gpu", "ttft_s", "tpot_s", "mfu", "peak_bytes"}),
             out);
  const auto starred = [](const OverviewItem& item) {
    return std::ranges::any_of(item.result.result.rows, is_closed_form);
  };
  if (std::ranges::any_of(o.items, starred))
    out.blocks.push_back(Paragraph{"* by closed form, not simulated", Paragraph::Tone::plain});
}

/// Under the tables of steps and sweeps.
void add_marks(const Overview& o, Page& out) {
  const auto marked = [](const OverviewItem& item) {
    return std::ranges::any_of(item.result.result.rows, is_too_large);
  };
  if (std::ranges::any_of(o.items, marked))
    out.blocks.push_back(Paragraph{"!: more than the GPU has", Paragraph::Tone::plain});
}

JunitCase gate_case(const SavedGate& g) {
  const Unit unit = unit_of(g.figure);
  const std::string said =
      fmt::format("{} is {}, {} {}", g.figure, value_text(g.value, unit), g.bound, value_text(g.limit, unit));
  return {fmt::format("gate {}", g.figure), g.kept ? std::string() : "broken: " + said, said};
}

}  // namespace

std::size_t Overview::gates() const {
  std::size_t out = 0;
  for (const OverviewItem& item : items) out += item.result.result.gates.size();
  return out;
}

std::size_t Overview::broken() const {
  std::size_t out = 0;
  for (const OverviewItem& item : items) {
    for (const SavedGate& gate : item.result.result.gates) out += gate.kept ? 0U : 1U;
  }
  return out;
}

std::string json(const Overview& o) {
  Json out = document("collcast.report.v1");
  out["kept"] = o.broken() == 0;
  out["partial"] = !o.partial.empty();
  out["gates"] = o.gates();
  out["gates_broken"] = o.broken();
  out["names"] = Json::array();
  out["results"] = Json::array();
  for (const OverviewItem& item : o.items) {
    out["names"].push_back(item.result.name);
    out["results"].push_back(Json::parse(item.result.result.document));
  }
  if (!o.left_out.empty()) out["left_out"] = o.left_out;
  return text(out);
}

Table csv(const Overview& o) {
  Table out;
  for (const char* title : {"result", "schema", "row", "figure", "value", "bound", "limit", "kept", "method"})
    out.columns.push_back({title, {}, Align::left});
  for (const OverviewItem& item : o.items) {
    const SavedResult& result = item.result.result;
    for (const SavedRow& row : result.rows) {
      for (const SavedFigure& figure : row.figures) {
        if (!figure.value) continue;
        const auto gate = std::find_if(result.gates.begin(), result.gates.end(),
                                       [&](const SavedGate& g) { return g.figure == figure.name; });
        const bool has_gate = gate != result.gates.end();
        out.rows.push_back({csv_name(item.result.name), result.schema, csv_name(row.name), figure.name,
                            Json(*figure.value).dump(), has_gate ? gate->bound : "",
                            has_gate ? Json(gate->limit).dump() : "", has_gate ? (gate->kept ? "true" : "false") : "",
                            method_of(row)});
      }
    }
  }
  return out;
}

Page page(const Overview& o) {
  Page out;
  out.title = verdict(o);
  if (!o.partial.empty()) out.blocks.push_back(Paragraph{o.partial, Paragraph::Tone::warning});
  std::set<std::string> said;  // variants share their scenario's title
  for (const OverviewItem& item : o.items) {
    const std::string& title = item.result.result.title;
    if (!title.empty() && said.insert(title).second)
      out.blocks.push_back(Paragraph{fmt::format("{}: {}", item.result.name, title), Paragraph::Tone::plain});
  }
  add_if_any(gates_table(o), out);
  add_if_any(steps_table(o), out);
  add_if_any(figures_table(o, "collcast.sweep.v1", "sweeps",
                           {"step_s", "tokens_per_s_per_gpu", "mfu", "ttft_s", "tpot_s", "tokens_per_s", "peak_bytes"}),
             out);
  add_marks(o, out);
  add_plans(o, out);
  add_if_any(
      figures_table(o, "collcast.collective.v1", "collectives", {"estimate_s", "simulate_s", "busbw_bytes_per_s"}),
      out);
  add_if_any(validations_table(o), out);
  add_if_any(faults_table(o), out);
  add_if_any(figures_table(o, "collcast.validate.v1", "validation", {"mean_ape", "median_ape", "ape"}), out);
  add_if_any(calibrated_range_table(o), out);
  add_if_any(calibrated_parameters_table(o), out);
  add_if_any(figures_table(
                 o, "collcast.calibrate.v1", "error left by calibrations",
                 {"rows", "before.median_ape", "median_ape", "measured_to_predicted_p10", "measured_to_predicted_p90"}),
             out);
  add_if_any(unused_tables_table(o), out);
  for (const OverviewItem& item : o.items) {
    for (const std::string& warning : item.result.result.warnings)
      out.blocks.push_back(Paragraph{fmt::format("{}: {}", item.result.name, warning), Paragraph::Tone::warning});
  }
  for (const std::string& left_out : o.left_out)
    out.blocks.push_back(Paragraph{"left out: " + left_out, Paragraph::Tone::warning});
  add_if_any(provenance_table(o), out);
  return out;
}

std::string junit(const Overview& o) {
  std::vector<JunitSuite> suites;
  for (const OverviewItem& item : o.items) {
    JunitSuite suite{item.result.name, {}};
    for (const SavedGate& gate : item.result.result.gates) suite.cases.push_back(gate_case(gate));
    // A result without gates is there, which is all that is asked of it.
    if (suite.cases.empty()) suite.cases.push_back({"result", {}, "no gates"});
    suites.push_back(std::move(suite));
  }
  if (!o.left_out.empty()) {
    JunitSuite suite{"left out", {}};
    for (const std::string& one : o.left_out) suite.cases.push_back({one.substr(0, one.find(": ")), {}, {}, one});
    suites.push_back(std::move(suite));
  }
  return junit_text("collcast report", suites);
}

}  // namespace collcast
