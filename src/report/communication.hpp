// What the ranks of a step send, by dimension.
#pragma once

#include <vector>

#include "collcast/workload/step.hpp"

namespace collcast {

/// All communication of a dimension of a rank in a step, and how much of it nothing hides.
struct Communication {
  const char* dimension;
  Seconds total{}, exposed{};
  /// Less than a billionth of the total is the rounding of sums.
  Seconds hidden() const { return total - exposed > 1e-9 * total ? total - exposed : Seconds(0); }
};
std::vector<Communication> communication(const StepResult&);

}  // namespace collcast
