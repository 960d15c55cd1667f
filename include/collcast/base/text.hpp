// Text of strangers, before any parser sees it: files and the bytes in them, and places in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

inline constexpr std::size_t max_file_bytes = std::size_t{16} << 20;

/// Line and column (in bytes, both from 1) of an offset.
Location place_at(std::string_view text, std::size_t offset, const std::string& file);

/// The same for many places of one text, each found without going through what is before it.
class LineStarts {
 public:
  explicit LineStarts(std::string_view text);
  Location place_at(std::size_t offset, const std::string& file) const;

 private:
  std::size_t size_;
  std::vector<std::size_t> begins_;  ///< offsets of the lines' first bytes
};

/// The first byte that is no text (no UTF-8, NUL, another control character), if there is one.
Diagnostics check_encoding(std::string_view text, const std::string& file);

/// The content of a file, or why it cannot be had: missing, a directory, no permission, too large.
Result<std::string> read_file(const std::string& path, const Location& asked_by);

/// For messages: cut to a line's length, control characters spelled out.
std::string shown(std::string_view text);

}  // namespace collcast
