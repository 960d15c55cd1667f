// The zero-bubble schedule V: order, formula against timeline, published bubble rates, placement and memory.
#include "workload/schedules/zero_bubble_v.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr PipelineSchedule v = PipelineSchedule::zb_v, beside_v = PipelineSchedule::zb_h1;

/// Chunks of a micro-batch that a stage's order holds at once: forwards without backward, and without weight gradients.
std::pair<int, int> most_held(int p, int stage, int m) {
  int held = 0, waiting = 0, most_held = 0, most = 0;
  for (const Turn& t : zero_bubble_v_order(p, stage, m)) {
    held += t.weights ? 0 : t.backward ? -1 : 1;
    waiting += t.weights ? -1 : t.backward ? 1 : 0;
    most_held = std::max(most_held, held);
    most = std::max(most, held + waiting);
  }
  return {most_held, most};
}

StepInputs v_inputs(int tp, int pp, int micro_batches) {
  StepInputs in = inputs(small_model(), layout(tp, pp, 1), 1024, micro_batches);
  in.layout.schedule = v;
  return in;
}

}  // namespace

TEST_CASE("V on two stages and four micro-batches, turn by turn") {
  // Stage 0 holds slices 0 and 3 as 'a' and 'b', stage 1 slices 1 and 2; each begins with 2 x 2 forwards.
  const auto text = [](int stage) {
    std::string out;
    for (const Turn& t : stage_order(v, 2, stage, 4, 2))
      out += (t.weights ? "W" : t.backward ? "B" : "F") + std::to_string(t.micro_batch) + (t.chunk == 0 ? "a " : "b ");
    return out;
  };
  CHECK(text(0) == "F0a F1a F2a F0b B0b W0b F1b B1b W1b F3a B0a W0a F2b B2b W2b B1a W1a F3b B3b B2a W3b B3a W2a W3a ");
  CHECK(text(1) == "F0a F0b F1a F1b B0b W0b F2a B0a W0a F2b B1b W1b F3a B1a W1a F3b B2b B2a B3b B3a W2b W2a W3b W3a ");
}

TEST_CASE("each chunk of each micro-batch goes forward, backward and to its weights once, down the V and up again") {
  for (int p = 1; p <= 12; ++p)
    for (int m = 1; m <= 3 * p + 2; ++m)
      for (int i = 0; i < p; ++i) {
        CAPTURE(p, m, i);
        // How far a micro-batch is: F of chunks 0 and 1, then B of 1 and 0. The same of its weight gradients.
        std::vector<int> way(static_cast<std::size_t>(m)), weights(way);
        for (const Turn& t : zero_bubble_v_order(p, i, m)) {
          const auto k = static_cast<std::size_t>(t.micro_batch);
          if (t.weights) {
            REQUIRE(t.chunk == 1 - weights[k]++);
            REQUIRE(way[k] >= (t.chunk == 1 ? 3 : 4));
          } else {
            REQUIRE(way[k]++ == (t.backward ? 3 - t.chunk : t.chunk));
          }
        }
        REQUIRE(way == std::vector<int>(static_cast<std::size_t>(m), 4));
        REQUIRE(weights == std::vector<int>(static_cast<std::size_t>(m), 2));
        REQUIRE(zero_bubble_v_order(p, i, m) == zero_bubble_v_order(p, i, m));
      }
}

