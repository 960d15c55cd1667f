// Sharded data parallelism: the laws of ZeRO-2, ZeRO-3 and HSDP, and formula against timeline.
#include "workload/sharded.hpp"

#include <catch2/catch.hpp>

#include <random>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

Result<Seconds> free_of_charge(const CollectiveRequest&) { return Seconds{}; }

StepInputs sharded(int zero, int dp, int micro_batches = 2) {
  StepInputs in = inputs(small_model(), layout(1, 1, dp), 1024, micro_batches);
  in.options.zero = zero;
  return in;
}

/// Eight experts a layer, two for each token.
StepInputs mixture_of(int ep, int tp, int dp, int etp = 0) {
  StepInputs in = inputs(small_model(), layout(tp, 1, dp), 2048, 2);
  in.model.experts.count = 8;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = 2048;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.ep = ep;
  in.layout.etp = etp;
  in.layout.sequence_parallel = tp > 1;
  return in;
}

/// What a rank sends in a step for data parallelism, by bandwidth-optimal algorithms.
double sent(const StepPlan& plan) {
  double bytes = 0;
  for (const CollectiveCost& c : plan.stages.front().collectives) {
    if (c.dimension != Dimension::dp) continue;
    const double k = c.request.group.size(), rounds = c.request.kind == CollectiveKind::all_reduce ? 2 : 1;
    bytes += static_cast<double>(c.count) * rounds * (k - 1) / k * static_cast<double>(c.request.size.value());
  }
  return bytes;
}

class PlanDice {
 public:
  explicit PlanDice(unsigned seed) : random_(seed) {}
  int up_to(int most) { return static_cast<int>(random_() % static_cast<unsigned>(most)); }
  Seconds time(double most) { return Seconds(most * up_to(1000) / 1000); }

 private:
  std::mt19937 random_;
};

/// Units of random times on one stage.
StepPlan random_plan(PlanDice& dice, Seconds compute, Seconds exchange) {
  StepPlan plan;
  plan.zero = 3;
  plan.micro_batches = 1 + dice.up_to(4);
  plan.overlap_dp = dice.up_to(4) > 0;
  plan.reshard = dice.up_to(3) > 0;
  StagePlan stage;
  const int units = 1 + dice.up_to(6);
  for (int u = 0; u < units; ++u) {
    stage.units.push_back({UnitKind::layer, "L" + std::to_string(u), stage.works.size(), 0});
    UnitWork work;
    work.forward = {{"a", Category::forward, dice.time(compute.count())}, {"b", Category::tp, dice.time(1e-3)}};
    work.backward = {{"a", Category::backward, dice.time(2 * compute.count())}};
    work.gather = dice.time(exchange.count());
    work.reduce = dice.time(exchange.count());
    stage.works.push_back(std::move(work));
  }
  plan.stages.push_back(std::move(stage));
  return plan;
}

}  // namespace

TEST_CASE("ZeRO-3: the closed form is the timeline, whatever covers what") {
  PlanDice dice(7);
  for (int i = 0; i < 400; ++i) {
    const double exchange = std::array{1e-3, 10e-3, 100e-3}[static_cast<std::size_t>(dice.up_to(3))];
    const StepPlan plan = random_plan(dice, Seconds(10e-3), Seconds(exchange));
    const Timeline run = timeline(plan);
    CAPTURE(i, plan.overlap_dp, plan.reshard, plan.micro_batches, plan.stages[0].units.size());
    // Each operation ends up to a picosecond late.
    const double rounding = 1e-12 * static_cast<double>(run.ops.size());
    CHECK(estimate_step(plan).total.count() == Approx(to_seconds(run.finish).count()).margin(rounding).epsilon(0));
  }
}

