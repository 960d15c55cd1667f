// collcast.measure.v1: what collectives took here, by the slowest rank, with the spread over repetitions. Its CSV
// is the table format of published nccl-tests results, so it has their six columns and no more.
#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/units.hpp"
#include "collcast/report/measured.hpp"
#include "report/document.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

double in_gb_per_s(Bandwidth rate) { return rate.value() / 1e9; }

Json rows_json(const MeasureReport& report) {
  Json rows = Json::array();
  for (const MeasuredRow& row : report.rows) {
    rows.push_back({{"collective", to_string(row.kind)},
                    {"algorithm", row.algorithm.empty() ? Json() : Json(row.algorithm)},
                    {"backend", report.system.backend},
                    {"ranks", report.ranks},
                    {"nodes", report.system.nodes},
                    {"datatype", report.datatype},
                    {"size_bytes", row.size.value()},
                    {"in_place", row.in_place},
                    {"repetitions", row.repetitions},
                    {"time_s", row.mean.count()},
                    {"min_s", row.least.count()},
                    {"median_s", row.median.count()},
                    {"p95_s", row.p95.count()},
                    {"max_s", row.most.count()},
                    {"device_s", number(row.device)},
                    {"algbw_bytes_per_s", algbw(row).value()},
                    {"busbw_bytes_per_s", busbw(row, report.ranks).value()}});
  }
  return rows;
}

Json document_json(const MeasureReport& report) {
  Json out = document("collcast.measure.v1");
  const MeasuredSystem& s = report.system;
  out["system"] = {{"backend", s.backend}, {"library_version", s.library_version},
                   {"device", s.device},   {"driver", s.driver.empty() ? Json() : Json(s.driver)},
                   {"nodes", s.nodes},     {"ranks_per_node", s.ranks_per_node}};
  out["complete"] = report.complete;
  out["rows"] = rows_json(report);
  Json notes = Json::array();
  for (const std::string& note : s.notes) notes.push_back(note);
  for (const std::string& note : report.notes) notes.push_back(note);
  if (const std::string text = unsteady_text(report); !text.empty()) notes.push_back(text);
  out["notes"] = std::move(notes);
  out["problems"] = report.problems;
  return out;
}

bool has_algorithms(const MeasureReport& report) {
  for (const MeasuredRow& row : report.rows) {
    if (!row.algorithm.empty()) return true;
  }
  return false;
}

Table rows_table(const MeasureReport& report) {
  Table out;
  const bool algorithms = has_algorithms(report);
  out.columns = {{"collective", "", Align::left}, {"size", "", Align::right}};
  if (algorithms) out.columns.push_back({"algorithm", "", Align::left});
  out.columns.insert(out.columns.end(), {{"in place", "", Align::left},
                                         {"time", "", Align::right},
                                         {"min", "", Align::right},
                                         {"median", "", Align::right},
                                         {"p95", "", Align::right},
                                         {"algbw", "GB/s", Align::right},
                                         {"busbw", "GB/s", Align::right}});
  for (const MeasuredRow& row : report.rows) {
    std::vector<std::string> cells{std::string(to_string(row.kind)), format_bytes(row.size)};
    if (algorithms) cells.push_back(row.algorithm);
    cells.insert(cells.end(),
                 {row.in_place ? "yes" : "no", format_seconds(row.mean), format_seconds(row.least),
                  format_seconds(row.median), format_seconds(row.p95), figure_text(in_gb_per_s(algbw(row))),
                  figure_text(in_gb_per_s(busbw(row, report.ranks)))});
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace

Bandwidth algbw(const MeasuredRow& row) {
  return row.mean.count() > 0 ? Bandwidth(static_cast<double>(row.size.value()) / row.mean.count()) : Bandwidth{};
}

Bandwidth busbw(const MeasuredRow& row, int ranks) { return algbw(row) * bus_factor(row.kind, ranks); }

std::string unsteady_text(const MeasureReport& report) {
  // Twice the fastest repetition: well beyond what the network of an idle machine varies by.
  const auto unsteady = std::count_if(report.rows.begin(), report.rows.end(),
                                      [](const MeasuredRow& row) { return row.mean > 2 * row.least; });
  if (unsteady == 0) return {};
  return fmt::format(
      "in {} of {} rows the mean is more than twice the fastest repetition: the machine was busy, or the ranks have "
      "too "
      "few processors",
      unsteady, report.rows.size());
}

std::string json(const MeasureReport& report) { return text(document_json(report)); }

Table csv(const MeasureReport& report) {
  Table out;
  for (const char* name : {"collective", "size_bytes", "time_us", "algbw_gbps", "busbw_gbps", "inplace"})
    out.columns.push_back({name, "", Align::left});
  for (const MeasuredRow& row : report.rows)
    out.rows.push_back({std::string(to_string(row.kind)), fmt::format("{}", row.size.value()),
                        fmt::format("{:.3f}", row.mean.count() * 1e6), fmt::format("{:.6g}", in_gb_per_s(algbw(row))),
                        fmt::format("{:.6g}", in_gb_per_s(busbw(row, report.ranks))), row.in_place ? "1" : "0"});
  return out;
}

Page page(const MeasureReport& report) {
  const MeasuredSystem& s = report.system;
  Page out;
  out.title = fmt::format("measured with {} {}: {} on {} of {}", s.backend, s.library_version,
                          counted(report.ranks, "rank"), counted(s.nodes, "node"), s.device);
  if (!report.rows.empty()) {
    out.blocks.push_back(Paragraph{fmt::format("{}, {} per size; time is the mean of the slowest rank's",
                                               report.datatype, counted(report.rows.front().repetitions, "repetition")),
                                   Paragraph::Tone::plain});
    out.blocks.push_back(rows_table(report));
  }
  for (const std::string& note : s.notes) out.blocks.push_back(Paragraph{note, Paragraph::Tone::note});
  for (const std::string& note : report.notes) out.blocks.push_back(Paragraph{note, Paragraph::Tone::note});
  if (const std::string text = unsteady_text(report); !text.empty())
    out.blocks.push_back(Paragraph{text, Paragraph::Tone::note});
  if (!report.complete)
    out.blocks.push_back(
        Paragraph{"not every size was measured; these are the ones that were", Paragraph::Tone::warning});
  return out;
}

}  // namespace collcast
