// Speculative decoding (Leviathan et al. 2023; Chen et al. 2023): k tokens of each sequence are drafted, and one pass
// of the model over them and the token before them verifies them all. Those before the first that the model does not
// accept stay, and one of the model's own follows: a pass brings 1 to 1 + k tokens.
//
// How many it brings depends on what is written, and is given: as a mean, or as the probability a that a drafted token
// is accepted where those before it were, with which the mean is 1 + a + ... + a^k (Leviathan et al., section 3.1).
// What passes take: src/workload/serving/drafts.hpp.
#pragma once

#include <optional>
#include <string_view>

namespace collcast {

/// By modules of multi-token prediction, one after the other (DeepSeek-V3, section 2.2); or looked up in what the
/// request has said already, which takes no time of a GPU (vLLM's ngram, prompt lookup).
enum class DraftMethod { mtp, ngram };
std::string_view to_string(DraftMethod);

inline constexpr int most_speculative_tokens = 32;

struct Speculation {
  DraftMethod method = DraftMethod::mtp;
  int tokens = 1;                                ///< k: drafted of a sequence for a pass
  std::optional<double> acceptance_rate = {};    ///< a, 0 to 1
  std::optional<double> acceptance_length = {};  ///< or tokens of a pass, 1 to 1 + k
  double tokens_per_pass() const;
};

}  // namespace collcast
