// Faults that begin and end while a step runs: the rule of what is under way, and the laws.
#include <catch2/catch.hpp>

#include <algorithm>

#include "../support/dice.hpp"
#include "../support/sample.hpp"
#include "collcast/workload/faulty_step.hpp"
#include "faulty.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/faults/faulty_plan.hpp"
#include "workload/faults/period_run.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

MachineFault between(MachineFault fault, Seconds from, std::optional<Seconds> until = {}) {
  fault.from = from;
  fault.until = until;
  return fault;
}

SimTime at_ps(std::int64_t time) { return SimTime(Picoseconds(time)); }

/// One operation after the other on one stream, and their times by period.
Timeline chain(const std::vector<std::vector<std::int64_t>>& times, const std::vector<std::int64_t>& begins,
               std::vector<LaunchWait> waits = {}) {
  StepSchedule step;
  const StreamId stream = step.schedule.add_stream({"compute", Rank(0)});
  PeriodTimes periods;
  for (std::size_t op = 0; op < times.front().size(); ++op) step.schedule.add(stream, Compute{Rank(0), {}});
  for (const std::int64_t begin : begins) periods.begins.push_back(at_ps(begin));
  for (const std::vector<std::int64_t>& of : times) {
    periods.of.emplace_back();
    for (const std::int64_t time : of) periods.of.back().emplace_back(time);
  }
  step.launch_waits = std::move(waits);
  Result<Timeline> out = run_periods(step, periods);
  REQUIRE(out.ok());
  return std::move(out).value();
}

/// Plans of a healthy period and of one for each machine, run with those that begin at `begins`.
Timeline run(const std::vector<ClassedPlan>& plans, const std::vector<SimTime>& begins) {
  StepSchedule spelled = spell_out(plans.front());
  PeriodTimes times{begins, {}};
  for (const ClassedPlan& plan : plans) {
    const StepSchedule here = spell_out(plan);
    times.of.push_back(times_of(here.schedule));
    add_launches(spelled, here);
  }
  Result<Timeline> out = run_periods(spelled, times);
  REQUIRE(out.ok());
  return std::move(out).value();
}

}  // namespace

TEST_CASE("what is under way when a fault begins does the rest of its work at the new pace") {
  // 100 ps of work at half the pace from 30 on: the 70 left take 140.
  CHECK(chain({{100}, {200}}, {30}).finish == at_ps(170));
  // Until 80 again: 25 of the 70 are done by then, and 45 left.
  CHECK(chain({{100}, {200}, {100}}, {30, 80}).finish == at_ps(125));
  // What ends as it begins is over, and what begins then is slow.
  CHECK(chain({{30, 10}, {60, 20}}, {30}).finish == at_ps(50));
  // A third of a picosecond is rounded up, once: 97 left take 97 / 3.
  CHECK(chain({{100}, {300}, {100}}, {0, 9}).finish == at_ps(106));
  // Work that takes the same goes on unrounded.
  CHECK(chain({{101}, {101}, {101}}, {7, 13}).finish == at_ps(101));
}

TEST_CASE("a pass takes at least what its launches do, whatever its work takes and whenever that changes") {
  // 15 of launches for 10 of work, which takes 20 from a later time on.
  const std::vector<LaunchWait> wait{{OpId(1), OpId(0), Picoseconds(15)}};
  CHECK(chain({{10, 5}, {20, 0}}, {15}, wait).finish == at_ps(15));
  CHECK(chain({{10, 5}, {20, 0}}, {12}, wait).finish == at_ps(15));
  CHECK(chain({{10, 5}, {20, 0}}, {6}, wait).finish == at_ps(15));  // the work is over at 6 + 8
  CHECK(chain({{10, 5}, {20, 0}}, {4}, wait).finish == at_ps(16));  // at 4 + 12
  CHECK(chain({{20, 0}}, {}, wait).finish == at_ps(20));
  CHECK(chain({{20, 0}, {10, 5}}, {4}, wait).finish == at_ps(15));  // at 4 + 8
  CHECK(chain({{20, 0}}, {}, {{OpId(1), OpId(0)}}).finish == at_ps(20));
}

