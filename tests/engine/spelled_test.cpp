// Work that is spelled out, in rows and loops, against the same as a Schedule message by message: to the picosecond.
#include <catch2/catch.hpp>

#include "collcast/engine/engine.hpp"
#include "engine/random_cases.hpp"
#include "support/small_fabrics.hpp"
#include "support/spelled_schedule.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr std::uint32_t none = SpelledStep::none;

/// Drawn step by step in an order in which they can run, so nothing locks up; every message is received.
SpelledOut random_spelled(Dice& dice, const Fabric& fabric) {
  struct Draft {
    Rank rank;
    std::uint32_t to = none, from = none, unread = 0;
    std::vector<SpelledStep> steps;
  };
  std::vector<Draft> drafts(static_cast<std::size_t>(2 + dice.roll(8)));
  const auto count = static_cast<int>(drafts.size());
  const auto any = [&] { return static_cast<std::uint32_t>(dice.roll(count)); };
  for (Draft& draft : drafts) draft.rank = Rank(static_cast<std::uint32_t>(dice.roll(fabric.rank_count())));
  for (std::uint32_t t = 0; t < drafts.size(); ++t)
    if (const std::uint32_t to = any(); to != t && drafts[to].from == none) {
      drafts[t].to = to;
      drafts[to].from = t;
    }
  const auto add = [&](std::uint32_t t, bool sends) {
    Draft& draft = drafts[t];
    SpelledStep step;
    step.receives = draft.unread > 0 && dice.roll(4) != 0;
    step.sends = sends && draft.to != none;
    step.units = static_cast<std::uint32_t>(dice.pick({0, 1, 1, 1, 2, 5}));
    if (const std::uint32_t other = any();
        dice.roll(3) == 0 && other != t && drafts[other].rank == draft.rank && !drafts[other].steps.empty()) {
      step.after_thread = other;
      step.after_step = static_cast<std::uint32_t>(dice.roll(static_cast<int>(drafts[other].steps.size())));
    }
    if (step.receives) --draft.unread;
    if (step.sends) ++drafts[draft.to].unread;
    draft.steps.push_back(step);
  };
  for (int steps = dice.roll(60); steps > 0; --steps) {
    const std::uint32_t thread = any();
    add(thread, dice.roll(3) != 0);
  }
  for (std::uint32_t t = 0; t < drafts.size(); ++t)
    for (; drafts[t].unread > 0; --drafts[t].unread) drafts[t].steps.push_back({none, 0, 0, true, false});

  SpelledOut out;
  out.unit = Volume(dice.pick({1.0, 1e3, 12345.6, 1e6}));
  out.loops = static_cast<std::uint32_t>(1 + dice.roll(4));
  // A lane each, as MSCCL's channels: of requests that are equal but for their numbers fifo asks the numbers.
  for (const Draft& draft : drafts) {
    const auto lane = static_cast<int>(out.threads.size());
    out.threads.push_back({draft.rank, static_cast<std::uint32_t>(out.steps.size()),
                           static_cast<std::uint32_t>(draft.steps.size()), draft.to, lane});
    out.steps.insert(out.steps.end(), draft.steps.begin(), draft.steps.end());
  }
  return out;
}

/// Two ranks whose threads send each other `messages` one by one, each after one of the other's.
SpelledOut ping_pong(std::uint32_t messages, std::uint32_t loops) {
  SpelledOut out;
  out.unit = Volume(1e6);
  out.loops = loops;
  for (std::uint32_t r = 0; r < 2; ++r) {
    out.threads.push_back({Rank(r), static_cast<std::uint32_t>(out.steps.size()), 2 * messages, 1 - r, 0});
    for (std::uint32_t m = 0; m < messages; ++m) {
      const SpelledStep send{none, 0, 1, false, true}, receive{none, 0, 0, true, false};
      out.steps.push_back(r == 0 ? send : receive);
      out.steps.push_back(r == 0 ? receive : send);
    }
  }
  return out;
}

std::string error_of(const SpelledOut& all) {
  const auto timeline = simulate(ring_fabric(2, Bandwidth(1e9), Seconds(0)), all);
  return timeline ? "" : timeline.errors().front().message;
}

}  // namespace

