// How far forecasts are off, summed up: the arithmetic that every kind of measurement shares.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace collcast {

/// Of an even number the mean of the two in the middle; there is at least one.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// `n`, `mean_ape`, `median_ape`, `p90_ape` and `median_ratio` of rows with these errors and ratios of predicted to
/// measured; 0 where there are none.
template <class Error>
Error error_of(std::vector<double> apes, std::vector<double> ratios) {
  Error out;
  out.n = static_cast<int>(apes.size());
  if (apes.empty()) return out;
  out.mean_ape = std::accumulate(apes.begin(), apes.end(), 0.0) / out.n;
  std::sort(apes.begin(), apes.end());
  out.p90_ape = apes[static_cast<std::size_t>(std::ceil(0.9 * out.n)) - 1];
  out.median_ape = median(std::move(apes));
  out.median_ratio = median(std::move(ratios));
  return out;
}

}  // namespace collcast