TEST_CASE("a pass that others hold up does not wait for launches that are over by then") {
  // Two ranks of 15 of launches: kernels of 10 and 14, a collective of 2 that begins with both, nothing behind it.
  StepSchedule step;
  const StreamId fast = step.schedule.add_stream({"compute", Rank(0)}),
                 slow = step.schedule.add_stream({"compute", Rank(1)});
  const OpId first = step.schedule.add(fast, Compute{Rank(0), {}}),
             other = step.schedule.add(slow, Compute{Rank(1), {}});
  const std::vector<After> both{{first}, {other}};
  const OpId joined = step.schedule.add(Delay{}, both);
  const std::vector<After> over{{joined}};
  step.launch_waits = {{step.schedule.add(fast, Compute{Rank(0), {}}, over), first, Picoseconds(15)}};
  for (const auto& [kernel, end] : {std::pair(10, 15), std::pair(13, 15), std::pair(14, 16)}) {
    const std::vector<Picoseconds> times{Picoseconds(10), Picoseconds(kernel), Picoseconds(2), Picoseconds(3)};
    CHECK(run_periods(step, {{}, {times}}).value().finish == at_ps(end));
  }
}

TEST_CASE("a step in one period is the engine's, to the picosecond") {
  const std::uint64_t seed = 20261124;
  Dice dice(seed);
  const Fabric fabric = cluster(8);
  const CollectiveTime time = priced(1e-5);
  int tried = 0;
  for (int round = 0; round < 60; ++round) {
    StepInputs in = random_inputs(dice);
    in.kernels.beside_collectives = 1;  // the engine slows nothing
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++tried;
    CAPTURE(seed, round);
    const StepSchedule spelled = spell_out(planned(in, time));
    const Result<Timeline> walked = run_periods(spelled, {{}, {times_of(spelled.schedule)}});
    const Result<Timeline> simulated = simulate(fabric, spelled.schedule);
    REQUIRE(walked.ok());
    REQUIRE(simulated.ok());
    CHECK(walked->finish == simulated->finish);
    for (std::size_t op = 0; op < walked->ops.size(); ++op) {
      REQUIRE(walked->ops[op].start == simulated->ops[op].start);
      REQUIRE(walked->ops[op].finish == simulated->ops[op].finish);
    }
  }
  CHECK(tried > 20);
}

TEST_CASE("ranks that are alike in every period once give every rank's times to the picosecond") {
  const std::uint64_t seed = 20261125;
  Dice dice(seed);
  const Fabric fabric = cluster(8);
  const CollectiveTime healthy = priced(1e-5), here = unlike();
  int folded_away = 0, tried = 0;
  Sample sample(3);
  for (int round = 0; round < 200; ++round) {
    const StepInputs in = random_inputs(dice);
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++tried;
    if (!sample.takes()) continue;
    CAPTURE(seed, round, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep, in.options.zero);
    std::vector<FaultyMachine> machines;
    for (int p = 0; p < 3; ++p) machines.push_back(sick(dice, fabric, in.layout.world(), &here));
    const std::vector<ClassedPlan> few = classed(in, machines, healthy, Fold::alike_once);
    const std::vector<ClassedPlan> all = classed(in, machines, healthy, Fold::every_rank);
    REQUIRE(few.size() == 3);
    REQUIRE(all.front().classes.size() == static_cast<std::size_t>(in.layout.world()));
    if (few.front().classes.size() < all.front().classes.size()) ++folded_away;
    const Picoseconds whole = run({all.front()}, {}).finish.time_since_epoch();
    const std::vector<SimTime> begins{SimTime(whole / 100 * (1 + dice.roll(40))),
                                      SimTime(whole / 100 * (42 + dice.roll(50)))};
    const Timeline by_class = run(few, begins), by_rank = run(all, begins);
    CHECK(by_class.finish == by_rank.finish);
  }
  CHECK(tried > 100);
  CHECK(folded_away > (sanitized ? 7 : 50));
}

