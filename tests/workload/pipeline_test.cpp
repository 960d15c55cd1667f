// Pipeline orders, the closed form, and the timeline of the same stages held against each other.
#include "workload/schedules/pipeline.hpp"

#include <catch2/catch.hpp>

#include <random>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

/// With the same transfer at every boundary.
StepPlan evenly_joined(PipelineSchedule schedule, const std::vector<StageTime>& times, Seconds transfer,
                       int micro_batches) {
  return test::stages(schedule, times, std::vector<Seconds>(times.size() - 1, transfer), micro_batches);
}

StepPlan with_transfers(StepPlan plan, const std::vector<Seconds>& transfer) {
  plan.transfer = transfer;
  return plan;
}

StepPlan alike_stages(PipelineSchedule schedule, double f, double b, double c, int p, int m) {
  return evenly_joined(schedule, std::vector<StageTime>(static_cast<std::size_t>(p), {Seconds(f), Seconds(b)}),
                       Seconds(c), m);
}

}  // namespace

TEST_CASE("1F1B on three stages and four micro-batches, turn by turn") {
  const auto text = [](int stage) {
    std::string out;
    for (const Turn& t : stage_order(PipelineSchedule::one_f_one_b, 3, stage, 4))
      out += (t.backward ? "B" : "F") + std::to_string(t.micro_batch) + " ";
    return out;
  };
  CHECK(text(0) == "F0 F1 F2 B0 F3 B1 B2 B3 ");
  CHECK(text(1) == "F0 F1 B0 F2 B1 F3 B2 B3 ");
  CHECK(text(2) == "F0 B0 F1 B1 F2 B2 F3 B3 ");
}

TEST_CASE("every order does each micro-batch once forward, then once backward") {
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (int p = 1; p <= 5; ++p)
      for (int m = 1; m <= 7; ++m)
        for (int i = 0; i < p; ++i) {
          std::vector<int> state(static_cast<std::size_t>(m));
          for (const Turn& t : stage_order(schedule, p, i, m)) {
            int& s = state[static_cast<std::size_t>(t.micro_batch)];
            REQUIRE(s == (t.backward ? 1 : 0));
            ++s;
          }
          REQUIRE(state == std::vector<int>(static_cast<std::size_t>(m), 2));
        }
}

TEST_CASE("bubble rates of 1F1B as published by Qi et al., from formula and timeline") {
  // Stage times in ms (Qi et al. 2023, Tables 5 and 9): F, B, W, C, p, m, rate; B and W run together.
  struct Row {
    double f, b, w, c;
    int p, m;
    double rate;
  };
  for (const Row& r :
       {Row{18.513, 18.086, 9.331, 0.626, 8, 32, .1985}, Row{11.307, 11.254, 8.101, 0.379, 16, 64, .2082},
        Row{10.419, 10.207, 7.715, 0.408, 32, 96, .2646}, Row{10.408, 10.204, 7.703, 0.408, 32, 128, .2168}}) {
    const StepPlan plan =
        alike_stages(PipelineSchedule::one_f_one_b, r.f * 1e-3, (r.b + r.w) * 1e-3, r.c * 1e-3, r.p, r.m);
    const double work = r.m * (r.f + r.b + r.w) * 1e-3;
    CHECK(1 - work / estimate_step(plan).total.count() == Approx(r.rate).margin(1e-4));
    CHECK(1 - work / simulated(plan).count() == Approx(r.rate).margin(1e-4));
  }
}

TEST_CASE("equal stages: the formula is m(F+B) + (p-1)(F+B) and its transfers, the timeline agrees") {
  const double f = 3e-3, b = 5e-3;
  for (int p = 1; p <= 8; ++p)
    for (const int m : {1, 2, 3, 7, 8, 9, 20})
      for (const double c : {0.0, 0.4e-3}) {
        const double ideal = (m + p - 1) * (f + b);
        // floor((m + p - 2) / p) round trips of the steady state find their message already there.
        const double fifo = ideal + 2 * c * ((p - 1) + (m - 1) - (m + p - 2) / p);
        const StepPlan one = alike_stages(PipelineSchedule::one_f_one_b, f, b, c, p, m);
        CHECK(estimate_step(one).total.count() == Approx(fifo).epsilon(1e-12));
        CHECK(simulated(one).count() == Approx(fifo).epsilon(1e-9));
        const StepPlan gpipe = alike_stages(PipelineSchedule::gpipe, f, b, c, p, m);
        CHECK(estimate_step(gpipe).total.count() == Approx(ideal + 2 * c * (p - 1)).epsilon(1e-12));
        CHECK(simulated(gpipe).count() == Approx(ideal + 2 * c * (p - 1)).epsilon(1e-9));
      }
}

TEST_CASE("unequal stages and transfers: the closed form is the timeline") {
  const unsigned seed = 20261121;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) {
    return static_cast<int>(low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
  };
  int slow = 0;
  for (int i = 0; i < 300; ++i) {
    const int p = between(1, 8), m = between(1, 24);
    const int most = i % 3 == 0 ? 0 : i % 3 == 1 ? 400 : 12000;  // none, quicker than a stage, up to several stages
    std::vector<StageTime> times;
    std::vector<Seconds> transfer;
    for (int s = 0; s < p; ++s) {
      times.push_back({Seconds(between(500, 2000) * 1e-6), Seconds(between(500, 3000) * 1e-6)});
      if (s > 0) transfer.emplace_back(between(0, most) * 1e-6);
    }
    for (const Seconds c : transfer) slow += c > Seconds(3000e-6) ? 1 : 0;
    for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
      CAPTURE(i, p, m, most, static_cast<int>(schedule));
      const StepPlan plan = with_transfers(evenly_joined(schedule, times, Seconds{}, m), transfer);
      CHECK(estimate_step(plan).total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
    }
  }
  CHECK(slow > 100);
}

