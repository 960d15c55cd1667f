// Whole forecasts on a small cluster: laws that hold whatever the numbers.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "collcast/evaluate/prices.hpp"
#include "inputs.hpp"
#include "workload/layer/parameters.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// Layouts that use every kind of group, inside nodes and across.
std::vector<StepInputs> variety() {
  std::vector<StepInputs> list{small_step(1, 1, 1), small_step(8, 1, 1), small_step(1, 8, 1), small_step(1, 1, 8),
                               small_step(2, 2, 2), small_step(8, 2, 2), small_step(4, 2, 4), small_step(2, 8, 2)};
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].layout.sequence_parallel = i % 2 == 1;
    list[i].layout.schedule = i % 3 == 1 ? PipelineSchedule::gpipe : PipelineSchedule::one_f_one_b;
    list[i].layout.order = i % 4 < 2 ? RankOrder::tp_pp_dp : RankOrder::tp_cp_ep_dp_pp;
    list[i].options.recompute = i % 3 == 2 ? Recompute::full : Recompute::none;
    list[i].options.zero = i % 2;
  }
  return list;
}

}  // namespace

TEST_CASE("the breakdown sums to the step, by formula and by timeline") {
  for (const StepInputs& in : variety())
    for (const Method method : {Method::estimate, Method::simulate}) {
      const StepResult r = forecast(in, four_nodes(), method);
      CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-9));
      for (const Seconds part : {r.breakdown.compute, r.breakdown.tp_exposed, r.breakdown.pp_exposed,
                                 r.breakdown.dp_exposed, r.breakdown.bubble, r.breakdown.optimizer})
        CHECK(part.count() >= -1e-12);
    }
}

TEST_CASE("a pass takes at least as long as its launches, and no longer where kernels do") {
  for (StepInputs in : variety()) {
    const StepResult free = forecast(in, four_nodes());
    in.options.launch = Seconds(1e-9);  // no kernel is as short
    CHECK(forecast(in, four_nodes()).step == free.step);
    // So slow a host decides alone: half as many launches per second, a pass twice as long.
    in.options.launch = Seconds(0.01);
    const Seconds slow = forecast(in, four_nodes(), Method::estimate).layer.forward;
    in.options.launch = Seconds(0.02);
    CHECK(forecast(in, four_nodes(), Method::estimate).layer.forward.count() == Approx(2 * slow.count()));
    const StepResult both = forecast(in, four_nodes());
    CHECK(both.estimate.count() == Approx(both.simulate->count()).epsilon(0.01));
  }
}

TEST_CASE("kernels of gradients have launches of their own: the forward waits as before, the backward for both") {
  for (StepInputs in : variety()) {
    in.options.recompute = Recompute::none;
    in.layout.tp = 1;
    // Longer than any kernel here, so that passes are their launches: n of them.
    in.options.launch = Seconds(1);
    const LayerTimes alike = forecast(in, four_nodes(), Method::estimate).layer;
    in.options.launch_backward = Seconds(1);
    CHECK(forecast(in, four_nodes(), Method::estimate).layer.backward == alike.backward);
    in.options.launch_backward = Seconds(0.25);
    const LayerTimes apart = forecast(in, four_nodes(), Method::estimate).layer;
    CHECK(apart.forward == alike.forward);
    const LayerOperations ops = layer_operations(in);
    const double own = static_cast<double>(ops.backward.size());
    CHECK(alike.backward.count() - apart.backward.count() == Approx(0.75 * own));
    // Repeated forwards are the model's code, wherever they run: n more of the longer ones.
    in.options.recompute = Recompute::full;
    CHECK(forecast(in, four_nodes(), Method::estimate).layer.backward.count() ==
          Approx(apart.backward.count() + apart.forward.count()));
  }
}

TEST_CASE("formula and simulation of a step agree to 1 %") {
  for (const StepInputs& in : variety()) {
    const StepResult r = forecast(in, four_nodes());
    REQUIRE(r.simulate);
    CHECK(r.step == *r.simulate);
    CHECK(r.estimate.count() == Approx(r.simulate->count()).epsilon(0.01));
    CHECK(forecast(in, four_nodes(), Method::estimate).step == r.estimate);
  }
}

