// What the parser takes for a value and a person did not mean as one: nothing at all, or the next option.
#pragma once

#include <span>

#include "collcast/base/diagnostic.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

/// Before the words are parsed: '--output=' without a value, which would take the next word as one, an option in the
/// place of a file's name ('--trace --operations'), and the empty word, which has a meaning for no option and would be
/// taken by most for not being given.
Diagnostics missing_values(const CLI::App& root, std::span<const char* const> words);

}  // namespace collcast::cli
