// Steps of which every rank is simulated: against the folded step where nothing is shared, against the same work
// written out where links are, and what makes the two differ.
#include <catch2/catch.hpp>

#include <tuple>

#include "../support/small_fabrics.hpp"
#include "../support/spelled_programs.hpp"
#include "collcast/engine/programs.hpp"
#include "collcast/workload/unfolded_step.hpp"
#include "drawn_steps.hpp"
#include "faulty.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/forecast.hpp"
#include "workload/step_programs.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;
using Catch::Matchers::Contains;

namespace {

StepWithUnfolded unfolded(const StepInputs& in, const Fabric& fabric, const CollectivePolicy& policy,
                          Sharing sharing = Sharing::max_min) {
  Result<StepWithUnfolded> step = forecast_unfolded_step(in, fabric, {}, policy, nullptr, {sharing, {}});
  INFO(to_text(step.errors()));
  REQUIRE(step.ok());
  REQUIRE(step->unfolded);
  return std::move(step).value();
}

/// On links of their own and in step a step takes as long unfolded as folded.
void check_times(const StepInputs& in, const StepWithUnfolded& step) {
  const Seconds folded = *step.result.simulate;
  if (gathers_messages(in) && in.layout.pp > 1)
    // The folded stage keeps the way of its next message until the receivers have put this one's shares together.
    CHECK(step.unfolded->step <= folded);
  else
    CHECK(to_picoseconds(step.unfolded->step) == to_picoseconds(folded));
}

}  // namespace

TEST_CASE("on links of their own, groups in step: unfolded is the folded step to the picosecond") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  for_drawn_steps(200, 64, [&](const StepInputs& in) {
    const StepWithUnfolded step = unfolded(in, fabric, in_step(in), Sharing::none);
    check_times(in, step);
    const Breakdown &a = step.unfolded->breakdown, &b = step.result.breakdown;
    CHECK(a.total().count() == Approx(step.unfolded->step.count()));
    CHECK(a.compute.count() == Approx(b.compute.count()));
    CHECK(a.tp_exposed.count() == Approx(b.tp_exposed.count()).margin(1e-12));
    CHECK(a.ep_exposed.count() == Approx(b.ep_exposed.count()).margin(1e-12));
    CHECK(a.optimizer.count() == Approx(b.optimizer.count()));
  });
}

TEST_CASE("unfolded, an update waits for states from the host's memory as long as folded") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  int waited = 0;
  for_drawn_steps(100, 64, [&](StepInputs in) {
    in.host_bandwidth = Bandwidth(1e9);
    in.options.optimizer_state_offload = OptimizerStateOffload{1, 1};
    if (!check_step(in, in.layout.world(), {}).empty()) return;
    const StepWithUnfolded step = unfolded(in, fabric, in_step(in), Sharing::none);
    check_times(in, step);
    CHECK(step.unfolded->breakdown.optimizer.count() == Approx(step.result.breakdown.optimizer.count()));
    in.options.optimizer_state_offload.reset();
    const StepWithUnfolded on_gpu = unfolded(in, fabric, in_step(in), Sharing::none);
    if (step.unfolded->breakdown.optimizer > on_gpu.unfolded->breakdown.optimizer) ++waited;
  });
  CHECK(waited > (sanitized ? 0 : 5));
}

TEST_CASE("collectives of DP slow each rank's kernels as they do the folded stage's, to the picosecond") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  int slowed = 0;
  for_drawn_steps(200, 64, [&](StepInputs in) {
    in.options.overlap_dp = true;
    in.kernels.beside_collectives = 0.3;
    const StepWithUnfolded step = unfolded(in, fabric, in_step(in), Sharing::none);
    const Seconds folded = *step.result.simulate;
    // As above; the folded stage then begins later, beside more of its collectives.
    if (gathers_messages(in) && in.layout.pp > 1) {
      CHECK(step.unfolded->step <= folded);
      return;
    }
    CHECK(to_picoseconds(step.unfolded->step) == to_picoseconds(folded));
    if (step.result.slowdown.dp == Seconds{}) return;
    ++slowed;
    CHECK(step.unfolded->breakdown.compute.count() == Approx(step.result.breakdown.compute.count()));
    in.kernels.beside_collectives = 1;
    CHECK(unfolded(in, fabric, in_step(in), Sharing::none).unfolded->breakdown.compute <
          step.unfolded->breakdown.compute);
  });
  CHECK(slowed > (sanitized ? 0 : 5));
}

