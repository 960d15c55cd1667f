// DualPipeV: order, DeepSeek's formula of the bubble, what is held, closed form against timeline.
#include "workload/schedules/dualpipe_v.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/memory/memory.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr PipelineSchedule dual_v = PipelineSchedule::dualpipe_v;

}  // namespace

TEST_CASE("DualPipeV on two stages and five micro-batches, turn by turn") {
  // F(B): together; b: without its weight gradients.
  const auto text = [](int stage) {
    std::string out;
    for (const Turn& t : stage_order(dual_v, 2, stage, 5, 2))
      out += (t.weights    ? "W"
              : t.backward ? (t.whole ? "B" : "b")
                           : "F") +
             std::to_string(t.micro_batch) + (t.chunk == 0 ? "a" : "b") + (t.with_next ? "+" : " ");
    return out;
  };
  CHECK(text(0) == "F0a F1a F2a F0b b0b W0b F1b F3a+B1b F2b+B0a F4a+B2b F3b+B1a B3b F4b+B2a B4b b3a W3a b4a W4a ");
  CHECK(text(1) == "F0a F0b F1a F1b F2a+B0b F2b+B0a F3a+B1b F3b+B1a F4a+B2b F4b+B2a B3b B3a b4b b4a W4b W4a ");
}

TEST_CASE("each chunk goes forward, backward and to its weights once, and 2p + 1 chunks are held at most") {
  for (int p = 1; p <= 9; ++p)
    for (int m = 1; m <= 3 * p + 2; ++m)
      for (int i = 0; i < p; ++i) {
        CAPTURE(p, m, i);
        std::vector<int> way(static_cast<std::size_t>(m)), weights(way);
        int held = 0, most = 0;
        for (const Turn& t : dualpipe_v_order(p, i, m)) {
          const auto k = static_cast<std::size_t>(t.micro_batch);
          if (!t.weights) REQUIRE(way[k]++ == (t.backward ? 3 - t.chunk : t.chunk));
          if (t.weights || t.whole) REQUIRE(t.chunk == 1 - weights[k]++);
          held += t.weights ? 0 : t.backward ? -1 : 1;
          most = std::max(most, held);
          REQUIRE((!t.with_next || !t.backward));
        }
        REQUIRE(way == std::vector<int>(static_cast<std::size_t>(m), 4));
        REQUIRE(weights == std::vector<int>(static_cast<std::size_t>(m), 2));
        // DeepSeek: PP + 1 of the PP = 2p slices.
        REQUIRE(most <= std::min(2 * p + 1, 2 * m));
        if (m > 2 * p) REQUIRE(most == 2 * p + 1);
      }
}

TEST_CASE("the bubble of DualPipeV is that of DeepSeek: (PP/2 - 1) (F&B + B - 3W)") {
  std::mt19937 random(20261129);
  const auto between = [&](double low, double high) {
    return low + (high - low) * 1e-3 * static_cast<double>(random() % 1000);
  };
  for (int n = 0; n < 100; ++n) {
    const int p = 1 + static_cast<int>(random() % 6), m = 2 * p + static_cast<int>(random() % 7);
    // Of a chunk.
    const double f = between(1e-3, 4e-3), b = between(1e-3, 4e-3), w = between(5e-4, 2e-3);
    const StepPlan plan =
        plan_of_chunks(dual_v, equal_halves(p, {Seconds(2 * f), Seconds(2 * b), Seconds(2 * w)}, {}), m);
    CAPTURE(n, p, m, f, b, w);
    // PP: slices of the model, two a stage.
    const double whole = b + w, together = f + whole;
    const double bubble = (2 * p / 2 - 1) * (together + whole - 3 * w);
    const StepEstimate estimate = estimate_step(plan);
    if (f <= b && w <= b) CHECK(estimate.total.count() == Approx(2 * m * (f + b + w) + bubble).epsilon(1e-9));
    // F longer than B: a forward holds up the other of its pair.
    if (w <= b) CHECK(estimate.terms.pipeline.order == Seconds{});
    CHECK(estimate.total.count() == Approx(simulated(plan).count()).epsilon(1e-9));
  }
}

