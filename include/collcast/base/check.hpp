// Checks for our own mistakes. A broken invariant stops the program and names itself, in every build.
#pragma once

#include <source_location>

namespace collcast {

[[noreturn]] void broken_invariant(const char* what, std::source_location where);

/// Stops the program unless `holds`. For invariants of ours; a user's mistake is a Diagnostic.
constexpr void check(bool holds, const char* what,
                     std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    broken_invariant(what, where);
}

}  // namespace collcast
