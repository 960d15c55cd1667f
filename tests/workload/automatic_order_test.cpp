// Zero-bubble orders made for times: what they hold, published bubble rates, never worse than H1 and H2, closed form
// against timeline.
#include "workload/schedules/automatic_order.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/memory/memory.hpp"
#include "workload/schedules/zero_bubble.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr PipelineSchedule one_p = PipelineSchedule::zb_1p, two_p = PipelineSchedule::zb_2p;

ChunkedStages equal(int p, const StageTime& time, Seconds transfer) {
  return {p, 1, std::vector<StageTime>(static_cast<std::size_t>(p), time),
          std::vector<Seconds>(static_cast<std::size_t>(p - 1), transfer), false};
}

Orders orders_of(PipelineSchedule schedule, const ChunkedStages& in, double kept, int m) {
  return automatic_orders(schedule, in, std::vector<double>(in.times.size(), kept), m);
}

Seconds longest(PipelineSchedule schedule, const ChunkedStages& in, const Orders& orders) {
  Seconds most{};
  for (const StageSpan& span : stage_spans(schedule, in, orders)) most = std::max(most, span.end - span.begin);
  return most;
}

/// Of a stage's time from its first turn to its last what it waits, of the stage that takes longest.
double bubble_rate(PipelineSchedule schedule, const StageTime& time, Seconds c, int p, int m, double kept) {
  const ChunkedStages in = equal(p, time, c);
  return 1 - m * time.whole() / longest(schedule, in, orders_of(schedule, in, kept, m));
}

/// As StepPlan, with one unit a stage.
StepPlan plan_of(PipelineSchedule schedule, const ChunkedStages& in, int m, double kept) {
  StepPlan plan = stages(schedule, in.times, in.transfer, m);
  plan.overlap_pp = !in.blocking;
  plan.own_orders = orders_of(schedule, plan.chunked(), kept, m);
  return plan;
}

}  // namespace

TEST_CASE("orders made for times do each micro-batch forward, backward and its weights, within what they may hold") {
  std::mt19937 random(20261126);
  const auto time = [&] { return Seconds(1e-3 * (1 + static_cast<double>(random() % 900) / 100)); };
  for (const PipelineSchedule schedule : {one_p, two_p})
    for (const double kept : {0., .4, 1., 3.})
      for (int p = 1; p <= 5; ++p)
        for (int m = 1; m <= 3 * p + 2; ++m) {
          ChunkedStages in = equal(p, {}, {});
          for (StageTime& t : in.times) t = {time(), time(), time()};
          for (Seconds& c : in.transfer) c = time() / 10;
          const Orders orders = orders_of(schedule, in, kept, m);
          for (int i = 0; i < p; ++i) {
            CAPTURE(to_string(schedule), kept, p, m, i);
            std::vector<int> state(static_cast<std::size_t>(m));
            double held = 0, most = 0;
            int in_flight = 0, most_there = 0;
            for (const Turn& t : orders[static_cast<std::size_t>(i)]) {
              int& s = state[static_cast<std::size_t>(t.micro_batch)];
              REQUIRE(s == (t.weights ? 2 : t.backward ? 1 : 0));
              ++s;
              in_flight += t.weights ? 0 : t.backward ? -1 : 1;
              held += t.weights ? -kept : t.backward ? kept - 1 : 1;
              most_there = std::max(most_there, in_flight);
              most = std::max(most, held);
            }
            REQUIRE(state == std::vector<int>(static_cast<std::size_t>(m), 3));
            REQUIRE(most_there <= most_in_flight(schedule, p, i, m));
            // Nothing else waits when a backward ends whose weight gradients need more than its place.
            REQUIRE(most <= std::max<double>(most_held(schedule, p), most_in_flight(schedule, p, i, m) - 1 + kept));
          }
        }
}

