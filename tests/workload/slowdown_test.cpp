// Kernels beside collectives: the laws of the slow-down, formula against timeline, and hand-made cases.
#include "workload/slowdown.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "inputs.hpp"
#include "support/sample.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/exchange_walk.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

Operation kernel(OperationKind kind, double time) { return {"k", kind, {}, {}, Seconds(time), "compute"}; }

/// One stage of two layers; each backward is a product of 10 s, which goes at half its rate beside a collective.
StepPlan two_layers(double bucket) {
  StepPlan plan;
  StagePlan stage;
  for (const std::size_t u : {std::size_t{0}, std::size_t{1}}) {
    stage.units.push_back({UnitKind::layer, "L" + std::to_string(u), u, 0});
    UnitWork work;
    work.forward = {{"a", Category::forward, Seconds(4)}};
    work.backward = {{"a", Category::backward, Seconds(10)}};
    work.forward[0].rate = work.backward[0].rate = 0.5;
    stage.works.push_back(std::move(work));
  }
  stage.buckets = {{1, Seconds(bucket)}, {0, Seconds(1)}};
  plan.stages.push_back(std::move(stage));
  return plan;
}

/// Whatever a step can be: layouts, schedules, ZeRO, experts, contexts, what is hidden.
class StepDice {
 public:
  explicit StepDice(unsigned seed) : random_(seed) {}
  int roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }

  StepInputs step() {
    StepInputs in = inputs(small_model(), layout(1 << roll(2), 1 << roll(3), 1 << roll(3)), 512, 1);
    in.layout.cp = 1 << roll(2);
    draw_options(in, roll(2) == 0, [this](int sides) { return roll(sides); });
    constexpr std::array schedules{PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe,
                                   PipelineSchedule::interleaved, PipelineSchedule::zb_h1,
                                   PipelineSchedule::zb_2p,       PipelineSchedule::zb_v,
                                   PipelineSchedule::dualpipe,    PipelineSchedule::dualpipe_v};
    in.layout.schedule = schedules[static_cast<std::size_t>(roll(8))];
    if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
    in.layout.sequence_parallel = roll(2) == 0;
    in.layout.cp_exchange = roll(2) == 0 ? ContextExchange::ring : ContextExchange::ulysses;
    in.options.zero = roll(4);
    in.options.overlap_cp = roll(2) == 0;
    in.options.delayed_all_reduce = in.layout.dp > 1 && roll(4) == 0;
    in.options.launch = roll(3) == 0 ? Seconds(20e-6) : Seconds{};
    in.options.bucket = Bytes(1'000'000 << roll(6));
    in.layout.uneven_stages = roll(2) == 0;
    if (in.layout.uneven_stages) in.model.layers = 8 + roll(9);
    in.model.tied_embeddings = roll(3) == 0;
    in.batch.global_batch = 2 * in.layout.dp * in.layout.pp * (1 + roll(3));
    return in;
  }

  /// So many that check_step accepts.
  template <class Visit>
  void steps(int cases, Visit visit) {
    Sample sample(11);
    while (cases > 0) {
      const StepInputs in = step();
      if (!check_step(in, 64, {}).empty()) continue;
      --cases;
      if (!sample.takes()) continue;
      CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep, in.options.zero,
              to_string(in.layout.schedule), in.model.layers, in.options.delayed_all_reduce, in.options.overlap_ep,
              in.options.overlap_cp, in.options.overlap_pp, in.options.launch.count());
      visit(in, std::array{1e9, 10e9, 100e9}[static_cast<std::size_t>(roll(3))]);
    }
  }

 private:
  std::mt19937 random_;
};

StepPlan planned_at(StepInputs in, double rate, double bandwidth) {
  in.kernels.beside_collectives = rate;
  return planned(in, priced(2e-6, bandwidth));
}

}  // namespace

TEST_CASE("kernels go at the rate that a collective leaves them until it is over") {
  const auto beside = [](double compute, double collective) {
    return beside_collective(0.5, Seconds(compute), Seconds(collective)).count();
  };
  CHECK(beside(10, 0) == Approx(10));
  CHECK(beside(10, 4) == Approx(12));   // 2 done in the first 4, 8 left
  CHECK(beside(10, 20) == Approx(20));  // done when the collective is
  CHECK(beside(10, 30) == Approx(20));  // which still runs
  CHECK(beside_collective(1, Seconds(10), Seconds(30)) == Seconds(10));
}

