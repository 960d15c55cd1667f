// Parameters and FLOPs of a model, whole and by pipeline stage.
//
// Per layer: QKV h d (a + 2k), projection a d h, MLP 2 h f (gated 3 h f), two norms of h (2h with biases), and
// biases (a + 2k) d + h + f (gated 2f) + h. KV heads are split over TP; with more ranks than KV heads each rank
// has a copy of the one that its query heads use. Column-parallel biases are divided by TP, norms and the biases of
// the row-parallel matrices (projection, MLP down) are on every TP rank. The vocabulary is padded to a
// multiple of TP. Tied embeddings are one matrix in a single stage and a copy on both end stages otherwise.
//
// FLOPs (multiply-add = 2) follow Narayanan et al. 2021: no discount for causal attention, so that MFU
// compares with Megatron's figures; utilisation by NVIDIA's recipes (half of the attention core) reads lower.
#pragma once

#include <vector>

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// KV heads of one of `tp` ranks: k/t, at least one.
int kv_heads_per_rank(const TransformerConfig&, int tp);

/// Of one rank. `replicated` is the same on all its TP peers; copies of a KV head, on some of them, are `sharded`.
struct RankParameters {
  double sharded = 0, replicated = 0;
  double total() const { return sharded + replicated; }
};

RankParameters layer_parameters(const TransformerConfig&, int tp);
/// Word and learned position embeddings.
RankParameters embedding_parameters(const TransformerConfig&, int tp);
/// Final norm, and the output matrix unless `shares_embedding` (tied and on the embedding's stage).
RankParameters head_parameters(const TransformerConfig&, int tp, bool shares_embedding);
/// Of `stage`; all alike unless stages may be uneven.
int stage_layers(const StepInputs&, int stage);
/// Of one unit of a rank: the embedding, a layer or the head.
struct UnitParameters {
  double own = 0;   ///< that its backward has the gradients of
  double used = 0;  ///< that its passes read: with tied embeddings the head reads the embedding's
};
/// In the order of the forward.
std::vector<UnitParameters> unit_parameters(const StepInputs&, int stage);
/// Everything that a rank of `stage` holds.
RankParameters stage_parameters(const StepInputs&, int stage);

bool has_embedding(const StepInputs&, int stage);
bool has_head(const StepInputs&, int stage);

/// Of a whole step (global batch), all ranks: forward and backward.
Flops model_flops(const StepInputs&);
/// With what is recomputed (logits never are) and what copies of KV heads compute.
Flops hardware_flops(const StepInputs&);

}  // namespace collcast::workload
