// Interleaved 1F1B, Megatron-LM's virtual pipeline (Narayanan et al. 2021, section 2.2): each of the p stages holds v
// chunks of layers, chunk c of stage i the (c p + i)-th slice of the model, and a micro-batch goes round the stages v
// times.
//
// Order. A stage's forwards are its m v virtual micro-batches: p micro-batches through chunk 0, the same through chunk
// 1 and so on, then the next p; its backwards are in the same order with the chunks reversed. Stage i does
// min(2 (p-1-i) + (v-1) p, m v) forwards to warm up, then one forward and one backward in turn, then the remaining
// backwards. Every stage waits for what its neighbours in the ring send, so m is a multiple of p: other orders can wait
// for themselves.
//
// Closed form. W: the most forward and backward that a stage does for a micro-batch, F and B those of a chunk of each
// stage, C a message between two chunks:
//   m W + (sum of the other stages' F + B)/v + 2 sum(C over all p v - 1 ways)
// Equal stages: m W + (p-1) W/v + 2 (p v - 1) C, exact as long as a message is not what the steady state waits for:
// without messages the bubble is (p-1)/(v m) of the computing. Else it is an approximation, and the order is gone
// through turn by turn, as for 1F1B; what that adds or takes away is PipelineTerms::order, with which the sum is exact.
#pragma once

#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

/// Turns of a stage by their index, nothing stored.
class InterleavedOrder {
 public:
  InterleavedOrder(int stages, int chunks, int micro_batches)
      : stages_(stages), chunks_(chunks), micro_batches_(micro_batches) {}

  /// Forwards of a stage, and backwards: micro-batches times chunks.
  int forwards() const { return chunks_ * micro_batches_; }
  int warm_up(int stage) const;
  /// The k-th of all forwards, or backwards: on every stage the same.
  Turn forward(int k) const;
  Turn backward(int k) const;
  /// The n-th turn of a stage, below 2 forwards().
  Turn turn(int stage, int n) const;

 private:
  int stages_, chunks_, micro_batches_;
};

/// `later` of the result is by chunk, as ChunkedStages::times.
Pipeline run_interleaved(const ChunkedStages&, int micro_batches);

}  // namespace collcast::workload
