// Linear attention: parameters, kernels and memory by hand, and laws.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "collcast/workload/search.hpp"
#include "collcast/workload/terms.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr LayerShape linear_layer{Mixer::linear_attention, FeedForward::mlp};

/// 8 heads of queries and keys, 16 of values; 4 x 8 + ... of 8 layers all but every `full_every`-th.
LinearAttention delta(int full_every) { return {8, 16, 64, 32, 4, full_every, {}}; }

StepInputs linear(int full_every, ParallelLayout split, int sequence = 1024) {
  StepInputs in = inputs(small_model(), split, sequence, 8);
  in.model.biases = false;
  in.model.linear = delta(full_every);
  return in;
}

StepInputs serving(int full_every, int prompt, int batch = 4, int tp = 2) {
  StepInputs in = linear(full_every, layout(tp, 1, 1), prompt);
  in.serving = Serving{};
  in.serving->batch = batch;
  in.serving->prompt_tokens = prompt;
  in.serving->output_tokens = 16;
  in.options.optimizer = false;
  return in;
}

}  // namespace

TEST_CASE("layers with linear attention are those that no pattern takes out") {
  TransformerConfig m = small_model();  // 8 layers
  CHECK(linear_layers(m) == 0);
  m.linear = delta(0);
  CHECK(linear_layers(m) == 8);
  m.linear = delta(4);
  CHECK(linear_layers(m) == 6);
  CHECK(has_linear_attention(m, 2));
  CHECK_FALSE(has_linear_attention(m, 3));
  m.linear.full_at = {0, 3};
  CHECK(linear_layers(m) == 5);
}

TEST_CASE("parameters of linear attention by hand") {
  const StepInputs in = linear(4, layout(1, 1, 1));
  const TransformerConfig& m = in.model;
  TransformerConfig all = m;
  all.linear = {};
  const double h = m.hidden, K = 8 * 64, V = 16 * 32;
  const double mixer = h * (2 * K + 2 * V + 2 * 16) + 4 * (2 * K + V) + 2 * 16 + 32 + V * h;
  const double attention = h * m.head_dim * (2 * m.heads + 2 * m.kv_heads);
  CHECK(parameter_count(m) == parameter_count(all) + 6 * (mixer - attention));
  // Each of the stages has what its own layers have; TP splits all but norms.
  for (const int pp : {1, 2, 4})
    for (const int tp : {1, 2, 4}) {
      StepInputs split = linear(3, layout(tp, pp, 1));
      double sum = 0, once = 0;
      for (int stage = 0; stage < pp; ++stage) {
        const ParameterTerms p = parameter_terms(split, stage);
        sum += tp * p.sharded() + p.replicated();
        once += p.total();
      }
      CHECK(sum == Approx(parameter_count(split.model)));
      CHECK(once >= sum / tp);
    }
}

TEST_CASE("a gate of what attention gives widens the first product and passes one kernel") {
  StepInputs with = inputs(small_model(), layout(2, 1, 1), 1024, 8);
  with.model.biases = false;
  StepInputs without = with;
  with.model.attention_gate = true;
  const double h = with.model.hidden, queries = with.model.heads * with.model.head_dim;
  CHECK(parameter_count(with.model) - parameter_count(without.model) == with.model.layers * h * queries);
  const LayerOperations a = layer_operations(with), b = layer_operations(without);
  const double T = 2 * 1024;
  CHECK(named(a.forward, "qkv").flops.value() - named(b.forward, "qkv").flops.value() == 2 * T * h * queries / 2);
  CHECK(bytes(a.forward, "attention gate") == 3 * 2 * T * queries / 2);
  CHECK(bytes(a.backward, "attention gate gradient") == 5 * 2 * T * queries / 2);
  CHECK_FALSE(has_kernel(b.forward, "attention gate"));
  CHECK(memory_terms(with, 0).layer[mlp_layer].projections.value() -
            memory_terms(without, 0).layer[mlp_layer].projections.value() ==
        2 * 2 * T * queries / 2);
  CHECK((flop_terms(with).linear - flop_terms(without).linear) == with.model.layers * 2 * 1024 * h * queries);
}

