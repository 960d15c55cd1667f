// Sliding windows, and attention and MLP beside each other: work and memory by hand, and laws.
#include <catch2/catch.hpp>

#include <algorithm>

#include "collcast/workload/search.hpp"
#include "collcast/workload/terms.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

StepInputs windowed(SlidingWindow window, ParallelLayout split, int sequence = 1024) {
  StepInputs in = inputs(small_model(), split, sequence, 8);
  in.model.window = std::move(window);
  return in;
}

StepInputs beside(int norms, bool one_reduce, int tp, bool sequence_parallel = false) {
  StepInputs in = inputs(small_model(), layout(tp, 1, 1), 512, 2);
  in.model.gated_mlp = false;
  in.model.parallel_mlp = {norms, one_reduce};
  in.layout.sequence_parallel = sequence_parallel;
  return in;
}

StepResult both_ways_on_two(const StepInputs& in) { return forecast_on_two(in, Method::both); }

/// How often a TP collective of this name is called in a step.
std::int64_t calls(const StepResult& r, const std::string& name) {
  std::int64_t count = 0;
  for (const CollectiveCost& c : r.collectives)
    if (c.name == name) count += c.count;
  return count;
}

}  // namespace

TEST_CASE("keys that causal queries meet, one by one") {
  for (const int kept : {0, 1, 7, 40})
    for (const int tokens : {1, 2, 9, 33})
      for (const int window : {0, 1, 2, 8, 9, 41, 100}) {
        double sum = 0;
        for (int i = 1; i <= tokens; ++i) sum += window > 0 ? std::min(kept + i, window) : kept + i;
        CHECK(causal_keys(kept, tokens, window) == sum);
      }
}

TEST_CASE("layers with a window are those that no pattern takes out") {
  TransformerConfig m = small_model();  // 8 layers
  CHECK(windowed_layers(m) == 0);
  m.window.tokens = 128;
  CHECK(windowed_layers(m) == 8);
  m.window.full_every = 2;  // gpt-oss: 1, 3, 5, 7 see all
  CHECK(windowed_layers(m) == 4);
  CHECK(has_window(m, 0));
  CHECK_FALSE(has_window(m, 1));
  m.window = {128, 3, 0, {5}};
  CHECK(windowed_layers(m) == 4);  // 3, 4, 6, 7
}

TEST_CASE("a windowed layer's core has the work of the keys in its window") {
  const StepInputs all = windowed({}, layout(2, 1, 1)), some = windowed({128, 0, 0, {}}, layout(2, 1, 1));
  const Operation full = named(layer_operations(all).forward, "flash attention"),
                  cut = named(layer_operations(some).forward, "flash attention");
  // 2 sequences, 8 heads of a rank, two products of 64 elements: 1024 x 1025 / 2 keys, or 128 x 129 / 2 + 896 x 128.
  CHECK(full.flops.value() == Approx(2. * 2 * 2 * 8 * 64 * (1024. * 1025 / 2)));
  CHECK(cut.flops.value() == Approx(2. * 2 * 2 * 8 * 64 * (128. * 129 / 2 + 896. * 128)));
  CHECK(cut.bytes == full.bytes);
  CHECK(named(layer_operations(some).backward, "flash attention gradient").flops.value() ==
        Approx(2.5 * cut.flops.value()));
  // Unfused kernels mask a full matrix.
  StepInputs unfused = some;
  unfused.options.attention = Attention::unfused;
  CHECK(named(layer_operations(unfused).forward, "scores").flops.value() == Approx(2. * 2 * 8 * 64 * 1024 * 1024));
}

TEST_CASE("a window as long as the sequence changes nothing") {
  for (const int tokens : {1024, 1025, 1'000'000}) {
    const StepResult a = both_ways_on_two(windowed({}, layout(2, 2, 2))),
                     b = both_ways_on_two(windowed({tokens, 0, 2, {}}, layout(2, 2, 2)));
    CHECK(a.estimate == b.estimate);
    CHECK(*a.simulate == *b.simulate);
    CHECK(a.mfu == b.mfu);
  }
}

