// What a scenario can say otherwise of the same job: values by their paths, and the inputs that they make.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// Values by their paths in a scenario.
using Values = std::vector<std::pair<std::string, std::string>>;

/// "layout.tp: 4, layout.dp: 2".
std::string text_of(const Values&);
/// Where both have a path, the later value.
Values both(Values first, const Values& then);

struct Change {
  Values values;
  StepInputs in;
};

struct Degree {
  int ParallelLayout::*value;
  const char* path;
};
inline constexpr Degree tp_degree{&ParallelLayout::tp, "layout.tp"}, pp_degree{&ParallelLayout::pp, "layout.pp"},
    dp_degree{&ParallelLayout::dp, "layout.dp"}, cp_degree{&ParallelLayout::cp, "layout.cp"};

/// The same GPUs with one degree so many times smaller, and another as many times larger; nothing where it cannot be.
std::optional<Change> traded(const StepInputs&, const Degree& smaller, const Degree& larger, int times = 2);

}  // namespace collcast::workload
