// What the document and the plot of `collcast validate` have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collcast/report/validate_document.hpp"

namespace collcast {

/// Its source does not call it broken.
bool is_healthy(const ScoredTable&);

/// Of its tables, in the order of collective_names().
std::vector<std::string> collectives(const ValidateReport&);

/// "below 64 KiB".
std::string_view band_text(Band);

/// By what their sources say of them.
enum class SetUps { not_broken, sound, broken };

/// Median, mean, 90th percentile and counts by collective, nodes and band; of those that are called sound by nodes
/// only.
Table summary_table(const ValidateReport&, SetUps);

}  // namespace collcast