TEST_CASE("products and attention are slowed, kernels that are bound by memory are not") {
  KernelModel kernels = ideal_kernels();
  kernels.beside_collectives = 0.5;
  const Operation product = kernel(OperationKind::gemm, 3), core = kernel(OperationKind::attention, 1);
  const Operation norm = kernel(OperationKind::memory, 4);
  CHECK(rate_beside(kernels, std::vector{product, core}) == 0.5);
  CHECK(rate_beside(kernels, std::vector{norm}) == 1);
  CHECK(rate_beside(kernels, std::vector{product, core, norm}) == Approx(8.0 / (8 + 4)));  // 8 s take 4 x 2 + 4
  CHECK(rate_beside(kernels, {}) == 1);
  kernels.beside_collectives = 1;
  CHECK(rate_beside(kernels, std::vector{product, norm}) == 1);
}

TEST_CASE("messages of CP slow kernels within a node, and not between nodes") {
  const Fabric fabric = cluster(2);
  CHECK(messages_slow(Group::strided(Rank(0), 1, 8), fabric));
  CHECK(!messages_slow(Group::strided(Rank(0), 1, 16), fabric));
  CHECK(!messages_slow(Group::strided(Rank(4), 8, 2), fabric));
}

TEST_CASE("of rings of CP in several ways the one that is priced says whether it slows kernels") {
  // TP 1, CP 6 on nodes of 8: ranks 0-5 are on one node, 6-11 on two, and take longest.
  const Fabric fabric = cluster(3);
  StepInputs in = inputs(small_model(), layout(1, 1, 4), 768, 1);
  in.layout.cp = 6;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.options.overlap_cp = true;
  in.kernels.beside_collectives = 0.5;
  REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
  const StepPlan plan = make_plan(in, fabric, by_estimate(fabric, {})).value();
  const auto ring = std::ranges::find(plan.stages[0].collectives, "cp sendrecv", &CollectiveCost::name);
  REQUIRE(ring != plan.stages[0].collectives.end());
  CHECK(ring->request.group[0] == Rank(6));
  CHECK(plan.stages[0].slowed_by(Category::cp) == Seconds{});
  in.layout.dp = 1;
  CHECK(make_plan(in, fabric, by_estimate(fabric, {})).value().stages[0].slowed_by(Category::cp) > Seconds{});
}

TEST_CASE("a bucket slows the backward while it runs, and no longer") {
  // Forward 8 s, the backward of layer 1 until 18, then its bucket beside that of layer 0.
  const auto check_both = [](const StepPlan& plan, double step, double slowed, double exposed) {
    const StepEstimate e = estimate_step(plan);
    CHECK(e.total.count() == Approx(step));
    CHECK(e.terms.slowed.count() == Approx(slowed).margin(1e-12));
    CHECK(e.slowed_by_dp.count() == Approx(slowed).margin(1e-12));
    CHECK(e.breakdown.dp_exposed.count() == Approx(exposed));
    CHECK(e.breakdown.compute.count() == Approx(28 + slowed));
    CHECK(simulated(plan).count() == Approx(step));
  };
  check_both(two_layers(6), 28 + 3 + 1, 3, 1);     // 3 of 10 s done in 6, 7 left: 31; then the last bucket
  check_both(two_layers(20), 38 + 1, 10, 1);       // the product is over when the bucket is
  check_both(two_layers(30), 48 + 1, 10, 10 + 1);  // which goes on
  StepPlan apart = two_layers(6);
  apart.overlap_dp = false;
  check_both(apart, 28 + 6 + 1, 0, 7);
}

TEST_CASE("ZeRO-3 slows each pass by what is gathered and reduced beside it") {
  StepPlan plan = two_layers(0);
  plan.zero = 3;
  plan.stages[0].buckets.clear();
  for (UnitWork& work : plan.stages[0].works) {
    work.gather = Seconds(2);
    work.reduce = Seconds(4);
  }
  // Gather 2, F0 beside the gather of L1: 1 done in 2, 3 left, 5; F1 4; B1 beside the gather of L0: 11; B0 beside the
  // reduction of L1: 2 done in 4, 8 left, 12; reduction 4.
  CHECK(estimate_step(plan).total.count() == Approx(2 + 5 + 4 + 11 + 12 + 4));
  CHECK(estimate_step(plan).slowed_by_dp.count() == Approx(1 + 1 + 2));
  CHECK(simulated(plan).count() == Approx(38));
}

