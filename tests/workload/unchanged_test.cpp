// Settings that change nothing are warned of, and no others.
#include "workload/unchanged.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

bool warned(const StepInputs& in, const std::string& start, const Fabric& fabric = four_nodes()) {
  return std::ranges::any_of(forecast(in, fabric, Method::estimate).warnings,
                             [&](const std::string& text) { return text.starts_with(start); });
}

bool nothing(const StepInputs& in, const std::string& path) { return warned(in, path + " has no effect: "); }

StepInputs with_experts(int ep, int dp = 4) {
  StepInputs in = inputs(small_experts(), layout(1, 1, dp), 512, 2);
  in.layout.ep = ep;
  return in;
}

}  // namespace

TEST_CASE("a setting is said to have no effect where step and memory are the same without it, and nowhere else") {
  StepInputs in = small_step(2, 4, 1);
  in.layout.sequence_parallel = true;
  in.options.overlap_tp = TpOverlap::backward;
  CHECK_FALSE(nothing(in, "training.overlap_tp"));
  in.layout.schedule = PipelineSchedule::zb_h1;  // gradients of weights go by themselves
  CHECK(nothing(in, "training.overlap_tp"));

  in.layout.schedule = PipelineSchedule::one_f_one_b;
  in.options.communication.tp_gather = WireFormat::bf16;
  CHECK(nothing(in, "training.communication.tp_gather"));
  in.options.communication.tp_gather = WireFormat::fp8;
  CHECK_FALSE(nothing(in, "training.communication.tp_gather"));

  in.host_bandwidth = Bandwidth(50e9);
  in.options.optimizer_state_offload = OptimizerStateOffload{0, 32};
  CHECK(nothing(in, "training.optimizer_state_offload"));
  in.options.optimizer_state_offload->fraction = 1;
  CHECK_FALSE(nothing(in, "training.optimizer_state_offload"));
}

TEST_CASE("what is nothing to a model's experts is told by what it is without") {
  StepInputs in = with_experts(4);
  in.options.moe_capacity_factor = 1.5;
  CHECK(nothing(in, "training.moe_capacity_factor"));  // all ranks have the same rows
  in.options.expert_imbalance = 1.4;
  CHECK(nothing(in, "training.moe_capacity_factor"));
  in.options.expert_imbalance = 2;
  CHECK_FALSE(nothing(in, "training.moe_capacity_factor"));

  // One expert a rank on a node: rows to ranks are rows to experts.
  in = with_experts(8, 8);
  in.options.moe_token_dispatcher = TokenDispatcher::flex;
  CHECK(nothing(in, "training.moe_token_dispatcher"));
  CHECK_FALSE(nothing(with_experts(4), "training.moe_token_dispatcher"));
  in = with_experts(4);
  in.options.moe_token_dispatcher = TokenDispatcher::flex;
  CHECK_FALSE(nothing(in, "training.moe_token_dispatcher"));

  // Without times of grouped products one by one is as they are counted anyway.
  in.options.moe_grouped_gemm = false;
  CHECK(nothing(in, "training.moe_grouped_gemm"));
}

TEST_CASE("groups of experts that a scenario has of itself are told where no exchange heeds them") {
  StepInputs in = with_experts(4);
  in.model.experts.groups = 4;
  in.model.experts.group_top_k = 2;
  const auto told = [&](const Origins& origins) {
    const auto result = forecast_step(in, four_nodes(), {}, Method::estimate, nullptr, {}, origins);
    REQUIRE(result);
    return std::ranges::any_of(result->warnings, [](const std::string& text) {
      return text.starts_with("model.experts.groups has no effect: ");
    });
  };
  Origins own(Location{"s.yaml"}), config(Location{"s.yaml"});
  own.set("model.experts.groups", {"s.yaml", 5, 1});
  own.set("model.hidden", {"s.yaml", 4, 1});
  config.set("model.config", {"s.yaml", 4, 1});
  config.set("model.experts.groups", {"config.json", 5, 1});
  config.set("model.hidden", {"config.json", 4, 1});
  CHECK(told(own));
  CHECK_FALSE(told(config));
  config.set("model.experts.groups", {"s.yaml", 6, 1});
  CHECK(told(config));
  in.options.moe_token_dispatcher = TokenDispatcher::flex;
  CHECK_FALSE(told(own));
}

TEST_CASE("zero without replicas to split over splits nothing, which is said once, with why") {
  StepInputs in = small_step(2, 2, 1);
  CHECK_FALSE(nothing(in, "training.zero"));
  for (const int zero : {1, 2, 3}) {
    in.options.zero = zero;
    in.layout.dp = 1;
    const auto warnings = forecast(in, four_nodes(), Method::estimate).warnings;
    CHECK(std::ranges::count_if(warnings, [](const std::string& text) {
            return text.starts_with("training.zero has no effect: nobody has the same parameters");
          }) == 1);
    in.layout.dp = 2;
    CHECK_FALSE(nothing(in, "training.zero"));
    in.layout.dp_shard = 2;
    CHECK_FALSE(warned(in, "layout.dp_shard is 1"));
    in.layout.dp_shard = 1;
    CHECK(warned(in, "layout.dp_shard is 1"));
    in.layout.dp_shard = 0;
  }
}
