// Activations in the host's memory: what the GPU and the host hold, what the copies take, and that both methods say the
// same of it.
#include <catch2/catch.hpp>

#include "../support/dice.hpp"
#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

TransformerConfig some_with_experts() {
  TransformerConfig m = small_experts();
  m.experts.dense_layers = 1;
  return m;
}

StepInputs offloading(int tp, int dp, int offloaded, double gigabytes_per_s = 50, bool experts = false) {
  StepInputs in = inputs(experts ? some_with_experts() : small_model(), layout(tp, 1, dp), 2048, 2 * dp);
  in.layout.sequence_parallel = tp > 1;
  in.host_bandwidth = Bandwidth(gigabytes_per_s * 1e9);
  in.options.cpu_offloading_num_layers = offloaded;
  return in;
}

StepInputs drawn_offloading(Dice& dice) {
  StepInputs in = offloading(dice.pick({1, 2, 4}), dice.pick({1, 2, 4}), 0, dice.pick({5, 50, 500}), dice.roll(2) == 0);
  in.options.zero = dice.roll(4);
  in.options.attention = dice.roll(3) == 0 ? Attention::unfused : Attention::flash;
  in.options.overlap_dp = dice.roll(2) == 0;
  in.kernels.host_copies = dice.pick({1.0, 0.8});
  in.layout.schedule = dice.roll(3) == 0 ? PipelineSchedule::gpipe : PipelineSchedule::one_f_one_b;
  if (dice.roll(3) == 0) in.options.launch = Seconds(dice.pick({2e-6, 60e-6}));
  in.options.cpu_offloading_num_layers = dice.roll(in.model.layers);
  return in;
}

Seconds offloaded_time(const StepInputs& in) { return forecast_on_two(in).estimate; }
Volume kept_on_gpu(const StepInputs& in) { return memory_terms(in, 0).activations(); }

}  // namespace

TEST_CASE("what the host has the GPU has not, and the sum is what it was") {
  for (const bool experts : {false, true})
    for (int offloaded = 0; offloaded < small_model().layers; ++offloaded) {
      const StepInputs in = offloading(2, 2, offloaded, 50, experts), without = offloading(2, 2, 0, 50, experts);
      INFO(offloaded << (experts ? " with experts" : ""));
      const MemoryTerms terms = memory_terms(in, 0);
      CHECK((terms.activations() + terms.on_host()).value() == Approx(kept_on_gpu(without).value()));
      CHECK(terms.on_host().value() == Approx(offloading_terms(in).copied.value()));
      CHECK((terms.on_host() > Volume{}) == (offloaded > 0));
      CHECK(static_cast<double>(peak_memory(in, 8).on_host.value()) == Approx(terms.on_host().value()).margin(1));
    }
}

TEST_CASE("a backward has the layer that has come back beside the others, as soon as the loss is over") {
  StepInputs in = offloading(1, 1, 3);
  in.options.embedding_and_logits = false;  // no loss
  const MemoryTerms terms = memory_terms(in, 0);
  CHECK(terms.buffers_of_backward() == terms.layer[mlp_layer].total());
  CHECK(memory_terms(offloading(1, 1, 3), 0).buffers_of_backward() ==
        std::max(terms.layer[mlp_layer].total(), memory_terms(offloading(1, 1, 0), 0).loss()));
}

TEST_CASE("GPipe's micro-batches are all on the host, each with its layers") {
  StepInputs in = offloading(1, 1, 2);
  in.batch.global_batch = 6 * in.batch.micro_batch;
  in.layout.schedule = PipelineSchedule::gpipe;
  CHECK(memory_terms(in, 0).on_host().value() == Approx(6 * offloading_terms(in).copied.value()));
}

TEST_CASE("copies that are slower than all else set the pace: N layers each way, and one pass of a layer") {
  for (const bool experts : {false, true}) {
    StepInputs in = offloading(1, 1, 3, 0.05, experts);
    in.options.embedding_and_logits = false;
    in.options.optimizer = false;
    in.batch.global_batch = in.batch.micro_batch;
    const StepInputs without = [&] {
      StepInputs other = in;
      other.options.cpu_offloading_num_layers = 0;
      return other;
    }();
    const Seconds each_way = offloading_terms(in).each_way();
    const double layers = in.model.layers;
    CHECK(offloaded_time(in).count() == Approx(2 * each_way.count() + offloaded_time(without).count() / layers));
  }
}

