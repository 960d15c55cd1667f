// A step whose job has its nodes anywhere on the machine, and unfolded steps of machines that are not as described.
#include <catch2/catch.hpp>

#include <map>
#include <numeric>
#include <tuple>

#include "../support/dice.hpp"
#include "../support/sample.hpp"
#include "collcast/workload/unfolded_step.hpp"
#include "faulty.hpp"
#include "inputs.hpp"
#include "leaves.hpp"
#include "timelines.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;
using Catch::Matchers::Contains;

namespace {

MachineState on_nodes(std::vector<int> nodes, std::vector<MachineFault> faults = {}) {
  return {std::move(faults), {std::move(nodes), false, 1, {"f", 2, 2}}};
}

FaultyStep placed(const StepInputs& in, const Fabric& fabric, const MachineState& state) {
  Result<FaultyStep> step = forecast_faulty_step(in, fabric, state, rings(), Method::both);
  INFO(to_text(step.errors()));
  REQUIRE(step.ok());
  return std::move(step).value();
}

StepWithUnfolded unfolded_on(const StepInputs& in, const Fabric& fabric, const MachineState& state,
                             Sharing sharing = Sharing::max_min) {
  Result<StepWithUnfolded> step = forecast_unfolded_step(in, fabric, state, rings(), nullptr, {sharing, {}});
  INFO(to_text(step.errors()));
  REQUIRE(step.ok());
  REQUIRE(step->unfolded);
  return std::move(step).value();
}

}  // namespace

TEST_CASE("nodes in the machine's order cost nothing, nor does any order of nodes that are all alike") {
  const Fabric star = cluster(4), tree = leaves(8, 4, 4);
  std::vector<int> in_order(8);
  std::iota(in_order.begin(), in_order.end(), 0);
  for (const auto& [tp, pp, dp] : {std::tuple(4, 2, 4), std::tuple(8, 2, 2), std::tuple(8, 1, 4)}) {
    const StepInputs in = inputs(small_model(), layout(tp, pp, dp), 512, 8);
    const FaultyStep step = placed(in, star, on_nodes({2, 0, 3, 1}));
    CHECK(step.result.step == step.effect.step);
    CHECK(step.result.estimate == step.effect.estimate);
    CHECK(step.effect.classes.size() == static_cast<std::size_t>(pp));
  }
  for (const auto& [pp, dp] : {std::pair(2, 4), std::pair(1, 8), std::pair(4, 2)}) {
    const StepInputs in = inputs(small_model(), layout(1, pp, dp), 512, 8);
    const FaultyStep step = placed(in, tree, on_nodes(in_order));
    // The plan has the slowest messages and collectives for all, here each rank has its own.
    CHECK(step.result.step <= step.effect.step);
    CHECK(step.result.estimate.count() == Approx(step.effect.estimate.count()).epsilon(1e-9));
  }
}

TEST_CASE("replicas of one leaf that are strewn over two exchange gradients over its spines") {
  // Two stages, four replicas, tp-pp-dp: rank = pp + 2 dp. Ranks of a stage are nodes 0, 2, 4, 6 of 8, four to a leaf,
  // and cross the spines as they are; on nodes 0, 4, 1, 5, 2, 6, 3, 7 each stage has a leaf of its own.
  const Fabric tree = leaves(8, 4, 8);
  StepInputs in = inputs(small_model(), layout(1, 2, 4), 512, 8);
  in.options.overlap_dp = false;
  const FaultyStep good = placed(in, tree, on_nodes({0, 4, 1, 5, 2, 6, 3, 7}));
  CHECK(good.result.step < good.effect.step);
  CHECK(good.result.breakdown.dp_exposed < good.effect.breakdown.dp_exposed);
  // Without a spine on its way a ring all-reduce of N bytes takes 2 (k-1)/k N/B, and the same with the spine's rate.
  const FaultyStep same = placed(in, tree, on_nodes({4, 0, 5, 1, 6, 2, 7, 3}));
  CHECK(same.result.step == good.result.step);
}

