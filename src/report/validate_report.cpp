// collcast.validate.v1: how far predictions are from what was measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/report/validate_document.hpp"
#include "report/document.hpp"
#include "report/errors.hpp"
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

Band band_of(Bytes size) {
  if (size < Bytes(64 << 10)) return Band::small;
  return size <= Bytes(4 << 20) ? Band::medium : Band::large;
}

double Deviation::ape() const { return std::abs((predicted - measured) / measured); }

namespace {

std::size_t index(Band band) { return static_cast<std::size_t>(band); }

bool is_healthy(const ScoredTable& table) { return table.healthy != "no"; }

/// Which tables are pooled.
struct Pool {
  std::string collective;  ///< empty: all
  bool healthy = true;
  NodeCount nodes = NodeCount::any;
  bool has(const ScoredTable& table) const {
    if (is_healthy(table) != healthy || (!collective.empty() && table.collective != collective)) return false;
    return nodes == NodeCount::any || (table.nodes > 1) == (nodes == NodeCount::several);
  }
};

/// Rows of these tables in a band.
BandError pooled(const ValidateReport& report, const Pool& pool, Band band, int& tables) {
  std::vector<Deviation> rows;
  tables = 0;
  for (const ScoredTable& table : report.tables) {
    if (!pool.has(table)) continue;
    const std::size_t before = rows.size();
    std::copy_if(table.rows.begin(), table.rows.end(), std::back_inserter(rows),
                 [&](const Deviation& row) { return band_of(row.size) == band; });
    if (rows.size() > before) ++tables;
  }
  return band_error(rows);
}

/// Whether they are sound, the one or the other.
bool every_source_says(const ValidateReport& report, const Pool& pool) {
  return std::ranges::none_of(report.tables,
                              [&](const ScoredTable& table) { return pool.has(table) && table.healthy == "unknown"; });
}

std::vector<std::string> collectives(const ValidateReport& report) {
  std::set<std::string> present;
  for (const ScoredTable& table : report.tables) present.insert(table.collective);
  std::vector<std::string> out;
  for (const std::string& name : collective_names())
    if (present.count(name) > 0) out.push_back(name);
  return out;
}

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

Json rows_json(const std::vector<Deviation>& rows) {
  Json out = Json::array();
  for (const Deviation& row : rows)
    out.push_back({{"size_bytes", row.size.value()},
                   {"in_place", row.in_place},
                   {"algorithm", row.algorithm},
                   {"measured_s", row.measured.count()},
                   {"predicted_s", row.predicted.count()},
                   {"ape", row.ape()}});
  return out;
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

/// What was measured is told by a digest: equal digests, equal rows of equal tables.
Json inputs_json(const ValidateReport& report) {
  Json measured = Json::array();
  for (const ScoredTable& table : report.tables) {
    Json rows = Json::array();
    for (const Deviation& row : table.rows) rows.push_back({row.size.value(), row.in_place, row.measured.count()});
    measured.push_back({table.id, table.collective, table.nodes, table.ranks, rows});
  }
  Json out{{"method", report.method},
           {"statistic", report.statistic},
           {"part", report.part.empty() ? Json() : Json(report.part)},
           {"leave_one_out", report.left_out},
           {"tables", report.tables.size()},
           {"measured_digest", digest(measured)},
           {"machines", Json::object()}};
  for (const ScoringMachine& machine : report.machines)
    out["machines"][machine.topology] = {{"digest", machine.digest},
                                         {"calibrated", machine.calibrated},
                                         {"base_latency_s", machine.base_latency.count()}};
  return out;
}

Json document_json(const ValidateReport& report) {
  Json out = document("collcast.validate.v1");
  out["library"] = report.library;
  out["method"] = report.method;
  out["statistic"] = report.statistic;
  out["partial"] = report.not_reached > 0;
  out["not_reached"] = report.not_reached;
  out["tables"] = Json::array();
  for (const ScoredTable& table : report.tables) {
    Json one = table_json(table);
    one["derived"] = table.derived ? derivation_json(*table.derived) : Json();
    one["faults"] = faults_json(table);
    one["rows"] = rows_json(table.rows);
    out["tables"].push_back(std::move(one));
  }
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
    add_row("summary_by_nodes", row, {{"nodes", row.nodes == NodeCount::one ? "one" : "several"}});
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

std::string error_text(const BandError& error) {
  return error.n == 0 ? "-" : fmt::format("{} ({})", percent(error.median_ape), percent(error.mean_ape));
}

std::string pooled_text(const BandError& error) {
  return error.n == 0
             ? "-"
             : fmt::format("{} ({}, {})", percent(error.median_ape), percent(error.mean_ape), percent(error.p90_ape));
}

std::string ratio_text(const BandError& error) {
  return error.n == 0 ? "-" : fmt::format("{:.2f}", error.median_ratio);
}

bool any_spread(const ValidateReport& report) {
  for (const ScoredTable& table : report.tables)
    for (const BandError& error : table.errors)
      if (error.spread) return true;
  return false;
}

std::vector<Column> band_columns() {
  std::vector<Column> out;
  for (const char* title : {"below 64 KiB", "to 4 MiB", "above"}) out.push_back({title, "", Align::right});
  return out;
}

Table summary_table(const ValidateReport& report, bool healthy) {
  Table out;
  out.title = healthy
                  ? "error of the rows by size: median (mean, 90th percentile); median ratio of predicted to measured"
                  : "the same over set-ups that their own source calls broken";
  out.columns = {{"collective", "", Align::left}, {"tables", "", Align::right}, {"rows", "", Align::right}};
  const std::vector<Column> columns = band_columns();
  out.columns.insert(out.columns.end(), columns.begin(), columns.end());
  for (const char* title : {"ratio below", "ratio to 4 MiB", "ratio above"})
    out.columns.push_back({title, "", Align::right});
  std::vector<std::pair<std::string, Pool>> pools;
  for (const std::string& name : collectives(report)) pools.push_back({name, {name, healthy, NodeCount::any}});
  pools.push_back({"all", {{}, healthy, NodeCount::any}});
  const auto some = [&](NodeCount nodes) {
    const Pool pool{{}, healthy, nodes};
    return std::any_of(report.tables.begin(), report.tables.end(), [&](const ScoredTable& t) { return pool.has(t); });
  };
  if (some(NodeCount::one) && some(NodeCount::several)) {
    pools.push_back({"all, one node", {{}, healthy, NodeCount::one}});
    pools.push_back({"all, several nodes", {{}, healthy, NodeCount::several}});
  }
  for (const auto& one : pools) {
    const Pool& pool = one.second;
    std::array<BandError, 3> errors{};
    int rows = 0;
    for (const Band band : bands) {
      int tables_of_band = 0;
      errors[index(band)] = pooled(report, pool, band, tables_of_band);
      rows += errors[index(band)].n;
    }
    if (rows == 0) continue;
    const auto tables =
        std::count_if(report.tables.begin(), report.tables.end(), [&](const ScoredTable& t) { return pool.has(t); });
    std::vector<std::string> cells{one.first, fmt::format("{}", tables), fmt::format("{}", rows)};
    for (const BandError& error : errors) cells.push_back(pooled_text(error));
    for (const BandError& error : errors) cells.push_back(ratio_text(error));
    out.rows.push_back(std::move(cells));
  }
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
    for (const BandError& error : table->errors) cells.push_back(error_text(error));
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

BandError band_error(const std::vector<Deviation>& rows) {
  std::vector<double> apes, ratios, spreads;
  for (const Deviation& row : rows) {
    apes.push_back(row.ape());
    ratios.push_back(row.predicted / row.measured);
    if (row.spread) spreads.push_back(*row.spread);
  }
  auto out = error_of<BandError>(std::move(apes), std::move(ratios));
  if (!spreads.empty()) out.spread = median(std::move(spreads));
  return out;
}

std::vector<SummaryRow> summary(const ValidateReport& report) {
  std::vector<SummaryRow> out;
  std::vector<std::string> names = collectives(report);
  names.emplace_back();
  for (const bool healthy : {true, false})
    for (const std::string& name : names)
      for (const Band band : bands) {
        SummaryRow row{name, healthy, band, NodeCount::any, 0, {}, true};
        const Pool pool{name, healthy, NodeCount::any};
        row.error = pooled(report, pool, band, row.tables);
        row.known = every_source_says(report, pool);
        if (row.error.n > 0) out.push_back(row);
      }
  return out;
}

std::vector<SummaryRow> summary_by_nodes(const ValidateReport& report) {
  std::vector<SummaryRow> out;
  for (const bool healthy : {true, false})
    for (const NodeCount nodes : {NodeCount::one, NodeCount::several})
      for (const Band band : bands) {
        const Pool pool{{}, healthy, nodes};
        SummaryRow row{{}, healthy, band, nodes, 0, {}, true};
        row.error = pooled(report, pool, band, row.tables);
        row.known = every_source_says(report, pool);
        if (row.error.n > 0) out.push_back(row);
      }
  return out;
}

std::vector<BudgetOutcome> outcomes(const ValidateReport& report, const std::vector<Budget>& budgets) {
  std::vector<BudgetOutcome> out;
  for (const Budget& budget : budgets) {
    int tables = 0;
    const BandError error = pooled(report, {budget.collective, true, NodeCount::any}, budget.band, tables);
    out.push_back({budget, error.n, error.median_ape});
  }
  return out;
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

std::string json(const ValidateReport& report) { return text(document_json(report)); }

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
                  "has not seen it",
                  Paragraph::Tone::note});
  for (const BudgetOutcome& budget : report.budgets)
    out.blocks.push_back(
        Paragraph{budget_text(budget), budget.met() ? Paragraph::Tone::plain : Paragraph::Tone::warning});
  for (const std::string& warning : report.warnings) out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
  if (broken < static_cast<std::int64_t>(report.tables.size())) out.blocks.push_back(summary_table(report, true));
  if (broken > 0) out.blocks.push_back(summary_table(report, false));
  const std::vector<const ScoredTable*> shown = shown_tables(report);
  if (!shown.empty()) {
    Table tables = tables_table(report, shown);
    tables.title = shown.size() == report.tables.size() ? "every table: median (mean)"
                                                        : "the tables that are farthest off: median (mean)";
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