TEST_CASE("TP 1 has no TP time, PP 1 no bubble, DP 1 no gradient exchange") {
  for (const Method method : {Method::estimate, Method::simulate}) {
    const StepResult alone = forecast(small_step(1, 1, 1), four_nodes(), method);
    CHECK(alone.breakdown.tp_exposed == Seconds{});
    CHECK(alone.layer.tp_comm == Seconds{});
    CHECK(alone.breakdown.pp_exposed == Seconds{});
    CHECK(alone.breakdown.bubble.count() == Approx(0).margin(1e-12));
    CHECK(alone.breakdown.dp_exposed == Seconds{});
    CHECK(alone.collectives.empty());
    CHECK(alone.compute_to_communication == 0);

    CHECK(forecast(small_step(8, 1, 1), four_nodes(), method).breakdown.tp_exposed > Seconds{});
    CHECK(forecast(small_step(1, 4, 1), four_nodes(), method).breakdown.bubble > Seconds{});
    CHECK(forecast(small_step(1, 1, 4), four_nodes(), method).breakdown.dp_exposed > Seconds{});
  }
}

TEST_CASE("both methods say of the same waiting what is PP exposed and what is bubble") {
  for (const double rate : {1.0, 0.01})  // of the links: messages hidden or nearly so, and messages that set the pace
    for (const int pp : {2, 4}) {
      const StepInputs in = small_step(1, pp, 1);
      const Breakdown a = forecast(in, cluster(4, rate), Method::estimate).breakdown;
      const Breakdown b = forecast(in, cluster(4, rate), Method::simulate).breakdown;
      CAPTURE(rate, pp);
      CHECK(a.pp_exposed > Seconds{});
      CHECK(b.pp_exposed.count() == Approx(a.pp_exposed.count()).epsilon(1e-3));
      CHECK(b.bubble.count() == Approx(a.bubble.count()).epsilon(1e-3));
    }
}

TEST_CASE("both methods charge the same of a pipeline's waiting to exchanges, messages and the bubble") {
  double exchanged = 0;
  for (const double rate : {1.0, 0.01})
    for (const int zero : {0, 1, 2, 3}) {
      StepInputs in = small_step(1, 2, 2);
      in.options.zero = zero;
      const StepResult both = forecast(in, cluster(4, rate), Method::both);
      const Breakdown a = forecast(in, cluster(4, rate), Method::estimate).breakdown, b = both.breakdown;
      const auto near = [&](Seconds part) { return Approx(part.count()).margin(1e-6 * both.step.count()); };
      CAPTURE(rate, zero);
      CHECK(b.dp_exposed.count() == near(a.dp_exposed));
      CHECK(b.pp_exposed.count() == near(a.pp_exposed));
      CHECK(b.bubble.count() == near(a.bubble));
      CHECK(b.total().count() == near(both.step));
      exchanged += a.dp_exposed.count();
    }
  CHECK(exchanged > 0);
}

TEST_CASE("halving the bandwidth of every link never speeds a step up") {
  const Fabric half = cluster(4, 0.5);
  for (const StepInputs& in : variety()) {
    const StepResult full_speed = forecast(in, four_nodes()), half_speed = forecast(in, half);
    CHECK(half_speed.step >= full_speed.step);
    CHECK(half_speed.estimate >= full_speed.estimate);
  }
}

TEST_CASE("overlap is never slower than none") {
  for (StepInputs in : variety()) {
    const StepResult on = forecast(in, four_nodes());
    in.options.overlap_dp = false;
    const StepResult dp_off = forecast(in, four_nodes());
    CHECK(on.step <= dp_off.step);
    CHECK(on.estimate.count() <= dp_off.estimate.count() * (1 + 1e-12));
    in.options.overlap_pp = false;
    CHECK(dp_off.step <= forecast(in, four_nodes()).step);
  }
}

TEST_CASE("ZeRO-1 on one replica costs what no sharding costs") {
  StepInputs in = small_step(2, 2, 1);
  const StepResult plain = forecast(in, four_nodes());
  in.options.zero = 1;
  const StepResult sharded = forecast(in, four_nodes());
  CHECK(sharded.step == plain.step);
  CHECK(sharded.memory.peak() == plain.memory.peak());
}