TEST_CASE("a rank that waits for another one's part of a collective computes the slower meanwhile") {
  // Collectives of next to no time: what they slow is all of the fast replica, while it waits for the slow one.
  const Fabric fabric = star_fabric(2, Bandwidth(1e15), Seconds(1e-12));
  StepInputs in = inputs(small_model(), layout(1, 1, 2), 512, 1);
  in.options.bucket = Bytes(4'000'000);
  in.options.overlap_dp = true;
  MachineState state;
  state.faults = {slow_gpu(1, 0.5)};
  const auto compute_of = [&](double rate) {
    in.kernels.beside_collectives = rate;
    Result<StepWithUnfolded> step =
        forecast_unfolded_step(in, fabric, state, in_step(in), nullptr, {Sharing::none, {}});
    INFO(to_text(step.errors()));
    REQUIRE((step.ok() && step->unfolded));
    return step->unfolded->breakdown.compute;
  };
  CHECK(compute_of(0.5) > 1.01 * compute_of(1));
}

TEST_CASE("on links of their own, unfolded is never longer: first finishers go on") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  for_drawn_steps(60, 64, [&](const StepInputs& in) {
    CollectivePolicy policy = rings(2);
    for (const char* algorithm : {"tree", "direct"}) {
      policy.algorithm = algorithm;
      if (in.layout.cp > 1 || in.layout.ep > 1) policy.algorithm = "auto";  // a tree is no all-to-all
      Result<StepWithUnfolded> step =
          forecast_unfolded_step(in, fabric, {}, policy, nullptr, EngineOptions{Sharing::none, {}});
      if (!step) continue;  // nor does it scatter
      CHECK(step->unfolded->step <= *step->result.simulate);
    }
  });
}

TEST_CASE("on shared links, programs of a step take what they take written out, to the picosecond") {
  const Fabric fabric = cluster(8);
  int compared = 0;
  for_drawn_steps(60, 16, [&](StepInputs in) {
    if (compared % 2 == 0) in.priorities = {Dimension::tp, Dimension::pp};
    ForecastPrices any(fabric, {});
    const Result<StepPlan> plan = make_plan(in, fabric, any.by_estimate());
    REQUIRE(plan.ok());
    CollectivePolicy policy;
    policy.chunks = 1;
    ForecastPrices prices(fabric, policy);
    const Result<Programs> programs = make_programs(in, fabric, prices, *plan);
    REQUIRE(programs.ok());
    const Result<ProgramsTimeline> by_rank = simulate(fabric, *programs);
    INFO(to_text(by_rank.errors()));
    REQUIRE(by_rank.ok());
    const Result<Timeline> written = simulate(fabric, spell_out(*programs, false).schedule);
    REQUIRE(written.ok());
    CHECK(by_rank->finish == written->finish);
    CHECK(by_rank->counters.messages == written->counters.messages);
    CHECK(by_rank->counters.messages == traffic(*programs).messages);
    ++compared;
  });
  CHECK(compared > 2);
}

TEST_CASE("collectives of different groups in each other's way make the step longer than the folded one says") {
  // TP and DP of one node share each GPU's way to the switch: gradients beside the backward slow its TP down.
  const Fabric fabric = cluster(1, 0.05);
  StepInputs in = inputs(small_model(), layout(4, 1, 2), 512, 2);
  in.options.bucket = Bytes(4'000'000);
  in.options.overlap_dp = true;
  const StepWithUnfolded beside = unfolded(in, fabric, rings());
  CHECK(beside.unfolded->step > *beside.result.simulate);
  CHECK(beside.unfolded->breakdown.tp_exposed > beside.result.breakdown.tp_exposed);
  // One after the other they are in nobody's way.
  in.options.overlap_dp = false;
  const StepWithUnfolded behind = unfolded(in, fabric, rings());
  CHECK(to_picoseconds(behind.unfolded->step) == to_picoseconds(*behind.result.simulate));
}

