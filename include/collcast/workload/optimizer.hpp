// Adam whose states are narrower than fp32, by the fused Adam of Transformer Engine
// (transformer_engine/pytorch/optimizers/fused_adam.py; formulas: src/workload/memory/optimizer_bytes.hpp), or are in
// the host's memory between updates. Both as Megatron-Core has them.
#pragma once

#include <string_view>

#include "collcast/base/quantity.hpp"

namespace collcast {

/// In which a state of the optimizer is kept.
enum class StateFormat { fp32, bf16, fp16, fp8 };
std::string_view to_string(StateFormat);
/// Of one value.
Bytes bytes_of(StateFormat);

/// Names as Megatron-Core's OptimizerConfig has them (megatron/core/optimizer/optimizer_config.py).
struct PrecisionAwareOptimizer {
  StateFormat exp_avg_dtype = StateFormat::fp32;      ///< first moment
  StateFormat exp_avg_sq_dtype = StateFormat::fp32;   ///< second moment
  StateFormat main_params_dtype = StateFormat::fp32;  ///< or fp16
  /// Of fp32 parameters beside weights in bf16 the 16 bits alone that those do not have.
  bool store_param_remainders = true;
};

/// Moments and fp32 parameters that are in the host's memory from one update to the next, which runs on the GPU:
/// Megatron-Core's chunked_optimizer_state_offload. Formulas: src/workload/memory/state_copies.hpp.
struct OptimizerStateOffload {
  double fraction = 1;    ///< of what the optimizer keeps; 0: nothing
  int chunk_size_mb = 0;  ///< MiB of moments that come to the GPU together, each two at a time; 0: all at once
};
/// What is offered where memory lacks: all, in chunks as Megatron-Core's documentation has them.
inline constexpr OptimizerStateOffload states_on_host{1, 256};

}  // namespace collcast
