#include "lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "collcast/base/utf8.hpp"
#include "collcast/validation/measured_table.hpp"

namespace collcast {

bool Lines::next() {
  if (too_long_) return false;
  line_.clear();
  ended_ = false;
  bool any = false;
  while (true) {
    if (begin_ == end_) {
      in_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
      begin_ = 0;
      end_ = static_cast<std::size_t>(in_.gcount());
      if (end_ == 0) break;
    }
    any = true;
    const char* from = buffer_.data() + begin_;
    const auto* stop = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
    const std::size_t length = stop == nullptr ? end_ - begin_ : static_cast<std::size_t>(stop - from);
    too_long_ = line_.size() + length > longest_line;
    if (too_long_) break;
    line_.append(from, length);
    begin_ += length;
    if (stop != nullptr) {
      ++begin_;
      ended_ = true;
      break;
    }
  }
  if (!any) return false;
  ++number_;
  if (first_ && line_.starts_with("\xEF\xBB\xBF")) line_.erase(0, 3);
  first_ = false;
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  return true;
}

Diagnostics Lines::wrong() const {
  if (too_long_)
    return {{at(1), fmt::format("a line of more than {} bytes", longest_line), "is this a table or a log?"}};
  const std::size_t bad = first_not_utf8(line_);
  if (bad < line_.size())
    return {{at(static_cast<int>(bad) + 1),
             fmt::format("byte 0x{:02X} is not UTF-8", static_cast<unsigned char>(line_[bad])),
             "save the file as UTF-8 text"}};
  if (const std::size_t nul = line_.find('\0'); nul != std::string::npos)
    return {{at(static_cast<int>(nul) + 1), "a zero byte in a text file", "is this a table or a log?"}};
  return {};
}

std::vector<Word> words(std::string_view line) {
  constexpr std::string_view blanks = " \t\r\v\f";
  std::vector<Word> out;
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
    std::size_t end = line.find_first_of(blanks, at);
    if (end == std::string_view::npos) end = line.size();
    out.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = line.find_first_not_of(blanks, end);
  }
  return out;
}

std::vector<std::string> csv_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".csv" && !entry.is_directory(ignored)) out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

void Complaints::add(Location where, std::string message, std::string hint) {
  constexpr std::size_t most = 100;
  if (kept_.size() >= most) {
    ++more_;
    return;
  }
  kept_.push_back({std::move(where), std::move(message), std::move(hint)});
}

void Complaints::add(const Diagnostics& more) {
  for (const Diagnostic& one : more) add(one.where, one.message, one.hint);
}

Diagnostics Complaints::take() {
  if (more_ > 0)
    kept_.push_back(
        {kept_.back().where,
         too_many() ? fmt::format("more than {} more errors", most_counted) : fmt::format("{} more errors", more_),
         "correct the first ones and try again"});
  return std::move(kept_);
}

bool is_operation(std::string_view word) {
  constexpr std::array<std::string_view, 9> known{"sum", "prod", "max", "min", "avg", "mulsum", "all", "none", "N/A"};
  return std::ranges::find(known, word) != known.end();
}

Diagnostic unknown_operation(Location where, std::string_view word) {
  return {std::move(where), fmt::format("the operation is '{}': such rows count as others do", printable(word)),
          "expected sum, prod, max, min, avg, mulsum or none"};
}

int width_of(std::string_view type) {
  struct Type {
    std::string_view name;
    int width;
  };
  constexpr std::array known{Type{"int8", 1},    Type{"uint8", 1},    Type{"int32", 4},    Type{"uint32", 4},
                             Type{"int64", 8},   Type{"uint64", 8},   Type{"half", 2},     Type{"float", 4},
                             Type{"double", 8},  Type{"bfloat16", 2}, Type{"fp8", 1},      Type{"f8e4m3", 1},
                             Type{"f8e5m2", 1},  Type{"char", 1},     Type{"fp8_e4m3", 1}, Type{"fp8_e5m2", 1},
                             Type{"float16", 2}, Type{"float32", 4},  Type{"float64", 8},  Type{"int", 4},
                             Type{"long", 8},    Type{"uint", 4},     Type{"ulong", 8},    Type{"byte", 1}};
  const auto found = std::ranges::find(known, type, &Type::name);
  return found == known.end() ? 0 : found->width;
}