TEST_CASE("kernels of linear attention by hand") {
  const StepInputs in = linear(0, layout(2, 1, 1));
  const LayerOperations ops = layer_operations(in);
  const double T = 2 * 1024, h = in.model.hidden, K = 8 * 64 / 2, V = 16 * 32 / 2, heads = 16 / 2, C = 64, w = 2;
  CHECK(named(ops.forward, "linear attention in").flops.value() == 2 * T * h * (2 * K + 2 * V + 2 * heads));
  CHECK(named(ops.forward, "linear attention out").flops.value() == 2 * T * V * h);
  CHECK(bytes(ops.forward, "convolution") == 2 * w * T * (2 * K + V));
  CHECK(bytes(ops.forward, "gated norm") == 3 * w * T * V);
  CHECK(bytes(ops.backward, "gated norm gradient") == 5 * w * T * V);
  const double rule = 2 * C * (3 * 64 + 2 * 32) + 6 * 64 * 32 + 2.0 / 3 * C * C;
  const double again = 2 * C * (64 + 32) + 4 * 64 * 32;
  CHECK(named(ops.forward, "gated delta rule").flops.value() == Approx(T * heads * rule));
  CHECK(named(ops.backward, "gated delta rule gradient").flops.value() == Approx(T * heads * (2 * rule + again)));
  const double moved = T * heads * (w * (7 * 64 + 6 * 32 + 2 * 64 * 32 / C) + 12 * C);
  CHECK(bytes(ops.forward, "gated delta rule") == Approx(moved));
  CHECK(bytes(ops.backward, "gated delta rule gradient") == Approx(3 * moved));
  for (const char* name : {"qkv", "rotary", "flash attention", "projection"})
    CHECK_FALSE(has_kernel(ops.forward, name));
}

TEST_CASE("linear attention takes as long for each token whatever the sequence") {
  const auto rule = [](int sequence) {
    return named(layer_operations(linear(0, layout(1, 1, 1), sequence)).forward, "gated delta rule");
  };
  CHECK(rule(4096).flops.value() == Approx(4 * rule(1024).flops.value()));
  CHECK(rule(4096).bytes.value() == Approx(4 * rule(1024).bytes.value()));
  // Of attention to keys more than that.
  const auto step = [](int full_every, int sequence) {
    return forecast_on_two(linear(full_every, layout(2, 1, 1), sequence), Method::estimate).estimate.count();
  };
  CHECK(step(0, 16384) / step(0, 4096) < 4.05);
  CHECK(step(1, 16384) / step(1, 4096) > step(0, 16384) / step(0, 4096));
}

TEST_CASE("a pattern without any layer of linear attention is the model without it") {
  for (const int pp : {1, 2}) {
    StepInputs plain = inputs(small_model(), layout(2, pp, 2), 512, 8);
    plain.model.biases = false;
    StepInputs none = plain;
    none.model.linear = delta(1);
    const StepResult a = forecast_on_two(plain, Method::both), b = forecast_on_two(none, Method::both);
    CHECK(a.estimate == b.estimate);
    CHECK(*a.simulate == *b.simulate);
    CHECK(a.mfu == b.mfu);
    CHECK(a.memory.peak() == b.memory.peak());
  }
}

TEST_CASE("closed form and timeline agree where stages have unlike layers") {
  std::mt19937 draw(7);
  const auto one_of = [&](auto values) { return *(values.begin() + draw() % values.size()); };
  for (int i = 0; i < 40; ++i) {
    const int pp = one_of(std::initializer_list<int>{1, 2, 4}), tp = one_of(std::initializer_list<int>{1, 2, 4});
    StepInputs in = linear(one_of(std::initializer_list<int>{0, 2, 3, 4}), layout(tp, pp, 16 / pp / tp), 512);
    in.layout.sequence_parallel = tp > 1 && draw() % 2 == 0;
    in.options.recompute =
        one_of(std::initializer_list<Recompute>{Recompute::none, Recompute::selective, Recompute::full});
    in.options.zero = static_cast<int>(draw() % 4);
    in.batch.global_batch = 2 * in.layout.dp * (pp == 1 ? 2 : 8);
    const StepResult r = forecast_on_two(in, Method::both);
    INFO(pp << " " << tp << " " << in.model.linear.full_every);
    CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(0.05));
    if (pp == 1) CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(1e-6));
  }
}

