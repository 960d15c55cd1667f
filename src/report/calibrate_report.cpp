// collcast.calibrate.v1: the parameters that fit, and what error they leave.
#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/units.hpp"
#include "collcast/report/calibrate_document.hpp"
#include "report/document.hpp"
#include "report/measured_digest.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

Json factors_json(const NcclFactors& factors) {
  Json out;
  for (const NcclFactor& factor : nccl_factors) out[factor.name] = factors.*factor.value;
  out["takes_ll128"] = factors.takes_ll128;
  out["nic_rate"] = factors.nic_rate;
  return out;
}

bool is_fitted(const CalibrateReport::Machine& machine, std::string_view parameter) {
  return std::ranges::find(machine.fitted, parameter) != machine.fitted.end();
}

Json parameters_json(const CalibrateReport::Machine& machine) {
  Json out = Json::array();
  for (const auto& one : machine.parameters) {
    const auto bound = std::ranges::find_if(
        machine.bounds, [&](const std::string& text) { return text.starts_with(one.name + " ended at its bound"); });
    out.push_back({{"name", one.name},
                   {"value", one.value},
                   {"least", one.least},
                   {"most", one.most},
                   {"fitted", is_fitted(machine, one.name)},
                   {"bound", bound == machine.bounds.end() ? Json() : Json(*bound)}});
  }
  return out;
}

Json range_json(const CalibrateReport::Machine& machine) {
  return {{"least_size_bytes", machine.least_size.value()},
          {"most_size_bytes", machine.most_size.value()},
          {"least_ranks", machine.least_ranks},
          {"most_ranks", machine.most_ranks},
          {"least_nodes", machine.least_nodes},
          {"most_nodes", machine.most_nodes},
          {"collectives", machine.collectives}};
}

/// Every row, or evenly spaced ones where there are more: a picture of a log of a night needs no more.
Json rows_json(const CalibrateReport::Machine& machine) {
  constexpr std::size_t most = 2000;
  const std::size_t every = (machine.rows() + most - 1) / most;
  Json out = Json::array();
  std::size_t i = 0;
  for (const CalibrateReport::Residuals& table : machine.residuals)
    for (const auto& row : table.rows)
      if (i++ % every == 0)
        out.push_back({{"id", table.table},
                       {"collective", table.collective},
                       {"size_bytes", table.of(row).size.value()},
                       {"in_place", row.in_place},
                       {"measured_s", row.measured.count()},
                       {"predicted_s", table.of(row).fitted.count()}});
  return out;
}

Json machine_json(const CalibrateReport& report, const CalibrateReport::Machine& machine) {
  Json out;
  const bool is_nccl = report.library == "nccl";
  out["topology"] = machine.topology;
  out["digest"] = machine.digest;
  out["matched_by"] = machine.matched_by;
  out["base_latency_s"] = is_nccl ? Json() : Json(machine.base_latency.count());
  out["latency_scale"] = is_nccl ? Json() : Json(machine.latency_scale);
  out["efficiency_nvlink"] = is_nccl ? Json() : Json(machine.efficiency[0]);
  out["efficiency_pcie"] = is_nccl ? Json() : Json(machine.efficiency[1]);
  out["efficiency_network"] = is_nccl ? Json() : Json(machine.efficiency[2]);
  out["nccl_factors"] = is_nccl ? factors_json(machine.nccl) : Json();
  out["evaluations"] = machine.evaluations;
  out["fitted"] = machine.fitted;
  out["at_bounds"] = machine.at_bounds;
  out["interval_of_unseen_tables"] = machine.unseen;
  out["tables"] = machine.tables;
  for (const Band band : bands) {
    const auto i = static_cast<std::size_t>(band);
    const bool any = machine.before[i].n > 0, spread = machine.interval[i].high > 0;
    out["bands"][std::string(to_string(band))] = {
        {"n", machine.before[i].n},
        {"median_ape_before", any ? Json(machine.before[i].median_ape) : Json()},
        {"median_ape_after", any ? Json(machine.after[i].median_ape) : Json()},
        {"measured_to_predicted_p10", spread ? Json(machine.interval[i].low) : Json()},
        {"measured_to_predicted_p90", spread ? Json(machine.interval[i].high) : Json()}};
  }
  return out;
}

/// Of all machines' tables that were fitted to, as those of a validation.
Json inputs_of_calibration(const CalibrateReport& report) {
  MeasuredDigest measured;
  std::size_t tables = 0;
  Json machines = Json::object();
  for (const auto& machine : report.machines) {
    for (const CalibrateReport::Residuals& table : machine.residuals) {
      ++tables;
      measured.begin_table(table.table, table.collective, table.nodes, table.ranks);
      for (const auto& row : table.rows) measured.add_row(table.of(row).size, row.in_place, row.measured);
    }
    machines[machine.topology] = {{"digest", machine.digest}};
  }
  return {{"statistic", report.statistic},
          {"part", report.part.empty() ? Json() : Json(report.part)},
          {"tables", tables},
          {"measured_digest", measured.text()},
          {"machines", std::move(machines)}};
}

