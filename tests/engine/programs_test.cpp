// Programs: the run of every rank against the same work written out, and what does not change it.
#include "collcast/engine/programs.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/random_cases.hpp"
#include "engine/times.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"
#include "support/spelled_programs.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::instruction;
using Catch::Matchers::Contains;

namespace {

ProgramsTimeline run(const Fabric& fabric, const Programs& programs, Sharing sharing = Sharing::max_min) {
  Result<ProgramsTimeline> timeline = simulate(fabric, programs, {sharing});
  if (!timeline) FAIL(to_text(timeline.errors()));
  return std::move(timeline).value();
}

std::string failure(const Fabric& fabric, const Programs& programs) {
  const Result<ProgramsTimeline> timeline = simulate(fabric, programs);
  return timeline ? "ran" : to_text(timeline.errors());
}

Instruction spend(std::int64_t microseconds) { return {Spend{Picoseconds(us(microseconds))}}; }

/// As a step of tp x pp x dp: rows of groups, stages that pass messages on, gradients beside the last of the work.
struct Grid {
  int tp = 1, pp = 1, dp = 1;
  int world() const { return tp * pp * dp; }
};

constexpr std::uint32_t main_stream = 0, next_stream = 1, dp_stream = 2;

class RandomPrograms {
 public:
  RandomPrograms(Dice& dice, Grid grid) : dice_(dice), grid_(grid) {
    all_.sets = {{1, grid.tp}, {grid.tp * grid.pp, grid.dp}, {grid.tp, grid.pp, std::max(1, grid.pp - 1)}};
    all_.channels = 1;
    all_.accounts = 2;
    for (std::uint32_t set = 0; set < 3; ++set)
      for (int i = 1 + dice.roll(2); i > 0; --i) add_collective(set);
  }

  Programs make() {
    const int micro_batches = 1 + dice_.roll(3);
    for (int stage = 0; stage < grid_.pp; ++stage) all_.programs.push_back(program(stage, micro_batches));
    for (int r = 0; r < grid_.world(); ++r) all_.of_rank.push_back(static_cast<std::uint16_t>(r / grid_.tp % grid_.pp));
    return std::move(all_);
  }

 private:
  void add_collective(std::uint32_t set) {
    Collective collective{"set " + std::to_string(set), set, {}, dice_.roll(2)};
    collective.together = all_.collectives.size() % 3 == 1;
    // Groups of odd numbers may do it in another way.
    const int kinds = 1 + dice_.roll(2);
    for (int kind = 0; kind < kinds; ++kind) {
      collective.patterns.push_back(static_cast<std::uint32_t>(all_.patterns.size()));
      all_.patterns.push_back(random_pattern(dice_, all_.sets[set].group(0)));
    }
    while (collective.patterns.size() < 2) collective.patterns.push_back(collective.patterns.front());
    GroupSet& of = all_.sets[set];
    if (of.kind_of.empty())
      for (std::uint32_t g = 0; g < of.groups(static_cast<std::uint32_t>(grid_.world())); ++g)
        of.kind_of.push_back(static_cast<std::uint16_t>(g % 2));
    all_.collectives.push_back(std::move(collective));
  }

  void work(std::vector<Instruction>& main) {
    for (int i = dice_.roll(3); i > 0; --i) {
      if (dice_.roll(2) == 0)
        main.push_back({Spend{Picoseconds(dice_.roll(3) * us(1))}, 1});
      else
        take_part(main, 0);
    }
  }

  void take_part(std::vector<Instruction>& stream, std::uint32_t set) {
    std::vector<std::uint32_t> of_set;
    for (std::uint32_t c = 0; c < all_.collectives.size(); ++c)
      if (all_.collectives[c].set == set) of_set.push_back(c);
    // All stages draw alike, so that the ends of a pipeline mean the same.
    stream.push_back({TakePart{of_set[number_[set] % of_set.size()], number_[set]}});
    ++number_[set];
  }

