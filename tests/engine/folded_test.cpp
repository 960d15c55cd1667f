// Random patterns on machines with symmetries, folded: as plain, to the last picosecond.
#include "collcast/engine/folded.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "support/dice.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// Cables whose rates and latencies repeat every few ranks, so that some ranks are alike and others are not.
class Machine {
 public:
  Machine(Dice& dice, int ranks) : dice_(dice), ranks_(ranks), period_(dice.pick({1, 1, 2, 4})) {
    for (int i = 0; i < period_; ++i) {
      rate_.emplace_back(dice.pick({1e9, 1e9, 2e9, 10e9, 7.3e9}));
      latency_.emplace_back(dice.pick({0.0, 0.0, 1e-7, 3.333e-7, 2e-6}));
    }
  }
  Fabric fabric() {
    std::vector<Cable> cables;
    const int each = dice_.pick({1, 4, ranks_});  // ranks of a switch
    const int switches = ranks_ / each;
    for (int r = 0; r < ranks_; ++r) cables.push_back(cable(r, ranks_ + r / each, r));
    if (switches == 1) return cabled_fabric(ranks_, 1, cables);
    const bool has_top = dice_.roll(2) == 0;  // or the switches are a ring
    for (int s = 0; s < switches; ++s)
      cables.push_back(cable(ranks_ + s, ranks_ + (has_top ? switches : (s + 1) % switches), each == 1 ? s : 0));
    return cabled_fabric(ranks_, switches + has_top, cables);
  }

 private:
  Cable cable(int a, int b, int i) const {
    const auto of = static_cast<std::size_t>(i % period_);
    return {a, b, rate_[of], latency_[of]};
  }

  Dice& dice_;
  int ranks_, period_;
  std::vector<Bandwidth> rate_;
  std::vector<Seconds> latency_;
};

// Shapes beside those of support/small_shapes.hpp, for sub-groups of the lane as they are.

void carry_nothing_folded(const Phase&, Position, int, std::vector<Piece>&) {}
int all_others_folded(const Phase& p, Position) { return p.members - 1; }
/// Unequal sends, and with argument 1 each after as many receives.
Hop to_other_folded(const Phase& p, Position v, int j) {
  const int after = p.flow == Flow::forwarding ? j * p.argument : 0;
  return {p.flow == Flow::concurrent ? 0 : j, p.at(v, (p.index(v) + 1 + j) % p.members), j, after, p.width + j % 2};
}
int one(const Phase&, Position) { return 1; }
Hop across(const Phase& p, Position v, int) { return {0, p.at(v, p.members - 1 - p.index(v)), 0, 0, p.width}; }

const Shape everyone{"everyone", all_others_folded, all_others_folded, to_other_folded, carry_nothing_folded};
const Shape swaps{"swaps", one, one, across, carry_nothing_folded};

/// Over the whole lane, or over sub-groups of it.
Phase random_phase(Dice& dice, int size) {
  Phase phase;
  phase.members = dice.pick({size, size, 2, 4, 8});
  if (size % phase.members != 0) phase.members = size;
  phase.stride = dice.pick({1, size / phase.members});
  phase.width = 1 + dice.roll(2);
  phase.argument = dice.roll(2);
  phase.flow = dice.pick({Flow::sequential, Flow::concurrent, Flow::forwarding});
  switch (dice.roll(7)) {
    case 0:
    case 1:
      phase.shape = &ring_shape;
      phase.flow = Flow::circulating;
      phase.rounds = 1 + dice.roll(2 * phase.members);
      return phase;
    case 2:
      phase.shape = &everyone;
      break;
    case 3:
      phase.shape = &fan_out_shape;
      break;
    case 4:
      phase.shape = &fan_in_shape;
      break;
    case 5:
      phase.shape = &chain_shape;
      phase.flow = Flow::forwarding;
      break;
    default:
      phase.shape = &swaps;
      break;
  }
  phase.rounds = phase.members;
  return phase;
}

/// Turned, turned around, or spread.
std::vector<int> random_order(Dice& dice, int size) {
  std::vector<int> order;
  const int turn = dice.roll(size), step = dice.pick({1, 1, size - 1, 3});
  for (int v = 0; v < size; ++v) order.push_back((turn + v * step) % size);
  std::sort(order.begin(), order.end());
  if (std::adjacent_find(order.begin(), order.end()) != order.end()) return {};
  for (int v = 0; v < size; ++v) order[static_cast<std::size_t>(v)] = (turn + v * step) % size;
  return order;
}

