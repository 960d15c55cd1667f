// collcast.backends.v1: which library can do what, and what is missing here to use it.
#include <fmt/format.h>

#include "collcast/report/measured.hpp"
#include "report/document.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

Json entry_json(const BackendEntry& entry) {
  Json kinds = Json::array();
  for (const BackendEntry::Kind& kind : entry.kinds) {
    kinds.push_back({{"collective", to_string(kind.kind)},
                     {"algorithms", kind.algorithms},
                     {"in_place", kind.in_place},
                     {"out_of_place", kind.out_of_place},
                     {"in_place_only", kind.in_place_only}});
  }
  return {{"name", entry.name},
          {"what", entry.what},
          {"runs", entry.runs},
          {"forecasts", entry.forecasts},
          {"built", entry.built},
          {"version", entry.version.empty() ? Json() : Json(entry.version)},
          {"usable", entry.built && entry.lacking.empty()},
          {"lacking", entry.lacking},
          {"datatypes", entry.datatypes},
          {"collectives", std::move(kinds)}};
}

Json document_json(const BackendsReport& report) {
  Json out = document("collcast.backends.v1");
  out["backends"] = Json::array();
  for (const BackendEntry& entry : report.entries) out["backends"].push_back(entry_json(entry));
  return out;
}

/// Whether it can run and be timed here.
std::string run_state(const BackendEntry& entry) {
  if (!entry.runs) return "-";
  if (!entry.built) return "not built in";
  return entry.lacking.empty() ? "ready" : "not usable here";
}

/// "out of place, in place"; empty where nothing is said.
std::string placements(const BackendEntry::Kind& kind) {
  if (kind.in_place && kind.out_of_place && !kind.in_place_only.empty())
    return fmt::format("both; {} in place only", fmt::join(kind.in_place_only, ", "));
  if (kind.in_place && kind.out_of_place) return "both";
  if (kind.in_place) return "in place only";
  return kind.out_of_place ? "out of place only" : "";
}

/// Whether `--library` of its name works here, and with what; the tables below list many algorithms by collective.
std::string forecast_state(const BackendEntry& entry) {
  constexpr std::size_t few = 8;
  if (entry.forecasts.empty()) return "-";
  return entry.forecasts.size() > few ? "ready" : fmt::format("ready: {}", fmt::join(entry.forecasts, ", "));
}

Table overview(const BackendsReport& report) {
  Table out{{},
            {{"backend", "", Align::left},
             {"what it runs on", "", Align::left},
             {"to run here", "", Align::left},
             {"to forecast", "", Align::left},
             {"version", "", Align::left}},
            {}};
  for (const BackendEntry& entry : report.entries)
    out.rows.push_back(
        {entry.name, entry.what, run_state(entry), forecast_state(entry), entry.version.empty() ? "-" : entry.version});
  return out;
}

}  // namespace

std::string json(const BackendsReport& report) { return text(document_json(report)); }

Table csv(const BackendsReport& report) {
  Json rows = Json::array();
  for (const BackendEntry& entry : report.entries) {
    for (const BackendEntry::Kind& kind : entry.kinds) {
      rows.push_back({{"backend", entry.name},
                      {"built", entry.built},
                      {"usable", entry.built && entry.lacking.empty()},
                      {"collective", to_string(kind.kind)},
                      {"algorithms", kind.algorithms},
                      {"in_place", kind.in_place},
                      {"out_of_place", kind.out_of_place}});
    }
  }
  return csv_rows(rows);
}

Page page(const BackendsReport& report) {
  Page out;
  out.title = "libraries that run or forecast collectives";
  out.blocks.push_back(overview(report));
  for (const BackendEntry& entry : report.entries) {
    for (const std::string& lacking : entry.lacking)
      out.blocks.push_back(Paragraph{fmt::format("to run {}: {}", entry.name, lacking), Paragraph::Tone::note});
  }
  for (const BackendEntry& entry : report.entries) {
    if (entry.kinds.empty()) continue;
    out.blocks.push_back(Heading{entry.name});
    if (!entry.datatypes.empty())
      out.blocks.push_back(
          Paragraph{fmt::format("datatypes: {}", fmt::join(entry.datatypes, ", ")), Paragraph::Tone::plain});
    Table table{{}, {{"collective", "", Align::left}, {"algorithms", "", Align::left}}, {}};
    const bool placed = !placements(entry.kinds.front()).empty();
    if (placed) table.columns.push_back({"buffers", "", Align::left});
    for (const BackendEntry::Kind& kind : entry.kinds) {
      std::vector<std::string> row{
          std::string(to_string(kind.kind)),
          kind.algorithms.empty() ? "the library chooses" : fmt::format("{}", fmt::join(kind.algorithms, ", "))};
      if (placed) row.push_back(placements(kind));
      table.rows.push_back(std::move(row));
    }
    out.blocks.push_back(std::move(table));
  }
  return out;
}

}  // namespace collcast
