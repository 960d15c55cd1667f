// DualPipe: the ways of micro-batches from both ends, what a stage holds, DeepSeek's bubble, the same step as
// DualPipeV's on half the stages, gradients over both stages of a pair.
#include "workload/schedules/dualpipe.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include "../support/small_fabrics.hpp"
#include "collcast/workload/groups.hpp"
#include "collcast/workload/unfolded_step.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr PipelineSchedule dual = PipelineSchedule::dualpipe, in_v = PipelineSchedule::dualpipe_v;

StepInputs dual_inputs(int tp, int pp, int dp, int micro_batches) {
  StepInputs in = inputs(small_model(), layout(tp, pp, dp), 512, micro_batches);
  in.layout.schedule = dual;
  return in;
}

/// The same step of DualPipeV: half the stages, twice the replicas.
StepInputs as_v(StepInputs in) {
  in.layout.schedule = in_v;
  in.layout.pp /= 2;
  in.layout.dp *= 2;
  return in;
}

}  // namespace

TEST_CASE("a micro-batch of DualPipe goes from the end that it comes from to the other, and back") {
  for (const int p : {2, 4, 6, 10})
    for (const bool down : {true, false}) {
      CAPTURE(p, down);
      Turn turn{false, 0, 0};
      ChunkPlace at{down ? 0 : p - 1, 0};
      REQUIRE(begins(dual, p, 2, at.stage, turn));
      for (int slice = 0; slice < p; ++slice) {
        REQUIRE(at.stage == (down ? slice : p - 1 - slice));
        REQUIRE(at.chunk == (slice < p / 2 ? 0 : 1));
        REQUIRE(goes_down(p, at.stage, at.chunk) == down);
        turn.chunk = at.chunk;
        REQUIRE(begins(dual, p, 2, at.stage, turn) == (slice == 0));
        const auto next = next_place(dual, p, 2, at.stage, turn);
        REQUIRE(next.has_value() == (slice + 1 < p));
        if (!next) continue;
        // Back over the same link.
        Turn back{true, 0, next->chunk};
        REQUIRE(next_place(dual, p, 2, next->stage, back)->stage == at.stage);
        REQUIRE(next_place(dual, p, 2, next->stage, back)->chunk == at.chunk);
        REQUIRE(goes_on(dual, at.stage, *next, turn) == down);
        REQUIRE(goes_on(dual, next->stage, at, back) == !down);
        REQUIRE(begins(dual, p, 2, next->stage, back) == (slice + 2 == p));
        at = *next;
      }
    }
}

TEST_CASE("both stages of a pair do the same, as a stage of DualPipeV of half the stages") {
  for (const int p : {2, 4, 8})
    for (const int passes : {1, 3, 8, 20})
      for (int stage = 0; stage < p; ++stage) {
        const std::vector<Turn> order = stage_order(dual, p, stage, passes, 2);
        CHECK(order == stage_order(dual, p, p - 1 - stage, passes, 2));
        CHECK(order == stage_order(in_v, p / 2, std::min(stage, p - 1 - stage), passes, 2));
      }
}

TEST_CASE("every layer is on the two stages as far from either end, and nowhere else") {
  for (const bool uneven : {false, true})
    for (const int pp : {2, 4, 6})
      for (int layers = pp; layers <= 5 * pp; ++layers) {
        StepInputs in = dual_inputs(1, pp, 2, 16);
        in.model.layers = layers;
        in.layout.uneven_stages = uneven;
        if (!uneven && layers % pp != 0) continue;
        CAPTURE(uneven, pp, layers);
        std::vector<std::vector<int>> stages_of(static_cast<std::size_t>(layers));
        for (int stage = 0; stage < pp; ++stage) {
          int before = -1, chunk = 0;
          for (const StageLayer& l : layers_of_stage(in, stage)) {
            CHECK(l.number > before);
            before = l.number;
            CHECK(l.chunk >= chunk);
            chunk = l.chunk;
            stages_of[static_cast<std::size_t>(l.number)].push_back(stage);
          }
          CHECK(has_embedding(in, stage) == (stage == 0 || stage == pp - 1));
          CHECK(has_head(in, stage) == (stage == 0 || stage == pp - 1));
        }
        for (const std::vector<int>& stages : stages_of) {
          REQUIRE(stages.size() == 2);
          REQUIRE(stages[0] + stages[1] == pp - 1);
        }
      }
}