  Program program(int stage, int micro_batches) {
    number_ = {0, 0, 0};
    Program out;
    out.streams.resize(3);
    std::vector<Instruction>&main = out.streams[main_stream], &next = out.streams[next_stream],
    &dp = out.streams[dp_stream];
    main.push_back({Spend{Picoseconds(dice_.roll(2))}});
    for (int mb = 0; mb < micro_batches; ++mb) {
      if (stage > 0) main.push_back({Receive{0, static_cast<std::uint32_t>(mb + 1)}});
      work(main);
      if (stage + 1 < grid_.pp) {
        out.await(next_stream, main_stream, main.size());
        next.push_back({Send{grid_.tp, 0, Volume(dice_.pick({0.0, 1.0, 1e5, 3e5})), dice_.roll(2)}});
      }
    }
    for (int b = dice_.roll(3); b > 0; --b) {
      work(main);
      out.await(dp_stream, main_stream, main.size());
      take_part(dp, 1);
    }
    work(main);
    if (!dp.empty()) out.await(main_stream, dp_stream, dp.size());
    if (grid_.pp > 1 && (stage == 0 || stage + 1 == grid_.pp)) take_part(main, 2);
    main.push_back({Meet{0}});
    work(main);
    return out;
  }

  Dice& dice_;
  Grid grid_;
  Programs all_;
  std::array<std::uint32_t, 3> number_{};
};

Grid random_grid(Dice& dice) { return {1 + dice.roll(4), 1 + dice.roll(4), 1 + dice.roll(4)}; }

Fabric fabric_of(Dice& dice, int ranks) {
  const Seconds latency(dice.pick({0.0, 1e-6}));
  return dice.roll(2) == 0 ? ring_fabric(std::max(2, ranks), gb_per_s(10), latency)
                           : star_fabric(std::max(2, ranks), gb_per_s(10), latency);
}

void check_links(const ProgramsTimeline& a, const Timeline& b) {
  for (std::size_t l = 0; l < a.links.size(); ++l) {
    CHECK(a.links[l].busy == b.links[l].busy);
    CHECK(a.links[l].carried.value() == Approx(b.links[l].carried.value()).epsilon(1e-12));
  }
}

/// Ranks 0 and 1, each with its program, and 1e5 bytes that they swap.
Programs of_two_that_swap() {
  Programs all;
  all.sets = {{1, 2}};
  all.patterns = {pattern_of(2, {phase_of(xor_shape, Flow::sequential, 2, 1)}, Volume(1e5))};
  all.collectives = {{"swap", 0, {0}}};
  all.channels = 1;
  all.of_rank = {0, 1};
  return all;
}

}  // namespace

TEST_CASE("a set of two groups that are one has every rank once, at its place by number") {
  for (const int tp : {1, 2, 3})
    for (const int pp : {2, 4, 6})
      for (const int dp : {1, 2, 5})
        for (const bool stages_first : {true, false}) {
          const int of_pp = stages_first ? tp : tp * dp, of_dp = stages_first ? tp * pp : tp;
          GroupSet set{of_dp, dp};
          set.fold_stride = of_pp;
          set.folded = pp;
          const auto world = static_cast<std::uint32_t>(tp * pp * dp);
          CAPTURE(tp, pp, dp, stages_first);
          REQUIRE(set.members() == 2 * dp);
          REQUIRE(set.groups(world) * static_cast<std::uint32_t>(set.members()) == world);
          const auto digit = [](Rank rank, int stride, int size) {
            return static_cast<int>(rank.value()) / stride % size;
          };
          for (std::uint32_t r = 0; r < world; ++r) {
            const Rank rank(r);
            REQUIRE(set.has(rank));
            REQUIRE(set.group_of(rank) < set.groups(world));
            const std::vector<Rank> ranks = set.group(set.group_of(rank)).ranks();
            REQUIRE(ranks.size() == static_cast<std::size_t>(set.members()));
            REQUIRE(ranks[static_cast<std::size_t>(set.member(rank))] == rank);
            REQUIRE(std::is_sorted(ranks.begin(), ranks.end()));
            for (const Rank other : ranks) {
              REQUIRE(digit(other, 1, tp) == digit(rank, 1, tp));
              const int here = digit(rank, of_pp, pp), there = digit(other, of_pp, pp);
              REQUIRE((there == here || there == pp - 1 - here));
            }
          }
        }
}

