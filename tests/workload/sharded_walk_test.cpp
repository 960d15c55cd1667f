// ZeRO-2 and 3 in a pipeline: formula against timeline, what is sent, and the laws that hold of both.
#include "workload/sharded_walk.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>

#include "inputs.hpp"
#include "support/sample.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/memory/memory.hpp"
#include "workload/schedules/automatic_order.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr std::array schedules{PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::interleaved,
                               PipelineSchedule::zb_h1,       PipelineSchedule::zb_h2, PipelineSchedule::zb_1p,
                               PipelineSchedule::zb_2p,       PipelineSchedule::zb_v,  PipelineSchedule::dualpipe_v,
                               PipelineSchedule::dualpipe};

/// Of small_model, with micro-batches for every schedule.
StepInputs staged(PipelineSchedule schedule, int zero, int pp = 2, int dp = 4) {
  StepInputs in = inputs(small_model(), layout(1, pp, dp), 512, 2 * pp);
  in.layout.schedule = schedule;
  if (schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
  in.options.zero = zero;
  in.options.overlap_tp = TpOverlap::none;
  return in;
}

class StagedDice {
 public:
  explicit StagedDice(unsigned seed) : random_(seed) {}
  int roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }

  StepInputs step(std::optional<PipelineSchedule> schedule) {
    StepInputs in = inputs(small_model(), layout(1 << roll(2), 1 << roll(3), 1 << roll(3)), 512, 1);
    in.layout.cp = 1 << roll(2);
    draw_options(in, roll(3) == 0, [this](int sides) { return roll(sides); });
    in.layout.schedule =
        schedule ? *schedule : schedules[static_cast<std::size_t>(roll(static_cast<int>(schedules.size())))];
    if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
    in.layout.sequence_parallel = roll(2) == 0;
    in.options.zero = 2 + roll(2);
    in.options.reshard_after_forward = roll(2) == 0;
    in.options.no_sync = in.options.zero == 3 && roll(2) == 0;
    in.options.launch = roll(3) == 0 ? Seconds(20e-6) : Seconds{};
    in.options.bucket = Bytes(1'000'000 << roll(6));
    if (in.layout.dp == 4 && roll(3) == 0) in.layout.dp_shard = 2;
    in.layout.uneven_stages = roll(2) == 0;
    if (in.layout.uneven_stages) in.model.layers = 8 + roll(9);
    in.model.tied_embeddings = roll(3) == 0;
    in.batch.global_batch = 2 * in.layout.dp * in.layout.pp * (1 + roll(3));
    in.kernels.beside_collectives = roll(2) == 0 ? 1 : 0.5 + 0.1 * roll(5);
    return in;
  }

  template <class Visit>
  void steps(int cases, Visit visit, std::optional<PipelineSchedule> schedule = {}) {
    Sample sample(7);
    while (cases > 0) {
      const StepInputs in = step(schedule);
      if (!check_step(in, 64, {}).empty()) continue;
      --cases;
      if (!sample.takes()) continue;
      CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep, in.layout.dp_shard,
              in.options.zero, to_string(in.layout.schedule), in.model.layers, in.options.overlap_ep,
              in.options.overlap_dp, in.options.overlap_pp, in.options.reshard_after_forward, in.options.no_sync,
              in.model.tied_embeddings, in.kernels.beside_collectives, in.options.launch.count());
      visit(in, std::array{1e9, 10e9, 100e9}[static_cast<std::size_t>(roll(3))]);
    }
  }

 private:
  std::mt19937 random_;
};

/// All that a stage computes.
void slow_down(StagePlan& stage, double times) {
  for (UnitWork& work : stage.works)
    for (std::vector<Stretch>* pass :
         {&work.forward, &work.backward, &work.weights, &work.whole_backward, &work.whole_weights})
      for (Stretch& s : *pass)
        if (s.computes()) s.time *= times;
}

/// How often the DP stream of a stage gathers and reduces.
std::map<std::string, int> exchanges(const StepPlan& plan) {
  const StepSchedule step = spell_out(plan);
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    for (const OpId op : step.of_class[i]) {
      const Doing doing = step.places[op.value()].doing;
      if (doing == Doing::gather) ++counts["gathers of stage " + std::to_string(i)];
      if (doing == Doing::reduction || doing == Doing::bucket) ++counts["reductions of stage " + std::to_string(i)];
    }
  return counts;
}