TEST_CASE("the sum of tied embeddings puts nothing on links before both stages are there") {
  // Zero bubble's first stage is through before the last one has reduced its gradients, on the links that the sum is to
  // take: between two GPUs each way is one message of all of it.
  const Fabric fabric = cluster(1, 0.05);
  StepInputs in = inputs(small_model(), layout(1, 4, 2), 512, 4);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.schedule = PipelineSchedule::zb_h1;
  in.model.tied_embeddings = true;
  in.model.vocab = 256'000;
  CollectivePolicy policy;
  policy.algorithm = "recursive_doubling";
  const StepWithUnfolded step = unfolded(in, fabric, policy);
  CHECK(to_picoseconds(step.unfolded->step) == to_picoseconds(*step.result.simulate));
}

TEST_CASE("whose messages go first are not held up, and the others wait the longer") {
  const Fabric fabric = cluster(1, 0.05);
  StepInputs in = inputs(small_model(), layout(4, 1, 2), 512, 2);
  in.options.bucket = Bytes(4'000'000);
  in.options.overlap_dp = true;
  const auto exposed = [&](std::vector<Dimension> priorities) {
    in.priorities = std::move(priorities);
    return unfolded(in, fabric, rings()).unfolded->breakdown;
  };
  const Breakdown equal = exposed({}), tp = exposed({Dimension::tp, Dimension::dp}), dp = exposed({Dimension::dp});
  const Seconds alone = unfolded(in, fabric, rings()).result.breakdown.tp_exposed;
  CHECK(equal.tp_exposed > 1.01 * alone);
  CHECK(tp.tp_exposed.count() == Approx(alone.count()).epsilon(1e-9));
  CHECK(tp.dp_exposed > equal.dp_exposed);
  CHECK(dp.tp_exposed > equal.tp_exposed);
}

TEST_CASE("layers that a group repeats on links of its own are walked once") {
  // A TP group fills a node and has its NVLinks; gradients and messages of the pipeline go by NICs.
  StepInputs in = inputs(small_model(), layout(8, 2, 2), 512, 4);
  in.layout.sequence_parallel = true;
  const Fabric fabric = cluster(4);
  const UnfoldedStep quick = *unfolded(in, fabric, rings()).unfolded;
  EngineOptions plain;
  plain.repeats = false;
  const Result<StepWithUnfolded> walked = forecast_unfolded_step(in, fabric, {}, rings(), nullptr, plain);
  REQUIRE((walked.ok() && walked->unfolded));
  CHECK(quick.step == walked->unfolded->step);
  CHECK(quick.messages == walked->unfolded->messages);
  CHECK(walked->unfolded->repeated == 0);
  CHECK(quick.repeated > 0);
}

TEST_CASE("messages, exchanges and transfers of a step are those that its layout says") {
  // TP 2 x PP 2 x DP 2, two micro-batches, rings of one chunk: 2 (k - 1) k messages each.
  const Fabric fabric = cluster(1);
  StepInputs in = inputs(small_model(), layout(2, 2, 2), 512, 2);
  in.options.bucket = Bytes(std::int64_t{1} << 40);
  in.layout.sequence_parallel = false;
  const UnfoldedStep step = *unfolded(in, fabric, rings()).unfolded;
  // Per rank one message on and one back, by micro-batch, of each of the two stages' ranks.
  CHECK(step.transfers == 2 * 4 * 2);
  // 4 all-reduces of a layer and micro-batch among 4 TP groups (2 of each stage), 4 layers a stage. The embedding has
  // one on the first stage; the head 1 + 3 on the last. Every message is gathered by the receiving stage's two groups.
  // One bucket by the 4 DP groups.
  const std::int64_t layers = 4 * 4 * 2 * 4, ends = 2 * 2 * (1 + 1 + 3), gathers = 2 * 2 * 2, buckets = 4;
  CHECK(step.exchanges == layers + ends + gathers + buckets);
  // A gather among two is two messages, an all-reduce four.
  CHECK(step.messages == 4 * (layers + ends + buckets) + 2 * gathers + step.transfers);
  CHECK(step.ranks == 8);
}

