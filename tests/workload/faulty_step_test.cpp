// Steps on machines with faults: classes against every rank for itself, arithmetic by hand, and the laws.
#include "collcast/workload/faulty_step.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include "../support/dice.hpp"
#include "../support/sample.hpp"
#include "faulty.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/faults/faulty_plan.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

TEST_CASE("ranks that are alike once give every rank's times to the picosecond") {
  const std::uint64_t seed = 20260101;
  Dice dice(seed);
  const Fabric fabric = cluster(8);
  const CollectiveTime healthy = priced(1e-5), here = unlike();
  int folded_away = 0, tried = 0;
  Sample sample(5);
  for (int round = 0; round < 400; ++round) {
    const StepInputs in = random_inputs(dice);
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++tried;
    if (!sample.takes()) continue;
    const FaultyMachine machine = sick(dice, fabric, in.layout.world(), &here);
    CAPTURE(seed, round, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep, in.options.zero);
    const ClassedPlan few = classed(in, machine, healthy, Fold::alike_once);
    const ClassedPlan all = classed(in, machine, healthy, Fold::every_rank);
    REQUIRE(all.classes.size() == static_cast<std::size_t>(in.layout.world()));
    int ranks = 0;
    for (const RankClass& one : few.classes) ranks += one.ranks;
    CHECK(ranks == in.layout.world());
    if (few.classes.size() < all.classes.size()) ++folded_away;
    const Ran by_class = run(few, fabric), by_rank = run(all, fabric);
    CHECK(by_class.timeline.finish == by_rank.timeline.finish);
    for (const auto& [rank, last] : by_class.last) CHECK(last == by_rank.last.at(rank));
  }
  CHECK(tried > 200);
  CHECK(folded_away > (sanitized ? 15 : 100));
}

TEST_CASE("without a fault there is one class per stage, and its schedule is that of the plan") {
  const Fabric fabric = cluster(8);
  const CollectiveTime time = priced(1e-5);
  for (const auto& [tp, pp, dp] : {std::tuple(4, 2, 4), std::tuple(2, 4, 2), std::tuple(1, 1, 8)}) {
    StepInputs in = inputs(small_model(), layout(tp, pp, dp), 512, 8);
    in.model.tied_embeddings = true;
    const FaultyMachine machine{&fabric, std::vector<double>(static_cast<std::size_t>(tp * pp * dp), 1), {}, &time};
    const ClassedPlan plan = classed(in, machine, time, Fold::alike_once);
    CHECK(plan.classes.size() == static_cast<std::size_t>(pp));
    const Timeline by_plan = timeline(planned(in, time), fabric);
    const Ran by_class = run(plan, fabric), by_rank = run(classed(in, machine, time, Fold::every_rank), fabric);
    REQUIRE(by_class.timeline.ops.size() == by_plan.ops.size());
    for (std::size_t op = 0; op < by_plan.ops.size(); ++op)
      CHECK(by_class.timeline.ops[op].finish == by_plan.ops[op].finish);
    CHECK(by_rank.timeline.finish == by_plan.finish);
  }
}

TEST_CASE("without a fault every rank for itself takes what the plan does, in every order of ranks") {
  Dice dice(20261126);
  const Fabric fabric = cluster(8);
  const CollectiveTime time = priced(1e-5);
  int slowed = 0;
  Sample sample(5);
  for (int round = 0; round < 150; ++round) {
    StepInputs in = random_inputs(dice);
    for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp}) {
      in.layout.order = order;
      if (!check_step(in, fabric.rank_count(), {}).empty() || !sample.takes()) continue;
      CAPTURE(round, to_string(order), in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep,
              in.options.zero, to_string(in.layout.schedule), in.kernels.beside_collectives);
      const std::vector<double> speed(static_cast<std::size_t>(in.layout.world()), 1);
      const ClassedPlan all = classed(in, {&fabric, speed, {}, &time}, time, Fold::every_rank);
      slowed += spell_out(all).slowings.empty() ? 0 : 1;
      CHECK(run(all, fabric).timeline.finish == timeline(planned(in, time), fabric).finish);
    }
  }
  CHECK(slowed > (sanitized ? 3 : 30));
}

