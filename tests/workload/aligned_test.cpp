// When stages begin to reduce gradients: laws of the alignment, hand-made cases, formula against timeline.
#include "workload/aligned.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <random>
#include <vector>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/gradient_exchange.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

class AlignedDice {
 public:
  explicit AlignedDice(unsigned seed) : random_(seed) {}
  int between(int low, int high) { return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1)); }
  Seconds time(int low, int high) { return Seconds(between(low, high) * 1e-6); }

 private:
  std::mt19937 random_;
};

/// Of each unit three, which fill a bucket each; kernels have the rate beside them.
void add_buckets(StepPlan& plan, double rate, AlignedDice& dice, int longest) {
  for (StagePlan& stage : plan.stages) {
    for (UnitWork& work : stage.works)
      for (std::vector<Stretch>* pass : {&work.forward, &work.backward})
        for (Stretch& s : *pass) s.rate = rate;
    std::vector<Unit> units;
    for (const Unit& unit : stage.units) units.insert(units.end(), 3, unit);
    stage.units = units;
    for (std::size_t u = stage.units.size(); u-- > 0;) stage.buckets.push_back({u, dice.time(0, longest)});
  }
  plan.align_gradients = true;
}

StepPlan drawn(PipelineSchedule schedule, int p, int m, AlignedDice& dice, bool equal) {
  if (schedule == PipelineSchedule::interleaved) {
    ChunkedStages chunked{p, 2, {}, {}, dice.between(0, 3) == 0};
    for (int n = 0; n < 2 * p; ++n)
      chunked.times.push_back(equal ? StageTime{Seconds(1e-3), Seconds(2e-3)}
                                    : StageTime{dice.time(500, 2000), dice.time(500, 3000)});
    for (int n = 0; n < p; ++n) chunked.transfer.push_back(dice.time(0, 400));
    StepPlan plan = plan_of_chunks(schedule, chunked, p * ((m + p - 1) / p));
    plan.overlap_pp = !chunked.blocking;
    return plan;
  }
  std::vector<StageTime> times;
  std::vector<Seconds> transfer;
  for (int i = 0; i < p; ++i) {
    times.push_back(equal ? StageTime{Seconds(1e-3), Seconds(2e-3)}
                          : StageTime{dice.time(500, 2000), dice.time(500, 3000)});
    if (i > 0) transfer.push_back(dice.time(0, 400));
  }
  StepPlan plan = stages(schedule, times, transfer, m);
  plan.overlap_pp = dice.between(0, 3) > 0;
  return plan;
}

Seconds total(StepPlan plan, bool overlap, bool align) {
  plan.overlap_dp = overlap;
  plan.align_gradients = align;
  return estimate_step(plan).total;
}

constexpr std::array aligned_schedules{PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe,
                                       PipelineSchedule::interleaved};

}  // namespace

TEST_CASE("aligned, stages are no longer late by the buckets of those behind them") {
  // Two stages of F = B = 10 s at half the rate beside buckets of 4 s, one micro-batch. Stage 1 ends at 30, its bucket
  // at 34. Stage 0 has its bucket behind its only unit: 40 + 4, whether aligned or not, and whatever the schedule.
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
    StepPlan plan = stages(schedule, std::vector<StageTime>(2, {Seconds(10), Seconds(10)}), {Seconds{}}, 1);
    for (StagePlan& stage : plan.stages) {
      // A second unit of B = 10 s, below the first.
      stage.units.push_back(stage.units.front());
      for (UnitWork& work : stage.works) work.forward[0].rate = work.backward[0].rate = 0.5;
      stage.buckets = {{1, Seconds(4)}, {0, Seconds(1)}};
    }
    plan.align_gradients = false;
    // Forward 40, stage 1's backward 10 + 12, stage 0's the same, and the last bucket.
    CHECK(estimate_step(plan).total.count() == Approx(40 + 22 + 22 + 1));
    CHECK(simulated(plan).count() == Approx(40 + 22 + 22 + 1));
    plan.align_gradients = true;
    CHECK(estimate_step(plan).total.count() == Approx(40 + 20 + 22 + 1));
    CHECK(simulated(plan).count() == Approx(40 + 20 + 22 + 1));
    // Both of stage 1's behind its backward, which ends 22 s before the pipeline.
    plan.stages[1].buckets = {{1, Seconds(20)}, {0, Seconds(10)}};
    CHECK(estimate_step(plan).total.count() == Approx(60 + 30));
    CHECK(simulated(plan).count() == Approx(60 + 30));
  }
}

TEST_CASE("of an interleaved schedule stage i reduces a chunk i backwards after the chunk's last") {
  const std::array chunks{1, 1, 0, 0};
  for (const std::size_t stage : {std::size_t{0}, std::size_t{1}}) {
    StepPlan plan = plan_of_chunks(PipelineSchedule::interleaved, equal_halves(2, {Seconds(2), Seconds(2)}, {}), 2);
    const Orders orders = plan.orders();
    GradientLaunches launches(plan, stage, orders[stage]);
    std::vector<std::vector<int>> behind;
    for (const Turn& turn : orders[stage]) {
      const std::vector<int> launched = launches.behind(turn);
      if (turn.backward) {
        CHECK(turn.chunk == chunks[behind.size()]);
        behind.push_back(launched);
      } else {
        CHECK(launched.empty());
      }
    }
    if (stage == 0) {
      CHECK(behind == std::vector<std::vector<int>>{{}, {1}, {}, {0}});
      CHECK(launches.left().empty());
    } else {
      CHECK(behind == std::vector<std::vector<int>>{{}, {}, {1}, {}});
      CHECK(launches.left() == std::vector{0});
    }
  }
}

