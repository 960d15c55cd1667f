// Activations of the first N of L layers that wait in the host's memory for their backward
// (training.cpu_offloading_num_layers, Megatron-Core's).
//
//   copied          of a micro-batch: what each of the N layers keeps, to the host in the forward, back in the backward
//   at              line rate of the way to the host while all GPUs of a node copy (host_link.hpp) x host_copies of the
//                   kernel table
//   a layer's pass  takes at least (copies of all N + one pass of a layer) / L: with each layer an L-th of them is to
//                   be over, as Transformer Engine spreads them; the first layer has nothing to copy yet when it
//                   begins, and in the backward its own have come when it begins
//   GPU             holds the activations of L - N layers, and in the backward, when the loss is over, of one that has
//                   come back
//   host            those of N layers, for each micro-batch that is held
//
// Sources: transformer_engine/pytorch/cpu_offload.py of github.com/NVIDIA/TransformerEngine
// (AsyncDoubleBufferGroupOffloadHandler: layer_window_map); megatron/core/transformer/transformer_config.py (no
// pipeline, no recomputation, fewer than all layers). Measured: steps of Llama 3 8B and GPT-3 5B on an H100
// (docs/steps.md, "Activations in the host's memory"). Left out: layers of several kinds, of which the short ones are
// taken to wait where a window over several would hide it; what copies take of the GPU's memory bandwidth; the host's,
// which several GPUs share; weights that are not in use (cpu_offloading_weights).
#pragma once

#include "workload/layer/segments.hpp"

namespace collcast::workload {

/// To the host's memory and from there, each way.
Bandwidth host_copy_rate(const StepInputs&);
/// Beside each pass of a layer; none where nothing is offloaded.
HostCopies host_copies(const StepInputs&);

}  // namespace collcast::workload
