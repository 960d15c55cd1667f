#include "runner/silence.hpp"

#include <fmt/format.h>

namespace collcast::runner {

namespace {

/// "1, 2, 4 to 9": three in a row and more by their ends.
std::string ranges_text(const std::vector<std::size_t>& numbers) {
  constexpr std::size_t worth_it = 3;
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t end = at + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - at >= worth_it) {
      parts.push_back(fmt::format("{} to {}", numbers[at], numbers[end - 1]));
      at = end;
    } else {
      parts.push_back(fmt::format("{}", numbers[at++]));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string silence_text(const std::vector<std::size_t>& silent, std::size_t ranks, std::size_t processors) {
  std::string out = fmt::format("no word from rank{} {}", silent.size() > 1 ? "s" : "", ranges_text(silent));
  if (ranks > processors && processors > 0)
    out += fmt::format("; {} ranks take turns on {} processor{}: fewer --ranks, or a longer --timeout", ranks,
                       processors, processors > 1 ? "s" : "");
  return out;
}

}  // namespace collcast::runner
