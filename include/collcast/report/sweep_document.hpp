// collcast.sweep.v1: a scenario's step at several points, side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/report/documents.hpp"

namespace collcast {

struct SweepReport {
  std::string scenario, title;
  /// What differs from row to row: paths of the scenario; "what_if" where its variants do.
  std::vector<std::string> axes;
  struct Row {
    std::vector<std::string> values;  ///< one for each axis; of "what_if" empty for the scenario as it is
    std::optional<StepReport> step;
    std::string reason;  ///< why there is no step
  };
  std::vector<Row> rows;
  bool partial = false;  ///< points are missing that there was no time for, or rows are of the closed form alone
  std::vector<std::string> said;  ///< as of CollectiveReport
};

std::string json(const SweepReport&);
Table csv(const SweepReport&);
Page page(const SweepReport&);

}  // namespace collcast
