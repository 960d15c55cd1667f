// collcast.validate.v1 of measured servers: how far forecasts of TTFT and TPOT are off.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/report/inference_document.hpp"
#include "report/document.hpp"
#include "report/error_summary.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

struct Grouping {
  const char* by;
  std::string ServerFacts::*fact;
};
const std::array<Grouping, 6> groupings{{{"backend", &ServerFacts::backend},
                                         {"system", &ServerFacts::system},
                                         {"mode", &ServerFacts::mode},
                                         {"precision", &ServerFacts::precision},
                                         {"model", &ServerFacts::model},
                                         {"source", &ServerFacts::source_id}}};

std::string named(const std::string& name) { return name.empty() ? "not stated" : name; }

template <class Belongs>
InferenceSummaryRow summed(const InferenceReport& report, const Belongs& belongs) {
  InferenceSummaryRow out;
  std::vector<double> ttft, tpot, calibrated_ttft, calibrated_tpot;
  for (const InferenceDeviation& row : report.rows) {
    if (!belongs(row.of)) continue;
    ++out.rows;
    if (const auto ratio = row.ttft_ratio()) {
      ttft.push_back(*ratio);
      calibrated_ttft.push_back(row.calibrated_ttft_ratio().value_or(*ratio));
    }
    if (const auto ratio = row.tpot_ratio()) {
      tpot.push_back(*ratio);
      calibrated_tpot.push_back(row.calibrated_tpot_ratio().value_or(*ratio));
    }
  }
  for (const UnscoredServer& row : report.unscored) out.unscored += belongs(row.of) ? 1 : 0;
  out.ttft = error_summary(std::move(ttft));
  out.tpot = error_summary(std::move(tpot));
  out.calibrated_ttft = error_summary(std::move(calibrated_ttft));
  out.calibrated_tpot = error_summary(std::move(calibrated_tpot));
  return out;
}

Json seconds(const std::optional<Seconds>& time) { return time ? Json(time->count()) : Json(); }
Json ape(const std::optional<double>& ratio) { return ratio ? Json(std::abs(*ratio - 1)) : Json(); }

Json facts_json(const ServerFacts& of) {
  return {{"row_id", of.row_id}, {"source_id", of.source_id}, {"backend", of.backend},    {"system", of.system},
          {"model", of.model},   {"mode", of.mode},           {"precision", of.precision}};
}

Json row_json(const InferenceDeviation& row) {
  Json out = facts_json(row.of);
  out["topology"] = row.topology;
  out["layout"] = row.layout;
  // A row's time, as in the documents of other rows, is that of a token.
  out["measured_s"] = seconds(row.measured_tpot);
  out["predicted_s"] = row.predicted_tpot.count();
  out["ape"] = ape(row.tpot_ratio());
  out["calibrated_s"] = seconds(row.calibrated_tpot());
  out["calibrated_ape"] = ape(row.calibrated_tpot_ratio());
  out["measured_ttft_s"] = seconds(row.measured_ttft);
  out["predicted_ttft_s"] = seconds(row.predicted_ttft);
  out["ttft_ape"] = ape(row.ttft_ratio());
  out["calibrated_ttft_s"] = seconds(row.calibrated_ttft());
  out["calibrated_ttft_ape"] = ape(row.calibrated_ttft_ratio());
  out["assumed"] = row.assumed;
  return out;
}

