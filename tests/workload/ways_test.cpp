// Groups of a dimension that lie on the machine in different ways: the slowest counts for all.
#include "workload/ways.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "../support/dice.hpp"
#include "../support/sample.hpp"
#include "collcast/base/units.hpp"
#include "collcast/workload/faulty_step.hpp"
#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "leaves.hpp"
#include "workload/plan.hpp"
#include "workload/warnings.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;
using Catch::Matchers::Contains;

namespace {

/// That degrees of three and six divide, too.
TransformerConfig model_of_sixths(int experts = 0) {
  TransformerConfig m = small_model();
  m.heads = m.kv_heads = 12;
  m.hidden = 12 * m.head_dim;
  m.ffn = 6 * 512;
  m.vocab = 48000;
  if (experts > 0) m.experts = {experts, 2, 6 * 128};
  return m;
}

StepInputs step_of_sixths(const ParallelLayout& l, int experts = 0) {
  StepInputs in = inputs(model_of_sixths(experts), l, 768, 4);
  in.options.zero = 1;
  return in;
}

/// Of everything a stage asks for, the longest that any of its ranks' groups takes is what the plan has; returns how
/// many of them do not take the same.
int check_slowest(const StepInputs& in, const Fabric& fabric) {
  const CollectiveTime time = memoized(by_estimate(fabric, {}));
  int uneven = 0;
  for (int stage = 0; stage < in.layout.pp; ++stage) {
    std::vector<Rank> ranks;
    for (int r = 0; r < in.layout.world(); ++r)
      if (const Rank rank(static_cast<std::uint32_t>(r)); coordinates(in.layout, rank).pp == stage)
        ranks.push_back(rank);
    const Result<StageRequests> asked = stage_requests(in, fabric, time, stage);
    REQUIRE(asked.ok());
    for (std::size_t i = 0; i < asked->requests.size(); ++i) {
      const CollectiveCost& priced = asked->usual[i];
      Seconds most{}, least(1e9);
      for (const Rank rank : ranks) {
        const Seconds own = time(asked->requests[i].of(rank)).value();
        most = std::max(most, own);
        least = std::min(least, own);
      }
      CAPTURE(stage, priced.name, priced.request.group.size());
      CHECK(priced.time.count() == Approx(most.count()).epsilon(1e-9));
      CHECK((priced.slowest_groups > 0) == (least < most * (1 - 1e-9)));
      uneven += priced.slowest_groups > 0 ? 1 : 0;
    }
    const bool goes_round = in.layout.schedule == PipelineSchedule::interleaved;
    if (stage + 1 == in.layout.pp && !goes_round) continue;
    Seconds message{}, both{};
    for (const Rank rank : ranks) {
      const auto own = make_transfer(in, fabric, time, stage, rank).value();
      message = std::max(message, own.message.time);
      both = std::max(both, own.time);
    }
    const auto slowest = make_transfer(in, fabric, time, stage).value();
    CHECK(slowest.message.time.count() == Approx(message.count()).epsilon(1e-9));
    // The slowest message and the slowest gather behind one need not be of one TP group.
    CHECK(slowest.time >= both * (1 - 1e-9));
  }
  return uneven;
}

/// A search prices the layout as its forecast does.
void check_as_searched(StepInputs in, const Fabric& fabric) {
  const LayoutChoice choice{.tp = in.layout.tp,
                            .pp = in.layout.pp,
                            .dp = in.layout.dp,
                            .micro_batch = in.batch.micro_batch,
                            .zero = in.options.zero,
                            .cp = in.layout.cp,
                            .ep = in.layout.ep};
  put(choice, in);
  const CollectiveTime time = memoized(step_prices(fabric, {}));
  const Result<LayoutEstimate> quick = LayoutFamily(in, fabric, time).estimate(choice);
  REQUIRE(quick.ok());
  CHECK(quick->step.count() == Approx(forecast(in, fabric, Method::estimate).step.count()).epsilon(1e-12));
}

/// Nodes of 8 GPUs, some to a leaf, whose NICs choose among its spines; its way there has a part of their rate.
Fabric pods(int nodes, int per_leaf = 2, int spines = 4, double oversubscription = 4) {
  LeafSpineNetwork net;
  net.latency = net.spine_latency = Seconds(300e-9);
  net.nodes_per_leaf = per_leaf;
  net.spines = spines;
  net.oversubscription = oversubscription;
  return on_leaves(cluster(1).spec(), nodes, net);
}

FaultyStep in_order(const StepInputs& in, const Fabric& fabric) {
  MachineState state;
  for (int node = 0; node < fabric.nodes(); ++node) state.placement.nodes.push_back(node);
  Result<FaultyStep> step = forecast_faulty_step(in, fabric, state, {}, Method::both);
  INFO(to_text(step.errors()));
  REQUIRE(step.ok());
  return std::move(step).value();
}

bool tells_of_ways(const StepResult& result) {
  return std::ranges::any_of(result.warnings,
                             [](const std::string& w) { return w.find("do not all lie alike") != std::string::npos; });
}

}  // namespace

