// GPUs that may draw less than their usual power.
#pragma once

#include "collcast/workload/config.hpp"

namespace collcast {

/// Clock, of the usual one, of a GPU that computes at `share` of its usual power: the cube root, as power goes with the
/// clock and the square of a voltage that follows it (Mudge 2001, "Power: a first-class architectural design
/// constraint", IEEE Computer 34(4)). Rough: idle power is left out, below some clock the voltage stays, and products
/// that do not reach the limit lose nothing. NVIDIA's own boards: an H100 NVL at 400 W has 835 TFLOP/s of bf16, of the
/// 989 of an H100 SXM at 700 W with as many SMs 0.84, by the cube root 0.83 (data sheets).
double clock_at_power(double share);

/// Rates of products and attention at that clock; of memory and links as they were.
KernelModel at_power(KernelModel, double share);

}  // namespace collcast