Json document_json(const CalibrateReport& report) {
  Json out = document("collcast.calibrate.v1");
  out["library"] = report.library;
  out["statistic"] = report.statistic;
  out["part"] = report.part.empty() ? Json() : Json(report.part);
  out["partial"] = !report.not_reached.empty();
  out["not_reached"] = report.not_reached;
  out["machines"] = Json::array();
  for (const auto& machine : report.machines) {
    out["machines"].push_back(machine_json(report, machine));
    Json& said = out["machines"].back();
    said["parameters"] = parameters_json(machine);
    said["fitted_to"] = range_json(machine);
    said["row_count"] = machine.rows();
    said["rows"] = rows_json(machine);
  }
  out["unused"] = Json::array();
  for (const UnscoredTable& table : report.unused) out["unused"].push_back({{"id", table.id}, {"why", table.why}});
  out["warnings"] = report.warnings;
  for (const std::string& text : fit_warnings(report)) out["warnings"].push_back(text);
  for (const std::string& text : report.said) out["warnings"].push_back(text);
  out["inputs"] = inputs_of_calibration(report);
  return out;
}

std::string before_and_after(const CalibrateReport::Machine& machine, Band band) {
  const auto i = static_cast<std::size_t>(band);
  if (machine.before[i].n == 0) return "-";
  return fmt::format("{} -> {}{}", percent(machine.before[i].median_ape), percent(machine.after[i].median_ape),
                     std::ranges::count(machine.worse, band) > 0 ? " WORSE" : "");
}

constexpr std::array<const char*, 3> band_texts{"below 64 KiB", "of 64 KiB to 4 MiB", "above 4 MiB"};

/// A parameter of the table's columns.
struct Shown {
  const char* name;
  const char* title;
  std::string (*text)(const CalibrateReport::Machine&);
};

