// Tied embeddings on two stages: when the sum of their gradients begins, and what of it a step sees.
#include <catch2/catch.hpp>

#include <algorithm>

#include "../support/dice.hpp"
#include "../support/sample.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

/// Expert TP of a part of TP, so that experts have replicas where nothing else has any.
StepInputs random_tied(Dice& dice) {
  StepInputs in =
      inputs(small_model(), layout(dice.pick({1, 2, 4}), dice.pick({2, 4, 8}), dice.pick({1, 1, 2})), 512, 1);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.model.tied_embeddings = true;
  in.model.vocab = dice.pick({1'000, 32'000, 256'000});
  in.layout.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::interleaved,
                                  PipelineSchedule::zb_h1, PipelineSchedule::zb_h2, PipelineSchedule::zb_1p,
                                  PipelineSchedule::zb_2p, PipelineSchedule::dualpipe});
  if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
  in.layout.sequence_parallel = dice.roll(2) == 0;
  in.layout.uneven_stages = dice.roll(2) == 0;
  in.model.layers = in.layout.uneven_stages ? 16 + dice.roll(9) : 16;
  if (dice.roll(2) == 0) {
    in.model.experts.count = 8;
    in.model.experts.top_k = 2;
    in.model.experts.ffn = 1024;
    in.model.experts.every = 1 + dice.roll(2);
    in.layout.etp = in.layout.tp / dice.pick({1, 2, 4});
    in.layout.sequence_parallel = in.layout.tp > 1;
  }
  in.options.zero = dice.roll(4);
  in.options.overlap_dp = dice.roll(3) > 0;
  in.options.overlap_pp = dice.roll(2) == 0;
  in.options.delayed_all_reduce = dice.roll(6) == 0;
  in.options.bucket = Bytes(1'000'000 << dice.roll(6));
  in.kernels.beside_collectives = dice.pick({1.0, 0.6});
  in.batch.global_batch = 2 * in.layout.dp * in.layout.pp * (1 + dice.roll(3));
  return in;
}

}  // namespace

TEST_CASE("with tied embeddings the closed form is the timeline: every schedule, experts of fewer TP ranks") {
  Dice dice(20261126);
  Sample sample(3);
  int experts_alone = 0, hidden = 0;
  for (int cases = 0; cases < 400;) {
    const StepInputs in = random_tied(dice);
    if (!check_step(in, 64, {}).empty()) continue;
    ++cases;
    if (!sample.takes()) continue;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.etp, in.options.zero,
            to_string(in.layout.schedule), in.model.layers, in.options.overlap_dp, in.options.overlap_pp,
            in.options.delayed_all_reduce, in.kernels.beside_collectives);
    const StepPlan plan = planned(in, priced(2e-6, dice.pick({1e9, 10e9, 100e9})));
    const StepEstimate e = estimate_step(plan);
    CHECK(e.total.count() == Approx(simulated(plan).count()).epsilon(1e-8));
    CHECK(e.terms.total().count() == Approx(e.total.count()).epsilon(1e-12));
    CHECK(e.breakdown.total().count() == Approx(e.total.count()).epsilon(1e-9));
    experts_alone += in.layout.replicas() == 1 && in.layout.expert_replicas() > 1 ? 1 : 0;
    hidden += e.terms.gradients.tied > Seconds{} && e.terms.gradients.exposed() < e.terms.gradients.tied ? 1 : 0;
  }
  CHECK(experts_alone > (sanitized ? 2 : 30));
  CHECK(hidden > (sanitized ? 0 : 3));
}

TEST_CASE("the sum of tied embeddings begins when both ends have their gradients, whatever experts exchange before") {
  // Each stage 4 s forward and 8 s back in units of 2 and 4; experts' gradients of the upper unit go ahead, 1 s.
  StepPlan plan =
      stages(PipelineSchedule::one_f_one_b, {{Seconds(2), Seconds(4)}, {Seconds(2), Seconds(4)}}, {Seconds(0)}, 1);
  for (StagePlan& stage : plan.stages) {
    stage.units.push_back({UnitKind::layer, "L1", 0, 0});
    stage.buckets = {{1, Seconds(1)}};
    stage.tied_embedding = Seconds(3);
  }
  // 4 + 4 s forward, 8 + 8 s back, then 3 s.
  CHECK(simulated(plan).count() == Approx(27));
  CHECK(estimate_step(plan).total.count() == Approx(27));
}

TEST_CASE("the sum of tied embeddings runs beside stages that end later than both ends") {
  // Zero bubble, one micro-batch: forwards 3 s, backwards of the input 3 s, weight gradients 1, 20 and 1 s. The second
  // stage has sent its gradients at 5 s and ends at 25, the first at 7 s.
  const StageTime end{Seconds(1), Seconds(1), Seconds(1)}, middle{Seconds(1), Seconds(1), Seconds(20)};
  StepPlan plan = stages(PipelineSchedule::zb_h1, {end, middle, end}, {Seconds(0), Seconds(0)}, 1);
  for (const auto& [sum, step] : {std::pair(4.0, 25.0), std::pair(18.0, 25.0), std::pair(20.0, 27.0)}) {
    plan.stages.front().tied_embedding = plan.stages.back().tied_embedding = Seconds(sum);
    CAPTURE(sum);
    CHECK(simulated(plan).count() == Approx(step));
    CHECK(estimate_step(plan).total.count() == Approx(step));
  }
}
