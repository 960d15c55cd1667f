// What steps in fp8 and fp4 keep for the backward: inputs of products as these read them.
#include <catch2/catch.hpp>

#include <random>

#include "collcast/workload/terms.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

StepInputs step_in(const char* precision, TransformerConfig model, ParallelLayout l) {
  StepInputs in = inputs(std::move(model), std::move(l), 1024, 4);
  in.options.precision = precision;
  return in;
}

MemoryTerms terms(const StepInputs& in) { return memory_terms(in, 0); }

}  // namespace

TEST_CASE("a layer in fp8 keeps a byte less of each element that one product alone reads, in fp4 1.4375") {
  for (const int tp : {1, 2})
    for (const bool sequence_parallel : {false, true}) {
      ParallelLayout l = layout(tp, 1, 1);
      l.sequence_parallel = sequence_parallel && tp > 1;
      const StepInputs of_bf16 = step_in("bf16", small_model(), l);
      const MemoryTerms wide = terms(of_bf16);
      const TransformerConfig& m = of_bf16.model;
      // Outputs of both norms, and of the activation function.
      const double elements = 2 * wide.rows * m.hidden + wide.tokens * m.ffn / tp;
      CHECK(wide.layer.cast == Volume{});
      for (const auto& [precision, less] : {std::pair("fp8", 1.0), std::pair("fp4", 1.4375)}) {
        const MemoryTerms narrow = terms(step_in(precision, small_model(), l));
        CAPTURE(precision, tp, sequence_parallel);
        CHECK(narrow.layer.total().value() == Approx(wide.layer.total().value() - less * elements));
        CHECK(narrow.layer.cast.value() == Approx(less * elements));
        StepInputs as_they_were = step_in(precision, small_model(), l);
        as_they_were.options.save_original_input = true;
        CHECK(terms(as_they_were).layer.total() == wide.layer.total());
        as_they_were.options.save_original_input = false;
        as_they_were.options.bf16_first_layers = 1;
        CHECK(terms(as_they_were).layer.total() == wide.layer.total());
      }
    }
}

TEST_CASE(
    "of experts their rows and what they activate, of latent attention its small ranks; what the router reads stays") {
  const StepInputs in = step_in("fp8", small_deepseek(), layout(1, 1, 1));
  const MemoryTerms t = terms(in);
  const TransformerConfig& m = in.model;
  const double ranks = t.rows * (m.latent.q_rank + m.latent.kv_rank);
  CHECK(t.layer.cast.value() == Approx(t.rows * m.hidden + ranks + t.tokens * m.ffn));  // the second norm's output
  const double taken = t.rows * m.experts.top_k;
  CHECK(t.expert_layer.cast.value() ==
        Approx(ranks + t.tokens * m.experts.shared_ffn + taken * (m.hidden + m.experts.ffn)));
}

TEST_CASE(
    "what is computed once more is not kept in fp8 either, and whole recomputation keeps a layer's input as it was") {
  StepInputs in = step_in("fp8", small_model(), layout(1, 1, 1));
  const TransformerConfig& m = in.model;
  const double norms = 2 * terms(in).rows * m.hidden, activated = terms(in).tokens * m.ffn;
  const auto cast = [&](RecomputeModules modules) {
    in.options.recompute = Recompute::selective;
    in.options.recompute_modules = std::move(modules);
    return terms(in).layer.cast.value();
  };
  using enum RecomputeModule;
  CHECK(cast({layernorm}) == Approx(activated));
  CHECK(cast({mlp_act}) == Approx(norms));
  CHECK(cast({mlp}) == Approx(norms));
  CHECK(cast({core_attn}) == Approx(norms + activated));
  CHECK(cast({layernorm, mlp}) == 0);
  in.options.recompute = Recompute::full;
  CHECK(terms(in).layer.cast == Volume{});
  StepInputs of_bf16 = step_in("bf16", small_model(), layout(1, 1, 1));
  of_bf16.options.recompute = Recompute::full;
  CHECK(terms(in).layer.total() == terms(of_bf16).layer.total());
}

TEST_CASE("no step in fp8 needs more than in bf16, or than with its inputs kept as they were") {
  std::mt19937 random(7);
  const auto dice = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int less = 0;
  for (int i = 0; i < 200; ++i) {
    const bool experts = dice(2) == 0;
    ParallelLayout l = layout(1 << dice(2), 1 << dice(2), 2);
    StepInputs in = step_in("fp8", experts ? (dice(2) == 0 ? small_deepseek() : small_experts()) : small_model(), l);
    draw_options(in, false, dice);
    in.options.precision = "fp8";
    const int stage = dice(l.pp);
    const auto total = [&](const StepInputs& of) {
      const MemoryTerms t = memory_terms(of, stage);
      CHECK(t.layer.total() >= Volume{});
      CHECK(t.expert_layer.total() >= Volume{});
      return t.activations().value();
    };
    StepInputs as_they_were = in, of_bf16 = in;
    as_they_were.options.save_original_input = true;
    of_bf16.options.precision = "bf16";
    CHECK(total(in) <= total(as_they_were));
    CHECK(total(as_they_were) == Approx(total(of_bf16)));
    less += total(in) < total(of_bf16) ? 1 : 0;
  }
  CHECK(less > 20);
}

TEST_CASE(
    "zero bubble: inputs that wait for weight gradients wait as they are kept, and no order is slower for less of "
    "them") {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::zb_h1, PipelineSchedule::zb_h2, PipelineSchedule::zb_1p, PipelineSchedule::zb_2p}) {
    StepInputs in = step_in("fp8", small_model(), layout(1, 4, 1));
    in.layout.schedule = schedule;
    StepInputs as_they_were = in;
    as_they_were.options.save_original_input = true;
    CAPTURE(to_string(schedule));
    const MemoryTerms narrow = terms(in), wide = terms(as_they_were);
    CHECK(narrow.layer.weights == wide.layer.weights - narrow.layer.cast);
    CHECK(narrow.layer.cast > Volume{});
    CHECK(forecast_on_two(in).step <= forecast_on_two(as_they_were).step);
  }
}
