// How many letters two words are apart.
#pragma once

#include <cstddef>
#include <string_view>

namespace collcast {

/// Levenshtein distance: letters put in, left out or changed. Quadratic.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace collcast