Json document_json(const InferenceReport& report) {
  Json out = document("collcast.validate.v1");
  out["library"] = report.library;
  out["method"] = "estimate";
  Json measured = Json::array();
  for (const InferenceDeviation& row : report.rows)
    measured.push_back({row.of.row_id, seconds(row.measured_ttft), seconds(row.measured_tpot)});
  for (const std::string& line : report.settings) measured.push_back(line);
  out["inputs"] = {{"method", "estimate"},
                   {"rows", report.rows.size()},
                   {"measured_digest", digest(measured)},
                   {"machines", Json::object()}};
  for (const ScoringMachine& machine : report.machines)
    out["inputs"]["machines"][machine.topology] = {{"digest", machine.digest}};
  out["tables"] = Json::array();
  out["rows"] = Json::array();
  for (const InferenceDeviation& row : report.rows) out["rows"].push_back(row_json(row));
  out["summary"] = Json::array();
  for (const InferenceSummaryRow& row : summary(report))
    out["summary"].push_back({{"by", row.by},
                              {"name", row.name},
                              {"n", row.rows},
                              {"unscored", row.unscored},
                              {"ttft", error_json(row.ttft)},
                              {"tpot", error_json(row.tpot)},
                              {"calibrated_ttft", error_json(row.calibrated_ttft)},
                              {"calibrated_tpot", error_json(row.calibrated_tpot)}});
  out["ttft_remainders"] = Json::array();
  for (const TtftRemainder& one : report.remainders)
    out["ttft_remainders"].push_back({{"backend", one.backend}, {"n", one.rows}, {"remainder_s", one.time.count()}});
  out["partial"] = report.not_reached > 0;
  out["not_reached"] = report.not_reached;
  out["unscored"] = Json::array();
  for (const UnscoredServer& row : report.unscored)
    out["unscored"].push_back({{"id", row.of.row_id}, {"source_id", row.of.source_id}, {"why", row.why}});
  out["budgets"] = Json::array();
  for (const InferenceBudgetOutcome& one : report.budgets)
    out["budgets"].push_back({{"figure", one.budget.figure.empty() ? "all" : one.budget.figure},
                              {"name", one.budget.name.empty() ? "all" : one.budget.name},
                              {"limit_ape", one.budget.limit},
                              {"n", one.n},
                              {"median_ape", one.n > 0 ? Json(one.median_ape) : Json()},
                              {"met", one.met()}});
  out["warnings"] = report.warnings;
  return out;
}

std::string ratio_text(const ErrorSummary& error) {
  return error.n == 0 ? "-" : fmt::format("{:.2f}", error.median_ratio);
}

/// Sources are dozens of dates: in JSON only.
Table summary_table(const InferenceReport& report) {
  Table out{"error: median (mean, 90th percentile)", {{"by", "", Align::left}, {"", "", Align::left}}, {}};
  for (const char* title : {"rows", "not scored", "TTFT", "ratio", "calibrated", "TPOT", "ratio", "calibrated"})
    out.columns.push_back({title, "", Align::right});
  for (const InferenceSummaryRow& row : summary(report)) {
    if (row.by == "source") continue;
    out.rows.push_back({row.by, row.by == "all" ? "" : row.name, fmt::format("{}", row.rows),
                        fmt::format("{}", row.unscored), error_text(row.ttft), ratio_text(row.ttft),
                        error_text(row.calibrated_ttft), error_text(row.tpot), ratio_text(row.tpot),
                        error_text(row.calibrated_tpot)});
  }
  return out;
}

Table remainders_table(const InferenceReport& report) {
  Table out{
      "what a first token takes beyond the forecast (the host, and what else is lacking), fitted to all rows: "
      "inference.first_token_overhead of a scenario",
      {{"backend", "", Align::left}, {"rows", "", Align::right}, {"remainder", "", Align::right}},
      {}};
  for (const TtftRemainder& one : report.remainders)
    out.rows.push_back({one.backend, fmt::format("{}", one.rows), format_seconds(one.time)});
  return out;
}

constexpr std::size_t most_shown = 10;

Table farthest_table(const InferenceReport& report) {
  std::vector<const InferenceDeviation*> rows;
  for (const InferenceDeviation& row : report.rows)
    if (row.tpot_ratio()) rows.push_back(&row);
  const auto off = [](const InferenceDeviation* row) { return std::abs(*row->tpot_ratio() - 1); };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return off(a) > off(b); });
  const bool every = rows.size() <= most_shown;
  rows.resize(std::min(rows.size(), most_shown));
  Table out{every ? "TPOT of every row" : "the rows whose TPOT is farthest off", {}, {}};
  for (const char* title : {"row", "backend", "system", "model", "layout"})
    out.columns.push_back({title, "", Align::left});
  for (const char* title : {"measured", "predicted", "error"}) out.columns.push_back({title, "", Align::right});
  for (const InferenceDeviation* row : rows)
    out.rows.push_back({row->of.row_id, row->of.backend, row->of.system, row->of.model, row->layout,
                        format_seconds(*row->measured_tpot), format_seconds(row->predicted_tpot), percent(off(row))});
  return out;
}

/// The most frequent first.
Table unscored_table(const InferenceReport& report) {
  std::map<std::string, int> counts;
  for (const UnscoredServer& row : report.unscored) ++counts[row.why];
  std::vector<std::pair<std::string, int>> reasons(counts.begin(), counts.end());
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table out{"not scored", {{"rows", "", Align::right}, {"why", "", Align::left}}, {}};
  for (const auto& [why, rows] : reasons) out.rows.push_back({fmt::format("{}", rows), why});
  return out;
}

std::optional<double> ratio_of(const std::optional<Seconds>& predicted, const std::optional<Seconds>& measured) {
  return predicted && measured ? std::optional(*predicted / *measured) : std::nullopt;
}

}  // namespace