/// What a rank of the stage sends for data parallelism, by the counts that are reported.
std::int64_t count_of(const StepPlan& plan, std::size_t stage, CollectiveKind kind) {
  std::int64_t count = 0;
  for (const CollectiveCost& c : plan.stages[stage].collectives)
    if (c.dimension == Dimension::dp && c.request.kind == kind) count += c.count;
  return count;
}

}  // namespace

TEST_CASE("in a pipeline of any schedule split gradients and weights are the timeline's in closed form") {
  const Fabric fabric = cluster(8);
  StagedDice(3).steps(500, [&](const StepInputs& in, double bandwidth) {
    const StepPlan plan = planned(in, priced(2e-6, bandwidth));
    const StepEstimate e = estimate_step(plan);
    CHECK(e.total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
    CHECK(e.breakdown.total().count() == Approx(e.total.count()).epsilon(1e-12));
    CHECK(e.breakdown.dp_exposed >= Seconds{});
    CHECK(e.breakdown.bubble >= Seconds{});
    CHECK(e.terms.total().count() == Approx(e.total.count()).epsilon(1e-12));
  });
}

TEST_CASE("stages of DualPipe with the same slices that take unequal times wait for each other, in closed form too") {
  const Fabric fabric = cluster(8);
  StagedDice dice(11);
  int kept_waiting = 0;
  dice.steps(
      120,
      [&](const StepInputs& in, double bandwidth) {
        StepPlan plan = planned(in, priced(2e-6, bandwidth));
        const Seconds alike = estimate_step(plan).total;
        for (std::size_t i = 0; i < plan.stages.size(); ++i) slow_down(plan.stages[i], 1 + 0.1 * dice.roll(8));
        for (Seconds& message : plan.transfer) message *= dice.roll(4);
        const StepEstimate e = estimate_step(plan);
        CHECK(e.total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
        CHECK(e.breakdown.total().count() == Approx(e.total.count()).epsilon(1e-12));
        // Both as the slower one: no longer than that.
        for (std::size_t i = 0; i < plan.stages.size() / 2; ++i) {
          StagePlan &one = plan.stages[i], &other = plan.stages[plan.stages.size() - 1 - i];
          (one.time().whole() < other.time().whole() ? one : other).works =
              (one.time().whole() < other.time().whole() ? other : one).works;
        }
        const Seconds slower = estimate_step(plan).total;
        CHECK(e.total <= slower * (1 + 1e-12));
        if (e.total > alike) ++kept_waiting;
      },
      PipelineSchedule::dualpipe);
  CHECK(kept_waiting > 0);
}

TEST_CASE("the counts that are reported are those of the timeline, stage by stage") {
  for (const PipelineSchedule schedule : schedules)
    for (const int zero : {2, 3})
      for (const bool reshard : {true, false})
        for (const bool no_sync : {true, false}) {
          if (zero == 2 && no_sync) continue;
          StepInputs in = staged(schedule, zero, 4);
          in.options.optimizer = false;
          in.options.reshard_after_forward = reshard;
          in.options.no_sync = no_sync;
          CAPTURE(to_string(schedule), zero, reshard, no_sync);
          const StepPlan plan = planned(in);
          const std::map<std::string, int> spelled = exchanges(plan);
          for (std::size_t i = 0; i < plan.stages.size(); ++i) {
            const std::string stage = std::to_string(i);
            const auto at = [&](const std::string& what) {
              const auto found = spelled.find(what + stage);
              return found == spelled.end() ? 0 : found->second;
            };
            CHECK(at("gathers of stage ") == count_of(plan, i, CollectiveKind::all_gather));
            CHECK(at("reductions of stage ") == count_of(plan, i, CollectiveKind::reduce_scatter));
          }
        }
}

TEST_CASE("weights are gathered for each forward and backward, or once; gradients reduced each time, or once") {
  // Stage 1 of 1f1b: four layers and the head, 4 micro-batches; the head stays whole from forward to backward.
  StepInputs in = staged(PipelineSchedule::one_f_one_b, 3);
  const auto counts = [&](std::size_t stage) {
    const StepPlan plan = planned(in);
    return std::array{count_of(plan, stage, CollectiveKind::all_gather),
                      count_of(plan, stage, CollectiveKind::reduce_scatter)};
  };
  CHECK(counts(1) == std::array<std::int64_t, 2>{4 * (5 + 4), 4 * 5});
  CHECK(counts(0) == std::array<std::int64_t, 2>{4 * (5 + 5), 4 * 5});
  in.options.no_sync = true;
  CHECK(counts(1) == std::array<std::int64_t, 2>{4 * (5 + 4), 5});
  in.options.reshard_after_forward = false;
  CHECK(counts(1) == std::array<std::int64_t, 2>{5, 5});
  CHECK(counts(0) == std::array<std::int64_t, 2>{5, 5});
  // Without stages weights are split again behind each backward (FSDP).
  in = staged(PipelineSchedule::one_f_one_b, 3, 1);
  in.options.reshard_after_forward = false;
  in.options.no_sync = true;
  CHECK(counts(0) == std::array<std::int64_t, 2>{2 * 10, 10});
}

TEST_CASE("of one micro-batch on one stage schedules make no difference, nor, to memory too, whether sums are split") {
  StepInputs in = staged(PipelineSchedule::one_f_one_b, 3, 1);
  in.batch.global_batch = in.batch.micro_batch * in.layout.dp;
  for (const bool overlap : {true, false})
    for (const bool reshard : {true, false}) {
      in.options.overlap_dp = overlap;
      in.options.reshard_after_forward = reshard;
      in.options.no_sync = false;
      in.layout.schedule = PipelineSchedule::one_f_one_b;
      const double once = estimate_step(planned(in)).total.count();
      const Bytes held = stage_memory(in, 0, 8).peak();
      in.options.no_sync = true;
      CHECK(stage_memory(in, 0, 8).peak() == held);
      CHECK(estimate_step(planned(in)).total.count() == Approx(once).epsilon(1e-12));
      in.layout.schedule = PipelineSchedule::gpipe;
      CHECK(estimate_step(planned(in)).total.count() == Approx(once).epsilon(1e-12));
    }
}

TEST_CASE("a step that sends less is no longer") {
  for (const PipelineSchedule schedule : schedules) {
    StepInputs in = staged(schedule, 3, 2);
    CAPTURE(to_string(schedule));
    const CollectiveTime slow = priced(2e-6, 2e9);
    const auto step = [&](bool reshard, bool no_sync) {
      in.options.reshard_after_forward = reshard;
      in.options.no_sync = no_sync;
      return estimate_step(planned(in, slow)).total;
    };
    CHECK(step(false, false) < step(true, false));
    CHECK(step(true, true) < step(true, false));
    CHECK(step(false, true) < step(false, false));
  }
}

TEST_CASE("free exchanges make it the pipeline without them, and one replica has none") {
  const CollectiveTime free = [](const CollectiveRequest&) -> Result<Seconds> { return Seconds{}; };
  for (const PipelineSchedule schedule : schedules)
    for (const int zero : {2, 3}) {
      CAPTURE(to_string(schedule), zero);
      StepInputs in = staged(schedule, zero);
      in.options.optimizer = false;
      const StepEstimate split = estimate_step(planned(in, free));
      in.options.zero = 0;
      CHECK(split.total.count() == Approx(estimate_step(planned(in, free)).total.count()).epsilon(1e-12));
      // Of DualPipe each slice is on two stages.
      if (schedule == PipelineSchedule::dualpipe) continue;
      in = staged(schedule, zero, 2, 1);
      const Seconds alone = estimate_step(planned(in)).total;
      in.options.zero = 0;
      CHECK(alone == estimate_step(planned(in)).total);
    }
}

TEST_CASE("experts that are not split are held once, whatever the ZeRO stage") {
  // 8 experts over 8 ranks, of a stage or of each of two shards: a rank's one is its own.
  for (const int dp : {8, 16})
    for (const int stage : {0, 1, 3}) {
      StepInputs in = staged(PipelineSchedule::one_f_one_b, 1, 4, dp);
      in.batch.global_batch = 8 * in.batch.micro_batch * dp;
      in.model.layers = 32;
      in.model.experts.count = 8;
      in.model.experts.top_k = 2;
      in.model.experts.ffn = 4096;
      in.layout.ep = 8;
      in.layout.order = RankOrder::tp_cp_ep_dp_pp;
      in.layout.dp_shard = dp == 8 ? 0 : 8;
      in.options.bucket = Bytes(1'000'000);
      REQUIRE(check_step(in, 4 * dp, {}).empty());
      CAPTURE(dp, stage);
      std::array<Bytes, 4> by_zero{};
      for (const int zero : {1, 2, 3}) {
        in.options.zero = zero;
        by_zero[static_cast<std::size_t>(zero)] = stage_memory(in, stage, 8).allocated();
      }
      CHECK(by_zero[2] < by_zero[1]);
      CHECK(by_zero[3] < by_zero[2]);
      in.options.reshard_after_forward = false;
      CHECK(stage_memory(in, stage, 8).allocated() < by_zero[1]);
      in.options.no_sync = true;
      const MemoryTerms whole = memory_terms(in, stage);
      const double own = whole.parameters.total() - whole.parameters.experts();
      CHECK(whole.gathered.value() == Approx(2 * own));
      CHECK(whole.unreduced.value() == Approx(4 * own));
    }
  // The other way round: one replica, whose TP ranks have each expert whole.
  StepInputs in = staged(PipelineSchedule::one_f_one_b, 3, 1, 1);
  in.layout.tp = 8;
  in.layout.sequence_parallel = true;
  in.layout.etp = 1;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.model.experts.count = 8;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = 4096;
  in.options.reshard_after_forward = false;
  INFO(to_text(check_step(in, 8, {})));
  REQUIRE(check_step(in, 8, {}).empty());
  const MemoryTerms terms = memory_terms(in, 0);
  CHECK(terms.gathered.value() == Approx(2 * terms.parameters.experts()));
}

TEST_CASE("with DP overlapped memory of a stage never rises with the ZeRO stage, and holds what is whole") {
  for (const PipelineSchedule schedule : schedules)
    for (const int stage : {0, 1, 3}) {
      StepInputs in = staged(schedule, 1, 4, 8);
      in.model.layers = 32;
      CAPTURE(to_string(schedule), stage);
      std::array<Bytes, 4> by_zero{};
      for (const int zero : {0, 1, 2, 3}) {
        in.options.zero = zero;
        by_zero[static_cast<std::size_t>(zero)] = stage_memory(in, stage, 8).allocated();
      }
      CHECK(by_zero[1] < by_zero[0]);
      CHECK(by_zero[2] < by_zero[1]);
      CHECK(by_zero[3] < by_zero[2]);
      const MemoryTerms split = memory_terms(in, stage);
      in.options.reshard_after_forward = false;
      in.options.no_sync = true;
      const MemoryTerms whole = memory_terms(in, stage);
      CHECK(split.gathered < whole.gathered);
      CHECK(whole.gathered.value() == Approx(2 * whole.parameters.total()));
      CHECK(whole.unreduced.value() == Approx(4 * whole.parameters.total()));
      // From the first backward on, so that a later forward has it too; GPipe's forwards are all before it.
      CHECK(whole.sums_whole == (schedule != PipelineSchedule::gpipe));
      CHECK((whole.buffers_of_forward() - whole.loss() - whole.gathered).value() ==
            Approx(whole.sums_whole ? whole.unreduced.value() : 0));
    }
}

TEST_CASE("a bucket of ZeRO-2 is of one chunk") {
  StepInputs in = staged(PipelineSchedule::interleaved, 2);
  in.options.bucket = Bytes(1'000'000'000);
  const StepPlan plan = planned(in);
  for (const StagePlan& stage : plan.stages) {
    REQUIRE(stage.buckets.size() == 2);
    CHECK(stage.units[stage.buckets[0].unit].chunk == 1);
    CHECK(stage.units[stage.buckets[1].unit].chunk == 0);
  }
  in.options.zero = 1;
  const StepPlan once = planned(in);
  for (const StagePlan& stage : once.stages) CHECK(stage.buckets.size() == 1);
}

TEST_CASE("stages of DualPipe that hold the same slices, one slower than the other, by hand") {
  // Two stages of two slices of one unit each, a micro-batch from either end. F 1 s on stage 0 and 2 s on stage 1, B 3
  // s and 4 s, W nothing; gather 3 s, reduction 5 s, no messages.
  const ChunkedStages halves{2,
                             2,
                             {{Seconds(1), Seconds(3), {}},
                              {Seconds(1), Seconds(3), {}},
                              {Seconds(2), Seconds(4), {}},
                              {Seconds(2), Seconds(4), {}}},
                             {Seconds{}},
                             false};
  StepPlan plan = plan_of_chunks(PipelineSchedule::dualpipe, halves, 1);
  plan.zero = 3;
  for (StagePlan& stage : plan.stages)
    for (UnitWork& work : stage.works) {
      work.gather = Seconds(3);
      work.reduce = Seconds(5);
    }
  // Order F0 F1 B1 B0, of both. F0: gathered until 3, over at 4 and 5. What stage 1 has passed comes to stage 0 at 5,
  // and goes on there when both have gathered: 5 to 8; over at 9 and 10. B1: 10 to 13, over at 16 and 17, reduced 17 to
  // 22. B0: gathered until 25, over at 28 and 29, reduced until 34.
  CHECK(estimate_step(plan).total.count() == Approx(34));
  CHECK(simulated(plan).count() == Approx(34));
  // Whole for the step: all gathered until 6, F0 3 to 4 and 5; F1 of stage 0 when it comes at 5, and its weights at 6,
  // 7; of stage 1 6 to 8. B1 7 to 10 and 8 to 12, reduced 12 to 17; B0 17 to 20 and 21, reduced 21 to 26.
  plan.reshard = false;
  CHECK(estimate_step(plan).total.count() == Approx(26));
  CHECK(simulated(plan).count() == Approx(26));
  // Of one micro-batch the last is the only one.
  plan.no_sync = true;
  CHECK(estimate_step(plan).total.count() == Approx(26));
  CHECK(simulated(plan).count() == Approx(26));
}

TEST_CASE("an exchange on the one link between turns, by hand") {
  // Two stages of one unit, F 1 s, B 2 s, gather 3 s, reduction 5 s, two micro-batches, no messages.
  StepPlan plan = equal_stages(PipelineSchedule::one_f_one_b, {Seconds(1), Seconds(2)}, Seconds{}, 2, 2);
  plan.zero = 3;
  for (StagePlan& stage : plan.stages) {
    stage.works[0].gather = Seconds(3);
    stage.works[0].reduce = Seconds(5);
  }
  // Stage 0: gather F0 until 3, 4, gather, F1 until 8. Stage 1: gather F0 4 to 7, 8, B0 (its weights are there) until
  // 10, reduction until 15, gather F1 until 18, 19, B1 21, reduction 26. Stage 0: B0 gathers 10 to 13, 15, reduction
  // 20; B1 gathers 21 to 24, 26, reduction until 31.
  CHECK(estimate_step(plan).total.count() == Approx(31));
  CHECK(simulated(plan).count() == Approx(31));
  // Weights stay whole: both gather until 3. Stage 0: F0 4, F1 5. Stage 1: F0 5, B0 7, reduction 12, F1 13, B1 15,
  // reduction 20. Stage 0: B0 7 to 9, reduction 14; B1 15 to 17, reduction 22.
  plan.reshard = false;
  CHECK(estimate_step(plan).total.count() == Approx(22));
  CHECK(simulated(plan).count() == Approx(22));
  // Gradients summed up whole: stage 1 B0 7, F1 8, B1 10, reduction 15; stage 0 B0 9, B1 12, reduction 17.
  plan.no_sync = true;
  CHECK(estimate_step(plan).total.count() == Approx(17));
  CHECK(simulated(plan).count() == Approx(17));
  // Without overlap stage 1 gathers when it gets its input: F0 8, B0 10, F1 11, B1 13; stage 0 B1 15, reduction 20.
  plan.overlap_dp = false;
  CHECK(estimate_step(plan).total.count() == Approx(20));
  CHECK(simulated(plan).count() == Approx(20));
}

TEST_CASE("orders made for times: with what their turns exchange never over later than the known ones and each other") {
  StagedDice dice(21);
  int sooner = 0, sooner_than_known = 0;
  for (int n = 0; n < 60; ++n) {
    const int zero = 2 + dice.roll(2), pp = 2 << dice.roll(2);
    StepInputs in = staged(PipelineSchedule::zb_h1, zero, pp);
    in.model.layers = 2 * pp * (1 + dice.roll(2));
    in.layout.tp = 1 << dice.roll(2);
    in.batch.global_batch = in.batch.micro_batch * in.layout.dp * (pp + dice.roll(2 * pp));
    in.options.reshard_after_forward = dice.roll(3) > 0;
    in.options.no_sync = zero == 3 && dice.roll(4) == 0;
    in.options.overlap_dp = dice.roll(4) > 0;
    in.options.embedding_and_logits = dice.roll(4) == 0;
    in.options.bucket = Bytes(1'000'000 << dice.roll(6));
    in.kernels.beside_collectives = dice.roll(2) == 0 ? 1 : 0.7;
    if (!check_step(in, 64, {}).empty()) continue;
    const CollectiveTime time = priced(5e-6, std::array{5e9, 20e9, 100e9}[static_cast<std::size_t>(dice.roll(3))]);
    CAPTURE(n, zero, pp, in.layout.tp, in.batch.global_batch, in.options.reshard_after_forward, in.options.no_sync,
            in.options.overlap_dp, in.kernels.beside_collectives);
    const auto end = [&](PipelineSchedule schedule) {
      in.layout.schedule = schedule;
      return estimate_step(planned(in, time)).total.count();
    };
    const double h1 = end(PipelineSchedule::zb_h1), h2 = end(PipelineSchedule::zb_h2),
                 one_p = end(PipelineSchedule::zb_1p), two_p = end(PipelineSchedule::zb_2p);
    CHECK(one_p <= h1 * (1 + 1e-9));
    CHECK(two_p <= one_p * (1 + 1e-9));
    CHECK(two_p <= h2 * (1 + 1e-9));
    if (two_p < std::min(h1, h2) * (1 - 1e-6)) ++sooner_than_known;
    // And than what is made for computing alone.
    const StepPlan plan = planned(in, time);
    std::vector<double> kept;
    for (int stage = 0; stage < pp; ++stage) kept.push_back(share_for_weights(memory_terms(in, stage)));
    StepPlan alone = plan;
    alone.own_orders = automatic_orders(plan.schedule, plan.chunked(), kept, plan.micro_batches);
    const double made_for_computing = estimate_step(alone).total.count();
    CHECK(two_p <= made_for_computing * (1 + 1e-9));
    if (two_p < made_for_computing * (1 - 1e-3)) ++sooner;
  }
  CHECK(sooner > 5);
  CHECK(sooner_than_known > 5);
}

TEST_CASE("what turns take with what they exchange of every micro-batch is what the order goes through") {
  for (const int zero : {2, 3}) {
    const StepPlan plan = planned(staged(PipelineSchedule::zb_h2, zero, 4), priced(5e-6, 5e9));
    const ChunkedStages with = exchanging_times(plan), computing = plan.chunked();
    Seconds end{};
    for (const StageSpan& span : stage_spans(plan.schedule, with, plan.orders())) end = std::max(end, span.end);
    CHECK(end.count() == Approx(walk_sharded(plan, false).end.count()).epsilon(1e-12));
    for (std::size_t i = 0; i < with.times.size(); ++i) {
      CAPTURE(zero, i);
      CHECK(with.times[i].weights > computing.times[i].weights);
      CHECK((with.times[i].forward > computing.times[i].forward) == (zero == 3));
      CHECK((with.times[i].backward > computing.times[i].backward) == (zero == 3));
    }
  }
}
