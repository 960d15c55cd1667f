// Which tables of a machine a fit leaves out, so that it is seen where tables lie that a fit has not seen.
//
// Each alone, up to 40. Of more, several together: each setting's tables in turn, in as many turns as its share of 40,
// and in two at the least where it has two tables, so that no setting is ever left out whole but one of a single table.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace collcast {

/// What was set for a measurement: names and values.
using Variables = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::size_t most_fits_of_unseen = 40;

/// Of tables with these settings the indices that go together; every table once.
std::vector<std::vector<std::size_t>> left_out_together(const std::vector<Variables>& settings);

}  // namespace collcast
