// What a program takes by operator new: linking counted_memory.cpp replaces it by one that counts.
#pragma once

#include <cstddef>

namespace collcast::test {

struct CountedMemory {
  std::size_t allocations = 0;
  std::size_t bytes = 0;       ///< taken and not given back
  std::size_t most_bytes = 0;  ///< since it was last counted anew
};
CountedMemory counted_memory();
/// Returns the bytes that are taken now.
std::size_t count_most_bytes_from_now();

}  // namespace collcast::test