TEST_CASE("a wait for launches is shorter by what the pass has been slowed") {
  StepPlan plan = two_layers(6);
  plan.stages[0].works[0].backward.push_back({launch_wait_name, Category::backward, Seconds(5)});
  CHECK(estimate_step(plan).total.count() == Approx(28 + 5 + 1));  // 13 s of kernels, launched until 15
  CHECK(simulated(plan).count() == Approx(34));
  plan.stages[0].works[0].backward.back().time = Seconds(2);
  CHECK(estimate_step(plan).total.count() == Approx(31 + 1));
  CHECK(simulated(plan).count() == Approx(32));
}

TEST_CASE("a pass takes what its launches do, whatever hides by what it was slowed") {
  // 10 s of a product take 13 beside the bucket's 6, and an exchange beside them hides that, or 2 of 3 s.
  for (const double exchange : {30.0, 12.0}) {
    StepPlan plan = two_layers(6);
    std::vector<Stretch>& backward = plan.stages[0].works[0].backward;
    backward.front().beside = Seconds(exchange);
    backward.front().beside_is = Category::ep;
    backward.push_back({launch_wait_name, Category::backward, Seconds(30)});
    INFO("an exchange of " << exchange << " s");
    CHECK(estimate_step(plan).total.count() == Approx(8 + 10 + exchange + 30 + 1));
    CHECK(simulated(plan).count() == Approx(8 + 10 + exchange + 30 + 1));
  }
}

TEST_CASE("slowed steps: the closed form is the timeline, whatever hides") {
  StepDice dice(20'261'126);
  int slowed = 0;
  dice.steps(400, [&](const StepInputs& in, double bandwidth) {
    const StepPlan plan = planned_at(in, 0.6, bandwidth);
    const StepEstimate e = estimate_step(plan);
    slowed += e.slowed_by_dp > Seconds{} ? 1 : 0;
    CHECK(e.total.count() == Approx(simulated(plan).count()).epsilon(1e-8));
    CHECK(e.breakdown.total().count() == Approx(e.total.count()).epsilon(1e-9));
    CHECK(e.terms.total().count() == Approx(e.total.count()).epsilon(1e-12));
  });
  CHECK(slowed > (sanitized ? 3 : 60));
}

TEST_CASE("a slow-down never makes a step faster, nor more of it exposed than there is") {
  StepDice dice(7);
  dice.steps(200, [&](const StepInputs& in, double bandwidth) {
    // What a whole backward hides beside its weight gradients the slower B hides itself, so that buckets of the first
    // weight gradients may be full earlier.
    if (has_whole_backwards(in.layout) && in.options.overlap_ep) return;
    Seconds last{};
    for (const double rate : {1.0, 0.8, 0.4}) {
      const StepPlan plan = planned_at(in, rate, bandwidth);
      const StepEstimate e = estimate_step(plan);
      CHECK(e.total >= last * (1 - 1e-12));
      last = e.total;
      Seconds all{};
      for (const CollectiveCost& c : plan.stages[plan.slowest()].collectives)
        if (c.dimension == Dimension::dp) all += c.time * static_cast<double>(c.count);
      if (plan.stages.size() == 1) CHECK(e.breakdown.dp_exposed <= all * (1 + 1e-9));
    }
  });
}

TEST_CASE("at their own rate kernels are as they were, and without overlap whatever the rate") {
  StepDice dice(11);
  dice.steps(100, [&](StepInputs in, double bandwidth) {
    const StepPlan plan = planned_at(in, 1, bandwidth);
    CHECK(spell_out(plan).slowings.empty());
    CHECK(estimate_step(plan).terms.slowed == Seconds{});
    for (const StagePlan& stage : plan.stages)
      for (const Category of : {Category::tp, Category::cp, Category::ep}) CHECK(stage.slowed_by(of) == Seconds{});
    in.options.overlap_tp = TpOverlap::none;
    in.options.overlap_cp = in.options.overlap_ep = in.options.overlap_dp = in.options.delayed_all_reduce = false;
    if (!check_step(in, 64, {}).empty()) return;
    const StepPlan fast = planned_at(in, 1, bandwidth), slow = planned_at(in, 0.5, bandwidth);
    CHECK(estimate_step(fast).total == estimate_step(slow).total);
    CHECK(simulated(fast) == simulated(slow));
  });
}