TEST_CASE("each stage has the layers that it has: a mix that differs is no average") {
  // Layers 0 to 3 see all tokens: the first stage's, whose core alone is longer.
  const auto bare = [](SlidingWindow window) {
    StepInputs in = windowed(std::move(window), layout(1, 2, 1));
    in.options.embedding_and_logits = false;
    return both_ways_on_two(in);
  };
  const StepResult r = bare({64, 4, 0, {}});
  const StepInputs full = windowed({}, layout(1, 1, 1)), cut = windowed({64, 0, 0, {}}, layout(1, 1, 1));
  const Seconds more = named(layer_operations(full).forward, "flash attention").time -
                       named(layer_operations(cut).forward, "flash attention").time;
  CHECK(more > Seconds{});
  const StepResult of_full = bare({}), of_cut = bare({64, 0, 0, {}});
  CHECK(r.estimate < of_full.estimate);
  CHECK(r.estimate > of_cut.estimate);
  // As long as the pipeline has its longest stage busy.
  CHECK(r.estimate.count() / of_full.estimate.count() > (1 + of_cut.estimate / of_full.estimate) / 2);
  CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(1e-3));
}

TEST_CASE("a family of layouts prices windowed layers as a forecast does") {
  for (const int full_first : {0, 3})
    for (const int pp : {1, 2, 4}) check_family(windowed({100, full_first, 3, {}}, layout(2, pp, 2), 512), pp);
}

TEST_CASE("model FLOPs leave out of a windowed layer what its queries do not see") {
  const FlopTerms all = flop_terms(windowed({}, layout(1, 1, 1))),
                  half = flop_terms(windowed({128, 0, 2, {}}, layout(1, 1, 1)));
  const double seen = (128. * 129 / 2 + 896. * 128) / (1024. * 1025 / 2);
  CHECK(half.core == Approx(all.core * (1 + seen) / 2));
  CHECK(half.linear == all.linear);
}

TEST_CASE("a server keeps and reads a window's tokens, and a longer answer costs no more there") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1000, 1);
  in.serving = Serving{3, 1000, 101, 1, 2};
  in.options.optimizer = false;
  in.model.window = {256, 0, 2, {}};
  // Keys and values of 8 heads of 64 elements, 3 sequences: 4 layers of 1100 tokens, 4 of 256.
  const std::int64_t of_token = 2 * 8 * 64 * 2 * 3;
  const StepResult r = both_ways_on_two(in);
  CHECK(r.memory.kv_cache == Bytes(of_token * 4 * (1100 + 256)));
  in.serving->kv_window = false;
  CHECK(both_ways_on_two(in).memory.kv_cache == Bytes(of_token * 8 * 1100));
  in.serving->kv_window = true;
  in.model.window.full_every = 0;
  const StepResult windows = both_ways_on_two(in);
  CHECK(windows.inference->first_token == windows.inference->last_token);
  const Operation core = named(windows.inference->decode.operations, "attention over the cache");
  CHECK(core.bytes.value() == 2. * 3 * 2 * 16 * 64 + 2. * 3 * 256 * 2 * 8 * 64);
  CHECK(windows.inference->decode.simulate.value().count() ==
        Approx(windows.inference->decode.estimate.count()).epsilon(1e-6));
  in.model.window = {};
  CHECK(both_ways_on_two(in).inference->last_token > windows.inference->last_token);
}

TEST_CASE("answers that fill a window on the way: the closed form is the simulation, and the parts sum to both") {
  // 40 sequences, so that keys and values are much of a token; windows are full from some token of 999 on.
  for (const int tokens : {2, 64, 65, 300, 999, 1000, 1063, 1064, 2000})
    for (const bool continuous : {false, true}) {
      StepInputs in = inputs(small_model(), layout(1, 1, 1), 64, 1);
      in.serving = Serving{40, 64, 1000, 1, 2};
      if (continuous) in.serving->batching = Batching::continuous;
      in.options.optimizer = false;
      in.model.window = {tokens, 2, 0, {}};
      CAPTURE(tokens, continuous);
      const StepResult r = both_ways_on_two(in);
      const ServingPhase& decode = r.inference->decode;
      CHECK(decode.simulate.value().count() == Approx(decode.estimate.count()).epsilon(1e-8));
      CHECK(decode.breakdown.total().count() == Approx(decode.time().count()).epsilon(1e-8));
      CHECK(r.breakdown.total().count() == Approx(r.step.count()).epsilon(1e-8));
    }
}

TEST_CASE("a window is of some tokens, and of causal attention") {
  StepInputs in = windowed({0, 2, 0, {}}, layout(1, 1, 1));
  CHECK(to_text(check_step(in, 8, Origins())).find("a sliding window says how many tokens it has") !=
        std::string::npos);
  in.model.window = {128, 8, 0, {}};
  CHECK(check_step(in, 8, Origins()).size() == 1);
  CHECK(to_text(check_step(in, 8, Origins())).find("none of the 8 layers has a sliding window") != std::string::npos);
  in.model.window = {128, 0, 1, {}};
  CHECK(to_text(check_step(in, 8, Origins())).find("use another full_every, or no window") != std::string::npos);
  in.model.window = {128, 7, 0, {}};
  CHECK(check_step(in, 8, Origins()).empty());
  in.model.window = {128, 0, 0, {}};
  in.model.causal = false;
  CHECK(to_text(check_step(in, 8, Origins())).find("is modelled of causal attention") != std::string::npos);
}

