#include "values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "collcast/base/numbers.hpp"

namespace collcast {

std::optional<Bytes> read_size(std::string_view text) {
  const auto value = to_number<std::int64_t>(text);
  if (!value || *value < 0 || *value > (std::int64_t{1} << 62)) return std::nullopt;
  return Bytes(*value);
}

namespace {

/// A nanosecond, below which no call of a collective is and no test prints: what is there is none or a damaged line.
constexpr double least_microseconds = 1e-3;

}  // namespace

std::optional<Seconds> read_microseconds(std::string_view text) {
  const auto value = to_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < least_microseconds || *value > 1e12) return std::nullopt;
  return Seconds(*value * 1e-6);
}

bool is_no_time(std::string_view text) {
  const auto value = to_number<double>(text);
  return value && ((*value >= 0 && *value < least_microseconds) || !std::isfinite(*value));
}

bool all_digits(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<int> read_whole(std::string_view text) {
  const auto value = to_number<int>(text);
  if (!value || *value > 1'000'000'000 || *value < -1'000'000'000) return std::nullopt;
  return value;
}

std::optional<PrintedNumber> read_printed(std::string_view text) {
  const auto value = to_number<double>(text);
  if (!value || !(*value >= 0) || !std::isfinite(*value) || text.find_first_of("eE") != std::string_view::npos)
    return std::nullopt;
  const std::size_t point = text.find('.');
  const auto digits = point == std::string_view::npos ? 0 : static_cast<int>(text.size() - point - 1);
  return PrintedNumber{*value, 0.5 * std::pow(10.0, -digits)};
}

bool is_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return (error == std::errc{} || error == std::errc::result_out_of_range) && stop == end && !text.empty();
}

std::string_view test_named_in(std::string_view text) {
  const std::size_t end = text.find("_perf");
  if (end == std::string_view::npos) return {};
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  std::size_t begin = end;
  while (begin > 0 && is_part(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

std::string nccl_version_text(int code) {
  // Five digits since 2.9 (major, two of minor, two of patch), four before.
  if (code >= 10'000) return fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
  return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
}

}  // namespace collcast
