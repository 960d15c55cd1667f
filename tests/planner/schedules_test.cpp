// Schedules in the search: each stays what the scenario says, chunks or not.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "collcast/planner/plan.hpp"
#include "planner/families.hpp"
#include "small_plans.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("a layout with chunks leaves the scenario's schedule to the next without") {
  const Fabric fabric = cluster(2);
  for (const PipelineSchedule schedule : {PipelineSchedule::zb_h2, PipelineSchedule::zb_1p}) {
    PlanInputs in = small();
    in.base.layout.schedule = schedule;
    in.space.vpp = {1, 2};
    const PlanResult p = planned(in, fabric);
    int chunked = 0, plain = 0;
    for (const PlannedLayout& l : p.ranked) {
      StepInputs step = in.base;
      put(l.choice, step);
      const StepResult r = forecast_step(step, fabric, {}, Method::estimate).value();
      CHECK(l.estimate.count() == Approx(r.step.count()).epsilon(1e-12));
      CHECK(l.memory.peak() == r.memory.peak());
      ++(l.choice.vpp > 1 ? chunked : plain);
    }
    CHECK(chunked > 3);
    CHECK(plain > 10);
  }
}

TEST_CASE("a V stays one in the search, and layouts that it cannot halve are rejected") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small(80'000'000'000);
  in.base.layout.schedule = PipelineSchedule::zb_v;
  in.base.model.layers = 12;
  in.space.recompute = {Recompute::none};
  in.space.tp = {1, 2};
  const PlanResult p = planned(in, fabric);
  std::set<int> stages;
  for (const PlannedLayout& l : p.ranked) {
    stages.insert(l.choice.pp);
    StepInputs step = in.base;
    put(l.choice, step);
    CHECK(step.layout.schedule == PipelineSchedule::zb_v);
    CHECK(l.estimate.count() ==
          Approx(forecast_step(step, fabric, {}, Method::estimate).value().estimate.count()).epsilon(1e-12));
  }
  // 4 stages have 8 chunks, which do not divide 12 layers.
  CHECK(stages == std::set<int>{1, 2});
  CHECK(planner::objections(in, {1, 4, 4, 1, false, Recompute::none, 0}, 8) ==
        std::vector<std::string>{"schedule zb-v has two chunks on each stage; 2 x pp 4 does not divide layers 12"});
}

