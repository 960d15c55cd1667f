// What a person should know beside the numbers, with what would help.
#pragma once

#include "collcast/workload/step.hpp"

namespace collcast::workload {

std::vector<std::string> warnings(const StepInputs&, const Fabric&, const StepResult&);

}  // namespace collcast::workload
