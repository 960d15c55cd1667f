// What frameworks do where a row of a training table is silent; sources: inputs.cpp.
#pragma once

#include <string>

#include "collcast/validation/training.hpp"

namespace collcast {

/// Which kernels run attention: the kernel table's, or the first or second version of the open ones.
enum class FlashAttention { table, first, second };

struct Habits {
  Attention attention = Attention::flash;
  double dropout = 0;
  int gradient_bytes_16 = 2;  ///< of steps in fp16
  int gradient_bytes = 2;     ///< of others
  bool overlap_dp = true;
  Seconds launch{};
  FlashAttention flash = FlashAttention::table;
  bool dummy_gradients = false;  ///< Transformer Engine's: one of 16 bit per distinct shape of weights
  bool fuse_loss = true;
  bool keeps_casts = false;  ///< inputs of products in 8 bit (Transformer Engine; torchao keeps them as they were)
};
Habits habits_of(const TrainingRow&);

/// Megatron-Core with the layers of Transformer Engine: by name, or Megatron-LM in fp8 or fp4, which its own layers
/// have not, or since it runs them unless told otherwise (`--use-legacy-models`; Megatron-LM, pull request 987,
/// September 2024, and megatron/training/arguments.py at 54f1f78). Forks keep what they forked.
bool runs_megatron_core(const TrainingRow&);

/// Whose arithmetic of memory counts (memory.cpp).
Framework framework_of(const TrainingRow&);

/// Of PyTorch without graphs. Layers of vTrain's single node that no GPU limits take 3.0 ms whatever their size, for 55
/// kernels: 30 that Python launches, forward and recomputed, 25 of the backward, which the graph of gradients launches
/// without Python. Which part is whose shows where the GPU limits the backward alone; fitted to layers of hidden 1024
/// or of 2048, of TP 1 and 2 or of 4 and 8, the others have smaller errors each time.
inline constexpr Seconds eager_launch{85e-6}, eager_gradient_launch{15e-6};
/// Mean of the 55.
inline constexpr Seconds mean_eager_launch{53e-6};

/// "as Megatron-LM runs: unfused attention, dropout 0.1, ...": of a step what its row does not say.
std::string habits_text(const TrainingRow&, const StepInputs&);

}  // namespace collcast
