// A LayoutFamily answers what a forecast of each layout by itself answers.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <random>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "support/sample.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

void check_equal(Seconds quick, Seconds slow, Seconds step) {
  CHECK(quick.count() == Approx(slow.count()).epsilon(1e-12).margin(1e-12 * step.count()));
}

void check_equal(const LayoutEstimate& quick, const StepResult& slow) {
  check_equal(quick.step, slow.step, slow.step);
  const Breakdown &a = quick.breakdown, &b = slow.breakdown;
  check_equal(a.compute, b.compute, slow.step);
  check_equal(a.tp_exposed, b.tp_exposed, slow.step);
  check_equal(a.pp_exposed, b.pp_exposed, slow.step);
  check_equal(a.dp_exposed, b.dp_exposed, slow.step);
  check_equal(a.optimizer, b.optimizer, slow.step);
  check_equal(a.bubble, b.bubble, slow.step);
  check_equal(a.other, b.other, slow.step);
}

std::vector<LayoutChoice> choices(int tp, int pp, int dp, const std::vector<int>& micro_batches) {
  std::vector<LayoutChoice> all;
  for (const int micro_batch : micro_batches)
    for (const bool sp : {false, true})
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
        for (const int zero : {0, 1, 2, 3}) all.push_back({tp, pp, dp, micro_batch, sp, recompute, zero});
  return all;
}

/// Every layout of `world` GPUs that check_step accepts, or a sample of them; returns how many there were.
int compare_all(StepInputs base, int world, const Fabric& fabric, const CollectivePolicy& policy = {}) {
  const CollectiveTime time = memoized(step_prices(fabric, policy));
  int accepted = 0;
  Sample sample(11);
  for (int tp = 1; tp <= world; ++tp)
    for (int pp = 1; world % tp == 0 && pp <= world / tp; ++pp) {
      if (world / tp % pp != 0) continue;
      std::optional<LayoutFamily> family;
      for (const LayoutChoice& choice : choices(tp, pp, world / tp / pp, {1, 2})) {
        put(choice, base);
        if (!check_step(base, fabric.rank_count(), {}).empty()) continue;
        ++accepted;
        if (!sample.takes()) continue;
        if (!family) family.emplace(base, fabric, time);
        const auto quick = family->estimate(choice);
        const auto slow = forecast_step(base, fabric, policy, Method::estimate);
        INFO("tp " << tp << " pp " << pp << " mb " << choice.micro_batch << " sp " << choice.sequence_parallel);
        REQUIRE(quick.ok());
        check_equal(*quick, *slow);
      }
    }
  return accepted;
}

StepInputs small(int global_batch) {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 512, 1);
  in.batch.global_batch = global_batch;
  return in;
}

}  // namespace

TEST_CASE("a family's closed form is the forecast's: every layout of 16 GPUs") {
  // tp 1 2 4 8 (16 does not divide 8 kv_heads), pp up to 8 of 8 layers, sp only where tp divides 512.
  CHECK(compare_all(small(32), 16, cluster(2)) > 150);
}

TEST_CASE("a family's closed form is the forecast's for either order of ranks, schedule, overlap and kind of model") {
  const Fabric fabric = cluster(2);
  StepInputs in = small(16);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.options.bucket = Bytes(3'000'000);
  compare_all(in, 8, fabric);
  in.kernels.beside_collectives = 0.8;
  in.options.fuse_accumulation = false;
  for (const TpOverlap overlap : {TpOverlap::ring, TpOverlap::backward}) {
    in.options.overlap_tp = overlap;
    compare_all(in, 8, fabric);
  }
  in.layout.schedule = PipelineSchedule::gpipe;
  in.options.overlap_dp = false;
  in.options.overlap_pp = false;
  in.model.tied_embeddings = true;
  in.model.dropout = 0.1;
  in.model.biases = true;
  compare_all(in, 16, fabric);
  for (const PipelineSchedule schedule :
       {PipelineSchedule::zb_h1, PipelineSchedule::zb_h2, PipelineSchedule::zb_2p, PipelineSchedule::zb_v,
        PipelineSchedule::dualpipe, PipelineSchedule::dualpipe_v}) {
    in.layout.schedule = schedule;
    compare_all(in, 16, fabric);
  }
  in.layout.schedule = PipelineSchedule::one_f_one_b;
  in.options.attention = Attention::unfused;
  in.options.optimizer = false;
  compare_all(in, 8, fabric, {"ring", 0, 0});
  in.options.embedding_and_logits = false;
  in.options.gradient_bytes = 2;
  compare_all(in, 16, fabric, {"ring", 1, 1});
  in.options.optimizer = true;
  in.options.precision_aware_optimizer = {StateFormat::bf16, StateFormat::fp8};
  compare_all(in, 16, fabric);
  in.options.embedding_and_logits = true;
  in.options.launch = Seconds(20e-6);
  compare_all(in, 16, fabric);
  in.model.vocab += 1;
  compare_all(in, 16, fabric);
  in.layout.uneven_stages = true;
  for (const int layers : {6, 7, 10}) {
    in.model.layers = layers;
    compare_all(in, 16, fabric);
  }
}

