// What a person should know beside the numbers, with what would help.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/workload/step.hpp"

namespace collcast::workload {

struct StepPlan;

/// "1 micro-batch is fewer than the 4 pipeline stages: some stage is always idle".
std::string too_few_micro_batches(int micro_batches, int stages);

/// Settings of a server that are nothing, each with its path and why.
std::vector<std::string> unused_by_server(const StepInputs&);

/// `time`: of the closed form, by which changes are tried. `origins`: what was written, be it as it is by default.
std::vector<std::string> warnings(const StepInputs&, const Fabric&, const StepResult&, const CollectiveTime& time,
                                  const Origins& origins);

/// Of groups that lie on the machine in ways that take different times: which price counts for all of them.
void add_uneven_groups(const Fabric&, std::vector<CollectiveCost>, std::vector<std::string>& list);

/// Of groups that cross nodes in some stages and in others do not: what that takes longer.
std::vector<std::string> unlike_stages(const Fabric&, const StepPlan&);

/// Of a server whose ratio of computing to communication is low.
std::optional<std::string> served_ratio_warning(const StepInputs&, const Fabric&, const StepResult&,
                                                const CollectiveTime& time);

/// Below 2, communication that is not hidden takes more than a third of what is computed and communicated; what the
/// rounding of sums adds is no warning.
inline bool is_low_ratio(double compute_to_communication) {
  constexpr double least = 2, rounding = 1e-9;
  return compute_to_communication > 0 && compute_to_communication < least * (1 - rounding);
}

}  // namespace collcast::workload
