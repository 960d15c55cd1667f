// collcast.validate.v1 of measured matrix products: how far their forecasts are off.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/report/kernels_document.hpp"
#include "report/document.hpp"
#include "report/error_summary.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::string or_all(const std::string& word) { return word.empty() ? "all" : word; }

KernelSummaryRow summed(const KernelReport& report, const std::string& source_id, const std::string& precision) {
  KernelSummaryRow out{source_id, precision, {}, {}, 0};
  std::vector<double> time, roofline;
  for (const KernelDeviation& row : report.rows) {
    if (!source_id.empty() && row.source_id != source_id) continue;
    if (!precision.empty() && row.precision != precision) continue;
    time.push_back(row.predicted / row.measured);
    roofline.push_back(row.roofline / row.measured);
    out.interpolated += row.interpolated ? 1 : 0;
  }
  out.time = error_summary(std::move(time));
  out.roofline = error_summary(std::move(roofline));
  return out;
}

Json row_json(const KernelDeviation& row) {
  return {{"row_id", row.row_id},
          {"source_id", row.source_id},
          {"precision", row.precision},
          {"pass", row.pass.empty() ? Json() : Json(row.pass)},
          {"topology", row.topology},
          {"m", std::llround(row.m)},
          {"n", std::llround(row.n)},
          {"k", std::llround(row.k)},
          {"measured_s", row.measured.count()},
          {"predicted_s", row.predicted.count()},
          {"ape", std::abs(row.predicted / row.measured - 1)},
          {"roofline_s", row.roofline.count()},
          {"interpolated", row.interpolated}};
}

Json summary_json(const KernelSummaryRow& row) {
  Json out{{"source_id", or_all(row.source_id)}, {"precision", or_all(row.precision)}};
  out.update(error_json(row.time));
  out["interpolated"] = row.interpolated;
  out["roofline"] = error_json(row.roofline);
  return out;
}

Json document_json(const KernelReport& report) {
  Json out = document("collcast.validate.v1");
  Json measured = Json::array();
  for (const KernelDeviation& row : report.rows) measured.push_back({row.m, row.n, row.k, row.measured.count()});
  out["inputs"] = {{"method", "estimate"}, {"rows", report.rows.size()}, {"measured_digest", digest(measured)}};
  out["tables"] = Json::array();
  out["rows"] = Json::array();
  for (const KernelDeviation& row : report.rows) out["rows"].push_back(row_json(row));
  out["summary"] = Json::array();
  for (const KernelSummaryRow& row : summary(report)) out["summary"].push_back(summary_json(row));
  out["foreign"] = Json::array();
  for (const ForeignKernels& of : report.foreign) {
    Json one{{"source_id", of.source_id}, {"kernels", of.kernels}, {"precision", of.precision}};
    one.update(error_json(error_summary(of.time)));
    one["roofline"] = error_json(error_summary(of.roofline));
    one["uncovered"] = of.uncovered;
    out["foreign"].push_back(std::move(one));
  }
  out["unscored"] = Json::array();
  for (const UnscoredKernels& row : report.unscored)
    out["unscored"].push_back({{"id", row.source_id}, {"rows", row.rows}, {"why", row.why}});
  out["budgets"] = Json::array();
  for (const KernelBudgetOutcome& one : report.budgets)
    out["budgets"].push_back({{"source_id", or_all(one.budget.source_id)},
                              {"precision", or_all(one.budget.precision)},
                              {"limit_ape", one.budget.limit},
                              {"n", one.n},
                              {"median_ape", one.n > 0 ? Json(one.median_ape) : Json()},
                              {"met", one.met()}});
  out["warnings"] = report.warnings;
  return out;
}

Table summary_table(const KernelReport& report) {
  Table out{"error by system and precision: median (mean, 90th percentile)",
            {{"system", "", Align::left}, {"precision", "", Align::left}},
            {}};
  for (const char* title : {"products", "time", "ratio", "by roofline alone", "interpolated"})
    out.columns.push_back({title, "", Align::right});
  for (const KernelSummaryRow& row : summary(report))
    out.rows.push_back({or_all(row.source_id), or_all(row.precision), fmt::format("{}", row.time.n),
                        error_text(row.time), fmt::format("{:.2f}", row.time.median_ratio), error_text(row.roofline),
                        fmt::format("{}", row.interpolated)});
  return out;
}

