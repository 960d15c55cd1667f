// Jitter: what is drawn, that nothing but (seed, rank, operation) decides it, and what it does to steps.
#include "workload/faults/jitter.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "../support/dice.hpp"
#include "collcast/workload/faulty_step.hpp"
#include "faulty.hpp"
#include "inputs.hpp"
#include "timelines.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

const std::vector<JitterShape> shapes{JitterShape::lognormal, JitterShape::normal, JitterShape::exponential};

MachineFault jitter_of(Gpus gpus, double spread, int seed = 1, JitterShape shape = JitterShape::lognormal) {
  GpuFault fault{gpus};
  fault.jitter = Jitter{spread, shape, seed};
  return {fault, {"f", 1, 1}};
}

double number(std::uint64_t factor) { return static_cast<double>(factor) / static_cast<double>(one_factor); }

/// Factors of many ranks and operations.
std::vector<double> factors(const Jitter& jitter, int count) {
  const JitterDraw draw(jitter);
  std::vector<double> out;
  for (int i = 0; i < count; ++i)
    out.push_back(number(draw.factor(0, Rank(static_cast<std::uint32_t>(i % 64)), static_cast<std::uint64_t>(i))));
  return out;
}

double mean(const std::vector<double>& all) {
  double sum = 0;
  for (const double one : all) sum += one;
  return sum / static_cast<double>(all.size());
}

double deviation(const std::vector<double>& all) {
  const double middle = mean(all);
  double sum = 0;
  for (const double one : all) sum += (one - middle) * (one - middle);
  return std::sqrt(sum / static_cast<double>(all.size()));
}

/// Share of draws up to a limit.
double below(const std::vector<double>& all, double limit) {
  const auto count = std::count_if(all.begin(), all.end(), [&](double one) { return one <= limit; });
  return static_cast<double>(count) / static_cast<double>(all.size());
}

double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

Result<FaultyStep> tried(const StepInputs& in, const Fabric& fabric, const std::vector<MachineFault>& faults,
                         Method method, int draws) {
  return forecast_faulty_step(in, fabric, faults, {}, method, nullptr, {}, {}, draws);
}

FaultyStep drawn(const StepInputs& in, const Fabric& fabric, const std::vector<MachineFault>& faults, int draws = 1) {
  Result<FaultyStep> step = tried(in, fabric, faults, Method::both, draws);
  INFO(to_text(step.errors()));
  REQUIRE(step.ok());
  return std::move(step).value();
}

}  // namespace

TEST_CASE("draws have the mean 1 and the deviation that was asked for") {
  constexpr int count = 40'000;
  for (const JitterShape shape : shapes) {
    for (const double spread : {0.0001, 0.03, 0.25, 1.0}) {
      // A normal one is cut off at 0 and 2, which takes of its deviation: at 1 the half.
      if (shape == JitterShape::normal && spread > 0.3) continue;
      CAPTURE(to_string(shape), spread);
      const std::vector<double> all = factors({spread, shape, 7}, count);
      // Four standard errors of a mean; those of a deviation are spread sqrt((k - 1) / 4n), k the kurtosis: 9 of an
      // exponential, of a lognormal at 1 far more, and one draw counts there.
      CHECK(mean(all) == Approx(1).margin(4 * spread / std::sqrt(count)));
      if (spread < 1) CHECK(deviation(all) == Approx(spread).epsilon(4 * std::sqrt(8.0 / 4 / count) + 0.005));
      CHECK(*std::min_element(all.begin(), all.end()) >= 0);
    }
  }
}

TEST_CASE("draws are distributed as they are called") {
  constexpr int count = 40'000;
  const double margin = 4 * 0.5 / std::sqrt(count);  // four standard errors of a share
  const double p = 0.2, s = std::sqrt(std::log(1 + p * p));
  const std::vector<double> exponential = factors({p, JitterShape::exponential, 1}, count),
                            lognormal = factors({p, JitterShape::lognormal, 2}, count),
                            normal = factors({p, JitterShape::normal, 3}, count);
  for (const double z : {-2.0, -1.0, -0.3, 0.0, 0.5, 1.0, 2.0, 3.0}) {
    CAPTURE(z);
    CHECK(below(normal, 1 + p * z) == Approx(normal_below(z)).margin(margin));
    CHECK(below(lognormal, std::exp(s * z - s * s / 2)) == Approx(normal_below(z)).margin(margin));
    if (z > -1) CHECK(below(exponential, 1 + p * z) == Approx(1 - std::exp(-(z + 1))).margin(margin));
  }
  CHECK(*std::min_element(exponential.begin(), exponential.end()) >= 1 - p);
  const std::vector<double> wide = factors({1.0, JitterShape::normal, 3}, count);
  CHECK(*std::min_element(wide.begin(), wide.end()) == 0);
  CHECK(*std::max_element(wide.begin(), wide.end()) == 2);
  CHECK(mean(wide) == Approx(1).margin(4 / std::sqrt(count)));
}

