// What a person should know beside the numbers, with what would help.
#pragma once

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// "1 micro-batch is fewer than the 4 pipeline stages: some stage is always idle".
std::string too_few_micro_batches(int micro_batches, int stages);

/// Settings of a server that are nothing, each with its path and why.
std::vector<std::string> unused_by_server(const StepInputs&);

/// `time`: of the closed form, by which changes are tried.
std::vector<std::string> warnings(const StepInputs&, const Fabric&, const StepResult&, const CollectiveTime& time);

}  // namespace collcast::workload
