// Zero-bubble schedules: order, published bubble rates, formula against timeline, memory.
#include "workload/schedules/zero_bubble.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/memory/memory.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr PipelineSchedule h1 = PipelineSchedule::zb_h1, h2 = PipelineSchedule::zb_h2;

/// The longest time from a stage's first turn to its last.
Seconds longest_stage(const StepPlan& plan) {
  const std::vector<Seconds> all = stage_spans(plan);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace

TEST_CASE("H1 on three stages and four micro-batches, turn by turn") {
  const auto text = [](PipelineSchedule schedule, int stage) {
    std::string out;
    for (const Turn& t : stage_order(schedule, 3, stage, 4))
      out += (t.weights ? "W" : t.backward ? "B" : "F") + std::to_string(t.micro_batch) + " ";
    return out;
  };
  CHECK(text(h1, 0) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3 ");
  CHECK(text(h1, 1) == "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3 ");
  CHECK(text(h1, 2) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 ");
  CHECK(text(h2, 0) == "F0 F1 F2 F3 B0 W0 B1 W1 B2 W2 B3 W3 ");
}

TEST_CASE("zero-bubble orders do each micro-batch forward, backward and its weights, and hold what they promise") {
  for (const PipelineSchedule schedule : {h1, h2})
    for (int p = 1; p <= 5; ++p)
      for (int m = 1; m <= 9; ++m)
        for (int i = 0; i < p; ++i) {
          std::vector<int> state(static_cast<std::size_t>(m));
          int held = 0, most = 0;
          for (const Turn& t : stage_order(schedule, p, i, m)) {
            int& s = state[static_cast<std::size_t>(t.micro_batch)];
            REQUIRE(s == (t.weights ? 2 : t.backward ? 1 : 0));
            ++s;
            held += t.weights ? 0 : t.backward ? -1 : 1;
            most = std::max(most, held);
          }
          REQUIRE(state == std::vector<int>(static_cast<std::size_t>(m), 3));
          REQUIRE(most == std::min(m, schedule == h1 ? p - i : 2 * (p - i) - 1));
        }
}

TEST_CASE("bubble rates of ZB-H1 and ZB-H2 as published by Qi et al., from formula and timeline") {
  // Stage times in ms (Qi et al. 2023, Tables 5 and 9): F, B, W, C, p, m, rates.
  struct Row {
    double f, b, w, c;
    int p, m;
    double rate_h1, rate_h2;
  };
  for (const Row& r :
       {Row{18.513, 18.086, 9.331, 0.626, 8, 32, .1242, .0837}, Row{11.307, 11.254, 8.101, 0.379, 16, 64, .1088, .0516},
        Row{10.419, 10.207, 7.715, 0.408, 32, 96, .1421, .0641},
        Row{10.408, 10.204, 7.703, 0.408, 32, 128, .1106, .0490}})
    for (const PipelineSchedule schedule : {h1, h2}) {
      const double rate = schedule == h1 ? r.rate_h1 : r.rate_h2, work = r.m * (r.f + r.b + r.w) * 1e-3;
      const StageTime time{Seconds(r.f * 1e-3), Seconds(r.b * 1e-3), Seconds(r.w * 1e-3)};
      const StepPlan plan = equal_stages(schedule, time, Seconds(r.c * 1e-3), r.p, r.m);
      const StepEstimate whole = estimate_step(plan);
      const double formula = (whole.total - whole.terms.pipeline.order).count();
      CAPTURE(r.p, r.m, to_string(schedule));
      CHECK(1 - work / formula == Approx(rate).margin(1e-4));
      // What a stage is busy with, and under H1 the whole as well.
      CHECK(longest_stage(plan).count() == Approx(formula).epsilon(1e-9));
      if (schedule == h1) CHECK(whole.terms.pipeline.order == Seconds{});
    }
}

TEST_CASE("zero bubble, stages and transfers that differ: the closed form is the timeline") {
  std::mt19937 random(20261122);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int n = 0; n < 300; ++n) {
    const auto p = static_cast<std::size_t>(1 + dice(6));
    std::vector<StageTime> times;
    std::vector<Seconds> transfer;
    for (std::size_t i = 0; i < p; ++i)
      times.push_back({Seconds(1e-3 * (1 + dice(9))), Seconds(1e-3 * (1 + dice(9))), Seconds(1e-3 * dice(9))});
    for (std::size_t i = 0; i + 1 < p; ++i) transfer.push_back(Seconds(1e-4 * dice(30)));
    StepPlan plan = stages(dice(2) == 0 ? h1 : h2, times, transfer, 1 + dice(12));
    plan.overlap_pp = dice(4) > 0;
    plan.overlap_dp = dice(4) > 0;
    for (StagePlan& stage : plan.stages) stage.buckets.push_back({0, Seconds(1e-3 * dice(20))});
    CAPTURE(n, p, plan.micro_batches, plan.overlap_pp, plan.overlap_dp);
    CHECK(estimate_step(plan).total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
  }
}

TEST_CASE("the head's weight gradients wait with their input and the logits' gradient") {
  StepInputs in = inputs(small_model(), layout(2, 4, 1), 512, 12);
  in.layout.schedule = h1;
  const MemoryTerms first = memory_terms(in, 0), last = memory_terms(in, 3);
  const double tokens = 512.0 * in.batch.micro_batch, w = 2;
  CHECK(first.head_weights == Volume{});
  CHECK(last.head_weights.value() == w * tokens * (in.model.hidden + in.model.vocab / 2.0));
  // H1's last stage holds one forward with its loss, and backwards of three that wait.
  CHECK(last.last_in_flight == 1);
  CHECK(last.last_waiting == 3);
  MemoryTerms without = last;
  without.head_weights = {};
  CHECK((last.activations() - without.activations()).value() == 3 * last.head_weights.value());
  in.layout.sequence_parallel = true;  // of the input a half, gathered again when its turn comes
  CHECK(memory_terms(in, 3).head_weights.value() == w * tokens * (in.model.hidden / 2.0 + in.model.vocab / 2.0));
  in.layout.schedule = PipelineSchedule::one_f_one_b;
  CHECK(memory_terms(in, 3).head_weights == Volume{});
}

TEST_CASE("whole steps under zero bubble do the work of 1F1B, and both methods agree") {
  const Fabric fabric = cluster(4);
  for (const bool sp : {false, true})
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      StepInputs in = inputs(small_model(), layout(2, 4, 4), 1024, 16);
      in.layout.sequence_parallel = sp;
      in.options.recompute = recompute;
      const StepResult one = forecast_step(in, fabric, {}, Method::both).value();
      for (const PipelineSchedule schedule : {h1, h2}) {
        in.layout.schedule = schedule;
        REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
        const StepResult r = forecast_step(in, fabric, {}, Method::both).value();
        CAPTURE(to_string(schedule), sp);
        CHECK(r.breakdown.compute.count() == Approx(one.breakdown.compute.count()).epsilon(1e-9));
        CHECK(r.breakdown.tp_exposed.count() == Approx(one.breakdown.tp_exposed.count()).epsilon(1e-6));
        CHECK(r.layer.backward.count() == Approx(one.layer.backward.count()).epsilon(1e-6));
        CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
        CHECK(r.step.count() == Approx(r.estimate.count()).epsilon(1e-3));
        CHECK(r.step < one.step);
        CHECK(r.mfu > one.mfu);
      }
    }
}

TEST_CASE("H1 holds p - i micro-batches and the inputs of i, H2 twice as many") {
  for (const int stage : {0, 1, 3}) {
    StepInputs in = inputs(small_model(), layout(1, 4, 1), 512, 32);
    in.layout.schedule = h1;
    MemoryTerms terms = memory_terms(in, stage);
    CHECK(terms.in_flight == 4 - stage);
    CHECK(terms.waiting == stage);
    in.layout.schedule = h2;
    terms = memory_terms(in, stage);
    CHECK(terms.in_flight == 2 * (4 - stage) - 1);
    CHECK(terms.waiting == 2 * stage);
  }
  // A GPT layer keeps 34 s b h, of which W needs 32 (Qi et al. 2023).
  StepInputs gpt = inputs(gpt_22b(), layout(1, 4, 1), 2048, 32);
  gpt.layout.schedule = h1;
  const double sbh = 2048.0 * 2 * 6144;
  CHECK(memory_terms(gpt, 0).layer[mlp_layer].weights.value() == Approx(32 * sbh));
}

TEST_CASE("zero bubble with full recomputation: at the end of a backward nothing of its layer counts twice") {
  // A layer a stage and one micro-batch: forward, backward, weights.
  StepInputs in = inputs(small_model(), layout(1, 2, 1), 1024, 1);
  in.model.layers = 2;
  in.options.embedding_and_logits = false;
  in.layout.schedule = PipelineSchedule::zb_h1;
  in.options.recompute = Recompute::full;
  const double T = 2048, h = 1024, q = 1024, k = 512, f = 4096, w = 2;
  const MemoryTerms terms = memory_terms(in, 1);
  REQUIRE(terms.ends_backward);
  REQUIRE(terms.waiting == 1);
  // Input and output of both norms; queries, keys, values and the core's output; up, gate and what they give; and for
  // the weights the gradients of what each matrix gives.
  const double layer = w * T * (4 * h + (2 * q + 2 * k) + 3 * f) + 4 * T * 16;
  const double gradients = w * T * ((q + 2 * k) + h + 2 * f + h);
  CHECK((terms.activations() + terms.brought_back()).value() == layer + gradients);
}

TEST_CASE("zero bubble with full recomputation: of a layer what waits and what came back are no less than either") {
  TransformerConfig experts = small_deepseek();
  experts.experts.dense_layers = 0;
  for (const TransformerConfig& model : {small_model(), small_experts(), experts})
    for (const int tp : {1, 2})
      for (const int rank : {0, 16})
        for (const PipelineSchedule schedule :
             {PipelineSchedule::zb_h1, PipelineSchedule::zb_h2, PipelineSchedule::zb_v}) {
          StepInputs in = inputs(model, layout(tp, 2, 1), 1024, 8);
          in.layout.schedule = schedule;
          in.layout.sequence_parallel = tp > 1;
          in.options.recompute = Recompute::full;
          in.options.lora.rank = rank;
          for (const int stage : {0, 1}) {
            CAPTURE(tp, rank, to_string(schedule), stage);
            const MemoryTerms terms = memory_terms(in, stage);
            const Volume waits = terms.layer[model.experts.count > 0 ? expert_layer : mlp_layer].weights;
            const Volume all = waits + terms.recomputed_beside_weights;
            CHECK(terms.recomputed_beside_weights < terms.recomputed);
            CHECK(all >= terms.recomputed);
            CHECK(all > waits);
            // One layer's inputs less than if they were counted twice, and no other figure.
            MemoryTerms twice = terms;
            twice.ends_backward = false;
            const double less = (twice.buffers_of_backward() - terms.buffers_of_backward()).value();
            CHECK(less >= 0);
            CHECK(less <= (terms.recomputed - terms.recomputed_beside_weights).value() * (1 + 1e-12));
            CHECK(twice.activations() == terms.activations());
          }
          in.options.recompute = Recompute::none;
          CHECK(memory_terms(in, 0).brought_back() == Volume{});
        }
}
