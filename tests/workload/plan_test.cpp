// Plans priced by a given rule, so that every time in them has its arithmetic; formula against timeline.
#include <catch2/catch.hpp>

#include <algorithm>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

StepPlan planned_on(const StepInputs& in, const Fabric& fabric) {
  Result<StepPlan> plan = make_plan(in, fabric, priced(10e-6));
  REQUIRE(plan.ok());
  return std::move(plan).value();
}

/// A stage's slowest message, by closed form; the simulation must say the same.
double both_ways(const ParallelLayout& l, const Fabric& fabric, int stage, Bytes size) {
  Seconds estimate{}, simulated{};
  for (const CollectiveRequest& message : stage_messages(l, fabric, stage, size)) {
    estimate = std::max(estimate, by_estimate(fabric, {})(message).value());
    simulated = std::max(simulated, by_simulation(fabric, {})(message).value());
  }
  CHECK(estimate.count() == Approx(simulated.count()).epsilon(1e-9));
  return simulated.count();
}

std::vector<std::uint32_t> firsts(const std::vector<Group>& groups) {
  std::vector<std::uint32_t> ranks;
  for (const Group& g : groups) ranks.push_back(g[0].value());
  return ranks;
}

}  // namespace

TEST_CASE("equal stages: the formula and the timeline of whole steps agree") {
  const Fabric fabric = cluster(4);
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe})
    for (const ParallelLayout& l :
         {layout(1, 1, 1), layout(8, 1, 1), layout(1, 4, 1), layout(2, 4, 2), layout(4, 2, 4)})
      for (const bool overlap : {true, false})
        for (const int zero : {0, 1}) {
          StepInputs in = inputs(small_model(), l, 1024, 8);
          in.layout.schedule = schedule;
          in.options.embedding_and_logits = false;
          in.options.overlap_dp = overlap;
          in.options.zero = zero;
          const StepPlan plan = planned_on(in, fabric);
          CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-6));
        }
}

TEST_CASE("embedding and head: formula and timeline are within 1 %") {
  const Fabric fabric = cluster(4);
  for (const ParallelLayout& l : {layout(1, 1, 1), layout(2, 4, 2), layout(1, 8, 4), layout(8, 2, 2)})
    for (const int micro_batches : {4, 8, 32}) {
      const StepPlan plan = planned_on(inputs(small_model(), l, 1024, micro_batches), fabric);
      CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(0.01));
    }
}

TEST_CASE("TP collectives of a step: how many of what size") {
  const Fabric fabric = cluster(1);
  // 2 x 1024 tokens x 1024 x 2 bytes = 4 MiB; 8 layers x 4, one after the embedding, one before the head's
  // backward; 4 micro-batches. The loss: 3 x 2048 fp32 values.
  StepPlan plan = planned_on(inputs(small_model(), layout(8, 1, 1), 1024, 4), fabric);
  const std::vector<CollectiveCost>& costs = plan.stages[0].collectives;
  REQUIRE(costs.size() == 2);
  CHECK(costs[0].name == "tp all_reduce");
  CHECK(costs[0].request.size == Bytes(4 << 20));
  CHECK(costs[0].count == 4 * (8 * 4 + 2));
  CHECK(costs[1].request.size == Bytes(4 * 2048));
  CHECK(costs[1].count == 4 * 3);

  StepInputs in = inputs(small_model(), layout(8, 1, 1), 1024, 4);
  in.layout.sequence_parallel = true;
  plan = planned_on(in, fabric);
  // Gathers: 2 + 4 per layer, after the embedding's gradient, before the logits both ways. Scatters: 2 + 2 per
  // layer, after the embedding and the logits' gradient.
  CHECK(cost(plan.stages[0], "tp all_gather").count == 4 * (8 * 6 + 3));
  CHECK(cost(plan.stages[0], "tp reduce_scatter").count == 4 * (8 * 4 + 2));
}