TEST_CASE("recomputation buys memory with time") {
  StepInputs in = small_step(2, 2, 2);
  in.options.attention = Attention::unfused;
  const StepResult none = forecast(in, four_nodes());
  in.options.recompute = Recompute::selective;
  const StepResult selective = forecast(in, four_nodes());
  in.options.recompute = Recompute::full;
  const StepResult full = forecast(in, four_nodes());
  CHECK(none.step < selective.step);
  CHECK(selective.step < full.step);
  CHECK(none.memory.activations > selective.memory.activations);
  CHECK(selective.memory.activations > full.memory.activations);
  CHECK(none.hfu == none.mfu);
  CHECK(full.hfu > full.mfu);
}

TEST_CASE("rates are the work over the time") {
  const StepInputs in = small_step(2, 2, 2);
  const StepResult r = forecast(in, four_nodes());
  // 2 sequences x 8 micro-batches x 2 replicas of 1024 tokens, on 8 GPUs.
  CHECK(r.micro_batches == 8);
  CHECK(r.tokens_per_s_per_gpu == Approx(32 * 1024 / r.step.count() / 8));
  CHECK(r.mfu == Approx(workload::model_flops(in).value() / r.step.count() / 8 / 100e12));
  CHECK(r.model_flops_per_gpu.value() == Approx(r.mfu * 100e12));
}

TEST_CASE("the layer's times are its kernels and its collectives") {
  const StepInputs in = small_step(8, 1, 1);
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  Seconds kernels{};
  for (const auto* list : {&r.operations.forward, &r.operations.backward})
    for (const Operation& op : *list) kernels += op.time;
  CHECK(r.layer.tp_comm.count() == Approx(4 * r.collectives[0].time.count()));
  CHECK(r.layer.tp_exposed == r.layer.tp_comm);
  CHECK((r.layer.forward + r.layer.backward).count() == Approx((kernels + r.layer.tp_comm).count()));
  CHECK(r.compute_to_communication == Approx(kernels / r.layer.tp_comm));
}

TEST_CASE("CP that is not hidden counts in the ratio, and hidden TP does not lessen the kernels") {
  StepInputs in = small_step(1, 1, 1);
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.cp = 8;
  in.layout.cp_exchange = ContextExchange::ulysses;
  StepResult r = forecast(in, four_nodes(), Method::estimate);
  const auto kernels = [](const StepResult& of) {
    Seconds sum{};
    for (const auto* list : {&of.operations.forward, &of.operations.backward})
      for (const Operation& op : *list) sum += op.time;
    return sum;
  };
  REQUIRE(r.layer.cp_exposed > Seconds{});
  CHECK(r.compute_to_communication == Approx(kernels(r) / r.layer.cp_exposed));
  in = small_step(8, 1, 1);
  in.options.overlap_tp = TpOverlap::backward;
  r = forecast(in, four_nodes(), Method::estimate);
  REQUIRE(r.layer.tp_exposed < r.layer.tp_comm);
  CHECK(r.compute_to_communication == Approx(kernels(r) / r.layer.tp_comm));
}

namespace {

/// All of them on each rank.
void with_whole_experts(StepInputs& in) {
  in.model.experts = {8, 2, 512, 0};
  in.layout.tp = 1;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
}

}  // namespace