TEST_CASE("the bubble of DualPipe is that of DeepSeek: (PP/2 - 1) (F&B + B - 3W)") {
  std::mt19937 random(20261124);
  const auto between = [&](double low, double high) {
    return low + (high - low) * 1e-3 * static_cast<double>(random() % 1000);
  };
  for (int n = 0; n < 100; ++n) {
    const int pp = 2 * (1 + static_cast<int>(random() % 6)), passes = pp + static_cast<int>(random() % 7);
    // Of a slice.
    const double f = between(1e-3, 4e-3), b = between(f, 5e-3), w = between(5e-4, 1e-3);
    const StepPlan plan =
        plan_of_chunks(dual, equal_halves(pp, {Seconds(2 * f), Seconds(2 * b), Seconds(2 * w)}, {}), passes);
    CAPTURE(n, pp, passes, f, b, w);
    const double whole = b + w, together = f + whole;
    const double bubble = (pp / 2 - 1) * (together + whole - 3 * w);
    // m = 2 passes, each of one slice on a stage.
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(2 * passes * (f + b + w) + bubble).epsilon(1e-9));
    CHECK(estimate.terms.pipeline.order == Seconds{});
    CHECK(simulated(plan).count() == Approx(2 * passes * (f + b + w) + bubble).epsilon(1e-9));
  }
}

TEST_CASE("random pipelines of DualPipe, unequal stages and slow messages: the closed form is the timeline") {
  std::mt19937 random(20261125);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int n = 0; n < 200; ++n) {
    const int pp = 2 * (1 + dice(4)), passes = 1 + dice(20);
    ChunkedStages stages{pp, 2, {}, {}, dice(2) == 0};
    const auto some = [&] { return Seconds(1e-3 + 1e-6 * dice(4000)); };
    for (int i = 0; i < 2 * pp; ++i) stages.times.push_back({some(), some(), some()});
    for (int i = 0; i + 1 < pp; ++i) stages.transfer.push_back(Seconds(1e-6 * dice(2000)));
    const StepPlan plan = plan_of_chunks(dual, stages, passes);
    CAPTURE(n, pp, passes, stages.blocking);
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan).count()).epsilon(1e-9).margin(rounding(plan)));
    CHECK(estimate.breakdown.total().count() == Approx(estimate.total.count()).epsilon(1e-9));
  }
}

TEST_CASE("without messages DualPipe is DualPipeV on half the stages with twice the replicas, in time and memory") {
  for (const int pp : {2, 4, 8})
    for (const int zero : {0, 1, 2, 3}) {
      StepInputs in = dual_inputs(2, pp, 2, 2 * pp);
      in.layout.sequence_parallel = true;  // what has come is not gathered
      in.options.zero = zero;
      in.model.tied_embeddings = pp == 4;
      CAPTURE(pp, zero);
      // Times by kind and size; messages of nothing.
      const CollectiveTime free = [](const CollectiveRequest& r) -> Result<Seconds> {
        if (r.kind == CollectiveKind::sendrecv) return Seconds{};
        return Seconds(1e-5 + static_cast<double>(r.size.value()) / 50e9 * r.group.size());
      };
      const StepPlan plan = planned(in, free), v = planned(as_v(in), free);
      REQUIRE(plan.stages.size() == 2 * v.stages.size());
      const StepEstimate ours = estimate_step(plan), theirs = estimate_step(v);
      CHECK(ours.total.count() == Approx(theirs.total.count()).epsilon(1e-12));
      CHECK(ours.breakdown.compute.count() == Approx(theirs.breakdown.compute.count()).epsilon(1e-12));
      CHECK(ours.breakdown.dp_exposed.count() ==
            Approx(theirs.breakdown.dp_exposed.count()).epsilon(1e-9).margin(1e-12));
      CHECK(simulated(plan).count() == Approx(simulated(v).count()).epsilon(1e-9));
      for (int stage = 0; stage < pp; ++stage) {
        const MemoryUse a = stage_memory(in, stage, 8), b = stage_memory(as_v(in), std::min(stage, pp - 1 - stage), 8);
        CHECK(a.parameters == b.parameters);
        CHECK(a.gradients == b.gradients);
        CHECK(a.optimizer == b.optimizer);
        CHECK(a.activations == b.activations);
        CHECK(a.buffers == b.buffers);
      }
    }
}