TEST_CASE("where computing covers the exchange only the first gather and the last reduction show") {
  PlanDice dice(3);
  StepPlan plan = random_plan(dice, Seconds(1), Seconds(1e-6));
  plan.overlap_dp = true;
  const UnitWork& first = plan.stages[0].work(plan.stages[0].units.front());
  CHECK(estimate_step(plan).terms.sharding.exposed().count() ==
        Approx((plan.micro_batches * (first.gather + first.reduce)).count()));
  // Where it never does, all shows but what is computed beside it: all passes except the first forward's gather.
  for (UnitWork& work : plan.stages[0].works) work.forward = work.backward = {{"", Category::forward, {}}};
  const ShardingTerms never = sharding_terms(sharded_passes(plan.stages[0], plan.reshard, true), true);
  const ShardingTerms serial = sharding_terms(sharded_passes(plan.stages[0], plan.reshard, false), false);
  CHECK(never.exposed().count() == Approx(serial.exposed().count()));
}

TEST_CASE("overlap never costs, and off it every gather and reduction shows") {
  for (const int zero : {2, 3}) {
    StepInputs in = sharded(zero, 8);
    const Seconds overlapped = estimate_step(planned(in)).total;
    in.options.overlap_dp = false;
    const StepPlan plan = planned(in);
    CHECK(overlapped < estimate_step(plan).total);
    Seconds all{};
    for (const CollectiveCost& c : plan.stages[0].collectives) all += c.time * static_cast<double>(c.count);
    CHECK(estimate_step(plan).breakdown.dp_exposed.count() == Approx(all.count()));
  }
}

TEST_CASE("whole steps: closed form and timeline agree, and the breakdown is the closed form's") {
  const Fabric fabric = cluster(4);
  for (const int zero : {2, 3})
    for (const int tp : {1, 2})
      for (const int shard : {0, 1, 4})
        for (const bool overlap : {true, false})
          for (const bool reshard : {true, false}) {
            StepInputs in = sharded(zero, 8, 3);
            in.layout.tp = tp;
            in.layout.dp_shard = shard;
            in.options.overlap_dp = overlap;
            in.options.reshard_after_forward = reshard;
            CAPTURE(zero, tp, shard, overlap, reshard);
            const StepPlan plan = planned(in);
            CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
            const auto result = forecast_step(in, fabric, {}, Method::both);
            REQUIRE(result.ok());
            CHECK(result->breakdown.total().count() == Approx(result->step.count()).epsilon(1e-9));
            CHECK(result->critical_path->time.total().count() == Approx(result->step.count()).epsilon(1e-9));
            CHECK(result->estimate.count() == Approx(result->simulate->count()).epsilon(0.05));
          }
}

TEST_CASE("bytes sent: ZeRO-1 and 2 as plain DP per reduction, ZeRO-3 once more, less the turn's gather") {
  StepInputs in = sharded(0, 8, 1);
  in.options.gradient_bytes = 2;
  const double parameters = stage_parameters(in, 0).total(), plain = sent(planned(in));
  CHECK(plain == Approx(2 * 7. / 8 * 2 * parameters).epsilon(1e-6));
  in.options.zero = 1;
  CHECK(sent(planned(in)) == Approx(plain).epsilon(1e-6));
  in.options.zero = 2;
  CHECK(sent(planned(in)) == Approx(plain).epsilon(1e-6));
  in.options.zero = 3;
  // 1.5 times, but the unit that ends the forward is not gathered for the backward again.
  const double kept = 7. / 8 * 2 * unit_parameters(in, 0).back().used;
  CHECK(sent(planned(in)) == Approx(1.5 * plain - kept).epsilon(1e-6));
  in.options.reshard_after_forward = false;
  CHECK(sent(planned(in)) == Approx(plain).epsilon(1e-6));
  // And all of it for every micro-batch, of ZeRO-2 the reductions.
  in.batch.global_batch *= 4;
  CHECK(sent(planned(in)) == Approx(4 * plain).epsilon(1e-6));
  in.options.zero = 2;
  CHECK(sent(planned(in)) == Approx(2.5 * plain).epsilon(1e-6));
}

