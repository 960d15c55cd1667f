#include "weighted_median.hpp"

#include <algorithm>

namespace collcast {

std::optional<double> weighted_median(std::vector<Weighed> values) {
  std::ranges::stable_sort(values, {}, &Weighed::value);
  double all = 0, below = 0;
  for (const Weighed& one : values) all += one.weight;
  for (const Weighed& one : values) {
    below += one.weight;
    if (2 * below >= all) return one.value;
  }
  return std::nullopt;
}

}  // namespace collcast
