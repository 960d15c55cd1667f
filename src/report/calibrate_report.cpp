// collcast.calibrate.v1: the parameters that fit, and what error they leave.
#include <fmt/format.h>

#include "collcast/base/units.hpp"
#include "collcast/report/calibrate_document.hpp"
#include "report/document.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

Json machine_json(const CalibrateReport::Machine& machine) {
  Json out;
  out["topology"] = machine.topology;
  out["matched_by"] = machine.matched_by;
  out["base_latency_s"] = machine.base_latency.count();
  out["latency_scale"] = machine.latency_scale;
  out["efficiency_nvlink"] = machine.efficiency[0];
  out["efficiency_pcie"] = machine.efficiency[1];
  out["efficiency_network"] = machine.efficiency[2];
  out["evaluations"] = machine.evaluations;
  out["at_bounds"] = machine.at_bounds;
  out["tables"] = machine.tables;
  for (const Band band : bands) {
    const auto i = static_cast<std::size_t>(band);
    const bool any = machine.before[i].n > 0;
    out["bands"][std::string(to_string(band))] = {
        {"n", machine.before[i].n},
        {"median_ape_before", any ? Json(machine.before[i].median_ape) : Json()},
        {"median_ape_after", any ? Json(machine.after[i].median_ape) : Json()}};
  }
  return out;
}

Json document_json(const CalibrateReport& report) {
  Json out = document("collcast.calibrate.v1");
  out["library"] = report.library;
  out["statistic"] = report.statistic;
  out["part"] = report.part.empty() ? Json() : Json(report.part);
  out["machines"] = Json::array();
  for (const auto& machine : report.machines) out["machines"].push_back(machine_json(machine));
  out["unused"] = Json::array();
  for (const UnscoredTable& table : report.unused) out["unused"].push_back({{"id", table.id}, {"why", table.why}});
  out["warnings"] = report.warnings;
  return out;
}

std::string before_and_after(const CalibrateReport::Machine& machine, Band band) {
  const auto i = static_cast<std::size_t>(band);
  if (machine.before[i].n == 0) return "-";
  return fmt::format("{} -> {}", percent(machine.before[i].median_ape), percent(machine.after[i].median_ape));
}

Table machines_table(const CalibrateReport& report) {
  Table out;
  out.title = "fitted, and the median error over the rows fitted to, before -> after";
  out.columns = {
      {"machine", "", Align::left},       {"by", "", Align::left},           {"tables", "", Align::right},
      {"base latency", "", Align::right}, {"latencies x", "", Align::right}, {"NVLink", "", Align::right},
      {"PCIe", "", Align::right},         {"network", "", Align::right},     {"below 64 KiB", "", Align::right},
      {"to 4 MiB", "", Align::right},     {"above", "", Align::right}};
  for (const auto& machine : report.machines) {
    std::vector<std::string> cells{machine.topology, fmt::format("{}", fmt::join(machine.matched_by, ", ")),
                                   fmt::format("{}", machine.tables.size()), format_seconds(machine.base_latency),
                                   fmt::format("{:.3g}", machine.latency_scale)};
    for (const double efficiency : machine.efficiency) cells.push_back(percent(efficiency));
    for (const Band band : bands) cells.push_back(before_and_after(machine, band));
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace

std::string json(const CalibrateReport& report) { return text(document_json(report)); }

Table csv(const CalibrateReport& report) {
  Json rows = Json::array();
  for (const auto& machine : report.machines)
    for (const Band band : bands) {
      Json row = machine_json(machine);
      const Json error = row["bands"][std::string(to_string(band))];
      row.erase("bands");
      row["band"] = to_string(band);
      row.update(error);
      rows.push_back(std::move(row));
    }
  return csv_rows(rows);
}

Page page(const CalibrateReport& report) {
  Page out;
  std::size_t tables = 0;
  for (const auto& machine : report.machines) tables += machine.tables.size();
  out.title = fmt::format("{} calibrated by {}, library {}",
                          counted(static_cast<std::int64_t>(report.machines.size()), "machine"),
                          counted(static_cast<std::int64_t>(tables), "table"), report.library);
  for (const std::string& warning : report.warnings) out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
  out.blocks.push_back(machines_table(report));
  for (const auto& machine : report.machines)
    if (!machine.at_bounds.empty())
      out.blocks.push_back(Paragraph{fmt::format("{}: {} ended at a bound: what is missing there is in none of these "
                                                 "parameters",
                                                 machine.topology, fmt::join(machine.at_bounds, ", ")),
                                     Paragraph::Tone::note});
  if (!report.unused.empty()) {
    Table unused{"not used", {{"table", "", Align::left}, {"why", "", Align::left}}, {}};
    for (const UnscoredTable& table : report.unused) unused.rows.push_back({table.id, table.why});
    out.blocks.push_back(std::move(unused));
  }
  return out;
}

}  // namespace collcast
