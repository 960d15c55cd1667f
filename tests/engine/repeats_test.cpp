// Groups that do again what they have done: the same times, accounts and links as when every message is walked.
#include <catch2/catch.hpp>

#include "collcast/engine/programs.hpp"
#include "engine/random_cases.hpp"
#include "engine/times.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::instruction;

namespace {

ProgramsTimeline run(const Fabric& fabric, const Programs& programs, Sharing sharing, bool repeats) {
  EngineOptions options{sharing};
  options.repeats = repeats;
  Result<ProgramsTimeline> timeline = simulate(fabric, programs, options);
  if (!timeline) FAIL(to_text(timeline.errors()));
  return std::move(timeline).value();
}

/// Rounds of work and of collectives among rows of ranks; now and then a rank that is late, gradients among columns, or
/// a message to the next row.
Programs random_rounds(Dice& dice, int rows, int row) {
  Programs all;
  all.sets = {{1, row}, {row, rows}};
  all.channels = 1;
  all.accounts = 2;
  for (std::uint32_t c = 0; c < 2; ++c) {
    all.patterns.push_back(random_pattern(dice, all.sets[0].group(0)));
    all.collectives.push_back({"row", 0, {c}});
  }
  all.patterns.push_back(random_pattern(dice, all.sets[1].group(0)));
  all.collectives.push_back({"column", 1, {2}});
  all.collectives.front().together = rows % 2 == 0;
  const bool columns = dice.roll(3) == 0, sends = dice.roll(3) == 0;
  // 0: nobody is late; 1: whole rows; 2: single ranks.
  const int late = dice.roll(3);
  std::uint32_t number = 0, column = 0;
  all.programs.resize(2);
  for (Program& program : all.programs) program.streams.resize(2);
  for (int i = 5 + dice.roll(20); i > 0; --i) {
    const TakePart part{static_cast<std::uint32_t>(dice.roll(2)), number++};
    const std::int64_t time = dice.roll(3) * us(1), more = late > 0 && dice.roll(4) == 0 ? us(1) + dice.roll(9) : 0;
    const bool in_columns = columns && dice.roll(6) == 0;
    for (Program& program : all.programs) {
      std::vector<Instruction>& stream = program.streams[0];
      stream.push_back({Spend{Picoseconds(time + (&program == &all.programs[1] ? more : 0))}});
      stream.push_back({part, 1});
      if (in_columns) stream.push_back({TakePart{2, column}});
    }
    column += in_columns ? 1 : 0;
  }
  // Ranks of the second program: of every second row, or of chance.
  for (int r = 0; r < rows * row; ++r)
    all.of_rank.push_back(static_cast<std::uint16_t>(late == 2 ? dice.roll(2) : r / row % 2));
  if (sends && rows > 1) {
    // From the first row to the second, beside the work.
    all.programs.push_back(all.programs[all.of_rank[0]]);
    all.programs.back().streams[1].push_back({Send{row, 0, Volume(2e5)}});
    all.of_rank[0] = 2;
  }
  return all;
}

}  // namespace

TEST_CASE("what a group repeats takes what it takes message by message, to the picosecond") {
  int repeating = 0, partly = 0, never = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const int rows = 1 + dice.roll(4), row = 1 + dice.roll(4);
    const Fabric fabric = star_fabric(std::max(2, rows * row), gb_per_s(10), Seconds(dice.pick({0.0, 1e-6})));
    const Programs programs = random_rounds(dice, rows, row);
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo, Sharing::none}) {
      CAPTURE(seed, rows, row, static_cast<int>(sharing));
      const ProgramsTimeline plain = run(fabric, programs, sharing, false),
                             quick = run(fabric, programs, sharing, true);
      REQUIRE(quick.finish == plain.finish);
      CHECK(quick.counters.messages == plain.counters.messages);
      CHECK(quick.exchanges == plain.exchanges);
      CHECK(plain.counters.repeated == 0);
      CHECK(quick.counters.repeated <= quick.counters.messages);
      for (std::size_t p = 0; p < plain.programs.size(); ++p) {
        CHECK(quick.programs[p].first_end == plain.programs[p].first_end);
        CHECK(quick.programs[p].last_end == plain.programs[p].last_end);
        CHECK(quick.programs[p].accounts == plain.programs[p].accounts);
      }
      for (std::size_t l = 0; l < plain.links.size(); ++l) {
        CHECK(quick.links[l].busy == plain.links[l].busy);
        CHECK(quick.links[l].carried.value() == Approx(plain.links[l].carried.value()).epsilon(1e-12));
      }
      const std::int64_t times = quick.counters.repeated;
      ++(times == 0 ? never : times * 2 > quick.counters.messages ? repeating : partly);
    }
  }
  // All three are met often.
  CHECK(repeating > 100);
  CHECK(partly > 50);
  CHECK(never > 100);
}

