// Settings that were written and are nothing to a step.
#pragma once

#include <string>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// A setting that is not as it is by default, how that would be ("with none"), and the inputs with it.
struct Made {
  std::string path, otherwise;
  StepInputs in;
};

/// Those without which the plan of the step, in every stretch and message, and its memory are the same. `time` is of
/// the closed form; `origins` says what a scenario has of itself.
std::vector<Made> without_effect(const StepInputs&, const Fabric&, const CollectiveTime& time, const Origins&);

}  // namespace collcast::workload
