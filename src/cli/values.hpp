// Values of the command line: sizes and sweeps, groups of ranks, counts, words. What is wrong is appended to
// `errors`, so that one run shows all of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/schedule/group.hpp"

namespace collcast::cli {

/// "8", "256KiB", "8,64KiB", "8:16GiB:x2" (times), "8:64:+8" (plus); bare numbers are bytes.
std::vector<Bytes> parse_sizes(std::string_view text, Diagnostics& errors);

/// "0,1,8,9", "0-7", "0-56:8" (every eighth), and lists of these.
std::optional<Group> parse_group(std::string_view text, Diagnostics& errors);

/// --groups-of: "8" cuts the ranks into groups of 8 consecutive ones, "8:64" into groups of 8 that are 64 apart.
struct GroupsOf {
  int size = 1;
  int stride = 1;
};
std::optional<GroupsOf> parse_groups_of(std::string_view text, Diagnostics& errors);
/// Needs ranks in whole multiples of size * stride.
std::vector<Group> cut_into_groups(GroupsOf, int ranks, Diagnostics& errors);

/// Where the value of an option stands, in what was typed: "--nodes 3", column 9.
Location typed(std::string_view option, std::string_view value);

/// A whole number from `least` to `most`. `option` names it in the error.
std::optional<int> parse_count(std::string_view option, std::string_view text, int least, Diagnostics& errors,
                               int most = 1'000'000'000);
/// The same, or `auto`, which is 0.
int parse_auto_or_count(std::string_view option, std::string_view text, int most, Diagnostics& errors);

/// The index of `word` in `known`; an error with the nearest one otherwise.
std::optional<std::size_t> parse_word(std::string_view option, std::string_view word,
                                      const std::vector<std::string>& known, Diagnostics& errors);

}  // namespace collcast::cli
