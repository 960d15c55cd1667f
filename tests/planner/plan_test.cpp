// The plan beside brute force, and the laws of a search.
#include "collcast/planner/plan.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "collcast/planner/why.hpp"
#include "planner/families.hpp"
#include "small_plans.hpp"
#include "workload/inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// All that a plan says, for comparing two.
std::string said(const PlanResult& p) {
  std::string text = std::to_string(p.evaluated) + " " + std::to_string(p.feasible) + "\n";
  const auto add = [&](const PlannedLayout& l) {
    const LayoutChoice& c = l.choice;
    for (const int n : {c.tp, c.pp, c.dp, c.micro_batch, c.sequence_parallel ? 1 : 0, static_cast<int>(c.recompute),
                        c.zero, c.vpp, c.cp, c.ep})
      text += std::to_string(n) + " ";
    char exact[64];
    std::snprintf(exact, sizeof exact, "%a %a", l.step().count(), l.breakdown.bubble.count());
    text += exact + std::to_string(l.memory.peak().value()) + "\n";
  };
  for (const PlannedLayout& l : p.ranked) add(l);
  for (const PlannedLayout& l : p.pareto) add(l);
  for (const Rejection& r : p.rejected) text += r.reason + std::to_string(r.count) + "\n";
  return text;
}

}  // namespace

TEST_CASE("the plan is what forecasting every layout by itself finds") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small();
  in.space.zero = GENERATE(std::vector<int>{}, std::vector<int>{0, 1, 2, 3});
  // What the second holds is known with its times alone.
  in.base.layout.schedule = GENERATE(PipelineSchedule::one_f_one_b, PipelineSchedule::zb_1p);
  in.base.layout.dp_shard = in.space.zero.empty() ? 0 : 4;
  const std::vector<int> stages = in.space.zero.empty() ? std::vector<int>{0, 1} : in.space.zero;
  const PlanResult p = planned(in, fabric);

  std::map<LayoutChoice, std::pair<Seconds, Bytes>> brute;
  std::int64_t too_large = 0, misfits = 0;
  for (int tp = 1; tp <= 16; tp *= 2)
    for (int pp = 1; tp * pp <= 16; pp *= 2)
      for (int micro_batch = 1; micro_batch * (16 / tp / pp) <= 32; micro_batch *= 2)
        for (const bool sp : {false, true})
          for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
            for (const int zero : stages) {
              const LayoutChoice choice{tp, pp, 16 / tp / pp, micro_batch, sp, recompute, zero};
              if ((sp && tp == 1) || (zero > 0 && choice.dp == 1)) continue;  // the same as without
              StepInputs step = in.base;
              put(choice, step);
              if (!check_step(step, 16, here).empty()) {
                ++misfits;
                continue;
              }
              const StepResult r = forecast_step(step, fabric, {}, Method::estimate).value();
              if (r.memory.peak() > r.memory.capacity)
                ++too_large;
              else
                brute[choice] = {r.step, r.memory.peak()};
            }
  REQUIRE(brute.size() > 50);
  REQUIRE(too_large > 10);
  CHECK(p.feasible == static_cast<std::int64_t>(brute.size()));
  CHECK(rejected(p) == too_large + misfits);
  CHECK(p.evaluated == p.feasible + rejected(p));
  for (const PlannedLayout& l : p.ranked) {
    REQUIRE(brute.count(l.choice) == 1);
    CHECK(l.estimate.count() == Approx(brute[l.choice].first.count()).epsilon(1e-12));
    CHECK(l.memory.peak() == brute[l.choice].second);
  }
  for (std::size_t i = 1; i < p.ranked.size(); ++i) CHECK(p.ranked[i - 1].step() <= p.ranked[i].step());
}

