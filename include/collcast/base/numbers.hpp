// Numbers in text, whatever the locale.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace collcast {

/// The number that a text is from its first character to its last ("12", "-0.5", "1e3", "inf"); nothing of other texts
/// and of numbers that T does not hold.
template <class T>
std::optional<T> to_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace collcast
