// DualPipeV (DeepSeek's DualPipe repository, 2025): the model goes down the p stages and up again as in
// zero_bubble_v.hpp, and while the pipeline is full a stage passes a forward of one of its two chunks and a whole
// backward of the other together. A pair waits for both inputs, and both outputs leave when it is over. With
// `overlap_ep` the exchange of experts of a whole backward runs beside its computing and its weight gradients; that a
// pair's forward and backward could hide each other's is not modelled.
//
// Order of stage i, with b = p-1-i, Fc, Bc the next forward and whole backward of chunk c, bc a backward without weight
// gradients, and W those of the oldest that has had none:
//   2b times F0, i+1 times F0 F1, b times b1 W F1
//   m-2p+i+1 times the pairs F0 with B1, F1 with B0; b times B1 and the pair F1 with B0
//   i+1 times B1 B0, of which the second half leaves the weight gradients for later; b times W b0, i+1 times W
// With fewer than 2p micro-batches it is the order of 2p without the turns of those that are not there.
//
// Closed form, with F, B, W of both chunks of a stage, X all three of the slowest, sums over the others and over the
// transfers C between two stages:
//   m X + max(sum(F + 2B - W) / 2, sum(2F + B - W) / 2, sum(F)) + 2 sum(C)
// Per chunk the first is (p-1) (F&B + B' - 3W) of equal stages, with B' = B + W and a pair F&B of F + B': the bubble as
// DeepSeek gives it. Exact for equal stages without messages, but for W of about F + B and more; a pair waits for
// messages in the steady state too. So the order is gone through, as for 1F1B, and the rest is PipelineTerms::order.
#pragma once

#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

std::vector<Turn> dualpipe_v_order(int stages, int stage, int micro_batches);

/// The closed form, without what the order adds; blocking messages are part of their sender's turns.
PipelineTerms dualpipe_v_terms(const ChunkedStages&, int micro_batches);

}  // namespace collcast::workload
