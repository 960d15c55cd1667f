// The largest differences between two forecasts, in words.
#pragma once

#include <string>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::planner {

struct Subject {
  const StepInputs& inputs;
  const StepResult& result;
};

/// About `own` beside `best`: a sentence for each term of the time that differs by at least a fiftieth of the best
/// step, largest first, then one for memory if `own` needs more than the GPU has.
std::vector<std::string> sentences(const Fabric&, const Subject& own, const Subject& best);

}  // namespace collcast::planner
