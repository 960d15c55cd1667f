// Laws of a plan on a machine with faults or a placement.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "collcast/planner/why.hpp"
#include "workload/inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

const Location in_test{"test"};

/// 8 layers of GQA for 16 GPUs with memory for all layouts.
PlanInputs small_on(MachineState machine = {}) {
  PlanInputs in;
  in.base = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.base.batch.global_batch = 32;
  in.base.gpu.memory = Bytes(80'000'000'000);
  in.gpus = 16;
  in.collectives.library = Library::ideal;
  in.space.recompute = {Recompute::none};
  in.machine = std::move(machine);
  return in;
}

PlanResult planned_on(const PlanInputs& in, const Fabric& fabric, PlanOptions options = {1, 4}) {
  Result<PlanResult> result = plan(in, fabric, options, in_test);
  if (!result) FAIL(to_text(result.errors()));
  return std::move(result).value();
}

MachineFault slow_gpu(Gpus gpus, double compute) { return {GpuFault{gpus, compute, {}}, in_test}; }
MachineFault slow_link(std::string link, double share) {
  LinkFault fault;
  fault.link = std::move(link);
  fault.share = share;
  return {fault, in_test};
}

const PlannedLayout& of(const PlanResult& p, const LayoutChoice& choice) {
  const auto found = std::ranges::find(p.ranked, choice, &PlannedLayout::choice);
  REQUIRE(found != p.ranked.end());
  return *found;
}

/// To the last bit.
void check_same(const PlanResult& a, const PlanResult& b) {
  REQUIRE(a.ranked.size() == b.ranked.size());
  for (std::size_t i = 0; i < a.ranked.size(); ++i) {
    const PlannedLayout &x = a.ranked[i], &y = b.ranked[i];
    CHECK(x.choice == y.choice);
    CHECK(x.estimate == y.estimate);
    CHECK(x.simulate == y.simulate);
    CHECK(x.breakdown.bubble == y.breakdown.bubble);
    CHECK(x.described.has_value() == y.described.has_value());
    if (x.described && y.described) CHECK(x.described->step() == y.described->step());
  }
}

}  // namespace

TEST_CASE("faults that change nothing rank layouts as a plan without them does, to the last bit") {
  const Fabric fabric = cluster(2);
  const PlanResult without = planned_on(small_on(), fabric);
  REQUIRE(without.ranked.size() > 20);
  for (const PlannedLayout& l : without.ranked) CHECK_FALSE(l.described.has_value());
  PlanResult with =
      planned_on(small_on({{slow_gpu(3, 1), slow_gpu(Gpus::all(), 1), slow_link("node0.nic1", 1)}}), fabric);
  for (PlannedLayout& l : with.ranked) {
    REQUIRE(l.described.has_value());
    CHECK(l.described->estimate == l.estimate);
    CHECK(l.described->simulate == l.simulate);
    l.described.reset();
  }
  check_same(with, without);
}

TEST_CASE("a fault never makes a layout faster, whichever it is, and beside it stands what the layout takes without") {
  const Fabric fabric = cluster(2);
  const PlanResult without = planned_on(small_on(), fabric, {1, 0});
  std::mt19937 dice(20261125);
  for (int round = 0; round < 6; ++round) {
    std::vector<MachineFault> faults;
    if (round % 3 != 1) faults.push_back(slow_gpu(static_cast<int>(dice() % 16), 0.5 + 0.1 * (round % 4)));
    if (round % 3 != 0) faults.push_back(slow_link("node1.nic" + std::to_string(dice() % 8), 0.25));
    if (round == 5) faults.back().from = Seconds(0.01);
    const PlanResult with = planned_on(small_on({faults}), fabric);
    REQUIRE(with.ranked.size() == without.ranked.size());
    for (const PlannedLayout& l : with.ranked) {
      REQUIRE(l.described.has_value());
      CHECK(l.described->estimate == of(without, l.choice).estimate);
      CHECK(l.estimate >= l.described->estimate);
      CHECK(l.simulate.has_value() == l.described->simulate.has_value());
      if (l.simulate) CHECK(*l.simulate >= *l.described->simulate);
    }
  }
}

TEST_CASE("each layout of a plan with faults is what forecasting it with them gives") {
  const Fabric fabric = cluster(2);
  MachineFault late = slow_gpu(Gpus(8, 11), 0.7);
  late.from = Seconds(0.02);
  const std::vector<MachineState> machines{{{slow_gpu(5, 0.8)}},
                                           {{slow_link("node0.gpu2 <-> node0.nvswitch0", 0.3)}},
                                           {{late, slow_gpu(0, 0.9)}},
                                           {{}, Placement{{1, 0}, false, 1, in_test}}};
  for (const MachineState& machine : machines) {
    const PlanInputs in = small_on(machine);
    const PlanResult p = planned_on(in, fabric);
    for (const PlannedLayout& l : p.ranked) {
      StepInputs step = in.base;
      put(l.choice, step);
      const Method method = l.simulate ? Method::both : Method::estimate;
      const FaultyStep alone = forecast_faulty_step(step, fabric, machine, in.collectives, method).value();
      CHECK(l.estimate.count() == Approx(alone.result.estimate.count()).epsilon(1e-12));
      CHECK(l.simulate == alone.result.simulate);
      CHECK(l.described->estimate.count() == Approx(alone.effect.estimate.count()).epsilon(1e-12));
      CHECK(l.described->simulate == alone.effect.simulate);
    }
    for (std::size_t i = 1; i < 4; ++i) CHECK(p.ranked[i - 1].step() <= p.ranked[i].step());
  }
}

