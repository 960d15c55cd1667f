// What the parser takes for a value and a person did not mean as one: nothing at all, or the next option.
#pragma once

#include <span>

#include "collcast/base/diagnostic.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

/// Before the words are parsed: '--output=' without a value, which would take the next word as one, and an option in
/// the place of a file's name ('--trace --operations').
Diagnostics missing_values(const CLI::App& root, std::span<const char* const> words);

}  // namespace collcast::cli