TEST_CASE("gradients and weights are split where the scenario does so or is asked to, on every schedule") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small();
  const auto splits = [](const PlanResult& p) {
    return std::ranges::any_of(p.ranked, [](const PlannedLayout& l) { return l.choice.zero >= 2; });
  };
  CHECK_FALSE(splits(planned(in, fabric)));
  in.base.options.zero = 3;
  const PlanResult p = planned(in, fabric);
  CHECK(splits(p));
  CHECK(std::ranges::any_of(p.ranked, [](const PlannedLayout& l) { return l.choice.zero == 3 && l.choice.pp > 1; }));
  in.base.options.no_sync = true;
  for (const PlannedLayout& l : planned(in, fabric).ranked) CHECK((l.choice.zero != 2 || l.choice.dp == 1));
  in.base.options.no_sync = false;
  in.base.layout.schedule = PipelineSchedule::dualpipe;
  const PlanResult two_ways = planned(in, fabric);
  CHECK(std::ranges::any_of(two_ways.ranked,
                            [](const PlannedLayout& l) { return l.choice.zero == 3 && l.choice.pp > 1; }));
  CHECK(planner::objections(in, {1, 2, 8, 1, false, Recompute::none, 3}, 8).empty());
}

TEST_CASE("a sharding group of a layout is the largest divisor of its replicas that is not above what was asked for") {
  for (int asked = 0; asked <= 40; ++asked)
    for (int dp = 0; dp <= 40; ++dp) {
      ParallelLayout base;
      base.dp_shard = asked;
      const int shard = dp_shard_of({1, 1, dp}, base);
      int largest = 0;
      for (int d = 1; d <= asked; ++d)
        if (std::max(dp, 1) % d == 0) largest = d;
      CHECK(shard == largest);
      // Once more it is the same.
      base.dp_shard = shard;
      CHECK(dp_shard_of({1, 1, dp}, base) == shard);
    }
}

TEST_CASE("stages of ZeRO that are asked for are looked at without an optimizer, too") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small();
  in.base.options.optimizer = false;
  for (const PlannedLayout& l : planned(in, fabric).ranked) CHECK(l.choice.zero == 0);
  in.space.zero = {0, 1};
  std::map<int, int> of_stage;
  for (const PlannedLayout& l : planned(in, fabric).ranked) {
    if (l.choice.dp == 1) continue;
    ++of_stage[l.choice.zero];
    StepInputs step = in.base;
    put(l.choice, step);
    CHECK(l.estimate.count() ==
          Approx(forecast_step(step, fabric, {}, Method::estimate).value().step.count()).epsilon(1e-12));
  }
  CHECK(of_stage[0] > 0);
  CHECK(of_stage[1] == of_stage[0]);
}

TEST_CASE("context parallelism is searched where it is asked for, and takes its part of the GPUs") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small();
  for (const PlannedLayout& l : planned(in, fabric).ranked) CHECK(l.choice.cp == 1);
  in.base.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.space.cp = {1, 2, 3, 4};
  in.space.recompute = {Recompute::none};
  const PlanResult p = planned(in, fabric);
  std::set<int> seen;
  for (const PlannedLayout& l : p.ranked) {
    seen.insert(l.choice.cp);
    CHECK(l.choice.tp * l.choice.pp * l.choice.dp * l.choice.cp == 16);
    StepInputs step = in.base;
    put(l.choice, step);
    const StepResult r = forecast_step(step, fabric, {}, Method::estimate).value();
    CHECK(l.estimate.count() == Approx(r.step.count()).epsilon(1e-12));
    CHECK(l.memory.peak() == r.memory.peak());
  }
  CHECK(seen == std::set<int>{1, 2, 4});
  CHECK(std::ranges::any_of(p.rejected, [](const Rejection& r) {
    return r.reason == to_string(ObjectionKind::degrees_with_cp_do_not_divide);
  }));
  CHECK(planner::objections(in, {1, 1, 1, 1, false, Recompute::none, 0, 1, 3}, 8) ==
        std::vector<std::string>{"tp 1 x pp 1 x cp 3 does not divide the 16 GPUs"});
  // A scenario that has it makes the search try all.
  in.space.cp.clear();
  in.base.layout.cp = 2;
  CHECK(std::ranges::any_of(planned(in, fabric).ranked, [](const PlannedLayout& l) { return l.choice.cp == 4; }));
}

