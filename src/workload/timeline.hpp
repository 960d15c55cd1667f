// A StepPlan spelled out as operations: per stage a compute stream, a stream of its TP group, one for messages
// in each direction and one of its DP group; events order them.
#pragma once

#include <vector>

#include "collcast/schedule/schedule.hpp"
#include "workload/critical.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

struct StepSchedule {
  Schedule schedule;
  std::vector<std::vector<OpId>> of_stage;  ///< what each stage does, and the messages that it gets
  std::vector<Place> places;                ///< by OpId
};
StepSchedule spell_out(const StepPlan&);

}  // namespace collcast::workload
