// Steps whose layers' products run in fp8 or fp4, all or some of them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "../support/dice.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;
using Catch::Matchers::Contains;
using Catch::Matchers::VectorContains;

namespace {

/// 4 times bf16's rate in fp4, twice in fp8.
StepInputs step_in(const char* precision, ParallelLayout l = layout(2, 1, 1)) {
  StepInputs in = inputs(small_model(), l, 1024, 4);
  in.gpu.peak["fp8"] = FlopRate(200e12);
  in.gpu.peak["fp4"] = FlopRate(400e12);
  in.kernels.gemm["fp4"] = in.kernels.gemm.at("bf16");
  in.options.precision = precision;
  return in;
}

}  // namespace

TEST_CASE("fp4 is of the products of layers, forward and both gradients, and of nothing else") {
  const LayerOperations layer = layer_operations(step_in("fp4"));
  std::set<std::string> in_fp4;
  for (const auto* pass : {&layer.forward, &layer.backward})
    for (const Operation& op : *pass)
      if (op.precision == "fp4") in_fp4.insert(op.name);
  std::set<std::string> products;
  for (const char* name : {"qkv", "projection", "mlp up+gate", "mlp down"})
    for (const char* what : {"", " input gradient", " weight gradient"}) products.insert(std::string(name) + what);
  CHECK(in_fp4 == products);
  CHECK(named(layer.forward, "flash attention").precision == "bf16");
  // 2048 tokens, 1024 in, (16 + 2 x 8) x 64 / 2 = 1024 out: 0.5625 bytes each way in, 2 out.
  CHECK(named(layer.forward, "qkv").bytes.value() == 0.5625 * (2048. * 1024 + 1024. * 1024) + 2 * 2048. * 1024);
  const StepResult of_bf16 = forecast_on_two(step_in("bf16")), of_fp8 = forecast_on_two(step_in("fp8")),
                   of_fp4 = forecast_on_two(step_in("fp4"));
  CHECK(of_fp4.step < of_fp8.step);
  CHECK(of_fp8.step < of_bf16.step);
  CHECK(of_fp4.memory.peak() < of_fp8.memory.peak());
  CHECK(of_fp8.memory.peak() < of_bf16.memory.peak());
  StepInputs inputs_as_they_were = step_in("fp4");
  inputs_as_they_were.options.save_original_input = true;
  CHECK(forecast_on_two(inputs_as_they_were).memory.peak() == of_bf16.memory.peak());
  REQUIRE(of_fp4.warnings.size() == of_fp8.warnings.size() + 1);
  CHECK_THAT(of_fp4.warnings.back(), Contains("those of forwards alone were measured"));
}

TEST_CASE("what only narrow products have is refused beside other precisions, with its place and theirs") {
  Origins origins;
  int line = 6;
  for (const char* key : {"save_original_input", "num_layers_at_start_in_bf16", "precision"})
    origins.set("training." + std::string(key), {"s.yaml", ++line, 3});
  for (const char* precision : {"fp8", "fp4"}) {
    StepInputs in = step_in(precision);
    in.options.save_original_input = true;
    CHECK(check_step(in, 16, origins).empty());
    CHECK(forecast_on_two(in).warnings.size() == forecast_on_two(step_in(precision)).warnings.size());
    in.options.bf16_first_layers = 1;
    CHECK(check_step(in, 16, origins).empty());
    CHECK_THAT(forecast_on_two(in).warnings,
               VectorContains(std::string("training.save_original_input has no effect: with layers in bf16 all inputs "
                                          "of products count as kept so")));
  }
  for (const char* precision : {"bf16", "fp16"}) {
    StepInputs in = step_in(precision);
    in.gpu.peak["fp16"] = FlopRate(100e12);
    in.kernels.gemm["fp16"] = in.kernels.gemm.at("bf16");
    in.kernels.attention["fp16"] = in.kernels.attention.at("bf16");
    in.options.save_original_input = true;
    in.options.bf16_first_layers = 1;
    const Diagnostics found = check_step(in, 16, origins);
    CAPTURE(to_text(found));
    REQUIRE(found.size() == 2);
    CHECK(found[0].where.line == 7);
    CHECK_THAT(found[0].message, Contains(std::string("precision fp8 or fp4, this is ") + precision + " (s.yaml:9:3)"));
    CHECK(found[0].hint == "leave it out, or use precision: fp8");
    CHECK(found[1].where.line == 8);
  }
  StepInputs misspelt = step_in("fp9");
  misspelt.options.save_original_input = true;
  CHECK(check_step(misspelt, 16, origins).size() == 1);  // that there is no fp9
}