TEST_CASE("expert parallelism is searched where it is asked for, within the ranks of a stage") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small();
  in.base.model.experts = {8, 2, 1024};
  in.base.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.space.recompute = {Recompute::none};
  for (const PlannedLayout& l : planned(in, fabric).ranked) CHECK(l.choice.ep == 1);
  in.space.ep = {1, 2, 3, 8};
  const PlanResult p = planned(in, fabric);
  std::set<int> seen, tensor_parallel;
  for (const PlannedLayout& l : p.ranked) {
    seen.insert(l.choice.ep);
    tensor_parallel.insert(l.choice.tp);
    CHECK(l.choice.dp % l.choice.ep == 0);  // expert TP is TP here
    CHECK((l.choice.tp == 1 || l.choice.sequence_parallel));
    StepInputs step = in.base;
    put(l.choice, step);
    const StepResult r = forecast_step(step, fabric, {}, Method::estimate).value();
    CHECK(l.estimate.count() == Approx(r.step.count()).epsilon(1e-12));
    CHECK(l.memory.peak() == r.memory.peak());
  }
  CHECK(seen == std::set<int>{1, 2, 8});
  // What rules out TP without sequence parallelism does not rule it out with it.
  CHECK(tensor_parallel.contains(2));
  CHECK(std::ranges::any_of(p.rejected, [](const Rejection& r) {
    return r.reason == "ep 3 does not divide the 8 experts, nor 16 ranks of a stage";
  }));
  CHECK(std::ranges::any_of(
      p.rejected, [](const Rejection& r) { return r.reason == "experts with tp 2 need sequence parallelism"; }));
  // A scenario that has it makes the search try all that the experts and the ranks allow.
  in.space.ep.clear();
  in.base.layout.ep = 2;
  std::set<int> all;
  for (const PlannedLayout& l : planned(in, fabric).ranked) all.insert(l.choice.ep);
  CHECK(all == std::set<int>{1, 2, 4, 8});
  // Asked about by itself, and completed from the best.
  LayoutQuestion q;
  q.ep = 4;
  CHECK(complete(q, planned(in, fabric), in).ep == 4);
}

TEST_CASE("a sharding group without all experts rules out ZeRO, for that reason and not for memory") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small();
  in.base.model.experts = {8, 2, 1024};
  in.base.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.base.layout.dp_shard = 2;
  in.space.tp = in.space.pp = {1};
  in.space.ep = {8};
  in.space.zero = {0, 1, 2, 3};
  const PlanResult p = planned(in, fabric);
  CHECK(p.feasible > 0);
  for (const PlannedLayout& l : p.ranked) {
    CHECK(l.choice.zero == 0);
    StepInputs step = in.base;
    put(l.choice, step);
    CHECK(l.estimate.count() == Approx(forecast_on_two(step).step.count()).epsilon(1e-12));
  }
  const std::string reason =
      "the 2 ranks of a stage that dp_shard 2 splits states over are no whole groups of the 8 that ep 8 and etp 1 "
      "spread all experts over";
  const auto said = std::ranges::find(p.rejected, reason, &Rejection::reason);
  REQUIRE(said != p.rejected.end());
  CHECK(said->count == p.evaluated / 4 * 3);
  LayoutChoice choice = p.ranked.front().choice;
  choice.zero = 1;
  CHECK(planner::objections(in, choice, 8) == std::vector<std::string>{reason});
  CHECK((!p.smallest || p.smallest->choice.zero == 0));
}

