// collcast.validate.v1: how far predictions are from what was measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/report/validate_document.hpp"
#include "report/document.hpp"
#include "report/errors.hpp"
#include "report/measured_digest.hpp"
#include "report/validate_parts.hpp"
#include "report/wording.hpp"

namespace collcast {

std::string_view to_string(Band band) {
  switch (band) {
    case Band::small:
      return "small";
    case Band::medium:
      return "medium";
    case Band::large:
      break;
  }
  return "large";
}

Band band_of(Bytes size) { return bands[size_band(size)]; }

std::string_view band_text(Band band) {
  switch (band) {
    case Band::small:
      return "below 64 KiB";
    case Band::medium:
      return "to 4 MiB";
    case Band::large:
      break;
  }
  return "above";
}

double Deviation::ape() const { return std::abs((predicted - measured) / measured); }

namespace {

std::size_t index(Band band) { return static_cast<std::size_t>(band); }

Json error_json(const BandError& error) {
  Json out;
  out["n"] = error.n;
  out["mean_ape"] = error.n > 0 ? Json(error.mean_ape) : Json();
  out["median_ape"] = error.n > 0 ? Json(error.median_ape) : Json();
  out["p90_ape"] = error.n > 0 ? Json(error.p90_ape) : Json();
  out["median_ratio"] = error.n > 0 ? Json(error.median_ratio) : Json();
  out["measured_spread"] = error.spread ? Json(*error.spread) : Json();
  return out;
}

Json row_json(const ScoredTable& table, const Deviation& row) {
  return {{"size_bytes", row.size.value()},
          {"in_place", row.in_place},
          {"algorithm", table.algorithms[row.algorithm]},
          {"measured_s", row.measured.count()},
          {"predicted_s", row.predicted.count()},
          {"ape", row.ape()}};
}

Json derivation_json(const Derivation& of) {
  return {{"from", of.base},       {"network_from", of.network.empty() ? Json() : Json(of.network)},
          {"used", of.used},       {"changed", of.changed},
          {"assumed", of.assumed}, {"as_like", of.equals}};
}

Json faults_json(const ScoredTable& table) {
  Json out = Json::array();
  for (const Fault& fault : table.faults)
    out.push_back({{"cause", fault.cause}, {"evidence", fault.evidence}, {"look_first", fault.look}});
  return out;
}

Json table_json(const ScoredTable& table) {
  Json out;
  out["id"] = table.id;
  out["collective"] = table.collective;
  out["system"] = table.system.empty() ? Json() : Json(table.system);
  out["healthy"] = table.healthy;
  out["topology"] = table.topology;
  out["matched_by"] = table.matched_by;
  out["calibrated"] = table.calibrated;
  out["complete"] = table.complete;
  out["nodes"] = table.nodes;
  out["ranks"] = table.ranks;
  out["algorithms"] = table.algorithms;
  for (const Band band : bands) out["bands"][std::string(to_string(band))] = error_json(table.errors[index(band)]);
  return out;
}

std::string measured_digest(const ValidateReport& report) {
  MeasuredDigest out;
  for (const ScoredTable& table : report.tables) {
    out.begin_table(table.id, table.collective, table.nodes, table.ranks);
    for (const Deviation& row : table.rows) out.add_row(row.size, row.in_place, row.measured);
  }
  return out.text();
}

Json inputs_json(const ValidateReport& report) {
  Json out{{"method", report.method},
           {"statistic", report.statistic},
           {"part", report.part.empty() ? Json() : Json(report.part)},
           {"leave_one_out", report.left_out},
           {"tables", report.tables.size()},
           {"measured_digest", measured_digest(report)},
           {"machines", Json::object()}};
  for (const ScoringMachine& machine : report.machines)
    out["machines"][machine.topology] = {{"digest", machine.digest},
                                         {"calibrated", machine.calibrated},
                                         {"base_latency_s", machine.base_latency.count()}};
  return out;
}

/// The document's keys before `tables`.
Json head_json(const ValidateReport& report) {
  Json out = document("collcast.validate.v1");
  out["library"] = report.library;
  out["method"] = report.method;
  out["statistic"] = report.statistic;
  out["partial"] = report.is_partial();
  out["not_reached"] = report.not_reached;
  return out;
}

/// Rows are written one after another: a log of a night has millions.
void write_table(const ScoredTable& table, JsonMembers one) {
  one.add_all(table_json(table));
  one.add("derived", table.derived ? derivation_json(*table.derived) : Json());
  one.add("faults", faults_json(table));
  one.add("rows_not_reached", table.rows_not_reached);
  JsonMembers rows = one.begin("rows", '[');
  for (const Deviation& row : table.rows) {
    if (rows.is_lost()) return;
    rows.add(row_json(table, row));
  }
  rows.end();
  one.end();
}

/// The keys behind `tables`.
Json tail_json(const ValidateReport& report) {
  Json out;
  const auto add_row = [&out](const char* key, const SummaryRow& row, Json one) {
    one["healthy"] = row.known ? Json(row.healthy) : Json();
    one["band"] = to_string(row.band);
    one["tables"] = row.tables;
    one.update(error_json(row.error));
    out[key].push_back(std::move(one));
  };
  out["summary"] = Json::array();
  for (const SummaryRow& row : summary(report))
    add_row("summary", row, {{"collective", row.collective.empty() ? "all" : row.collective}});
  out["summary_by_nodes"] = Json::array();
  for (const SummaryRow& row : summary_by_nodes(report))
    add_row("summary_by_nodes", row, {{"nodes", to_string(row.nodes)}});
  out["summary_of_sound"] = Json::array();
  for (const SummaryRow& row : summary_of_sound(report))
    add_row("summary_of_sound", row, {{"nodes", to_string(row.nodes)}});
  out["summary_by_collective_and_nodes"] = Json::array();
  for (const SummaryRow& row : summary_by_collective_and_nodes(report))
    add_row("summary_by_collective_and_nodes", row, {{"collective", row.collective}, {"nodes", to_string(row.nodes)}});
  out["unscored"] = Json::array();
  for (const UnscoredTable& table : report.unscored) out["unscored"].push_back({{"id", table.id}, {"why", table.why}});
  out["budgets"] = Json::array();
  for (const BudgetOutcome& budget : report.budgets)
    out["budgets"].push_back({{"collective", budget.budget.collective.empty() ? "all" : budget.budget.collective},
                              {"band", to_string(budget.budget.band)},
                              {"limit_ape", budget.budget.limit},
                              {"n", budget.n},
                              {"median_ape", budget.n > 0 ? Json(budget.median_ape) : Json()},
                              {"met", budget.met()}});
  out["warnings"] = report.warnings;
  for (const std::string& warning : report.said) out["warnings"].push_back(warning);
  out["inputs"] = inputs_json(report);
  return out;
}

/// "12.3% (11.2%) of 14": how many rows; with the 90th percentile where there is room.
std::string error_text(const BandError& error, bool wide) {
  if (error.n == 0) return "-";
  const std::string p90 = wide ? fmt::format(", {}", percent(error.p90_ape)) : "";
  return fmt::format("{} ({}{}) of {}", percent(error.median_ape), percent(error.mean_ape), p90, error.n);
}

bool any_spread(const ValidateReport& report) {
  for (const ScoredTable& table : report.tables)
    for (const BandError& error : table.errors)
      if (error.spread) return true;
  return false;
}

std::vector<Column> band_columns() {
  std::vector<Column> out;
  for (const Band band : bands) out.push_back({std::string(band_text(band)), "", Align::right});
  return out;
}

Table tables_table(const ValidateReport& report, const std::vector<const ScoredTable*>& tables) {
  Table out;
  const bool spread = any_spread(report);
  out.columns = {{"table", "", Align::left},
                 {"healthy", "", Align::left},
                 {"machine", "", Align::left},
                 {"by", "", Align::left},
                 {"ranks", "", Align::right}};
  const std::vector<Column> columns = band_columns();
  out.columns.insert(out.columns.end(), columns.begin(), columns.end());
  if (spread) out.columns.push_back({"measured spread", "", Align::right});
  out.columns.push_back({"algorithms", "", Align::left});
  for (const ScoredTable* table : tables) {
    std::vector<std::string> cells{table->id, table->healthy,
                                   table->topology + (table->calibrated ? ", calibrated" : ""), table->matched_by,
                                   fmt::format("{}x{}", table->nodes, table->ranks / std::max(1, table->nodes))};
    for (const BandError& error : table->errors) cells.push_back(error_text(error, report.every_table));
    if (spread) {
      std::vector<double> all;
      for (const Deviation& row : table->rows)
        if (row.spread) all.push_back(*row.spread);
      cells.push_back(all.empty() ? "-" : percent(median(all)));
    }
    cells.push_back(fmt::format("{}", fmt::join(table->algorithms, ", ")));
    out.rows.push_back(std::move(cells));
  }
  return out;
}

double worst(const ScoredTable& table) {
  double out = 0;
  for (const Deviation& row : table.rows)
    out += std::abs(std::log(std::max(row.predicted.count(), 1e-15) / row.measured.count()));
  return table.rows.empty() ? 0 : out / static_cast<double>(table.rows.size());
}

constexpr std::size_t most_on_a_terminal = 20;

/// A few as they came; of many the farthest off first.
std::vector<const ScoredTable*> shown_tables(const ValidateReport& report) {
  std::vector<const ScoredTable*> out;
  for (const ScoredTable& table : report.tables) out.push_back(&table);
  if (out.size() <= most_on_a_terminal) return out;
  std::stable_sort(out.begin(), out.end(),
                   [](const ScoredTable* a, const ScoredTable* b) { return worst(*a) > worst(*b); });
  if (!report.every_table) out.resize(most_on_a_terminal / 2);
  return out;
}

/// Tables far below their forecast, with the likeliest cause; others are in the JSON.
Table faults_table(const ValidateReport& report) {
  Table out{"far slower than forecast at large sizes, with the likeliest cause",
            {{"table", "", Align::left},
             {"healthy", "", Align::left},
             {"measured / predicted", "", Align::right},
             {"likeliest cause", "", Align::left},
             {"else", "", Align::left},
             {"evidence", "", Align::left}},
            {}};
  for (const ScoredTable& table : report.tables) {
    if (table.faults.empty()) continue;
    std::vector<std::string> others;
    for (std::size_t i = 1; i < table.faults.size(); ++i) others.push_back(table.faults[i].cause);
    const Fault& first = table.faults.front();
    out.rows.push_back({table.id, table.healthy, fmt::format("{:.1f}", table.slowness), first.cause,
                        others.empty() ? "-" : fmt::format("{}", fmt::join(others, ", ")), first.evidence});
  }
  return out;
}

/// Of every cause in that table once.
std::vector<Paragraph> where_to_look(const ValidateReport& report) {
  std::map<std::string, std::string> of_cause;
  for (const ScoredTable& table : report.tables)
    for (const Fault& fault : table.faults) of_cause[fault.cause] = fault.look;
  std::vector<Paragraph> out;
  for (const auto& [cause, look] : of_cause) out.push_back({fmt::format("{}: {}", cause, look), Paragraph::Tone::note});
  return out;
}

Table unscored_table(const ValidateReport& report) {
  Table out{"not scored", {{"table", "", Align::left}, {"why", "", Align::left}}, {}};
  for (const UnscoredTable& table : report.unscored) out.rows.push_back({table.id, table.why});
  return out;
}

}  // namespace

void ErrorPool::add(const Deviation& row) {
  apes_.push_back(row.ape());
  ratios_.push_back(row.predicted / row.measured);
  if (row.spread) spreads_.push_back(*row.spread);
}

BandError ErrorPool::take() {
  auto out = error_of<BandError>(std::exchange(apes_, {}), std::exchange(ratios_, {}));
  if (!spreads_.empty()) out.spread = median(std::exchange(spreads_, {}));
  return out;
}

std::uint16_t ScoredTable::index_of(const std::string& algorithm) {
  const auto found = std::find(algorithms.begin(), algorithms.end(), algorithm);
  const auto index = static_cast<std::size_t>(found - algorithms.begin());
  check(index <= std::numeric_limits<std::uint16_t>::max(), "a table has few algorithms");
  if (found == algorithms.end()) algorithms.push_back(algorithm);
  return static_cast<std::uint16_t>(index);
}

bool ValidateReport::is_partial() const {
  return not_reached > 0 || std::ranges::any_of(tables, [](const ScoredTable& t) { return t.rows_not_reached > 0; });
}

std::string budget_text(const BudgetOutcome& outcome) {
  const Budget& budget = outcome.budget;
  const std::string what =
      fmt::format("{}{}", budget.collective.empty() ? "" : budget.collective + ".", to_string(budget.band));
  if (outcome.n == 0) return fmt::format("budget {}: missed, as no healthy table has a row there", what);
  if (outcome.met())
    return fmt::format("budget {}: met, {} within {}", what, percent(outcome.median_ape), percent(budget.limit));
  return fmt::format("budget {}: missed, {} instead of {}: {} points too far", what, percent(outcome.median_ape),
                     percent(budget.limit), fmt::format("{:.1f}", (outcome.median_ape - budget.limit) * 100));
}

void write_json(std::ostream& out, const ValidateReport& report) {
  JsonMembers document(out, '{');
  document.add_all(head_json(report));
  JsonMembers tables = document.begin("tables", '[');
  for (const ScoredTable& table : report.tables) {
    if (tables.is_lost()) return;
    write_table(table, tables.begin({}, '{'));
  }
  tables.end();
  document.add_all(tail_json(report));
  document.end();
  out << '\n';
}

std::string json(const ValidateReport& report) {
  std::ostringstream out;
  write_json(out, report);
  return out.str();
}

Table csv(const ValidateReport& report) {
  Json rows = Json::array();
  for (const ScoredTable& table : report.tables)
    for (const Band band : bands) {
      Json row = table_json(table);
      row.erase("bands");
      row["band"] = to_string(band);
      row.update(error_json(table.errors[index(band)]));
      row["why_unscored"] = nullptr;
      rows.push_back(std::move(row));
    }
  if (rows.empty()) return csv_rows(rows);
  Json none = rows.front();
  for (auto& [key, value] : none.items()) value = nullptr;
  for (const UnscoredTable& table : report.unscored) {
    none["id"] = table.id;
    none["why_unscored"] = table.why;
    rows.push_back(none);
  }
  return csv_rows(rows);
}

Page page(const ValidateReport& report) {
  Page out;
  const auto broken = std::count_if(report.tables.begin(), report.tables.end(),
                                    [](const ScoredTable& table) { return !is_healthy(table); });
  out.title = fmt::format(
      "{} scored against library {}, method {}{}",
      counted(static_cast<std::int64_t>(report.tables.size()), "measured table"), report.library, report.method,
      report.statistic == "mean" ? std::string() : fmt::format(", {} of repetitions", report.statistic));
  if (report.left_out)
    out.blocks.push_back(
        Paragraph{"each table by a calibration that was fitted to the other tables of its system, and "
                  "has not seen it; of more than 40 several are left out at once",
                  Paragraph::Tone::note});
  for (const BudgetOutcome& budget : report.budgets)
    out.blocks.push_back(
        Paragraph{budget_text(budget), budget.met() ? Paragraph::Tone::plain : Paragraph::Tone::warning});
  for (const std::string& warning : report.warnings) out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
  const auto sound = std::count_if(report.tables.begin(), report.tables.end(),
                                   [](const ScoredTable& table) { return table.healthy == "yes"; });
  const auto all = static_cast<std::int64_t>(report.tables.size());
  if (broken < all) out.blocks.push_back(summary_table(report, SetUps::not_broken));
  if (sound > 0 && sound + broken < all) out.blocks.push_back(summary_table(report, SetUps::sound));
  if (broken > 0) out.blocks.push_back(summary_table(report, SetUps::broken));
  const std::vector<const ScoredTable*> shown = shown_tables(report);
  if (!shown.empty()) {
    Table tables = tables_table(report, shown);
    tables.title = fmt::format("{}: median (mean{}) of rows",
                               shown.size() < report.tables.size()         ? "the tables that are farthest off"
                               : report.tables.size() > most_on_a_terminal ? "every table, the farthest off first"
                                                                           : "every table",
                               report.every_table ? ", 90th percentile" : "");
    out.blocks.push_back(std::move(tables));
  }
  if (Table faults = faults_table(report); !faults.rows.empty()) {
    out.blocks.push_back(std::move(faults));
    for (Paragraph& look : where_to_look(report)) out.blocks.push_back(std::move(look));
  }
  if (!report.unscored.empty()) out.blocks.push_back(unscored_table(report));
  if (shown.size() < report.tables.size())
    out.blocks.push_back(Paragraph{"--format markdown, csv or json has every table", Paragraph::Tone::note});
  return out;
}

}  // namespace collcast
