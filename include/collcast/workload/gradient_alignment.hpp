// Whether the stages of a pipeline begin to reduce their gradients at about the same time (training.align_grad_reduce).
#pragma once

#include "collcast/workload/step.hpp"

namespace collcast {

/// 1F1B, GPipe and interleaved: of the others each stage reduces its own as they are there.
bool can_align_gradients(PipelineSchedule);
/// Whether there are gradients that stages reduce so, and they are asked to.
bool aligns_gradients(const StepInputs&);

}  // namespace collcast
