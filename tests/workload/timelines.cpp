#include "timelines.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "inputs.hpp"
#include "workload/faults/period_run.hpp"

namespace collcast::test {

CollectiveTime priced(double latency, double rate) {
  return [=](const CollectiveRequest& request) -> Result<Seconds> {
    return Seconds(latency + static_cast<double>(request.size.value()) / rate);
  };
}

workload::StepPlan planned(const StepInputs& in, const CollectiveTime& time) {
  const Fabric fabric = cluster(8);
  const Diagnostics wrong = check_step(in, fabric.rank_count(), {});
  INFO(to_text(wrong));
  REQUIRE(wrong.empty());
  Result<workload::StepPlan> plan = workload::make_plan(in, fabric, time);
  REQUIRE(plan.ok());
  return std::move(plan).value();
}

const CollectiveCost& cost(const workload::StagePlan& stage, const std::string& name) {
  for (const CollectiveCost& c : stage.collectives)
    if (c.name == name) return c;
  FAIL("no " << name);
  throw 0;
}

double rounding(const workload::StepPlan& plan) {
  return 1e-12 * static_cast<double>(workload::spell_out(plan).schedule.size());
}

double flops(const std::vector<Operation>& operations) {
  return std::accumulate(operations.begin(), operations.end(), 0.0,
                         [](double sum, const Operation& op) { return sum + op.flops.value(); });
}

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

workload::StepPlan equal_stages(PipelineSchedule schedule, const workload::StageTime& time, Seconds transfer, int p,
                                int micro_batches) {
  const auto count = static_cast<std::size_t>(p);
  return stages(schedule, std::vector<workload::StageTime>(count, time), std::vector<Seconds>(count - 1, transfer),
                micro_batches);
}

workload::StepPlan plan_of_chunks(PipelineSchedule schedule, const workload::ChunkedStages& stages, int micro_batches) {
  workload::StepPlan plan;
  plan.schedule = schedule;
  plan.micro_batches = micro_batches;
  plan.chunks = stages.chunks;
  plan.overlap_pp = !stages.blocking;
  plan.transfer = stages.transfer;
  for (int i = 0; i < stages.stages; ++i) {
    workload::StagePlan stage;
    stage.rank = Rank(static_cast<std::uint32_t>(i));
    for (int c = 0; c < stages.chunks; ++c) {
      const workload::StageTime time = stages.of(i, c);
      stage.units.push_back({workload::UnitKind::layer, "L", stage.works.size(), c});
      workload::UnitWork work{{{"all", Category::forward, time.forward}}, {{"all", Category::backward, time.backward}}};
      if (time.weights > Seconds{}) work.weights = {{"all", Category::backward, time.weights}};
      stage.works.push_back(std::move(work));
    }
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

workload::ChunkedStages equal_halves(int p, const workload::StageTime& whole, Seconds transfer) {
  workload::ChunkedStages stages{p, 2, {}, {}, false};
  const workload::StageTime half{whole.forward / 2, whole.backward / 2, whole.weights / 2};
  stages.times.assign(2 * static_cast<std::size_t>(p), half);
  stages.transfer.assign(static_cast<std::size_t>(p - 1), transfer);
  return stages;
}

Timeline run(const workload::StepSchedule& step, const Fabric& fabric) {
  Result<Timeline> run = step.slowings.empty() && step.launch_waits.empty()
                             ? simulate(fabric, step.schedule)
                             : workload::run_periods(step, {{}, {workload::times_of(step.schedule)}});
  REQUIRE(run.ok());
  return std::move(run).value();
}

Timeline timeline(const workload::StepPlan& plan, const Fabric& fabric) {
  return run(workload::spell_out(plan), fabric);
}

Seconds simulated(const workload::StepPlan& plan, const Fabric& fabric) {
  return to_seconds(timeline(plan, fabric).finish);
}

Timeline timeline(const workload::StepPlan& plan) {
  static const Fabric fabric = cluster(4);
  return timeline(plan, fabric);
}

Seconds simulated(const workload::StepPlan& plan) { return to_seconds(timeline(plan).finish); }

std::vector<Seconds> stage_spans(const workload::StepPlan& plan) {
  const workload::StepSchedule spelled = workload::spell_out(plan);
  const Timeline run = timeline(plan);
  std::vector<Seconds> out;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    std::optional<SimTime> first;
    SimTime last{};
    for (const OpId op : spelled.of_class[i]) {
      if (spelled.schedule.category(op) == to_string(Category::pp)) continue;
      if (!first || run.ops[op.value()].start < *first) first = run.ops[op.value()].start;
      last = std::max(last, run.ops[op.value()].finish);
    }
    out.push_back(to_seconds(last - *first));
  }
  return out;
}

}  // namespace collcast::test