TEST_CASE("a family of layouts prices layers of linear attention as a forecast does") {
  for (const int every : {0, 3, 4})
    for (const int pp : {1, 2, 4}) check_family(linear(every, layout(2, pp, 2), 512), pp);
}

TEST_CASE("what layers with linear attention keep, by hand") {
  const StepInputs in = linear(4, layout(2, 1, 1));
  StepInputs plain = in;
  plain.model.linear = {};
  const MemoryTerms terms = memory_terms(in, 0), others = memory_terms(plain, 0);
  const double T = 2 * 1024, w = 2, K = 8 * 64 / 2, V = 16 * 32 / 2, heads = 16 / 2;
  const ActivationTerms &layer = terms.layer[linear_layer], &attends = others.layer[mlp_layer];
  CHECK(layer.projections.value() == Approx(w * T * (6 * K + 5 * V + 66 * heads)));
  CHECK((layer.core == Volume{} && layer.norms == attends.norms && layer.mlp == attends.mlp));
  CHECK(terms.layer[mlp_layer].total() == attends.total());
  CHECK((terms.activations() - others.activations()).value() ==
        Approx(6 * terms.in_flight * (layer.total() - attends.total()).value()));
  StepInputs full = in;
  full.options.recompute = Recompute::full;
  CHECK(memory_terms(full, 0).layer[linear_layer].total() == memory_terms(full, 0).layer[mlp_layer].total());
  CHECK(memory_terms(full, 0).recomputed == std::max(layer.total(), attends.total()));
  // What is recomputed is never more than what is kept otherwise.
  CHECK(memory_terms(full, 0).activations() < terms.activations());
}

TEST_CASE("a server keeps states of fixed size, and its tokens take no longer for them") {
  const int head = 64 * 32, channels = 2 * 8 * 64 + 16 * 32;
  for (const int tp : {1, 2}) {
    const ServingMemoryTerms terms = serving_memory_terms(serving(4, 512, 4, tp), 0);
    CHECK(terms.state_layers == 6);
    CHECK(terms.full_layers == 2);
    CHECK(terms.states().value() == 4 * 6 * (4. * 16 * head / tp + 2. * 3 * channels / tp));
    CHECK(serving_memory_terms(serving(4, 2048, 4, tp), 0).states() == terms.states());
    CHECK(serving_memory_terms(serving(1, 512, 4, tp), 0).states() == Volume{});
    StepInputs narrow = serving(4, 512, 4, tp);
    narrow.serving->state_bytes = 2;
    CHECK(serving_memory_terms(narrow, 0).states().value() == 4 * 6 * (2. * 16 * head / tp + 2. * 3 * channels / tp));
  }
  const auto tpot = [](int every, int prompt) {
    return forecast_on_two(serving(every, prompt), Method::both).inference->decode.estimate.count();
  };
  CHECK(tpot(0, 65536) == Approx(tpot(0, 512)));
  CHECK(tpot(4, 65536) > tpot(4, 512));
  CHECK(tpot(4, 65536) - tpot(4, 512) == Approx((tpot(1, 65536) - tpot(1, 512)) / 4).epsilon(1e-9));
  const StepResult r = forecast_on_two(serving(4, 2048), Method::both);
  CHECK(r.inference->decode.simulate->count() == Approx(r.inference->decode.estimate.count()).epsilon(1e-6));
  CHECK(r.inference->prefill.simulate->count() == Approx(r.inference->prefill.estimate.count()).epsilon(1e-6));
}