TEST_CASE("a stage at an end sends each micro-batch once, one in between twice") {
  const StepPlan plan = planned_on(inputs(small_model(), layout(1, 4, 1), 1024, 6), cluster(1));
  for (const auto& [stage, count] : {std::pair{0, 6}, std::pair{1, 12}, std::pair{2, 12}, std::pair{3, 6}}) {
    const CollectiveCost& c = cost(plan.stages[static_cast<std::size_t>(stage)], "pp sendrecv");
    CHECK(c.count == count);
    CHECK(c.request.size == Bytes(4 << 20));
  }
}

TEST_CASE("what a stage receives is gathered by its TP ranks, unless they split it anyway") {
  for (const bool split : {false, true}) {
    StepInputs in = inputs(small_model(), layout(2, 4, 1), 1024, 6);
    in.layout.sequence_parallel = split;
    const StepPlan plan = planned_on(in, cluster(1));
    for (const auto& [stage, count] : {std::pair{0, 6}, std::pair{1, 12}, std::pair{2, 12}, std::pair{3, 6}}) {
      std::int64_t gathers = 0;
      Seconds messages{};
      for (const CollectiveCost& c : plan.stages[static_cast<std::size_t>(stage)].collectives) {
        if (c.dimension == Dimension::pp) messages += static_cast<double>(c.count) * c.time;
        if (c.name != "pp all_gather") continue;
        gathers += c.count;
        CHECK(c.request.size == Bytes(4 << 20));
        CHECK(c.request.group.size() == 2);
      }
      CHECK(gathers == (split ? 0 : count));
      // As many as go: all that the stage's messages take.
      CHECK(messages.count() == Approx(count * plan.transfer[0].count()));
    }
  }
}

TEST_CASE("gradient buckets cover the parameters, full ones first, in the order of the backward pass") {
  const Fabric fabric = cluster(2);
  StepInputs in = inputs(small_model(), layout(4, 1, 4), 1024, 2);
  in.options.bucket = Bytes(10'000'000);
  const StepPlan plan = planned_on(in, fabric);
  const StagePlan& stage = plan.stages[0];
  const double total = 4 * stage_parameters(in, 0).total();
  const auto full = static_cast<std::size_t>(total / 1e7);
  REQUIRE(stage.buckets.size() == full + 1);
  for (std::size_t b = 0; b < full; ++b) CHECK(stage.buckets[b].time.count() == Approx(10e-6 + 1e7 / 100e9));
  CHECK(stage.buckets[full].time.count() ==
        Approx(10e-6 + (total - static_cast<double>(full) * 1e7) / 100e9).epsilon(1e-6));
  CHECK(std::is_sorted(stage.buckets.begin(), stage.buckets.end(),
                       [](const Bucket& a, const Bucket& b) { return a.unit > b.unit; }));
  // The head's 32000/4 x 1024 + 1024 parameters of 4 bytes fill the first three; nothing is ready before.
  CHECK(stage.buckets[2].unit == stage.units.size() - 1);
  CHECK(stage.buckets[3].unit == stage.units.size() - 2);
  CHECK(stage.buckets.back().unit == 0);
}

TEST_CASE("exposed gradients: the last bucket, or what the backward pass has no room for") {
  const Fabric fabric = cluster(2);
  StepInputs in = inputs(small_model(), layout(8, 1, 2), 1024, 2);
  in.options.embedding_and_logits = false;
  in.options.optimizer = false;
  const double gradients = 4 * 8 * layer_parameters(in.model, {.tp = 8}).total();
  // One bucket per layer: each is exchanged while the next layer's backward runs.
  in.options.bucket = Bytes(static_cast<std::int64_t>(gradients / 8));
  const auto exposed = [&] { return estimate_step(planned_on(in, fabric)).breakdown.dp_exposed.count(); };
  const double one = 10e-6 + gradients / 8 / 100e9;
  const double layer = planned_on(in, fabric).stages[0].works[0].backward_time().count();
  REQUIRE(one < layer);
  CHECK(exposed() == Approx(one).epsilon(1e-6));
  // A single bucket is ready only at the end.
  in.options.bucket = Bytes(1'000'000'000'000);
  CHECK(exposed() == Approx(10e-6 + gradients / 100e9).epsilon(1e-6));
  // Without overlap all of them come after the end.
  in.options.bucket = Bytes(static_cast<std::int64_t>(gradients / 8));
  in.options.overlap_dp = false;
  CHECK(exposed() == Approx(8 * one).epsilon(1e-5));
}