TEST_CASE("programs take what the same work takes that is written out, to the picosecond") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    const Grid grid = random_grid(dice);
    const Fabric fabric = fabric_of(dice, grid.world());
    const Programs programs = RandomPrograms(dice, grid).make();
    for (const Sharing sharing : {Sharing::max_min, Sharing::none}) {
      CAPTURE(seed, grid.tp, grid.pp, grid.dp, static_cast<int>(sharing));
      const ProgramsTimeline by_rank = run(fabric, programs, sharing);
      for (const bool messages : {false, true}) {
        CAPTURE(messages);
        const SpelledPrograms spelled = spell_out(programs, messages);
        const Timeline written = run(fabric, spelled.schedule, sharing);
        REQUIRE(by_rank.finish == written.finish);
        REQUIRE(by_rank.counters.messages == written.counters.messages);
        check_links(by_rank, written);
        std::vector<SimTime> last(programs.programs.size());
        for (std::uint32_t r = 0; r < programs.ranks(); ++r) {
          SimTime& end = last[programs.of_rank[r]];
          end = std::max(end, written.ops[spelled.ops[r][0].back().value()].finish);
        }
        for (std::size_t p = 0; p < last.size(); ++p) CHECK(by_rank.programs[p].last_end == last[p]);
      }
      const ProgramTraffic expected = traffic(programs);
      CHECK(by_rank.counters.messages == expected.messages);
      CHECK(by_rank.exchanges == expected.exchanges);
    }
  }
}

TEST_CASE("the order in which programs and streams are numbered changes nothing") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    const Grid grid = random_grid(dice);
    const Fabric fabric = fabric_of(dice, grid.world());
    const Programs programs = RandomPrograms(dice, grid).make();
    Programs other = programs;
    std::reverse(other.programs.begin(), other.programs.end());
    for (std::uint16_t& p : other.of_rank) p = static_cast<std::uint16_t>(other.programs.size() - 1 - p);
    for (Program& program : other.programs) {
      std::swap(program.streams[next_stream], program.streams[dp_stream]);
      for (std::vector<Instruction>& stream : program.streams)
        for (Instruction& i : stream)
          if (auto* await = std::get_if<Await>(&i.what); await != nullptr && await->stream != main_stream)
            await->stream = next_stream + dp_stream - await->stream;
    }
    CAPTURE(seed);
    const ProgramsTimeline a = run(fabric, programs), b = run(fabric, other);
    CHECK(a.finish == b.finish);
    CHECK(a.counters.messages == b.counters.messages);
    for (std::size_t p = 0; p < a.programs.size(); ++p) {
      const ProgramTimes& same = b.programs[a.programs.size() - 1 - p];
      CHECK(a.programs[p].last_end == same.last_end);
      CHECK(a.programs[p].first_end == same.first_end);
      CHECK(a.programs[p].accounts == same.accounts);
    }
  }
}

TEST_CASE("a rank that comes late holds up its group only, and runs ahead are told apart by number") {
  // Two groups of two. Rank 3 computes 5 us longer before the first of two exchanges of 10 us.
  const Fabric fabric = ring_fabric(4, gb_per_s(10), Seconds(0));
  Programs all;
  all.sets = {{1, 2}};
  all.patterns = {pattern_of(2, {phase_of(xor_shape, Flow::sequential, 2, 1)}, Volume(1e5))};
  all.collectives = {{"swap", 0, {0}}};
  const Program usual{{{spend(1), {TakePart{0, 0}, 1}, {TakePart{0, 1}, 1}}}};
  Program late = usual;
  late.streams[0][0] = spend(6);
  all.programs = {usual, late};
  all.of_rank = {0, 0, 0, 1};
  all.accounts = 2;
  const ProgramsTimeline timeline = run(fabric, all);
  CHECK(timeline.programs[0].first_end == SimTime(Picoseconds(us(21))));
  CHECK(timeline.programs[0].last_end == SimTime(Picoseconds(us(26))));
  CHECK(timeline.finish == SimTime(Picoseconds(us(26))));
  // Rank 2 is 5 us longer in its exchanges than ranks 0 and 1.
  CHECK(timeline.programs[0].accounts[1].count() == us(20 + 20 + 25));
  CHECK(timeline.programs[1].accounts[1].count() == us(20));
  CHECK(timeline.exchanges == 4);
}