TEST_CASE("aligned, the closed form is the timeline") {
  AlignedDice dice(20261129);
  int moved = 0;
  for (int n = 0; n < 300; ++n) {
    const PipelineSchedule schedule = aligned_schedules[static_cast<std::size_t>(n % 3)];
    const int p = dice.between(2, 6), m = dice.between(1, 12);
    StepPlan plan = drawn(schedule, p, m, dice, n % 2 == 0);
    add_buckets(plan, std::array{1.0, 0.75, 0.4}[static_cast<std::size_t>(dice.between(0, 2))], dice,
                n % 5 == 0 ? 20000 : 2000);
    if (n % 4 == 0) plan.stages.front().tied_embedding = plan.stages.back().tied_embedding = Seconds(1e-3);
    CAPTURE(n, to_string(schedule), p, m, plan.overlap_pp);
    const Seconds closed = estimate_step(plan).total;
    CHECK(closed.count() == Approx(simulated(plan).count()).epsilon(1e-8));
    moved += closed != total(plan, true, false) ? 1 : 0;
  }
  CHECK(moved > 100);
}

TEST_CASE("aligned, gradients beside the backward of 1F1B and GPipe never make a step longer") {
  AlignedDice dice(20261130);
  int longer = 0;
  for (const int p : {2, 3, 5, 8, 16, 40})
    for (const int m : {1, 2, 5, 16, 40})
      for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe})
        for (const bool equal : {false, true}) {
          StepPlan plan = drawn(schedule, p, m, dice, equal);
          add_buckets(plan, 0.75, dice, 4000);
          for (StagePlan& stage : plan.stages) stage.buckets.push_back({0, dice.time(0, 500)});
          CAPTURE(p, m, to_string(schedule), equal, plan.overlap_pp);
          const Seconds behind = total(plan, false, true);
          CHECK(total(plan, true, true) <= behind * (1 + 1e-12));
          CHECK(total(plan, false, false) == behind);
          longer += total(plan, true, false) > behind * (1 + 1e-9) ? 1 : 0;
        }
  CHECK(longer > 20);
}

TEST_CASE("aligned, nor do those of interleaved stages, where these are alike; else by less than 1 in 1000") {
  AlignedDice dice(7);
  int longer = 0;
  for (int n = 0; n < 160; ++n) {
    const bool equal = n % 2 == 0;
    const int p = dice.between(2, 12), m = dice.between(1, 4);
    StepPlan plan = drawn(PipelineSchedule::interleaved, p, m * p, dice, equal);
    add_buckets(plan, 0.75, dice, 3000);
    CAPTURE(n, p, m, equal, plan.overlap_pp);
    const Seconds behind = total(plan, false, true);
    CHECK(total(plan, true, true) <= behind * (1 + (equal ? 1e-12 : 1e-3)));
    longer += total(plan, true, false) > behind * (1 + 1e-9) ? 1 : 0;
  }
  CHECK(longer > 40);
}

TEST_CASE("one stage, gradients behind the backward and other schedules have nothing to align") {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::interleaved, PipelineSchedule::zb_h1,
        PipelineSchedule::zb_2p, PipelineSchedule::zb_v, PipelineSchedule::dualpipe_v})
    for (const int pp : {1, 2})
      for (const bool overlap : {false, true}) {
        StepInputs in = small_step(1, pp, 2, 8);
        in.layout.schedule = schedule;
        if (schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
        in.options.overlap_dp = overlap;
        in.options.bucket = Bytes(1'000'000);
        in.kernels.beside_collectives = 0.5;
        if (!check_step(in, 64, {}).empty()) continue;
        CAPTURE(to_string(schedule), pp, overlap);
        in.options.align_grad_reduce = true;
        const Seconds aligned = estimate_step(planned(in)).total;
        const bool aligns = aligns_gradients(in);
        in.options.align_grad_reduce = false;
        CHECK(aligns == (pp > 1 && overlap && can_align_gradients(schedule)));
        CHECK((estimate_step(planned(in)).total == aligned) == !aligns);
        CHECK(!aligns_gradients(in));
      }
}

TEST_CASE("what gradients slow beside the backward is named with what it costs") {
  StepInputs in = small_step(1, 8, 8, 8);
  in.kernels.beside_collectives = 0.5;
  in.options.bucket = Bytes(1'000'000);
  const auto warned = [&] {
    for (const std::string& text : forecast(in, cluster(8), Method::estimate).warnings)
      if (text.find("beside the backward adds up") != std::string::npos) return text;
    return std::string();
  };
  CHECK(warned().empty());
  const Seconds aligned = forecast(in, cluster(8), Method::estimate).step;
  in.options.align_grad_reduce = false;
  const StepResult alone = forecast(in, cluster(8), Method::estimate);
  REQUIRE(alone.step > aligned * 1.01);
  CHECK_THAT(warned(), Catch::Contains("training.align_grad_reduce: true (") && Catch::Contains(" %)"));
}