std::optional<double> InferenceDeviation::ttft_ratio() const { return ratio_of(predicted_ttft, measured_ttft); }
std::optional<double> InferenceDeviation::tpot_ratio() const { return ratio_of(predicted_tpot, measured_tpot); }
std::optional<Seconds> InferenceDeviation::calibrated_ttft() const {
  return predicted_ttft && ttft_remainder ? std::optional(*predicted_ttft + *ttft_remainder) : std::nullopt;
}
std::optional<Seconds> InferenceDeviation::calibrated_tpot() const {
  return tpot_scale ? std::optional(*tpot_scale * predicted_tpot) : std::nullopt;
}
std::optional<double> InferenceDeviation::calibrated_ttft_ratio() const {
  return ratio_of(calibrated_ttft(), measured_ttft);
}
std::optional<double> InferenceDeviation::calibrated_tpot_ratio() const {
  return ratio_of(calibrated_tpot(), measured_tpot);
}

std::vector<InferenceSummaryRow> summary(const InferenceReport& report) {
  std::vector<InferenceSummaryRow> out;
  for (const Grouping& grouping : groupings) {
    std::set<std::string> names;
    for (const InferenceDeviation& row : report.rows) names.insert(row.of.*(grouping.fact));
    for (const UnscoredServer& row : report.unscored) names.insert(row.of.*(grouping.fact));
    for (const std::string& name : names) {
      out.push_back(summed(report, [&](const ServerFacts& of) { return of.*(grouping.fact) == name; }));
      out.back().by = grouping.by;
      out.back().name = named(name);
    }
  }
  out.push_back(summed(report, [](const ServerFacts&) { return true; }));
  out.back().by = out.back().name = "all";
  return out;
}

std::vector<InferenceBudgetOutcome> outcomes(const InferenceReport& report,
                                             const std::vector<InferenceBudget>& budgets) {
  const std::vector<InferenceSummaryRow> rows = summary(report);
  std::vector<InferenceBudgetOutcome> out;
  for (const InferenceBudget& budget : budgets) {
    InferenceBudgetOutcome outcome{budget, 0, 0};
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const InferenceSummaryRow& r) {
      return budget.name.empty() ? r.by == "all" : r.by != "all" && r.name == budget.name;
    });
    const auto take = [&](const char* figure, const ErrorSummary& error) {
      if (!budget.figure.empty() && budget.figure != figure) return;
      outcome.n += error.n;
      outcome.median_ape = std::max(outcome.median_ape, error.median_ape);
    };
    if (row != rows.end()) {
      take("ttft", row->ttft);
      take("tpot", row->tpot);
    }
    out.push_back(outcome);
  }
  return out;
}

std::string budget_text(const InferenceBudgetOutcome& outcome) {
  const InferenceBudget& budget = outcome.budget;
  const std::string what =
      fmt::format("{}.{}", budget.figure.empty() ? "all" : budget.figure, budget.name.empty() ? "all" : budget.name);
  return budget_text(what, outcome.n, outcome.median_ape, budget.limit);
}

std::string json(const InferenceReport& report) { return text(document_json(report)); }

Table csv(const InferenceReport& report) {
  Json rows = Json::array();
  for (const InferenceDeviation& row : report.rows) {
    rows.push_back(row_json(row));
    rows.back()["assumed"] = fmt::format("{}", fmt::join(row.assumed, "; "));
    rows.back()["why_unscored"] = nullptr;
  }
  Json none = without_values(row_json({}));
  for (const UnscoredServer& row : report.unscored) {
    none.update(facts_json(row.of));
    none["why_unscored"] = row.why;
    rows.push_back(none);
  }
  return csv_rows(rows);
}

Page page(const InferenceReport& report) {
  Page out;
  out.title =
      fmt::format("{} of {} scored, library {}", report.rows.size(),
                  counted(static_cast<std::int64_t>(report.rows.size() + report.unscored.size()), "measured server"),
                  report.library);
  for (const InferenceBudgetOutcome& budget : report.budgets)
    out.blocks.push_back(
        Paragraph{budget_text(budget), budget.met() ? Paragraph::Tone::plain : Paragraph::Tone::warning});
  out.blocks.push_back(summary_table(report));
  if (!report.remainders.empty()) out.blocks.push_back(remainders_table(report));
  out.blocks.push_back(farthest_table(report));
  if (!report.unscored.empty()) out.blocks.push_back(unscored_table(report));
  return out;
}

}  // namespace collcast