TEST_CASE("a stage never holds more than 2p chunks of a micro-batch, those that wait for their weights among them") {
  for (int p = 1; p <= 12; ++p)
    for (int m = 1; m <= 3 * p + 2; ++m)
      for (int i = 0; i < p; ++i) {
        CAPTURE(p, m, i);
        const auto [held, with_waiting] = most_held(p, i, m);
        CHECK(held <= std::min(2 * p, 2 * m));
        CHECK(with_waiting <= std::min(2 * p, 2 * m));
        // What the first stage of 1F1B holds, on every stage.
        if (m >= 2 * p) CHECK(held == 2 * p);
      }
  // From 3p micro-batches on nothing more is held, of what kind soever.
  StepInputs few = v_inputs(1, 4, 12), many = v_inputs(1, 4, 100);
  for (const Recompute recompute : {Recompute::none, Recompute::full})
    for (int i = 0; i < 4; ++i) {
      few.options.recompute = many.options.recompute = recompute;
      CHECK(stage_memory(few, i, 8).peak() == stage_memory(many, i, 8).peak());
      // As held in its own order, turn by turn.
      int held = 0, waiting = 0;
      Volume most{};
      const MemoryTerms terms = memory_terms(many, i);
      for (const Turn& t : zero_bubble_v_order(4, i, 100)) {
        held += t.weights ? 0 : t.backward ? -1 : 1;
        waiting += t.weights ? -1 : t.backward ? 1 : 0;
        most = std::max(most, terms.layer[mlp_layer].total() * held + terms.layer[mlp_layer].weights * waiting);
      }
      if (i > 0) CHECK(terms.activations().value() == Approx(most.value()));
    }
}