TEST_CASE("sharding costs nothing where exchanges are free, and nothing on one replica") {
  for (const int zero : {1, 2, 3}) {
    StepInputs in = sharded(zero, 8);
    in.options.optimizer = false;
    const Seconds free = estimate_step(planned(in, free_of_charge)).total;
    in.options.zero = 0;
    CHECK(free.count() == Approx(estimate_step(planned(in, free_of_charge)).total.count()).epsilon(1e-12));

    in = sharded(zero, 1);
    const StepPlan one = planned(in);
    const MemoryUse memory = stage_memory(in, 0, 8);
    in.options.zero = 0;
    CHECK(estimate_step(one).total == estimate_step(planned(in)).total);
    CHECK(stage_memory(in, 0, 8).peak() == memory.peak());
  }
}

TEST_CASE("a state that is split is 1/D on each rank; more replicas never need more memory for tensors") {
  for (const int zero : {1, 2, 3})
    for (const bool reshard : {true, false}) {
      StepInputs in = sharded(zero, 1);
      in.options.reshard_after_forward = reshard;
      const MemoryUse whole = stage_memory(in, 0, 8);
      Bytes before = whole.allocated();
      for (const int dp : {2, 4, 8, 64, 512}) {
        in.layout.dp = dp;
        const MemoryUse m = stage_memory(in, 0, 8);
        CAPTURE(zero, reshard, dp);
        CHECK(m.allocated() < before);
        before = m.allocated();
        const auto part = [&](Bytes now, Bytes all, bool split) {
          CHECK(static_cast<double>(now.value()) ==
                Approx(static_cast<double>(all.value()) / (split ? dp : 1)).margin(1));
        };
        part(m.optimizer, whole.optimizer, true);
        part(m.gradients, whole.gradients, zero >= 2);
        part(m.parameters, whole.parameters, zero >= 3);
      }
    }
}

TEST_CASE("ZeRO-3 holds two units whole, without overlap one") {
  StepInputs in = sharded(3, 8);
  // The head, 1024 x 32001 parameters, beside a layer: weights in 2 bytes, gradients in 4.
  const double head = 1024.0 * 32001, layer = layer_parameters(in.model, {.tp = 1}).total(),
               logits = 2048.0 * 32000 * 6;
  CHECK(static_cast<double>(stage_memory(in, 0, 8).buffers.value()) == Approx(logits + 6 * (head + layer)));
  in.options.overlap_dp = false;
  CHECK(static_cast<double>(stage_memory(in, 0, 8).buffers.value()) == Approx(logits + 6 * head));
  in.options.reshard_after_forward = false;
  CHECK(static_cast<double>(stage_memory(in, 0, 8).buffers.value()) ==
        Approx(logits + 2 * stage_parameters(in, 0).total() + 4 * head));
  // Tied, the head reads the embedding's matrix, whose gradient is exchanged once.
  in = sharded(3, 8);
  in.model.tied_embeddings = true;
  const std::vector<UnitParameters> units = unit_parameters(in, 0);
  CHECK(units.back().used == head);
  CHECK(units.back().own == 1024);
  CHECK(units.front().own == 1024.0 * 32000);
}

TEST_CASE("HSDP splits over neighbouring replicas and sums over the copies of each part") {
  // TP 2: replica d begins with rank 2 d; shards of 4 replicas.
  ParallelLayout l = layout(2, 1, 16);
  l.dp_shard = 4;
  CHECK(shard_group(l, Rank(11)).ranks() == std::vector<Rank>{Rank(9), Rank(11), Rank(13), Rank(15)});
  CHECK(shard_copies(l, Rank(11)).ranks() == std::vector<Rank>{Rank(3), Rank(11), Rank(19), Rank(27)});
  StepInputs in = sharded(3, 16, 1);
  in.layout = l;
  const StepPlan plan = planned(in);
  double gathered = 0, scattered = 0, summed = 0;
  for (const CollectiveCost& c : plan.stages[0].collectives) {
    if (c.dimension != Dimension::dp) continue;
    CHECK(c.request.group.size() == 4);
    const double bytes = static_cast<double>(c.count * c.request.size.value());
    (c.request.kind == CollectiveKind::all_gather       ? gathered
     : c.request.kind == CollectiveKind::reduce_scatter ? scattered
                                                        : summed) += bytes;
  }
  CHECK(gathered > 0);
  CHECK(summed == Approx(scattered / 4).epsilon(1e-6));
  CHECK(stage_memory(in, 0, 8).parameters.value() == Approx(2 * stage_parameters(in, 0).total() / 4).margin(1));
  // All replicas are one shard group unless something else is said.
  in.layout.dp_shard = 16;
  const Seconds all = estimate_step(planned(in)).total;
  in.layout.dp_shard = 0;
  CHECK(estimate_step(planned(in)).total == all);
}