Table foreign_table(const KernelReport& report) {
  Table out{
      "by another GPU's kernel table on the own data sheet, as of a GPU that nobody measured; roofline: of that table",
      {{"system", "", Align::left}, {"kernel table", "", Align::left}, {"precision", "", Align::left}},
      {}};
  for (const char* title : {"products", "not covered", "time", "by roofline alone"})
    out.columns.push_back({title, "", Align::right});
  for (const ForeignKernels& of : report.foreign)
    out.rows.push_back({of.source_id, of.kernels, of.precision, fmt::format("{}", of.time.size()),
                        fmt::format("{}", of.uncovered), error_text(error_summary(of.time)),
                        error_text(error_summary(of.roofline))});
  return out;
}

constexpr std::size_t most_shown = 10;

Table farthest_table(const KernelReport& report) {
  std::vector<const KernelDeviation*> rows;
  for (const KernelDeviation& row : report.rows) rows.push_back(&row);
  const auto off = [](const KernelDeviation* row) { return std::abs(row->predicted / row->measured - 1); };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return off(a) > off(b); });
  rows.resize(std::min(rows.size(), most_shown));
  Table out{rows.size() == report.rows.size() ? "every product" : "the products that are farthest off",
            {{"row", "", Align::left}, {"system", "", Align::left}, {"precision", "", Align::left}},
            {}};
  for (const char* title : {"m x n x k", "measured", "predicted", "error"})
    out.columns.push_back({title, "", Align::right});
  for (const KernelDeviation* row : rows)
    out.rows.push_back({row->row_id, row->source_id, row->precision,
                        fmt::format("{:.0f} x {:.0f} x {:.0f}", row->m, row->n, row->k), format_seconds(row->measured),
                        format_seconds(row->predicted), percent(off(row))});
  return out;
}

}  // namespace

std::vector<KernelSummaryRow> summary(const KernelReport& report) {
  std::set<std::pair<std::string, std::string>> pairs;
  std::set<std::string> precisions;
  for (const KernelDeviation& row : report.rows) {
    pairs.emplace(row.source_id, row.precision);
    precisions.insert(row.precision);
  }
  std::vector<KernelSummaryRow> out;
  for (const auto& [source_id, precision] : pairs) out.push_back(summed(report, source_id, precision));
  for (const std::string& precision : precisions) out.push_back(summed(report, {}, precision));
  out.push_back(summed(report, {}, {}));
  return out;
}

std::vector<KernelBudgetOutcome> outcomes(const KernelReport& report, const std::vector<KernelBudget>& budgets) {
  std::vector<KernelBudgetOutcome> out;
  for (const KernelBudget& budget : budgets) {
    const KernelSummaryRow row = summed(report, budget.source_id, budget.precision);
    out.push_back({budget, row.time.n, row.time.median_ape});
  }
  return out;
}

std::string budget_text(const KernelBudgetOutcome& outcome) {
  const KernelBudget& budget = outcome.budget;
  const std::string what = fmt::format("{}.{}", or_all(budget.source_id), or_all(budget.precision));
  return budget_text(what, outcome.n, outcome.median_ape, budget.limit);
}

std::string json(const KernelReport& report) { return text(document_json(report)); }

Table csv(const KernelReport& report) {
  Json rows = Json::array();
  for (const KernelDeviation& row : report.rows) {
    rows.push_back(row_json(row));
    rows.back()["why_unscored"] = nullptr;
  }
  Json none = without_values(row_json({}));
  for (const UnscoredKernels& group : report.unscored) {
    none["source_id"] = group.source_id;
    none["why_unscored"] = fmt::format("{}: {}", counted(group.rows, "row"), group.why);
    rows.push_back(none);
  }
  return csv_rows(rows);
}

Page page(const KernelReport& report) {
  Page out;
  out.title = fmt::format("{} held against the kernel tables",
                          counted(static_cast<std::int64_t>(report.rows.size()), "measured matrix product"));
  for (const KernelBudgetOutcome& budget : report.budgets)
    out.blocks.push_back(
        Paragraph{budget_text(budget), budget.met() ? Paragraph::Tone::plain : Paragraph::Tone::warning});
  out.blocks.push_back(Paragraph{"each product by measured ones of other (n, k) only, so that none is scored by itself",
                                 Paragraph::Tone::note});
  out.blocks.push_back(summary_table(report));
  if (!report.foreign.empty()) out.blocks.push_back(foreign_table(report));
  out.blocks.push_back(farthest_table(report));
  if (!report.unscored.empty()) {
    Table unscored{"not scored", {{"rows", "", Align::right}, {"of", "", Align::left}, {"why", "", Align::left}}, {}};
    for (const UnscoredKernels& row : report.unscored)
      unscored.rows.push_back({fmt::format("{}", row.rows), row.source_id, row.why});
    out.blocks.push_back(std::move(unscored));
  }
  return out;
}

}  // namespace collcast
