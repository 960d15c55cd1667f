// What a row says twice. nccl-tests prints algbw = size / time (its PERFORMANCE.md), and the size beside a count of
// elements of a type.
#pragma once

#include <optional>
#include <string_view>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "rank_count.hpp"

namespace collcast {

/// No version's convention is as far off: before 2.0 a gathering test left out a rank's own share, at most half.
inline constexpr double most_rate_factor = 3;

/// The reason to leave a row out whose algbw is more than `most_rate_factor` from its size over its time, whatever was
/// lost by rounding; nothing where they agree, or where one is no plain number. `unit`: "us" or "ms".
std::optional<Diagnostic> rate_contradiction(Location where, Bytes size, std::string_view time, std::string_view unit,
                                             std::string_view algbw);

/// The reason to leave a row out whose size is not that of so many elements of the type, once or for each of `ranks`
/// (0: not known; then for any number of them), or of the number that its rates are of; a size that leaves part of an
/// element is rounded down. Nothing where they agree, or where the count is 0 or no number.
std::optional<Diagnostic> count_contradiction(Location where, Bytes size, std::string_view count, std::string_view type,
                                              int ranks, const std::optional<PrintedRates>& rates);

}  // namespace collcast
