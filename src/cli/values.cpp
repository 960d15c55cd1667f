#include "cli/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cli/session.hpp"
#include "collcast/base/numbers.hpp"
#include "collcast/base/units.hpp"
#include "collcast/base/words.hpp"

namespace collcast::cli {

namespace {

constexpr std::size_t most_sizes = 10'000;
constexpr int most_ranks = 1 << 22;

bool fail(Diagnostics& errors, std::string message, std::string hint) {
  errors.push_back({command_line, std::move(message), std::move(hint)});
  return false;
}

/// What nccl-tests calls KiB, MiB and GiB, as they are called here; nothing of other sizes.
std::string as_of_nccl_tests(std::string_view size) {
  const std::size_t digits = std::min(size.find_first_not_of("0123456789."), size.size());
  if (digits == 0 || digits + 1 != size.size()) return "";
  for (const auto& [letters, unit] : {std::pair{"kK", "KiB"}, std::pair{"mM", "MiB"}, std::pair{"gG", "GiB"}})
    if (std::string_view(letters).find(size.back()) != std::string_view::npos)
      return fmt::format("; nccl-tests' {} is {}{} here", size, size.substr(0, digits), unit);
  return "";
}

const char* const sweep_hint =
    "expected a size (8, 256KiB, 1GiB) or a sweep from:to:xFACTOR or from:to:+STEP, such as 8:16GiB:x2";

bool append_sweep(std::string_view text, const std::vector<std::string_view>& parts, std::vector<Bytes>& sizes,
                  Diagnostics& errors) {
  const auto from = parse_bytes_or_number(parts[0]), to = parse_bytes_or_number(parts[1]);
  const std::string_view step = parts[2];
  if (!from.ok || !to.ok || step.size() < 2 || (step[0] != 'x' && step[0] != '+')) {
    const std::string first = as_of_nccl_tests(parts[0]);
    return fail(errors, fmt::format("--size: '{}' is not a sweep of sizes", text),
                sweep_hint + (first.empty() ? as_of_nccl_tests(parts[1]) : first));
  }
  if (from.value > to.value)
    return fail(errors, fmt::format("--size: the sweep '{}' starts above its end", text), sweep_hint);
  // One of the two stays neutral: the next size is size * factor + plus.
  std::int64_t factor = 1, plus = 0;
  if (step[0] == 'x') factor = to_number<int>(step.substr(1)).value_or(0);
  if (step[0] == '+') plus = parse_bytes_or_number(step.substr(1)).value.value();
  const bool grows = plus > 0 || (factor > 1 && from.value.value() > 0);
  if (!grows)
    return fail(errors, fmt::format("--size: the sweep '{}' never gets on", text),
                "expected a factor of 2 or more and a start above 0 (8:16GiB:x2), or a step above 0 (8:64:+8)" +
                    as_of_nccl_tests(step.substr(1)));
  for (std::int64_t size = from.value.value(); size <= to.value.value(); size = size * factor + plus) {
    if (sizes.size() == most_sizes)
      return fail(errors, fmt::format("--size: '{}' has more than {} sizes", text, most_sizes),
                  "expected a larger step");
    sizes.emplace_back(size);
    // Sizes end at 2^62, so a sum of two fits; a product may not.
    if (size > std::numeric_limits<std::int64_t>::max() / factor) break;
  }
  return true;
}

bool append_ranks(std::string_view text, std::vector<Rank>& ranks, Diagnostics& errors) {
  const std::string hint = "expected ranks (0,1,8,9), a range (0-7) or a range with a stride (0-56:8)";
  const auto range_and_stride = split(text, ':');
  const auto range = split(range_and_stride[0], '-');
  const auto first = to_number<int>(range[0]);
  const auto last = range.size() == 2 ? to_number<int>(range[1]) : first;
  const auto stride = range_and_stride.size() == 2 ? to_number<int>(range_and_stride[1]) : std::optional<int>(1);
  const bool shape =
      range.size() <= 2 && range_and_stride.size() <= 2 && (range.size() == 2 || range_and_stride.size() == 1);
  if (!shape || !first || !last || !stride || *first < 0 || *stride < 1)
    return fail(errors, fmt::format("--group: '{}' names no ranks", text), hint);
  if (*last < *first) return fail(errors, fmt::format("--group: the range '{}' runs backwards", text), hint);
  for (std::int64_t rank = *first; rank <= *last; rank += *stride) {
    if (ranks.size() == static_cast<std::size_t>(most_ranks))
      return fail(errors, fmt::format("--group: '{}' has more than {} ranks", text, most_ranks), hint);
    ranks.emplace_back(static_cast<std::uint32_t>(rank));
  }
  return true;
}

}  // namespace

std::vector<Bytes> parse_sizes(std::string_view text, Diagnostics& errors) {
  std::vector<Bytes> sizes;
  for (const std::string_view item : split(text, ',')) {
    const auto parts = split(item, ':');
    if (parts.size() == 3) {
      if (!append_sweep(item, parts, sizes, errors)) return {};
      continue;
    }
    const auto size = parse_bytes_or_number(item);
    if (!size.ok || parts.size() != 1) {
      // After the ';' of what is expected: what is wrong with this one.
      const std::size_t why = size.expected.find(';');
      fail(errors, fmt::format("--size: '{}' is not a size", item),
           sweep_hint + (why == std::string::npos ? as_of_nccl_tests(item) : size.expected.substr(why)));
      return {};
    }
    sizes.push_back(size.value);
  }
  return sizes;
}

std::optional<Group> parse_group(std::string_view text, Diagnostics& errors) {
  std::vector<Rank> ranks;
  for (const std::string_view item : split(text, ',')) {
    if (!append_ranks(item, ranks, errors)) return std::nullopt;
  }
  std::vector<Rank> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    fail(errors, fmt::format("--group: '{}' names rank {} twice", text, twice->value()), "expected each rank once");
    return std::nullopt;
  }
  return Group::listed(std::move(ranks));
}

