// Memory against published formulas and measurements.
#include "workload/memory/memory.hpp"

#include <catch2/catch.hpp>

#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "workload/layer/kept.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

double gibibytes(Bytes b) { return static_cast<double>(b.value()) / gib; }

/// The 22B layer: s 2048, b 4, h 6144, a 64.
StepInputs layer_22b(int tp, bool sequence_parallel, Recompute recompute) {
  StepInputs in = inputs(gpt_22b(), layout(tp, 1, 1), 2048, 1);
  in.batch.micro_batch = in.batch.global_batch = 4;
  in.layout.sequence_parallel = sequence_parallel;
  in.options.attention = Attention::unfused;
  in.options.recompute = recompute;
  return in;
}

StepInputs llama_12(int tp, int dp) {
  StepInputs in = inputs(llama_70b(12), layout(tp, 1, dp), 4096, 4);
  in.batch.micro_batch = 1;
  in.batch.global_batch = 4 * dp;
  in.layout.sequence_parallel = true;
  in.options.zero = 1;
  return in;
}

}  // namespace

TEST_CASE("logits of a vocabulary that TP does not divide have the columns that the padded embedding has rows") {
  StepInputs in = inputs(small_model(), layout(8, 1, 1), 512, 1), padded = in;
  in.model.vocab = 50'257;      // ceil(50257 / 8) = 6283 of a rank
  padded.model.vocab = 50'264;  // 8 x 6283
  const MemoryTerms terms = memory_terms(in, 0), all = memory_terms(padded, 0);
  CHECK(terms.logits.value() == 2 * 2.0 * 512 * 6283);
  CHECK(terms.logits == all.logits);
  CHECK(terms.probabilities == all.probabilities);
  CHECK(peak_memory(in, 8).peak() == peak_memory(padded, 8).peak());
  const StepResult step = forecast_on_two(in), of_padded = forecast_on_two(padded);
  CHECK(step.step == of_padded.step);
  CHECK(step.mfu < of_padded.mfu);  // rows that pad are no work
}

TEST_CASE("activations of the 22B layer are Korthikanti's formulas") {
  const double sbh = 2048.0 * 4 * 6144, scores = 5.0 * 64 * 2048 / 6144;  // 5 a s / h
  const auto activations = [](int tp, bool sp, Recompute r) { return layer_activations(layer_22b(tp, sp, r)).value(); };
  CHECK(activations(1, false, Recompute::none) == Approx(sbh * (34 + scores)));
  CHECK(activations(8, false, Recompute::none) == Approx(sbh * (10 + 24. / 8 + scores / 8)));
  CHECK(activations(8, true, Recompute::none) == Approx(sbh / 8 * (34 + scores)));
  CHECK(activations(8, false, Recompute::selective) == Approx(sbh * (10 + 24. / 8)));
  CHECK(activations(8, true, Recompute::selective) == Approx(34 * sbh / 8));
  CHECK(activations(8, false, Recompute::full) == Approx(2 * sbh));
  // In MiB: 6752, 1264, 844, 624, 204, 96.
  CHECK(activations(1, false, Recompute::none) / mib == Approx(6752));
  CHECK(activations(8, false, Recompute::none) / mib == Approx(1264));
  CHECK(activations(8, true, Recompute::none) / mib == Approx(844));
  CHECK(activations(8, false, Recompute::selective) / mib == Approx(624));
  CHECK(activations(8, true, Recompute::selective) / mib == Approx(204));
  CHECK(activations(8, false, Recompute::full) / mib == Approx(96));
}

TEST_CASE("flash attention keeps one number per row instead of the matrix") {
  StepInputs in = layer_22b(8, true, Recompute::selective);
  const double without_core = layer_activations(in).value();
  in.options.recompute = Recompute::none;
  in.options.attention = Attention::flash;
  // 4 bytes x 4 sequences x 8 heads x 2048 positions.
  CHECK(layer_activations(in).value() == Approx(without_core + 4.0 * 4 * 8 * 2048));
}

TEST_CASE("Llama-3 70B cut to 12 layers, TP 2 with SP, D 4, ZeRO-1: within 2 % of the measured 60.68 GiB") {
  const StepInputs in = llama_12(2, 4);
  const MemoryUse m = stage_memory(in, 0, 8);
  // 12.369e9 / 2 parameters (and the replicated norms) x (6 + 12/4) bytes.
  CHECK(gibibytes(m.parameters + m.gradients + m.optimizer) == Approx(51.84).epsilon(1e-3));
  // 12 layers x (2T [4h + (2a + 2k) d + 3f] / t + 4 a T / t), T 4096; and the final norm's input and output.
  const double layers = 12 * (2.0 * 4096 * (4 * 8192 + 144 * 128 + 3 * 28672) + 4.0 * 64 * 4096) / 2;
  CHECK(layers / gib == Approx(6.29).epsilon(1e-3));
  CHECK(static_cast<double>(m.activations.value()) == Approx(layers + 4.0 * 4096 * 8192 / 2));
  // T V / t logits, 16 bit and fp32.
  CHECK(gibibytes(m.buffers) == Approx(1.47).epsilon(2e-3));
  // 59.59 by these three, 0.06 for the final norm.
  CHECK(gibibytes(m.allocated()) == Approx(59.59).epsilon(2e-3));
  CHECK(gibibytes(m.allocated()) == Approx(60.68).epsilon(0.02));
}

