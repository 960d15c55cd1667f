// A request's pattern and those of the groups alongside, with each group's nodes from the fabric; and times of theirs
// compared.
#pragma once

#include <vector>

#include "collcast/evaluate/evaluate.hpp"

namespace collcast {

/// Ranks of any group that the fabric does not have.
Diagnostics wrong_with_ranks(const Fabric&, const CollectiveRequest&);

/// [0] is the request's own. `options.node_of` is filled in per group.
Result<std::vector<Pattern>> group_patterns(const Fabric&, const CollectiveRequest&, CollectiveOptions);

inline bool takes_no_time(const CollectiveRequest& request) {
  return request.group.size() == 1 || request.size == Bytes(0);
}

/// Sums of equal terms in different order are equal: the catalogue's order then decides.
inline double rounded(Seconds time) { return static_cast<double>(static_cast<float>(time.count())); }

}  // namespace collcast
