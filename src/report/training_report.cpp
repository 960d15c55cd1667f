// collcast.validate.v1 of published training steps: how far their forecasts are off.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "collcast/base/units.hpp"
#include "collcast/report/training_document.hpp"
#include "report/document.hpp"
#include "report/error_summary.hpp"
#include "report/errors.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

struct Pool {
  std::string source_id, tier;  ///< empty: all
  std::string without = {};     ///< a source that is not
  template <class Row>
  bool has(const Row& row) const {
    return (source_id.empty() || row.source_id == source_id) && (tier.empty() || row.tier == tier) &&
           (without.empty() || row.source_id != without);
  }
};

TrainingSummaryRow summed(const TrainingReport& report, const Pool& pool) {
  TrainingSummaryRow out{pool.source_id, pool.tier, 0, 0, {}, {}, {}, 0, 0, 0, 0, pool.without};
  std::vector<double> time, calibrated, memory;
  for (const TrainingDeviation& row : report.rows) {
    if (!pool.has(row)) continue;
    ++out.rows;
    if (row.measured) {
      time.push_back(row.predicted / *row.measured);
      calibrated.push_back(row.calibrated().value_or(row.predicted) / *row.measured);
      if (row.scale) ++out.scaled;
    }
    if (row.measured_memory)
      memory.push_back(static_cast<double>(row.memory.measured().value()) /
                       static_cast<double>(row.measured_memory->value()));
    if (row.measured_oom) {
      ++out.oom;
      if (row.predicted_oom()) ++out.flagged;
    } else if (row.predicted_oom()) {
      ++out.false_oom;
    }
  }
  out.unscored = static_cast<int>(std::count_if(report.unscored.begin(), report.unscored.end(),
                                                [&](const UnscoredRow& row) { return pool.has(row); }));
  out.time = error_summary(std::move(time));
  out.calibrated = error_summary(std::move(calibrated));
  out.memory = error_summary(std::move(memory));
  return out;
}

/// The name that more than half of them have; empty: none has, or all have.
template <class Names>
std::string most_of(const Names& names) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& name : names) ++counts[name];
  for (const auto& [name, count] : counts)
    if (2 * count > names.size() && count < names.size()) return name;
  return {};
}

std::string name_of_all(const std::string& source_id, const std::string& without) {
  if (!source_id.empty()) return source_id;
  return without.empty() ? "all" : "all but " + without;
}

/// Places from 1; equal values share the mean of theirs.
std::vector<double> places(const std::vector<double>& values) {
  std::vector<double> out;
  for (const double value : values) {
    const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < value; });
    const auto equal = std::count(values.begin(), values.end(), value);
    out.push_back(static_cast<double>(below) + (static_cast<double>(equal) + 1) / 2);
  }
  return out;
}