TEST_CASE("a way of endless rate costs nothing, and a faster one never more") {
  Dice dice(20261127);
  for (int n = 0; n < 60; ++n) {
    StepInputs in = drawn_offloading(dice);
    StepInputs without = in, endless = in, faster = in;
    without.options.cpu_offloading_num_layers = 0;
    endless.host_bandwidth = Bandwidth(1e30);
    faster.host_bandwidth = in.host_bandwidth * 1.5;
    INFO(n);
    CHECK(offloaded_time(endless).count() == Approx(offloaded_time(without).count()).epsilon(1e-12));
    CHECK(offloaded_time(faster) <= offloaded_time(in) * (1 + 1e-12));
    CHECK(offloaded_time(in) >= offloaded_time(without) * (1 - 1e-12));
  }
}

TEST_CASE("more layers on the host never make a step faster, nor the GPU fuller") {
  for (const double rate : {2.0, 20.0, 200.0})
    for (const bool experts : {false, true})
      for (int offloaded = 1; offloaded < small_model().layers; ++offloaded) {
        const StepInputs fewer = offloading(2, 2, offloaded - 1, rate, experts),
                         more = offloading(2, 2, offloaded, rate, experts);
        INFO(rate << " GB/s, " << offloaded);
        CHECK(offloaded_time(more) >= offloaded_time(fewer) * (1 - 1e-12));
        // From none to one what comes back is new in the backward, in the place of the layer that is gone.
        CHECK(peak_memory(more, 8).peak() <= peak_memory(fewer, 8).peak());
      }
}

TEST_CASE("the timeline says of offloaded steps what the closed form says") {
  Dice dice(7);
  int waited = 0;
  for (int n = 0; n < 100; ++n) {
    const StepInputs in = drawn_offloading(dice);
    StepInputs without = in;
    without.options.cpu_offloading_num_layers = 0;
    const StepResult both = forecast_on_two(in, Method::both);
    INFO(n << ": zero " << in.options.zero << ", " << in.options.cpu_offloading_num_layers << " layers");
    REQUIRE(both.simulate);
    CHECK(both.simulate->count() == Approx(both.estimate.count()).epsilon(5e-8));
    if (both.estimate > offloaded_time(without) * 1.01) ++waited;
  }
  CHECK(waited > 20);
}

TEST_CASE("what offloading does not go with is said, each with its place and what would") {
  Origins origins;
  const Location here{"step.yaml", 7, 30};
  origins.set("training.cpu_offloading_num_layers", here);
  const auto said = [&](auto change) {
    StepInputs in = offloading(1, 1, 2);
    change(in);
    std::string text;
    for (const Diagnostic& d : check_step(in, 64, origins)) {
      text += d.message + "; " + d.hint + "\n";
      CHECK(to_text(d.where) == to_text(here));
    }
    return text;
  };
  using Catch::Matchers::Contains;
  CHECK(said([](StepInputs&) {}).empty());
  CHECK_THAT(said([](StepInputs& in) { in.options.cpu_offloading_num_layers = in.model.layers; }),
             Contains("not fewer than the model's") && Contains("use up to"));
  CHECK_THAT(said([](StepInputs& in) { in.layout.pp = 2; }), Contains("one pipeline stage") && Contains("use pp 1"));
  CHECK_THAT(said([](StepInputs& in) { in.options.recompute = Recompute::full; }),
             Contains("recompute is full") && Contains("recompute: none"));
  CHECK_THAT(said([](StepInputs& in) { in.host_bandwidth = Bandwidth{}; }), Contains("no way from each GPU to a CPU"));
  CHECK_THAT(said([](StepInputs& in) { in.layout.schedule = PipelineSchedule::zb_h1; }), Contains("schedule is zb-h1"));
}

TEST_CASE("waits are of computing, and no part of what a layer computes for what it sends") {
  const StepInputs in = offloading(2, 1, 5, 2);
  StepInputs without = in;
  without.options.cpu_offloading_num_layers = 0;
  const StepResult r = forecast_on_two(in), plain = forecast_on_two(without);
  CHECK(r.layer.forward_waits > Seconds{});
  CHECK((r.layer.forward - r.layer.forward_waits).count() == Approx(plain.layer.forward.count()));
  CHECK((r.layer.backward - r.layer.backward_waits).count() == Approx(plain.layer.backward.count()));
  CHECK(r.compute_to_communication == Approx(plain.compute_to_communication));
  Seconds waits{};
  for (const StageTerms::Unit& unit : r.stage.units) waits += r.micro_batches * unit.count * unit.waits;
  CHECK(waits.count() == Approx((r.breakdown.compute - plain.breakdown.compute).count()));
  CHECK(plain.layer.forward_waits + plain.layer.backward_waits == Seconds{});
}
