// What a person should know beside the numbers, with what would help.
#pragma once

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// "1 micro-batch is fewer than the 4 pipeline stages: some stage is always idle".
std::string too_few_micro_batches(int micro_batches, int stages);

/// `time`: of the closed form, by which changes are tried.
std::vector<std::string> warnings(const StepInputs&, const Fabric&, const StepResult&, const CollectiveTime& time);

}  // namespace collcast::workload