TEST_CASE("what is asked for in vain is warned about, each by its path") {
  const auto in_vain = [](const StepInputs& in, const std::string& path) {
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    return std::ranges::any_of(r.warnings,
                               [&](const std::string& w) { return w.starts_with(path + " has no effect: "); });
  };
  struct Case {
    const char* path;
    void (*ask)(StepInputs&);
    void (*mend)(StepInputs&);  // so that it has one
  };
  const auto ring = [](StepInputs& in) {
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    in.layout.cp = 2;
  };
  for (const Case& one : std::vector<Case>{
           {"layout.cp_exchange", [](StepInputs& in) { in.layout.cp_exchange = ContextExchange::ulysses; }, ring},
           {"training.overlap_cp", [](StepInputs& in) { in.options.overlap_cp = false; }, ring},
           {"training.reshard_after_forward", [](StepInputs& in) { in.options.reshard_after_forward = false; },
            [](StepInputs& in) { in.options.zero = 3; }},
           {"training.moe_grouped_gemm", [](StepInputs& in) { in.options.moe_grouped_gemm = false; },
            [](StepInputs& in) {
              in.kernels.grouped_gemm["bf16"] = in.kernels.gemm.at("bf16");
              in.kernels.grouped_gemm["bf16"].compute *= 0.5;
              in.model.experts = {8, 2, 512, 0};
              in.layout.sequence_parallel = true;
            }},
           {"training.moe_grouped_mlp_fusion", [](StepInputs& in) { in.options.moe_grouped_mlp_fusion = true; },
            [](StepInputs& in) {
              in.model.experts = {8, 2, 512, 0};
              in.layout.sequence_parallel = true;
              in.layout.etp = 1;
              in.layout.order = RankOrder::tp_cp_ep_dp_pp;
            }},
           {"training.communication.scale_block", [](StepInputs& in) { in.options.communication.scale_block = 64; },
            [](StepInputs& in) { in.options.communication.tp_reduce = WireFormat::fp8; }},
           {"layout.sequence_parallel",
            [](StepInputs& in) {
              in.layout.sequence_parallel = true;
              in.layout.tp = 1;
            },
            [](StepInputs& in) { in.layout.tp = 2; }},
           {"training.overlap_tp",
            [](StepInputs& in) {
              in.options.overlap_tp = TpOverlap::backward;
              in.layout.tp = 1;
            },
            [](StepInputs& in) { in.layout.tp = 2; }},
           {"training.overlap_pp",
            [](StepInputs& in) {
              in.options.overlap_pp = false;
              in.layout.pp = 1;
            },
            [](StepInputs& in) { in.layout.pp = 2; }},
           {"training.overlap_dp",
            [](StepInputs& in) {
              in.options.overlap_dp = false;
              in.layout.dp = 1;
            },
            [](StepInputs& in) { in.layout.dp = 2; }},
           {"training.align_grad_reduce",
            [](StepInputs& in) {
              in.options.align_grad_reduce = false;
              in.layout.pp = 1;
            },
            [](StepInputs& in) { in.layout.pp = 2; }},
           {"training.align_grad_reduce",
            [](StepInputs& in) {
              in.options.align_grad_reduce = in.options.overlap_dp = false;
              in.layout.pp = 2;
            },
            [](StepInputs& in) { in.options.overlap_dp = true; }},
           {"training.align_grad_reduce",
            [](StepInputs& in) {
              in.options.align_grad_reduce = false;
              in.layout.pp = 2;
              in.layout.dp = 1;
            },
            [](StepInputs& in) { in.layout.dp = 2; }},
           {"training.bucket",
            [](StepInputs& in) {
              in.options.bucket = default_bucket;
              in.layout.dp = 1;
            },
            [](StepInputs& in) { in.layout.dp = 2; }},
           {"training.bucket",
            [](StepInputs& in) {
              in.options.bucket = default_bucket;
              in.options.zero = 3;
            },
            [](StepInputs& in) { in.options.zero = 1; }},
           {"training.expert_imbalance",
            [](StepInputs& in) {
              with_whole_experts(in);
              in.options.expert_imbalance = 1.5;
            },
            [](StepInputs& in) { in.layout.ep = 2; }},
           {"training.overlap_ep",
            [](StepInputs& in) {
              with_whole_experts(in);
              in.options.overlap_ep = true;
            },
            [](StepInputs& in) { in.layout.ep = 2; }},
           // Split over two ranks they exchange rows without EP, too.
           {"training.overlap_ep",
            [](StepInputs& in) {
              with_whole_experts(in);
              in.options.overlap_ep = true;
            },
            [](StepInputs& in) { in.layout.etp = 2; }},
           {"training.communication.ep_dispatch",
            [](StepInputs& in) {
              with_whole_experts(in);
              in.options.communication.ep_dispatch = WireFormat::fp8;
            },
            [](StepInputs& in) { in.layout.ep = 2; }},
           {"training.communication.ep_combine",
            [](StepInputs& in) {
              with_whole_experts(in);
              in.options.communication.ep_combine = WireFormat::fp8;
            },
            [](StepInputs& in) { in.layout.ep = 2; }},
           {"model.parallel_mlp.one_reduce", [](StepInputs& in) { in.model.parallel_mlp.one_reduce = false; },
            [](StepInputs& in) { in.model.parallel_mlp.norms = 1; }}}) {
    INFO(one.path);
    StepInputs in = small_step(2, 2, 2);
    CHECK_FALSE(in_vain(in, one.path));
    one.ask(in);
    CHECK(in_vain(in, one.path));
    one.mend(in);
    CHECK_FALSE(in_vain(in, one.path));
  }
}