TEST_CASE("classes of a placed step are the step of every rank, to the picosecond") {
  Dice dice(20261124);
  Sample sample(4);
  int tried = 0, split = 0;
  for (int round = 0; round < 120; ++round) {
    const StepInputs in = random_inputs(dice);
    const int hosts = 16;
    const Fabric tree = leaves(hosts, dice.pick({2, 4}), dice.pick({1.0, 3.0}));
    const std::vector<int> order = dice.permutation(hosts);
    if (in.layout.world() > hosts || !check_step(in, hosts, {}).empty() || !sample.takes()) continue;
    ++tried;
    CAPTURE(round, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep);
    const Fabric job = tree.placed(order);
    const CollectiveTime here = by_simulation(tree, {}), there = by_simulation(job, {});
    FaultyMachine machine = sick(dice, tree, in.layout.world(), &there);
    machine.touched.assign(static_cast<std::size_t>(hosts), true);
    machine.is_placed = true;
    const ClassedPlan few = classed(in, machine, here, Fold::alike_once),
                      all = classed(in, machine, here, Fold::every_rank);
    if (few.classes.size() > static_cast<std::size_t>(in.layout.pp)) ++split;
    const Ran by_class = run(few, tree), by_rank = run(all, tree);
    CHECK(by_class.timeline.finish == by_rank.timeline.finish);
    for (const auto& [rank, last] : by_class.last) CHECK(last == by_rank.last.at(rank));
  }
  CHECK(tried > (sanitized ? 3 : 30));
  CHECK(split > (sanitized ? 1 : 15));
}

TEST_CASE("a fault is of the machine's GPU, wherever the job's ranks are") {
  const Fabric star = cluster(2);
  const StepInputs in = inputs(small_model(), layout(4, 2, 2), 512, 8);
  // GPU 3 is rank 3 of a job in order, and rank 11 of one on nodes 1, 0; GPU 11 the other way round.
  const FaultyStep there = placed(in, star, on_nodes({1, 0}, {slow_gpu(11, 0.5)})),
                   here = placed(in, star, on_nodes({0, 1}, {slow_gpu(3, 0.5)}));
  CHECK(there.result.step == here.result.step);
  CHECK(there.effect.classes.size() == here.effect.classes.size());
  CHECK(there.effect.classes[there.effect.slowest].first == here.effect.classes[here.effect.slowest].first);
}

TEST_CASE("unfolded, slow GPUs on links of their own are the folded step to the picosecond") {
  const Fabric star = cluster(4);
  for (const auto& [tp, pp, dp] :
       {std::tuple(4, 2, 4), std::tuple(2, 2, 8), std::tuple(8, 1, 4), std::tuple(1, 4, 8)}) {
    StepInputs in = inputs(small_model(), layout(tp, pp, dp), 512, 16);
    in.layout.sequence_parallel = tp > 1;  // else receivers gather, which keeps the folded way longer
    CAPTURE(tp, pp, dp);
    for (const double speed : {0.5, 0.9}) {
      const StepWithUnfolded all =
          unfolded_on(in, star, MachineState({{GpuFault{Gpus::all(), speed}, {"f", 1, 1}}}), Sharing::none);
      CHECK(to_picoseconds(all.unfolded->step) == to_picoseconds(*all.result.simulate));
      const StepWithUnfolded one = unfolded_on(in, star, MachineState({slow_gpu(3, speed)}), Sharing::none);
      CHECK(one.unfolded->step > one.effect->step);
      // What a ring passes on before its last member comes is done by then: a TP group that waits for a slow GPU takes
      // less after it than the folded step has it. No less than the slow GPU's kernels.
      CHECK(one.unfolded->step <= *one.result.simulate);
      CHECK(one.unfolded->step > one.effect->classes[one.effect->slowest].breakdown.compute);
    }
  }
}

TEST_CASE("unfolded, a slow link and other nodes are slower as the folded step is") {
  const StepInputs in = inputs(small_model(), layout(1, 2, 4), 512, 8);
  const Fabric tree = leaves(8, 4, 8);
  const StepWithUnfolded good = unfolded_on(in, tree, on_nodes({0, 4, 1, 5, 2, 6, 3, 7})),
                         plain = unfolded_on(in, tree, {});
  CHECK(good.unfolded->step < plain.unfolded->step);
  CHECK(!plain.effect);
  const StepWithUnfolded slow = unfolded_on(in, tree, MachineState({slow_link("host2", 0.1)}));
  CHECK(slow.unfolded->step > plain.unfolded->step);
  CHECK(slow.effect->step == plain.result.step);
}

