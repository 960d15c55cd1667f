#include "line_prefix.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "lines.hpp"
#include "values.hpp"

namespace collcast {

namespace {

/// "[1,0]<stdout>:" of mpirun --tag-output, "0: " of srun --label.
std::size_t launcher_prefix(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return 0;
  const std::string_view before = line.substr(0, colon);
  const bool tagged = before.starts_with('[') && before.find("<std") != std::string_view::npos;
  const std::size_t first = before.find_first_not_of(' ');
  const bool labelled = first != std::string_view::npos && all_digits(before.substr(first));
  return tagged || labelled ? colon + 1 : 0;
}

/// "2026-11-25T07:00:00.25Z " of kubectl logs --timestamps and its kin.
std::size_t time_stamp(std::string_view line) {
  constexpr std::string_view form = "dddd-dd-ddTdd:dd:dd";
  if (line.size() <= form.size()) return 0;
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'd' ? !all_digits(line.substr(i, 1)) : line[i] != form[i]) return 0;
  const std::size_t blank = line.find(' ', form.size());
  return blank == std::string_view::npos ? line.size() : blank + 1;
}

/// What is before the first line of a test; nothing where the line is none.
std::string_view before_a_test(std::string_view line) {
  constexpr std::array<std::string_view, 3> beginnings{"# nccl-tests version ", "# nThread", "# Using devices"};
  for (const std::string_view one : beginnings)
    if (const std::size_t at = line.find(one); at != std::string_view::npos) return line.substr(0, at);
  return {};
}

}  // namespace

std::size_t LinePrefix::length(std::string_view line) {
  const std::size_t stamp = time_stamp(line);
  const std::size_t known = stamp + launcher_prefix(line.substr(stamp));
  line.remove_prefix(known);
  std::string_view before = before_a_test(line);
  before = before.substr(0, before.find_last_not_of(" \t") + 1);
  if (!before.empty() && std::ispunct(static_cast<unsigned char>(before.back())) != 0) {
    end_ = before.back();
    ends_ = std::ranges::count(before, end_);
    words_ = std::ssize(words(before));
  }
  if (end_ == 0) return known;
  std::size_t at = 0;
  for (std::ptrdiff_t i = 0; i < ends_; ++i) {
    at = line.find(end_, at);
    if (at == std::string_view::npos) return known;
    ++at;
  }
  return std::ssize(words(line.substr(0, at))) == words_ ? known + at : known;
}

}  // namespace collcast
