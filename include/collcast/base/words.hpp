// Words in a line of text: without the blanks around them, apart at a separator, in small letters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collcast {

/// What C's isspace calls white space, in its own locale.
inline constexpr std::string_view white_space = " \t\n\v\f\r";

/// Without `blanks` at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");
/// What is between the separators, empty parts too: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);
/// A-Z as a-z; bytes beyond ASCII stay as they are, whatever the locale.
std::string lower(std::string_view text);

}  // namespace collcast