TEST_CASE("more heads of values or larger ones never make a step faster or smaller") {
  StepInputs in = linear(2, layout(2, 2, 1), 512);
  StepResult before = forecast_on_two(in, Method::estimate);
  const auto grow = [&](int LinearAttention::*size) {
    StepInputs more = in;
    more.model.linear.*size *= 2;
    const StepResult after = forecast_on_two(more, Method::estimate);
    CHECK(after.estimate > before.estimate);
    CHECK(after.memory.peak() > before.memory.peak());
    CHECK(flop_terms(more).forward() > flop_terms(in).forward());
  };
  for (int LinearAttention::*size :
       {&LinearAttention::value_heads, &LinearAttention::key_dim, &LinearAttention::value_dim})
    grow(size);
}

TEST_CASE("FLOPs of linear attention are counted token by token") {
  const StepInputs in = linear(0, layout(1, 1, 1));
  const double s = 1024, h = in.model.hidden, K = 8 * 64, V = 16 * 32;
  const FlopTerms f = flop_terms(in);
  CHECK(f.core == 8 * s * (8. * 16 * 64 * 32 + 2 * 4 * (2 * K + V)));
  const double mlp = (in.model.gated_mlp ? 6 : 4) * h * in.model.ffn;
  CHECK(f.linear == 8 * s * (2 * h * (2 * K + 3 * V + 2 * 16) + mlp));
  StepInputs full = in;
  full.options.recompute = Recompute::full;
  CHECK(flop_terms(full).recomputed == Approx(f.linear + f.core));
  full.options.recompute_layers = 0.5;
  CHECK(flop_terms(full).recomputed == Approx((f.linear + f.core) / 2));
}

TEST_CASE("what linear attention does not go with is said, all at once") {
  const auto wrong = [](auto change, ParallelLayout split = layout(1, 1, 1)) {
    StepInputs in = linear(4, split);
    change(in);
    return to_text(check_step(in, 64, Origins()));
  };
  CHECK(wrong([](StepInputs&) {}).empty());
  const auto says = [&](const std::string& part, auto change) { CHECK(wrong(change).find(part) != std::string::npos); };
  says("20 heads of values are no multiple of 8 heads of queries and keys\n    hint: use 16 or 24",
       [](StepInputs& in) { in.model.linear.value_heads = 20; });
  says("value_heads is 0\n    hint: expected at least 1", [](StepInputs& in) { in.model.linear.value_heads = 0; });
  says("conv is 0", [](StepInputs& in) { in.model.linear.conv = 0; });
  says("linear attention has heads of queries and keys\n    hint: give model.linear_attention.key_heads",
       [](StepInputs& in) { in.model.linear.key_heads = 0; });
  says("linear attention and sliding windows in the other layers are not modelled in one model",
       [](StepInputs& in) { in.model.window.tokens = 64; });
  says("linear attention and biases are not modelled", [](StepInputs& in) { in.model.biases = true; });
  says("linear attention and an MLP beside it are not", [](StepInputs& in) { in.model.parallel_mlp.norms = 1; });
  says("linear attention and attention that is not causal", [](StepInputs& in) { in.model.causal = false; });
  says("linear attention and latent attention in the other layers", [](StepInputs& in) {
    in.model.latent = {384, 128, 64, 32, 64};
  });
  says("cp 2: linear attention over parts of a sequence is not modelled\n    hint: use cp 1", [](StepInputs& in) {
    in.layout.cp = 2;
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  });
  says("low-rank adapters of linear attention are not modelled", [](StepInputs& in) { in.options.lora.rank = 8; });
  says("activations of linear attention in the host's memory",
       [](StepInputs& in) { in.options.cpu_offloading_num_layers = 1; });
  says("tp 16 does not divide key_heads 8", [](StepInputs& in) { in.layout.tp = 16; });
  says("a gate of what latent attention gives is not modelled", [](StepInputs& in) {
    in.model.linear = {};
    in.model.attention_gate = true;
    in.model.latent = {384, 128, 64, 32, 64};
  });
  says("a gate of what attention gives is modelled without biases", [](StepInputs& in) {
    in.model.linear = {};
    in.model.attention_gate = in.model.biases = true;
  });
  says("low-rank adapters beside a gate", [](StepInputs& in) {
    in.model.linear = {};
    in.model.attention_gate = true;
    in.options.lora.rank = 8;
  });
  const std::string many = wrong([](StepInputs& in) {
    in.model.linear.conv = 0;
    in.model.linear.key_dim = -1;
    in.model.biases = true;
  });
  for (const char* part : {"conv is 0", "key_dim is -1", "biases"}) CHECK(many.find(part) != std::string::npos);
}

