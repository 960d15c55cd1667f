// The middle of values that do not count alike.
#pragma once

#include <optional>
#include <vector>

namespace collcast {

/// A value, and how much it weighs.
struct Weighed {
  double value = 0, weight = 0;
};

/// Half of the weight is of values no larger; nothing of none.
std::optional<double> weighted_median(std::vector<Weighed> values);

}  // namespace collcast