TEST_CASE("from 0 s on is all along, from the step's end on never, and later is never slower") {
  const Fabric fabric = cluster(4);
  for (const double launch : {0.0, 30e-6}) {
    StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
    in.options.launch = Seconds(launch);
    for (const MachineFault& fault : {slow_gpu(6, 0.6), slow_link("node0.nic3", 0.1)}) {
      INFO(to_text(fault) << ", launch " << launch);
      const FaultyStep always = forecast_faulty(in, fabric, {fault});
      const FaultyStep healthy = forecast_faulty(in, fabric, {});
      REQUIRE(always.result.step > healthy.result.step);
      const FaultyStep from_0 = forecast_faulty(in, fabric, {between(fault, Seconds{})});
      CHECK(from_0.result.step == always.result.step);
      CHECK(from_0.result.estimate == always.result.estimate);
      const FaultyStep late = forecast_faulty(in, fabric, {between(fault, healthy.result.step)});
      CHECK(late.result.step == healthy.result.step);
      CHECK(late.result.estimate == healthy.result.estimate);
      CHECK(late.result.breakdown.compute == healthy.result.breakdown.compute);
      CHECK(late.result.breakdown.bubble == healthy.result.breakdown.bubble);
      CHECK(std::any_of(late.result.warnings.begin(), late.result.warnings.end(),
                        [](const std::string& text) { return text.find("has no effect") != std::string::npos; }));
      // With launches a pass that the fault begins in may wait for the longer of two: 30 us for each of its kernels.
      const Seconds slack = launch > 0 ? Seconds(20 * launch) : Seconds{};
      Seconds before = always.result.step, estimate = always.result.estimate;
      Seconds ended = always.result.step;
      for (int tenth = 1; tenth <= 10; ++tenth) {
        const Seconds time = 0.1 * tenth * healthy.result.step;
        const FaultyStep step = forecast_faulty(in, fabric, {between(fault, time)});
        CAPTURE(tenth);
        CHECK(step.result.step <= before + slack);
        CHECK(step.result.step >= healthy.result.step);
        CHECK(step.result.estimate <= estimate * (1 + 1e-12));
        before = step.result.step;
        estimate = step.result.estimate;
        // And one that ends earlier costs no more.
        const FaultyStep gone =
            forecast_faulty(in, fabric, {between(fault, Seconds{}, 1.1 * always.result.step - time)});
        CHECK(gone.result.step <= ended + slack);
        ended = gone.result.step;
        for (const RankClassTimes& one : step.effect.classes)
          CHECK(one.waits.total().count() == Approx(one.breakdown.bubble.count()).margin(1e-15));
      }
    }
  }
}

TEST_CASE("the slower a fault is that begins in the middle, the longer the step") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
  const Seconds middle = 0.5 * forecast_faulty(in, fabric, {}).result.step;
  Seconds before{};
  for (const double left : {1.0, 0.9, 0.7, 0.5, 0.2}) {
    const FaultyStep step = forecast_faulty(in, fabric, {between(slow_gpu(5, left), middle)});
    CAPTURE(left);
    CHECK(step.result.step > before);
    before = step.result.step;
  }
}

TEST_CASE("a GPU alone that slows down at t takes t, and the rest of its work at the new pace") {
  // One GPU of which nothing waits: T s of work at the pace 1, then (T - t) / 0.5.
  const Fabric fabric = cluster(1);
  const StepInputs in = inputs(small_model(), layout(1, 1, 1), 512, 2);
  const FaultyStep step = forecast_faulty(in, fabric, {between(slow_gpu(0, 0.5), Seconds(1e-3))});
  const Seconds whole = step.effect.step;
  REQUIRE(whole > Seconds(2e-3));
  const double rounding = 1e-12 * static_cast<double>(step.result.simulated_operations);
  CHECK(step.result.step.count() == Approx((Seconds(1e-3) + 2 * (whole - Seconds(1e-3))).count()).margin(rounding));
  CHECK(step.result.estimate.count() == Approx(step.result.step.count()).margin(rounding));
  // For half a millisecond: a quarter of one is lost.
  const FaultyStep passing = forecast_faulty(in, fabric, {between(slow_gpu(0, 0.5), Seconds(1e-3), Seconds(1.5e-3))});
  CHECK(passing.result.step.count() == Approx((whole + Seconds(0.25e-3)).count()).margin(rounding));
}

TEST_CASE("what faults do does not depend on their order, and what is wrong with one is said once") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
  const Seconds t = 0.3 * forecast_faulty(in, fabric, {}).result.step;
  std::vector<MachineFault> faults{between(slow_gpu(5, 0.8), t), between(slow_gpu(2, 0.7), 0.5 * t, 2 * t),
                                   between(slow_link("node0.nic3", 0.2), t, 3 * t)};
  const FaultyStep one = forecast_faulty(in, fabric, faults);
  std::reverse(faults.begin(), faults.end());
  const FaultyStep other = forecast_faulty(in, fabric, faults);
  CHECK(one.result.step == other.result.step);
  CHECK(one.result.estimate == other.result.estimate);
  CHECK(one.result.breakdown.bubble == other.result.breakdown.bubble);

  faults.push_back(between(slow_link("node0.nic9", 0.2), 2 * t));
  const Result<FaultyStep> wrong = forecast_faulty_step(in, fabric, faults, {}, Method::both);
  REQUIRE(!wrong.ok());
  CHECK(wrong.errors().size() == 1);
}
