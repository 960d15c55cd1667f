// The step in closed form.
//
//   step = pipeline(m; F_i, B_i, C_i) + slowed + exposed gradients + m exposed sharding + optimizer + parameter gather
//
// pipeline: pipeline.hpp, interleaved.hpp, zero_bubble_v.hpp. Stage i ends its last backward sum over j < i of (B_j +
// C_j) before stage 0. With overlap, its buckets k (each c_k long, ready r_k before that end) are over max over k of
// (sum of c_j, j >= k, minus r_k) after it, without overlap sum(c), from the end of its last message if those block;
// exposed is what the last stage to finish adds to the pipeline. ZeRO-2 does that after every micro-batch, ZeRO-3
// gathers and reduces unit by unit instead (sharded.hpp); with a pipeline both are gone through turn by turn
// (sharded_walk.hpp), and what that adds is a term of its own. Delayed, the gradients of the step
// before are there when the step begins: exposed is by what the longest of the stages' sums, with the tied embedding's
// behind those of the two ends, is longer than the pipeline. The gradient norm over all ranks stands between gradients
// and optimizer, so the optimizer waits for all. Blocking transfers lengthen the sender's F and B instead of delaying
// the receiver. slowed: what the pipeline takes longer as kernels run beside the exchange of gradients and weights
// (exchange_walk.hpp, sharded.hpp); buckets and r_k are then as that finds them.
#pragma once

#include "workload/plan.hpp"

namespace collcast::workload {

struct StepEstimate {
  Seconds total{};
  Breakdown breakdown;     ///< of the stage with the most work; sums to total
  ClosedForm terms;        ///< that sum to it as well
  Seconds slowed_by_dp{};  ///< of the breakdown's computing
};
StepEstimate estimate_step(const StepPlan&);

}  // namespace collcast::workload
