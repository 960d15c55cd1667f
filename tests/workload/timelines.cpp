#include "timelines.hpp"

#include <catch2/catch.hpp>

#include "inputs.hpp"
#include "workload/timeline.hpp"

namespace collcast::test {

Timeline timeline(const workload::StepPlan& plan, const Fabric& fabric) {
  const Result<Timeline> run = simulate(fabric, workload::spell_out(plan).schedule);
  REQUIRE(run.ok());
  return *run;
}

Seconds simulated(const workload::StepPlan& plan, const Fabric& fabric) {
  return to_seconds(timeline(plan, fabric).finish);
}

Timeline timeline(const workload::StepPlan& plan) {
  static const Fabric fabric = cluster(4);
  return timeline(plan, fabric);
}

Seconds simulated(const workload::StepPlan& plan) { return to_seconds(timeline(plan).finish); }

}  // namespace collcast::test