TEST_CASE("layers in bf16 at the ends: none is the precision's step, all are bf16's, each more is no shorter") {
  for (const char* precision : {"fp8", "fp4"}) {
    const StepResult none = forecast_on_two(step_in(precision)), bf16 = forecast_on_two(step_in("bf16"));
    Seconds before{};
    for (int first = 0; first <= 8; ++first) {
      StepInputs in = step_in(precision);
      in.options.bf16_first_layers = first / 2;
      in.options.bf16_last_layers = first - first / 2;
      const StepResult r = forecast_on_two(in);
      CHECK(r.step >= before);
      // Each layer counts for itself.
      CHECK(r.step.count() == Approx((none.step + (bf16.step - none.step) * (first / 8.0)).count()));
      CHECK(flop_terms(in).model() == flop_terms(step_in("bf16")).model());
      before = r.step;
    }
    CHECK(before.count() == Approx(bf16.step.count()));
  }
}

TEST_CASE("closed form and timeline agree on layers in bf16, with stages that differ by them") {
  Dice dice(3);
  for (int run = 0; run < 40; ++run) {
    ParallelLayout l = layout(dice.pick({1, 2}), dice.pick({1, 2, 4}), dice.pick({1, 2}));
    if (l.pp > 1)
      l.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1,
                              PipelineSchedule::dualpipe_v});
    StepInputs in = step_in(dice.pick({"fp8", "fp4"}), l);
    in.batch.global_batch = 2 * 8 * l.dp;
    in.options.bf16_first_layers = dice.roll(3);
    in.options.bf16_last_layers = dice.roll(4);
    in.options.recompute = dice.pick({Recompute::none, Recompute::full});
    in.options.recompute_layers = dice.pick({1.0, 0.5});
    REQUIRE(check_step(in, 16, {}).empty());
    const StepResult r = forecast_on_two(in, Method::both);
    // Every operation of the timeline is rounded up to a picosecond.
    CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(5e-8));
  }
}

TEST_CASE("layers in bf16 are of fp8 and fp4, and no more than there are") {
  const auto wrong = [](const char* precision, int first, int last) {
    StepInputs in = step_in(precision);
    in.options.bf16_first_layers = first;
    in.options.bf16_last_layers = last;
    return to_text(check_step(in, 16, {}));
  };
  CHECK(wrong("fp4", 4, 4) == "");
  CHECK(wrong("fp8", 8, 0) == "");
  CHECK(wrong("bf16", 0, 0) == "");
  CHECK_THAT(wrong("bf16", 1, 0), Contains("layers in bf16 are of precision fp8 or fp4, this is bf16"));
  CHECK_THAT(wrong("fp4", 5, 4),
             Contains("5 layers at the start and 4 at the end in bf16 are more than the model's 8"));
}

TEST_CASE("narrow products that take longer than wider ones are told of, with what is shorter and no cause") {
  const auto told = [](const StepInputs& in) {
    const std::vector<std::string> all = forecast_on_two(in).warnings;
    return std::ranges::count_if(all, [](const std::string& w) { return w.find("would shorten the step") != w.npos; });
  };
  for (const char* precision : {"fp8", "fp4"}) {
    StepInputs in = step_in(precision);
    CHECK(told(in) == 0);
    // A launch of bf16's takes none: 32 micro-batches' products of 1 ms more each are longer than all that is saved.
    in.kernels.gemm[precision] = in.kernels.gemm.at("bf16");
    in.kernels.gemm[precision].overhead = Seconds(1e-3);
    REQUIRE(told(in) == 1);
    const StepResult slow = forecast_on_two(in);
    in.options.precision = "bf16";
    const StepResult wide = forecast_on_two(in);
    CHECK(told(in) == 0);
    CHECK(wide.step < slow.step);
    const long share = std::lround(100 * (1 - wide.step / slow.step));
    const std::string shorter = std::string("precision ") + precision + " takes longer here than a wider one; ";
    const std::string by = "training.precision: bf16 (" + std::to_string(share) + " %)";
    CHECK(std::ranges::any_of(slow.warnings,
                              [&](const std::string& w) { return w.starts_with(shorter) && w.find(by) != w.npos; }));
  }
}

TEST_CASE("a format of what is sent that takes longer to cast than it saves is told of, with what is shorter") {
  StepInputs in = step_in("bf16", layout(8, 1, 1));
  in.layout.sequence_parallel = true;
  in.options.communication.tp_gather = WireFormat::fp8;
  const auto told = [&] {
    for (const std::string& w : forecast_on_two(in).warnings)
      if (w.starts_with("tp_gather in fp8 takes longer to cast here than it saves on the way; ")) return true;
    return false;
  };
  // An element that came is cast from 1 byte to 2, of N all: 3 N bytes at 1 TB/s, 3.0 ps N; of its way 7/8 N bytes at
  // 300 GB/s are saved, 2.9 ps N. With ten times the memory's rate casts take 0.3 ps N.
  CHECK(told());
  const Bandwidth memory = in.gpu.memory_bandwidth;
  in.gpu.memory_bandwidth = memory * 10;
  CHECK_FALSE(told());
  in.gpu.memory_bandwidth = memory;
  in.options.communication.tp_gather = WireFormat::bf16;
  CHECK_FALSE(told());
}
