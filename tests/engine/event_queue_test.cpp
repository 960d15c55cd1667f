// The queue gives back what was put in, instant by instant, in the order of time, kind and index.
#include "engine/event_queue.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <vector>

#include "engine/random_cases.hpp"

using namespace collcast;
using namespace collcast::engine;

TEST_CASE("an event carries its kind, index and version") {
  const Event e = Event::at(7, EventKind::arrived, 0xfffffffeU, 0xffffffffU);
  CHECK(e.time == 7);
  CHECK(e.kind() == EventKind::arrived);
  CHECK(e.index() == 0xfffffffeU);
  CHECK(e.version() == Event::version_mask);
}

TEST_CASE("events come back in order, whatever the order they were put in") {
  test::Dice dice(1);
  EventQueue queue;
  std::multimap<std::pair<Ticks, std::uint64_t>, int> expected;
  Ticks now = 0;
  std::size_t pushed = 0, taken = 0;
  while (pushed < 20'000 || !expected.empty()) {
    for (int n = pushed < 20'000 ? dice.roll(5) : 0; n > 0; --n, ++pushed) {
      // Increments from nothing to hours, many of them equal.
      const Ticks delay =
          dice.pick({Ticks{0}, Ticks{1}, Ticks{100}, Ticks{100'000}, Ticks{3'600'000'000'000'000}}) * dice.roll(3);
      const Event event =
          Event::at(now + delay, static_cast<EventKind>(dice.roll(4)), static_cast<std::uint32_t>(dice.roll(9)));
      queue.push(event);
      expected.emplace(std::pair(event.time, event.key), 0);
    }
    REQUIRE(queue.empty() == expected.empty());
    if (queue.empty()) continue;
    std::vector<Event> instant;
    now = queue.take(instant);
    REQUIRE_FALSE(instant.empty());
    for (const Event& event : instant) {
      REQUIRE(std::pair(event.time, event.key) == expected.begin()->first);
      REQUIRE(event.time == now);
      expected.erase(expected.begin());
      ++taken;
    }
    REQUIRE((expected.empty() || expected.begin()->first.first > now));
  }
  CHECK(taken == pushed);
}