TEST_CASE("a GPU of half the speed makes every layout slower, and none more than twice as slow") {
  // It doubles the kernels of its whole TP group: the most that a layout can lose to it, and the least is more than
  // nothing, as all replicas wait for its gradients.
  const Fabric fabric = cluster(2);
  const PlanResult p = planned_on(small_on({{slow_gpu(0, 0.5)}}), fabric, {1, 0});
  REQUIRE(p.ranked.size() > 20);
  for (const PlannedLayout& l : p.ranked) {
    CHECK(l.estimate > l.described->estimate);
    CHECK(l.estimate.count() <= 2 * l.described->estimate.count() * (1 + 1e-12));
  }
}

TEST_CASE("a slow GPU beside seven in a TP group costs all eight, alone in its replica only the pipeline it is in") {
  const Fabric fabric = cluster(2);
  const PlanInputs in = small_on({{slow_gpu(0, 0.5)}});
  const PlanResult p = planned_on(in, fabric, {1, 0});
  const auto classes_on = [&](const MachineState& machine, const LayoutChoice& choice) {
    StepInputs step = in.base;
    put(choice, step);
    return forecast_faulty_step(step, fabric, machine, in.collectives, Method::both).value().effect.classes;
  };
  const auto with = [](const std::vector<RankClassTimes>& classes, std::uint32_t rank) {
    const auto found = std::ranges::find(classes, Rank(rank), &RankClassTimes::first);
    REQUIRE(found != classes.end());
    return *found;
  };
  const auto cost = [&](const LayoutChoice& choice) {
    return of(p, choice).estimate - of(p, choice).described->estimate;
  };
  // Twice the kernels, which the seven wait for at each collective, but for those of the optimizer (3 %): that is what
  // the step costs, as all eight have all of the work.
  const LayoutChoice in_tp{8, 1, 2, 2, false, Recompute::none, 0};
  const auto tp = classes_on(in.machine, in_tp);
  const RankClassTimes slow = with(tp, 0), beside = with(tp, 1);
  const Seconds more = slow.breakdown.compute - beside.breakdown.compute;
  CHECK(more.count() == Approx(beside.breakdown.compute.count()));
  CHECK(beside.ranks == 7);
  CHECK(beside.waits.tp > 0.97 * more);
  CHECK(beside.waits.tp < more);
  CHECK(with(tp, 8).waits.tp == Seconds{});
  CHECK(cost(in_tp) > more);
  // As one of eight stages it is behind the last, which has the logits: the others of its pipeline wait longer than
  // they would, and those of the other replica as ever; one micro-batch of eight shows, and its optimizer.
  const LayoutChoice in_pp{1, 8, 2, 2, false, Recompute::none, 0};
  const auto pp = classes_on(in.machine, in_pp), healthy = classes_on({{slow_gpu(0, 1)}}, in_pp);
  for (std::uint32_t stage = 1; stage < 8; ++stage) {
    INFO("stage " << stage);
    CHECK(with(pp, stage).waits.tp == Seconds{});
    CHECK(with(pp, stage).waits.pipeline > with(healthy, stage).waits.pipeline);
    CHECK(with(pp, 8 + stage).waits.pipeline == with(healthy, stage).waits.pipeline);
  }
  const Seconds of_stage = with(healthy, 0).breakdown.compute;
  CHECK(cost(in_pp) > of_stage / 8);
  CHECK(cost(in_pp) < of_stage / 4);
}

TEST_CASE("a plan with faults does not depend on the number of threads") {
  const Fabric fabric = cluster(2);
  const PlanInputs in = small_on({{slow_gpu(5, 0.8), slow_link("node0.nic3", 0.5)}});
  check_same(planned_on(in, fabric, {1, 6}), planned_on(in, fabric, {3, 6}));
}

TEST_CASE("a plan with faults that is stopped has both times of each layout that it lists") {
  const Fabric fabric = cluster(2);
  const PlanInputs in = small_on({{slow_gpu(5, 0.8)}});
  for (const int after : {1, 20, 200, 2000}) {
    PlanOptions options{1, 4};
    int asked = 0;
    options.stop = [&] { return ++asked > after; };
    const PlanResult p = planned_on(in, fabric, options);
    for (const PlannedLayout& l : p.ranked) {
      REQUIRE(l.described.has_value());
      CHECK(l.estimate >= l.described->estimate);
    }
    CHECK_FALSE(p.unsimulated.has_value());
  }
}

TEST_CASE(
    "a fault that is not of the machine is an error of the plan, and jitter that is too much leaves closed forms") {
  const Fabric fabric = cluster(2);
  const Result<PlanResult> wrong = plan(small_on({{slow_gpu(16, 0.8)}}), fabric, {1, 0}, in_test);
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.errors().front().message.find("16") != std::string::npos);

  MachineFault jitter = slow_gpu(Gpus::all(), 1);
  std::get<GpuFault>(jitter.what).jitter = Jitter{0.03, JitterShape::lognormal, 7};
  const PlanInputs in = small_on({{jitter}});
  const PlanResult p = planned_on(in, fabric, {1, 2});
  for (const PlannedLayout& l : p.ranked) {
    CHECK(l.estimate == l.described->estimate);  // of means
    if (l.simulate) CHECK(*l.simulate > *l.described->simulate);
  }
  CHECK(why(in, fabric, p.ranked[1].choice, p.ranked).ok());
}

TEST_CASE("why a layout is slower is told of the machine as it is") {
  const Fabric fabric = cluster(2);
  const PlanInputs in = small_on({{slow_gpu(0, 0.5)}});
  const PlanResult p = planned_on(in, fabric, {1, 0});
  const Why w = why(in, fabric, p.ranked.back().choice, p.ranked).value();
  CHECK(w.best->step->count() == Approx(p.ranked.front().estimate.count()).epsilon(1e-12));
  CHECK(w.asked.step->count() == Approx(p.ranked.back().estimate.count()).epsilon(1e-12));
}
