// What published recipes say of runs whose tables do not.
#pragma once

#include <optional>

#include "collcast/validation/training_table.hpp"
#include "collcast/workload/config.hpp"

namespace collcast {

/// How a recipe sends tokens to their experts.
struct ExpertRecipe {
  TokenDispatcher dispatcher = TokenDispatcher::alltoall;
  bool overlap = false;     ///< beside another micro-batch's computing (Megatron's overlap_moe_expert_parallel_comm)
  bool overlap_dp = true;   ///< overlap_grad_reduce
  const char* source = "";  ///< empty: none is known
  bool fused = false;       ///< what is between the products of experts in their kernels
};

/// Of the release, model, GPU and precision of a row; an all-to-all that nothing hides where none is known.
ExpertRecipe expert_recipe(const TrainingRow&);

/// Megatron-Bridge's, which all have sequence parallelism where they have TP.
bool has_recipe(const TrainingRow&);
/// Whether its recipe runs TP's collectives in rings beside the products (tp_comm_overlap).
bool recipe_has_rings(const TrainingRow&);
/// What its recipe computes once more; empty: nothing, or none is known.
RecomputeModules recipe_recomputes(const TrainingRow&);
/// The optimizer of its recipe, where that is precision-aware.
std::optional<PrecisionAwareOptimizer> recipe_optimizer(const TrainingRow&);
/// Of how many layers its recipe moves the activations to the host's memory (cpu_offloading_num_layers).
int recipe_offloads(const TrainingRow&);

}  // namespace collcast
