// What TTFT, TPOT and the memory of a server are made of.
//
// The forecast sums these very values, so that an explanation (`collcast explain step`) cannot differ from its
// figure. Formulas: src/workload/serving/serving.hpp.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/workload/terms.hpp"

namespace collcast {

struct Serving;

/// How many times that of all prompts (continuous batching: of one) a request waits for prompts, mean.
struct PromptShares {
  double in_ttft = 1;                ///< until its first token
  double in_tpot = 0;                ///< between one of its tokens and the next
  double tokens_in_ttft = 0;         ///< how many passes of tokens of all it waits until its first one
  double passes_in_tpot = 1;         ///< and between one of its tokens and the next
  double prompt_passes_in_ttft = 1;  ///< how many passes with prompts in them until its first token
  double prompt_passes_in_tpot = 0;  ///< and between one of its tokens and the next
};
PromptShares prompt_shares(const Serving&);

/// What one more prompt adds to a pass, of what one alone and what so many take together: no less than nothing and no
/// more than one alone. The rest of what one takes is of the pass, whatever prompts are in it.
inline Seconds further_prompt(Seconds one, Seconds together, int prompts) {
  return prompts > 1 ? std::clamp((together - one) / (prompts - 1), Seconds{}, one) : one;
}

/// Of one micro-batch on each stage, and between them.
struct ServingTimes {
  std::vector<Seconds> stage;     ///< F_i
  std::vector<Seconds> transfer;  ///< C_i, one fewer
  Seconds back{};                 ///< B
  int micro_batches = 1;
};

/// By how much a layer takes longer than with the shortest context: with all keys, and with those of a window; and that
/// of a draft with one token of each sequence.
struct LongerContext {
  Seconds full{}, windowed{}, draft{};
  bool any() const { return full != Seconds{} || windowed != Seconds{} || draft != Seconds{}; }
};
/// Layers of a stage by the keys that their queries meet, and drafts.
struct ContextLayers {
  int full = 0, windowed = 0, drafts = 0;
  Seconds of(const LongerContext& longer) const {
    return full * longer.full + windowed * longer.windowed + drafts * longer.draft;
  }
};

/// The tokens behind the first, by closed form.
struct TokenTerms {
  ServingTimes shortest;              ///< with the prompts alone as their context
  std::vector<ContextLayers> layers;  ///< of each stage
  /// Tokens that the same thing decides, and means over them.
  struct Part {
    int tokens = 0;
    LongerContext longer;
    Seconds time{};
  };
  Part round;                  ///< the way round all stages
  Part turns;                  ///< the turns of the micro-batches on the slowest stage or link
  std::optional<int> slowest;  ///< the stage of all these turns; nothing: a link, or not always the same
  Seconds mean{};              ///< of all
  LongerContext longer;        ///< the same
};

/// Rounds of tokens with the shortest context, one between and the longest, as simulated. The one between is in the
/// middle, or where sliding windows are full: from there on windowed layers take no longer.
struct SimulatedTokens {
  int count = 0, middle = 0;  ///< tokens, and which of them (from 0) is the one between
  Seconds at_first{}, at_middle{}, at_last{};
  /// Straight from the first to the middle and on to the last; the middle counts once.
  Seconds mean() const {
    return ((middle + 1) * (at_first + at_middle) / 2 + (count - middle) * (at_middle + at_last) / 2 - at_middle) /
           count;
  }
};

/// What a rank holds while a pass is in its stage.
struct PassMemoryTerms {
  double rows = 0, logit_rows = 0;           ///< tokens of a micro-batch, and those that have logits
  double element_bytes = 0;                  ///< of an activation
  double hidden = 0;                         ///< elements of a row
  double attention = 0, mlp = 0;             ///< of a row's queries, keys and values, and of its MLP's width
  double mtp = 0;                            ///< of what a module of multi-token prediction joins
  double expert_rows = 0, expert_width = 0;  ///< rows that experts of the rank take, and elements of one
  double vocab = 0;                          ///< of a token's logits; 0: the stage has no head
  Volume messages{};                         ///< one that comes and one that goes
  double of_a_row() const { return std::max({attention, mlp, mtp}); }
  double widest() const { return std::max(of_a_row() * rows, expert_width * expert_rows); }
  Volume activations() const { return Volume(element_bytes * (2 * rows * hidden + widest())); }
  Volume logits() const { return Volume(element_bytes * logit_rows * vocab); }
  Volume buffers() const { return messages + logits(); }
};

/// Of a rank of a stage that serves.
struct ServingMemoryTerms {
  int stage = 0;
  ParameterTerms parameters;
  double matrix_bytes = 0, end_bytes = 0;       ///< of a parameter of a layer, and of the model's ends
  double kept_bytes = 0, kept_elements = 0;     ///< of the cache: an element, and how many a token has in a layer
  double indexer_bytes = 0;                     ///< besides, of sparse attention: of a token in a layer
  double sequences = 0;                         ///< of a replica
  double kept_tokens = 0, window_tokens = 0;    ///< of one: all, and in layers that keep a window of them
  double full_layers = 0, windowed_layers = 0;  ///< of the stage: that keep all, and a window
  double state_layers = 0;                      ///< of the stage: with linear attention, that keep states
  double state = 0, state_bytes = 0;            ///< of a sequence in each: elements of the states, and bytes of one
  double inputs = 0, input_bytes = 0;           ///< the last inputs of the convolution likewise
  PassMemoryTerms prompts, tokens;
  Volume weights() const { return Volume(matrix_bytes * parameters.of_layers() + end_bytes * parameters.ends()); }
  Volume keys_and_values() const {
    return Volume((kept_bytes * kept_elements + indexer_bytes) * sequences *
                  (full_layers * kept_tokens + windowed_layers * window_tokens));
  }
  Volume states() const { return Volume(sequences * state_layers * (state_bytes * state + input_bytes * inputs)); }
  Volume kept() const { return keys_and_values() + states(); }
  Volume activations() const { return std::max(prompts.activations(), tokens.activations()); }
  Volume buffers() const { return std::max(prompts.buffers(), tokens.buffers()); }
};
/// `inputs` with serving, which have passed check_step.
ServingMemoryTerms serving_memory_terms(const StepInputs& inputs, int stage);

}  // namespace collcast
