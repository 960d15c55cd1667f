// Models, a GPU of round numbers and a small cluster for the tests of the workload layer.
#pragma once

#include <functional>

#include "collcast/topology/fabric.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::test {

/// Korthikanti et al. 2022, Table 3: GPT shapes with dropout, learned positions and biases.
TransformerConfig gpt_22b();
TransformerConfig gpt_175b();
/// Llama-3 70B, cut to `layers`.
TransformerConfig llama_70b(int layers);
/// 8 layers of GQA and gated MLP, small enough for many steps a second.
TransformerConfig small_model();

/// 100 TFLOP/s in every format, 1 TB/s, 80 GB.
GpuSpec round_gpu();
/// Kernels that reach the data sheet at once.
KernelModel ideal_kernels();

/// `model` on `layout` with round_gpu and ideal_kernels, bf16, 2 sequences per micro-batch.
StepInputs inputs(TransformerConfig model, ParallelLayout layout, int sequence, int micro_batches);
/// tp x pp x dp in tp-pp-dp order.
ParallelLayout layout(int tp, int pp, int dp);

/// ZeRO to 1, recomputation, overlap and, if there are any, experts as `dice` draws them: dice(n) is 0 ... n-1.
void draw_options(StepInputs&, bool with_experts, const std::function<int(int)>& dice);

/// Nodes of 8 GPUs on an NVSwitch (300 GB/s, 250 ns), a NIC per GPU (25 GB/s, 300 ns), one network switch;
/// all bandwidths times `speed`.
Fabric cluster(int nodes, double speed = 1.0);

/// The operation called `name`; fails the test if there is none.
const Operation& named(const std::vector<Operation>&, const std::string& name);

}  // namespace collcast::test
