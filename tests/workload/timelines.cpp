#include "timelines.hpp"

#include <catch2/catch.hpp>

#include <utility>

#include "inputs.hpp"
#include "workload/timeline.hpp"

namespace collcast::test {

workload::StepPlan stages(PipelineSchedule schedule, const std::vector<workload::StageTime>& times,
                          std::vector<Seconds> transfer, int micro_batches) {
  workload::StepPlan plan;
  plan.schedule = schedule;
  plan.micro_batches = micro_batches;
  for (std::size_t i = 0; i < times.size(); ++i) {
    workload::StagePlan stage;
    stage.rank = Rank(static_cast<std::uint32_t>(i));
    workload::UnitWork work;
    work.forward = {{"all", Category::forward, times[i].forward}};
    work.backward = {{"all", Category::backward, times[i].backward}};
    if (times[i].weights > Seconds{}) work.weights = {{"all", Category::backward, times[i].weights}};
    stage.works = {std::move(work)};
    stage.units = {{workload::UnitKind::layer, "L0", 0, 0}};
    plan.stages.push_back(std::move(stage));
  }
  plan.transfer = std::move(transfer);
  return plan;
}

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