TEST_CASE("whole plans under DualPipeV, with experts whose exchange runs beside computing: closed form and timeline") {
  const Fabric fabric = cluster(8);
  std::mt19937 random(20261201);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  int cases = 0, with_experts = 0;
  while (cases < 80) {
    StepInputs in = inputs(small_model(), layout(1 << dice(2), 1 << dice(3), 1 << dice(3)), 512, 1 + dice(20));
    in.layout.schedule = dual_v;
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    in.layout.sequence_parallel = in.layout.tp > 1;
    in.model.layers = 2 + 2 * dice(12);
    draw_options(in, dice(2) == 0, dice);
    in.options.fuse_loss = dice(2) == 0;
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++cases;
    with_experts += in.model.experts.count > 0 ? 1 : 0;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.ep, in.model.layers);
    const StepPlan plan = planned(in, priced(2e-6, 3e9 * (1 + 9 * dice(3))));
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-9).margin(rounding(plan)));
    CHECK(estimate.breakdown.total().count() == Approx(estimate.total.count()).epsilon(1e-9));
  }
  CHECK(with_experts > 15);
}

TEST_CASE("a slice of the embedding alone makes its gradients when its micro-batch is back, not before") {
  // With 2p - 2 layers the two ends have none: of a whole backward of the first slice weight gradients are all there
  // is.
  const Fabric fabric = cluster(8);
  for (int p = 2; p <= 4; ++p)
    for (int m = 1; m <= 2 * p + 2; ++m)
      for (const bool blocking : {false, true}) {
        StepInputs in = inputs(small_model(), layout(1, p, 1), 512, m);
        in.layout.schedule = dual_v;
        in.layout.uneven_stages = true;
        in.model.layers = 2 * p - 2;
        in.options.overlap_pp = !blocking;
        CAPTURE(p, m, blocking);
        REQUIRE(to_text(check_step(in, fabric.rank_count(), {})) == "");
        const StepPlan plan = planned(in);
        CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).margin(rounding(plan)));
        const StepSchedule step = spell_out(plan);
        const Timeline timeline = run(step, fabric);
        // The last thing that the first stage is sent is a gradient of the first slice, which its last work waits for.
        SimTime came{}, began{};
        for (const OpId op : step.of_class[0]) {
          const Place& place = step.places[op.value()];
          if (place.doing == Doing::message_back) came = std::max(came, timeline.ops[op.value()].finish);
          if (place.doing == Doing::weights) began = std::max(began, timeline.ops[op.value()].start);
        }
        CHECK(began >= came);
      }
}

TEST_CASE("every stage of DualPipeV holds p + 1/2 micro-batches, and what waits for its weights") {
  StepInputs in = inputs(small_model(), layout(1, 4, 1), 512, 32);
  in.layout.schedule = dual_v;
  in.model.layers = 16;
  for (int stage = 0; stage < 4; ++stage) {
    const MemoryTerms terms = memory_terms(in, stage);
    CHECK(terms.chunks == 2);
    CHECK(terms.in_flight == 9);
    CHECK(terms.waiting == 0);
  }
}

TEST_CASE("DualPipeV hides the exchange of experts beside weight gradients too, as far as whole backwards go") {
  // Many micro-batches and few layers: nearly every backward is a whole one.
  StepInputs in = inputs(small_model(), layout(1, 2, 8), 1024, 512);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.ep = 4;
  in.model.experts.count = 8;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = 4096;
  in.options.overlap_ep = true;
  in.options.embedding_and_logits = false;
  int partly = 0;
  for (const double rate : {1e9, 3e9, 1e10, 3e10, 1e11, 1e12}) {
    const auto planned_with = [&](PipelineSchedule schedule) {
      in.layout.schedule = schedule;
      return planned(in, priced(1e-6, rate));
    };
    const StepPlan of_1f1b = planned_with(PipelineSchedule::one_f_one_b), of_h1 = planned_with(PipelineSchedule::zb_h1),
                   of_dual = planned_with(dual_v);
    CAPTURE(rate);
    // A layer's: a whole backward takes max(computing, exchange), and so does 1F1B's.
    const UnitWork& work = of_dual.stages[0].works[0];
    CHECK((work.backward_time() + work.weights_time() - work.saved_time()).count() ==
          Approx(of_1f1b.stages[0].works[0].backward_time().count()).epsilon(1e-9));
    CHECK(of_dual.stages[0].ep_time().count() ==
          Approx(of_1f1b.stages[0].ep_time().count()).epsilon(1e-9).margin(1e-12));
    CHECK(of_dual.stages[0].ep_time() <= of_h1.stages[0].ep_time() * (1 + 1e-9));
    if (work.saved_time() > Seconds{}) {
      ++partly;
      CHECK(of_dual.stages[0].ep_time() < of_h1.stages[0].ep_time());
    }
    CHECK(estimate_step(of_dual).total.count() ==
          Approx(simulated(of_dual, cluster(8)).count()).epsilon(1e-9).margin(rounding(of_dual)));
  }
  CHECK(partly >= 2);
}
