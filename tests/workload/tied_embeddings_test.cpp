// Tied embeddings on two stages: when the sum of their gradients begins, and what of it a step sees.
#include <catch2/catch.hpp>

#include "timelines.hpp"
#include "workload/estimate_step.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

TEST_CASE("the sum of tied embeddings begins when both ends have their gradients, whatever experts exchange before") {
  // Each stage 4 s forward and 8 s back in units of 2 and 4; experts' gradients of the upper unit go ahead, 1 s.
  StepPlan plan =
      stages(PipelineSchedule::one_f_one_b, {{Seconds(2), Seconds(4)}, {Seconds(2), Seconds(4)}}, {Seconds(0)}, 1);
  for (StagePlan& stage : plan.stages) {
    stage.units.push_back({UnitKind::layer, "L1", 0, 0});
    stage.buckets = {{1, Seconds(1)}};
    stage.tied_embedding = Seconds(3);
  }
  // 4 + 4 s forward, 8 + 8 s back, then 3 s.
  CHECK(simulated(plan).count() == Approx(27));
  CHECK(estimate_step(plan).total.count() == Approx(27));
}