/// Spearman's: the correlation of the places.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = places(a), y = places(b);
  const double mean = (static_cast<double>(x.size()) + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

Json optional_json(std::optional<double> value) { return value ? Json(*value) : Json(); }

Json row_json(const TrainingDeviation& row) {
  Json out;
  out["row_id"] = row.row_id;
  out["source_id"] = row.source_id;
  out["tier"] = row.tier;
  out["gpu"] = row.gpu;
  out["precision"] = row.precision;
  out["schedule"] = row.schedule;
  out["topology"] = row.topology;
  out["measured_s"] = number(row.measured);
  out["measured_by"] = row.measured_by.empty() ? Json() : Json(row.measured_by);
  out["predicted_s"] = row.predicted.count();
  out["ape"] = optional_json(row.ape());
  out["calibrated_s"] = number(row.calibrated());
  out["calibrated_ape"] = optional_json(row.calibrated_ape());
  out["measured_memory_bytes"] = row.measured_memory ? Json(row.measured_memory->value()) : Json();
  out["predicted_memory_bytes"] = row.memory.measured().value();
  out["memory_measure"] = std::string(to_string(row.memory.measure));
  out["memory_ape"] = optional_json(row.memory_ape());
  out["measured_oom"] = row.measured_oom;
  out["predicted_oom"] = row.predicted_oom();
  return out;
}

Json memory_json(const TrainingMemory& m) {
  Json out = memory_json(m.use);
  out["framework_bytes"] = m.use.framework.value();
  out["reserved_bytes"] = m.use.reserved().value();
  out["used_bytes"] = m.use.peak().value();
  return out;
}

Json summary_json(const TrainingSummaryRow& row) {
  Json out{{"source_id", name_of_all(row.source_id, row.without)},
           {"tier", row.tier.empty() ? "all" : row.tier},
           {"rows", row.rows},
           {"unscored", row.unscored}};
  out.update(error_json(row.time));
  out["calibrated"] = error_json(row.calibrated);
  out["calibrated"]["scaled"] = row.scaled;
  out["memory"] = error_json(row.memory);
  out["oom"] = {{"measured", row.oom}, {"flagged", row.flagged}, {"flagged_but_ran", row.false_oom}};
  return out;
}

const char* name_of(TrainingBudget::Figure figure) {
  switch (figure) {
    case TrainingBudget::Figure::time:
      return "time";
    case TrainingBudget::Figure::calibrated:
      return "calibrated";
    case TrainingBudget::Figure::memory:
      break;
  }
  return "memory";
}

const ErrorSummary& figure_of(const TrainingSummaryRow& row, TrainingBudget::Figure figure) {
  switch (figure) {
    case TrainingBudget::Figure::time:
      return row.time;
    case TrainingBudget::Figure::calibrated:
      return row.calibrated;
    case TrainingBudget::Figure::memory:
      break;
  }
  return row.memory;
}

Json inputs_json(const TrainingReport& report) {
  Json measured = Json::array();
  for (const TrainingDeviation& row : report.rows)
    measured.push_back({row.row_id, row.configuration, number(row.measured)});
  Json out{{"method", report.method},
           {"rows", report.rows.size()},
           {"measured_digest", digest(measured)},
           {"machines", Json::object()}};
  for (const ScoringMachine& machine : report.machines)
    out["machines"][machine.topology] = {{"digest", machine.digest}};
  return out;
}

Json document_json(const TrainingReport& report) {
  Json out = document("collcast.validate.v1");
  out["library"] = report.library;
  out["method"] = report.method;
  out["tables"] = Json::array();
  out["rows"] = Json::array();
  for (const TrainingDeviation& row : report.rows) {
    Json one = row_json(row);
    one["breakdown"] = breakdown_json(row.breakdown);
    one["memory"] = memory_json(row.memory);
    one["assumed"] = row.assumed;
    out["rows"].push_back(std::move(one));
  }
  out["summary"] = Json::array();
  for (const TrainingSummaryRow& row : summary(report)) out["summary"].push_back(summary_json(row));
  out["rankings"] = Json::array();
  for (const TrainingRanking& one : rankings(report))
    out["rankings"].push_back({{"source_id", one.source_id},
                               {"job", one.job},
                               {"n", one.n},
                               {"spearman", one.spearman},
                               {"slowdown", one.slowdown}});
  out["rankings_summary"] = Json::array();
  for (const TrainingRankingSummary& one : summary(rankings(report)))
    out["rankings_summary"].push_back({{"source_id", name_of_all(one.source_id, one.without)},
                                       {"jobs", one.jobs},
                                       {"median_spearman", one.median_spearman},
                                       {"least_spearman", one.least_spearman},
                                       {"median_slowdown", one.median_slowdown},
                                       {"most_slowdown", one.most_slowdown}});
  out["partial"] = report.not_reached > 0;
  out["not_reached"] = report.not_reached;
  out["unscored"] = Json::array();
  for (const UnscoredRow& row : report.unscored)
    out["unscored"].push_back({{"id", row.row_id}, {"source_id", row.source_id}, {"tier", row.tier}, {"why", row.why}});
  out["budgets"] = Json::array();
  for (const TrainingBudgetOutcome& one : report.budgets)
    out["budgets"].push_back({{"figure", name_of(one.budget.figure)},
                              {"source_id", one.budget.source_id.empty() ? "all" : one.budget.source_id},
                              {"tier", one.budget.tier.empty() ? "all" : one.budget.tier},
                              {"limit_ape", one.budget.limit},
                              {"n", one.n},
                              {"median_ape", one.n > 0 ? Json(one.median_ape) : Json()},
                              {"met", one.met()}});
  out["warnings"] = report.warnings;
  out["inputs"] = inputs_json(report);
  return out;
}

std::vector<Column> left_columns(std::initializer_list<const char*> titles) {
  std::vector<Column> out;
  for (const char* title : titles) out.push_back({title, "", Align::left});
  return out;
}

Table summary_table(const TrainingReport& report) {
  Table out;
  out.title = "error by source and tier: median (mean, 90th percentile)";
  out.columns = left_columns({"source", "tier"});
  for (const char* title :
       {"rows", "not scored", "time", "ratio", "calibrated", "memory", "out of memory", "ran, forecast not to fit"})
    out.columns.push_back({title, "", Align::right});
  for (const TrainingSummaryRow& row : summary(report))
    out.rows.push_back({name_of_all(row.source_id, row.without), row.tier.empty() ? "all" : row.tier,
                        fmt::format("{}", row.rows), fmt::format("{}", row.unscored), error_text(row.time),
                        row.time.n == 0 ? "-" : fmt::format("{:.2f}", row.time.median_ratio),
                        error_text(row.calibrated), error_text(row.memory),
                        row.oom == 0 ? "-" : fmt::format("{} of {}", row.flagged, row.oom),
                        fmt::format("{}", row.false_oom)});
  return out;
}

constexpr std::size_t most_on_a_terminal = 20;

std::string job_text(std::string job) {
  while (!job.empty() && job.back() == '|') job.pop_back();
  std::replace(job.begin(), job.end(), '|', ' ');
  return job;
}

Table ranking_summary_table(const std::vector<TrainingRanking>& all) {
  Table out{"order of the alternatives of one job, by source", left_columns({"source"}), {}};
  for (const char* title : {"jobs", "median Spearman", "least", "median pick slower by", "most"})
    out.columns.push_back({title, "", Align::right});
  for (const TrainingRankingSummary& one : summary(all))
    out.rows.push_back({name_of_all(one.source_id, one.without), fmt::format("{}", one.jobs),
                        fmt::format("{:.2f}", one.median_spearman), fmt::format("{:.2f}", one.least_spearman),
                        percent(one.median_slowdown), percent(one.most_slowdown)});
  return out;
}

/// The jobs with the most alternatives.
Table ranking_table(std::vector<TrainingRanking> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const TrainingRanking& a, const TrainingRanking& b) { return a.n > b.n; });
  const bool every = all.size() <= most_on_a_terminal / 2;
  all.resize(std::min(all.size(), most_on_a_terminal / 2));
  Table out{every ? "every job" : "the jobs with the most rows", left_columns({"job"}), {}};
  for (const char* title : {"rows", "Spearman", "pick slower by"}) out.columns.push_back({title, "", Align::right});
  for (const TrainingRanking& one : all)
    out.rows.push_back(
        {job_text(one.job), fmt::format("{}", one.n), fmt::format("{:.2f}", one.spearman), percent(one.slowdown)});
  return out;
}

