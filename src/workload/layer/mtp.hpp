// Multi-token prediction: D modules behind the model, each for one token further on (Gloeckle et al. 2024; as
// DeepSeek-V3, section 2.2, and Megatron-LM, megatron/core/transformer/multi_token_prediction.py, have it).
//
// A module takes what the one before it gives (the first: the model's last layer) and the embeddings of the tokens one
// further on, each through a norm, side by side through a matrix W of 2 h x h, and that through a layer like the
// model's last (of a hybrid model one with attention and its experts, or its MLP); behind it are a final norm of its
// own and the logits and loss of the model's head, once more. The layer is one of the stage's with the head; all else
// counts with the head's unit.
//
// Per module and micro-batch, besides its layer and a head: a look-up (as the embedding's), two norms (2 w T' h each)
// and their rows side by side (4 w T' h), the product T x 2h x h/t, whose columns TP splits: with sequence parallelism
// a gather of 2 w T h before it; then an all-gather of w T h. Backward the same back: with sequence parallelism the
// gradient of w T h is gathered and that of 2 w T h scattered, without it the latter is summed. Parameters: 2 h h / t,
// three norms; and where the last stage has no embedding a copy of it, V h / t, whose gradients both ends sum up as
// those of tied embeddings; of units that are gathered (ZeRO-3) the head's reads the embedding's matrix once more.
// Kept: what both norms read and give, and what the final norm does (6 w T' h), the look-up's dropout mask and the
// loss's probabilities.
//
// Left out: recomputation of what comes before the layer (Megatron-LM's full one has it), the shift of tokens between
// ranks of a CP group (a few bytes), the sum of both gradients of what a module and a head read (3 w T' h), that fp8
// keeps the projection's inputs as it reads them, fp4's exception (Megatron-LM computes these layers in bf16), modules
// that share their weights, other stages than the head's. Learned positions are refused, as Megatron-LM does.
#pragma once

#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"

namespace collcast::workload {

/// Of all modules, without their layers and the copy of the embedding: matrices `sharded`, norms `replicated`.
RankParameters mtp_parameters(const TransformerConfig&, int tp);
/// Of the matrix that a stage with the head holds for look-ups beside its own.
double mtp_embedding_copy(const StepInputs&);

/// What comes before the layer of one module.
Segments mtp_input_segments(const StepInputs&);

/// Of all modules: kept until their backward, and from there to the gradients of their matrices.
Volume mtp_kept(const StepInputs&);
Volume mtp_kept_for_weights(const StepInputs&);

}  // namespace collcast::workload
