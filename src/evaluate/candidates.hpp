// What an algorithm would do for a request: its patterns, which links they cross, and what it cannot be quicker than.
#pragma once

#include <optional>
#include <vector>

#include "collcast/cost/routed.hpp"
#include "collcast/evaluate/evaluate.hpp"

namespace collcast {

/// One algorithm, before its chunks are chosen and its time is known.
struct Candidate {
  CollectiveOptions options;
  bool choose_chunks = false;  ///< else those of `options`
  CollectiveKind kind{};
  Bytes size{};                          ///< that `patterns` are of
  std::vector<Pattern> patterns;         ///< own, then those alongside that can be in its way
  std::int64_t work = 0;                 ///< links that an estimate's hops cross
  std::int64_t forwarded = 0;            ///< hops that others wait for
  std::optional<RoutedPatterns> routed;  ///< once it is in the running
  LeastTime least;                       ///< once there are others

  Seconds at_least(Bytes bytes) const;
};

/// All that do the kind and suit the group, or the one that is asked for, with their routes; the last reasons why not
/// if there are none.
Result<std::vector<Candidate>> candidates(const Fabric&, const CollectiveRequest&, const CollectivePolicy&,
                                          const GoesOn&);

/// With its best chunks, or those asked for; nothing if it is ended.
std::optional<Choice> priced(const Candidate&, Bytes, const GoesOn&);

/// What is said of a choice that was ended.
Diagnostic ended(const CollectiveRequest&);

/// Doublings of one chunk to the most that are tried: 4096, or as many as leave each a byte.
int most_doublings(const std::vector<Pattern>&);

}  // namespace collcast
