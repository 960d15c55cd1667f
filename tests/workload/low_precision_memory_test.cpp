// What steps in fp8 and fp4 keep for the backward: inputs of products as these read them.
#include <catch2/catch.hpp>

#include <random>

#include "../support/dice.hpp"
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
      CHECK(wide.layer[mlp_layer].cast == Volume{});
      for (const auto& [precision, less] : {std::pair("fp8", 1.0), std::pair("fp4", 1.4375)}) {
        const MemoryTerms narrow = terms(step_in(precision, small_model(), l));
        CAPTURE(precision, tp, sequence_parallel);
        CHECK(narrow.layer[mlp_layer].total().value() ==
              Approx(wide.layer[mlp_layer].total().value() - less * elements));
        CHECK(narrow.layer[mlp_layer].cast.value() == Approx(less * elements));
        StepInputs as_they_were = step_in(precision, small_model(), l);
        as_they_were.options.save_original_input = true;
        CHECK(terms(as_they_were).layer[mlp_layer].total() == wide.layer[mlp_layer].total());
        as_they_were.options.save_original_input = false;
        as_they_were.options.bf16_first_layers = 1;
        CHECK(terms(as_they_were).layer[mlp_layer].total() == wide.layer[mlp_layer].total());
      }
    }
}

TEST_CASE(
    "of experts their rows and what they activate, of latent attention its small ranks; what the router reads stays") {
  const StepInputs in = step_in("fp8", small_deepseek(), layout(1, 1, 1));
  const MemoryTerms t = terms(in);
  const TransformerConfig& m = in.model;
  const double ranks = t.rows * (m.latent.q_rank + m.latent.kv_rank);
  CHECK(t.layer[mlp_layer].cast.value() ==
        Approx(t.rows * m.hidden + ranks + t.tokens * m.ffn));  // the second norm's output
  const double taken = t.rows * m.experts.top_k;
  CHECK(t.layer[expert_layer].cast.value() ==
        Approx(ranks + t.tokens * m.experts.shared_ffn + taken * (m.hidden + m.experts.ffn)));
}

TEST_CASE("an MLP beside attention: what both read of their one norm stays, what each reads of its own does not") {
  for (const int norms : {0, 1, 2})
    for (const bool experts : {false, true}) {
      TransformerConfig model = experts ? small_experts() : small_model();
      model.parallel_mlp.norms = norms;
      const StepInputs in = step_in("fp8", model, layout(1, 1, 1));
      const MemoryTerms t = terms(in);
      const double h = in.model.hidden;
      const LayerShape shape = experts ? expert_layer : mlp_layer;
      CAPTURE(norms, experts);
      // The router reads the second norm of experts, too.
      const double of_norms = t.rows * h * (norms == 1 ? 0 : experts ? 1 : 2);
      const double behind =
          experts ? t.rows * in.model.experts.top_k * (h + in.model.experts.ffn) : t.tokens * in.model.ffn;
      CHECK(t.layer[shape].cast.value() == Approx(of_norms + behind));
    }
}

TEST_CASE(
    "modules of experts, of latent attention and of the MLP computed once more: of each what it no longer keeps") {
  const auto inputs_kept = [](TransformerConfig model, bool with_experts, RecomputeModules modules) {
    StepInputs in = step_in("fp8", std::move(model), layout(1, 1, 1));
    if (!modules.empty()) in.options.recompute = Recompute::selective;
    in.options.recompute_modules = std::move(modules);
    const LayerShape shape = with_experts ? expert_layer : mlp_layer;
    const ProductInputs of = product_inputs(in, kept_tensors(in, shape), shape);
    CHECK(terms(in).layer[shape].cast.value() == Approx(of.total()));
    return of;
  };
  using enum RecomputeModule;
  const double T = 2 * 1024;  // tokens of a micro-batch, each to 2 of 8 experts
  const double latent = T * (384 + 128), shared = T * 512, rows = T * 2 * 1024, activated = T * 2 * 1024;
  const TransformerConfig v3 = small_deepseek();
  CHECK(inputs_kept(v3, true, {}).total() == latent + shared + rows + activated);
  CHECK(inputs_kept(v3, true, {moe}).total() == latent);
  CHECK(inputs_kept(v3, true, {moe_act}).total() == latent + shared + rows);
  CHECK(inputs_kept(v3, true, {shared_experts}).total() == latent + rows + activated);
  CHECK(inputs_kept(v3, true, {moe_act, shared_experts}).total() == latent + rows);
  // It brings back what the small ranks' products give, and keeps what they read.
  CHECK(inputs_kept(v3, true, {mla_up_proj}).total() == latent + shared + rows + activated);
  CHECK(inputs_kept(small_experts(), true, {moe}).total() == T * 1024);  // the first norm's output
  CHECK(inputs_kept(small_experts(), true, {moe, layernorm}).total() == 0);
  // What gate and up give goes into the activation function in 16 bit; what that gives is kept.
  for (const RecomputeModules& modules : {RecomputeModules{gate_proj}, {up_proj}, {gate_proj, up_proj}})
    CHECK(inputs_kept(small_model(), false, modules).total() == T * (2 * 1024 + 4096));
}