TEST_CASE("Llama-3 70B cut to 12 layers, TP 8 and no replicas: within 2 % of the measured 28.29 GiB") {
  CHECK(gibibytes(stage_memory(llama_12(8, 1), 0, 8).allocated()) == Approx(28.29).epsilon(0.02));
}

TEST_CASE("ZeRO-1 on one replica is no sharding, on D it divides the optimizer state by D") {
  StepInputs in = llama_12(8, 1);
  const MemoryUse sharded = stage_memory(in, 0, 8);
  in.options.zero = 0;
  CHECK(stage_memory(in, 0, 8).peak() == sharded.peak());
  in = llama_12(8, 4);
  const MemoryUse quarter = stage_memory(in, 0, 8);
  CHECK(static_cast<double>(quarter.optimizer.value()) == Approx(static_cast<double>(sharded.optimizer.value()) / 4));
  CHECK(quarter.gradients == sharded.gradients);
}

TEST_CASE("1F1B holds min(m, p - i) micro-batches, GPipe all") {
  StepInputs in = inputs(small_model(), layout(1, 4, 1), 512, 3);
  CHECK(in_flight(in, 0) == 3);
  CHECK(in_flight(in, 1) == 3);
  CHECK(in_flight(in, 2) == 2);
  CHECK(in_flight(in, 3) == 1);
  in.layout.schedule = PipelineSchedule::gpipe;
  for (int stage = 0; stage < 4; ++stage) CHECK(in_flight(in, stage) == 3);
}