TEST_CASE("ZeRO-1 in shards of some replicas goes with a pipeline") {
  StepInputs in = inputs(small_model(), layout(1, 4, 8), 1024, 8);
  in.options.zero = 1;
  in.layout.dp_shard = 2;
  in.options.embedding_and_logits = false;
  const StepPlan plan = planned(in);
  const Fabric fabric = cluster(4);
  CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-6));
}

TEST_CASE("HSDP splits experts over those of a shard that have the same ones, and sums over the copies") {
  // 16 replicas in two shards of 8; experts over 4 ranks, so that 2 of a shard have the same.
  StepInputs in = mixture_of(4, 1, 16);
  in.layout.dp_shard = 8;
  CHECK(expert_shard_group(in.layout, Rank(9)).ranks() == std::vector<Rank>{Rank(9), Rank(13)});
  CHECK(expert_copies_group(in.layout, Rank(9)).ranks() == std::vector<Rank>{Rank(1), Rank(9)});
  CHECK(expert_replica_group(in.layout, Rank(9)).ranks() == std::vector<Rank>{Rank(1), Rank(5), Rank(9), Rank(13)});
  for (const int zero : {1, 2, 3}) {
    in.options.zero = zero;
    CAPTURE(zero);
    const MemoryTerms split = memory_terms(in, 0);
    CHECK(split.expert_shares == 2);
    CHECK(split.optimizer_shares == 8);
    double scattered = 0, summed = 0;
    const StepPlan plan = planned(in);
    for (const CollectiveCost& c : plan.stages[0].collectives) {
      if (!c.name.starts_with("expert dp")) continue;
      CHECK(c.request.group.size() == 2);
      const double bytes = static_cast<double>(c.count * c.request.size.value());
      if (c.request.kind == CollectiveKind::reduce_scatter) scattered += bytes;
      if (c.request.kind == CollectiveKind::all_reduce) summed += bytes;
    }
    CHECK(scattered > 0);
    CHECK(summed == Approx(scattered / 2).epsilon(1e-6));
    // One shard of all is no HSDP.
    in.layout.dp_shard = 16;
    const Seconds all = estimate_step(planned(in)).total;
    in.layout.dp_shard = 0;
    CHECK(estimate_step(planned(in)).total == all);
    in.layout.dp_shard = 8;
  }
}

TEST_CASE("HSDP with experts in a pipeline or without: the closed form is the timeline") {
  const Fabric fabric = cluster(8);
  for (const int zero : {1, 2, 3})
    for (const int pp : {1, 2})
      for (const int etp : {0, 1})
        for (const int shard : {2, 4, 8}) {
          StepInputs in = mixture_of(4, 2, 8, etp);
          in.layout.pp = pp;
          in.layout.dp_shard = shard;
          in.options.zero = zero;
          if (!check_step(in, fabric.rank_count(), {}).empty()) {
            CHECK(2 * shard % (4 * in.layout.expert_tp()) != 0);
            continue;
          }
          CAPTURE(zero, pp, etp, shard);
          const StepPlan plan = planned(in);
          CHECK(estimate_step(plan).total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
        }
}
