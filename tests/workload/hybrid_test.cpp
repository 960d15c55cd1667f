// Hybrid models, whose layers are of one part each, and Mamba-2: the same as layers of both parts, by hand, and laws.
#include <catch2/catch.hpp>

#include <string>

#include "collcast/workload/terms.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr LayerShape mamba_layer{Mixer::linear_attention, FeedForward::none};
constexpr LayerShape experts_alone{Mixer::none, FeedForward::experts};

std::string times(int count, const std::string& part) {
  std::string out;
  for (int i = 0; i < count; ++i) out += part;
  return out;
}

/// 8 layers of attention and an MLP, or of experts, as layers of both parts or as twice as many of one.
StepInputs whole(ParallelLayout split, bool experts = false, bool linear = false) {
  StepInputs in = inputs(experts ? small_experts() : small_model(), split, 512, 8);
  in.model.biases = false;
  if (experts) in.layout.sequence_parallel = split.tp > 1;
  if (linear) in.model.linear = {8, 16, 64, 32, 4, 0, {}, LinearRule::ssd};
  return in;
}
StepInputs halved(StepInputs in) {
  const bool experts = in.model.experts.count > 0, linear = in.model.linear.key_heads > 0;
  in.model.pattern = times(in.model.layers, std::string(linear ? "M" : "*") + (experts ? "E" : "-"));
  in.model.layers *= 2;
  return in;
}

/// Eight heads of states for the same queries and keys.
StepInputs mamba(ParallelLayout split, const std::string& pattern = "MEM*ME-M", int sequence = 1024) {
  StepInputs in = whole(split, true, true);
  in.batch.sequence = sequence;
  in.model.pattern = pattern;
  in.model.layers = static_cast<int>(pattern.size());
  return in;
}

}  // namespace

TEST_CASE("layers of one part each are the layers of both parts that they make up") {
  int tried = 0;
  for (const bool experts : {false, true})
    for (const bool linear : {false, true})
      for (const int pp : {1, 2})
        for (const int tp : {1, 2})
          for (const bool parallel : {false, true})
            for (const Recompute again : {Recompute::none, Recompute::selective, Recompute::full}) {
              // Of one replica: buckets of gradients close behind smaller layers.
              StepInputs one = whole(layout(tp, pp, 1), experts, linear);
              one.layout.sequence_parallel = tp > 1 && (parallel || experts);
              one.options.recompute = again;
              if (again == Recompute::selective)
                one.options.recompute_modules =
                    linear     ? RecomputeModules{RecomputeModule::layernorm}
                    : parallel ? RecomputeModules{RecomputeModule::q_proj, RecomputeModule::k_proj}
                               : RecomputeModules{RecomputeModule::core_attn, RecomputeModule::layernorm};
              const StepInputs two = halved(one);
              CAPTURE(experts, linear, pp, tp, parallel, static_cast<int>(again));
              REQUIRE(to_text(check_step(two, 16, Origins())).empty());
              CHECK(parameter_count(two.model) == parameter_count(one.model));
              CHECK(active_parameter_count(two.model) == active_parameter_count(one.model));
              const StepResult a = forecast_on_two(one, Method::both), b = forecast_on_two(two, Method::both);
              CHECK(b.estimate.count() == Approx(a.estimate.count()).epsilon(1e-12));
              // Twice as many tasks are rounded to whole picoseconds.
              CHECK(b.simulate->count() == Approx(a.simulate->count()).epsilon(1e-8));
              CHECK(b.mfu == Approx(a.mfu).epsilon(1e-8));
              CHECK(b.hfu == Approx(a.hfu).epsilon(1e-8));
              CHECK(b.memory.parameters == a.memory.parameters);
              CHECK(b.memory.optimizer == a.memory.optimizer);
              // Of full recomputation each keeps its own input.
              if (again != Recompute::full) CHECK(b.memory.activations == a.memory.activations);
              ++tried;
            }
  CHECK(tried == 96);
}

TEST_CASE("zero bubble: weight gradients of layers of one part wait for the same") {
  for (const bool experts : {false, true}) {
    StepInputs one = whole(layout(1, 2, 1), experts);
    one.layout.schedule = PipelineSchedule::zb_h1;
    const StepInputs two = halved(one);
    CAPTURE(experts);
    const StepResult a = forecast_on_two(one), b = forecast_on_two(two);
    CHECK(b.estimate.count() == Approx(a.estimate.count()).epsilon(1e-12));
    CHECK(b.memory.peak() == a.memory.peak());
  }
}