TEST_CASE("groups that nodes hold whole, or that fill whole nodes, lie in one way") {
  const Fabric fabric = cluster(4);
  for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp})
    for (ParallelLayout l : {layout(2, 2, 8), layout(8, 2, 2), layout(4, 1, 8), layout(1, 4, 8), layout(2, 8, 2)}) {
      l.order = order;
      for (int stage = 0; stage < l.pp; ++stage) {
        for (const Dimension dimension : {Dimension::tp, Dimension::pp, Dimension::dp, Dimension::cp})
          CHECK(ways_of(l, fabric, groups_along(dimension), stage).size() == 1);
        CHECK(ways_of(l, fabric, shard_group, stage).size() == 1);
        CHECK(message_ways(l, fabric, stage).size() == 1);
      }
      CHECK(check_slowest(inputs(small_model(), l, 512, 8), fabric) == 0);
    }
}

TEST_CASE("TP groups of six on nodes of eight: the slowest of the two that cross nodes is priced") {
  // Ranks 0-5 and 18-23 are on nodes 0 and 2; 6-11 and 12-17 lie across two nodes.
  const Fabric fabric = cluster(3);
  const StepInputs in = step_of_sixths(layout(6, 1, 4));
  const StageRequests asked = stage_requests(in, fabric, by_estimate(fabric, {}), 0).value();
  const auto tp = std::ranges::find(asked.usual, "tp all_reduce", &CollectiveCost::name);
  REQUIRE(tp != asked.usual.end());
  CHECK(values(tp->request.group) == std::vector<std::uint32_t>{6, 7, 8, 9, 10, 11});
  CHECK(tp->groups == 4);
  CHECK(tp->slowest_groups == 1);
  const StepResult result = forecast(in, fabric);
  REQUIRE(tells_of_ways(result));
  const auto told = std::ranges::find_if(result.warnings, [](const auto& w) { return w.starts_with("TP groups"); });
  CHECK_THAT(*told, Contains("1 of a stage's 4 takes longest, such as ranks 6-11 on nodes 0-1"));
  CHECK_FALSE(tells_of_ways(forecast(step_of_sixths(layout(4, 1, 6)), fabric)));
}

TEST_CASE("uneven groups are told of whatever stage they are of") {
  // Stages of 6 ranks: 0-2 and 3-5 are on node 0; 6-8 and 15-17 across two nodes, 9-11 and 12-14 on one.
  const Fabric fabric = cluster(3);
  StepInputs in = step_of_sixths(layout(3, 3, 2));
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.uneven_stages = true;
  const StepPlan plan = make_plan(in, fabric, by_estimate(fabric, {})).value();
  const auto uneven_tp = [](const std::vector<CollectiveCost>& costs) {
    return std::ranges::count_if(
        costs, [](const CollectiveCost& c) { return c.dimension == Dimension::tp && c.slowest_groups > 0; });
  };
  CHECK(uneven_tp(plan.stages[0].collectives) == 0);
  CHECK(uneven_tp(plan.stages[1].collectives) > 0);
  CHECK(uneven_tp(uneven_collectives(plan, 0)) ==
        uneven_tp(plan.stages[1].collectives) + uneven_tp(plan.stages[2].collectives));
  StepResult r = forecast(in, fabric, Method::estimate);
  CHECK(uneven_tp(r.uneven) == uneven_tp(uneven_collectives(plan, 0)));
  // Of the stage that is shown the ratio says where its groups lie, of no other.
  r.compute_to_communication = 1;
  for (const std::size_t stage : {0U, 1U}) {
    r.stage.stage = static_cast<int>(stage);
    r.collectives = plan.stages[stage].collectives;
    const auto said = workload::warnings(in, fabric, r, by_estimate(fabric, {}), {});
    const auto ratio = std::ranges::find_if(said, [](const auto& w) { return w.starts_with("a layer computes only"); });
    REQUIRE(ratio != said.end());
    CHECK((ratio->find("for TP, whose 3 GPUs lie on 2 nodes") != std::string::npos) == (stage == 1));
  }
}