TEST_CASE("a batch of millions is no reason against a plan whose schedule is gone through turn by turn") {
  PlanInputs in = small(80'000'000'000);
  in.base.layout.schedule = PipelineSchedule::zb_h1;
  // 3 turns of each micro-batch on each stage. One GPU: 3 x 2^24 = 50 M turns. 16 replicas: 3 x 2^20 = 3.1 M each; 8 of
  // two stages: 3 x 2^21 x 2 = 12.6 M, of 64 samples at once a 64th. The limit is 10 M.
  in.base.batch.global_batch = 1 << 24;
  in.space.tp = {1};
  in.space.pp = {1, 2};
  in.space.micro_batch = {1, 64};
  in.space.recompute = {Recompute::full};
  in.space.zero = {0};
  const PlanResult p = planned(in, cluster(2));
  CHECK(p.evaluated == 4);
  CHECK(p.feasible == 3);
  REQUIRE(p.rejected.size() == 1);
  CHECK(p.rejected[0].kind == ObjectionKind::misfit);
  CHECK_THAT(p.rejected[0].reason,
             Catch::Contains("global_batch 16777216 makes more than 10000000 turns of 3 x micro-batches x pp 2"));
  // What is wrong with the batch by itself still is.
  in.base.batch.global_batch = 0;
  CHECK_FALSE(plan(in, cluster(2), {1, 0}, here));
}

TEST_CASE("DualPipe is searched over pairs of stages, and an odd number of micro-batches has its reason") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small(80'000'000'000);
  in.base.layout.schedule = PipelineSchedule::dualpipe;
  in.space.tp = {2};
  in.space.recompute = {Recompute::none};
  in.space.zero = {0};
  in.space.sequence_parallel = {true};
  in.space.micro_batch = {1, 8};
  const PlanResult p = planned(in, fabric);
  int feasible = 0;
  for (const int pp : {2, 4, 8})
    for (const int micro_batch : {1, 8}) {
      const LayoutChoice choice{2, pp, 8 / pp, micro_batch, true, Recompute::none, 0};
      StepInputs step = in.base;
      put(choice, step);
      if (step.batch.micro_batches(step.layout) % 2 != 0) continue;  // PP 2 x DP 4: 32 / (8 x 4)
      ++feasible;
      const auto found = std::ranges::find(p.ranked, choice, &PlannedLayout::choice);
      REQUIRE(found != p.ranked.end());
      CHECK(found->estimate.count() ==
            Approx(forecast_step(step, fabric, {}, Method::estimate)->step.count()).epsilon(1e-12));
    }
  CHECK(feasible == 5);
  CHECK(p.feasible == feasible);
  std::map<std::string, std::int64_t> reasons;
  for (const Rejection& r : p.rejected) reasons[r.reason] = r.count;
  CHECK(reasons == std::map<std::string, std::int64_t>{{to_string(ObjectionKind::half_from_either_end), 1},
                                                       {to_string(ObjectionKind::batch_does_not_divide), 1},
                                                       {"schedule dualpipe has pairs of pipeline stages; pp is 1", 1}});
}

TEST_CASE("chunks are searched: the plan of interleaved stages is what forecasting every layout finds") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small(80'000'000'000);
  in.base.layout.schedule = PipelineSchedule::interleaved;
  in.space.tp = {2};
  in.space.recompute = {Recompute::none};
  in.space.zero = {0};
  in.space.sequence_parallel = {true};
  in.space.micro_batch = {1, 2};
  const PlanResult p = planned(in, fabric);
  std::map<LayoutChoice, Seconds> brute;
  std::map<std::string, std::int64_t> reasons;
  for (const int pp : {1, 2, 4, 8})
    for (const int micro_batch : {1, 2})
      for (const int vpp : {1, 2, 4, 8}) {
        if (8 / pp % vpp != 0 || (pp == 1 && vpp > 1)) continue;  // chunks are those that divide
        const LayoutChoice choice{2, pp, 8 / pp, micro_batch, true, Recompute::none, 0, vpp};
        StepInputs step = in.base;
        put(choice, step);
        const int m = step.batch.micro_batches(step.layout);
        if (vpp > 1 && m % pp != 0) {
          ++reasons[to_string(ObjectionKind::micro_batches_go_round)];
          continue;
        }
        REQUIRE(check_step(step, 16, here).empty());
        brute[choice] = forecast_step(step, fabric, {}, Method::estimate)->step;
      }
  CHECK(p.feasible == static_cast<std::int64_t>(brute.size()));
  for (const PlannedLayout& l : p.ranked) {
    REQUIRE(brute.count(l.choice) == 1);
    CHECK(l.estimate.count() == Approx(brute[l.choice].count()).epsilon(1e-12));
  }
  CHECK(std::ranges::any_of(p.ranked, [](const PlannedLayout& l) { return l.choice.vpp == 4; }));
  // What a search is asked for is looked at, and counted under its reason where it cannot be.
  in.space.vpp = {2, 3};
  const PlanResult asked = planned(in, fabric);
  std::set<std::string> told;
  for (const Rejection& r : asked.rejected) told.insert(r.reason);
  CHECK(told.count("vpp 3 does not divide the 4 layers of a stage, layers 8 / pp 2") == 1);
  CHECK(told.count("vpp 2 needs schedule interleaved; the schedule is 1f1b") == 0);
  CHECK(told.count("schedule interleaved needs at least 2 pipeline stages; pp is 1") == 1);
  CHECK(std::ranges::all_of(asked.ranked, [](const PlannedLayout& l) { return l.choice.vpp == 2; }));
  // 32 samples of 2 replicas in micro-batches of 16: one micro-batch cannot go round 4 stages.
  in.space.vpp = {2};
  in.space.pp = {4};
  in.space.micro_batch = {16};
  CHECK(planned(in, fabric).rejected.front().reason == to_string(ObjectionKind::micro_batches_go_round));
}

TEST_CASE("without an interleaved schedule chunks are tried only if asked for, and never with GPipe") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small(80'000'000'000);
  const auto chunked = [](const PlannedLayout& l) { return l.choice.vpp > 1; };
  CHECK(std::ranges::none_of(planned(in, fabric).ranked, chunked));
  in.space.vpp = {1, 2};
  const PlanResult asked = planned(in, fabric);
  CHECK(std::ranges::any_of(asked.ranked, chunked));
  CHECK(std::ranges::any_of(asked.ranked, [&](const PlannedLayout& l) { return !chunked(l) && l.choice.pp > 1; }));
  in.base.layout.schedule = PipelineSchedule::gpipe;
  const PlanResult gpipe = planned(in, fabric);
  CHECK(std::ranges::none_of(gpipe.ranked, chunked));
  CHECK(std::ranges::any_of(gpipe.rejected, [](const Rejection& r) {
    return r.reason == "vpp 2 needs schedule interleaved; the schedule is gpipe";
  }));
}
