// Korthikanti et al. 2022, Table 4: one layer of the 22B model on one DGX A100 (TP 8, sequence 2048, micro-batch
// 4, fp16, unfused attention with dropout), forward and backward. Nothing is fitted to these times: the machine
// is its data sheet (topologies/dgx-a100.yaml), library nccl's constants come from nccl-tests of all machines, the
// kernels come from single GEMMs (topologies/kernels/a100.yaml).
#include <catch2/catch.hpp>

#include "collcast/scenario/scenario.hpp"
#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

SearchPath shipped_machines() { return {{COLLCAST_SOURCE_DIR "/topologies"}, {}}; }

LayerTimes layer(bool sequence_parallel, Recompute recompute, Method method, Library library = Library::ideal) {
  const Result<TopologySpec> spec = load_topology("dgx-a100", shipped_machines());
  if (!spec) FAIL(to_text(spec.errors()));
  const Result<KernelModel> kernels = load_kernels(spec->gpu.kernels, shipped_machines());
  if (!kernels) FAIL(to_text(kernels.errors()));
  const Result<Fabric> fabric = Fabric::build(*spec, 1);
  if (!fabric) FAIL(to_text(fabric.errors()));

  StepInputs in = inputs(gpt_22b(), layout(8, 1, 1), 2048, 1);
  in.gpu = spec->gpu;
  in.kernels = *kernels;
  in.batch.micro_batch = in.batch.global_batch = 4;
  in.layout.sequence_parallel = sequence_parallel;
  in.options.precision = "fp16";
  in.options.attention = Attention::unfused;
  in.options.recompute = recompute;
  in.options.overlap_tp = TpOverlap::backward;
  in.options.fuse_accumulation = false;
  in.options.gradient_bytes = 2;
  in.options.embedding_and_logits = false;
  in.options.optimizer = false;
  CollectivePolicy policy;
  policy.library = library;
  const Result<StepResult> result = forecast_step(in, *fabric, policy, method);
  if (!result) FAIL(to_text(result.errors()));
  return result->layer;
}

void within(double share, Seconds predicted, double measured_ms) {
  INFO("predicted " << predicted.count() * 1e3 << " ms, measured " << measured_ms << " ms, "
                    << 100 * (predicted.count() * 1e3 / measured_ms - 1) << " %");
  CHECK(predicted.count() * 1e3 == Approx(measured_ms).epsilon(share));
}

}  // namespace

TEST_CASE("the 22B layer with selective recomputation: 7.7 ms forward, 13.2 ms backward (kl7, kl8)") {
  for (const Method method : {Method::estimate, Method::simulate}) {
    const LayerTimes t = layer(false, Recompute::selective, method);
    within(0.15, t.forward, 7.7);
    within(0.15, t.backward, 13.2);
  }
}

TEST_CASE("the 22B layer with sequence parallelism: 7.2 ms forward, 11.8 ms backward (kl3, kl4)") {
  for (const Method method : {Method::estimate, Method::simulate}) {
    const LayerTimes t = layer(true, Recompute::none, method);
    within(0.15, t.forward, 7.2);
    within(0.15, t.backward, 11.8);
  }
}

TEST_CASE("the same with collectives as NCCL runs them, which is the default: within 5 %") {
  const LayerTimes tp = layer(false, Recompute::selective, Method::estimate, Library::nccl);
  within(0.05, tp.forward, 7.7);
  within(0.05, tp.backward, 13.2);
  const LayerTimes sp = layer(true, Recompute::none, Method::estimate, Library::nccl);
  within(0.05, sp.forward, 7.2);
  within(0.05, sp.backward, 11.8);
}