TEST_CASE("of what is done together nothing is sent before the last member has come") {
  // Ranks 0 and 1 swap 1e5 bytes at 10 GB/s, 10 us. Rank 0 comes after 10 us, rank 1 at once, beside a message to rank
  // 0 of 1e5 bytes, too.
  const Fabric fabric = ring_fabric(2, gb_per_s(10), Seconds(0));
  Programs all = of_two_that_swap();
  all.programs = {Program{{{spend(10)}, {spend(10), {TakePart{0, 0}}}}},
                  Program{{{{Send{-1, 0, Volume(1e5)}}}, {{TakePart{0, 0}}}}}};
  // Both of rank 1's share its way, 20 us.
  CHECK(run(fabric, all).programs[1].last_end == SimTime(Picoseconds(us(20))));
  all.collectives[0].together = true;
  const ProgramsTimeline together = run(fabric, all);
  CHECK(together.programs[1].last_end == SimTime(Picoseconds(us(10))));
  CHECK(together.finish == SimTime(Picoseconds(us(20))));
}

TEST_CASE("programs that wait for each other name ranks and what these wait for") {
  const Fabric fabric = ring_fabric(4, gb_per_s(10), Seconds(0));
  Programs all;
  all.sets = {{2, 2}};
  all.patterns = {pattern_of(2, {phase_of(xor_shape, Flow::sequential, 2, 1)}, Volume(1e5))};
  all.patterns[0].group = all.sets[0].group(0);
  all.collectives = {{"dp swap", 0, {0}}};
  all.channels = 1;
  // Ranks 0 and 1 send before they reduce, 2 and 3 wait for a second message that nobody sends.
  all.programs = {Program{{{{Send{2, 0, Volume(10)}}, {TakePart{0, 0}}}}},
                  Program{{{{Receive{0, 2}}, {TakePart{0, 0}}}}}};
  all.of_rank = {0, 0, 1, 1};
  const std::string text = failure(fabric, all);
  CHECK_THAT(text, Contains("4 streams never finished"));
  CHECK_THAT(text,
             Contains("rank 0, stream 0, instruction 1, waits for dp swap among 2 ranks from rank 0 on, number 0 of "
                      "the group, to which rank 2 has not come"));
  CHECK_THAT(text, Contains("rank 2, stream 0, instruction 0, waits for message 2 on channel 0, where 1 have come"));

  Programs meeting;
  meeting.programs = {Program{{{{Meet{0}}}}}, Program{{{spend(1)}}}};
  meeting.of_rank = {0, 1, 1};
  CHECK_THAT(failure(fabric, meeting), Contains("rank 0") && Contains("all ranks at meeting 0, to which 1 have come"));

  Programs own;
  own.programs = {Program{{{{Await{1, 1}}}, {{Await{0, 1}}}}}};
  own.programs[0].streams[0][0].awaited = own.programs[0].streams[1][0].awaited = true;
  own.of_rank = {0};
  CHECK_THAT(failure(fabric, own), Contains("the first 1 instructions of its stream 1, of which 0 are over") &&
                                       Contains("in a circle: rank 0, stream 0 waits for rank 0, stream 1 waits for "
                                                "rank 0, stream 0"));
}

TEST_CASE("programs that wait in a circle over collectives and messages have it told") {
  const Fabric fabric = ring_fabric(2, gb_per_s(10), Seconds(0));
  Programs all = of_two_that_swap();
  // Rank 0 takes part before it sends, rank 1 receives before it takes part.
  all.programs = {Program{{{{TakePart{0, 0}}, {Send{1, 0, Volume(10)}}}}},
                  Program{{{{Receive{0, 1}}, {TakePart{0, 0}}}}}};
  CHECK_THAT(failure(fabric, all), Contains("to which rank 1 has not come") &&
                                       Contains("in a circle: rank 0, stream 0 waits for rank 1, stream 0 waits for "
                                                "rank 0, stream 0"));
}

TEST_CASE("members that mean different collectives by one number are told") {
  const Fabric fabric = ring_fabric(2, gb_per_s(10), Seconds(0));
  Programs all;
  all.sets = {{1, 2}};
  all.patterns = {pattern_of(2, {phase_of(xor_shape, Flow::sequential, 2, 1)}, Volume(1e5))};
  all.collectives = {{"swap", 0, {0}}, {"other", 0, {0}}};
  all.programs = {Program{{{{TakePart{0, 0}}}}}, Program{{{{TakePart{1, 0}}}}}};
  all.of_rank = {0, 1};
  CHECK_THAT(failure(fabric, all), Contains("rank 1") && Contains("number 0 of its group, which to others is swap"));
}