TEST_CASE("parameters of Mamba-2 by hand") {
  const StepInputs in = mamba(layout(1, 1, 1));
  const double h = in.model.hidden, K = 8 * 64, V = 16 * 32, heads = 16;
  const ParameterTerms p = parameter_terms(in, 0);
  // In: gate, x, B, C, steps; taps and biases; decays, what passes by, biases of steps; the norm; out.
  const double mixer = h * (2 * V + 2 * K + heads) + 5 * (2 * K + V) + 3 * heads + V + V * h;
  CHECK(p.layers[mamba_layer] == 4);
  CHECK(p.layer[mamba_layer].total() == mixer + h);
  CHECK(p.layers[experts_alone] == 2);
  CHECK(p.layer[experts_alone].attention == 0);
  CHECK(p.layer[experts_alone].norms == h);
  CHECK(p.all_layers() == 8);
  for (const int tp : {2, 4}) {
    StepInputs split = mamba(layout(tp, 1, 1));
    const ParameterTerms part = parameter_terms(split, 0);
    CHECK(part.layer[mamba_layer].attention == mixer / tp);
    CHECK(part.layer[mamba_layer].norms == h);
  }
}

TEST_CASE("kernels of Mamba-2 by hand") {
  const StepInputs in = mamba(layout(2, 1, 1));
  const LayerOperations ops = linear_attention_operations(in);
  const double T = 1024. * in.batch.micro_batch, h = in.model.hidden, K = 8 * 64 / 2, V = 16 * 32 / 2, heads = 16 / 2;
  const double C = 128, w = 2, state = heads * 64 * 32, groups = 8 / 2;
  CHECK(named(ops.forward, "linear attention in").flops.value() == 2 * T * h * (2 * K + 2 * V + heads));
  CHECK(named(ops.forward, "linear attention out").flops.value() == 2 * T * V * h);
  CHECK(bytes(ops.forward, "convolution") == 2 * w * T * (2 * K + V));
  CHECK_FALSE(has_kernel(ops.forward, "query and key norms"));
  const double scan = 2 * C * K + 2 * C * V + 4 * state, again = 2 * C * K + 2 * state;
  CHECK(named(ops.forward, "SSD scan").flops.value() == Approx(T * scan));
  CHECK(named(ops.backward, "SSD scan gradient").flops.value() == Approx(T * (2 * scan + again)));
  const double moved = T * (w * (4 * K + 5 * V) + 8 * C * groups + (8 + 2 * w) * state / C);
  CHECK(bytes(ops.forward, "SSD scan") == Approx(moved));
  CHECK(bytes(ops.backward, "SSD scan gradient") == Approx(3 * moved));
  CHECK(bytes(ops.forward, "value norm") == 2 * w * T * V);
  // Each kind of layer has its own kernels, and one norm.
  CHECK(has_kernel(layer_operations(in).forward, "qkv"));
  for (const LayerOperations& of : {layer_operations(in), ops}) CHECK_FALSE(has_kernel(of.forward, "mlp norm"));
  const LayerOperations experts = feed_forward_operations(in);
  CHECK(has_kernel(experts.forward, "experts up+gate"));
  CHECK_FALSE(has_kernel(experts.forward, "attention norm"));
  CHECK(feed_forward_operations(whole(layout(1, 1, 1), true)).empty());
}

TEST_CASE("FLOPs of a hybrid model are those of its layers") {
  const StepInputs in = mamba(layout(1, 1, 1));
  const double s = 1024, h = in.model.hidden, K = 8 * 64, V = 16 * 32, each = in.model.gated_mlp ? 6 : 4;
  const Experts& e = in.model.experts;
  const double experts = 2 * h * e.count + each * h * (e.top_k * e.ffn + e.shared_ffn);
  const double attention = 2 * h * in.model.head_dim * (2 * in.model.heads + 2 * in.model.kv_heads);
  const FlopTerms f = flop_terms(in);
  CHECK(f.linear == Approx(s * (4 * 2 * h * (2 * K + 3 * V + 16) + attention + 2 * experts + each * h * in.model.ffn)));
  CHECK(f.core == Approx(4 * s * 7 * 16 * 64 * 32 + 4 * s * s * in.model.heads * in.model.head_dim));
  StepInputs full = in;
  full.options.recompute = Recompute::full;
  CHECK(flop_terms(full).recomputed == Approx(f.linear + f.core));
}

TEST_CASE("what layers of one part keep, by hand") {
  const StepInputs in = mamba(layout(2, 1, 1));
  const MemoryTerms terms = memory_terms(in, 0);
  const double T = 1024. * in.batch.micro_batch, rows = T / 2, w = 2, K = 8 * 64 / 2, V = 16 * 32 / 2, heads = 16 / 2;
  const ActivationTerms& kept = terms.layer[mamba_layer];
  CHECK(kept.norms.value() == 2 * w * rows * in.model.hidden);
  CHECK(kept.projections.value() == Approx(w * T * (2 * K + 2 * V + heads + 3 * V)));
  CHECK((kept.core == Volume{} && kept.mlp == Volume{} && kept.experts == Volume{}));
  CHECK(terms.layer[experts_alone].projections == Volume{});
  CHECK(terms.layer[experts_alone].experts > Volume{});
}