TEST_CASE("no order of p up to 12 and m up to 3p + 2 waits for itself, and its walk is the timeline") {
  const StageTime time{Seconds(2e-3), Seconds(3e-3), Seconds(1e-3)};
  for (int p = 1; p <= 12; ++p)
    for (int m = 1; m <= 3 * p + 2; ++m) {
      CAPTURE(p, m);
      const StepPlan plan = plan_of_chunks(v, equal_halves(p, time, Seconds(1e-4)), m);
      CHECK(estimate_step(plan).total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
    }
}

TEST_CASE("F = B = W without messages: no stage waits between its turns, the last begins (p-1) F/2 after the first") {
  const double f = 2e-3;
  const StageTime time{Seconds(f), Seconds(f), Seconds(f)};
  for (int p = 1; p <= 8; ++p)
    for (int m = 2 * p; m <= 3 * p + 1; ++m) {
      CAPTURE(p, m);
      const StepPlan plan = plan_of_chunks(v, equal_halves(p, time, {}), m);
      const StepEstimate estimate = estimate_step(plan);
      CHECK(estimate.total.count() == Approx(3 * m * f + (p - 1) * f / 2).epsilon(1e-12));
      CHECK(estimate.terms.pipeline.order == Seconds{});
      for (const Seconds span : stage_spans(plan)) CHECK(span.count() == Approx(3 * m * f).epsilon(1e-9));
    }
}

TEST_CASE(
    "equal stages and at least 2p micro-batches: the formula is the timeline, whatever F, B, W and short messages") {
  std::mt19937 random(20261123);
  const auto between = [&](double low, double high) {
    return low + (high - low) * 1e-3 * static_cast<double>(random() % 1000);
  };
  for (int n = 0; n < 200; ++n) {
    const int p = 1 + static_cast<int>(random() % 6), m = 2 * p + static_cast<int>(random() % 5);
    const StageTime time{Seconds(between(1e-3, 6e-3)), Seconds(between(1e-3, 6e-3)), Seconds(between(0, 6e-3))};
    // A message within half a chunk.
    const Seconds c = between(0, .25) * std::min(time.forward, time.backward);
    CAPTURE(n, p, m, time.forward.count(), time.backward.count(), time.weights.count(), c.count());
    const StepPlan plan = plan_of_chunks(v, equal_halves(p, time, c), m);
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.terms.pipeline.order == Seconds{});
    CHECK(estimate.total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
  }
}

TEST_CASE(
    "V and DualPipeV, chunks and transfers that differ, with gradients behind them: the closed form is the timeline") {
  std::mt19937 random(20261124);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int n = 0; n < 800; ++n) {
    const PipelineSchedule schedule = n < 400 ? v : PipelineSchedule::dualpipe_v;
    ChunkedStages in{1 + dice(6), 2, {}, {}, dice(4) == 0};
    for (int i = 0; i < 2 * in.stages; ++i)
      in.times.push_back({Seconds(1e-3 * (1 + dice(9))), Seconds(1e-3 * (1 + dice(9))), Seconds(1e-3 * dice(9))});
    for (int i = 0; i + 1 < in.stages; ++i) in.transfer.push_back(Seconds(1e-4 * dice(60)));
    StepPlan plan = plan_of_chunks(schedule, in, 1 + dice(16));
    plan.overlap_dp = dice(4) > 0;
    for (StagePlan& stage : plan.stages) stage.buckets = {{1, Seconds(1e-3 * dice(30))}, {0, Seconds(1e-3 * dice(20))}};
    CAPTURE(n, to_string(schedule), in.stages, plan.micro_batches, plan.overlap_pp, plan.overlap_dp);
    CHECK(estimate_step(plan).total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
  }
}

TEST_CASE("the bubble of V is smaller than that of ZB-H1 and 1F1B, which hold as much on their first stage") {
  // F, B, W as in Qi et al. 2023, Table 9, and equal ones; C within a tenth of F.
  for (const auto& [f, b, w] : {std::array{18.513, 18.086, 9.331}, {11.307, 11.254, 8.101}, {10., 10., 10.}})
    for (const double c : {0., 0.4, 1.})
      for (int p = 2; p <= 6; ++p)
        for (int m = p; m <= 4 * p; ++m) {
          CAPTURE(f, b, w, c, p, m);
          const StageTime time{Seconds(f), Seconds(b), Seconds(w)};
          const auto bubble = [&](const StepPlan& plan) { return (simulated(plan) - m * time.whole()).count(); };
          const double of_v = bubble(plan_of_chunks(v, equal_halves(p, time, Seconds(c)), m));
          const double of_h1 = bubble(equal_stages(beside_v, time, Seconds(c), p, m));
          const StageTime whole{time.forward, time.backward + time.weights};
          const double of_1f1b = bubble(equal_stages(PipelineSchedule::one_f_one_b, whole, Seconds(c), p, m));
          CHECK(of_v < of_1f1b);
          if (m >= 2 * p) CHECK(of_v < of_h1);
          // With fewer micro-batches than 2p and no messages never longer.
          if (c == 0) CHECK(of_v <= of_h1 * (1 + 1e-9));
        }
}

TEST_CASE("bubble rates of ZB-V as published by Qi et al., from those of 1F1B and ZB-H1 of the same runs") {
  // Qi et al. 2023, Table 8; the times of these runs are not printed. With F + B + W = 1 a rate r is a bubble of
  // m r / (1 - r). 1F1B: (p-1) + 2C ((p-1) + (m-1) - floor((m+p-2)/p)) gives C, H1: (p-1)(1 - 2W + 4C) gives W. F and B
  // are apart by 0 to 2 % in the runs of Table 9 with printed times: equal here. H2's rate checks both: (p-1)(1 - 3W +
  // 2C).
  struct Row {
    int p, m;
    double one_f_one_b, h1, h2, v;
  };
  for (const Row& r : {Row{16, 48, .2668, .1536, .0823, .0697}, Row{16, 64, .2206, .1198, .0630, .0533},
                       Row{16, 128, .1390, .0637, .0325, .0274}, Row{24, 72, .2699, .1439, .0628, .0638},
                       Row{24, 96, .2229, .1121, .0480, .0483}, Row{32, 128, .2204, .1111, .0478, .0451},
                       Row{32, 256, .1362, .0593, .0251, .0236}}) {
    CAPTURE(r.p, r.m);
    const double n = r.p - 1, ways = 2 * (n + (r.m - 1) - (r.m + r.p - 2) / r.p);
    const auto bubble = [&](double rate) { return r.m * rate / (1 - rate); };
    const double c = (bubble(r.one_f_one_b) - n) / ways, w = (1 + 4 * c - bubble(r.h1) / n) / 2;
    const double of_h2 = n * (1 - 3 * w + 2 * c);
    REQUIRE(of_h2 / (r.m + of_h2) == Approx(r.h2).margin(5e-4));
    const StageTime time{Seconds((1 - w) / 2), Seconds((1 - w) / 2), Seconds(w)};
    // Published is what a stage is busy with: no wait for the others before the optimizer.
    const std::vector<Seconds> busy = stage_spans(plan_of_chunks(v, equal_halves(r.p, time, Seconds(c)), r.m));
    const double longest = std::max_element(busy.begin(), busy.end())->count();
    // Theirs is an order made for these times, this one knows of none: it is from .0025 below to .0025 above.
    CHECK(1 - r.m / longest == Approx(r.v).margin(.0026));
    CHECK(1 - r.m / longest < r.h1);
  }
}

TEST_CASE("in a V each stage has a slice of the way down and one of the way up, the first both ends of the model") {
  StepInputs in = v_inputs(1, 2, 4);
  in.model.layers = 8;
  const auto layers = [&](int stage) {
    std::string out;
    for (const StageLayer& l : layers_of_stage(in, stage))
      out += std::to_string(l.number) + (l.chunk == 0 ? "a " : "b ");
    return out;
  };
  CHECK(layers(0) == "0a 1a 6b 7b ");
  CHECK(layers(1) == "2a 3a 4b 5b ");
  CHECK(has_embedding(in, 0));
  CHECK(has_head(in, 0));
  CHECK_FALSE(has_head(in, 1));
  in.model.layers = 6;
  in.layout.uneven_stages = true;
  CHECK(layers(0) == "0a 5b ");
  CHECK(layers(1) == "1a 2a 3b 4b ");
  // Where neither 4 slices nor those with the ends divide the layers the last stage has the extra ones first.
  in.model.layers = 5;
  CHECK(layers(0) == "0a 4b ");
  CHECK(layers(1) == "1a 2a 3b ");
  in.model.layers = 7;
  CHECK(layers(0) == "0a 1a 6b ");
  CHECK(layers(1) == "2a 3a 4b 5b ");
  // Nothing is counted twice: what the stages have is the model.
  for (const bool tied : {false, true}) {
    in.model.tied_embeddings = tied;
    CHECK(stage_parameters(in, 0).total() + stage_parameters(in, 1).total() == Approx(parameter_count(in.model)));
    const StepPlan plan = planned(in, priced(1e-6));
    for (const CollectiveCost& c : plan.stages.front().collectives)
      CHECK(c.name.find("embedding") == std::string::npos);
  }
}

TEST_CASE("slices of a V differ by one layer at most, stages too, and go through the model once") {
  for (int pp = 1; pp <= 9; ++pp)
    for (int layers = 2 * pp; layers <= 8 * pp + 3; ++layers) {
      StepInputs in = v_inputs(1, pp, 4);
      in.model.layers = layers;
      in.layout.uneven_stages = true;
      if (ends_stand_for_layers(in)) continue;
      CAPTURE(pp, layers);
      std::vector<std::vector<int>> slices(static_cast<std::size_t>(2 * pp));
      std::vector<int> stages;
      for (int stage = 0; stage < pp; ++stage) {
        stages.push_back(stage_layers(in, stage));
        for (const StageLayer& l : layers_of_stage(in, stage))
          slices[static_cast<std::size_t>(slice_of(in.layout, stage, l.chunk))].push_back(l.number);
      }
      int next = 0;
      for (const std::vector<int>& slice : slices) {
        const int size = static_cast<int>(slice.size());
        CHECK((size == layers / (2 * pp) || size == (layers + 2 * pp - 1) / (2 * pp)));
        for (const int number : slice) REQUIRE(number == next++);
      }
      REQUIRE(next == layers);
      CHECK(std::is_sorted(stages.begin(), stages.end()));
      CHECK(stages.back() - stages.front() <= 1);
    }
}

TEST_CASE("a chunk counts with its own layers in what a stage holds") {
  for (const int layers : {9, 11, 13, 14}) {
    StepInputs in = v_inputs(1, 4, 12);
    in.model.layers = layers;
    in.layout.uneven_stages = true;
    in.options.embedding_and_logits = false;
    in.model.dropout = 0;
    for (int stage = 0; stage < 4; ++stage) {
      CAPTURE(layers, stage);
      const MemoryTerms terms = memory_terms(in, stage);
      std::array<int, 2> of{};
      for (const StageLayer& l : layers_of_stage(in, stage)) ++of[static_cast<std::size_t>(l.chunk)];
      double held = 0, most = 0;
      for (const Turn& t : stage_order(v, 4, stage, 12, 2)) {
        const double kept = terms.layer[mlp_layer].total().value(), later = terms.layer[mlp_layer].weights.value();
        held += of[static_cast<std::size_t>(t.chunk)] * (t.weights ? -later : t.backward ? later - kept : kept);
        most = std::max(most, held);
      }
      CHECK(terms.activations().value() == Approx(most));
    }
  }
}

TEST_CASE("the first stage may have the ends of the model alone, as in the published runs") {
  // 14 layers, embedding and head over 8 stages: a layer in each chunk.
  const Fabric fabric = cluster(4);
  for (const int tp : {1, 2})
    for (const bool ends : {true, false}) {
      StepInputs in = v_inputs(tp, 8, 16);
      in.model.layers = 14;
      in.layout.uneven_stages = true;
      in.options.embedding_and_logits = ends;
      CAPTURE(tp, ends);
      REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
      CHECK(stage_layers(in, 0) == 0);
      const StepPlan plan = planned(in, priced(2e-6, 30e9));
      CHECK(estimate_step(plan).total.count() ==
            Approx(simulated(plan, fabric).count()).epsilon(1e-9).margin(rounding(plan)));
      const StepResult r = forecast_step(in, fabric, {}, Method::both).value();
      CHECK(r.layer.forward > Seconds{});
      CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
    }
}

TEST_CASE("whole plans under V, dense and with experts, even and not: the closed form is the timeline") {
  const Fabric fabric = cluster(8);
  std::mt19937 random(20261125);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  int cases = 0, bare = 0, with_experts = 0, uneven = 0;
  while (cases < 150) {
    StepInputs in = inputs(small_model(), layout(1 << dice(2), 1 << dice(4), 1 << dice(3)), 512, 1 + dice(20));
    in.layout.schedule = v;
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    in.layout.sequence_parallel = in.layout.tp > 1;
    in.layout.uneven_stages = dice(2) == 0;
    in.model.layers = 2 + dice(24);
    in.model.tied_embeddings = dice(2) == 0;
    in.model.dropout = 0.1 * dice(2);
    in.model.biases = dice(2) == 0;
    if (dice(3) == 0) {
      in.model.experts.count = 8;
      in.model.experts.top_k = 2;
      in.model.experts.ffn = 1024;
      in.model.experts.every = 1 + dice(2);
      in.layout.ep = 1 << dice(2);
    }
    in.options.zero = dice(2);
    in.options.recompute = static_cast<Recompute>(dice(3));
    in.options.overlap_dp = dice(3) > 0;
    in.options.overlap_pp = dice(3) > 0;
    in.options.embedding_and_logits = dice(4) > 0;
    in.options.bucket = Bytes(4'000'000 << dice(4));
    in.options.launch = dice(3) == 0 ? Seconds(20e-6) : Seconds{};
    const bool sound = check_step(in, fabric.rank_count(), {}).empty();
    if (!sound) continue;
    ++cases;
    bare += stage_layers(in, 0) == 0 ? 1 : 0;
    uneven += slices_differ(in) ? 1 : 0;
    with_experts += in.model.experts.count > 0 ? 1 : 0;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.ep, in.model.layers, in.options.zero,
            in.options.overlap_pp, in.options.overlap_dp, in.options.embedding_and_logits);
    const StepPlan plan = planned(in, priced(2e-6, 3e9 * (1 + 9 * dice(3))));
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-9).margin(rounding(plan)));
    CHECK(estimate.breakdown.total().count() == Approx(estimate.total.count()).epsilon(1e-9));
  }
  CHECK(bare > 5);
  CHECK(uneven > 30);
  CHECK(with_experts > 20);
}