TEST_CASE("a watch ends a run of programs") {
  const Fabric fabric = ring_fabric(8, gb_per_s(10), Seconds(1e-6));
  Programs all;
  all.sets = {{1, 8}};
  all.patterns = {ring_all_reduce(8, Volume(1e6), 16)};
  all.collectives = {{"ring", 0, {0}}};
  Program program{{{}}};
  for (std::uint32_t n = 0; n < 50; ++n) program.streams[0].push_back({TakePart{0, n}});
  all.programs = {program};
  all.of_rank.assign(8, 0);
  int asked = 0;
  EngineOptions options;
  options.repeats = false;
  options.watch = [&](const EngineProgress&) { return ++asked < 3; };
  const Result<ProgramsTimeline> ended = simulate(fabric, all, options);
  REQUIRE_FALSE(ended.ok());
  CHECK_THAT(to_text(ended.errors()), Contains("ended from outside"));
  CHECK(traffic(all).messages == 50 * 8 * 14 * 16);
}

TEST_CASE("a rank that ends at once is the first of its program to end") {
  // Without bytes the root is through at once, and the other rank when the latency of 1 us is over.
  Programs all;
  all.sets = {{1, 2}};
  all.patterns = {chain_broadcast(2, Volume(0))};
  all.collectives = {{"chain", 0, {0}}};
  all.programs = {Program{{{{TakePart{0, 0}}}}}};
  all.of_rank = {0, 0};
  const ProgramTimes times = run(ring_fabric(2, gb_per_s(10), Seconds(1e-6)), all).programs[0];
  CHECK(ps(times.first_end) == 0);
  CHECK(ps(times.last_end) == us(1));
}

TEST_CASE("what a rank computes goes at its rate while something slows it, by hand") {
  const Fabric fabric = ring_fabric(2, gb_per_s(10), Seconds(0));
  const auto kernel = [](std::int64_t microseconds, double rate) {
    return Instruction{Spend{Picoseconds(us(microseconds)), rate}};
  };
  const auto slowing = [](std::int64_t microseconds) {
    Instruction one = spend(microseconds);
    one.slows = true;
    return one;
  };
  const auto takes = [&](std::vector<Instruction> own, std::vector<Instruction> other) {
    Programs all;
    all.programs = {Program{{std::move(own), std::move(other)}}};
    all.of_rank = {0, 0};
    return run(fabric, all).programs[0].last_end.time_since_epoch() / Picoseconds(us(1));
  };
  // 10 at half the rate for 4: 2 are done, 8 are left.
  CHECK(takes({kernel(10, 0.5)}, {slowing(4)}) == 12);
  // All of it, however long that goes on; and one that slows nothing.
  CHECK(takes({kernel(10, 0.5)}, {slowing(40)}) == 20);
  CHECK(takes({kernel(10, 1)}, {slowing(40)}) == 10);
  CHECK(takes({kernel(10, 0.5)}, {spend(40)}) == 10);
  // From 2 on for 4, and for 2 more behind a gap of 1: 3 of the time are lost.
  CHECK(takes({kernel(10, 0.5)}, {spend(2), slowing(4), spend(1), slowing(2)}) == 13);
  // One after the other.
  CHECK(takes({kernel(10, 0.5), kernel(10, 0.25)}, {slowing(24)}) == 20 + 4 + 9);
  // A pass that is late by 2 waits so much less for its launches, and never less than nothing; one before it has
  // lost 4.
  const auto wait = [](std::int64_t microseconds) {
    Instruction one{Spend{Picoseconds(us(microseconds)), 1, 0, 0, true}};
    return one;
  };
  Instruction first = kernel(10, 0.5);
  first.begins_pass = true;
  CHECK(takes({first, wait(5)}, {slowing(4)}) == 12 + 3);
  CHECK(takes({first, wait(1)}, {slowing(4)}) == 12);
  CHECK(takes({kernel(8, 0.5), first, wait(5)}, {slowing(8), spend(4), slowing(4)}) == 12 + 12 + 3);
  // What another stream does beside it for 11 hides all but 1 of the 2.
  first.what = Spend{Picoseconds(us(10)), 0.5, 1, 2};
  CHECK(takes({first, wait(5)}, {slowing(4), spend(7)}) == 12 + 4);
}
