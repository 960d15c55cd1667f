// What would make a training step, or a batch served, fit the memory: changes to it, each tried.
#pragma once

#include <string>

#include "collcast/topology/fabric.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// "it fits with training.zero: 2 (54.6 GiB) or ...", up to three changes, those first that cost least; where none is
/// enough, several together. Changes that check_step refuses are none, nor are for training those that need other GPUs.
std::string what_would_fit(const StepInputs&, const Fabric&);

}  // namespace collcast::workload
