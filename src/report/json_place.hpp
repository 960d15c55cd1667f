// Places in the text of a JSON document, for what is wrong with it. Only looked for once something is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/text.hpp"

namespace collcast {

/// Of the value that keys and indices lead to, in text that is known to be JSON; of the last value on the way that is
/// there.
Location place_of(std::string_view text, const std::vector<std::string>& path, const std::string& file);

/// Where brackets are nested deeper than any document of ours.
std::optional<std::size_t> too_deep(std::string_view text, int most);

}  // namespace collcast