TEST_CASE("collectives are listed with the algorithm that was priced") {
  std::set<std::string> algorithms;
  Prices prices(four_nodes(), {});
  for (const Method method : {Method::estimate, Method::both}) {
    const StepResult r = forecast(small_step(4, 2, 4), four_nodes(), method);
    REQUIRE(r.collectives.size() >= 3);
    for (const CollectiveCost& c : r.collectives) {
      INFO(c.name);
      CHECK(c.algorithm == prices.algorithm(c.request).value());
      CHECK(c.time == (method == Method::both ? prices.simulate(c.request) : prices.estimate(c.request)).value());
      CHECK(c.count > 0);
      algorithms.insert(c.algorithm);
    }
  }
  CHECK(algorithms.size() > 1);
}

TEST_CASE("an algorithm asked for is for collectives; messages between stages go straight") {
  CollectivePolicy policy;
  policy.algorithm = "ring";
  const Result<StepResult> r = forecast_step(small_step(4, 2, 2), four_nodes(), policy, Method::both);
  REQUIRE(r.ok());
  for (const CollectiveCost& c : r->collectives)
    CHECK(c.algorithm == (c.request.kind == CollectiveKind::sendrecv ? "direct" : "ring"));
}

TEST_CASE("TP across nodes is warned about, with the size that stays inside") {
  StepInputs in = small_step(16, 1, 1);
  in.model.kv_heads = 16;
  in.gpu.peak["bf16"] = FlopRate(1000e12);
  in.gpu.memory_bandwidth = Bandwidth(10e12);
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  REQUIRE(r.compute_to_communication < 2);
  REQUIRE_FALSE(r.warnings.empty());
  CHECK_THAT(r.warnings[0], Catch::Contains("most of it for TP, whose 16 GPUs lie on 2 nodes; ") &&
                                Catch::Contains("layout.dp: 2, layout.tp: 8 ("));
}

