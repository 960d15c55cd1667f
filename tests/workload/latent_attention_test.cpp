// Latent attention over TP ranks: whose rows come down to the small ranks, and what is gathered (experts_test.cpp has
// its parameters and kernels).
#include <catch2/catch.hpp>

#include <set>

#include "inputs.hpp"
#include "workload/layer/segments.hpp"
#include "workload/memory/memory.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

TEST_CASE("into the small ranks each TP rank works on its own rows, whether queries are compressed or not") {
  for (const int q_rank : {384, 0})
    for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1})
      for (const int tp : {1, 2, 4}) {
        StepInputs in = spread(small_deepseek(), 1, tp);
        in.model.latent.q_rank = q_rank;
        in.layout.schedule = schedule;
        CAPTURE(q_rank, to_string(schedule), tp);
        const double T = 2 * 2048, own = T / tp;
        const LayerOperations ops = layer_operations(in);
        CHECK(named(ops.forward, "kv down").flops.value() == 2 * own * 1024 * (128 + 32));
        CHECK(named(ops.forward, "latent norm").bytes.value() == 2 * 2 * own * (q_rank + 128));
        CHECK(named(ops.backward, "kv down input gradient").flops.value() == 2 * own * 1024 * (128 + 32));
        CHECK(named(ops.backward, "kv down weight gradient").flops.value() == 2 * own * 1024 * (128 + 32));
        CHECK(named(ops.forward, "kv up").flops.value() == 2 * T * 128 * 16 * (64 + 64) / tp);
        CHECK(memory_terms(in, 0).layer[expert_layer].latent.value() == 2 * own * (2 * q_rank + 2 * 128 + 32));
        // All ranks together do without sequence parallelism what each does.
        in.layout.sequence_parallel = false;
        in.model.experts = {};
        if (tp > 1) CHECK(named(layer_operations(in).forward, "kv down").flops.value() == 2 * T * 1024 * (128 + 32));
      }
}

TEST_CASE("what gradients of weights read once more is gathered, of adapters what these read") {
  StepInputs in = spread(small_deepseek(), 2, 2);
  in.model.latent.q_rank = 0;
  in.options.lora.rank = 16;
  // Of the heads; other matrices read hidden states, or gradients of these, alone.
  const auto gathered = [&](AdapterModule module) {
    in.options.lora.target_modules = {{module}};
    std::set<double> seen;
    for (const Segment& s : layer_segments(in, {expert_layer}).backward)
      if (s.then == CollectiveKind::all_gather && s.then_bytes > 0) seen.insert(s.then_bytes);
    return seen;
  };
  const double T = 2 * 2048;
  CHECK(gathered(AdapterModule::linear_q_proj) == std::set<double>{2 * T * (1024 + 128 + 32)});
  CHECK(gathered(AdapterModule::linear_kv_up_proj) == std::set<double>{2 * T * (128 + 32)});
  CHECK(gathered(AdapterModule::linear_kv_down_proj).empty());
}