TEST_CASE("what comes, goes or is drawn cannot be unfolded") {
  const StepInputs in = inputs(small_model(), layout(4, 2, 2), 512, 8);
  MachineFault late = slow_gpu(1, 0.5), drawn = slow_gpu(2, 1);
  late.from = Seconds(1e-3);
  std::get<GpuFault>(drawn.what).jitter = Jitter{0.1};
  const Result<StepWithUnfolded> wrong = forecast_unfolded_step(in, cluster(2), MachineState({late, drawn}), rings());
  REQUIRE(!wrong);
  CHECK_THAT(to_text(wrong.errors()), Contains("f:1:1") && Contains("begins or ends cannot be unfolded") &&
                                          Contains("jitter cannot be unfolded"));
}

TEST_CASE("a placement that cannot be is told where it is written") {
  const StepInputs in = inputs(small_model(), layout(4, 2, 2), 512, 8);
  const Result<FaultyStep> wrong = forecast_faulty_step(in, cluster(2), on_nodes({0, 7}), rings(), Method::both);
  REQUIRE(!wrong);
  CHECK_THAT(to_text(wrong.errors()), Contains("f:2:2") && Contains("node 7 is not of this machine"));
}

TEST_CASE("each group is priced once, however many ranks ask") {
  // Nodes at random: no rank's groups are known to take what another's do.
  const Fabric fabric = leaves(64, 4, 4);
  const StepInputs in = inputs(small_model(), layout(2, 2, 16), 512, 64);
  std::vector<int> nodes(64);
  std::iota(nodes.begin(), nodes.end(), 0);
  Dice dice(5);
  for (int i = 63; i > 0; --i)
    std::swap(nodes[static_cast<std::size_t>(i)], nodes[static_cast<std::size_t>(dice.roll(i + 1))]);
  const Result<Fabric> elsewhere = with_placement(fabric, on_nodes(nodes).placement, 64);
  REQUIRE(elsewhere.ok());
  const CollectiveTime usual = by_estimate(fabric, {}), there = by_estimate(*elsewhere, {});
  std::map<std::tuple<CollectiveKind, std::vector<Rank>, Bytes>, int> asked;
  const CollectiveTime counted = [&](const CollectiveRequest& request) {
    if (request.kind != CollectiveKind::sendrecv) ++asked[{request.kind, request.group.ranks(), request.size}];
    return there(request);
  };
  FaultyMachine machine{&fabric, std::vector<double>(64, 1), std::vector<bool>(64, true), &counted, true};
  const ClassedPlan plan = classed(in, machine, usual, Fold::alike_once);
  CHECK(plan.classes.size() > 4);
  // Of TP two kinds or more in each of 32 groups, of DP buckets and the gather in each of 4; messages are gathered by
  // TP.
  CHECK(asked.size() >= 32 * 2 + 4 * 2);
  for (const auto& [request, times] : asked) {
    INFO(times);
    CHECK(times == 1);
  }
}

TEST_CASE(
    "where it is stopped, what is known of a step that is placed is its closed form, and before that the one without") {
  const Fabric fabric = leaves(8, 4, 4);
  const StepInputs in = inputs(small_model(), layout(2, 2, 2), 512, 8);
  const MachineState state = on_nodes({7, 2, 5, 0, 6, 1, 4, 3});
  const auto as_far = [&](const EngineOptions& engine, const GoesOn& goes_on) {
    return forecast_faulty_step_as_far(in, fabric, state, rings(), nullptr, engine, {}, 1, goes_on);
  };
  const FaultyStep whole = placed(in, fabric, state);
  const FaultyAsFar through = as_far({}, {});
  REQUIRE(through.result.ok());
  CHECK(through.result->result.step == whole.result.step);
  const FaultyAsFar stopped = as_far({Sharing::max_min, [](const EngineProgress&) { return false; }}, {});
  CHECK_FALSE(stopped.result.ok());
  REQUIRE(stopped.known.by_formula);
  CHECK(stopped.known.by_formula->result.step == whole.result.estimate);
  CHECK(stopped.known.by_formula->effect.step == whole.effect.estimate);
  const FaultyAsFar at_once = as_far({}, [] { return false; });
  CHECK_FALSE(at_once.result.ok());
  CHECK_FALSE(at_once.known.by_formula);
}
