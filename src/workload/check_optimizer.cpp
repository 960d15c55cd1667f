// Whether an optimizer of narrower states goes with what it optimizes, as Megatron-Core has it.
#include "workload/misfits.hpp"
#include "workload/precision.hpp"

namespace collcast::workload {

void check_optimizer(Misfits& misfits) {
  const TrainingOptions& o = misfits.in.options;
  if (!o.precision_aware_optimizer) return;
  const auto drop = [](StepInputs& in) { in.options.precision_aware_optimizer.reset(); };
  if (const auto precision = training_precision(o.precision); precision && precision->activation > 2)
    misfits.wrong({"training.precision_aware_optimizer", "training.precision"},
                  "precision_aware_optimizer is of weights in 16 bit, and precision is " + o.precision +
                      misfits.seen("training.precision"),
                  {"leave it out, or use precision bf16", drop});
}

}  // namespace collcast::workload
