// The bytes of a YAML or JSON file: size, encoding, punctuation. Nothing here knows what they mean.
#include <fmt/format.h>

#include <algorithm>

#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

/// yaml-cpp reads an indenting tab as part of the key; the standard forbids it.
void check_tabs(std::string_view text, const std::string& file, Diagnostics& errors) {
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t first = text.find_first_not_of(' ', start);
    if (first == std::string_view::npos) return;
    const std::size_t content = text.find_first_not_of(" \t", first);
    if (text[first] == '\t' && content != std::string_view::npos && text[content] != '\n' && text[content] != '\r' &&
        text[content] != '#') {
      errors.push_back({place_at(text, first, file), "a tab indents this line", "YAML is indented with spaces"});
      return;
    }
    const std::size_t newline = text.find('\n', first);
    if (newline == std::string_view::npos) return;
    start = newline + 1;
  }
}

}  // namespace

Diagnostics check_text(std::string_view text, const std::string& file, bool yaml) {
  if (text.size() > max_file_bytes)
    return {{{file},
             fmt::format("{} bytes are too many", text.size()),
             fmt::format("files are read up to {} MiB", max_file_bytes >> 20)}};
  Diagnostics errors = check_encoding(text, file);
  if (!errors.empty()) return errors;
  const auto punctuation = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return std::string_view("[]{},:-?\n").find(c) != std::string_view::npos;
  }));
  if (punctuation > max_punctuation)
    return {{{file},
             fmt::format("the file has {} lines and punctuation marks", punctuation),
             fmt::format("up to {} are read; is this the right file?", max_punctuation)}};
  if (yaml) check_tabs(text, file, errors);
  return errors;
}

}  // namespace collcast::input
