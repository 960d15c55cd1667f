#include "collcast/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "collcast/base/utf8.hpp"

namespace collcast {

Location place_at(std::string_view text, std::size_t offset, const std::string& file) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  return {file, static_cast<int>(line), static_cast<int>(column)};
}

LineStarts::LineStarts(std::string_view text) : size_(text.size()), begins_{0} {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    begins_.push_back(at + 1);
}

Location LineStarts::place_at(std::size_t offset, const std::string& file) const {
  offset = std::min(offset, size_);
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), offset);
  return {file, static_cast<int>(next - begins_.begin()), static_cast<int>(offset - *std::prev(next)) + 1};
}

namespace {

bool is_control(unsigned byte) { return (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F; }

}  // namespace

Diagnostics check_encoding(std::string_view text, const std::string& file) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return {{{file, 1, 1},
             "the file is UTF-16 text, as '>' of Windows PowerShell writes it",
             "expected UTF-8: iconv -f UTF-16 -t UTF-8, or 'Out-File -Encoding utf8' instead of '>'"}};
  if (text.starts_with("\x1F\x8B"))
    return {{{file, 1, 1}, "the file is compressed (gzip)", "expected text: gzip -dc gives it back"}};
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    if (length == 0)
      return {{place_at(text, i, file), fmt::format("byte 0x{:02X} at offset {} is not UTF-8", byte_at(text, i), i),
               "save the file as UTF-8 text"}};
    if (is_control(byte_at(text, i)))
      return {{place_at(text, i, file),
               fmt::format("control character 0x{:02X} at offset {} in a text file", byte_at(text, i), i),
               "is this a text file? Remove the character"}};
    i += length;
  }
  return {};
}

namespace {

/// The file beside one that is not there which has nearly its name; empty: none.
std::string nearest_file(const std::string& path) {
  const std::filesystem::path wanted(path);
  const std::filesystem::path folder = wanted.parent_path();
  constexpr int most = 10'000;
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::directory_iterator each(folder.empty() ? "." : folder, error), end;
  for (; !error && each != end && files.size() < most; each.increment(error)) files.push_back(each->path().filename());
  std::sort(files.begin(), files.end());
  // Suffixes, which most files there share, make no names alike.
  std::vector<std::string> stems;
  for (const std::filesystem::path& file : files) stems.push_back(file.stem().string());
  const auto near = nearest_word(wanted.stem().string(), stems);
  if (!near) return {};
  const auto named = [&](const std::filesystem::path& file) { return file.stem() == *near; };
  const std::filesystem::path same = *near + wanted.extension().string();
  const bool is_there = std::binary_search(files.begin(), files.end(), same);
  return (is_there ? same : *std::find_if(files.begin(), files.end(), named)).string();
}

}  // namespace

Result<std::string> read_file(const std::string& path, const Location& asked_by) {
  const auto refused = [&](std::string message, std::string hint) {
    return Diagnostic{asked_by, std::move(message), std::move(hint), true};
  };
  const std::string name = shown(path);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    const std::string near = nearest_file(path);
    const bool typed = asked_by.line == 0 || asked_by.file.starts_with("--");
    return refused(fmt::format("file '{}' does not exist", name),
                   fmt::format("{}; it is relative to the {}",
                               near.empty() ? "check the path"
                                            : fmt::format("did you mean '{}' there? check the path", shown(near)),
                               typed ? "working directory" : "file that names it"));
  }
  if (status.type() == std::filesystem::file_type::directory)
    return refused(fmt::format("'{}' is a directory", name), "name a file in it");
  if (status.type() == std::filesystem::file_type::regular) {
    if (const auto size = std::filesystem::file_size(path, error); !error && size > max_file_bytes)
      return refused(fmt::format("file '{}' has {} bytes, too many", name, size),
                     fmt::format("files are read up to {} MiB", max_file_bytes >> 20));
  }
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file)
    return refused(fmt::format("file '{}' cannot be opened: {}", name, std::generic_category().message(errno)),
                   "check that you may read it");
  std::string content;
  std::array<char, 65536> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    content.append(buffer.data(), got);
    if (content.size() > max_file_bytes)
      return refused(fmt::format("file '{}' is too large", name),
                     fmt::format("files are read up to {} MiB", max_file_bytes >> 20));
  }
  if (std::ferror(file.get()) != 0)
    return refused(fmt::format("file '{}' cannot be read: {}", name, std::generic_category().message(errno)), "");
  return content;
}

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (out.size() >= longest) return out + "...";
    const std::size_t length = character_length(text, i);
    const unsigned byte = byte_at(text, i);
    // U+0080 to U+009F are control characters too: terminals act on them.
    if (length == 0 || byte < 0x20 || byte == 0x7F || (byte == 0xC2 && byte_at(text, i + 1) < 0xA0)) {
      out += fmt::format("\\x{:02X}", byte);
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

}  // namespace collcast