TEST_CASE("bubble rates of ZB-1p and ZB-2p as published by Qi et al. for runs whose times are printed") {
  // Qi et al. 2023, Tables 5 and 9: F, B, W, C in ms, p, m, rates. What weight gradients need of what a forward keeps:
  // 32 of 34 + 5 a s / h (s b h), attention being unfused, with a s / h = 10.7, 8, 7.8 of the four models.
  struct Row {
    double f, b, w, c;
    int p, m;
    double kept, of_1p, of_2p;
  };
  for (const Row& r : {Row{18.513, 18.086, 9.331, 0.626, 8, 32, 32 / 87.3, .1242, .0039},
                       Row{11.307, 11.254, 8.101, 0.379, 16, 64, 32 / 74., .1088, .0054},
                       Row{10.419, 10.207, 7.715, 0.408, 32, 96, 32 / 74., .1421, .0038},
                       Row{10.408, 10.204, 7.703, 0.408, 32, 128, 32 / 74., .1106, .0029}}) {
    CAPTURE(r.p, r.m);
    const StageTime time{Seconds(r.f * 1e-3), Seconds(r.b * 1e-3), Seconds(r.w * 1e-3)};
    CHECK(bubble_rate(one_p, time, Seconds(r.c * 1e-3), r.p, r.m, r.kept) == Approx(r.of_1p).margin(1e-4));
    CHECK(bubble_rate(two_p, time, Seconds(r.c * 1e-3), r.p, r.m, r.kept) == Approx(r.of_2p).margin(6e-4));
  }
}

TEST_CASE("bubble rates of ZB-1p and ZB-2p from those of 1F1B, ZB-H1 and ZB-H2 of runs whose times are not printed") {
  // As in zero_bubble_v_test.cpp: C from 1F1B, W from H1, with F = B.
  struct Row {
    int p, m;
    double kept, one_f_one_b, h1, h2, of_1p, of_2p;
  };
  for (const Row& r : {Row{8, 24, 32 / 87.3, .2431, .1585, .1083, .1585, .0433},
                       Row{8, 24, 32 / 74., .2347, .1323, .0698, .1323, .0029}}) {
    CAPTURE(r.p, r.m, r.h1);
    const double n = r.p - 1, ways = 2 * (n + (r.m - 1) - (r.m + r.p - 2) / r.p);
    const auto bubble = [&](double rate) { return r.m * rate / (1 - rate); };
    const double c = (bubble(r.one_f_one_b) - n) / ways, w = (1 + 4 * c - bubble(r.h1) / n) / 2;
    const StageTime time{Seconds((1 - w) / 2), Seconds((1 - w) / 2), Seconds(w)};
    CHECK(bubble_rate(one_p, time, Seconds(c), r.p, r.m, r.kept) == Approx(r.of_1p).margin(1e-3));
    CHECK(bubble_rate(two_p, time, Seconds(c), r.p, r.m, r.kept) == Approx(r.of_2p).margin(.0025));
  }
}

TEST_CASE("F = B = W without messages: from 2p micro-batches on no stage of ZB-2p waits between its turns") {
  const StageTime time{Seconds(2e-3), Seconds(2e-3), Seconds(2e-3)};
  for (int p = 1; p <= 8; ++p)
    for (int m = 2 * p; m <= 3 * p + 1; ++m) {
      CAPTURE(p, m);
      CHECK(bubble_rate(two_p, time, {}, p, m, 1) == Approx(0).margin(1e-9));
      const StepEstimate estimate = estimate_step(plan_of(two_p, equal(p, time, {}), m, 1));
      CHECK(estimate.terms.pipeline.order == Seconds{});
      CHECK(estimate.total.count() == Approx((3 * m + p - 1) * 2e-3).epsilon(1e-12));
    }
}

TEST_CASE("no stage is longer from its first turn to its last than under H1 and H2, and more room never makes it so") {
  std::mt19937 random(20261127);
  const auto between = [&](double low, double high) {
    return low + (high - low) * 1e-3 * static_cast<double>(random() % 1000);
  };
  int shorter = 0;
  for (int n = 0; n < 300; ++n) {
    const int p = 2 + static_cast<int>(random() % 8),
              m = 1 + static_cast<int>(random() % (5 * static_cast<unsigned>(p)));
    const StageTime time{Seconds(between(1e-3, 5e-3)), Seconds(between(1e-3, 5e-3)), Seconds(between(0, 5e-3))};
    const ChunkedStages in = equal(p, time, Seconds(between(0, 5e-4)));
    const double kept = between(.2, 1);
    CAPTURE(n, p, m, kept);
    for (const auto& [schedule, fixed] :
         {std::pair{one_p, PipelineSchedule::zb_h1}, {two_p, PipelineSchedule::zb_h2}}) {
      Orders plain;
      for (int i = 0; i < p; ++i) plain.push_back(zero_bubble_order(fixed, p, i, m));
      const Seconds of_plain = longest(fixed, in, plain),
                    made = longest(schedule, in, orders_of(schedule, in, kept, m));
      CHECK(made <= (1 + 1e-9) * of_plain);
      if (made < (1 - 1e-6) * of_plain) ++shorter;
    }
  }
  CHECK(shorter > 50);
}

