// Context parallelism: the laws of ring attention and Ulysses, and formula against timeline.
#include <catch2/catch.hpp>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/memory.hpp"
#include "workload/memory/memory_remedies.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

constexpr ContextExchange ring = ContextExchange::ring, ulysses = ContextExchange::ulysses;

/// 2 x 4096 tokens in 16 heads of 64, 8 KV heads.
StepInputs split(int cp, ContextExchange exchange, int tp = 1, int dp = 2) {
  StepInputs in = inputs(small_model(), layout(tp, 1, dp), 4096, 2);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.cp = cp;
  in.layout.cp_exchange = exchange;
  return in;
}

}  // namespace

TEST_CASE("the ranks of a CP group compute together what one computes alone") {
  for (const int tp : {1, 2})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      StepInputs in = split(1, ring, tp);
      in.options.recompute = recompute;
      const LayerOperations alone = layer_operations(in);
      for (const ContextExchange exchange : {ring, ulysses})
        for (const int cp : {2, 4, 8}) {
          in.layout.cp = cp;
          in.layout.cp_exchange = exchange;
          const LayerOperations part = layer_operations(in);
          CHECK(cp * flops(part.forward) == Approx(flops(alone.forward)));
          CHECK(cp * flops(part.backward) == Approx(flops(alone.backward)));
          CHECK(cp * flops(part.recompute) == Approx(flops(alone.recompute)));
        }
    }
}

TEST_CASE("activations are split over the CP ranks, gradients and weights are not, with ZeRO they are") {
  for (const ContextExchange exchange : {ring, ulysses})
    for (const Recompute recompute : {Recompute::none, Recompute::full})
      for (const int cp : {2, 4, 8}) {
        StepInputs in = split(1, exchange);
        in.options.recompute = recompute;
        const MemoryUse alone = stage_memory(in, 0, 8);
        in.layout.cp = cp;
        const MemoryUse part = stage_memory(in, 0, 8);
        CHECK(cp * part.activations.value() == alone.activations.value());
        CHECK(cp * part.buffers.value() == alone.buffers.value());
        CHECK(part.parameters == alone.parameters);
        CHECK(part.optimizer == alone.optimizer);
        in.options.zero = 1;
        CHECK(2 * cp * stage_memory(in, 0, 8).optimizer.value() == alone.optimizer.value());
      }
}

TEST_CASE("gradients are summed over DP and CP together, and split in shards of neighbouring replicas") {
  StepInputs in = split(2, ring, 2, 4);
  in.layout.dp_shard = 2;
  const auto ranks = [](std::initializer_list<unsigned> list) {
    std::vector<Rank> out;
    for (const unsigned r : list) out.emplace_back(r);
    return out;
  };
  // rank = tp + 2 (cp + 2 dp)
  CHECK(replica_group(in.layout, Rank(5)).ranks() == ranks({1, 3, 5, 7, 9, 11, 13, 15}));
  CHECK(shard_group(in.layout, Rank(5)).ranks() == ranks({1, 3, 5, 7}));
  CHECK(shard_copies(in.layout, Rank(5)).ranks() == ranks({5, 13}));
  const StepPlan plan = planned(in, priced(1e-5));
  CHECK(cost(plan.stages[0], "dp all_reduce").request.group.size() == 8);
  CHECK(cost(plan.stages[0], "cp sendrecv").request.group.ranks() == ranks({0, 2}));
  // CP ranks reduce gradients also where there is one replica.
  CHECK_FALSE(planned(split(2, ring, 1, 1), priced(1e-5)).stages[0].buckets.empty());
}

TEST_CASE("a ring passes keys and values c - 1 times forward, and 2 c - 1 times with their gradients backward") {
  for (const int tp : {1, 2})
    for (const int cp : {2, 4, 8}) {
      const StepPlan plan = planned(split(cp, ring, tp, 1), priced(1e-5));
      const CollectiveCost& messages = cost(plan.stages[0], "cp sendrecv");
      // K and V in 2 bytes: 2 x 4096 / cp tokens of 8 / tp heads of 64; 8 layers, 2 micro-batches.
      CHECK(messages.request.size == Bytes(2 * 2 * 2 * 4096 / cp * 8 / tp * 64));
      CHECK(messages.count == 8 * 2 * (3 * cp - 2));
    }
}

TEST_CASE("Ulysses exchanges queries, keys and values, and the output; fewer KV heads than ranks are copied") {
  for (const int cp : {2, 4, 8, 16}) {
    const StepPlan plan = planned(split(cp, ulysses, 1, 1), priced(1e-5));
    std::int64_t bytes = 0;
    for (const CollectiveCost& c : plan.stages[0].collectives)
      if (c.dimension == Dimension::cp) {
        CHECK(c.request.kind == CollectiveKind::alltoall);
        bytes += c.count * c.request.size.value();
      }
    const int keys = std::max(8, cp);
    // Both ways, 8 layers, 2 micro-batches.
    CHECK(bytes == 2 * 8 * 2 * (2LL * 2 * 4096 / cp * (2 * 16 + 2 * keys) * 64));
  }
}

