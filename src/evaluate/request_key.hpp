// Requests told apart: all that a time depends on, as numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "collcast/collective/collective.hpp"

namespace collcast {

using RequestKey = std::vector<std::int64_t>;

/// Of all but the size.
RequestKey key_of_groups(const CollectiveRequest&);

}  // namespace collcast