TEST_CASE("a distributed optimizer scatters gradients and gathers parameters") {
  const Fabric fabric = cluster(2);
  StepInputs in = inputs(small_model(), layout(4, 1, 4), 1024, 2);
  in.options.zero = 1;
  in.options.bucket = Bytes(1'000'000'000'000);
  const StepPlan plan = planned_on(in, fabric);
  const double held = stage_parameters(in, 0).total();
  CHECK(static_cast<double>(cost(plan.stages[0], "dp reduce_scatter").request.size.value()) == Approx(4 * held));
  CHECK(static_cast<double>(cost(plan.stages[0], "dp all_gather").request.size.value()) == Approx(2 * held));
  CHECK(plan.stages[0].gather.count() == Approx(10e-6 + 2 * held / 100e9));
}

TEST_CASE("tied embeddings on two stages are summed between them, on one they are not") {
  const Fabric fabric = cluster(1);
  StepInputs in = inputs(small_model(), layout(2, 4, 1), 1024, 4);
  in.model.tied_embeddings = true;
  const StepPlan plan = planned_on(in, fabric);
  const CollectiveCost& tied = cost(plan.stages[0], "embedding all_reduce");
  CHECK(tied.request.size == Bytes(4 * 16000 * 1024));
  CHECK(tied.request.group.ranks() == std::vector<Rank>{Rank(0), Rank(6)});
  CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(0.01));
  // The other end pairs of the two nodes' ranks run at the same time: TP rank 1's.
  REQUIRE(tied.request.alongside.size() == 1);
  CHECK(tied.request.alongside[0].ranks() == std::vector<Rank>{Rank(1), Rank(7)});
  in.layout = layout(2, 1, 4);
  const StepPlan alone = planned_on(in, fabric);
  for (const CollectiveCost& c : alone.stages[0].collectives) CHECK(c.name != "embedding all_reduce");
}

TEST_CASE("groups that share a node communicate alongside") {
  const Fabric fabric = cluster(4);
  const auto alongside = [&](const ParallelLayout& l, Dimension dimension) {
    const RankGroups own = groups_of(l, Rank(0));
    return firsts(groups_alongside(l, fabric, groups_along(dimension), dimension == Dimension::tp ? own.tp : own.dp));
  };
  // TP 8 fills a node of 8; two groups of 4 share one.
  CHECK(alongside(layout(8, 1, 4), Dimension::tp).empty());
  CHECK(alongside(layout(4, 1, 8), Dimension::tp) == std::vector<std::uint32_t>{4});
  // DP 4 across the nodes: the 8 ranks of a node are in 8 groups.
  CHECK(alongside(layout(8, 1, 4), Dimension::dp) == std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 7});
  // A layout that uses half of the machine has no neighbours on the other half.
  CHECK(alongside(layout(4, 1, 1), Dimension::tp).empty());
}

TEST_CASE("messages between stages: one NIC each, and inside a node by NVLink") {
  const Fabric fabric = cluster(2);
  // GPU to NIC and NIC to switch, both ways: 4 x 300 ns; 25 GB/s.
  CHECK(both_ways(layout(8, 2, 1), fabric, 0, Bytes(25'000'000)) == Approx(4 * 300e-9 + 1e-3));
  // GPU to NVSwitch to GPU: 2 x 250 ns; 300 GB/s.
  CHECK(both_ways(layout(1, 8, 1), fabric, 3, Bytes(300'000'000)) == Approx(2 * 250e-9 + 1e-3));
}

TEST_CASE("a stage's messages: one per TP rank, beside all of the boundary on the same nodes") {
  const Fabric fabric = cluster(2);
  // Rank = tp + 2 (pp + 2 dp): stage 0 of the two replicas is 0, 1 and 4, 5, stage 1 is 2, 3 and 6, 7.
  const std::vector<CollectiveRequest> messages = stage_messages(layout(2, 2, 2), fabric, 0, Bytes(100));
  REQUIRE(messages.size() == 2);
  CHECK(messages[1].group.ranks() == std::vector<Rank>{Rank(1), Rank(3)});
  CHECK(firsts(messages[1].alongside) == std::vector<std::uint32_t>{0, 4, 5});
}

