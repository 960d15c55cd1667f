#include "fit_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace collcast {

namespace {

/// At most so many sizes of a table, evenly over all of them.
std::set<Bytes> taken_sizes(const MeasuredTable& table, const std::vector<std::uint32_t>& order, std::size_t most) {
  std::vector<Bytes> sizes;
  for (const std::uint32_t i : order)
    if (sizes.empty() || sizes.back() < table.points[i].size) sizes.push_back(table.points[i].size);
  std::set<Bytes> out;
  const std::size_t count = std::min(sizes.size(), most);
  for (std::size_t i = 0; i < count; ++i) out.insert(sizes[count == 1 ? 0 : i * (sizes.size() - 1) / (count - 1)]);
  return out;
}

/// All that a forecast depends on beside the size.
using RunKey = std::tuple<const Fabric*, std::string, std::string, CollectiveKind, std::vector<Rank>>;

RunKey key_of(const PlacedTable& place) {
  return {place.fabric.get(), place.algorithm, text_of(place.environment), place.kind, place.group.ranks()};
}

}  // namespace

FitRows::FitRows(const std::vector<FitTable>& tables, Statistic statistic, std::size_t most_sizes) {
  std::map<RunKey, std::uint32_t> runs;
  std::vector<std::map<Bytes, std::uint32_t>> of_run;  // forecasts, by size
  for (const FitTable& one : tables) {
    const MeasuredTable& table = *one.place->table;
    const std::vector<std::uint32_t> order = by_size(table);
    const std::set<Bytes> taken = taken_sizes(table, order, most_sizes);
    const auto [found, is_new] = runs.try_emplace(key_of(*one.place), static_cast<std::uint32_t>(runs_.size()));
    if (is_new) {
      runs_.push_back(one.place);
      of_run.emplace_back();
    }
    Table& out = tables_.emplace_back();
    out.weight = one.weight;
    if (taken.size() == 0) continue;
    out.rows.reserve(order.size());
    bool takes = false;
    std::uint32_t forecast = 0;
    Bytes size(-1);
    for (const std::uint32_t i : order) {
      const MeasuredPoint& point = table.points[i];
      if (point.size != size) {
        size = point.size;
        takes = taken.count(size) > 0;
        if (takes) {
          const auto next = static_cast<std::uint32_t>(forecasts_.size());
          const auto [known, is_first] = of_run[found->second].try_emplace(size, next);
          if (is_first) forecasts_.push_back({found->second, size});
          forecast = known->second;
        }
      }
      if (takes) out.rows.push_back({forecast, time_of(table, point, statistic)});
    }
    out.rows.shrink_to_fit();
  }
}

double FitRows::weight() const {
  double out = 0;
  for (const Table& table : tables_) out += table.weight;
  return out;
}

std::size_t FitRows::count() const {
  std::size_t out = 0;
  for (const Table& table : tables_) out += table.rows.size();
  return out;
}

FitLoss::FitLoss(FitRows rows, RowWeight row_weight, std::size_t most_one_by_one)
    : runs_(rows.runs()), forecasts_(rows.forecasts()), weight_(rows.weight()), row_weight_(row_weight) {
  if (rows.count() > most_one_by_one)
    gather(rows);
  else
    tables_ = rows.tables();
}

void FitLoss::gather(const FitRows& rows) {
  times_.resize(forecasts_.size());
  for (const FitRows::Table& table : rows.tables()) {
    std::array<double, bands.size()> counts{};
    for (const FitRows::Row& row : table.rows)
      counts[static_cast<std::size_t>(band_of(forecasts_[row.forecast].size))] += 1;
    for (const FitRows::Row& row : table.rows) {
      const double count = counts[static_cast<std::size_t>(band_of(forecasts_[row.forecast].size))];
      const double weight = row_weight_ == RowWeight::whole ? table.weight : table.weight / std::sqrt(count);
      times_[row.forecast].add(row.measured, weight);
      row_weights_ += weight;
    }
  }
  for (LogTimes& times : times_) times.build();
}

double FitLoss::of_whole_rows(const std::vector<Seconds>& predicted, double full) const {
  double sum = 0, weights = 0;
  for (const FitRows::Table& table : tables_)
    for (const FitRows::Row& row : table.rows) {
      sum += table.weight * weighed(std::log(predicted[row.forecast] / row.measured), full);
      weights += table.weight;
    }
  return sum / weights;
}

double FitLoss::of_bands(const std::vector<Seconds>& predicted, double full) const {
  double sum = 0, weights = 0;
  for (const FitRows::Table& table : tables_) {
    std::array<double, bands.size()> of_band{}, rows{};
    for (const FitRows::Row& row : table.rows) {
      const auto i = static_cast<std::size_t>(band_of(forecasts_[row.forecast].size));
      of_band[i] += weighed(std::log(predicted[row.forecast] / row.measured), full);
      rows[i] += 1;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == 0) continue;
      sum += table.weight * of_band[i] / std::sqrt(rows[i]);
      weights += table.weight * std::sqrt(rows[i]);
    }
  }
  return sum / weights;
}

double FitLoss::of(const std::vector<Seconds>& predicted, double full) const {
  if (times_.empty())
    return row_weight_ == RowWeight::whole ? of_whole_rows(predicted, full) : of_bands(predicted, full);
  double sum = 0;
  for (std::size_t i = 0; i < times_.size(); ++i) sum += times_[i].sum(predicted[i], full);
  return sum / row_weights_;
}

}  // namespace collcast