TEST_CASE("a group in step walks each of its patterns once") {
  // Two groups of two, ten swaps of two messages each: of 40 messages those of the two first swaps are walked.
  const Fabric fabric = star_fabric(4, gb_per_s(10), Seconds(1e-6));
  Programs all;
  all.sets = {{1, 2}};
  all.patterns = {pattern_of(2, {phase_of(xor_shape, Flow::sequential, 2, 1)}, Volume(1e5))};
  all.collectives = {{"swap", 0, {0}}};
  Program program{{{}}};
  for (std::uint32_t n = 0; n < 10; ++n) program.streams[0].push_back({TakePart{0, n}});
  all.programs = {program};
  all.of_rank.assign(4, 0);
  const ProgramsTimeline together = run(fabric, all, Sharing::max_min, true);
  CHECK(together.counters.messages == 40);
  CHECK(together.counters.repeated == 36);

  SECTION("not where a message of others crosses one of its links") {
    all.channels = 1;
    all.programs.push_back(program);
    all.programs[1].streams.push_back({{Send{1, 0, Volume(1)}}});
    all.of_rank[1] = 1;  // rank 1 to rank 2: both groups have one of their links in it
    const ProgramsTimeline apart = run(fabric, all, Sharing::max_min, true);
    CHECK(apart.counters.repeated == 0);
  }
  SECTION("nor where its collectives are on two streams, and may overlap") {
    std::vector<std::vector<Instruction>>& streams = all.programs[0].streams;
    streams.push_back({streams[0].back()});
    streams[0].pop_back();
    CHECK(run(fabric, all, Sharing::max_min, true).counters.repeated == 0);
    std::swap(streams[0], streams[1]);
    CHECK(run(fabric, all, Sharing::max_min, true).counters.repeated == 0);
  }
}

TEST_CASE("who has left what is watched and leaves the next at once is not counted twice") {
  // Rank 0 is the first of a chain: it leaves after one message, rank 2 after two; two collectives later, in which rank
  // 0 has nothing to do, three departures have been at that instant, but of one member.
  const Fabric fabric = star_fabric(3, gb_per_s(10), Seconds(0));
  Shape last_two = chain_shape;
  last_two.sends = [](const Phase&, Position v) { return v == 1 ? 1 : 0; };
  last_two.receives = [](const Phase&, Position v) { return v == 2 ? 1 : 0; };
  last_two.send = [](const Phase& p, Position, int) { return Hop{0, 2, 0, 0, p.width}; };
  Programs all;
  all.sets = {{1, 3}};
  all.patterns = {pattern_of(3, {chain_phase(3)}, Volume(1e5)),
                  pattern_of(3, {phase_of(last_two, Flow::sequential, 3)}, Volume(1e5))};
  all.collectives = {{"chain", 0, {0}}, {"of two", 0, {1}}};
  Program program{{{}}};
  std::uint32_t number = 0;
  for (int round = 0; round < 10; ++round)
    for (const std::uint32_t collective : {0U, 1U, 1U}) {
      program.streams[0].push_back({TakePart{collective, number++}});
      // All come at one instant to the next round.
      if (number % 3 == 0) program.streams[0].push_back({Meet{number / 3 - 1}});
    }
  all.programs = {program};
  all.of_rank.assign(3, 0);
  const ProgramsTimeline plain = run(fabric, all, Sharing::max_min, false),
                         quick = run(fabric, all, Sharing::max_min, true);
  // 4 messages of 10 us one after the other a round: two of the chain, and one each.
  CHECK(plain.finish == SimTime(Picoseconds(us(400))));
  CHECK(quick.finish == plain.finish);
  CHECK(quick.counters.messages == plain.counters.messages);
}
