// Size, time and algbw of a row say one thing twice: nccl-tests prints algbw = size / time (its PERFORMANCE.md).
#pragma once

#include <optional>
#include <string_view>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"

namespace collcast {

/// No version's convention is as far off: before 2.0 a gathering test left out a rank's own share, at most half.
inline constexpr double most_rate_factor = 3;

/// The reason to leave a row out whose algbw is more than `most_rate_factor` from its size over its time, whatever was
/// lost by rounding; nothing where they agree, or where one is no plain number. `unit`: "us" or "ms".
std::optional<Diagnostic> rate_contradiction(Location where, Bytes size, std::string_view time, std::string_view unit,
                                             std::string_view algbw);

}  // namespace collcast