TEST_CASE("rows and loops take the same picoseconds as a schedule of all their messages") {
  int looped = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Dice dice(20261124 + i);
    const Fabric fabric = random_fabric(dice);
    const SpelledOut all = random_spelled(dice, fabric);
    const Schedule schedule = as_schedule(all);
    REQUIRE(schedule.size() == all.steps.size() * all.loops);
    looped += all.loops > 1 && !all.steps.empty() ? 1 : 0;
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo, Sharing::none}) {
      INFO("case " << i << ", sharing " << static_cast<int>(sharing));
      const auto rows = simulate(fabric, all, {sharing}), spelled = simulate(fabric, schedule, {sharing});
      REQUIRE(rows.ok());
      REQUIRE(spelled.ok());
      REQUIRE(rows->finish == spelled->finish);
      REQUIRE(rows->counters.messages == spelled->counters.messages);
      for (std::size_t l = 0; l < rows->links.size(); ++l) {
        REQUIRE(rows->links[l].busy == spelled->links[l].busy);
        REQUIRE(rows->links[l].carried.value() == Approx(spelled->links[l].carried.value()).epsilon(1e-12));
      }
    }
  }
  CHECK(looped > 1000);
}

TEST_CASE("to and fro: 2 m l messages, each the bytes over the rate and a latency") {
  for (const std::uint32_t messages : {1U, 3U})
    for (const std::uint32_t loops : {1U, 2U, 1000U}) {
      const auto timeline = simulate(ring_fabric(2, Bandwidth(1e9), Seconds(1e-6)), ping_pong(messages, loops));
      REQUIRE(timeline.ok());
      CHECK(timeline->counters.messages == std::int64_t{2} * messages * loops);
      CHECK(timeline->finish == SimTime(Picoseconds(std::int64_t{2} * messages * loops * (1'000'000'000 + 1'000'000))));
    }
}

TEST_CASE("threads that cannot go on are named with the step that they are at") {
  SpelledOut both_receive = ping_pong(1, 1);
  std::swap(both_receive.steps[0], both_receive.steps[1]);
  CHECK(error_of(both_receive) ==
        "thread 0 of rank 0 never finished its step 0: it waits for a message of thread 1 of rank 1; thread 1 of rank "
        "1 never finished its step 0: it waits for a message of thread 0 of rank 0; in a circle: thread 0 of rank 0 "
        "waits for thread 1 of rank 1 waits for thread 0 of rank 0");
  SpelledOut too_few = ping_pong(1, 3);
  too_few.steps[1].receives = false;
  CHECK(error_of(too_few) == "3 messages for thread 0 of rank 0 are received by nobody");
  SpelledOut circle;  // two threads of a rank, each after the other
  circle.threads = {{Rank(0), 0, 1, none, 0}, {Rank(0), 1, 1, none, 0}};
  circle.steps = {{1, 0, 0, false, false}, {0, 0, 0, false, false}};
  CHECK(error_of(circle) ==
        "thread 0 of rank 0 never finished its step 0: it waits for step 0 of thread 1 of rank 0; thread 1 of rank 0 "
        "never finished its step 0: it waits for step 0 of thread 0 of rank 0; in a circle: thread 0 of rank 0 waits "
        "for thread 1 of rank 0 waits for thread 0 of rank 0");
  SpelledOut later = ping_pong(2, 5);  // the second loop's first message is waited for by nobody who is late
  later.threads[1].count = 3;
  CHECK(
      error_of(later) ==
      "thread 0 of rank 0 never finished its step 3 of loop 0: it waits for a message of thread 1 of rank 1; thread 1 "
      "of rank 1 never finished its step 0 of loop 1: it waits for a message of thread 0 of rank 0; in a circle: "
      "thread 0 of rank 0 waits for thread 1 of rank 1 waits for thread 0 of rank 0");
  SpelledOut unsent = ping_pong(2, 1);  // the other one is through after its first message
  unsent.threads[1].count = 1;
  CHECK_THAT(error_of(unsent), Catch::Matchers::Contains("it waits for a message, which nobody is left to send"));
  CHECK(error_of(SpelledOut{}).empty());
}
