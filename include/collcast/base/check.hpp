// Checks for our own mistakes. A broken invariant stops the program and names itself, in every build.
#pragma once

namespace collcast {

[[noreturn]] void broken_invariant(const char* what, const char* file, int line);

/// Stops the program unless `holds`. For invariants of ours; a user's mistake is a Diagnostic. The place is
/// the caller's (std::source_location is missing from Clang 14 with libstdc++ 12).
constexpr void check(bool holds, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!holds) [[unlikely]]
    broken_invariant(what, file, line);
}

}  // namespace collcast
