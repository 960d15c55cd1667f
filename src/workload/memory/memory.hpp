// Memory of one rank, itemised, at the fullest of three moments: the end of the forward pass of the last micro-batch in
// flight, with its loss; the backward behind it, with the loss or a layer that is recomputed, whichever is more (so
// that the first is the fullest where nothing is recomputed or waits to be split); the optimizer's step, without
// activations, with fp32 copies of 16-bit gradients.
//
// States, bytes per parameter: weights w, gradient as chosen, optimizer 12 (8 with fp32 weights), the last over
// the shards with a distributed optimizer (ZeRO-1), gradients too with ZeRO-2, weights too with ZeRO-3 (Rajbhandari et
// al. 2020). Whole for a time is, of what is split over more than one rank:
//   ZeRO-3  weights and gradients of the two largest neighbouring units (the next is gathered and the last reduced
//           beside one that computes), without overlap of the largest; all weights if they are not split again; all
//           gradients if they are summed up whole (no_sync of several micro-batches), from the first
//           backward on
//   ZeRO-2  the gradient of the largest unit and a bucket, without overlap all
// and of what QLoRA keeps in 4 bit the largest matrix (adapters.hpp).
// Activations kept per layer and micro-batch (Korthikanti et al.
// 2022, generalised to GQA and gated MLPs), T tokens, T' = T/t with sequence parallelism, else T:
//   norms and residuals   T' h (4 w + 2 with dropout): input and output of both norms, two masks
//   QKV and core output   w T (2a + 2k) d / t
//   MLP                   w T f g / t, g = 3 gated or 2: what the activation reads and writes
//   less, in fp8 or fp4   (w - i) of each element that one product alone reads, i bytes as it reads it: outputs of
//                         norms (not the first's of latent attention, which two products read, nor the second's where
//                         the router reads it), of the small ranks' norms, of activation functions, rows of experts
//                         (Transformer Engine, module/linear.py; Megatron-Core keeps what attention gives once,
//                         core/transformer/attention.py: set_save_original_input)
//   core                  unfused (b a s^2 / t)(w + (w + 1) with dropout); flash 4 b a s / t; selective 0
//   full recomputation    w T' h, and the working set of the one layer being recomputed
//   latent attention      QKV and core output w T (a (d_n + d_r) + k (d_n + d_r) + (a + k) d_v) / t with k = a, and w
//   T'
//                         (2 r_q + 2 r_kv + d_r) (T without a query rank)
//   chosen keys           w T a (2 r_kv + d_r) / t in the place of expanded keys and values; of the indexer
//                         w T (H d + 2 d + H), and places 4 T top_k (indexer.hpp)
//   linear attention      in the place of QKV, core output and core what kept_by_linear_attention says
//   experts               in the place of the MLP w R (h + f_e g / t_e), R = T' K t_e x load rows with their input;
//                         with a clamp w R 2 f_e / t_e more (expert_kernels.hpp);
//   shared
//                         experts w T f_s g / t; 8 T' E for the router (probabilities and their map, fp32)
//   latent experts        l in the place of h of R rows, and w T' l, what is brought up again
// States of experts: E/e of them, 1/t_e each, split over the ranks that have the same ones.
// Zero bubble keeps from a backward to its weight gradients the inputs of the matrices and the gradients of
// their outputs (Qi et al. 2023: 32 of 34 s b h in a GPT layer): w (4 T' h + T (2a + 2k) d/t + T f g/t); of the head w
// (T' h + T V/t) (WeightGradStore in megatron/core/tensor_parallel/layers.py of their fork).
// In flight: 1F1B min(m, p - i), GPipe m micro-batches; interleaved what its order holds where that is most: up to
// 2 (p-1-i) + (v-1) p + 1 micro-batches of a chunk each, on the first stage 1 + (p-1)/(p v) times what 1F1B holds;
// zero bubble likewise, and micro-batches that wait for their weight gradients: of H1 p - i and i, of H2
// 2 (p-1-i) + 1 and 2i; of orders that are made for times what these hold, before they are known the most that they may
// (automatic_order.hpp); of V at most 2p micro-batches of a chunk each, both together, on every stage; of one's own
// what its order holds where that is most. Each chunk counts with its own layers. The stage with the head keeps, while
// a forward of the last chunk is held, the logits in w, and in fp32 for the loss (w + 4 bytes per logit, w + 8 where it
// runs kernel by kernel), and input and output of the final norm; the first the dropout mask of the embedding. What
// CUDA, NCCL and the allocator take besides: memory_use.hpp. Left out: temporaries of a framework's optimizer
// (validation/src/training/memory.cpp has them for published steps), copies of weights in fp8 beside those in bf16.
#pragma once

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// Zero bubble: of what a stage keeps of a forward, what its weight gradients need.
double share_for_weights(const MemoryTerms&);
/// Micro-batches whose activations a stage holds at once; with chunks: of a chunk each.
int in_flight(const StepInputs&, int stage);

}  // namespace collcast::workload