TEST_CASE("a stage whose replicas lie on two nodes where those of others share one is told of, with what that takes") {
  // Stages of 3 ranks: 0-2, 3-5 and 9-11 are on one node, 6-8 on two.
  const Fabric fabric = cluster(2);
  StepInputs in = inputs(small_model(), layout(1, 4, 3), 512, 12);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  const StepPlan plan = make_plan(in, fabric, by_estimate(fabric, {})).value();
  const auto dp_of = [&](std::size_t stage) {
    Seconds all{};
    for (const CollectiveCost& c : plan.stages[stage].collectives)
      if (c.dimension == Dimension::dp) all += c.time * static_cast<double>(c.count);
    return all;
  };
  const std::string wanted =
      "DP groups of stage 2 cross nodes, such as ranks 6-8 on nodes 0-1, and those of other stages "
      "do not: " +
      format_seconds(dp_of(2)) + " of a step in the place of " +
      format_seconds(std::max({dp_of(0), dp_of(1), dp_of(3)})) + " at most";
  const auto said = [&] { return forecast(in, fabric, Method::estimate).warnings; };
  CHECK(std::ranges::count(said(), wanted) == 1);
  // Of six replicas that share states by twos, stage 1's groups of copies cross nodes (6, 8, 10), those that share
  // none.
  StepInputs hybrid = inputs(small_model(), layout(1, 4, 6), 512, 12);
  hybrid.layout.order = RankOrder::tp_cp_ep_dp_pp;
  hybrid.layout.dp_shard = 2;
  hybrid.options.zero = 2;
  const std::vector<std::string> of_hybrid = forecast(hybrid, cluster(3), Method::estimate).warnings;
  CHECK(std::ranges::count_if(of_hybrid, [](const std::string& w) {
          return w.starts_with("DP groups of 2 of 4 stages cross nodes, such as ranks 6, 8, 10 on nodes 0-1");
        }) == 1);
  CHECK(std::ranges::count_if(of_hybrid, [](const std::string& w) { return w.starts_with("DP groups"); }) == 1);
  // Four replicas a stage: 0-3 and 4-7 of one node each.
  in.layout.dp = 4;
  CHECK(std::ranges::none_of(said(), [](const std::string& w) { return w.find("cross nodes") != std::string::npos; }));
}

TEST_CASE("whatever the layout, a stage's collectives and messages take what the slowest of its groups does") {
  Dice dice(20261129);
  Sample sample(4);
  int tried = 0, uneven = 0;
  const Fabric star = cluster(6), tree = leaves(48, 5, 4, Seconds(1e-6));
  for (int round = 0; round < 400; ++round) {
    ParallelLayout l = layout(dice.pick({1, 2, 3, 6}), dice.pick({1, 1, 2, 3}), dice.pick({2, 4, 6, 8, 12}));
    l.cp = dice.pick({1, 1, 2, 3});
    l.order = dice.pick({RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp});
    const bool experts = dice.roll(2) == 0;
    if (experts) l.ep = dice.pick({1, 2, 3, 6});
    if (dice.roll(3) == 0) l.dp_shard = l.dp / 2;
    if (l.pp == 2 && dice.roll(3) == 0) l.schedule = PipelineSchedule::dualpipe;
    StepInputs in = step_of_sixths(l, experts ? 12 : 0);
    in.layout.uneven_stages = true;
    in.options.zero = dice.roll(4);
    in.model.tied_embeddings = dice.roll(2) == 0;
    if (experts && dice.roll(2) == 0) in.options.moe_token_dispatcher = TokenDispatcher::flex;
    const Fabric& fabric = dice.roll(2) == 0 ? star : tree;
    if (l.world() > 48 || !check_step(in, fabric.rank_count(), {}).empty() || !sample.takes()) continue;
    ++tried;
    CAPTURE(round, l.tp, l.pp, l.dp, l.cp, l.ep, l.dp_shard, l.order, &fabric == &star);
    uneven += check_slowest(in, fabric) > 0 ? 1 : 0;
    check_as_searched(in, fabric);
  }
  CHECK(tried > (sanitized ? 5 : 40));
  CHECK(uneven > (sanitized ? 2 : 15));
}