TEST_CASE("the parts sum to the peak, and the last stage holds the logits") {
  const StepInputs in = inputs(small_model(), layout(1, 4, 1), 512, 8);
  for (int stage = 0; stage < 4; ++stage) {
    const MemoryUse m = stage_memory(in, stage, 8);
    CHECK(m.parameters + m.gradients + m.optimizer + m.activations + m.buffers == m.allocated());
    CHECK(m.stage == stage);
    CHECK(m.capacity == Bytes(80'000'000'000));
    // 1024 tokens x 32000 x (2 + 4).
    CHECK(m.buffers == Bytes(stage == 3 ? 1024LL * 32000 * 6 : 0));
  }
}

TEST_CASE("a rank's memory at each moment: the loss or a recomputed layer, the optimizer's fp32 copies") {
  const auto at = [](const MemoryUse& m, MemoryMoment moment) { return m.by_moment[static_cast<std::size_t>(moment)]; };
  StepInputs in = inputs(small_model(), layout(1, 4, 1), 512, 8);
  in.options.recompute = Recompute::full;
  const MemoryUse last = stage_memory(in, 3, 8), first = stage_memory(in, 0, 8);
  const MemoryTerms terms = memory_terms(in, 3);
  const Bytes logits(1024LL * 32000 * 6), recomputed(static_cast<std::int64_t>(terms.recomputed.value()));
  REQUIRE(recomputed > Bytes(0));
  REQUIRE(recomputed < logits);
  // The last stage has the loss, and no layer beside it; the others have a layer in their backward.
  CHECK(last.moment == MemoryMoment::forward);
  CHECK(last.buffers == logits);
  CHECK(at(last, MemoryMoment::forward) == last.allocated());
  CHECK(at(last, MemoryMoment::backward) == last.allocated());
  CHECK(first.moment == MemoryMoment::backward);
  CHECK(first.buffers == recomputed);
  CHECK(at(first, MemoryMoment::backward) - at(first, MemoryMoment::forward) == recomputed);
  // Gradients in 32 bit are no copies; of 16 bit 4 bytes of each parameter, over the replicas with ZeRO 1.
  CHECK(at(first, MemoryMoment::optimizer) == first.state());
  in.options.gradient_bytes = 2;
  const double p = memory_terms(in, 0).parameters.total();
  const auto copies = [&] {
    const MemoryUse m = stage_memory(in, 0, 8);
    return static_cast<double>((at(m, MemoryMoment::optimizer) - m.state()).value());
  };
  CHECK(copies() == 4 * p);
  in.layout.dp = 2;
  in.batch.global_batch *= 2;
  in.options.zero = 1;
  CHECK(copies() == 2 * p);
  // Of few tokens these are the most, and no activations are there.
  in.batch.sequence = 16;
  const MemoryUse step = stage_memory(in, 1, 8);
  CHECK(step.moment == MemoryMoment::optimizer);
  CHECK(step.activations == Bytes(0));
  CHECK(step.allocated() == at(step, MemoryMoment::optimizer));
}

TEST_CASE("a loss that runs kernel by kernel has the logits once more in fp32") {
  StepInputs in = inputs(small_model(), layout(1, 4, 1), 512, 8);
  in.options.fuse_loss = false;
  CHECK(stage_memory(in, 3, 8).buffers == Bytes(1024LL * 32000 * 10));
  CHECK(stage_memory(in, 2, 8).buffers == Bytes(0));
}

TEST_CASE("full recomputation needs the working set of one layer besides") {
  StepInputs in = layer_22b(8, false, Recompute::full);
  in.options.embedding_and_logits = false;
  CHECK(stage_memory(in, 0, 8).buffers.value() == Approx(1264 * mib));
}

TEST_CASE("selective recomputation needs what one layer gets back besides") {
  // 7.2 of the 22B layer: 1264 MiB whole, 624 MiB without the core's activations.
  StepInputs in = layer_22b(8, false, Recompute::selective);
  in.options.embedding_and_logits = false;
  CHECK(stage_memory(in, 0, 8).buffers.value() == Approx((1264 - 624) * mib));
}

TEST_CASE("GPipe holds the loss's probabilities of every micro-batch in flight") {
  // On the last stage 1F1B has one micro-batch in flight, GPipe all 8: 7 times 1024 tokens x 32000 x 4 more, and the
  // same kept activations 8 times instead of once.
  StepInputs in = inputs(small_model(), layout(1, 4, 1), 512, 8);
  const MemoryUse one = stage_memory(in, 3, 8);
  in.layout.schedule = PipelineSchedule::gpipe;
  const MemoryUse all = stage_memory(in, 3, 8);
  CHECK(all.activations.value() == 8 * one.activations.value() + 7 * 1024LL * 32000 * 4);
}

TEST_CASE("copies of KV heads take memory on every rank") {
  // From TP 8 to 16 a layer's Q, its output and MLP halve (2048 tokens x 2 bytes x (2 x 128 + 3 x 512) -> half), K and
  // V (2 x 64 elements per token) stay.
  StepInputs in = inputs(small_model(), layout(8, 1, 1), 1024, 1);
  in.options.recompute = Recompute::selective;
  const auto sharded = [&] {
    return layer_activations(in).value() - 2048. * 1024 * 4 * 2;
  };  // without norms, residuals
  CHECK(sharded() == 2048. * 2 * (2 * 128 + 3 * 512 + 2 * 64));
  in.layout.tp = 16;
  CHECK(sharded() == 2048. * 2 * (128 + 3 * 256 + 2 * 64));
}

TEST_CASE("the terms of memory name what each part of the kept activations is") {
  // T = 2 x 512, h 1024, a 16, k 8, d 64, f 4096, bf16, no sequence parallelism: norms T h 4 w, projections
  // w T (2a + 2k) d / t, MLP 3 w T f / t, flash 4 a T / t; t = 2, two of the four stages' micro-batches in flight.
  const StepInputs in = inputs(small_model(), layout(2, 4, 1), 512, 8);
  const MemoryTerms terms = memory_terms(in, 2);
  CHECK(terms.layer[mlp_layer].norms.value() == 1024. * 1024 * 8);
  CHECK(terms.layer[mlp_layer].projections.value() == 2. * 1024 * 48 * 64 / 2);
  CHECK(terms.layer[mlp_layer].mlp.value() == 3 * 2. * 1024 * 4096 / 2);
  CHECK(terms.layer[mlp_layer].core.value() == 4. * 16 * 1024 / 2);
  CHECK(terms.in_flight == 2);
  // 8 layers on 4 stages.
  CHECK(terms.activations().value() == 2 * 2 * terms.layer[mlp_layer].total().value());
}

TEST_CASE("what a step can be counted to need is its peak") {
  for (const int stages : {1, 2, 4})
    for (const int sequence : {512, 2048}) {
      StepInputs in = inputs(small_model(), layout(2, 2, 2), 1024, 4);
      in.layout.pp = stages;
      in.batch.sequence = sequence;
      CHECK(check_memory(in, {}).empty());
      const std::optional<MemoryUse> both = countable_peak_memory(in, 8);
      REQUIRE(both);
      CHECK(both->peak() == peak_memory(in, 8).peak());
    }
}
