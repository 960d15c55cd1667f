// Who waits for whom once nothing is left to happen: ways from one that waits to the next, for error messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace collcast::engine {

/// Of many that wait, so many are named.
inline constexpr int most_named = 4;

/// From `first` on along `next` (`none`: for nobody) until one comes again: those that wait for each other in a circle.
/// Empty where the way ends.
template <class Next>
std::vector<std::uint32_t> circle_from(std::uint32_t first, std::uint32_t none, Next next) {
  std::vector<std::uint32_t> way;
  for (std::uint32_t at = first; at != none; at = next(at)) {
    const auto again = std::find(way.begin(), way.end(), at);
    if (again != way.end()) return {again, way.end()};
    way.push_back(at);
    constexpr std::size_t longest = 4096;  // of a circle that anybody would read
    if (way.size() > longest) break;
  }
  return {};
}

}  // namespace collcast::engine
