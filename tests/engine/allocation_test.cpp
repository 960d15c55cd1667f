// Nothing is allocated per message: a thousand times as many messages, hardly one allocation more. Of programs nothing
// per exchange and per instruction to come either, and a rank is a few bytes. And what a rank of a ring costs.
#include <catch2/catch.hpp>

#include "collcast/engine/footprint.hpp"
#include "collcast/engine/programs.hpp"
#include "engine/times.hpp"
#include "support/counted_memory.hpp"
#include "support/dice.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

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
  const std::size_t before = counted_memory().allocations;
  const Result<Timeline> timeline = simulate(fabric, schedule, {sharing});
  const std::size_t after = counted_memory().allocations;
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
    // Longer times use a few more buckets of the queue (32 of each digit), each grown in a few steps.
    CHECK(many.allocations < few.allocations + 100);
  }
}

TEST_CASE("a rank of a ring costs 256 bytes at most, whatever the number of its messages") {
  const int ranks = 4096;
  const Fabric equal = ring_fabric(ranks, gb_per_s(10), Seconds(1e-6));
  for (const Fabric& fabric : {equal, with_unequal_links(equal)}) {
    std::size_t per_rank[2] = {};
    for (const int rounds : {2, 20}) {
      const Pattern pattern = pattern_of(ranks, {ring_phase(ranks, rounds)}, Volume(1e4));
      const std::size_t before = count_most_bytes_from_now();
      REQUIRE(simulate(fabric, pattern).ok());
      CHECK(counted_memory().bytes == before);
      per_rank[rounds > 2] = (counted_memory().most_bytes - before) / ranks;
    }
    CHECK(per_rank[1] <= per_rank[0] + 16);
    CHECK(per_rank[1] <= 256);
  }
}

TEST_CASE("what a simulation takes is known before it, to a half") {
  const int ranks = 1024;
  const Fabric ring = ring_fabric(ranks, gb_per_s(10), Seconds(1e-6)), star = star_fabric(ranks, gb_per_s(10), {});
  const Fabric small = star_fabric(96, gb_per_s(10), Seconds(1e-6));
  Pattern random = pattern_of(ranks, {ring_phase(ranks, 6)}, Volume(1e4));
  std::vector<Rank> order;
  for (const int rank : Dice(1).permutation(ranks)) order.emplace_back(static_cast<std::uint32_t>(rank));
  random.group = Group::listed(std::move(order));
  const std::pair<const Fabric*, Pattern> cases[] = {
      {&ring, pattern_of(ranks, {ring_phase(ranks, 20)}, Volume(1e4))},
      {&star, random},
      {&star, pattern_of(ranks, {phase_of(tree_down_shape, Flow::forwarding, ranks)}, Volume(1e4))},
      {&star, pattern_of(ranks, {phase_of(xor_shape, Flow::sequential, ranks, 1)}, Volume(1e4))},
      {&star, pattern_of(ranks, {phase_of(fan_in_shape, Flow::concurrent, ranks)}, Volume(1e4))},
      {&small, pattern_of(96, {phase_of(everyone_shape, Flow::concurrent, 96)}, Volume(1e4))},
  };
  for (const auto& [fabric, pattern] : cases) {
    const std::size_t before = count_most_bytes_from_now();
    REQUIRE(simulate(*fabric, pattern).ok());
    const double taken = static_cast<double>(counted_memory().most_bytes - before);
    const double expected = static_cast<double>(footprint(*fabric, {&pattern, 1}).value());
    INFO(pattern.lanes[0].phases[0].shape->name << ": " << taken << " bytes, " << expected << " expected");
    CHECK(taken < 1.5 * expected);
    CHECK(expected < 1.5 * taken);
  }
}

TEST_CASE("an every-to-every round a ring is counted with all links that its messages cross") {
  // 256 * 255 messages at once, each over (2(1 + ... + 127) + 128) / 255 = 64 links; the first of each rank over one.
  // Lists of links grow by doubling, so that up to twice what is in them may be taken.
  const Fabric ring = ring_fabric(256, gb_per_s(10), Seconds(1e-6));
  const Pattern pattern = pattern_of(256, {phase_of(everyone_shape, Flow::concurrent, 256)}, Volume(1e4));
  const std::size_t before = count_most_bytes_from_now();
  REQUIRE(simulate(ring, pattern).ok());
  const double taken = static_cast<double>(counted_memory().most_bytes - before);
  const double expected = static_cast<double>(footprint(ring, {&pattern, 1}).value());
  CHECK(taken < 2.5 * expected);
  CHECK(expected < 1.5 * taken);
  CHECK(lacks_memory(ring, {&pattern, 1}, Bytes(static_cast<std::int64_t>(taken))));
  CHECK_FALSE(lacks_memory(ring, {&pattern, 1}, Bytes(static_cast<std::int64_t>(2.5 * taken))));
}