TEST_CASE("what attention covers of a ring is the last gradients' way home less than all of it") {
  const StepInputs in = split(4, ring, 1, 1);
  const auto exposed = [&](double message) {
    const StepPlan plan = planned(in, [=](const CollectiveRequest& r) -> Result<Seconds> {
      return r.kind == CollectiveKind::sendrecv ? Seconds(message) : Seconds{};
    });
    return plan.stages[0].cp_time().count() / 8;  // of a layer
  };
  CHECK(exposed(1e-9) == Approx(1e-9));
  // Blocks of no length beside long messages: 3 forward and 7 backward, less the blocks.
  Seconds blocks{};
  const LayerOperations ops = layer_operations(in);
  for (const std::vector<Operation>* list : {&ops.forward, &ops.backward})
    for (const Operation& op : *list)
      if (op.name.starts_with("flash attention block")) blocks += op.time;
  // The last block of the forward has nothing beside it.
  const double last = named(ops.forward, "flash attention block").time.count();
  CHECK(exposed(1.0) == Approx(10 - (blocks.count() - last)));
}

TEST_CASE("with CP the closed form is the timeline, and off the overlap all messages show") {
  const Fabric fabric = cluster(4);
  for (const ContextExchange exchange : {ring, ulysses})
    for (const int tp : {1, 2})
      for (const int cp : {2, 4})
        for (const int zero : {0, 1, 3})
          for (const double rate : {1e9, 30e9, 1e12}) {
            StepInputs in = split(cp, exchange, tp);
            in.options.zero = zero;
            CAPTURE(to_string(exchange), tp, cp, zero, rate);
            const StepPlan plan = planned(in, priced(5e-6, rate));
            const Seconds overlapped = estimate_step(plan).total;
            CHECK(overlapped.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
            in.options.overlap_cp = false;
            const StepPlan serial = planned(in, priced(5e-6, rate));
            CHECK(estimate_step(serial).total.count() == Approx(simulated(serial, fabric).count()).epsilon(1e-8));
            CHECK(estimate_step(serial).total.count() >= overlapped.count() * (1 - 1e-12));
            Seconds all{};
            for (const CollectiveCost& c : serial.stages[0].collectives)
              if (c.dimension == Dimension::cp) all += c.time * static_cast<double>(c.count);
            CHECK(estimate_step(serial).breakdown.cp_exposed.count() == Approx(all.count()));
          }
}

TEST_CASE("CP goes with pipelines and interleaving, and the parts of the step are both methods'") {
  const Fabric fabric = cluster(4);
  for (const bool interleaved : {false, true}) {
    StepInputs in = split(2, ring, 1, 2);
    in.layout.pp = 4;
    in.batch.global_batch = 32;
    if (interleaved) {
      in.layout.schedule = PipelineSchedule::interleaved;
      in.layout.vpp = 2;
    }
    const auto estimate = forecast_step(in, fabric, {}, Method::estimate);
    const auto simulate = forecast_step(in, fabric, {}, Method::both);
    REQUIRE(estimate.ok());
    REQUIRE(simulate.ok());
    CHECK(simulate->breakdown.cp_exposed.count() == Approx(estimate->breakdown.cp_exposed.count()).epsilon(1e-3));
    CHECK(simulate->breakdown.total().count() == Approx(simulate->step.count()).epsilon(1e-9));
    CHECK(simulate->critical_path->time.total().count() == Approx(simulate->step.count()).epsilon(1e-9));
    CHECK(simulate->step.count() == Approx(estimate->step.count()).epsilon(1e-3));
  }
}

TEST_CASE("copies of keys and values that Ulysses makes are kept, too") {
  // Of 2 KV heads of 64 elements on a TP rank a head on each of 4 CP ranks: 2 heads' keys and values more of each of
  // 2 x 4096 / 4 tokens, of 2 bytes.
  const auto kept = [](ContextExchange exchange) {
    return kept_activations(split(4, exchange, 4, 1), mlp_layer).projections.value();
  };
  CHECK(kept(ulysses) - kept(ring) == 2048.0 * 2 * 2 * 64 * 2);
}

TEST_CASE("ZeRO is offered to a single replica whose CP ranks have the same parameters") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.cp = 8;
  StepInputs split = in;
  split.options.zero = 1;
  in.gpu.memory = peak_memory(split, 8).peak();
  CHECK_THAT(what_would_fit(in, cluster(1)), Catch::Contains("training.zero: 1 ("));
}