TEST_CASE("a plan lists its messages with the pairs that send at once") {
  const StepPlan plan = planned_on(inputs(small_model(), layout(4, 2, 1), 1024, 4), cluster(1));
  for (const StagePlan& stage : plan.stages) {
    const CollectiveCost& c = cost(stage, "pp sendrecv");
    CHECK(c.dimension == Dimension::pp);
    CHECK(c.request.group.size() == 2);
    CHECK(c.request.alongside.size() == 3);  // the other three TP ranks
  }
}

TEST_CASE("messages of a stage share the links that they have in common") {
  TopologySpec spec = cluster(2).spec();
  // One NIC for the eight GPUs of a node.
  spec.devices[2].count = 1;
  spec.links[1].wiring = Wiring::all;
  const Result<Fabric> fabric = Fabric::build(spec, 2);
  REQUIRE(fabric.ok());
  CHECK(both_ways(layout(8, 2, 1), *fabric, 0, Bytes(25'000'000)) == Approx(4 * 300e-9 + 8e-3));
  CHECK(both_ways(layout(1, 2, 8), *fabric, 0, Bytes(300'000'000)) == Approx(2 * 250e-9 + 1e-3));
}

TEST_CASE("a failed price is the plan's failure") {
  const Result<StepPlan> plan = make_plan(inputs(small_model(), layout(8, 1, 1), 1024, 2), cluster(1),
                                          [](const CollectiveRequest&) -> Result<Seconds> {
                                            return Diagnostic{{"x"}, "no", ""};
                                          });
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.errors()[0].message == "no");
}

TEST_CASE("a step that is spelled out asks whether to go on turn by turn, and is the same if it may") {
  const Fabric fabric = cluster(1);
  const StepInputs in = inputs(small_model(), layout(2, 2, 2), 1024, 8);
  const ClassedPlan plan = as_classes(planned_on(in, fabric));
  int asked = 0;
  const auto spelled = spell_out(plan, [&](const EngineProgress&) { return ++asked > 0; });
  REQUIRE(spelled);
  CHECK(spelled->schedule.size() == spell_out(plan).schedule.size());
  CHECK(asked == 2 * 2 * in.batch.micro_batches(in.layout));  // a forward and a backward on two stages
  CHECK_FALSE(spell_out(plan, [&](const EngineProgress&) { return --asked > 0; }));
}

TEST_CASE("the timeline names what runs, on which stream, for a trace") {
  const Fabric fabric = cluster(1);
  StepInputs in = inputs(small_model(), layout(2, 2, 2), 1024, 4);
  in.options.recompute = Recompute::full;
  const StepSchedule spelled = spell_out(planned_on(in, fabric));
  std::vector<std::string> seen;
  for (std::uint32_t i = 0; i < spelled.schedule.size(); ++i) {
    const OpId op(i);
    const auto stream = spelled.schedule.stream(op);
    if (!stream) continue;
    const Stream& s = spelled.schedule.streams()[stream->value()];
    seen.push_back(std::to_string(s.rank->value()) + " " + s.name + " | " + std::string(spelled.schedule.category(op)) +
                   " | " + std::string(spelled.schedule.name(op)));
  }
  // In tp-pp-dp order with TP 2, stage 1 begins with rank 2, and layers 4 to 7.
  for (const char* expected :
       {"0 compute | forward | F mb3 L2 attention", "0 tp | tp | F mb0 embedding embedding all_reduce",
        "2 compute | recompute | B mb1 L5 recompute mlp", "2 compute | backward | B mb1 L5 mlp",
        "2 tp | tp | B mb0 L4 attention all_reduce", "0 pp to next | pp | F mb2 to stage 1",
        "2 pp to previous | pp | B mb3 to stage 0", "0 dp | dp | gradient bucket 0", "2 compute | optimizer | adam"}) {
    INFO(expected);
    CHECK(std::count(seen.begin(), seen.end(), expected) == 1);
  }
}