TEST_CASE("a server of a hybrid model keeps keys and values where it attends, states where it does not") {
  StepInputs in = mamba(layout(1, 1, 1), "MEM*ME-M", 512);
  in.serving = Serving{};
  in.serving->batch = 4;
  in.serving->prompt_tokens = 512;
  in.serving->output_tokens = 16;
  in.options.optimizer = false;
  const ServingMemoryTerms terms = serving_memory_terms(in, 0);
  CHECK(terms.state_layers == 4);
  CHECK(terms.full_layers == 1);
  CHECK(terms.states().value() == 4 * 4 * (4. * 16 * 64 * 32 + 2. * 3 * (2 * 8 * 64 + 16 * 32)));
  const StepResult r = forecast_on_two(in, Method::both);
  CHECK(r.inference->decode.simulate->count() == Approx(r.inference->decode.estimate.count()).epsilon(1e-6));
  CHECK_FALSE(r.inference->decode.feed_forward_operations.empty());
  CHECK(has_kernel(r.inference->decode.linear_operations, "SSD scan over the states"));
}

TEST_CASE("closed form and timeline agree on hybrid models") {
  for (const int pp : {1, 2, 4})
    for (const int tp : {1, 2}) {
      StepInputs in = mamba(layout(tp, pp, 8 / pp / tp), "MEM*ME-MMEME-*ME", 512);
      in.batch.global_batch = in.batch.micro_batch * in.layout.dp * 8;
      const StepResult r = forecast_on_two(in, Method::both);
      CAPTURE(pp, tp);
      CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(pp == 1 ? 1e-6 : 0.05));
    }
}

TEST_CASE("a server of layers of one part has no width that none of them has") {
  StepInputs in = whole(layout(1, 1, 1));
  in.model.pattern = times(8, "*");
  in.serving = Serving{};
  in.serving->prompt_tokens = 512;
  in.serving->output_tokens = 16;
  in.options.optimizer = false;
  StepInputs wide = in;
  wide.model.ffn *= 100;
  CHECK(serving_memory_terms(in, 0).activations() == serving_memory_terms(wide, 0).activations());
}

TEST_CASE("a family of layouts prices hybrid models as a forecast does") {
  for (const int pp : {1, 2, 4})
    for (const char* pattern : {"M*M*M-M-", "*-M-M-M*"}) {
      StepInputs in = whole(layout(2, pp, 2), false, true);
      in.model.pattern = pattern;
      check_family(in, pp);
    }
}

TEST_CASE("what a hybrid model lacks or cannot have is said, all at once") {
  const auto wrong = [](auto change) {
    StepInputs in = mamba(layout(1, 1, 1));
    change(in);
    return to_text(check_step(in, 16, Origins()));
  };
  CHECK(wrong([](StepInputs&) {}).empty());
  const auto says = [&](const std::string& part, auto change) {
    INFO(wrong(change));
    CHECK(wrong(change).find(part) != std::string::npos);
  };
  says(
      "hybrid_layer_pattern has another letter as layer 2\n    hint: expected of each layer one letter: M linear "
      "attention",
      [](StepInputs& in) { in.model.pattern[2] = 'X'; });
  says("hybrid_layer_pattern names 8 layers, the model has 9\n    hint: expected one letter for each layer",
       [](StepInputs& in) { in.model.layers = 9; });
  says("has layers 'M', and the model no linear_attention", [](StepInputs& in) { in.model.linear = {}; });
  says("has layers 'E', and the model no experts", [](StepInputs& in) { in.model.experts = {}; });
  says("has no layer 'M'\n    hint: leave out linear_attention", [](StepInputs& in) { in.model.pattern = "*E*-*E*-"; });
  says("linear_attention.full_every beside hybrid_layer_pattern: hybrid_layer_pattern says which layers these are",
       [](StepInputs& in) { in.model.linear.full_every = 4; });
  says("experts.dense_layers beside hybrid_layer_pattern", [](StepInputs& in) { in.model.experts.dense_layers = 1; });
  says("window.tokens beside hybrid_layer_pattern: not modelled", [](StepInputs& in) {
    in.model.pattern = "*E*-*E*-";
    in.model.linear = {};
    in.model.window.tokens = 64;
  });
  says("recompute_layers beside hybrid_layer_pattern: not modelled", [](StepInputs& in) {
    in.options.recompute = Recompute::full;
    in.options.recompute_layers = 0.5;
  });
  says("no layer of the model attends to keys", [](StepInputs& in) {
    in.model.pattern = "MEM-ME-M";
    in.options.recompute = Recompute::selective;
    in.options.recompute_modules = {RecomputeModule::k_proj};
  });
  says("layers of a hybrid model end with it", [](StepInputs& in) {
    in.options.recompute = Recompute::selective;
    in.options.recompute_modules = {RecomputeModule::o_proj};
  });
  says("lora.rank beside hybrid_layer_pattern", [](StepInputs& in) {
    in.model.pattern = "*E*-*E*-";
    in.model.linear = {};
    in.options.lora.rank = 8;
  });
}