TEST_CASE("PowerSGD sends matrices of linear attention by two of a low rank") {
  StepInputs in = linear(4, layout(1, 1, 4));
  in.options.compression.method = CompressionMethod::powersgd;
  in.options.compression.rank = 4;
  StepInputs plain = in;
  plain.model.linear = {};
  const auto low_rank = [](const StepInputs& s) { return memory_terms(s, 0).low_rank.value(); };
  // 6 layers have 2K + 2V + 2 x 16 columns of 1024 rows and V rows of 1024 in the place of qkv and the projection.
  const double h = 1024, K = 8 * 64, V = 16 * 32, d = 64;
  const double attention = (h + (16 + 2 * 8) * d) + (16 * d + h), rule = (h + 2 * K + 2 * V + 32) + (V + h);
  CHECK(low_rank(in) - low_rank(plain) == Approx(6 * 4 * in.options.gradient_bytes * (rule - attention)));
}

TEST_CASE("weights of layers with linear attention are cast before ZeRO-3 gathers them, each by its own size") {
  StepInputs in = linear(4, layout(1, 1, 8));
  in.options.zero = 3;
  in.options.precision = "fp8";
  in.options.communication.parameters = WireFormat::fp8;
  const double h = 1024, K = 8 * 64, V = 16 * 32, d = 64;
  const double more = h * (2 * K + 2 * V + 32) + 4 * (2 * K + V) + 32 + 32 + V * h - h * d * (2 * 16 + 2 * 8);
  const double linear_bytes = bytes(linear_attention_operations(in).forward, "weights cast to fp8"),
               full_bytes = bytes(layer_operations(in).forward, "weights cast to fp8");
  CHECK(linear_bytes - full_bytes == Approx(3 * more / 8));
}

TEST_CASE("a stage whose layers all have linear attention brings no attention back") {
  const auto terms = [](Recompute recompute, int full_every) {
    StepInputs in = linear(full_every, layout(1, 1, 1), 4096);
    in.options.recompute = recompute;
    in.options.attention = Attention::unfused;
    return memory_terms(in, 0);
  };
  CHECK(terms(Recompute::selective, 0).recomputed == Volume{});
  CHECK(terms(Recompute::selective, 4).recomputed > Volume{});
  // Attention keeps its matrix, which is far more than what the rule keeps.
  const MemoryTerms full = terms(Recompute::full, 0), mixed = terms(Recompute::full, 4);
  CHECK(full.recomputed == full.whole_layer[linear_layer].total());
  CHECK(mixed.whole_layer[mlp_layer].total() > mixed.whole_layer[linear_layer].total());
  CHECK(mixed.recomputed == mixed.whole_layer[mlp_layer].total());
}

TEST_CASE("queries that are computed again are not kept, and neither is their gate") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 8);
  in.model.biases = false;
  in.model.attention_gate = true;
  const double kept = memory_terms(in, 0).layer[mlp_layer].projections.value();
  in.options.recompute = Recompute::selective;
  in.options.recompute_modules = {RecomputeModule::q_proj};
  const double T = 2 * 1024, queries = 1024, w = 2;
  CHECK(kept - memory_terms(in, 0).layer[mlp_layer].projections.value() == 2 * w * T * queries);
  CHECK(named(layer_operations(in).recompute, "part of qkv").flops.value() == 2 * T * 1024 * 2 * queries);
}