TEST_CASE("what is kept in fp8 is part of what is kept, and with more computed once more no more of it") {
  test::Dice dice(29);
  int tried = 0, less = 0;
  for (int i = 0; i < 400; ++i) {
    TransformerConfig model = dice.roll(3) == 0   ? small_deepseek()
                              : dice.roll(2) == 0 ? small_experts()
                                                  : small_model();
    if (dice.roll(2) == 0) model.parallel_mlp.norms = dice.roll(3);
    model.gated_mlp = dice.roll(3) > 0;
    ParallelLayout l = layout(1 << dice.roll(2), 1, 2);
    l.sequence_parallel = l.tp > 1 && dice.roll(2) == 0;
    StepInputs in = step_in(dice.roll(2) == 0 ? "fp8" : "fp4", model, l);
    in.gpu.peak["fp4"] = FlopRate(100e12);
    in.kernels.gemm["fp4"] = {};
    RecomputeModules modules;
    for (const RecomputeModule one : recompute_modules())
      if (dice.roll(6) == 0) modules.push_back(one);
    in.options.recompute_modules = modules;
    if (!modules.empty()) in.options.recompute = Recompute::selective;
    if (!check_step(in, 8, {}).empty()) continue;
    ++tried;
    for (const LayerShape shape : layer_shapes) {
      const MemoryTerms t = terms(in);
      const ActivationTerms& kept = t.layer[shape];
      if (kept.total() == Volume{}) continue;  // the stage has no such layer
      const ProductInputs of = product_inputs(in, kept_tensors(in, shape), shape);
      const ProductInputs of_all = product_inputs(in, all_tensors(in, shape), shape);
      const double w = t.weight_bytes;
      CAPTURE(i, shape.has_experts());
      CHECK(w * of.norms <= kept.norms.value());
      CHECK(w * of.latent <= kept.latent.value());
      CHECK(w * of.mlp <= kept.mlp.value());
      CHECK(w * (of.rows + of.experts) <= kept.experts.value());
      CHECK(of.total() <= of_all.total());
      CHECK(kept.cast.value() == Approx((w - t.operand_bytes) * of.total()));
      less += of.total() < of_all.total() ? 1 : 0;
    }
  }
  CHECK(tried > 100);
  CHECK(less > 20);
}

TEST_CASE(
    "what is computed once more is not kept in fp8 either, and whole recomputation keeps a layer's input as it was") {
  StepInputs in = step_in("fp8", small_model(), layout(1, 1, 1));
  const TransformerConfig& m = in.model;
  const double norms = 2 * terms(in).rows * m.hidden, activated = terms(in).tokens * m.ffn;
  const auto cast = [&](RecomputeModules modules) {
    in.options.recompute = Recompute::selective;
    in.options.recompute_modules = std::move(modules);
    return terms(in).layer[mlp_layer].cast.value();
  };
  using enum RecomputeModule;
  CHECK(cast({layernorm}) == Approx(activated));
  CHECK(cast({mlp_act}) == Approx(norms));
  CHECK(cast({mlp}) == Approx(norms));
  CHECK(cast({core_attn}) == Approx(norms + activated));
  CHECK(cast({layernorm, mlp}) == 0);
  in.options.recompute = Recompute::full;
  CHECK(terms(in).layer[mlp_layer].cast == Volume{});
  StepInputs of_bf16 = step_in("bf16", small_model(), layout(1, 1, 1));
  of_bf16.options.recompute = Recompute::full;
  CHECK(terms(in).layer[mlp_layer].total() == terms(of_bf16).layer[mlp_layer].total());
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
      CHECK(t.layer[mlp_layer].total() >= Volume{});
      CHECK(t.layer[expert_layer].total() >= Volume{});
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
    CHECK(narrow.layer[mlp_layer].weights == wide.layer[mlp_layer].weights - narrow.layer[mlp_layer].cast);
    CHECK(narrow.layer[mlp_layer].cast > Volume{});
    CHECK(forecast_on_two(in).step <= forecast_on_two(as_they_were).step);
  }
}