Table rows_table(const std::vector<const TrainingDeviation*>& rows) {
  Table out;
  out.columns = left_columns({"row", "tier", "machine", "precision", "schedule"});
  for (const char* title : {"measured", "predicted", "error", "calibrated", "memory"})
    out.columns.push_back({title, "", Align::right});
  const auto share = [](std::optional<double> ape) { return ape ? percent(*ape) : std::string("-"); };
  for (const TrainingDeviation* row : rows)
    out.rows.push_back({row->row_id, row->tier, row->topology, row->precision, row->schedule,
                        row->measured ? format_seconds(*row->measured) : "-", format_seconds(row->predicted),
                        share(row->ape()), share(row->calibrated_ape()), share(row->memory_ape())});
  return out;
}

std::vector<const TrainingDeviation*> shown_rows(const TrainingReport& report) {
  std::vector<const TrainingDeviation*> out;
  for (const TrainingDeviation& row : report.rows) out.push_back(&row);
  if (out.size() <= most_on_a_terminal) return out;
  std::stable_sort(out.begin(), out.end(), [](const TrainingDeviation* a, const TrainingDeviation* b) {
    return a->ape().value_or(0) > b->ape().value_or(0);
  });
  out.resize(most_on_a_terminal / 2);
  return out;
}

/// By reason: how many rows of which sources.
Table unscored_table(const TrainingReport& report) {
  std::map<std::string, std::pair<int, std::set<std::string>>> by_reason;
  for (const UnscoredRow& row : report.unscored) {
    auto& [count, sources] = by_reason[row.why];
    ++count;
    sources.insert(row.source_id);
  }
  Table out{"not scored", {{"rows", "", Align::right}, {"sources", "", Align::left}, {"why", "", Align::left}}, {}};
  for (const auto& [why, rows] : by_reason)
    out.rows.push_back({fmt::format("{}", rows.first), fmt::format("{}", fmt::join(rows.second, ", ")), why});
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return std::stoi(a.front()) > std::stoi(b.front()); });
  return out;
}

}  // namespace