TEST_CASE("gradients behind unequal stages and transfers: the closed form is the timeline") {
  const unsigned seed = 20261122;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) {
    return static_cast<int>(low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
  };
  int inner = 0, exposed = 0;
  for (int i = 0; i < 400; ++i) {
    const int p = between(1, 6), m = between(1, 12);
    const int most = i % 3 == 0 ? 0 : i % 3 == 1 ? 400 : 12000;
    std::vector<StageTime> times;
    std::vector<Seconds> transfer;
    for (int s = 0; s < p; ++s) {
      times.push_back({Seconds(between(500, 2000) * 1e-6), Seconds(between(500, 3000) * 1e-6)});
      if (s > 0) transfer.emplace_back(between(0, most) * 1e-6);
    }
    for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
      for (const bool blocking : {false, true}) {
        CAPTURE(i, p, m, most, static_cast<int>(schedule), blocking);
        StepPlan plan = with_transfers(evenly_joined(schedule, times, Seconds{}, m), transfer);
        plan.overlap_pp = !blocking;
        plan.overlap_dp = i % 5 > 0;
        for (StagePlan& stage : plan.stages) stage.buckets = {{0, Seconds(between(0, 30000) * 1e-6)}};
        if (i % 4 == 0 && p > 1) plan.stages.front().tied_embedding = plan.stages.back().tied_embedding = Seconds(1e-3);
        const StepEstimate estimate = estimate_step(plan);
        CHECK(estimate.total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
        exposed += estimate.terms.gradients.exposed() > Seconds{} ? 1 : 0;
        inner += estimate.terms.gradients.stage > 0 ? 1 : 0;
      }
  }
  CHECK(exposed > 400);
  CHECK(inner > 200);
}

TEST_CASE("what holds the backward up on its way to stage 0 hides gradients behind it") {
  // 3 micro-batches on two stages of F = B = 1 ms; gradients go back in 4 ms, one after the other. GPipe's last leaves
  // stage 1 at 1 + 4 + 2 x 4 + 1 + 3 x 1 = 17 ms at the latest, and the link passes three of them: stage 0 ends 4 + 1 +
  // 2 x 3 ms later, where the way alone is 4 + 1 ms. 9 ms of buckets are hidden.
  const std::vector<StageTime> times(2, {Seconds(1e-3), Seconds(1e-3)});
  StepPlan plan = with_transfers(evenly_joined(PipelineSchedule::gpipe, times, Seconds{}, 3), {Seconds(4e-3)});
  const Seconds without = estimate_step(plan).total;
  plan.stages[1].buckets = {{0, Seconds(9e-3)}};
  CHECK(estimate_step(plan).total.count() == Approx(without.count()));
  CHECK(simulated(plan).count() == Approx(without.count()));
  plan.stages[1].buckets = {{0, Seconds(12e-3)}};
  CHECK((estimate_step(plan).total - without).count() == Approx(1e-3));
  CHECK((simulated(plan) - without).count() == Approx(1e-3));
}

TEST_CASE("one slow boundary of many, few micro-batches: the formula alone is far too short") {
  std::vector<Seconds> transfer(15, Seconds(0.05e-3));
  for (const std::size_t i : {3U, 7U, 11U}) transfer[i] = Seconds(8e-3);
  const std::vector<StageTime> times(16, {Seconds(1e-3), Seconds(2e-3)});
  const StepPlan plan = with_transfers(evenly_joined(PipelineSchedule::one_f_one_b, times, Seconds{}, 8), transfer);
  const StepEstimate estimate = estimate_step(plan);
  CHECK(estimate.total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
  CHECK(estimate.terms.pipeline.order > 0.05 * estimate.total);
}

TEST_CASE("blocking transfers are never faster than asynchronous ones") {
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (const int p : {1, 2, 5})
      for (const int m : {1, 4, 9}) {
        StepPlan plan = alike_stages(schedule, 2e-3, 3e-3, 0.5e-3, p, m);
        const Seconds free = simulated(plan), free_formula = estimate_step(plan).total;
        plan.overlap_pp = false;
        CHECK(simulated(plan) >= free);
        CHECK(estimate_step(plan).total >= free_formula * (1 - 1e-12));
      }
}

TEST_CASE("the terms of a pipeline name the window that sets its pace, and sum to its time") {
  // F + B = 3, 5, 3 s; C = 0.1 s; m = 4: 11 + 2 x 0.2 + the longest of
  //   the slow stage alone           3 x 5 = 15
  //   two stages beside each other   3 x 8/2 + 2 x 0.1 (3 - ceil(3/2)) = 12.2
  const std::vector<StageTime> stages{{Seconds(1), Seconds(2)}, {Seconds(2), Seconds(3)}, {Seconds(1), Seconds(2)}};
  const std::vector<Seconds> transfer{Seconds(0.1), Seconds(0.1)};
  const PipelineTerms terms = pipeline_terms(PipelineSchedule::one_f_one_b, stages, transfer, 4);
  CHECK(terms.first == 1);
  CHECK(terms.last == 1);
  CHECK(terms.window_work.count() == 5);
  CHECK(terms.window_transfers.count() == 0);
  CHECK(terms.rest.count() == Approx(15));
  // Turn by turn: the middle stage's last backward waits for its gradient, 19.5 to 22.5, and the first stage ends
  // at 24.6.
  CHECK(terms.total().count() == Approx(24.6));
  CHECK(terms.order.count() == Approx(24.6 - (11 + 0.4 + 15)));
  // GPipe: 3 x (2 + 3) after the first.
  CHECK(pipeline_terms(PipelineSchedule::gpipe, stages, transfer, 4).total().count() == Approx(11 + 0.4 + 15));
}
