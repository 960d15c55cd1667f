// Which bytes are text.
#pragma once

#include <cstddef>
#include <string_view>

namespace collcast {

inline unsigned byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

/// Length of the UTF-8 character at `at` (RFC 3629: no overlong forms, no surrogates, up to U+10FFFF); 0: none.
std::size_t character_length(std::string_view text, std::size_t at);

/// Offset of the first byte that is not UTF-8, or the length of the text.
std::size_t first_not_utf8(std::string_view text);

}  // namespace collcast