std::string_view to_string(MemoryMeasure measure) {
  switch (measure) {
    case MemoryMeasure::allocated:
      return "allocated";
    case MemoryMeasure::reserved:
      return "reserved";
    case MemoryMeasure::used:
      break;
  }
  return "used";
}

std::optional<double> TrainingDeviation::ape() const {
  if (!measured) return std::nullopt;
  return std::abs(predicted / *measured - 1);
}

std::optional<Seconds> TrainingDeviation::calibrated() const {
  if (!scale) return std::nullopt;
  return predicted * *scale;
}

std::optional<double> TrainingDeviation::calibrated_ape() const {
  if (!scale || !measured) return std::nullopt;
  return std::abs(*calibrated() / *measured - 1);
}

std::optional<double> TrainingDeviation::memory_ape() const {
  if (!measured_memory) return std::nullopt;
  return std::abs(static_cast<double>(memory.measured().value()) / static_cast<double>(measured_memory->value()) - 1);
}

std::vector<TrainingSummaryRow> summary(const TrainingReport& report) {
  std::set<std::string> sources, tiers;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) {
      sources.insert(row.source_id);
      tiers.insert(row.tier);
    }
  };
  add(report.rows);
  add(report.unscored);
  std::vector<TrainingSummaryRow> out;
  const auto put = [&](const Pool& pool) {
    TrainingSummaryRow row = summed(report, pool);
    if (row.rows + row.unscored > 0) out.push_back(std::move(row));
  };
  for (const std::string& source : sources)
    for (const std::string& tier : tiers)
      if (!tier.empty()) put({source, tier});
  const auto put_all = [&](const std::string& tier) {
    put({{}, tier});
    std::vector<std::string> of;
    for (const TrainingDeviation& row : report.rows)
      if (tier.empty() || row.tier == tier) of.push_back(row.source_id);
    if (const std::string most = most_of(of); !most.empty()) put({{}, tier, most});
  };
  for (const std::string& tier : tiers)
    if (!tier.empty()) put_all(tier);
  put_all({});
  return out;
}

std::vector<TrainingRanking> rankings(const TrainingReport& report) {
  std::map<std::pair<std::string, std::string>, std::vector<const TrainingDeviation*>> jobs;
  for (const TrainingDeviation& row : report.rows)
    if (row.measured) jobs[{row.source_id, row.job}].push_back(&row);
  std::vector<TrainingRanking> out;
  for (const auto& [key, rows] : jobs) {
    std::set<std::string> layouts;
    std::vector<double> measured, predicted;
    for (const TrainingDeviation* row : rows) {
      layouts.insert(row->configuration);
      measured.push_back(row->measured->count());
      predicted.push_back(row->predicted.count());
    }
    if (static_cast<int>(layouts.size()) < least_alternatives) continue;
    const auto pick = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
    out.push_back({key.first, key.second, static_cast<int>(rows.size()), rank_correlation(measured, predicted),
                   measured[static_cast<std::size_t>(pick)] / *std::min_element(measured.begin(), measured.end()) - 1});
  }
  return out;
}