TEST_CASE("the kinds of collectives of groups that lie on nodes in unlike ways are their own") {
  // TP 3 on nodes of 8: some groups within a node, some across two.
  const Fabric fabric = cluster(2);
  TransformerConfig model = small_model();
  model.heads = model.kv_heads = 6;
  model.head_dim = 64;
  model.vocab = 3 * 1024;
  model.ffn = 3 * 1024;
  StepInputs in = inputs(model, layout(3, 1, 4), 512, 2);
  REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
  CollectivePolicy policy = rings();
  policy.channels = 2;
  const StepWithUnfolded step = unfolded(in, fabric, policy);
  CHECK(step.unfolded->step > *step.result.simulate * 1.0);  // the folded groups are those within a node
}

TEST_CASE("what cannot be unfolded is refused with its place") {
  StepInputs in = inputs(small_model(), layout(2, 1, 2), 512, 2);
  CollectivePolicy policy;
  policy.library = Library::nccl;
  in.serving = Serving{};
  const Fabric fabric = cluster(1);
  const Result<StepWithUnfolded> step = forecast_unfolded_step(in, fabric, {}, policy);
  REQUIRE_FALSE(step.ok());
  CHECK_THAT(to_text(step.errors()), Contains("a batch that is served cannot be unfolded"));
  CHECK_THAT(to_text(step.errors()), Contains("library nccl has times of collectives, not their messages"));
  CHECK(step.errors().size() == 2);
}

TEST_CASE("exchanges of experts under other computing are refused, of those that are split alone, too") {
  const Fabric fabric = cluster(1);
  for (const auto& [ep, tp, etp, refused] : {std::tuple{2, 1, 0, true},
                                             {1, 2, 0, true},
                                             {1, 2, 2, true},
                                             {2, 2, 1, true},
                                             {1, 2, 1, false},
                                             {1, 1, 0, false}}) {
    CAPTURE(ep, tp, etp);
    StepInputs in = spread(small_experts(), ep, tp, 4, etp);
    in.options.overlap_ep = true;
    REQUIRE(check_step(in, in.layout.world(), {}).empty());
    const Result<StepWithUnfolded> step = forecast_unfolded_step(in, fabric, {}, rings());
    CHECK(step.ok() == !refused);
    if (refused) CHECK_THAT(to_text(step.errors()), Contains("an exchange of experts under another micro-batch's"));
  }
}

TEST_CASE("a watch that ends the run of every rank leaves the folded step") {
  const StepInputs in = inputs(small_model(), layout(2, 2, 2), 512, 4);
  const Fabric fabric = cluster(1);
  bool unfolding = false;
  EngineOptions engine;
  engine.watch = [&](const EngineProgress&) { return !unfolding; };
  std::int64_t told = 0;
  const Result<StepWithUnfolded> step =
      forecast_unfolded_step(in, fabric, {}, rings(), nullptr, engine, {}, [&](const ProgramTraffic& all, Bytes) {
        unfolding = true;
        told = all.messages;
        return true;
      });
  REQUIRE(step.ok());
  CHECK_FALSE(step->unfolded);
  CHECK(step->result.simulate);
  CHECK(told == unfolded(in, fabric, rings()).unfolded->messages);
}

TEST_CASE("who is told what memory every rank takes may leave it at the folded step") {
  const StepInputs in = inputs(small_model(), layout(2, 2, 2), 512, 4);
  const Fabric fabric = cluster(1);
  Bytes told{};
  const Result<StepWithUnfolded> step =
      forecast_unfolded_step(in, fabric, {}, rings(), nullptr, {}, {}, [&](const ProgramTraffic&, Bytes memory) {
        told = memory;
        return false;
      });
  REQUIRE(step.ok());
  CHECK_FALSE(step->unfolded);
  CHECK(step->result.simulate);
  CHECK(told > Bytes(1000));
}
