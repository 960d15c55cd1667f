// Zero-bubble schedules H1 and H2 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2). A backward gives the
// gradient of its input only (B); the gradients of the weights (W) wait for nobody but their B, and fill what would be
// bubble.
//
// Order of stage i of p: forwards to warm up, then one forward and one backward in turn, behind each backward the
// weight gradients of the micro-batch that is `lag` behind it, the remaining ones last.
//   H1: warm-up p-1-i, lag i: holds what 1F1B holds, and the inputs of i micro-batches' W
//   H2: warm-up 2 (p-1-i), lag 2i: twice as much
// Closed form, with F, B and W of the slowest stage and sums over the others and over the transfers C:
//   H1  m (F + B + W) + max(sum(F + B - W) + 4 sum(C), 0)
//   H2  m (F + B + W) + max(sum(F + B - 2W) + 2 sum(C), 0)
// Of equal stages that is how long each is busy from its first turn to its last, with m of at least 2p or so. With H1
// it is the whole pipeline as well; with H2 stages begin and end at different times, which counts where all wait for
// the norm of the gradients, so the order is gone through as for 1F1B and the rest is PipelineTerms::order: with it the
// pipeline is exact, also for stages that differ and few micro-batches.
#pragma once

#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

std::vector<Turn> zero_bubble_order(PipelineSchedule, int stages, int stage, int micro_batches);

/// The closed form, without what the order adds; blocking messages are part of their sender's turns.
PipelineTerms zero_bubble_terms(PipelineSchedule, const ChunkedStages&, int micro_batches);

}  // namespace collcast::workload
