// What Adam keeps and moves for each parameter that a rank updates.
//
//                 kept                        moved by Adam besides the gradient
//   usual         4 (1 + 2) = 12              read and written 2 x 12, the 16-bit weight written 2: 26
//   fp32 weights  their own master: 8         2 x 8 + 8 = 24
//   precision-    e + s + p                   moments and parameters are in fp32 within its kernel: 2 x 12 + 2 = 26;
//   aware                                     with remainders 2 x 8 for the moments, 2 x 2 for the remainder and 2 x 2
//                                             for the weight, which is read, too: 24
//
// e, s, p: bytes of exp_avg, exp_avg_sq and the parameters; p is 2 with remainders, which are what fp32 has beyond
// bf16, and so of steps in bf16 alone: elsewhere weights are fp16 or made of what the optimizer keeps.
//
// States that are not in fp32 are brought there before, all of the rank's at once, and back behind (fused_adam.py,
// get_unscaled_state and _apply_scale):
//   there   bf16 2 + 4; fp16 2 + 4, and scaled 4 + 4; fp8 1 + 4
//   back    bf16 cast 4 + 2 and copied 2 + 2; fp16 its largest 4, scaled 4 + 4, copied 4 + 2; fp8 its largest 4, cast
//           4 + 1
// While the kernel runs they are there in fp32, too: `unscaled`. fp8 and fp16 have a scale for each tensor, left out.
//
// Gradients in 16 bit are copied in fp32 for the usual optimizer. The precision-aware one reads them as they are, but
// in fp8 and fp4 with parameters in fp32, which it then does not keep itself
// (megatron/core/optimizer/distrib_optimizer.py, _copy_model_grads_to_main_grads; optimizer_config.py,
// use_precision_aware_optimizer_no_fp8_or_ds_fp8; delayed scaling, which is told apart there, is not here). In what
// gradients are kept, there main_grads_dtype, gradient_bytes says.
#pragma once

#include "collcast/workload/config.hpp"

namespace collcast::workload {

/// Bytes per parameter.
struct OptimizerBytes {
  double kept = 0;
  double moments = 0;    ///< of these
  double adam = 0;       ///< moved by the kernel, besides the gradient
  double converted = 0;  ///< moved by those that bring states to fp32 and back
  double unscaled = 0;   ///< of states in fp32 while the kernel runs, beside those kept
  double copied = 0;     ///< of the gradient in fp32, where it is kept in 16 bit
  double gradient = 0;   ///< that norm and Adam read: the copy, where there is one
};
/// All 0 without an optimizer.
OptimizerBytes optimizer_bytes(const TrainingOptions&);

}  // namespace collcast::workload