Pattern random_pattern(Dice& dice, int ranks) {
  Pattern pattern;
  pattern.algorithm = "random";
  const int half = dice.pick({1, 1, 2});
  const int size = ranks / half;
  std::vector<Rank> group;
  const auto order = random_order(dice, size);
  for (int i = 0; i < size; ++i)
    group.emplace_back(static_cast<std::uint32_t>(half * (order.empty() ? i : order[static_cast<std::size_t>(i)])));
  pattern.group = Group::listed(group);
  pattern.chunks = 1 + dice.roll(3);
  for (int lanes = dice.roll(10) == 0 ? 0 : 1 + dice.roll(3); lanes > 0; --lanes) {
    Lane lane;
    if (dice.roll(2) == 0) lane.order = random_order(dice, size);
    lane.block = Volume(dice.pick({0.0, 1.0, 1e3, 1e5, 1e6, 1.0 / 3, 12345.6}));
    lane.route_lane = dice.roll(2);
    for (int phases = dice.roll(4); phases > 0; --phases) lane.phases.push_back(random_phase(dice, size));
    pattern.lanes.push_back(std::move(lane));
  }
  return pattern;
}

/// Finish times of patterns that run at once.
std::vector<SimTime> plain(const Fabric& fabric, const std::vector<Pattern>& patterns, Sharing sharing) {
  Schedule schedule;
  std::vector<OpId> first;
  for (const Pattern& pattern : patterns) first.push_back(schedule.add_exchange(pattern));
  const Timeline timeline = simulate(fabric, schedule, {sharing}).value();
  std::vector<SimTime> finish(patterns.size());
  for (std::size_t p = 0; p < patterns.size(); ++p)
    for (int i = 0; i < patterns[p].size(); ++i)
      finish[p] = std::max(finish[p], timeline.ops[first[p].value() + static_cast<std::uint32_t>(i)].finish);
  return finish;
}

}  // namespace

TEST_CASE("random patterns at once, folded, take what they take position by position") {
  int folded = 0, shared = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Dice dice(seed);
    const int ranks = 8 * (2 + dice.roll(3));
    const Fabric fabric = Machine(dice, ranks).fabric();
    std::vector<Pattern> patterns;
    for (int count = 1 + dice.roll(3); count > 0; --count) patterns.push_back(random_pattern(dice, ranks));
    const Sharing sharing = dice.pick({Sharing::max_min, Sharing::max_min, Sharing::none});
    const auto run = simulate_folded(fabric, patterns, {sharing});
    if (!run) continue;
    INFO("seed " << seed);
    ++folded;
    shared += sharing == Sharing::max_min && (patterns.size() > 1 || !has_recurrence(fabric, patterns.front()));
    REQUIRE(*run);
    CHECK((*run)->finish == plain(fabric, patterns, sharing));
    std::int64_t messages = 0;
    for (const Pattern& pattern : patterns) messages += traffic(pattern).messages;
    CHECK((*run)->messages == messages);
    CHECK((*run)->stepped <= messages);
  }
  CHECK(folded > 400);
  CHECK(shared > 200);
}

TEST_CASE("a pattern of which nobody sends is over at once, folded or not") {
  const Fabric fabric = star_fabric(16, Bandwidth(1e9), Seconds(1e-6));
  Pattern nothing;
  nothing.algorithm = "nothing";
  nothing.group = Group::strided(Rank(0), 1, 16);
  nothing.lanes.resize(2);
  nothing.lanes[1].order = {3, 2, 1, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};  // who is first is another
  const auto run = simulate_folded(fabric, {&nothing, 1});
  REQUIRE(run);
  REQUIRE(*run);
  CHECK((*run)->finish.front() == SimTime{});
  CHECK((*run)->messages == 0);
  CHECK((*run)->classes == 2);  // one of each lane
}

TEST_CASE("a pattern that does not match is told as it is without folding, of whatever size") {
  Shape short_of_one = ring_shape;
  short_of_one.receives = [](const Phase& phase, Position) { return phase.rounds + 1; };
  Pattern pattern = pattern_of(16, {ring_phase(16, 2)}, Volume(10));
  pattern.lanes[0].phases[0].shape = &short_of_one;
  // Ranks in another order than positions: who is first of a class by its position is not by its rank.
  pattern.lanes[0].order = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10};
  const Fabric fabric = star_fabric(16, Bandwidth(1e9), Seconds(1e-6));
  REQUIRE(messages_stepped_folded(fabric, {&pattern, 1}) == 2);
  // So few that fail are left to the plain run, whose words then count.
  CHECK_FALSE(simulate_folded(fabric, {&pattern, 1}));
  CHECK_FALSE(simulate(fabric, pattern).ok());
  pattern.chunks = 1 << 20;  // 32 M messages
  const auto many = simulate_folded(fabric, {&pattern, 1});
  REQUIRE(many);
  REQUIRE_FALSE(many->ok());
  CHECK(many->errors().front().message.find("stands for all that do the same") != std::string::npos);
}