TEST_CASE("draws are these numbers on every machine") {
  // Written down once: integers, so that no compiler and no library has a say.
  const auto draw = [](JitterShape shape, double spread) {
    return JitterDraw({spread, shape, 7}).factor(0, Rank(3), 0x1234U);
  };
  CHECK(draw(JitterShape::lognormal, 0.03) == 4380422017U);
  CHECK(draw(JitterShape::normal, 0.03) == 4381534340U);
  CHECK(draw(JitterShape::exponential, 0.03) == 4188482521U);
  CHECK(JitterDraw({0.03, JitterShape::lognormal, 7}).factor(1, Rank(3), 5) ==
        JitterDraw({0.03, JitterShape::lognormal, 8}).factor(0, Rank(3), 5));
  for (const JitterShape shape : shapes) CHECK(draw(shape, 0) == one_factor);
}

TEST_CASE("a time of a factor is the nearest picosecond") {
  CHECK(times_factor(Picoseconds(10), one_factor) == Picoseconds(10));
  CHECK(times_factor(Picoseconds(10), one_factor + one_factor / 25) == Picoseconds(10));
  CHECK(times_factor(Picoseconds(10), one_factor + one_factor / 10) == Picoseconds(11));
  CHECK(times_factor(Picoseconds(10), 0) == Picoseconds(0));
  CHECK(times_factor(Picoseconds(std::numeric_limits<std::int64_t>::max()), 2 * one_factor) ==
        Picoseconds(std::numeric_limits<std::int64_t>::max()));
}

TEST_CASE("the slowest of k exponentials is H_k times as slow as one, and the join of k ranks waits for it") {
  // E max of k draws of -ln U is 1 + 1/2 + ... + 1/k, their variance less than pi^2 / 6.
  constexpr int count = 4'000;
  double harmonic = 0;
  for (int k = 1; k <= 64; ++k) {
    harmonic += 1.0 / k;
    if ((k & (k - 1)) != 0) continue;
    StepSchedule step;
    std::vector<StreamId> streams;
    for (int r = 0; r < k; ++r)
      streams.push_back(step.schedule.add_stream({"compute", Rank(static_cast<std::uint32_t>(r))}));
    std::vector<After> joined;
    for (int op = 0; op < count; ++op) {
      std::vector<After> next;
      for (int r = 0; r < k; ++r)
        next.push_back({step.schedule.add(streams[static_cast<std::size_t>(r)],
                                          Compute{Rank(static_cast<std::uint32_t>(r)), Seconds(1e-6)}, joined,
                                          {"op " + std::to_string(op), "forward"})});
      joined = {{step.schedule.add(Delay{}, next)}};
    }
    const std::vector<bool> ranks(static_cast<std::size_t>(k), true);
    const StepDraws draws(step, {{{1.0, JitterShape::exponential, 7}, ranks, {true}}});
    const Result<Timeline> run = run_periods(step, draws.drawn({{}, {times_of(step.schedule)}}, 0));
    REQUIRE(run.ok());
    CAPTURE(k);
    CHECK(to_seconds(run->finish).count() / (count * 1e-6) == Approx(harmonic).margin(4 * std::sqrt(1.645 / count)));
  }
}

