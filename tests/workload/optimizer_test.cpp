// Adam whose states are narrower than fp32: bytes by hand, and laws of steps.
#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <vector>

#include "collcast/workload/terms.hpp"
#include "inputs.hpp"
#include "support/dice.hpp"
#include "workload/layer/segments.hpp"
#include "workload/memory/optimizer_bytes.hpp"
#include "workload/memory/state_copies.hpp"

using namespace collcast;
using namespace collcast::test;
using workload::optimizer_bytes;
using workload::OptimizerBytes;

namespace {

using enum StateFormat;

OptimizerBytes bytes(const char* precision, std::optional<PrecisionAwareOptimizer> aware, int gradient = 4) {
  TrainingOptions o;
  o.precision = precision;
  o.gradient_bytes = gradient;
  o.precision_aware_optimizer = aware;
  return optimizer_bytes(o);
}

struct Expected {
  const char* precision;
  std::optional<PrecisionAwareOptimizer> aware;
  double kept, adam, converted, unscaled;
};

std::string message(const StepInputs& in) { return to_text(check_step(in, 64, {})); }

}  // namespace

TEST_CASE("bytes that an optimizer keeps and moves for a parameter, by hand") {
  const PrecisionAwareOptimizer plain, whole{fp32, fp32, fp32, false};
  for (const Expected& e : std::vector<Expected>{
           // Two moments and the master weight; each read and written, and the weight written.
           {"bf16", {}, 12, 26, 0, 0},
           {"fp8", {}, 12, 26, 0, 0},
           // fp32 weights are the master themselves.
           {"fp32", {}, 8, 24, 0, 0},
           // Half of the master weight is the weight: 16 + 2 + 2 for the other half, 2 + 2 for the weight.
           {"bf16", plain, 10, 24, 0, 0},
           {"bf16", whole, 12, 26, 0, 0},
           // fp16 is no half of fp32, and weights of an fp8 step are made of the master.
           {"fp16", plain, 12, 26, 0, 0},
           {"fp8", plain, 12, 26, 0, 0},
           // There 2 + 4, back 4 + 2 and 2 + 2: 16 for each moment, whose fp32 copy is 4.
           {"bf16", PrecisionAwareOptimizer{bf16, bf16}, 6, 24, 32, 8},
           {"fp8", PrecisionAwareOptimizer{bf16, bf16}, 8, 26, 32, 8},
           {"bf16", PrecisionAwareOptimizer{fp32, bf16}, 8, 24, 16, 4},
           // 1 + 4, and 4 + 4 + 1.
           {"bf16", PrecisionAwareOptimizer{fp8, fp8}, 4, 24, 28, 8},
           // 2 + 4 + 4 + 4, and 4 + 4 + 4 + 4 + 2: 32 each, of the parameters as well.
           {"bf16", PrecisionAwareOptimizer{fp16, fp16, fp16}, 6, 26, 96, 12}}) {
    INFO(e.precision << " " << e.kept);
    const OptimizerBytes b = bytes(e.precision, e.aware);
    CHECK(b.kept == e.kept);
    CHECK(b.adam == e.adam);
    CHECK(b.converted == e.converted);
    CHECK(b.unscaled == e.unscaled);
    CHECK(b.copied == 0);
  }
}

TEST_CASE("gradients in 16 bit are copied in fp32 unless the optimizer reads them as they are") {
  CHECK(bytes("bf16", {}, 2).copied == 4);
  CHECK(bytes("fp8", {}, 2).copied == 4);
  CHECK(bytes("bf16", PrecisionAwareOptimizer{}, 2).copied == 0);
  CHECK(bytes("fp16", PrecisionAwareOptimizer{}, 2).copied == 0);
  // In fp8 the parameters in fp32 are not the optimizer's own, those in fp16 are.
  CHECK(bytes("fp8", PrecisionAwareOptimizer{bf16, bf16}, 2).copied == 4);
  CHECK(bytes("fp8", PrecisionAwareOptimizer{bf16, bf16, fp16}, 2).copied == 0);
  TrainingOptions none;
  none.optimizer = false;
  none.gradient_bytes = 2;
  CHECK(optimizer_bytes(none).copied == 0);
  CHECK(optimizer_bytes(none).kept == 0);
}

