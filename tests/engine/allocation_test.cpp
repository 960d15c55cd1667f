// Nothing is allocated per message: a thousand times as many messages, hardly one allocation more.
#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

#include "collcast/engine/engine.hpp"
#include "engine/times.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

namespace {
std::atomic<std::size_t> allocations{0};
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size > 0 ? size : 1);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace collcast;
using namespace collcast::test;

namespace {

struct Cost {
  std::size_t allocations;
  std::int64_t messages;
};
Cost cost_of(const Fabric& fabric, const Pattern& pattern, Sharing sharing) {
  Schedule schedule;
  schedule.add_exchange(pattern);
  schedule.add_exchange(pattern);  // beside the first: links are shared
  const std::size_t before = allocations;
  const Result<Timeline> timeline = simulate(fabric, schedule, {sharing});
  const std::size_t after = allocations;
  REQUIRE(timeline.ok());
  return {after - before, timeline->counters.messages};
}

}  // namespace

TEST_CASE("the number of allocations does not grow with the number of messages") {
  const Fabric fabric = ring_fabric(8, gb_per_s(10), Seconds(1e-6));
  for (const Sharing sharing : {Sharing::max_min, Sharing::fifo, Sharing::none}) {
    const Cost few = cost_of(fabric, pattern_of(8, {ring_phase(8, 4)}, Volume(1e4)), sharing);
    const Cost many = cost_of(fabric, pattern_of(8, {ring_phase(8, 4000)}, Volume(1e4)), sharing);
    CHECK(few.messages == 2 * 8 * 4);
    CHECK(many.messages == 2 * 8 * 4000);
    // Longer times use a few more buckets of the queue (64 in all), each grown in a few steps.
    CHECK(many.allocations < few.allocations + 100);
  }
}