TEST_CASE(
    "a family's closed form is the forecast's where gradients and activations are sent in other formats, compressed or "
    "delayed") {
  const Fabric fabric = cluster(2);
  StepInputs in = small(16);
  CommunicationFormats& f = in.options.communication;
  f.tp_gather = f.tp_reduce = WireFormat::fp8;
  f.gradients = WireFormat::bf16;
  f.parameters = WireFormat::fp8;
  in.options.precision = "fp8";
  compare_all(in, 16, fabric);
  in.options.delayed_all_reduce = true;
  in.options.overlap_tp = TpOverlap::backward;
  in.model.tied_embeddings = true;
  compare_all(in, 8, fabric);
  in.options.compression.method = CompressionMethod::powersgd;
  in.options.compression.rank = 2;
  compare_all(in, 8, fabric);
}

TEST_CASE("a family's closed form is the forecast's with uneven chunks that go round the stages") {
  const Fabric fabric = cluster(2);
  const CollectiveTime time = memoized(step_prices(fabric, {}));
  StepInputs in = small(16);
  in.layout.uneven_stages = true;
  for (const int layers : {9, 11, 13})
    for (const int vpp : {2, 3}) {
      in.model.layers = layers;
      LayoutChoice choice = choices(2, 2, 2, {1}).front();
      choice.vpp = vpp;
      put(choice, in);
      CAPTURE(layers, vpp);
      REQUIRE(check_step(in, fabric.rank_count(), {}).empty());
      const auto quick = LayoutFamily(in, fabric, time).estimate(choice);
      REQUIRE(quick.ok());
      check_equal(*quick, forecast_step(in, fabric, {}, Method::estimate).value());
    }
}

TEST_CASE("a family's closed form is the forecast's with context parallelism") {
  const Fabric fabric = cluster(4);
  const CollectiveTime time = memoized(step_prices(fabric, {}));
  StepInputs in = small(16);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  for (const ContextExchange exchange : {ContextExchange::ring, ContextExchange::ulysses})
    for (const bool overlap : {true, false})
      for (const auto& [tp, pp, dp, cp] : {std::array{1, 1, 2, 2}, {2, 2, 2, 4}, {1, 4, 1, 8}, {1, 1, 4, 4}}) {
        in.layout.cp_exchange = exchange;
        in.options.overlap_cp = overlap;
        std::optional<LayoutFamily> family;
        for (LayoutChoice choice : choices(tp, pp, dp, {1, 2})) {
          choice.cp = cp;
          put(choice, in);
          if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
          if (!family) family.emplace(in, fabric, time);
          CAPTURE(tp, pp, dp, cp, choice.zero, choice.micro_batch);
          const auto quick = family->estimate(choice);
          REQUIRE(quick.ok());
          const StepResult slow = forecast_step(in, fabric, {}, Method::estimate).value();
          check_equal(*quick, slow);
          check_equal(quick->breakdown.cp_exposed, slow.breakdown.cp_exposed, slow.step);
        }
        CHECK(family);
      }
}

TEST_CASE("a family's closed form is the forecast's with states split over some of the replicas") {
  StepInputs in = small(16);
  in.options.reshard_after_forward = false;
  for (const int shard : {1, 2, 4}) {
    in.layout.dp_shard = shard;
    CHECK(compare_all(in, 8, cluster(2)) > 50);
  }
  in.model.experts.count = 4;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = 1024;
  in.layout.ep = 2;
  in.layout.dp_shard = 2;
  CHECK(compare_all(in, 8, cluster(2)) > 20);
  in = small(16);
  in.options.reshard_after_forward = false;
  // Gradients that are summed up whole go with zero 3, and are no matter below 2.
  in.options.no_sync = true;
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_v}) {
    in.layout.schedule = schedule;
    CHECK(compare_all(in, 8, cluster(2)) > 30);
  }
}

