// Rows of many tables as one figure: by collective, number of nodes and band, sound set-ups and broken ones apart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "report/validate_parts.hpp"
#include "report/wording.hpp"

namespace collcast {

bool is_healthy(const ScoredTable& table) { return table.healthy != "no"; }

std::string_view to_string(NodeCount nodes) {
  switch (nodes) {
    case NodeCount::one:
      return "one";
    case NodeCount::several:
      return "several";
    case NodeCount::any:
      break;
  }
  return "any";
}

namespace {

constexpr std::array healthy_and_not{SetUps::not_broken, SetUps::broken};

/// Which tables are pooled.
struct Pool {
  std::string collective;  ///< empty: all
  SetUps set_ups = SetUps::not_broken;
  NodeCount nodes = NodeCount::any;
  bool has(const ScoredTable& table) const {
    if (!has_set_up(table)) return false;
    if (!collective.empty() && table.collective != collective) return false;
    return nodes == NodeCount::any || (table.nodes > 1) == (nodes == NodeCount::several);
  }

 private:
  bool has_set_up(const ScoredTable& table) const {
    switch (set_ups) {
      case SetUps::not_broken:
        return is_healthy(table);
      case SetUps::sound:
        return table.healthy == "yes";
      case SetUps::broken:
        break;
    }
    return !is_healthy(table);
  }
};

/// Rows of these tables in a band.
BandError pooled(const ValidateReport& report, const Pool& pool, Band band, int& tables) {
  ErrorPool errors;
  tables = 0;
  for (const ScoredTable& table : report.tables) {
    if (!pool.has(table)) continue;
    bool any = false;
    for (const Deviation& row : table.rows) {
      if (band_of(row.size) != band) continue;
      errors.add(row);
      any = true;
    }
    if (any) ++tables;
  }
  return errors.take();
}

/// Whether they are sound, the one or the other.
bool every_source_says(const ValidateReport& report, const Pool& pool) {
  return std::ranges::none_of(report.tables,
                              [&](const ScoredTable& table) { return pool.has(table) && table.healthy == "unknown"; });
}

/// Of every pool the bands that have rows.
std::vector<SummaryRow> rows_of(const ValidateReport& report, const std::vector<Pool>& pools) {
  std::vector<SummaryRow> out;
  for (const Pool& pool : pools)
    for (const Band band : bands) {
      SummaryRow row{pool.collective, pool.set_ups != SetUps::broken, band, pool.nodes, 0, {}, true};
      row.error = pooled(report, pool, band, row.tables);
      row.known = every_source_says(report, pool);
      if (row.error.n > 0) out.push_back(row);
    }
  return out;
}

}  // namespace

std::vector<std::string> collectives(const ValidateReport& report) {
  std::set<std::string> present;
  for (const ScoredTable& table : report.tables) present.insert(table.collective);
  std::vector<std::string> out;
  for (const std::string& name : collective_names())
    if (present.count(name) > 0) out.push_back(name);
  return out;
}

std::vector<SummaryRow> summary(const ValidateReport& report) {
  std::vector<std::string> names = collectives(report);
  names.emplace_back();
  std::vector<Pool> pools;
  for (const SetUps set_ups : healthy_and_not)
    for (const std::string& name : names) pools.push_back({name, set_ups, NodeCount::any});
  return rows_of(report, pools);
}

std::vector<SummaryRow> summary_by_nodes(const ValidateReport& report) {
  std::vector<Pool> pools;
  for (const SetUps set_ups : healthy_and_not)
    for (const NodeCount nodes : {NodeCount::one, NodeCount::several}) pools.push_back({{}, set_ups, nodes});
  return rows_of(report, pools);
}

std::vector<SummaryRow> summary_of_sound(const ValidateReport& report) {
  std::vector<Pool> pools;
  for (const NodeCount nodes : {NodeCount::one, NodeCount::several}) pools.push_back({{}, SetUps::sound, nodes});
  return rows_of(report, pools);
}

std::vector<SummaryRow> summary_by_collective_and_nodes(const ValidateReport& report) {
  std::vector<Pool> pools;
  for (const SetUps set_ups : healthy_and_not)
    for (const std::string& name : collectives(report))
      for (const NodeCount nodes : {NodeCount::one, NodeCount::several}) pools.push_back({name, set_ups, nodes});
  return rows_of(report, pools);
}

std::vector<BudgetOutcome> outcomes(const ValidateReport& report, const std::vector<Budget>& budgets) {
  std::vector<BudgetOutcome> out;
  for (const Budget& budget : budgets) {
    int tables = 0;
    const BandError error =
        pooled(report, {budget.collective, SetUps::not_broken, NodeCount::any}, budget.band, tables);
    out.push_back({budget, error.n, error.median_ape});
  }
  return out;
}

Table summary_table(const ValidateReport& report, SetUps set_ups) {
  Table out;
  out.title = set_ups == SetUps::not_broken
                  ? "absolute error of the rows by size; ratio: median of predicted over measured"
              : set_ups == SetUps::sound ? "of these the set-ups that their own source calls sound"
                                         : "the same over set-ups that their own source calls broken";
  out.columns = {{"collective", "", Align::left}, {"nodes", "", Align::left},
                 {"size", "", Align::left},       {"tables", "", Align::right},
                 {"rows", "", Align::right},      {"median", "", Align::right},
                 {"mean", "", Align::right},      {"90th percentile", "", Align::right},
                 {"ratio", "", Align::right}};
  const auto has = [&](const Pool& pool) {
    return std::any_of(report.tables.begin(), report.tables.end(), [&](const ScoredTable& t) { return pool.has(t); });
  };
  // All together first, where that is more than one of the others.
  std::vector<Pool> pools, parts;
  const std::vector<std::string> names = collectives(report);
  for (const std::string& name : names)
    for (const NodeCount nodes : {NodeCount::one, NodeCount::several})
      if (const Pool pool{name, set_ups, nodes}; has(pool)) parts.push_back(pool);
  const bool both = has({{}, set_ups, NodeCount::one}) && has({{}, set_ups, NodeCount::several});
  if (parts.size() > 1) pools.push_back({{}, set_ups, NodeCount::any});
  // Two parts of two numbers of nodes are these figures already, where parts are shown.
  if (both && (parts.size() > 2 || set_ups == SetUps::sound))
    for (const NodeCount nodes : {NodeCount::one, NodeCount::several}) pools.push_back({{}, set_ups, nodes});
  if (set_ups != SetUps::sound || pools.empty()) pools.insert(pools.end(), parts.begin(), parts.end());
  for (const SummaryRow& row : rows_of(report, pools)) {
    const BandError& error = row.error;
    out.rows.push_back({row.collective.empty() ? "all" : row.collective, std::string(to_string(row.nodes)),
                        std::string(band_text(row.band)), fmt::format("{}", row.tables), fmt::format("{}", error.n),
                        percent(error.median_ape), percent(error.mean_ape), percent(error.p90_ape),
                        fmt::format("{:.2f}", error.median_ratio)});
  }
  return out;
}

}  // namespace collcast