TEST_CASE("a copy of gradients in fp32 that memory has takes its time, and is what norm and Adam read") {
  struct Moved {
    int gradient;
    bool aware;
    double copy, norm, adam;
  };
  for (const Moved& e : std::vector<Moved>{
           {4, false, 0, 4, 4 + 26},
           {2, false, 2 + 4, 4, 4 + 26},
           {4, true, 0, 4, 4 + 24},
           {2, true, 0, 2, 2 + 24},  // read as they are
       }) {
    StepInputs in = inputs(small_model(), layout(1, 1, 2), 256, 8);
    in.options.zero = 1;
    in.options.gradient_bytes = e.gradient;
    if (e.aware) in.options.precision_aware_optimizer = PrecisionAwareOptimizer{};
    const double owned = workload::owned_parameters(in, 0);
    double copy = 0, norm = 0, adam = 0;
    for (const Operation& op : workload::optimizer_operations(in, 0, 1)) {
      if (op.name == "gradients to fp32") copy += op.bytes.value();
      if (op.name == "gradient norm") norm += op.bytes.value();
      if (op.name == "adam") adam += op.bytes.value();
    }
    CAPTURE(e.gradient, e.aware);
    CHECK(copy == Approx(e.copy * owned));
    CHECK(norm == Approx(e.norm * owned));
    CHECK(adam == Approx(e.adam * owned));
    CHECK((copy > 0) == (memory_terms(in, 0).copied > Volume{}));
    if (copy > 0) CHECK(copy == Approx(memory_terms(in, 0).copied.value() * (2 + 4) / 4));
  }
}

TEST_CASE("of steps: narrower states are as much less memory, fp32 copies are there at the optimizer's step alone") {
  Dice dice(3);
  int steps = 0, fullest_at_the_optimizer = 0;
  for (int i = 0; i < 200; ++i) {
    StepInputs in = inputs(dice.pick({small_model(), small_experts()}),
                           layout(dice.pick({1, 2}), dice.pick({1, 2}), dice.pick({1, 2, 4})), 256, 8);
    in.options.zero = dice.roll(4);
    in.options.gradient_bytes = dice.pick({2, 4});
    if (!check_step(in, 16, {}).empty()) continue;
    ++steps;
    StepInputs narrow = in;
    PrecisionAwareOptimizer aware{dice.pick({fp32, bf16, fp16, fp8}), dice.pick({fp32, bf16, fp16, fp8}),
                                  dice.pick({fp32, fp16}), dice.roll(2) == 0};
    narrow.options.precision_aware_optimizer = aware;
    REQUIRE(check_step(narrow, 16, {}).empty());
    const MemoryTerms usual = memory_terms(in, 0), now = memory_terms(narrow, 0);
    const OptimizerBytes each = optimizer_bytes(narrow.options);
    INFO("step " << i << ": " << each.kept);
    CHECK(now.optimizer().value() == Approx(usual.optimizer().value() * each.kept / 12));
    CHECK(now.unscaled.value() == Approx(usual.optimizer().value() * each.unscaled / 12));
    CHECK(now.copied == Volume{});
    CHECK(now.buffers_of_forward() == usual.buffers_of_forward());
    CHECK(now.buffers_of_backward() == usual.buffers_of_backward());
    const MemoryUse use = stage_memory(narrow, 0, 8), wide = stage_memory(in, 0, 8);
    if (use.moment == MemoryMoment::optimizer) ++fullest_at_the_optimizer;
    for (const MemoryMoment moment : {MemoryMoment::forward, MemoryMoment::backward})
      CHECK(use.by_moment[static_cast<std::size_t>(moment)] <= wide.by_moment[static_cast<std::size_t>(moment)]);
    // Whatever is brought to fp32 and back is paid for.
    const Seconds before = forecast(in, cluster(2), Method::estimate).breakdown.optimizer;
    const Seconds after = forecast(narrow, cluster(2), Method::estimate).breakdown.optimizer;
    if (each.converted > 2) CHECK(after > before);
  }
  CHECK(steps > 100);
  CHECK(fullest_at_the_optimizer > 5);
}

TEST_CASE("what a precision-aware optimizer does not go with is said, with what would") {
  StepInputs in = inputs(small_model(), layout(1, 1, 2), 256, 8);
  in.options.precision_aware_optimizer = PrecisionAwareOptimizer{bf16, bf16};
  CHECK(message(in).empty());
  in.options.precision = "tf32";
  CHECK(message(in).find("precision_aware_optimizer is of weights in 16 bit, and precision is tf32") !=
        std::string::npos);
}
