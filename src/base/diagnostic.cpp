#include "collcast/base/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collcast/base/edit_distance.hpp"

namespace collcast {

/// Levenshtein's recurrence, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

void append(Diagnostics& errors, const Diagnostics& more) { errors.insert(errors.end(), more.begin(), more.end()); }

std::string to_text(const Location& where) {
  return where.line > 0 ? fmt::format("{}:{}:{}", where.file, where.line, where.column) : where.file;
}

std::string messages(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) out += (out.empty() ? "" : "; ") + d.message;
  return out;
}

std::string to_text(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) {
    out += fmt::format("{}: error: {}\n", to_text(d.where), d.message);
    if (!d.hint.empty()) out += fmt::format("    hint: {}\n", d.hint);
  }
  return out;
}

std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& known) {
  // Long words are no typos of anything, and the distance is quadratic.
  if (word.size() > 64) return std::nullopt;
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = &candidate;
      best_distance = distance;
    }
  }
  // Words are also cut short: "nvsw".
  constexpr std::size_t shortest = 3;
  if (best == nullptr && word.size() >= shortest) {
    const auto longer = [&](const std::string& candidate) { return candidate.starts_with(word); };
    const auto first = std::ranges::find_if(known, longer);
    if (first != known.end() && std::none_of(first + 1, known.end(), longer)) return *first;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string expected_one_of(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t most_listed = 20;
  const auto near = nearest_word(word, known);
  const std::string question = near ? fmt::format("did you mean '{}'? ", *near) : std::string();
  if (known.size() <= most_listed) return question + fmt::format("expected one of: {}", fmt::join(known, ", "));
  if (near) return question + fmt::format("expected one of {} known words", known.size());
  return fmt::format("expected one of: {}, ... ({} in all)",
                     fmt::join(known.begin(), known.begin() + most_listed, ", "), known.size());
}

}  // namespace collcast