std::vector<TrainingRankingSummary> summary(const std::vector<TrainingRanking>& all) {
  std::vector<std::string> of;
  for (const TrainingRanking& one : all) of.push_back(one.source_id);
  std::vector<TrainingRankingSummary> out;
  const auto put = [&](const Pool& pool) {
    std::vector<double> spearman, slowdown;
    for (const TrainingRanking& one : all) {
      if (!(pool.source_id.empty() || one.source_id == pool.source_id) ||
          (!pool.without.empty() && one.source_id == pool.without))
        continue;
      spearman.push_back(one.spearman);
      slowdown.push_back(one.slowdown);
    }
    if (spearman.empty()) return;
    out.push_back({pool.source_id, pool.without, static_cast<int>(spearman.size()), median(spearman),
                   *std::min_element(spearman.begin(), spearman.end()), median(slowdown),
                   *std::max_element(slowdown.begin(), slowdown.end())});
  };
  for (const std::string& source : std::set<std::string>(of.begin(), of.end())) put({source, {}});
  put({});
  if (const std::string most = most_of(of); !most.empty()) put({{}, {}, most});
  return out;
}

std::vector<TrainingBudgetOutcome> outcomes(const TrainingReport& report, const std::vector<TrainingBudget>& budgets) {
  std::vector<TrainingBudgetOutcome> out;
  for (const TrainingBudget& budget : budgets) {
    const TrainingSummaryRow row = summed(report, {budget.source_id, budget.tier});
    const ErrorSummary& error = figure_of(row, budget.figure);
    out.push_back({budget, error.n, error.median_ape});
  }
  return out;
}

std::string budget_text(const TrainingBudgetOutcome& outcome) {
  const TrainingBudget& budget = outcome.budget;
  const std::string what =
      fmt::format("{} {}.{}", name_of(budget.figure), budget.source_id.empty() ? "all" : budget.source_id,
                  budget.tier.empty() ? "all" : budget.tier);
  return budget_text(what, outcome.n, outcome.median_ape, budget.limit);
}

std::string json(const TrainingReport& report) { return text(document_json(report)); }

Table csv(const TrainingReport& report) {
  Json rows = Json::array();
  for (const TrainingDeviation& row : report.rows) {
    rows.push_back(row_json(row));
    rows.back()["why_unscored"] = nullptr;
  }
  Json none = without_values(row_json({}));
  for (const UnscoredRow& row : report.unscored) {
    none["row_id"] = row.row_id;
    none["source_id"] = row.source_id;
    none["tier"] = row.tier;
    none["why_unscored"] = row.why;
    rows.push_back(none);
  }
  return csv_rows(rows);
}

Page page(const TrainingReport& report) {
  Page out;
  out.title = fmt::format("{} scored against library {}, method {}",
                          counted(static_cast<std::int64_t>(report.rows.size()), "measured training step"),
                          report.library, report.method);
  for (const TrainingBudgetOutcome& budget : report.budgets)
    out.blocks.push_back(
        Paragraph{budget_text(budget), budget.met() ? Paragraph::Tone::plain : Paragraph::Tone::warning});
  for (const std::string& warning : report.warnings) out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
  out.blocks.push_back(summary_table(report));
  if (const std::vector<TrainingRanking> all = rankings(report); !all.empty()) {
    out.blocks.push_back(ranking_summary_table(all));
    out.blocks.push_back(ranking_table(all));
  }
  const std::vector<const TrainingDeviation*> shown = shown_rows(report);
  if (!shown.empty()) {
    Table rows = rows_table(shown);
    rows.title = shown.size() == report.rows.size() ? "every row" : "the rows that are farthest off";
    out.blocks.push_back(std::move(rows));
  }
  if (!report.unscored.empty()) out.blocks.push_back(unscored_table(report));
  if (shown.size() < report.rows.size())
    out.blocks.push_back(Paragraph{"--format csv or json has every row", Paragraph::Tone::note});
  return out;
}

}  // namespace collcast