TEST_CASE("what a recurrence takes is known before it, to a half") {
  const int ranks = 1024;
  const Fabric ring = ring_fabric(ranks, gb_per_s(10), Seconds(1e-6));
  Pattern in_chunks = pattern_of(ranks, {ring_phase(ranks, 6)}, Volume(1e4));
  in_chunks.chunks = 16;
  const Pattern patterns[] = {pattern_of(ranks, {ring_phase(ranks, 20)}, Volume(1e4)), in_chunks,
                              pattern_of(ranks, {phase_of(chain_shape, Flow::forwarding, ranks)}, Volume(1e4))};
  for (const Pattern& pattern : patterns) {
    const std::size_t before = count_most_bytes_from_now();
    REQUIRE(recurrence(ring, pattern));
    const double taken = static_cast<double>(counted_memory().most_bytes - before);
    const double expected = static_cast<double>(recurrence_footprint(ring, pattern).value());
    INFO(pattern.lanes[0].phases[0].shape->name << ": " << taken << " bytes, " << expected << " expected");
    CHECK(taken < 1.5 * expected);
    CHECK(expected < 1.5 * taken);
  }
}

namespace {

/// Groups of two that swap and compute in turn, `turns` times, and reduce among four beside it at the end.
Programs swapping(int ranks, int turns) {
  Programs all;
  all.sets = {{1, 2}, {2, 4}};
  all.patterns = {pattern_of(2, {phase_of(xor_shape, Flow::sequential, 2, 1)}, Volume(1e4)),
                  pattern_of(4, {ring_phase(4, 6)}, Volume(1e4))};
  all.patterns[1].group = all.sets[1].group(0);
  all.collectives = {{"swap", 0, {0}}, {"ring", 1, {1}}};
  Program program;
  program.streams.resize(2);
  for (std::uint32_t n = 0; n < static_cast<std::uint32_t>(turns); ++n) {
    program.streams[0].push_back({instruction::Spend{Picoseconds(us(1))}});
    program.streams[0].push_back({instruction::TakePart{0, n}});
  }
  program.await(1, 0, program.streams[0].size() / 2);
  program.streams[1].push_back({instruction::TakePart{1, 0}});
  program.await(0, 1, 2);
  all.programs = {program};
  all.of_rank.assign(static_cast<std::size_t>(ranks), 0);
  return all;
}

struct ProgramsCost {
  std::size_t allocations, bytes;
};
ProgramsCost cost_of(const Fabric& fabric, const Programs& programs) {
  const std::size_t before = counted_memory().allocations, bytes_before = count_most_bytes_from_now();
  const Result<ProgramsTimeline> timeline = simulate(fabric, programs);
  const ProgramsCost cost{counted_memory().allocations - before, counted_memory().most_bytes - bytes_before};
  REQUIRE(timeline.ok());
  REQUIRE(timeline->counters.messages == traffic(programs).messages);
  return cost;
}

}  // namespace

TEST_CASE("what programs take is known before, and not less than a half of it is taken") {
  for (const int ranks : {64, 1024}) {
    const Fabric fabric = ring_fabric(ranks, gb_per_s(10), Seconds(1e-6));
    const Programs programs = swapping(ranks, 20);
    const double taken = static_cast<double>(cost_of(fabric, programs).bytes);
    const double expected = static_cast<double>(footprint(fabric, programs).value());
    INFO(ranks << " ranks: " << taken << " bytes, " << expected << " expected");
    CHECK(taken < 1.5 * expected);
    CHECK(expected < 2 * taken);
  }
}

TEST_CASE("the number of allocations does not grow with a program's instructions and exchanges") {
  const Fabric fabric = ring_fabric(16, gb_per_s(10), Seconds(1e-6));
  const ProgramsCost few = cost_of(fabric, swapping(16, 8)), many = cost_of(fabric, swapping(16, 8000));
  CHECK(many.allocations < few.allocations + 100);
}

TEST_CASE("a rank of a program is a few bytes, and what it has under way some hundreds") {
  // Programs of ranks that only compute: two streams and no channel. All that grows with the ranks: 8 bytes of
  // positions, and an event each in the queue (16 bytes) and in the instant (16), in vectors that double.
  const auto computing = [](int ranks) {
    Programs all = swapping(ranks, 1);
    all.programs[0].streams = {{{instruction::Spend{Picoseconds(us(1))}}}, {}};
    return all;
  };
  const Fabric fabric = ring_fabric(16384, gb_per_s(10), Seconds(1e-6));
  const auto bytes_per_rank = [&](auto programs_of) {
    const double more = static_cast<double>(cost_of(fabric, programs_of(16384)).bytes) -
                        static_cast<double>(cost_of(fabric, programs_of(8192)).bytes);
    return more / 8192;
  };
  CHECK(bytes_per_rank(computing) < 8 + 4 * 32 + 8);
  // With an exchange under way on both streams of all ranks at once: connections, walkers, counters, links.
  CHECK(bytes_per_rank([](int ranks) { return swapping(ranks, 3); }) < 4096);
}