TEST_CASE("whole steps under V: both methods agree, a shorter bubble than H1's, the same step again") {
  const Fabric fabric = cluster(4);
  for (const bool sp : {false, true})
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      StepInputs in = inputs(small_model(), layout(2, 4, 4), 1024, 16);
      in.layout.sequence_parallel = sp;
      in.options.recompute = recompute;
      // Equal stages.
      in.options.embedding_and_logits = false;
      const StepResult one = forecast_step(in, fabric, {}, Method::both).value();
      in.layout.schedule = beside_v;
      const StepResult split = forecast_step(in, fabric, {}, Method::both).value();
      in.layout.schedule = v;
      REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
      const StepResult r = forecast_step(in, fabric, {}, Method::both).value();
      CAPTURE(sp, to_string(recompute));
      CHECK(r.breakdown.compute.count() == Approx(one.breakdown.compute.count()).epsilon(1e-9));
      CHECK(r.layer.backward.count() == Approx(one.layer.backward.count()).epsilon(1e-6));
      CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
      CHECK(r.step.count() == Approx(r.estimate.count()).epsilon(1e-3));
      CHECK(r.step < one.step);
      CHECK(r.breakdown.bubble < split.breakdown.bubble);
      const StepResult again = forecast_step(in, fabric, {}, Method::both).value();
      CHECK(again.step == r.step);
      CHECK(again.estimate == r.estimate);
      CHECK(again.memory.peak() == r.memory.peak());
      in.options.embedding_and_logits = true;
      const StepResult whole = forecast_step(in, fabric, {}, Method::both).value();
      CHECK(whole.step.count() == Approx(whole.estimate.count()).epsilon(1e-3));
      CHECK(whole.breakdown.total().count() == Approx(whole.step.count()).epsilon(1e-9));
    }
}

