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
  CHECK(e.due.kind() == EventKind::arrived);
  CHECK(e.due.index() == 0xfffffffeU);
  CHECK(e.due.version() == Due::version_mask);
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
      expected.emplace(std::pair(event.time, event.due.key), 0);
    }
    REQUIRE(queue.empty() == expected.empty());
    if (queue.empty()) continue;
    std::vector<Due> instant;
    now = queue.take(instant);
    REQUIRE_FALSE(instant.empty());
    for (const Due due : instant) {
      REQUIRE(std::pair(now, due.key) == expected.begin()->first);
      expected.erase(expected.begin());
      ++taken;
    }
    REQUIRE((expected.empty() || expected.begin()->first.first > now));
  }
  CHECK(taken == pushed);
}

TEST_CASE("thousands of events close together, and some at the end of the clock") {
  test::Dice dice(2);
  EventQueue queue;
  std::multimap<Ticks, int> expected;
  Ticks now = 0;
  const auto push = [&](Ticks time) {
    queue.push(Event::at(time, EventKind::left, 0));
    expected.emplace(time, 0);
  };
  for (int late = 0; late < 40; ++late) push(never - dice.roll(3));
  for (int round = 0; round < 3000; ++round) {
    // Bursts that fall among the earliest of those that wait, now and then at another scale.
    for (int n = dice.roll(round % 100 == 0 ? 200 : 3); n > 0; --n)
      push(now + dice.roll(round % 7 == 0 ? 1'000'000 : 40));
    std::vector<Due> instant;
    now = queue.take(instant);
    REQUIRE(instant.size() == expected.count(now));
    REQUIRE(expected.begin()->first == now);
    expected.erase(now);
    if (now >= never - 3) break;
  }
}
