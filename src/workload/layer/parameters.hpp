// Parameters and FLOPs of a model, whole and by pipeline stage.
//
// Per layer: QKV h d (a + 2k), projection a d h, MLP 2 h f (gated 3 h f), two norms of h (2h with biases), and
// biases (a + 2k) d + h + f (gated 2f) + h. KV heads are split over TP; with more ranks than KV heads each rank
// has a copy of the one that its query heads use. Column-parallel biases are divided by TP, norms and the biases of
// the row-parallel matrices (projection, MLP down) are on every TP rank. The vocabulary is padded to a
// multiple of TP. Tied embeddings are one matrix in a single stage and a copy on both end stages otherwise.
//
// A layer with E experts of width f_e: router h E, experts E 3 h f_e (plain 2 h f_e) split over EP and expert TP,
// shared experts 3 h f_s split over TP, and h for their gate. Latent attention (DeepSeek-V2): into the small ranks h
// r_q + h (r_kv + d_r) and norms r_q + r_kv, whole on every TP rank; out of them r_q a (d_n + d_r) + r_kv a (d_n + d_v)
// and the projection a d_v h, split over TP. Without a query rank h a (d_n + d_r) in the place of both.
// The indexer of sparse attention: r_q H d + h (d + H), and 2 d of its norm, whole on every TP rank (indexer.hpp).
//
// Linear attention (Gated DeltaNet) with a_k heads of queries and keys and a_v of values: in h (2 a_k d_k + 2 a_v d_v +
// 2 a_v), out a_v d_v h, taps of the convolution over 2 a_k d_k + a_v d_v channels, a decay and a bias of its step for
// each a_v, split over TP; a norm of d_v, whole. Mamba-2: in h (2 a_k d_k + 2 a_v d_v + a_v), a bias for each channel
// of the convolution, three numbers for each a_v and a norm of a_v d_v, all of it split over TP. A gate of what
// attention gives: h a d more.
//
// Latent experts: rows of l elements, so that the experts are 3 l f_e (plain 2 l f_e), and matrices down to l and up
// again, 2 h l, whole on every TP rank (of models with biases without any).
//
// FLOPs (multiply-add = 2) follow Narayanan et al. 2021: no discount for causal attention, so that MFU
// compares with Megatron's figures (of sparse attention the share of a causal layer's keys that queries meet, and the
// indexer's scores over whole matrices); utilisation by NVIDIA's recipes (half of the attention core) reads lower.
#pragma once

#include <vector>

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// KV heads of one of `tp` ranks: k/t, at least one.
int kv_heads_per_rank(const TransformerConfig&, int tp);
/// Rows of the word embedding, and columns of logits, on one of `tp` ranks.
double vocabulary_rows(const TransformerConfig&, int tp);

/// Of one rank. `replicated` is the same on all its TP peers; copies of a KV head, on some of them, are `sharded`.
struct RankParameters {
  double sharded = 0, replicated = 0;
  double experts = 0;  ///< that other ranks may have none of
  double total() const { return sharded + replicated + experts; }
};

/// A server whose TP ranks all have every token where the experts are: each computes what its own experts, or its part
/// of each, make of them, and one all-reduce sums that up.
bool replicates_tokens(const StepInputs&);

/// What sets a layer apart from others of its model.
struct LayerKind {
  LayerShape shape = {};
  bool windowed = false;  ///< queries meet the keys of a sliding window only
  bool whole = false;     ///< left out of recomputation
  bool bf16 = false;      ///< where others are computed in fp8 or fp4
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};
LayerKind kind_of_layer(const StepInputs&, int layer);
/// The kind that stands for a model's layers where one is shown: of two parts before of one, with experts before
/// without, all keys before a window, recomputed before left out of that, in the step's precision before bf16;
/// attention before all that is linear.
LayerKind shown_kind(const StepInputs&);
/// All that there can be, in this order.
std::vector<LayerKind> layer_kinds();

RankParameters layer_parameters(const TransformerConfig&, const ParallelLayout&, LayerShape = {});
/// Word and learned position embeddings.
RankParameters embedding_parameters(const TransformerConfig&, int tp);
/// Final norm, and the output matrix unless `shares_embedding` (tied and on the embedding's stage).
RankParameters head_parameters(const TransformerConfig&, int tp, bool shares_embedding);
/// Of `stage`; as many in all unless stages may be uneven.
int stage_layers(const StepInputs&, int stage);
/// A stage's layers, chunk by chunk: their numbers in the model.
struct StageLayer {
  int number = 0, chunk = 0;
};
std::vector<StageLayer> layers_of_stage(const StepInputs&, int stage);
/// Which of the slices of the model the chunk of a stage is: they go round the stages, in a V down them and up again;
/// of DualPipe's two the first is the nearer to the model's begin.
int slice_of(const ParallelLayout&, int stage, int chunk);
/// Whether the slices of a V differ by one layer: where their number divides neither the layers nor those with the
/// ends. The last stages have the extra ones, as the first has both ends of the model: one each, and then a second.
bool slices_differ(const StepInputs&);
/// Whether the embedding and the head stand for a layer each, so that the first and the last slice of the model have
/// one fewer (uneven stages).
bool ends_stand_for_layers(const StepInputs&);
/// Some stage has other layers than another, beside what the ends have: uneven ones, or experts in some layers only.
bool stages_differ(const StepInputs&);
/// Of one unit of a rank: the embedding, a layer or the head.
struct UnitParameters {
  double own = 0;           ///< that its backward has the gradients of (adapters': those alone)
  double used = 0;          ///< that its passes read: with tied embeddings the head reads the embedding's
  double experts = 0;       ///< besides own, where experts go their own way (ParallelLayout::experts_apart),
  double used_experts = 0;  ///< and besides used
  double all() const { return own + experts; }
  double read() const { return used + used_experts; }
};
/// In the order of the forward.
std::vector<UnitParameters> unit_parameters(const StepInputs&, int stage);
/// Everything that a rank of `stage` holds.
RankParameters stage_parameters(const StepInputs&, int stage);
/// Of these what has gradients and an optimizer: all, or the low-rank adapters.
RankParameters trained_parameters(const StepInputs&, int stage);

bool has_embedding(const StepInputs&, int stage);
bool has_head(const StepInputs&, int stage);

/// Of a whole step (global batch), all ranks: forward and backward.
Flops model_flops(const StepInputs&);
/// With what is recomputed (logits never are) and what copies of KV heads compute.
Flops hardware_flops(const StepInputs&);

}  // namespace collcast::workload