TEST_CASE("a pipeline under ZB-2p ends later than under H2 only where its longest stage is shorter for that") {
  std::mt19937 random(20261203);
  const auto between = [&](double low, double high) {
    return low + (high - low) * 1e-3 * static_cast<double>(random() % 1000);
  };
  int later = 0;
  for (int n = 0; n < 300; ++n) {
    const int p = 2 + static_cast<int>(random() % 7),
              m = p + static_cast<int>(random() % (3 * static_cast<unsigned>(p)));
    ChunkedStages in = equal(p, {}, {});
    std::fill(in.transfer.begin(), in.transfer.end(), Seconds(between(0, 2e-3)));
    const StageTime mean{Seconds(between(5e-3, 15e-3)), Seconds(between(5e-3, 15e-3)), Seconds(between(3e-3, 12e-3))};
    for (StageTime& t : in.times) {
      const double size = n % 2 == 0 ? 1 : between(.7, 1.3);
      t = {mean.forward * size, mean.backward * size, mean.weights * size};
    }
    Orders plain;
    for (int i = 0; i < p; ++i) plain.push_back(zero_bubble_order(PipelineSchedule::zb_h2, p, i, m));
    const Orders made = orders_of(two_p, in, between(.2, 1), m);
    const auto end = [&](PipelineSchedule schedule, const Orders& orders) {
      Seconds last{};
      for (const StageSpan& span : stage_spans(schedule, in, orders)) last = std::max(last, span.end);
      return last;
    };
    if (end(two_p, made) <= (1 + 1e-9) * end(PipelineSchedule::zb_h2, plain)) continue;
    ++later;
    CAPTURE(n, p, m);
    CHECK(longest(two_p, in, made) < longest(PipelineSchedule::zb_h2, in, plain));
  }
  CHECK(later > 0);
}

TEST_CASE("ZB-1p and ZB-2p, stages and transfers that differ: the closed form is the timeline") {
  std::mt19937 random(20261128);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int n = 0; n < 300; ++n) {
    ChunkedStages in = equal(1 + dice(6), {}, {});
    for (StageTime& t : in.times)
      t = {Seconds(1e-3 * (1 + dice(9))), Seconds(1e-3 * (1 + dice(9))), Seconds(1e-3 * dice(9))};
    for (Seconds& c : in.transfer) c = Seconds(1e-4 * dice(30));
    in.blocking = dice(4) == 0;
    StepPlan plan = plan_of(dice(2) == 0 ? one_p : two_p, in, 1 + dice(14), .25 * (1 + dice(8)));
    plan.overlap_dp = dice(4) > 0;
    for (StagePlan& stage : plan.stages) stage.buckets.push_back({0, Seconds(1e-3 * dice(20))});
    CAPTURE(n, in.stages, plan.micro_batches, plan.overlap_pp, plan.overlap_dp);
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
    CHECK(estimate.breakdown.total().count() == Approx(estimate.total.count()).epsilon(1e-9));
  }
}

TEST_CASE("weight gradients that need more than activations: no stage is longer than under 1F1B") {
  std::mt19937 random(20261202);
  const auto time = [&] { return Seconds(1e-3 * (1 + static_cast<double>(random() % 900) / 100)); };
  for (int n = 0; n < 100; ++n) {
    const int p = 1 + static_cast<int>(random() % 6), m = 1 + static_cast<int>(random() % 20);
    const ChunkedStages in = equal(p, {time(), time(), time()}, time() / 20);
    StageTime whole = in.times.front();
    whole.backward += whole.weights;
    whole.weights = {};
    Orders plain;
    for (int i = 0; i < p; ++i) plain.push_back(stage_order(PipelineSchedule::one_f_one_b, p, i, m));
    const ChunkedStages unsplit = equal(p, whole, in.transfer.empty() ? Seconds{} : in.transfer.front());
    CAPTURE(n, p, m);
    for (const PipelineSchedule schedule : {one_p, two_p})
      CHECK(longest(schedule, in, orders_of(schedule, in, 1.5 + n % 20, m)) <=
            (1 + 1e-9) * longest(PipelineSchedule::one_f_one_b, unsplit, plain));
  }
}