bool is_type(std::string_view word) { return width_of(word) > 0; }

Diagnostic unknown_type(Location where, std::string_view word, const char* then) {
  return {std::move(where), fmt::format("the type is '{}': {}", printable(word), then),
          "expected a type of nccl-tests: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, "
          "f8e4m3 or f8e5m2"};
}

Diagnostic untimed(Location where, std::string_view time) {
  return {std::move(where), fmt::format("the time is '{}': this row is left out", printable(time)),
          // "inf", "nan" and "null" have no digits.
          time.find_first_of("0123456789") == std::string_view::npos
              ? "no time was measured: the test or what wrote this went wrong, or has none"
              : "too short for the test's digits, or the test has none; more iterations per row (-n) help"};
}

Diagnostic of_cpu(Location where, std::size_t rows) {
  return {std::move(where),
          fmt::format("{} row{} of CPU time (nccl-tests -C 1), which is what the host takes for its calls and not how "
                      "long the collective takes: left out",
                      rows, rows == 1 ? "" : "s"),
          "expected a log of nccl-tests without -C 1"};
}

Diagnostic unlike_gpus(Location where, std::string_view rank, std::string_view gpu, std::string_view first) {
  return {std::move(where),
          fmt::format("rank {} is on '{}', the first on '{}': the ranks have unlike GPUs", printable(rank),
                      printable(gpu), printable(first)),
          "a forecast is of one kind of GPU: the first counts"};
}

void leave_out(Readings& from, Diagnostic row) {
  if (from.untimed.size() < most_left_out)
    from.untimed.push_back(std::move(row));
  else
    ++from.more_untimed[row.where.file];
}

void WrongResults::add(Readings& to, Location where, std::string_view how_many, bool in_place) {
  if (++count_ > most_said_) return;
  to.wrong.push_back(
      {std::move(where),
       fmt::format("{}results {} were wrong: this row is left out", how_many, in_place ? "in place" : "out of place"),
       "the run itself is broken"});
  to.warnings.push_back(to.wrong.back());
}

void WrongResults::finish(Readings& to, const std::string& file) const {
  if (count_ <= most_said_) return;
  to.wrong.push_back({{file}, fmt::format("{} more rows with wrong results are left out", count_ - most_said_), ""});
  to.warnings.push_back(to.wrong.back());
}

void PassedOver::add(std::string_view name) {
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
  if (names_.size() < most_kept_)
    names_.emplace_back(name);
  else
    more_ = true;
}
void PassedOver::finish(Readings& to, const Location& where, const char* what) const {
  if (names_.empty()) return;
  const std::size_t count = names_.size(), named = std::min(count, most_named_);
  std::string list;
  for (std::size_t i = 0; i < named; ++i)
    list += fmt::format("{}'{}'",
                        i == 0                             ? ""
                        : i + 1 == named && named == count ? " and "
                                                           : ", ",
                        printable(names_[i]));
  if (named < count) list += more_ ? std::string(" and others") : fmt::format(" and {} more", count - named);
  to.warnings.push_back(
      {where,
       fmt::format("{} {}{} {} passed over: {}",
                   count == 1 ? std::string("one") : fmt::format("{}{}", more_ ? "more than " : "", count), what,
                   count == 1 ? "" : "s", count == 1 ? "is" : "are", list),
       "check the spelling: no forecast has a use for them"});
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (out.size() >= longest) return out + "...";
    const std::size_t length = character_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool terminal_control =
        byte < 0x20 || byte == 0x7F || (byte == 0xC2 && length == 2 && static_cast<unsigned char>(text[at + 1]) < 0xA0);
    if (length == 0 || terminal_control) {
      out += fmt::format("\\x{:02X}", byte);
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace collcast