TEST_CASE("every stage of a V holds the activations of p micro-batches, the first the logits as well") {
  StepInputs in = v_inputs(1, 4, 32);
  const double of_layer = layer_activations(in).value(), layers = 2;
  for (const int stage : {0, 1, 2, 3}) {
    CAPTURE(stage);
    const MemoryTerms terms = memory_terms(in, stage);
    CHECK(terms.chunks == 2);
    CHECK(terms.in_flight == 2 * 4);
    CHECK(terms.waiting == 0);
    CHECK((terms.logits > Volume{}) == (stage == 0));
    // M_B of a stage is that of its two layers; the first stage has the ends of the model besides.
    if (stage > 0) CHECK(terms.activations().value() == Approx(4 * layers * of_layer));
  }
  const Bytes of_v = stage_memory(in, 1, 8).activations;
  in.layout.schedule = PipelineSchedule::one_f_one_b;
  CHECK(of_v == stage_memory(in, 0, 8).activations);
  // Recomputation keeps inputs alone, so that what waits for its weights counts most, on the last stage.
  in.layout.schedule = v;
  in.options.recompute = Recompute::full;
  Bytes most{};
  for (int stage = 0; stage < 4; ++stage) most = std::max(most, stage_memory(in, stage, 8).peak());
  CHECK(peak_memory(in, 8).peak() == most);
  CHECK(memory_terms(in, 3).waiting > 0);
}
