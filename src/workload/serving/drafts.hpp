// What speculative decoding has a server compute (collcast/workload/speculation.hpp).
//
// A pass of tokens has 1 + k of each sequence in the place of one: matrices are read once for all of them, attention
// reads the kept keys and values once for the 1 + k queries of a sequence, experts take (1 + k) b rows, and all have
// logits. Keys and values of k tokens more are kept.
//
// With D modules of multi-token prediction (mtp.hpp) on the last stage:
//   the first D drafts  each module passes the tokens that were verified, behind them, as it keeps keys and values of
//                       its own: a look-up, two norms, the projection, its layer, and logits of one token of each
//                       sequence
//   further ones        k - D times the last module once more, with one token of each sequence
// Prompts pass the D modules, too. Drafts follow each other, and the next pass follows the last of them: on one GPU a
// pass of tokens is the sum; of a pipeline the last stage is as much longer.
//
// Left out: trees of drafts (several for a place), a vocabulary of the drafts' own (EAGLE-3), the choice of what is
// accepted but for reading the logits, that sequences of a batch are accepted unlike numbers of tokens, and rejected
// tokens' rows that the modules need not pass.
#pragma once

#include "workload/layer/segments.hpp"

namespace collcast::workload {

/// Whether modules of multi-token prediction draft.
bool drafts_by_modules(const StepInputs&);
/// Passes of the last module with one token of each sequence; of prompts none.
int further_drafts(const StepInputs& pass);
/// One of them: `pass` is of tokens.
StepInputs draft_pass(const StepInputs& pass);
/// Of such a pass: what a module does.
Segments draft_segments(const StepInputs& draft, LayerKind);

}  // namespace collcast::workload