TEST_CASE("every operation of every rank draws for itself") {
  const std::uint64_t seed = 20261126;
  Dice dice(seed);
  const CollectiveTime time = priced(1e-5);
  const Fabric fabric = cluster(8);
  int named_twice = 0;
  for (int round = 0; round < 40; ++round) {
    const StepInputs in = random_inputs(dice);
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    CAPTURE(seed, round);
    const StepSchedule spelled = spell_out(planned(in, time));
    const PeriodTimes second{{}, {std::vector<Picoseconds>(spelled.schedule.size(), Picoseconds(1'000'000'000'000))}};
    const std::vector<bool> all(static_cast<std::size_t>(in.layout.world()), true);
    const PeriodTimes drawn = StepDraws(spelled, {{{1.0, JitterShape::lognormal, 7}, all, {true}}}).drawn(second, 0);
    std::set<std::pair<Rank, std::string_view>> names;
    std::set<Picoseconds> times;
    std::size_t computes = 0;
    for (std::uint32_t op = 0; op < spelled.schedule.size(); ++op)
      if (const auto* compute = std::get_if<Compute>(&spelled.schedule.work(OpId(op)))) {
        const bool waits = std::any_of(spelled.launch_waits.begin(), spelled.launch_waits.end(),
                                       [&](const LaunchWait& wait) { return wait.op == OpId(op); });
        CHECK((drawn.of[0][op] == second.of[0][op]) == waits);
        if (waits) continue;
        ++computes;
        names.emplace(compute->rank, spelled.schedule.name(OpId(op)));
        times.insert(drawn.of[0][op]);
      } else {
        CHECK(drawn.of[0][op] == second.of[0][op]);
      }
    CHECK(times.size() == computes);
    if (names.size() < computes) ++named_twice;
  }
  CHECK(named_twice > 0);
}

TEST_CASE("jitter of 0 % is none, one seed is one step, and another is another") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
  const FaultyStep healthy = forecast_faulty(in, fabric, {});
  for (const JitterShape shape : shapes) {
    CAPTURE(to_string(shape));
    const FaultyStep none = drawn(in, fabric, {jitter_of(Gpus::all(), 0, 1, shape)});
    CHECK(none.result.step == healthy.result.step);
    CHECK(none.effect.classes.size() == healthy.effect.classes.size());
    CHECK(!none.effect.jitter);
    const FaultyStep one = drawn(in, fabric, {jitter_of(Gpus::all(), 0.05, 7, shape)}, 3),
                     again = drawn(in, fabric, {jitter_of(Gpus::all(), 0.05, 7, shape)}),
                     other = drawn(in, fabric, {jitter_of(Gpus::all(), 0.05, 8, shape)});
    CHECK(one.result.step == again.result.step);
    CHECK(one.result.step != other.result.step);
    REQUIRE(one.effect.jitter);
    CHECK(one.effect.jitter->without == healthy.result.step);
    REQUIRE(one.effect.jitter->draws.size() == 3);
    CHECK(one.effect.jitter->draws[0] == one.result.step);
    CHECK(one.effect.jitter->draws[1] == other.result.step);
    CHECK(one.effect.classes.size() == 16);
    CHECK(one.result.estimate == healthy.result.estimate);
    for (const RankClassTimes& rank : one.effect.classes)
      CHECK(rank.waits.total().count() == Approx(rank.breakdown.bubble.count()).margin(1e-15));
  }
}

TEST_CASE("a watch that ends the draws leaves those that are known") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
  const std::vector<MachineFault> faults{jitter_of(Gpus::all(), 0.05, 7)};
  const std::vector<Seconds> all = drawn(in, fabric, faults, 4).effect.jitter->draws;
  // Every simulation is asked about before its first event: the last question is in the last draw.
  int asked = 0, most = std::numeric_limits<int>::max();
  EngineOptions engine;
  engine.watch = [&](const EngineProgress&) { return ++asked < most; };
  const auto watched = [&] {
    return forecast_faulty_step(in, fabric, faults, {}, Method::both, nullptr, engine, {}, 4);
  };
  REQUIRE(watched().ok());
  most = std::exchange(asked, 0);
  const Result<FaultyStep> cut = watched();
  INFO(to_text(cut.errors()));
  REQUIRE(cut.ok());
  const std::vector<Seconds>& known = cut->effect.jitter->draws;
  REQUIRE(known.size() == 3);
  CHECK(std::equal(known.begin(), known.end(), all.begin()));
  CHECK(cut->result.step == all.front());
  // Before the first draw is through nothing is known.
  asked = 0;
  most = 1;
  CHECK_FALSE(watched().ok());
}

