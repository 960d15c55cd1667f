// Models, a GPU of round numbers and a small cluster for the tests of the workload layer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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
/// The same with 8 experts, 2 of them for each token.
TransformerConfig small_experts();
/// With latent attention, shared experts, and the first 2 layers without experts.
TransformerConfig small_deepseek();

/// 100 TFLOP/s in every format, 1 TB/s, 80 GB.
GpuSpec round_gpu();
/// Kernels that reach the data sheet at once.
KernelModel ideal_kernels();

/// `model` on `layout` with round_gpu and ideal_kernels, bf16, 2 sequences per micro-batch.
StepInputs inputs(TransformerConfig model, ParallelLayout layout, int sequence, int micro_batches);
/// tp x pp x dp in tp-pp-dp order.
ParallelLayout layout(int tp, int pp, int dp);

/// 2 x 2048 tokens in Megatron's order.
StepInputs spread(TransformerConfig model, int ep, int tp = 1, int dp = 4, int etp = 0);

/// 1024 tokens of small_model on tp x pp x dp.
StepInputs small_step(int tp, int pp, int dp, int micro_batches = 8);

/// ZeRO to 1, recomputation, overlap and, if there are any, experts as `dice` draws them: dice(n) is 0 ... n-1.
void draw_options(StepInputs&, bool with_experts, const std::function<int(int)>& dice);

/// Nodes of 8 GPUs on an NVSwitch (300 GB/s, 250 ns), a NIC per GPU (25 GB/s, 300 ns), one network switch;
/// all bandwidths times `speed`.
Fabric cluster(int nodes, double speed = 1.0);
const Fabric& four_nodes();

/// Of inputs that must be sound, by what collectives take on `fabric`.
StepResult forecast(const StepInputs&, const Fabric& fabric, Method = Method::both);
/// On two nodes of eight.
StepResult forecast_on_two(const StepInputs&, Method = Method::estimate);
/// A ring on links of one kind: all its participants are through together.
CollectivePolicy rings(int chunks = 1);

inline constexpr double mib = 1024.0 * 1024, gib = 1024 * mib;

/// The operation called `name`; fails the test if there is none.
const Operation& named(const std::vector<Operation>&, const std::string& name);
bool has_kernel(const std::vector<Operation>&, const std::string& name);
/// That the kernel of this name moves.
double bytes(const std::vector<Operation>&, const std::string& name);
/// A family of layouts prices `in`, of TP 2, DP 2 and these stages, as a forecast does, on two nodes.
void check_family(StepInputs in, int pp);
std::vector<std::uint32_t> values(const Group&);

}  // namespace collcast::test