TEST_CASE("a step that does not fit says what is largest, and which change would make it fit") {
  const auto warning = [](StepInputs in) {
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    REQUIRE(r.memory.peak() > r.memory.capacity);
    REQUIRE_FALSE(r.warnings.empty());
    return r.warnings[0];
  };
  // 12.4e9 parameters x 12 bytes of optimizer state = 148 GB.
  StepInputs in = inputs(llama_70b(12), layout(1, 1, 2), 1024, 2);
  CHECK_THAT(warning(in), Catch::Contains("what breaks the limit is also the largest part, optimizer state") &&
                              Catch::Contains("not even ") && Catch::Contains("layout.tp: 2, layout.dp: 1"));
  in = small_step(1, 1, 1);
  in.gpu.memory = Bytes(10'000'000'000);
  in.batch.micro_batch = in.batch.global_batch = 16;
  CHECK_THAT(warning(in), Catch::Contains("activations") && Catch::Contains("it fits with batch.micro_batch: 8 (") &&
                              Catch::Contains(" or training.recompute: full ("));
  // Two replicas of 1.9e9 parameters: 34 GB of state, a few of activations.
  in = inputs(llama_70b(1), layout(1, 1, 4), 1024, 2);
  in.gpu.memory = Bytes(45'000'000'000);
  const std::string text = warning(in);
  INFO(text);
  // What is offered fits, and is no change to the number of GPUs.
  CHECK_THAT(text, Catch::Contains("it fits with training.zero: 1 ("));
  in.options.zero = 1;
  CHECK(forecast(in, four_nodes(), Method::estimate).memory.fits());
  // State split over more of the replicas: of 6 over 3 where 2 are too few.
  in = inputs(llama_70b(1), layout(1, 1, 6), 1024, 2);
  in.options.zero = 1;
  in.layout.dp_shard = 3;
  in.gpu.memory = stage_memory(in, 0, 8).peak();
  in.layout.dp_shard = 2;
  CHECK_THAT(warning(in), Catch::Contains("layout.dp_shard: 3 ("));
  // Without chunks the schedule is another, and both values are said.
  in = inputs(small_model(), layout(1, 2, 1), 1024, 8);
  in.model.layers = 8;
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.vpp = 4;
  in.options.embedding_and_logits = false;
  in.gpu.memory = Bytes(stage_memory(in, 0, 8).peak().value() - 1);
  CHECK_THAT(warning(in), Catch::Contains("layout.schedule: 1f1b, layout.vpp: 1 ("));
}

TEST_CASE("one micro-batch is one") {
  CHECK_THAT(forecast(small_step(1, 2, 1, 1), four_nodes(), Method::estimate).warnings[0],
             Catch::Contains("1 micro-batch is fewer than the 2 pipeline stages"));
}

TEST_CASE("no part of a step is less than nothing") {
  for (StepInputs in : variety()) {
    for (const PipelineSchedule schedule : {in.layout.schedule, PipelineSchedule::dualpipe}) {
      in.layout.schedule = schedule;
      if (!check_step(in, 32, {}).empty()) continue;
      for (const Method method : {Method::estimate, Method::simulate}) {
        const Breakdown b = forecast(in, four_nodes(), method).breakdown;
        CHECK(b.pp_exposed >= Seconds{});
        CHECK(b.bubble >= Seconds{});
      }
    }
  }
}

TEST_CASE("fewer micro-batches than stages, and recomputation that gains nothing, are warned about") {
  StepInputs in = small_step(1, 8, 1, 4);
  in.options.recompute = Recompute::selective;
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  CHECK(std::count_if(r.warnings.begin(), r.warnings.end(), [](const std::string& w) {
          return w.find("4 micro-batches are fewer than the 8 pipeline stages") != std::string::npos ||
                 w.find("selective recomputation gains nothing with flash") != std::string::npos;
        }) == 2);
}

TEST_CASE("what does not fit together, and an algorithm that does not exist, are refused") {
  StepInputs in = small_step(3, 1, 1);
  CHECK_FALSE(forecast_step(in, four_nodes(), {}, Method::estimate).ok());
  CollectivePolicy policy;
  policy.algorithm = "no-such";
  CHECK_FALSE(forecast_step(small_step(2, 1, 1), four_nodes(), policy, Method::estimate).ok());
}

TEST_CASE("a timeline that would not fit in memory is refused, its closed form is not") {
  StepInputs in = small_step(1, 1, 1, 1'000'000);
  const Result<StepResult> both = forecast_step(in, four_nodes(), {}, Method::both);
  REQUIRE_FALSE(both.ok());
  CHECK_THAT(both.errors()[0].hint, Catch::Contains("--method estimate"));
  CHECK(forecast_step(in, four_nodes(), {}, Method::estimate).ok());
}

TEST_CASE("equal inputs give equal results and timelines") {
  StepTimeline first, second;
  const Result<StepResult> a = forecast_step(small_step(2, 2, 2), four_nodes(), {}, Method::simulate, &first);
  const Result<StepResult> b = forecast_step(small_step(2, 2, 2), four_nodes(), {}, Method::simulate, &second);
  REQUIRE((a.ok() && b.ok()));
  CHECK(a->step == b->step);
  CHECK(first.schedule.size() == second.schedule.size());
  CHECK(std::equal(first.timeline.ops.begin(), first.timeline.ops.end(), second.timeline.ops.begin(),
                   [](const Interval& x, const Interval& y) { return x.start == y.start && x.finish == y.finish; }));
}

TEST_CASE("every category is called by its name, and nothing else is one") {
  using enum Category;
  for (const Category c : {compute, forward, backward, recompute, optimizer, tp, pp, dp})
    CHECK(parse_category(to_string(c)) == c);
  CHECK_FALSE(parse_category("").has_value());
  CHECK_FALSE(parse_category("TP").has_value());
}

TEST_CASE("a step says which stage its breakdown and collectives are of: the one with the most work") {
  // The logits are the last stage's; without them the stages are equal, and the first of equals counts.
  StepInputs in = small_step(1, 4, 1);
  CHECK(forecast(in, four_nodes()).stage.stage == 3);
  in.options.embedding_and_logits = false;
  CHECK(forecast(in, four_nodes()).stage.stage == 0);
}