TEST_CASE("a GPU that is slower by a millionth costs as little, whatever DP slows, in every order of ranks") {
  const Fabric fabric = cluster(2);
  StepInputs in = inputs(small_model(), layout(2, 4, 2), 512, 4);
  in.kernels.beside_collectives = 0.6;
  in.options.overlap_dp = true;
  in.options.align_grad_reduce = false;  // every stage beside its own buckets
  in.options.bucket = Bytes(40'000'000);
  Sample sample(5);
  for (const RankOrder order : {RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp}) {
    in.layout.order = order;
    for (int gpu = 0; gpu < 16; ++gpu) {
      if (!sample.takes()) continue;
      const FaultyStep one = forecast_faulty(in, fabric, {slow_gpu(gpu, 1 - 1e-6)});
      CAPTURE(to_string(order), gpu);
      REQUIRE(one.result.slowdown.dp > Seconds{});
      CHECK(one.result.step.count() == Approx(one.effect.step.count()).epsilon(2e-6));
      CHECK(one.result.estimate.count() == Approx(one.effect.estimate.count()).epsilon(2e-6));
    }
  }
}

TEST_CASE("one slow GPU of two replicas: its computing, then the exchange that both wait for") {
  // TP 1, PP 1, DP 2, one micro-batch, nothing overlaps and no optimizer: a replica computes c, the slow one 2 c, and
  // the buckets of gradients follow one after the other.
  const Fabric fabric = cluster(1);
  StepInputs in = inputs(small_model(), layout(1, 1, 2), 512, 1);
  in.options.overlap_dp = false;
  in.options.optimizer = false;
  const CollectiveTime time = priced(1e-4);
  const StepPlan plan = planned(in, time);
  const StageTime work = plan.stages[0].time();
  Seconds buckets{};
  for (const Bucket& bucket : plan.stages[0].buckets) buckets += bucket.time;
  FaultyMachine machine{&fabric, {1, 0.5}, {}, &time};
  const Ran both = run(classed(in, machine, time, Fold::alike_once), fabric);
  const double rounding = 1e-12 * static_cast<double>(both.timeline.ops.size());
  CHECK(to_seconds(both.timeline.finish).count() ==
        Approx((2 * (work.forward + work.backward) + buckets).count()).margin(rounding).epsilon(0));
}

TEST_CASE("the fast replica waits for gradients what the slow one computes longer, and TP mates wait in between") {
  const Fabric fabric = cluster(1);
  StepInputs in = inputs(small_model(), layout(2, 1, 2), 512, 2);
  in.options.overlap_dp = false;
  const FaultyStep step = forecast_faulty(in, fabric, {slow_gpu(3, 0.5)});
  // Ranks 0 and 1 are the fast replica, 1 with the gradients of 3; 2 waits for its mate 3 at every TP collective.
  REQUIRE(step.effect.classes.size() == 4);
  const RankClassTimes &fast = step.effect.classes[1], &mate = step.effect.classes[2], &slow = step.effect.classes[3];
  CHECK(fast.first == Rank(1));
  CHECK(slow.first == Rank(3));
  CHECK(slow.compute == 0.5);
  CHECK(step.effect.slowest == 3);
  // The slow one computes twice as long as all others, and never waits for them.
  CHECK(slow.breakdown.compute.count() == Approx(2 * fast.breakdown.compute.count()));
  CHECK(mate.breakdown.compute.count() == Approx(fast.breakdown.compute.count()));
  CHECK(slow.waits.gradients.count() == Approx(0).margin(1e-12));
  CHECK(slow.waits.tp.count() == Approx(0).margin(1e-12));
  const double longer = (slow.breakdown.compute - fast.breakdown.compute).count();
  CHECK(fast.waits.gradients.count() == Approx(longer));
  CHECK(fast.waits.tp.count() == Approx(0).margin(1e-12));
  // What the slow one computes after the last TP collective its mate waits for with the norm of all gradients.
  CHECK(mate.waits.tp.count() + mate.waits.norm.count() == Approx(longer));
  CHECK(mate.waits.tp.count() > 0.9 * longer);
  // Optimizers are ends of their own: the slow GPU's takes twice as long there too.
  CHECK((step.result.step - step.effect.step).count() ==
        Approx(longer + slow.breakdown.optimizer.count() - fast.breakdown.optimizer.count()));
  for (const RankClassTimes& one : step.effect.classes)
    CHECK(one.waits.total().count() == Approx(one.breakdown.bubble.count()).margin(1e-15));
}

