// Text of a stranger -> tree, within limits. yaml-cpp and nlohmann-json end here.
//
// Refused before a parser sees it: more than 16 MiB, bytes that are not UTF-8, NUL and other control
// characters, more punctuation than any real file has (yaml-cpp keeps ~200 bytes per token of a flow
// collection in memory). Refused while parsing: nesting deeper than 64, anchors and aliases (so an "alias
// bomb" cannot be written), tags, duplicate keys, maps and lists as keys, several documents.
#pragma once

#include <string>
#include <string_view>

#include "collcast/base/text.hpp"
#include "scenario/tree.hpp"

namespace collcast::input {

inline constexpr int max_depth = 64;
inline constexpr std::size_t max_punctuation = 400'000;
inline constexpr std::size_t max_map_keys = 4096;

Result<Node> parse_yaml(std::string_view text, const std::string& file);
Result<Node> parse_json(std::string_view text, const std::string& file);

/// Sets the keys of a finished map aside that it has already; too many keys are an error at once.
void check_keys(Node& map, Diagnostics&);

/// Everything about the bytes themselves that keeps them from being parsed. `yaml`: tabs in front of a line too.
Diagnostics check_text(std::string_view text, const std::string& file, bool yaml);

}  // namespace collcast::input