std::optional<GroupsOf> parse_groups_of(std::string_view text, Diagnostics& errors) {
  const auto parts = split(text, ':');
  const auto size = to_number<int>(parts[0]);
  const auto stride = parts.size() == 2 ? to_number<int>(parts[1]) : std::optional<int>(1);
  if (parts.size() > 2 || !size || !stride || *size < 1 || *stride < 1 || *size > most_ranks || *stride > most_ranks) {
    fail(errors, fmt::format("--groups-of: '{}' is no group size", text),
         "expected SIZE or SIZE:STRIDE, such as 8 (ranks 0-7, 8-15 ...) or 8:64 (ranks 0, 64 ... 448; 1, 65 ... 449; "
         "...)");
    return std::nullopt;
  }
  return GroupsOf{*size, *stride};
}

std::vector<Group> cut_into_groups(GroupsOf cut, int ranks, Diagnostics& errors) {
  const std::int64_t block = std::int64_t{cut.size} * cut.stride;
  if (ranks % block != 0) {
    fail(errors,
         fmt::format("--groups-of: {} ranks cannot be cut into groups of {} with stride {}", ranks, cut.size,
                     cut.stride),
         fmt::format("expected ranks in multiples of {}", block));
    return {};
  }
  std::vector<Group> groups;
  for (int first = 0; first < ranks; first += static_cast<int>(block)) {
    for (int offset = 0; offset < cut.stride; ++offset)
      groups.push_back(Group::strided(Rank(static_cast<std::uint32_t>(first + offset)), cut.stride, cut.size));
  }
  return groups;
}

Location typed(std::string_view option, std::string_view value) {
  return {fmt::format("{} {}", option, value), 1, static_cast<int>(option.size()) + 2};
}

std::optional<int> parse_count(std::string_view option, std::string_view text, int least, Diagnostics& errors,
                               int most) {
  const auto value = to_number<int>(text);
  if (value && *value >= least && *value <= most) return value;
  fail(errors, fmt::format("{}: '{}' is out of range or not a whole number", option, text),
       fmt::format("expected a whole number from {} to {}", least, most));
  return std::nullopt;
}

int parse_auto_or_count(std::string_view option, std::string_view text, int most, Diagnostics& errors) {
  if (text == "auto") return 0;
  Diagnostics wrong;
  const int count = parse_count(option, text, 1, wrong, most).value_or(0);
  for (Diagnostic& error : wrong) {
    error.hint += ", or auto";
    errors.push_back(std::move(error));
  }
  return count;
}

std::optional<std::size_t> parse_word(std::string_view option, std::string_view word,
                                      const std::vector<std::string>& known, Diagnostics& errors) {
  const auto found = std::find(known.begin(), known.end(), word);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  fail(errors, fmt::format("{}: unknown word '{}'", option, word), expected_one_of(word, known));
  return std::nullopt;
}

}  // namespace collcast::cli
