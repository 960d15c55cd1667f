// One scale per source, GPU and precision, and one per schedule of all sources: what a pipeline takes beyond the stages
// that it is made of (3.5 to 16 % of published runs, docs/steps.md).
//
// Cross-validated: configurations are dealt into folds by their names; a row's schedule is fitted to the other folds,
// and its scale to the other configurations of its cell, with that schedule's. Both minimise the mean of |s p/m - 1|
// over the rows that they are fitted to: the median of m/p, each row weighing p/m.
#include <map>
#include <tuple>
#include <utility>

#include "collcast/base/fnv1a.hpp"
#include "collcast/validation/training.hpp"
#include "weighted_median.hpp"

namespace collcast {

namespace {

struct Ratio {
  double measured_over_predicted = 1;
  const std::string* configuration = nullptr;
};

/// Over all but one configuration. Nothing where no other is left.
std::optional<double> scale_without(const std::vector<Ratio>& ratios, const std::string& configuration) {
  std::vector<Weighed> others;
  for (const Ratio& one : ratios)
    if (*one.configuration != configuration)
      others.push_back({one.measured_over_predicted, 1 / one.measured_over_predicted});
  return weighted_median(std::move(others));
}

constexpr std::size_t folds = 10;

/// The same on every machine.
std::size_t fold_of(const std::string& configuration) { return static_cast<std::size_t>(fnv1a(configuration) % folds); }

using DeviationCell = std::vector<TrainingDeviation*>;
using DeviationCells = std::map<std::tuple<std::string, std::string, std::string>, DeviationCell>;
/// What a schedule takes beyond the forecast; without a pipeline 1.
using Schedules = std::map<std::string, double>;

double of(const Schedules& schedules, const TrainingDeviation& row) {
  const auto found = schedules.find(row.schedule);
  return found == schedules.end() ? 1 : found->second;
}

bool has_pipeline(const TrainingDeviation& row) { return !row.schedule.empty() && row.schedule != "none"; }

Ratio ratio(const TrainingDeviation& row, double factor) {
  return {*row.measured / (row.predicted * factor), &row.configuration};
}

const std::string no_configuration;

/// To the rows outside of `fold`: cells and schedules in turn.
Schedules fit_schedules(const DeviationCells& cells, std::size_t fold) {
  Schedules out;
  constexpr int turns = 5;
  for (int turn = 0; turn < turns; ++turn) {
    std::map<std::string, std::vector<Ratio>> rest;
    for (const auto& [key, members] : cells) {
      std::vector<Ratio> ratios;
      for (const TrainingDeviation* row : members)
        if (fold_of(row->configuration) != fold) ratios.push_back(ratio(*row, of(out, *row)));
      const std::optional<double> scale = scale_without(ratios, no_configuration);
      for (const TrainingDeviation* row : members)
        if (scale && has_pipeline(*row) && fold_of(row->configuration) != fold)
          rest[row->schedule].push_back(ratio(*row, *scale));
    }
    for (const auto& [schedule, ratios] : rest) out[schedule] = scale_without(ratios, no_configuration).value_or(1);
  }
  return out;
}

}  // namespace

void cross_validate(std::vector<TrainingDeviation>& rows) {
  DeviationCells cells;
  for (TrainingDeviation& row : rows)
    if (row.measured) cells[{row.source_id, row.gpu, row.precision}].push_back(&row);
  for (std::size_t fold = 0; fold < folds; ++fold) {
    const Schedules schedules = fit_schedules(cells, fold);
    for (auto& [key, members] : cells) {
      std::vector<Ratio> ratios;
      for (const TrainingDeviation* row : members) ratios.push_back(ratio(*row, of(schedules, *row)));
      for (TrainingDeviation* row : members) {
        if (fold_of(row->configuration) != fold) continue;
        row->scale = scale_without(ratios, row->configuration);
        if (row->scale) *row->scale *= of(schedules, *row);
      }
    }
  }
}

}  // namespace collcast