TEST_CASE("a slow GPU costs no less than none and no more than all slow, wherever it is") {
  const Fabric fabric = cluster(2);
  for (const bool overlap : {false, true}) {
    for (const double launch : {0.0, 30e-6}) {
      StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
      in.options.overlap_dp = in.options.overlap_pp = overlap;
      in.options.launch = Seconds(launch);
      std::vector<MachineFault> all;
      for (int gpu = 0; gpu < 16; ++gpu) all.push_back(slow_gpu(gpu, 0.7));
      const FaultyStep most = forecast_faulty(in, fabric, all);
      CHECK(most.effect.classes.size() == 2);
      Sample sample(5);
      for (int gpu = 0; gpu < 16; ++gpu) {
        if (!sample.takes()) continue;
        const FaultyStep one = forecast_faulty(in, fabric, {slow_gpu(gpu, 0.7)});
        CAPTURE(gpu, overlap, launch);
        CHECK(one.result.step >= one.effect.step);
        CHECK(one.result.estimate >= one.effect.estimate);
        CHECK(one.result.step <= most.result.step);
        CHECK(one.result.estimate <= most.result.estimate);
        // Whose replica it is does not matter, and neither does its place in the TP group.
        CHECK(one.result.step == forecast_faulty(in, fabric, {slow_gpu(gpu % 4 / 2 * 2, 0.7)}).result.step);
      }
    }
  }
}

TEST_CASE("the more GPUs are slow, and the slower, the longer a step, however long its passes wait for launches") {
  Dice dice(20261127);
  const Fabric fabric = cluster(8);
  const CollectiveTime time = priced(1e-5);
  int tried = 0, waits = 0;
  Sample sample(5);
  for (int round = 0; round < 300; ++round) {
    StepInputs in = random_inputs(dice);
    in.options.launch = Seconds(dice.pick({10e-6, 40e-6, 160e-6}));
    in.kernels.beside_collectives = 1;  // else kernels that end later may go beside less
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    ++tried;
    if (!sample.takes()) continue;
    CAPTURE(round, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep, in.options.zero,
            to_string(in.layout.schedule), in.options.launch.count());
    FaultyMachine machine{&fabric, std::vector<double>(static_cast<std::size_t>(in.layout.world()), 1), {}, &time};
    // Each operation is rounded up by less than a picosecond.
    double last = 0, rounding = 0;
    for (int more = 0; more < 5; ++more) {
      const ClassedPlan plan = classed(in, machine, time, Fold::alike_once);
      const Timeline timeline = run(plan, fabric).timeline;
      const double now = to_seconds(timeline.finish).count();
      rounding = 1e-12 * static_cast<double>(timeline.ops.size());
      CAPTURE(more);
      CHECK(now >= last - rounding);
      CHECK(estimate_step(plan.plan).total.count() >= now - rounding);
      last = now;
      waits += spell_out(plan).launch_waits.empty() ? 0 : 1;
      machine.speed[static_cast<std::size_t>(dice.roll(in.layout.world()))] *= dice.pick({0.5, 0.8, 0.97});
    }
    machine.speed.assign(machine.speed.size(), *std::min_element(machine.speed.begin(), machine.speed.end()));
    const SimTime most = run(classed(in, machine, time, Fold::alike_once), fabric).timeline.finish;
    CHECK(to_seconds(most).count() >= last - rounding);
  }
  CHECK(tried > 150);
  CHECK(waits > (sanitized ? 20 : 200));
}

TEST_CASE("a GPU two groups away holds a pass up, and who waits for it does not wait for launches as well") {
  // TP 2, CP 2 in one stage: GPU 3 shares no group with the slow GPU 0, but both of its groups do.
  const Fabric fabric = cluster(1);
  StepInputs in = inputs(small_model(), layout(2, 1, 1), 512, 1);
  in.layout.cp = 2;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.cp_exchange = ContextExchange::ulysses;
  in.options.overlap_dp = false;
  in.options.launch = Seconds(200e-6);
  const FaultyStep one = forecast_faulty(in, fabric, {slow_gpu(0, 0.6)});
  std::vector<MachineFault> all;
  for (int gpu = 0; gpu < 4; ++gpu) all.push_back(slow_gpu(gpu, 0.6));
  CHECK(one.result.step >= one.effect.step);
  CHECK(one.result.step <= forecast_faulty(in, fabric, all).result.step);
  CHECK(one.result.estimate.count() == Approx(one.result.step.count()).epsilon(1e-6));
}