TEST_CASE("a family's closed form is the forecast's where stages lie differently on their nodes") {
  // 12 GPUs in nodes of 8: TP 2 and 4 are inside a node or not, replicas and stages straddle the two.
  StepInputs in = small(24);
  in.model.layers = 12;
  CHECK(compare_all(in, 12, cluster(2)) > 70);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  CHECK(compare_all(in, 12, cluster(2)) > 70);
  // TP 6 crosses nodes for every other group.
  in.model.heads = in.model.kv_heads = 12;
  in.model.head_dim = 128;
  in.model.ffn = 4608;
  in.batch.sequence = 768;
  CHECK(compare_all(in, 24, cluster(3)) > 70);
}

TEST_CASE("a family's closed form is the forecast's for samples of large layouts") {
  const Fabric fabric = cluster(32);
  const CollectiveTime time = memoized(step_prices(fabric, {}));
  StepInputs in = inputs(gpt_175b(), layout(1, 1, 1), 2048, 1);
  in.batch.global_batch = 1536;
  for (const auto& [tp, pp, dp] : {std::array{8, 8, 4}, {4, 16, 4}, {16, 4, 4}, {2, 32, 4}, {32, 8, 1}}) {
    for (const LayoutChoice& choice : {LayoutChoice{tp, pp, dp, 1, true, Recompute::selective, 1},
                                       LayoutChoice{tp, pp, dp, 2, false, Recompute::full, 0}}) {
      put(choice, in);
      const auto quick = LayoutFamily(in, fabric, time).estimate(choice);
      REQUIRE(quick.ok());
      check_equal(*quick, forecast_step(in, fabric, {}, Method::estimate).value());
    }
  }
}

TEST_CASE("a collective that cannot be priced is an error, not a time") {
  const Fabric fabric = cluster(2);
  StepInputs in = small(16);
  const LayoutChoice choice{8, 1, 2, 1, true, Recompute::none, 0};
  put(choice, in);
  const CollectiveTime time = step_prices(fabric, {"tree", 0, 0});  // does no reduce_scatter
  LayoutFamily family(in, fabric, time);
  CHECK_FALSE(family.estimate(choice).ok());
  CHECK_FALSE(forecast_step(in, fabric, {"tree", 0, 0}, Method::estimate).ok());
  LayoutChoice plain = choice;
  plain.sequence_parallel = false;
  CHECK(family.estimate(plain).ok());
}

TEST_CASE("prices that are ended from outside are errors, and say so") {
  const Fabric fabric = cluster(2);
  StepInputs in = small(16);
  const LayoutChoice choice{8, 1, 2, 1, true, Recompute::none, 0};
  put(choice, in);
  bool goes_on = false;
  const CollectiveTime time = step_prices(fabric, {}, [&] { return goes_on; });
  const Result<LayoutEstimate> ended = LayoutFamily(in, fabric, time).estimate(choice);
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.errors().front().message.find("ended from outside") != std::string::npos);
  goes_on = true;
  CHECK(LayoutFamily(in, fabric, time).estimate(choice)->step ==
        LayoutFamily(in, fabric, step_prices(fabric, {})).estimate(choice)->step);
}

TEST_CASE("a family of interleaved layouts adds up to their forecasts") {
  const Fabric fabric = cluster(2);
  const CollectiveTime time = memoized(step_prices(fabric, {}));
  TransformerConfig model = small_model();
  model.layers = 24;
  StepInputs in = inputs(model, layout(1, 1, 1), 512, 1);
  in.batch.global_batch = 48;
  in.layout.schedule = PipelineSchedule::interleaved;
  for (const auto& [tp, pp] : {std::pair{1, 2}, std::pair{2, 4}, std::pair{4, 2}, std::pair{1, 12}})
    for (const int vpp : {1, 2, 3}) {
      if (24 / pp % vpp != 0) continue;
      const int dp = pp == 12 ? 1 : 16 / tp / pp;
      std::optional<LayoutFamily> family;
      for (LayoutChoice choice : choices(tp, pp, dp, {1, 2})) {
        choice.vpp = vpp;
        put(choice, in);
        CHECK(in.layout.schedule == (vpp > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b));
        if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
        if (!family) family.emplace(in, fabric, time);
        const auto quick = family->estimate(choice);
        const auto slow = forecast_step(in, fabric, {}, Method::estimate);
        CAPTURE(tp, pp, vpp, choice.micro_batch, choice.sequence_parallel);
        REQUIRE(quick.ok());
        check_equal(*quick, *slow);
      }
      CHECK(family);
    }
}

