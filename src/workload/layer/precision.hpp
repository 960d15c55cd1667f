// What "precision" means for a step: in which number format each kind of kernel runs and what it moves.
//
// fp4 is NVFP4: elements with a scale of a byte for 16 of them (0.5625 bytes) in weights and what meets them. Servers
// have one more: int4, weights alone of four bits with a scale of two bytes for 32 (0.5625 bytes), computed in bf16.
//
// fp8 and fp4 training keep activations, attention, logits and the loss in 16 bit and run the linear layers of the
// transformer blocks in fp8, or in fp4 (Transformer Engine's recipes; NVIDIA 2025, arXiv 2509.25149). Casts are left
// out but those around what is sent in fp8 (wire.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collcast::workload {

struct Precision {
  std::string linear;     ///< of the linear layers: key of GpuSpec::peak and KernelModel::gemm
  std::string core;       ///< of the attention core and the logits
  double activation = 2;  ///< bytes of an element kept or sent between kernels
  double operand = 2;     ///< bytes of an element that a linear layer reads
  double weight = 2;      ///< the same, of its weights
};

/// Nothing if steps are not trained in it.
std::optional<Precision> training_precision(std::string_view name);
/// Nothing if nothing is served in it.
std::optional<Precision> serving_precision(std::string_view name);

}  // namespace collcast::workload
