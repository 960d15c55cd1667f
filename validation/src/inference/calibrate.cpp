// Of servers, what is fitted to other rows: what a first token takes beyond the forecast, and a scale of a token's
// time.
//
// A first token's remainder (the host's part, and whatever else a forecast lacks) is one time for each backend, fitted
// to the rows of all other architectures. It minimises the mean of |(p + t)/m - 1|, so that it is the median of m - p,
// each row weighing 1/m, and not below 0. A token has one scale for each backend, system and precision, fitted to the
// cell's rows but for those of the same architecture and layout: it minimises the mean of |s p/m - 1|, the median of
// m/p, each row weighing p/m. Models of one architecture stand together, as some measurements are in the table under
// two names (DeepSeek's R1 and V3); so no row is scored with what its own measurement was fitted to.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collcast/validation/inference.hpp"
#include "weighted_median.hpp"

namespace collcast {

namespace {

/// Of rows with both times that `counts`.
template <class Counts>
std::optional<Seconds> remainder_of(const std::vector<InferenceDeviation*>& rows, const Counts& counts) {
  std::vector<Weighed> values;
  for (const InferenceDeviation* row : rows)
    if (counts(*row))
      values.push_back({(*row->measured_ttft - *row->predicted_ttft).count(), 1 / row->measured_ttft->count()});
  const std::optional<double> median = weighted_median(std::move(values));
  return median ? std::optional(Seconds(std::max(0.0, *median))) : std::nullopt;
}

void put_remainders(InferenceReport& report) {
  std::map<std::string, std::vector<InferenceDeviation*>> backends;
  for (InferenceDeviation& row : report.rows)
    if (row.ttft_ratio()) backends[row.of.backend].push_back(&row);
  for (const auto& [backend, rows] : backends) {
    const std::optional<Seconds> all = remainder_of(rows, [](const InferenceDeviation&) { return true; });
    report.remainders.push_back({backend, static_cast<int>(rows.size()), all.value_or(Seconds{})});
    std::map<std::string, std::optional<Seconds>> without;
    for (InferenceDeviation* row : rows) {
      const auto [known, fresh] = without.try_emplace(row->architecture);
      if (fresh)
        known->second = remainder_of(
            rows, [&](const InferenceDeviation& other) { return other.architecture != row->architecture; });
      row->ttft_remainder = known->second;
    }
  }
}

void put_scales(InferenceReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<InferenceDeviation*>> cells;
  for (InferenceDeviation& row : report.rows)
    if (row.tpot_ratio()) cells[{row.of.backend, row.of.system, row.of.precision}].push_back(&row);
  for (const auto& [cell, rows] : cells) {
    std::map<std::pair<std::string, std::string>, std::optional<double>> without;
    for (InferenceDeviation* row : rows) {
      const std::pair configuration(row->architecture, row->layout);
      const auto [known, fresh] = without.try_emplace(configuration);
      if (fresh) {
        std::vector<Weighed> values;
        for (const InferenceDeviation* other : rows)
          if (std::pair(other->architecture, other->layout) != configuration)
            values.push_back({1 / *other->tpot_ratio(), *other->tpot_ratio()});
        known->second = weighted_median(std::move(values));
      }
      row->tpot_scale = known->second;
    }
  }
}

}  // namespace

void cross_validate(InferenceReport& report) {
  put_remainders(report);
  put_scales(report);
}

}  // namespace collcast