TEST_CASE("whole steps under ZB-1p and ZB-2p: both methods agree, shorter than under 1F1B, the same step again") {
  const Fabric fabric = cluster(4);
  for (const bool sp : {false, true})
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      StepInputs in = inputs(small_model(), layout(2, 4, 4), 1024, 48);
      in.layout.sequence_parallel = sp;
      in.options.recompute = recompute;
      const StepResult one = forecast_step(in, fabric, {}, Method::both).value();
      Seconds before = one.breakdown.bubble;
      for (const PipelineSchedule schedule : {one_p, two_p}) {
        in.layout.schedule = schedule;
        REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
        const StepResult r = forecast_step(in, fabric, {}, Method::both).value();
        CAPTURE(to_string(schedule), sp);
        CHECK(r.breakdown.compute.count() == Approx(one.breakdown.compute.count()).epsilon(1e-9));
        CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
        CHECK(r.step.count() == Approx(r.estimate.count()).epsilon(1e-3));
        CHECK(r.step < one.step);
        // The last stage has the head: it sets the pace, and no order lets it begin earlier.
        CHECK(r.breakdown.bubble.count() <= before.count() * (1 + 1e-9));
        before = r.breakdown.bubble;
        const StepResult again = forecast_step(in, fabric, {}, Method::both).value();
        CHECK(again.step == r.step);
        CHECK(again.estimate == r.estimate);
      }
    }
}

TEST_CASE("what a made order holds, by hand") {
  StepInputs in = inputs(small_model(), layout(1, 2, 1), 1024, 3);
  in.layout.schedule = two_p;
  const Turn f0{false, 0}, f1{false, 1}, f2{false, 2}, b0{true, 0}, b1{true, 1}, b2{true, 2};
  const auto weights = [](int micro_batch) { return Turn{true, micro_batch, 0, true}; };
  const Orders made{{f0, f1, f2, b0, weights(0), b1, b2, weights(1), weights(2)},
                    {f0, b0, f1, b1, f2, b2, weights(0), weights(1), weights(2)}};
  const MemoryTerms first = memory_terms(in, 0, made), last = memory_terms(in, 1, made);
  // Three forwards before the first backward; on the last stage the third forward, beside two that wait.
  CHECK(first.in_flight == 3);
  CHECK(first.waiting == 0);
  CHECK(last.in_flight == 1);
  CHECK(last.waiting == 2);
  CHECK(last.last_waiting == 2);
  const double layers = last.parameters.all_layers();
  CHECK(last.activations().value() ==
        Approx((last.layer[mlp_layer].total() * layers + last.layer[mlp_layer].weights * (2 * layers) + last.final_norm)
                   .value() +
               2 * last.head_weights.value()));
}

TEST_CASE(
    "memory of orders made for times: what the order holds, never more than it may, on the first stage all of it") {
  const Fabric fabric = cluster(4);
  for (const PipelineSchedule schedule : {one_p, two_p})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
      for (const int m : {1, 3, 8, 24}) {
        StepInputs in = inputs(small_model(), layout(1, 4, 1), 1024, m);
        in.layout.schedule = schedule;
        in.options.recompute = recompute;
        const Orders orders = planned(in, priced(2e-6)).orders();
        for (int stage = 0; stage < 4; ++stage) {
          CAPTURE(to_string(schedule), to_string(recompute), m, stage);
          const MemoryTerms terms = memory_terms(in, stage);
          MemoryTerms now = terms;
          REQUIRE(now.of_chunk.size() == 1);
          MemoryTerms::Chunk& held = now.of_chunk.front();
          held.in_flight = held.waiting = 0;
          Volume most{};
          for (const Turn& t : orders[static_cast<std::size_t>(stage)]) {
            held.in_flight += t.weights ? 0 : t.backward ? -1 : 1;
            held.waiting += t.weights ? -1 : t.backward ? 1 : 0;
            now.first_in_flight = now.last_in_flight = held.in_flight;
            now.last_waiting = held.waiting;
            now.ends_backward = t.backward && !t.weights;
            most = std::max(most, now.activations() + now.loss_or_recomputed());
          }
          CHECK(most.value() <= (terms.activations() + terms.loss_or_recomputed()).value() * (1 + 1e-9));
          const MemoryTerms made = memory_terms(in, stage, orders);
          CHECK(made.activations() + made.loss_or_recomputed() == most);
          if (stage == 0 && m == 24 && recompute == Recompute::none)
            CHECK(terms.activations().value() ==
                  Approx(most_held(schedule, 4) *
                             (terms.layer[mlp_layer].total() * terms.parameters.all_layers()).value() +
                         most_held(schedule, 4) * terms.embedding_mask.value()));
        }
        Bytes peak{};
        for (int stage = 0; stage < 4; ++stage) peak = std::max(peak, stage_memory(in, stage, 8).peak());
        CHECK(peak_memory(in, 8).peak() == peak);
      }
}
