// When the stages of a pipeline begin to reduce their gradients.
//
// Each for itself, bucket by bucket as its last backward fills them, delays itself by what the buckets slow, and by
// that the stage before, whose own buckets add to it. Aligned (Megatron-LM's align_grad_reduce, on by default there;
// megatron/core/pipeline_parallel/schedules.py), all begin at about the same time:
//   1F1B, GPipe   stage 0 in its last backward, which nobody waits for; every other all at once behind its own, while
//                 the stages before it still work
//   interleaved   stage i all of a chunk at once, behind the i-th backward after the chunk's last; what is left at the
//                 end, behind the last backward
// Megatron-LM has no GPipe, which is taken as 1F1B. Zero bubble, DualPipe and a user's own order are left as they are:
// what their buckets slow are mostly weight gradients that no other stage waits for. So are ZeRO-2 and 3, which reduce
// after every micro-batch, and the gradients of the step before (delayed).
#pragma once

#include <span>
#include <vector>

#include "collcast/workload/gradient_alignment.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

bool aligns_gradients(const StepPlan&);

/// Whether buckets are reduced as the stage's last backward fills them.
bool fills_in_backward(const StepPlan&, std::size_t stage);

/// Of a stage, in the order of its turns, of a plan that aligns gradients.
class GradientLaunches {
 public:
  GradientLaunches(const StepPlan&, std::size_t stage, std::span<const Turn> order);

  /// The chunks whose buckets are reduced from the end of this turn on.
  std::vector<int> behind(const Turn&);
  /// Those that are left at the end.
  std::vector<int> left() const;

 private:
  std::vector<int> after_;  ///< by chunk: backwards of the stage that are over then; -1: launched
  int backwards_ = 0;
};

}  // namespace collcast::workload