TEST_CASE("who jitters is one like no other; all other ranks stay folded, and every rank for itself is the same") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
  const FaultyStep one = drawn(in, fabric, {jitter_of(5, 0.1)});
  CHECK(one.effect.classes.size() > 2);
  CHECK(one.effect.classes.size() < 16);
  // With a jitter of a hundred millionth of a percent beside it all ranks are apart, and its draws are of no
  // picosecond.
  FaultyStep all = drawn(in, fabric, {jitter_of(5, 0.1), jitter_of({0, 4}, 1e-10), jitter_of({6, 15}, 1e-10)});
  CHECK(all.effect.classes.size() == 16);
  CHECK(all.result.step == one.result.step);
  // A range, a node and all of the machine say the same.
  const FaultyStep node = drawn(in, fabric, {jitter_of({1, 1, true}, 0.1)}),
                   range = drawn(in, fabric, {jitter_of({8, 15}, 0.1)});
  CHECK(node.result.step == range.result.step);
  CHECK(drawn(in, fabric, {jitter_of({0, 1, true}, 0.1)}).result.step ==
        drawn(in, fabric, {jitter_of(Gpus::all(), 0.1)}).result.step);
  // And the order in which they are given does not matter.
  const MachineFault a = jitter_of({0, 3}, 0.1, 2), b = jitter_of(2, 0.2, 3, JitterShape::exponential),
                     c = slow_gpu(6, 0.9);
  CHECK(drawn(in, fabric, {a, b, c}).result.step == drawn(in, fabric, {c, b, a}).result.step);
}

TEST_CASE("jitter costs a step, the more the wider it is and the more ranks meet") {
  // Each stretch of a TP group ends with its slowest: the mean of the slowest of 8 normals is 1.42 deviations above.
  const Fabric fabric = cluster(4);
  double before = 0;
  for (const int tp : {1, 2, 4, 8}) {
    StepInputs in = inputs(small_model(), layout(tp, 1, 1), 512, 4);
    const FaultyStep step = drawn(in, fabric, {jitter_of(Gpus::all(), 0.1, 1, JitterShape::normal)}, 4);
    double slower = 0;
    for (const Seconds draw : step.effect.jitter->draws) slower += draw / step.effect.jitter->without / 4;
    const double busy = step.effect.jitter->busy_without / step.effect.jitter->without;
    CAPTURE(tp, busy);
    CHECK((slower > 1.01 || tp == 1));
    CHECK(slower < 1 + 0.1 * 1.6);
    if (tp == 1) CHECK(slower == Approx(1).margin(0.02));
    if (tp > 1) CHECK(step.effect.jitter->waits.tp > step.effect.jitter->waits_without.tp);
    before = slower;
  }
  CHECK(before > 1);
  const StepInputs in = inputs(small_model(), layout(4, 1, 2), 512, 4);
  Seconds last{};
  for (const double spread : {0.0, 0.02, 0.1, 0.3}) {
    const FaultyStep step = drawn(in, fabric, {jitter_of(Gpus::all(), spread)});
    CHECK(step.result.step > last);
    last = step.result.step;
  }
}

TEST_CASE("jitter may begin and end, too") {
  const Fabric fabric = cluster(2);
  const StepInputs in = inputs(small_model(), layout(2, 2, 4), 512, 4);
  const Seconds healthy = forecast_faulty(in, fabric, {}).result.step;
  MachineFault late = jitter_of(Gpus::all(), 0.2), half = late, early = late;
  late.from = healthy;
  half.from = 0.5 * healthy;
  early.until = 0.5 * healthy;
  CHECK(drawn(in, fabric, {late}).result.step == healthy);
  const Seconds always = drawn(in, fabric, {jitter_of(Gpus::all(), 0.2)}).result.step;
  for (const MachineFault& fault : {half, early}) {
    const Seconds step = drawn(in, fabric, {fault}).result.step;
    CHECK(step > healthy);
    CHECK(step < always);
  }
}

TEST_CASE("jitter that cannot be simulated is refused where it stands") {
  const Fabric fabric = cluster(4);
  const std::vector<MachineFault> all{jitter_of(Gpus::all(), 0.1)};
  StepInputs in = inputs(small_model(), layout(8, 1, 4), 512, 4);
  const auto refusal = [&](Method method, int draws) {
    return to_text(tried(in, fabric, all, method, draws).errors());
  };
  CHECK(refusal(Method::estimate, 1).find("f:1:1: error: jitter has no closed form") == 0);
  in = inputs(small_model(), layout(8, 1, 4), 512, 400);
  CHECK(refusal(Method::both, 10'000).find("f:1:1: error: 10000 draws of ") == 0);
  in = inputs(small_model(), layout(8, 1, 4), 512, 4'000);
  CHECK(refusal(Method::both, 1).find("f:1:1: error: jitter makes each of 32 ranks unlike the others") == 0);
}