TEST_CASE("attention and MLP beside each other have one norm or two, and one sum over TP") {
  const auto norms = [](int n) { return layer_operations(beside(n, true, 2)).forward; };
  CHECK(has_kernel(norms(0), "mlp norm"));
  CHECK(has_kernel(norms(2), "mlp norm"));
  CHECK_FALSE(has_kernel(norms(1), "mlp norm"));
  CHECK(has_kernel(layer_operations(beside(2, true, 2)).backward, "mlp norm gradient"));
  CHECK_FALSE(has_kernel(layer_operations(beside(1, true, 2)).backward, "mlp norm gradient"));
  CHECK(parameter_count(beside(1, true, 2).model) == parameter_count(beside(0, true, 2).model) - 8 * 1024);
  // 8 layers, 2 micro-batches: forward 2 or 1, backward 2 all the same; besides the embedding's and the loss's.
  const std::int64_t apart = calls(both_ways_on_two(beside(0, true, 2)), "tp all_reduce");
  CHECK(calls(both_ways_on_two(beside(1, true, 2)), "tp all_reduce") == apart - 16);
  CHECK(calls(both_ways_on_two(beside(2, true, 2)), "tp all_reduce") == apart - 16);
  CHECK(calls(both_ways_on_two(beside(2, false, 2)), "tp all_reduce") == apart);
  // With sequence parallelism the sum is scattered once, and its gradient gathered once.
  const StepResult scattered = both_ways_on_two(beside(1, true, 2, true)),
                   both = both_ways_on_two(beside(0, true, 2, true));
  CHECK(calls(scattered, "tp reduce_scatter") == calls(both, "tp reduce_scatter") - 16);
  CHECK(calls(scattered, "tp all_gather") == calls(both, "tp all_gather") - 16);
  // Without TP nothing is summed up, and no kernel has more to do.
  CHECK(both_ways_on_two(beside(2, true, 1)).step == both_ways_on_two(beside(2, false, 1)).step);
  CHECK(both_ways_on_two(beside(2, true, 1)).step == both_ways_on_two(beside(0, true, 1)).step);
  CHECK(both_ways_on_two(beside(1, true, 1)).step < both_ways_on_two(beside(2, true, 1)).step);
}

TEST_CASE("norms beside each other have one input to keep") {
  const auto norms = [](int n) { return memory_terms(beside(n, true, 1), 0).layer[mlp_layer].norms.value(); };
  // 2 sequences of 512 tokens of 1024 elements in 2 bytes: in and out of two norms; of one; one input, two outputs.
  const double tensor = 2. * 512 * 1024 * 2;
  CHECK(norms(0) == 4 * tensor);
  CHECK(norms(1) == 2 * tensor);
  CHECK(norms(2) == 3 * tensor);
}

TEST_CASE("beside each other goes with every way to run TP and pipelines") {
  const Fabric fabric = cluster(2);
  const CollectiveTime prices = memoized(step_prices(fabric, {}));
  for (const int norms : {1, 2})
    for (const TpOverlap overlap : {TpOverlap::none, TpOverlap::backward, TpOverlap::ring})
      for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1}) {
        StepInputs in = beside(norms, true, 2, true);
        in.layout.pp = 2;
        in.batch.global_batch = 16;
        in.layout.schedule = schedule;
        in.options.overlap_tp = overlap;
        const StepResult r = both_ways_on_two(in);
        CHECK(r.simulate->count() == Approx(r.estimate.count()).epsilon(1e-2));
        LayoutFamily family(in, fabric, prices);
        const auto quick =
            family.estimate({2, 2, 1, in.batch.micro_batch, true, in.options.recompute, in.options.zero});
        REQUIRE(quick.ok());
        CHECK(quick->step.count() == Approx(forecast_on_two(in).step.count()).epsilon(1e-12));
      }
  StepInputs in = beside(1, true, 1);
  in.model.experts = {8, 2, 512, 0, false, 0, 1, 0, {}};
  CHECK(to_text(check_step(in, 8, Origins())).find("experts beside attention are not modelled") != std::string::npos);
}
