// Adam whose states are narrower than fp32: the precision-aware optimizer of Megatron-Core, by the fused Adam of
// Transformer Engine (transformer_engine/pytorch/optimizers/fused_adam.py). Formulas: src/workload/optimizer_bytes.hpp.
#pragma once

#include <string_view>

namespace collcast {

/// In which a state of the optimizer is kept.
enum class StateFormat { fp32, bf16, fp16, fp8 };
std::string_view to_string(StateFormat);
double bytes_of(StateFormat);

/// Names as Megatron-Core's OptimizerConfig has them (megatron/core/optimizer/optimizer_config.py).
struct PrecisionAwareOptimizer {
  StateFormat exp_avg_dtype = StateFormat::fp32;      ///< first moment
  StateFormat exp_avg_sq_dtype = StateFormat::fp32;   ///< second moment
  StateFormat main_params_dtype = StateFormat::fp32;  ///< or fp16
  /// Of fp32 parameters beside weights in bf16 the 16 bits alone that those do not have.
  bool store_param_remainders = true;
};

}  // namespace collcast