TEST_CASE("a closed form that has all replicas as slow as the slowest is no less than the simulation") {
  const Fabric fabric = cluster(2);
  StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 1);
  // One slow GPU: the closed form is as near as without it. Two in different stages of different replicas: a bound. One
  // micro-batch takes 2 / 0.7 by it, where each pipeline has one slow stage: 1 / 0.7 + 1, by a sixth less.
  const FaultyStep one = forecast_faulty(in, fabric, {slow_gpu(0, 0.7)});
  CHECK(one.result.estimate.count() == Approx(one.result.step.count()).epsilon(0.01));
  const FaultyStep two = forecast_faulty(in, fabric, {slow_gpu(0, 0.7), slow_gpu(6, 0.7)});
  CHECK(two.result.estimate.count() > 1.05 * two.result.step.count());
}

TEST_CASE("a factor of one, a GPU that has no part in the job and a link that nobody uses change nothing") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 2, 2), 512, 4);  // 8 GPUs of 16
  const Result<StepResult> healthy = forecast_step(in, fabric, {}, Method::both);
  REQUIRE(healthy.ok());
  for (const MachineFault& fault :
       {slow_gpu(3, 1), slow_gpu(12, 0.5), slow_link("node1.nic3", 0.1), slow_link("node0.nic3", 1)}) {
    const FaultyStep step = forecast_faulty(in, fabric, {fault});
    INFO(to_text(fault));
    CHECK(step.result.step == healthy->step);
    CHECK(step.result.estimate == healthy->estimate);
    CHECK(step.result.simulated_operations == healthy->simulated_operations);
    CHECK(step.result.breakdown.bubble == healthy->breakdown.bubble);
    CHECK(step.result.breakdown.dp_exposed == healthy->breakdown.dp_exposed);
    CHECK(step.effect.classes.size() == 2);
    REQUIRE(step.result.collectives.size() == healthy->collectives.size());
    for (std::size_t c = 0; c < healthy->collectives.size(); ++c) {
      CHECK(step.result.collectives[c].name == healthy->collectives[c].name);
      CHECK(step.result.collectives[c].time == healthy->collectives[c].time);
      CHECK(step.result.collectives[c].count == healthy->collectives[c].count);
    }
  }
}

TEST_CASE("a slow link costs the groups that use it, and the more the slower it is") {
  const Fabric fabric = cluster(4);
  StepInputs in = inputs(small_model(), layout(8, 1, 4), 512, 2);
  in.options.overlap_dp = false;
  Seconds before = forecast_faulty(in, fabric, {}).result.step;
  for (const double share : {0.9, 0.5, 0.1, 0.01}) {
    const FaultyStep step = forecast_faulty(in, fabric, {slow_link("node2.nic5", share)});
    CAPTURE(share);
    CHECK(step.result.step > before);
    before = step.result.step;
  }
  // NVLink of one GPU: the TP group of its node alone is slower, and the others wait for its gradients.
  const FaultyStep nvlink = forecast_faulty(in, fabric, {slow_link("node2.gpu5 -> node2.nvswitch0", 0.25)});
  CHECK(nvlink.result.step > nvlink.effect.step);
  REQUIRE(nvlink.effect.classes.size() == 2);
  CHECK(nvlink.effect.classes[1].first == Rank(16));
  CHECK(nvlink.effect.classes[1].ranks == 8);
  CHECK(nvlink.effect.classes[0].waits.gradients > 10 * nvlink.effect.classes[1].waits.gradients);
}

TEST_CASE("a GPU without NVLink goes over its NIC, and one without any link is refused with its rank") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(8, 1, 2), 512, 2);
  const auto failed = [](const std::string& link) {
    LinkFault fault;
    fault.link = link;
    fault.failed = true;
    return std::vector<MachineFault>{{fault, {"f", 3, 5}}};
  };
  const FaultyStep step = forecast_faulty(in, fabric, failed("node1.gpu2 <-> node1.nvswitch0"));
  CHECK(step.result.step > step.effect.step);
  const auto refusal = [&](const std::string& link) {
    const Result<FaultyStep> cut = forecast_faulty_step(in, fabric, failed(link), {}, Method::both);
    REQUIRE(!cut.ok());
    return to_text(cut.errors());
  };
  CHECK(refusal("node1.gpu2").find("f:3:5: error: failed links cut off rank 10 from all others") != std::string::npos);
  // GPUs pass no traffic on, so nobody else's NIC helps.
  CHECK(refusal("node1.nic2").find("failed links cut off rank 10 from rank 0") != std::string::npos);
}
