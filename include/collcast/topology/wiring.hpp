// Which devices a group of links joins.
#pragma once

#include <utility>
#include <vector>

#include "collcast/topology/spec.hpp"

namespace collcast {

/// The (from, to) numbers within their groups that a wiring joins, in ascending order of `from` (as listed for pairs).
std::vector<std::pair<int, int>> wired_pairs(const LinkGroup&, int from_count, int to_count);

}  // namespace collcast