TEST_CASE("whole plans under DualPipe, with experts whose exchange runs beside computing: closed form and timeline") {
  const Fabric fabric = cluster(8);
  std::mt19937 random(20261202);
  const auto dice = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  int cases = 0, with_experts = 0;
  while (cases < 60) {
    StepInputs in = inputs(small_model(), layout(1 << dice(2), 2 << dice(2), 1 << dice(3)), 512, 2 + 2 * dice(10));
    in.layout.schedule = dual;
    if (dice(2) == 0) in.layout.order = RankOrder::tp_cp_ep_dp_pp;
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
  CHECK(with_experts > 10);
}

TEST_CASE("DualPipe holds parameters twice and the activations of p + 1 micro-batches") {
  StepInputs in = dual_inputs(1, 8, 1, 32);
  in.model.layers = 16;
  double parameters = 0;
  for (int stage = 0; stage < 8; ++stage) {
    const MemoryTerms terms = memory_terms(in, stage);
    parameters += terms.parameters.total();
    CHECK(terms.in_flight == 9);  // each of a slice, 1/8 of the layers
    CHECK(terms.waiting == 0);
    // A GPT of one replica has two copies of each parameter: ZeRO-1 has two ranks to split their state over.
    CHECK(in.layout.replicas() == 2);
  }
  CHECK(parameters == Approx(2 * parameter_count(in.model)).epsilon(1e-12));
}

TEST_CASE("ranks that sum gradients are the replicas of both stages of a pair, by number") {
  for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp}) {
    StepInputs in = dual_inputs(2, 4, 4, 8);
    in.layout.order = order;
    if (order == RankOrder::tp_cp_ep_dp_pp) in.layout.cp = 2;
    in.layout.dp_shard = 2;
    const ParallelLayout& l = in.layout;
    CHECK(l.shards() == 2 * 2 * l.cp);
    CHECK(l.shard_copies() == 2);
    for (int r = 0; r < l.world(); ++r) {
      const Rank rank(static_cast<std::uint32_t>(r));
      std::vector<Rank> expected, shards, copies;
      const Coordinates own = coordinates(l, rank);
      for (int o = 0; o < l.world(); ++o) {
        const Coordinates other = coordinates(l, Rank(static_cast<std::uint32_t>(o)));
        const bool same_slices = other.pp == own.pp || other.pp == 3 - own.pp;
        if (other.tp != own.tp || !same_slices) continue;
        expected.emplace_back(static_cast<std::uint32_t>(o));
        if (other.dp / 2 == own.dp / 2) shards.emplace_back(static_cast<std::uint32_t>(o));
        if (other.dp % 2 == own.dp % 2 && other.pp == own.pp && other.cp == own.cp)
          copies.emplace_back(static_cast<std::uint32_t>(o));
      }
      REQUIRE(replica_group(l, rank).ranks() == expected);
      REQUIRE(shard_group(l, rank).ranks() == shards);
      REQUIRE(shard_copies(l, rank).ranks() == copies);
    }
  }
  // Experts too: of 4 ranks of a stage two pairs have the same experts.
  StepInputs in = dual_inputs(1, 2, 4, 8);
  in.layout.ep = 2;
  in.model.experts.count = 4;
  CHECK(in.layout.expert_replicas() == 4);
  CHECK(expert_replica_group(in.layout, Rank(0)).size() == 4);
}

TEST_CASE("gradients of one replica are summed by the two stages that have them") {
  const StepInputs in = dual_inputs(1, 4, 1, 8);
  const StepPlan plan = planned(in, priced(1e-6));
  for (const StagePlan& stage : plan.stages) {
    CHECK_FALSE(stage.buckets.empty());
    const auto sum = std::find_if(stage.collectives.begin(), stage.collectives.end(),
                                  [](const CollectiveCost& c) { return c.dimension == Dimension::dp; });
    REQUIRE(sum != stage.collectives.end());
    CHECK(sum->request.group.size() == 2);
    CHECK(sum->request.group[0].value() + sum->request.group[1].value() == 3);
  }
}

TEST_CASE("every rank of DualPipe for itself, on links of its own: the folded step to the picosecond") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  CollectivePolicy rings;
  rings.algorithm = "ring";
  rings.chunks = 1;
  for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp})
    for (const int pp : {2, 4, 8})
      for (const int dp : {1, 2, 3})
        for (const int zero : {0, 1, 2, 3}) {
          StepInputs in = dual_inputs(2, pp, dp, 8);
          in.layout.order = order;
          in.layout.sequence_parallel = true;
          in.options.zero = zero;
          in.options.reshard_after_forward = dp != 1;
          in.options.no_sync = zero == 3 && pp == 4;
          in.options.overlap_pp = dp != 2;
          CAPTURE(to_string(order), pp, dp, zero);
          // Ends have other buckets than the pairs between them, which have no pattern of these.
          Bytes told{};
          const auto begins = [&](const ProgramTraffic&, Bytes memory) {
            told = memory;
            return true;
          };
          const Result<StepWithUnfolded> step =
              forecast_unfolded_step(in, fabric, {}, rings, nullptr, EngineOptions{Sharing::none, {}}, {}, begins);
          CHECK(told > Bytes(1000));
          INFO(to_text(step.errors()));
          REQUIRE((step.ok() && step->unfolded));
          CHECK(to_picoseconds(step->unfolded->step) == to_picoseconds(*step->result.simulate));
          // The parts are the mean of all stages, which compute alike but for messages.
          const Breakdown &a = step->unfolded->breakdown, &b = step->result.breakdown;
          CHECK(a.total().count() == Approx(step->unfolded->step.count()));
          CHECK(a.tp_exposed.count() <= b.tp_exposed.count() * (1 + 1e-9));
        }
}
