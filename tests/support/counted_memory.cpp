#include "support/counted_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocations{0}, bytes{0}, most_bytes{0};

/// Before every block, so that what is given back can be subtracted.
constexpr std::size_t header = alignof(std::max_align_t);

void* take(std::size_t size) {
  void* const memory = std::malloc(size + header);
  if (memory == nullptr) return nullptr;
  *static_cast<std::size_t*>(memory) = size;
  ++allocations;
  const std::size_t now = bytes += size;
  if (now > most_bytes) most_bytes = now;
  return static_cast<char*>(memory) + header;
}

void give_back(void* memory) {
  if (memory == nullptr) return;
  void* const block = static_cast<char*>(memory) - header;
  bytes -= *static_cast<std::size_t*>(block);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new(std::size_t size) {
  if (void* memory = take(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }

namespace collcast::test {

CountedMemory counted_memory() { return {allocations, bytes, most_bytes}; }

std::size_t count_most_bytes_from_now() {
  most_bytes = bytes.load();
  return bytes;
}

}  // namespace collcast::test
