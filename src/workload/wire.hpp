// What is sent in another format than it is computed in, and the kernels that cast it.
//
// Activations of a layer (TP's gathers and reductions, experts' dispatch and combine), w bytes an element as computed,
// are sent in s: fp8 1 + 4/B, an fp32 scale for B elements (DeepSeek-V3, arXiv 2412.19437, section 3.3.3: 1 x 128
// tiles, dispatch in fp8 forward and backward, combine in bf16); bf16 and fp16 2, fp32 4. N elements are cast by a
// memory-bound kernel, (w + s) N bytes:
//   all-gather          the rank's N/t before, all N behind
//   reduce-scatter      all N before, N/t behind; all-reduce N both times
//   dispatch            the rank's rows before they are copied, T' h; behind it what has come, N
//   combine             N and N
// Behind a gather or a dispatch there is none where linear layers read fp8 and fp8 is sent, as the products take it.
// Weights of layers that ZeRO gathers, one scale a matrix (torchao's float8 all-gather: enable_fsdp_float8_all_gather;
// Megatron-Core: fp8_param_gather): the rank's share is cast before each gather of ZeRO-3, (w + s) bytes a parameter,
// and back, all of them, where products do not read it; of ZeRO-1 and 2, and of ZeRO-3 where weights are gathered once
// a step, once, behind the optimizer, where the weights are made that the next step gathers. The embedding, the head
// and the loss stay as they are.
//
// Left out: rows of the permutation before a dispatch, which move as they are computed; what a norm could write in fp8
// by itself; the exchange of the scales' maxima, and the scales of weights; exchanges of ranks that share an expert,
// of CP and of PP.
#pragma once

#include <optional>
#include <vector>

#include "workload/layer/kernels.hpp"
#include "workload/layer/segments.hpp"

namespace collcast::workload {

/// Of an element; `scale_block` elements share a scale, 0: they are too many for it to count.
double wire_bytes(WireFormat, int scale_block);
/// Of a weight, or a gradient; nothing: `kept`.
double wire_bytes(std::optional<WireFormat>, double kept);

/// Casts around what a layer's TP and EP send, and its bytes there.
void put_on_wire(const StepInputs&, const KernelTimer&, Segments& layer);
/// With ZeRO, of parameters less `but` (none of experts): what a rank has a share of, and what it gathers whole.
/// Experts that go their own way are split over their own replicas.
struct SplitParameters {
  double shares, gathered;
};
SplitParameters split_parameters(const ParallelLayout&, const RankParameters&, double but = 0);
/// ZeRO-3: casts of a layer's weights, for its gathers, where each pass has one.
void cast_gathered_weights(const StepInputs&, const KernelTimer&, LayerShape, Segments& layer);
/// Casts of a stage's weights where they are gathered once a step.
std::vector<Operation> casts_of_weights(const StepInputs&, const KernelTimer&, int stage);
/// Bytes of each weight of a unit that is gathered.
double gathered_weight_bytes(const StepInputs&, bool of_layer);
/// Whether the products of layers take gathered weights as they come.
bool products_read_gathered(const StepInputs&);
/// Whether kernels of a micro-batch depend on the stage of ZeRO.
bool casts_depend_on_zero(const TrainingOptions&);

}  // namespace collcast::workload