TEST_CASE("without ZeRO a family has no use of a sharding group, whether or not that has all experts") {
  const Fabric fabric = cluster(2);
  const CollectiveTime time = memoized(step_prices(fabric, {}));
  for (const int ep : {2, 4, 8})
    for (const int shard : {1, 2, 4, 8}) {
      StepInputs in = spread(small_experts(), ep, 1, 8);
      in.layout.dp_shard = shard;
      CAPTURE(ep, shard);
      CHECK(shards_have_all_experts(in.layout) == (shard >= ep));
      for (const int zero : {0, 1}) {
        in.options.zero = zero;
        const bool goes = zero == 0 || shard >= ep;
        REQUIRE(check_step(in, fabric.rank_count(), {}).empty() == goes);
        if (!goes) continue;
        const LayoutChoice choice{1, 1, 8, 2, false, Recompute::none, zero, 1, 1, ep};
        const auto quick = LayoutFamily(in, fabric, time).estimate(choice);
        REQUIRE(quick.ok());
        check_equal(*quick, forecast_on_two(in));
      }
      // Each rank keeps what it would without the group.
      in.options.zero = 0;
      const Bytes state = stage_memory(in, 0, 8).state();
      in.layout.dp_shard = 0;
      CHECK(stage_memory(in, 0, 8).state() == state);
    }
}

TEST_CASE("a choice of chunks makes 1F1B interleaved and back, and leaves GPipe alone") {
  CHECK(schedule_of({.vpp = 2}, PipelineSchedule::one_f_one_b) == PipelineSchedule::interleaved);
  CHECK(schedule_of({.vpp = 1}, PipelineSchedule::interleaved) == PipelineSchedule::one_f_one_b);
  CHECK(schedule_of({.vpp = 2}, PipelineSchedule::gpipe) == PipelineSchedule::gpipe);
  CHECK(schedule_of({.vpp = 1}, PipelineSchedule::zb_v) == PipelineSchedule::zb_v);
  CHECK(schedule_of({.vpp = 2}, PipelineSchedule::zb_v) == PipelineSchedule::interleaved);
}

TEST_CASE("peak memory is that of the fullest of all stages") {
  std::mt19937 random(3);
  const auto one_of = [&](std::initializer_list<int> list) { return *(list.begin() + random() % list.size()); };
  for (int i = 0; i < 300; ++i) {
    StepInputs in = inputs(gpt_22b(), layout(one_of({1, 2, 8}), one_of({1, 2, 4, 8, 16}), one_of({1, 2, 4})), 2048, 1);
    in.batch.micro_batch = one_of({1, 2, 4});
    in.batch.global_batch = in.batch.micro_batch * in.layout.dp * one_of({1, 3, 16});
    in.layout.sequence_parallel = one_of({0, 1}) == 1;
    in.layout.schedule = static_cast<PipelineSchedule>(one_of({0, 1, 2, 3, 4, 5}));
    in.layout.vpp = in.layout.schedule == PipelineSchedule::interleaved ? one_of({1, 3}) : 1;
    in.options.recompute = static_cast<Recompute>(one_of({0, 1, 2}));
    in.options.zero = one_of({0, 1});
    in.options.embedding_and_logits = one_of({0, 1}) == 1;
    Bytes most{};
    for (int stage = 0; stage < in.layout.pp; ++stage) most = std::max(most, stage_memory(in, stage, 8).peak());
    CHECK(peak_memory(in, 8).peak() == most);
  }
}

TEST_CASE("more sequences than can be counted are put as the most that can") {
  StepInputs in = small(1);
  in.serving.emplace();
  LayoutChoice choice{1, 1, 100'000};
  choice.batch = choice.micro_batch = 100'000;
  put(choice, in);
  CHECK(in.batch.global_batch == std::numeric_limits<int>::max());
}