TEST_CASE("messages of stages that begin within a node: those of TP groups among the stage's own count") {
  // Stages of 34 ranks. Of stage 0 ranks 0-7 fill a node and meet 34-41, on two nodes with 6 ranks more of stage 1.
  const Fabric fabric = pods(18);
  StepInputs in = inputs(small_model(), layout(2, 4, 17), 512, 4);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  check_slowest(in, fabric);
}

TEST_CASE("stages that nodes and leaves do not divide take what the slowest of their groups does") {
  Dice dice(20261130);
  Sample sample(5);
  int tried = 0, uneven = 0;
  const Fabric fabric = pods(18);
  for (int round = 0; round < 200; ++round) {
    ParallelLayout l = layout(dice.pick({1, 2, 4}), dice.pick({1, 2, 3, 4}), 1 + dice.roll(20));
    l.cp = dice.pick({1, 1, 1, 3});
    l.order = dice.pick({RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp});
    if (l.pp > 1 && dice.roll(3) == 0) {
      l.schedule = PipelineSchedule::interleaved;
      l.vpp = 2;
    } else if (l.pp == 2 && dice.roll(2) == 0) {
      l.schedule = PipelineSchedule::dualpipe;
    }
    l.uneven_stages = true;
    StepInputs in = inputs(small_model(), l, 768, 12);
    in.options.zero = dice.roll(2);
    if (l.world() > 144 || !check_step(in, fabric.rank_count(), {}).empty() || !sample.takes()) continue;
    ++tried;
    CAPTURE(round, l.tp, l.pp, l.dp, l.cp, l.order, l.schedule);
    uneven += check_slowest(in, fabric) > 0 ? 1 : 0;
  }
  CHECK(tried > (sanitized ? 5 : 40));
  CHECK(uneven > (sanitized ? 2 : 15));
}

TEST_CASE("by whatever spine a NIC is reached, wide ones are in nobody's way, and of narrow ones the slowest counts") {
  // Stages of a node, in turn: 3 * 8 ranks do not divide a leaf's 64. A link to one of 8 spines carries 8 * 8 / 8 = 8
  // NICs, one of each node; at half the rate a stage's groups lie in ways of their own.
  const auto dp_ways = [](double oversubscription) {
    return ways_of(layout(8, 3, 8), pods(26, 8, 8, oversubscription), groups_along(Dimension::dp), 0).size();
  };
  CHECK(dp_ways(1) == 1);
  CHECK(dp_ways(2) > 1);
  Dice dice(20261201);
  Sample sample(5);
  int tried = 0;
  for (int round = 0; round < 300; ++round) {
    const int per_leaf = dice.pick({2, 4, 8}), spines = dice.pick({4, 8, 16});
    const Fabric fabric = pods(26, per_leaf, spines, 1);
    ParallelLayout l = layout(dice.pick({1, 2, 4, 8}), dice.pick({1, 2, 3, 4}), 1 + dice.roll(40));
    l.cp = dice.pick({1, 1, 2, 3});
    l.order = dice.pick({RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp});
    l.uneven_stages = true;
    StepInputs in = inputs(small_model(), l, 768, 12);
    in.options.zero = dice.roll(2);
    if (l.world() > 208 || !check_step(in, fabric.rank_count(), {}).empty() || !sample.takes()) continue;
    ++tried;
    CAPTURE(round, per_leaf, spines, l.tp, l.pp, l.dp, l.cp, l.order);
    check_slowest(in, fabric);
  }
  CHECK(tried > (sanitized ? 2 : 20));
}

TEST_CASE("nodes that are named in the machine's order are the step without a placement") {
  const Fabric fabric = cluster(3);
  for (const ParallelLayout& l : {layout(6, 1, 4), layout(3, 1, 8), layout(6, 2, 2), layout(4, 1, 6)}) {
    CAPTURE(l.tp, l.pp, l.dp);
    const StepInputs in = step_of_sixths(l);
    const FaultyStep step = in_order(in, fabric);
    CHECK(step.result.estimate.count() == Approx(step.effect.estimate.count()).epsilon(1e-9));
    // Rank by rank none waits longer than where all have the slowest groups of each kind.
    CHECK(*step.result.simulate <= step.effect.step * (1 + 1e-9));
  }
}

TEST_CASE("a server's groups that cross nodes count for all, and the page says so") {
  const Fabric fabric = cluster(3);
  StepInputs in = inputs(model_of_sixths(), layout(6, 1, 4), 512, 1);
  in.serving = Serving{16, 512, 16, 1, 2};
  in.options.optimizer = false;
  const StepResult across = forecast(in, fabric, Method::estimate);
  CHECK(tells_of_ways(across));
}