const std::vector<Shown>& shown_parameters(const CalibrateReport& report) {
  using Machine = CalibrateReport::Machine;
  static const std::vector<Shown> ideal{
      {"base_latency", "base latency", [](const Machine& m) { return format_seconds(m.base_latency); }},
      {"latency_scale", "latencies x", [](const Machine& m) { return fmt::format("{:.3g}", m.latency_scale); }},
      {"efficiency.nvlink", "NVLink", [](const Machine& m) { return percent(m.efficiency[0]); }},
      {"efficiency.pcie", "PCIe", [](const Machine& m) { return percent(m.efficiency[1]); }},
      {"efficiency.network", "network", [](const Machine& m) { return percent(m.efficiency[2]); }}};
  static const std::vector<Shown> nccl{
      {"launch", "launch x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.launch); }},
      {"point_to_point_launch", "p2p launch x",
       [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.point_to_point_launch); }},
      {"host", "host x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.host); }},
      {"hop", "hop x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.hop); }},
      {"network_hop", "network hop x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.network_hop); }},
      {"simple_network_hop", "Simple network hop x",
       [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.simple_network_hop); }},
      {"ll128_network_hop", "LL128 network hop x",
       [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.ll128_network_hop); }},
      {"ll_proxy", "LL proxy x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.ll_proxy); }},
      {"message_gap", "message gap x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.message_gap); }},
      {"channel", "channel x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.channel); }},
      {"ll", "LL x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.ll); }},
      {"ll128", "LL128 x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.ll128); }},
      {"simple", "Simple x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.simple); }},
      {"host_bridge", "host bridge x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.host_bridge); }},
      {"sockets", "sockets x", [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.sockets); }},
      {"network", "network x",
       [](const Machine& m) { return fmt::format("{:.3g}", m.nccl.network * m.nccl.nic_rate); }}};
  return report.library == "nccl" ? nccl : ideal;
}

bool all_fitted(const CalibrateReport& report) {
  return std::ranges::all_of(report.machines, [&](const auto& machine) {
    return std::ranges::all_of(shown_parameters(report),
                               [&](const Shown& one) { return is_fitted(machine, one.name); });
  });
}

Table machines_table(const CalibrateReport& report) {
  Table out;
  out.title = "fitted, and the median error over the rows fitted to, before -> after";
  out.columns = {{"machine", "", Align::left}, {"by", "", Align::left}, {"tables", "", Align::right}};
  for (const Shown& one : shown_parameters(report)) out.columns.push_back({one.title, "", Align::right});
  for (const char* title : {"below 64 KiB", "to 4 MiB", "above"}) out.columns.push_back({title, "", Align::right});
  for (const auto& machine : report.machines) {
    std::vector<std::string> cells{machine.topology, fmt::format("{}", fmt::join(machine.matched_by, ", ")),
                                   fmt::format("{}", machine.tables.size())};
    for (const Shown& one : shown_parameters(report))
      cells.push_back(std::string_view(one.name) == "ll128" && !machine.nccl.takes_ll128 ? "not taken"
                      : is_fitted(machine, one.name)                                     ? one.text(machine)
                                                                                         : "-");
    for (const Band band : bands) cells.push_back(before_and_after(machine, band));
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace

std::size_t CalibrateReport::Machine::rows() const {
  std::size_t out = 0;
  for (const Residuals& table : residuals) out += table.rows.size();
  return out;
}

std::string far_network_text(const CalibrateReport::Machine& machine, bool is_nccl) {
  const double carried = is_nccl ? machine.nccl.network * machine.nccl.nic_rate : machine.efficiency[2];
  if (carried >= far_off_network || !is_fitted(machine, is_nccl ? "network" : "efficiency.network")) return {};
  std::string out = fmt::format("the network carries {} of what it is described with: a fault", percent(carried));
  if (is_nccl && machine.nccl.nic_rate != 1)
    return out + fmt::format(
                     ", or NICs of {} of their described rate, by which NCCL chooses; "
                     "describe them as they are and calibrate again for a closer fit",
                     percent(machine.nccl.nic_rate));
  return out + ", or another network, which the machine's file is to describe";
}

std::vector<std::string> fit_warnings(const CalibrateReport& report) {
  std::vector<std::string> out;
  for (const auto& machine : report.machines)
    if (const std::string text = far_network_text(machine, report.library == "nccl"); !text.empty())
      out.push_back(fmt::format("{}: {}", machine.topology, text));
  for (const auto& machine : report.machines) {
    int rows = 0;
    for (const BandError& band : machine.before) rows += band.n;
    if (const auto fitted = static_cast<int>(machine.fitted.size()); rows > 0 && rows <= fitted)
      out.push_back(fmt::format("{}: {} for {}: they cannot be told apart, and the fit holds at these sizes only",
                                machine.topology, counted(rows, "row"), counted(fitted, "parameter")));
  }
  for (const auto& machine : report.machines)
    for (const Band band : bands) {
      const bool worse = std::ranges::count(machine.worse, band) > 0;
      if (!worse && std::ranges::count(machine.far_off, band) == 0) continue;
      const auto i = static_cast<std::size_t>(band);
      // As the overlay's comment says it (overlay_file.cpp).
      const char* none_better = report.library == "nccl"
                                    ? "; the fit found none better: errors beyond a fifth count less in it, and "
                                      "factors are held near 1"
                                    : "; the fit found none better";
      out.push_back(fmt::format("{}: sizes {} are {}: median error {} -> {} over {}{}", machine.topology, band_texts[i],
                                worse ? "further off with the fit than without it" : "still far off with the fit",
                                percent(machine.before[i].median_ape), percent(machine.after[i].median_ape),
                                counted(machine.before[i].n, "row"), worse ? "" : none_better));
    }
  return out;
}

std::string json(const CalibrateReport& report) { return text(document_json(report)); }

Table csv(const CalibrateReport& report) {
  Json rows = Json::array();
  for (const auto& machine : report.machines)
    for (const Band band : bands) {
      Json row = machine_json(report, machine);
      row.erase("nccl_factors");
      for (const NcclFactor& factor : nccl_factors)
        row[fmt::format("nccl_{}", factor.name)] = report.library == "nccl" ? Json(machine.nccl.*factor.value) : Json();
      row["nccl_takes_ll128"] = report.library == "nccl" ? Json(machine.nccl.takes_ll128) : Json();
      const Json error = row["bands"][std::string(to_string(band))];
      row.erase("bands");
      row["band"] = to_string(band);
      row.update(error);
      rows.push_back(std::move(row));
    }
  return csv_rows(rows);
}

void write_residuals(std::ostream& out, const CalibrateReport& report) {
  const auto row_of = [](const CalibrateReport::Machine& machine, const CalibrateReport::Residuals& table,
                         const CalibrateReport::Residuals::Row& row) {
    return Json{{"topology", machine.topology},
                {"id", table.table},
                {"collective", table.collective},
                {"nodes", table.nodes},
                {"ranks", table.ranks},
                {"size_bytes", table.of(row).size.value()},
                {"in_place", row.in_place},
                {"measured_s", row.measured.count()},
                {"predicted_before_s", table.of(row).described.count()},
                {"predicted_s", table.of(row).fitted.count()},
                {"error", table.error(row)}};
  };
  CsvRows csv(out);
  for (const auto& machine : report.machines)
    for (const CalibrateReport::Residuals& table : machine.residuals)
      for (const auto& row : table.rows) {
        if (!out.good()) return;
        csv.add(row_of(machine, table, row));
      }
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
  if (!all_fitted(report))
    out.blocks.push_back(
        Paragraph{"-: no row fitted to depends on it, so it stays as described", Paragraph::Tone::note});
  for (const auto& machine : report.machines)
    if (!machine.at_bounds.empty())
      out.blocks.push_back(Paragraph{fmt::format("{}: {}: what is missing there is in none of these parameters",
                                                 machine.topology, fmt::join(machine.bounds, "; ")),
                                     Paragraph::Tone::note});
  if (!report.unused.empty()) {
    Table unused{"not used", {{"table", "", Align::left}, {"why", "", Align::left}}, {}};
    for (const UnscoredTable& table : report.unused) unused.rows.push_back({table.id, table.why});
    out.blocks.push_back(std::move(unused));
  }
  return out;
}

}  // namespace collcast
