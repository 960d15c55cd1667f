// Runs of elements in one flat vector, addressed by index, reused by size class (powers of two).
//
// The engine's state of what is under way lives here: it grows to the largest amount that is ever under
// way at once, and from then on nothing is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "collcast/base/check.hpp"

namespace collcast::engine {

template <class T>
class BlockPool {
 public:
  /// `count` elements in a row, with values left over from whoever had them before.
  std::uint32_t allocate(std::size_t count) {
    if (count == 0) return 0;
    std::vector<std::uint32_t>& free = free_[size_class(count)];
    if (!free.empty()) {
      const std::uint32_t begin = free.back();
      free.pop_back();
      return begin;
    }
    const std::size_t begin = items_.size();
    const std::size_t end = begin + (std::size_t{1} << size_class(count));
    check(end <= std::numeric_limits<std::uint32_t>::max(), "what is under way at once is numbered in 32 bits");
    items_.resize(end);
    return static_cast<std::uint32_t>(begin);
  }
  void release(std::uint32_t begin, std::size_t count) {
    if (count > 0) free_[size_class(count)].push_back(begin);
  }

  /// Makes of a block with room for `room`, of which the first `used` count, one with twice the room.
  void grow(std::uint32_t& begin, std::uint32_t& room, std::uint32_t used) {
    const std::uint32_t more = std::max<std::uint32_t>(1, 2 * room);
    const std::uint32_t fresh = allocate(more);
    std::ranges::copy(block(begin, used), block(fresh, more).begin());
    release(begin, room);
    begin = fresh;
    room = more;
  }

  T& operator[](std::uint32_t index) { return items_[index]; }
  const T& operator[](std::uint32_t index) const { return items_[index]; }
  std::span<T> block(std::uint32_t begin, std::size_t count) { return std::span<T>(items_).subspan(begin, count); }
  std::span<const T> block(std::uint32_t begin, std::size_t count) const {
    return std::span<const T>(items_).subspan(begin, count);
  }

 private:
  static std::size_t size_class(std::size_t count) { return static_cast<std::size_t>(std::bit_width(count - 1)); }

  std::vector<T> items_;
  std::array<std::vector<std::uint32_t>, 33> free_;
};

}  // namespace collcast::engine