TEST_CASE("beside dualpipe an interleaved layout needs no even number of micro-batches") {
  PlanInputs in = small(40'000'000'000);
  in.base.layout.schedule = PipelineSchedule::dualpipe;
  in.base.model.layers = 6;
  in.base.batch.global_batch = 6;
  in.gpus = 6;
  in.space.pp = {3};
  in.space.tp = in.space.micro_batch = {1};
  in.space.vpp = {2};
  const PlanResult p = planned(in, cluster(1));
  CHECK(p.feasible == p.evaluated);
  CHECK(p.feasible > 0);
  in.space.pp = {2};  // of three micro-batches none has half from either end
  in.gpus = 4;
  in.space.vpp = {1};
  const PlanResult two_ways = planned(in, cluster(1));
  CHECK(two_ways.feasible == 0);
  REQUIRE(two_ways.rejected.size() == 1);
  CHECK(two_ways.rejected[0].kind == ObjectionKind::half_from_either_end);
}

TEST_CASE("each reason of a rejection is one that a single layout gives") {
  const PlanInputs in = small();
  const PlanResult p = planned(in, cluster(2));
  std::set<std::string> reasons;
  for (const Rejection& r : p.rejected) reasons.insert(r.reason);
  CHECK(reasons.count("pp 16 does not divide layers 8") == 1);
  CHECK(planner::objections(in, {1, 16, 1, 1, false, Recompute::none, 0}, 8) ==
        std::vector<std::string>{"pp 16 does not divide layers 8"});
  // By what it allocates, its state being smaller; and by what CUDA, NCCL and the allocator take besides.
  const LayoutChoice large{1, 1, 16, 2, false, Recompute::none, 0};
  StepInputs step = in.base;
  put(large, step);
  const MemoryUse use = stage_memory(step, 0, 8);
  REQUIRE(use.state() < use.allocated() - Bytes(1));
  CHECK(planner::objections(small(use.allocated().value() - 1), large, 8) ==
        std::vector<std::string>{to_string(ObjectionKind::activations_do_not_fit)});
  CHECK(planner::objections(small(use.allocated().value()), large, 8) ==
        std::vector<std::string>{to_string(ObjectionKind::runtime_does_not_fit)});
  CHECK(planner::objections(small(use.peak().value() - 1), large, 8) ==
        std::vector<std::string>{to_string(ObjectionKind::runtime_does_not_fit)});
  CHECK(planner::objections(small(use.peak().value()), large, 8).empty());
  CHECK(planner::objections(in, {3, 1, 5, 1, false, Recompute::none, 0}, 8) ==
        std::vector<std::string>{"tp 3 x pp 1 does not divide the 16 GPUs; nearest that does: tp 2 or 4"});
  CHECK(planner::objections(in, {8, 1, 2, 3, false, Recompute::none, 0}, 8) ==
        std::vector<std::string>{to_string(ObjectionKind::batch_does_not_divide)});
  CHECK(planner::objections(in, p.ranked.front().choice, 8).empty());
}

TEST_CASE("a layout of sequence parallelism is not rejected for having none") {
  PlanInputs in = small();
  // Experts ask for sequence parallelism with tp 2; what is wrong with tp 2 x pp 4 is the layers.
  in.base.model.layers = 6;
  in.base.model.experts = {.count = 8, .top_k = 2, .ffn = 512};
  in.space.sequence_parallel = {true};
  const PlanResult p = planned(in, cluster(2));
  std::set<std::string> said;  // of every layout by itself
  for (int tp = 1; tp <= 16; tp *= 2)
    for (int pp = 1; tp * pp <= 16; pp *= 2)
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
        for (int micro_batch = 1; micro_batch * (16 / tp / pp) <= 32; micro_batch *= 2)
          for (const std::string& why :
               planner::objections(in, {tp, pp, 16 / tp / pp, micro_batch, true, recompute, tp * pp == 16 ? 0 : 1}, 8))
            said.insert(why);
  CHECK(said.contains("pp 4 does not divide layers 6"));
  CHECK(p.rejected.size() > 1);
  for (const Rejection& r : p.rejected) {
    INFO(r.reason);
    const auto of = [&](const std::string& why) { return why == r.reason || why.starts_with(r.reason + ","); };
    CHECK(std::ranges::any_of(said, of));
  }
}

TEST_CASE("what is against a way of recomputing is asked of every layout that has it, in any order") {
  PlanInputs in = small();
  in.base.options.recompute_modules = {};
  for (const bool alone : {false, true}) {
    in.space.recompute = alone ? std::vector{Recompute::selective} : std::vector<Recompute>{};
    const PlanResult p = planned(in, cluster(2));
    for (const PlannedLayout& l : p.ranked) {
      CHECK(l.choice.recompute != Recompute::selective);
      StepInputs step = in.base;
      put(l.choice, step);
      CHECK(check_step(step, 16, here).empty());
    }
    CHECK(p.ranked.empty() == alone);
    const auto empty = std::ranges::find(
        p.rejected, "recompute_modules is empty: recompute selective computes nothing once more", &Rejection::reason);
    CHECK(empty != p.rejected.end());
    CHECK(p.evaluated == p.feasible + rejected(p));
  }
}

TEST_CASE("memory is asked before the number of gradient buckets, which then rules out what fits") {
  const Fabric fabric = cluster(2);
  const auto reasons = [&](std::int64_t memory, std::int64_t bucket) {
    PlanInputs in = small(memory);
    in.base.options.bucket = Bytes(bucket);
    in.space.tp = in.space.pp = {1};
    std::set<std::string> out;
    for (const Rejection& r : planned(in, fabric).rejected) out.insert(r.reason);
    CHECK(planner::objections(in, {1, 1, 16, 1, false, Recompute::none, 0}, 8) ==
          std::vector<std::string>(out.begin(), out.end()));
    return out;
  };
  // Gradients of hundreds of MB in buckets of 1 KiB are far more than 10000.
  const std::set<std::string> both = reasons(1'000'000, 1024), few = reasons(80'000'000'000, 1024);
  CHECK(both == std::set<std::string>{to_string(ObjectionKind::state_does_not_fit)});
  REQUIRE(few.size() == 1);
  CHECK(few.begin()->find("into more than 10000 pieces") != std::string::npos);
  CHECK(reasons(80'000'000'000, 100'000'000).empty());
  // ZeRO-3 has none.
  PlanInputs split = small(80'000'000'000);
  split.base.options.bucket = Bytes(1024);
  split.space.tp = split.space.pp = {1};
  split.space.zero = GENERATE(std::vector<int>{0, 3}, std::vector<int>{3, 0});
  const PlanResult p = planned(split, fabric);
  CHECK((p.feasible > 0 && rejected(p) == p.feasible));
  for (const PlannedLayout& l : p.ranked) CHECK(l.choice.zero == 3);
}

TEST_CASE("the result is the same from one, two and four threads") {
  const Fabric fabric = cluster(4);
  PlanInputs in = small();
  in.gpus = 32;
  const std::string one = said(planned(in, fabric, {1, 4}));
  CHECK(said(planned(in, fabric, {2, 4})) == one);
  CHECK(said(planned(in, fabric, {4, 4})) == one);
  CHECK(said(planned(in, fabric, {0, 4})) == one);
}

TEST_CASE("more memory never makes a layout infeasible, less never helps") {
  const Fabric fabric = cluster(2);
  std::int64_t before = -1;
  Seconds best{1e9};
  for (const std::int64_t memory :
       {100'000'000LL, 1'000'000'000LL, 2'000'000'000LL, 8'000'000'000LL, 80'000'000'000LL}) {
    const PlanResult p = planned(small(memory), fabric);
    CHECK(p.feasible >= before);
    before = p.feasible;
    if (p.ranked.empty()) continue;
    CHECK(p.ranked.front().step() <= best);
    best = p.ranked.front().step();
  }
  CHECK(before > 0);
  const PlanResult none = planned(small(100'000'000), fabric);
  CHECK(none.feasible == 0);
  // With what the smallest needs it alone would fit, or layouts that need as much.
  REQUIRE(none.smallest);
  const PlanResult just = planned(small(none.smallest->memory.peak().value()), fabric);
  REQUIRE(just.feasible >= 1);
  for (const PlannedLayout& l : just.ranked) CHECK(l.memory.peak() == none.smallest->memory.peak());
}

TEST_CASE("no layout is both faster and smaller than one of the Pareto set, and each of it beats its neighbours") {
  const PlanResult p = planned(small(), cluster(2));
  REQUIRE(p.pareto.size() > 1);
  for (const PlannedLayout& front : p.pareto)
    for (const PlannedLayout& other : p.ranked)
      CHECK_FALSE((other.estimate < front.estimate && other.memory.peak() < front.memory.peak()));
  for (std::size_t i = 1; i < p.pareto.size(); ++i) {
    CHECK(p.pareto[i - 1].estimate <= p.pareto[i].estimate);
    CHECK(p.pareto[i - 1].memory.peak() > p.pareto[i].memory.peak());
  }
}

TEST_CASE("a space keeps to its values, and a value given twice counts once") {
  const Fabric fabric = cluster(2);
  PlanInputs in = small();
  in.space.tp = {2, 4, 2};
  in.space.pp = {2};
  in.space.micro_batch = {1, 3};
  in.space.recompute = {Recompute::full};
  in.space.zero = {1};
  in.space.sequence_parallel = {true};
  const PlanResult p = planned(in, fabric);
  // tp 2 and 4, micro-batch 1; 3 divides no 32 samples of dp 4 or 2.
  CHECK(p.feasible == 2);
  CHECK(p.evaluated == 4);
  REQUIRE(p.rejected.size() == 1);
  CHECK(p.rejected[0].reason == to_string(ObjectionKind::batch_does_not_divide));
  for (const PlannedLayout& l : p.ranked)
    CHECK((l.choice.pp == 2 && l.choice.micro_batch == 1 && l.choice.sequence_parallel && l.choice.zero == 1 &&
           l.choice.recompute == Recompute::full));
  in.space = {};
  in.space.dp = {4};
  for (const PlannedLayout& l : planned(in, fabric).ranked) CHECK(l.choice.dp == 4);
  in.space = {};
  in.space.tp = {3};
  CHECK(planned(in, fabric).rejected[0].reason == to_string(ObjectionKind::degrees_do_not_divide));
}

TEST_CASE("degrees whose product is not the GPUs are counted, where all were named or nothing else is left") {
  const Fabric fabric = cluster(2);  // 16 GPUs
  PlanInputs in = small();
  in.space.micro_batch = {1};
  in.space.recompute = {Recompute::full};
  in.space.zero = {0};
  in.space.sequence_parallel = {false};
  const auto reasons = [&] {
    const PlanResult p = planned(in, fabric);
    std::vector<std::pair<std::string, std::int64_t>> out;
    for (const Rejection& r : p.rejected) out.emplace_back(r.reason, r.count);
    CHECK(p.evaluated > p.feasible);
    return out;
  };
  using Reasons = std::vector<std::pair<std::string, std::int64_t>>;
  in.space.tp = {8};
  in.space.pp = {8};
  in.space.dp = {8};
  CHECK(reasons() ==
        Reasons{{to_string(ObjectionKind::degrees_are_not_gpus), 1}});  // 512, and 8 x 8 divides no 16 either
  in.space.tp = {2, 4};
  in.space.pp = {2};
  in.space.dp = {4, 8};
  CHECK(reasons() ==
        Reasons{{to_string(ObjectionKind::degrees_are_not_gpus), 3}});  // of 2x2x8, 4x2x4 and 4x2x8; 2x2x4 runs
  in.space.tp = {};
  in.space.pp = {};
  in.space.dp = {5};
  const Reasons none = reasons();
  REQUIRE(none.size() == 1);
  CHECK(none[0].first == to_string(ObjectionKind::degrees_are_not_gpus));
  // 2^22 x 2^22 x 2^20 = 2^64, which is 0 in 64 bits.
  in.space.tp = in.space.pp = {4'194'304};
  in.space.cp = {1'048'576};
  in.space.dp = {};
  CHECK(reasons() == Reasons{{to_string(ObjectionKind::degrees_with_cp_do_not_divide), 1}});
}

TEST_CASE("the best are simulated, come first, and keep their closed form beside it") {
  const Fabric fabric = cluster(2);
  const PlanResult p = planned(small(), fabric, {1, 3});
  for (std::size_t i = 0; i < p.ranked.size(); ++i) CHECK(p.ranked[i].simulate.has_value() == (i < 3));
  for (std::size_t i = 0; i < 3; ++i) {
    const PlannedLayout& l = p.ranked[i];
    CHECK(l.estimate.count() == Approx(l.simulate->count()).epsilon(0.02));
    CHECK(l.breakdown.total().count() == Approx(l.step().count()).epsilon(1e-9));
    StepInputs step = small().base;
    put(l.choice, step);
    CHECK(l.step() == forecast_step(step, fabric, {}, Method::both).value().step);
  }
}

TEST_CASE("stopped, a plan hands over what it has and says so") {
  const Fabric fabric = cluster(2);
  const PlanResult whole = planned(small(), fabric);
  CHECK_FALSE(whole.partial);
  PlanOptions at_once{1, 8};
  at_once.stop = [] { return true; };
  const PlanResult none = planned(small(), fabric, at_once);
  CHECK(none.partial);
  CHECK(none.evaluated == 0);
  std::atomic<int> asked = 0;
  PlanOptions midway{1, 8};
  midway.stop = [&asked] { return ++asked > 60; };
  const PlanResult some = planned(small(), fabric, midway);
  CHECK(some.partial);
  CHECK(some.feasible > 0);
  CHECK(some.feasible < whole.feasible);
  CHECK(some.evaluated == some.feasible + rejected(some));
  CHECK_FALSE(some.all_seen);
}

TEST_CASE("stopped within its simulations, a plan has seen every layout; after the last it is whole") {
  const Fabric fabric = cluster(2);
  const auto stopped_after = [&](std::size_t simulations) {
    bool enough = false;
    PlanOptions options{1, 2};
    options.progress = [&](const char* what, std::size_t done, std::size_t) {
      enough = what == std::string("simulating") && done >= simulations;
    };
    options.stop = [&] { return enough; };
    return planned(small(), fabric, options);
  };
  const PlanResult one = stopped_after(1);
  CHECK(one.partial);
  CHECK(one.all_seen);
  CHECK(one.evaluated == planned(small(), fabric).evaluated);
  CHECK_FALSE(stopped_after(2).partial);
}

TEST_CASE("stopped within its simulations, a plan has simulated its best by closed form and is ranked by time alone") {
  const Fabric fabric = cluster(2);
  const int threads = GENERATE(1, 2, 7);
  const PlanResult by_closed_form = planned(small(), fabric);
  const auto all = by_closed_form.ranked.size();
  REQUIRE(all > 60);
  std::atomic<bool> enough = false;
  PlanOptions options{threads, static_cast<int>(all)};
  options.progress = [&](const char* what, std::size_t done, std::size_t) {
    if (what == std::string("simulating") && done >= 20) enough = true;
  };
  options.stop = [&] { return enough.load(); };
  const PlanResult p = planned(small(), fabric, options);
  CHECK(p.partial);
  CHECK(std::ranges::is_sorted(p.ranked, {}, &PlannedLayout::step));
  // Those that were simulated are the first of the closed forms' order, but for those that each thread was at when it
  // was stopped.
  std::set<LayoutChoice> simulated;
  for (const PlannedLayout& l : p.ranked)
    if (l.simulate) simulated.insert(l.choice);
  CHECK(simulated.size() >= 20);
  CHECK(simulated.size() < all);
  const std::size_t begun = simulated.size() + static_cast<std::size_t>(threads);
  std::size_t among_first = 0;
  for (std::size_t i = 0; i < begun && i < all; ++i) among_first += simulated.count(by_closed_form.ranked[i].choice);
  CHECK(among_first == simulated.size());
}

TEST_CASE("progress counts every layout once, then the simulations") {
  std::map<std::string, std::size_t> last, totals;
  PlanOptions options{2, 2};
  options.progress = [&](const char* what, std::size_t done, std::size_t total) {
    CHECK(done > last[what]);
    CHECK(done <= total);
    last[what] = done;
    totals[what] = total;
  };
  const PlanResult p = planned(small(), cluster(2), options);
  CHECK(last["layouts"] == static_cast<std::size_t>(p.evaluated));
  CHECK(last["simulating"] == 2);
  CHECK(last == totals);
  // Layouts that are ruled out together count as many as they are.
  PlanInputs odd = small();
  odd.space.tp = {3};
  last.clear();
  totals.clear();
  const PlanResult none = planned(odd, cluster(2), options);
  CHECK(none.feasible == 0);
  CHECK(last["layouts"] == static_cast<std::size_t>(none.evaluated));
}

TEST_CASE("a layout whose memory is beyond count is rejected, not wrapped into one that fits") {
  PlanInputs in = small();
  in.base.layout.schedule = PipelineSchedule::gpipe;
  in.base.batch.sequence = 10'000'000;
  in.base.batch.global_batch = 10'000'000;
  const PlanResult found = planned(in, cluster(2), {2, 0});
  CHECK(found.ranked.empty());
  REQUIRE_FALSE(found.rejected.empty());
  const auto beyond = [](const Rejection& r) { return r.reason.find("1 EiB") != std::string::npos; };
  CHECK(std::ranges::any_of(found.rejected, beyond));
  REQUIRE(found.smallest.has_value());  // full recomputation over many stages can be counted
  CHECK(found.smallest->memory.peak() > in.base.gpu.memory);
}

TEST_CASE("what no layout can mend is an error") {
  PlanInputs in = small();
  in.base.options.precision = "fp4";
  const auto result = plan(in, cluster(2), {1, 0}, here);
  REQUIRE_FALSE(result.ok());
  CHECK(to_text(result.errors()).find("fp4") != std::string::npos);
}
