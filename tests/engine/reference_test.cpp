// The engine against the plain reference engine, and exchanges against their expansion: to the picosecond.
#include <catch2/catch.hpp>

#include <string>

#include "collcast/engine/engine.hpp"
#include "engine/random_cases.hpp"
#include "support/reference_engine.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr std::uint64_t seed = 20240607;
constexpr Sharing all_sharing[] = {Sharing::max_min, Sharing::fifo, Sharing::none};

std::string difference(const Timeline& engine, const Timeline& reference) {
  for (std::size_t i = 0; i < reference.ops.size(); ++i) {
    const Interval &a = engine.ops[i], &b = reference.ops[i];
    if (a.start != b.start || a.left != b.left || a.finish != b.finish)
      return "operation " + std::to_string(i) + " starts, leaves, finishes at " +
             std::to_string(a.start.time_since_epoch().count()) + ", " +
             std::to_string(a.left.time_since_epoch().count()) + ", " +
             std::to_string(a.finish.time_since_epoch().count()) + " ps, not " +
             std::to_string(b.start.time_since_epoch().count()) + ", " +
             std::to_string(b.left.time_since_epoch().count()) + ", " +
             std::to_string(b.finish.time_since_epoch().count());
  }
  for (std::size_t i = 0; i < reference.links.size(); ++i) {
    const LinkUse &a = engine.links[i], &b = reference.links[i];
    if (a.busy != b.busy) return "link " + std::to_string(i) + " is busy for another time";
    if (a.carried.value() != Approx(b.carried.value()).epsilon(1e-12))
      return "link " + std::to_string(i) + " carries " + std::to_string(a.carried.value()) + " bytes, not " +
             std::to_string(b.carried.value());
  }
  return engine.finish == reference.finish ? "" : "another finish";
}

void compare_random_schedules(int cases, Schedule (*draw)(Dice&, const Fabric&) = random_schedule) {
  for (int i = 0; i < cases; ++i) {
    Dice dice(seed + static_cast<std::uint64_t>(i));
    const Fabric fabric = random_fabric(dice);
    const Schedule schedule = draw(dice, fabric);
    for (const Sharing sharing : all_sharing) {
      INFO("seed " << seed + static_cast<std::uint64_t>(i) << ", sharing " << static_cast<int>(sharing));
      const Result<Timeline> timeline = simulate(fabric, schedule, {sharing});
      REQUIRE(timeline.ok());
      REQUIRE(difference(*timeline, reference_simulate(fabric, schedule, sharing)) == "");
    }
  }
}

/// Links of 1 B/s beside links of 1 TB/s; what takes so long that the clock may end (9.2e6 s) is left out.
void compare_extreme_rates(int cases) {
  int compared = 0;
  for (int i = 0; i < cases; ++i) {
    Dice dice(seed + static_cast<std::uint64_t>(i));
    const Fabric fabric = with_extreme_rates(dice, random_fabric(dice));
    const Schedule schedule = random_schedule(dice, fabric);
    double bytes = 0;  // all of them, one after the other, over the slowest link
    for (std::uint32_t op = 0; op < schedule.size(); ++op)
      if (const auto* transfer = std::get_if<Transfer>(&schedule.work(OpId(op)))) bytes += transfer->size.value();
    if (bytes > 9e6) continue;
    ++compared;
    for (const Sharing sharing : all_sharing) {
      INFO("seed " << seed + static_cast<std::uint64_t>(i) << ", sharing " << static_cast<int>(sharing));
      const Result<Timeline> timeline = simulate(fabric, schedule, {sharing});
      REQUIRE(timeline.ok());
      REQUIRE(difference(*timeline, reference_simulate(fabric, schedule, sharing)) == "");
    }
  }
  CHECK(compared > cases / 4);
}

/// Participants that become ready at different times, beside other traffic.
struct Setting {
  Schedule schedule;
  std::vector<OpId> ready;
};
Setting draw_setting(Dice& dice, const Fabric& fabric, int participants) {
  Setting setting{dice.roll(2) == 0 ? Schedule() : random_schedule(dice, fabric), {}};
  for (int i = 0; i < participants; ++i)
    setting.ready.push_back(setting.schedule.add(Delay{Seconds(dice.pick({0.0, 0.0, 1e-6, 3e-6}))}));
  return setting;
}

std::string compare_with_expansion(Dice& dice, Sharing sharing, const Fabric& fabric) {
  const Pattern pattern = random_pattern(dice, fabric);
  const TrafficClass traffic(dice.pick({0, 0, 1}), dice.pick<std::uint16_t>({1, 1, 1, 5}));
  Setting setting = draw_setting(dice, fabric, pattern.size());
  Schedule implicit = setting.schedule, spelled = setting.schedule;
  const OpId first = implicit.add_exchange(pattern, setting.ready, traffic);
  const std::vector<OpId> joins = append(spelled, pattern, setting.ready, traffic);

  const Result<Timeline> timeline = simulate(fabric, implicit, {sharing});
  if (!timeline) return to_text(timeline.errors());
  const Timeline reference = reference_simulate(fabric, spelled, sharing);
  for (std::uint32_t op = 0; op < setting.schedule.size(); ++op)
    if (timeline->ops[op].finish != reference.ops[op].finish) return "traffic beside the exchange ends at another time";
  for (std::uint32_t i = 0; i < joins.size(); ++i) {
    const Interval& part = timeline->ops[first.value() + i];
    if (part.finish != reference.ops[joins[i].value()].finish)
      return "participant " + std::to_string(i) + " ends at another time";
    if (part.start != reference.ops[setting.ready[i].value()].finish)
      return "a part starts when its participant is ready";
  }
  for (std::size_t l = 0; l < reference.links.size(); ++l)
    if (timeline->links[l].busy != reference.links[l].busy) return "a link is busy for another time";
  return "";
}

void compare_random_exchanges(int cases) {
  for (int i = 0; i < cases; ++i)
    for (const Sharing sharing : all_sharing) {
      Dice dice(seed + static_cast<std::uint64_t>(i));
      INFO("seed " << seed + static_cast<std::uint64_t>(i) << ", sharing " << static_cast<int>(sharing));
      const Fabric fabric = random_fabric(dice);
      REQUIRE(compare_with_expansion(dice, sharing, fabric) == "");
    }
}

}  // namespace

TEST_CASE("random schedules take the same picoseconds as in the reference engine") { compare_random_schedules(2000); }
TEST_CASE("messages one after the other take the same picoseconds as in the reference engine") {
  compare_random_schedules(2000, random_chains);
}
TEST_CASE("messages of many weights on one link take the same picoseconds as in the reference engine") {
  compare_random_schedules(2000, random_weighted_chains);
}
TEST_CASE("an exchange takes the same picoseconds as its expansion") { compare_random_exchanges(1000); }
TEST_CASE("rates that differ by 1e12: the same picoseconds as in the reference engine") { compare_extreme_rates(1000); }

// Half a minute together: run by the ctest engine_long (preset long); the shorter ones above run always.
TEST_CASE("100,000 random schedules take the same picoseconds as in the reference engine", "[.][long]") {
  compare_random_schedules(100'000);
}
TEST_CASE("30,000 random chains take the same picoseconds as in the reference engine", "[.][long]") {
  compare_random_schedules(30'000, random_chains);
}
TEST_CASE("30,000 random chains of weights take the same picoseconds as in the reference engine", "[.][long]") {
  compare_random_schedules(30'000, random_weighted_chains);
}
TEST_CASE("20,000 random exchanges take the same picoseconds as their expansion", "[.][long]") {
  compare_random_exchanges(20'000);
}
