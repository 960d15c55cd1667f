// Laws of whole steps, over drawn ones: what a rank is busy with and its idle time are the step, and what is sent is
// received.
#include <algorithm>
#include <numeric>
#include <utility>

#include "../support/small_fabrics.hpp"
#include "../support/spelled_programs.hpp"
#include "collcast/engine/programs.hpp"
#include "drawn_steps.hpp"
#include "timelines.hpp"
#include "workload/activity.hpp"
#include "workload/forecast_prices.hpp"
#include "workload/step_programs.hpp"
#include "workload/timeline.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

/// Of `ops` in any order: the time in which at least one of them is running, added up interval by interval.
Picoseconds busy_time(const Timeline& run, const std::vector<OpId>& ops) {
  std::vector<Interval> intervals;
  for (const OpId op : ops) intervals.push_back(run.ops[op.value()]);
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return std::pair(a.start, a.finish) < std::pair(b.start, b.finish);
  });
  Picoseconds busy{};
  SimTime until{};
  for (const Interval& i : intervals) {
    if (i.finish <= until) continue;
    busy += i.finish - std::max(i.start, until);
    until = i.finish;
  }
  return busy;
}

/// Sums of doubles, each a whole number of picoseconds.
Approx near(Seconds time) { return Approx(time.count()).epsilon(1e-12).margin(1e-14); }

Seconds busy_parts(const Breakdown& b) { return b.total() - b.bubble; }

/// The programs of a step, with collectives as the policy has them.
Programs programs_of(const StepInputs& in, const Fabric& fabric) {
  ForecastPrices any(fabric, {});
  const Result<StepPlan> plan = make_plan(in, fabric, any.by_estimate());
  REQUIRE(plan.ok());
  ForecastPrices prices(fabric, in_step(in));
  Result<Programs> programs = make_programs(in, fabric, prices, *plan);
  REQUIRE(programs.ok());
  return std::move(programs).value();
}

/// From the end of the instruction before it, by account.
void count(const Timeline& run, const std::vector<OpId>& ops, const std::vector<Instruction>& instructions,
           std::vector<Picoseconds>& accounts) {
  REQUIRE(ops.size() == instructions.size());
  SimTime before{};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const SimTime end = run.ops[ops[i].value()].finish;
    accounts[instructions[i].account] += end - before;
    before = end;
  }
}

/// Bytes out of and into each rank, message by message.
struct Moved {
  std::vector<double> sent, received;
};
Moved messages_of(const Schedule& schedule, int ranks) {
  Moved out{std::vector<double>(static_cast<std::size_t>(ranks)), std::vector<double>(static_cast<std::size_t>(ranks))};
  for (std::uint32_t op = 0; op < schedule.size(); ++op)
    if (const auto* t = std::get_if<collcast::Transfer>(&schedule.work(OpId(op)))) {
      out.sent[t->from.value()] += t->size.value();
      out.received[t->to.value()] += t->size.value();
    }
  return out;
}

/// The same by the links of a star: a rank's way up and its way down.
Moved on_links_of(const Fabric& fabric, const ProgramsTimeline& run, int ranks) {
  Moved out;
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(ranks); ++r) {
    const Rank other((r + 1) % static_cast<std::uint32_t>(fabric.rank_count()));
    std::vector<LinkId> away, here;
    fabric.route(Rank(r), other, 0, away);
    fabric.route(other, Rank(r), 0, here);
    out.sent.push_back(run.links[away.front().value()].carried.value());
    out.received.push_back(run.links[here.back().value()].carried.value());
  }
  return out;
}

double sum(const std::vector<double>& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

}  // namespace

TEST_CASE("folded: on every stage what it is busy with and its idle time are the step") {
  for_drawn_steps(200, 64, [](const StepInputs& in) {
    const StepPlan plan = planned(in);
    const StepSchedule step = spell_out(plan);
    const Timeline run = test::run(step, cluster(8));
    for (const std::vector<OpId>& ops : step.of_class) {
      const Picoseconds busy = busy_time(run, ops);
      const Picoseconds idle = run.finish - SimTime{} - busy;
      const Breakdown parts = break_down(step.schedule, run, ops);
      CHECK(to_seconds(busy).count() == near(busy_parts(parts)));
      CHECK(to_seconds(idle).count() == near(parts.bubble));
      CHECK(to_seconds(idle).count() == near(waits_of(step.schedule, run, ops).total()));
    }
  });
}

TEST_CASE("the parts of a forecast are its step, by either method, none below nothing") {
  for_drawn_steps(100, 64, [](const StepInputs& in) {
    for (const Method method : {Method::estimate, Method::simulate}) {
      const StepResult r = forecast(in, cluster(8), method);
      const Breakdown& b = r.breakdown;
      CHECK(b.total().count() == Approx(r.step.count()).epsilon(1e-12));
      for (const Seconds part : {b.compute, b.tp_exposed, b.pp_exposed, b.cp_exposed, b.ep_exposed, b.dp_exposed,
                                 b.bubble, b.optimizer, b.other})
        CHECK(part >= Seconds{});
      if (in.layout.pp == 1) CHECK(b.bubble == Seconds{});
    }
  });
}

TEST_CASE("unfolded: what every rank is charged with lasts until its end, and is what it does one by one") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  for_drawn_steps(60, 16, [&](const StepInputs& in) {
    const Programs programs = programs_of(in, fabric);
    const Result<ProgramsTimeline> by_rank = simulate(fabric, programs);
    REQUIRE(by_rank.ok());
    const SpelledPrograms spelled = spell_out(programs, false);
    const Result<Timeline> run = simulate(fabric, spelled.schedule);
    REQUIRE(run.ok());
    std::vector<std::vector<Picoseconds>> accounts(programs.programs.size(),
                                                   std::vector<Picoseconds>(programs.accounts));
    for (std::uint32_t rank = 0; rank < programs.ranks(); ++rank) {
      const std::uint16_t p = programs.of_rank[rank];
      std::vector<Picoseconds> own(programs.accounts);
      count(*run, spelled.ops[rank][0], programs.programs[p].streams[0], own);
      // What is left until the last rank is through is idle.
      const SimTime end = SimTime{} + std::accumulate(own.begin(), own.end(), Picoseconds{});
      CHECK(end >= by_rank->programs[p].first_end);
      CHECK(end <= by_rank->programs[p].last_end);
      CHECK(end <= by_rank->finish);
      for (std::size_t a = 0; a < own.size(); ++a) accounts[p][a] += own[a];
    }
    for (std::size_t p = 0; p < programs.programs.size(); ++p)
      for (std::size_t a = 0; a < programs.accounts; ++a) CHECK(by_rank->programs[p].accounts[a] == accounts[p][a]);
  });
}

TEST_CASE("unfolded: what is sent is received, by every rank, and links carry nothing else") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  for_drawn_steps(60, 16, [&](const StepInputs& in) {
    const Programs programs = programs_of(in, fabric);
    const Result<ProgramsTimeline> run = simulate(fabric, programs);
    REQUIRE(run.ok());
    const Moved moved = messages_of(spell_out(programs, true).schedule, in.layout.world());
    const Moved carried = on_links_of(fabric, *run, in.layout.world());
    CHECK(sum(carried.sent) == Approx(sum(carried.received)).epsilon(1e-12));
    for (std::size_t r = 0; r < moved.sent.size(); ++r) {
      CHECK(carried.sent[r] == Approx(moved.sent[r]).epsilon(1e-12));
      CHECK(carried.received[r] == Approx(moved.received[r]).epsilon(1e-12));
      // What goes on to the next stage comes back as gradients; a ring or a direct exchange gives what it takes, but
      // for the sizes of shares that do not divide.
      CHECK(moved.sent[r] == Approx(moved.received[r]).epsilon(1e-6));
    }
  });
}

TEST_CASE("unfolded: ranks send what the step's collectives are counted with") {
  const Fabric fabric = star_fabric(64, Bandwidth(50e9), Seconds(1e-6));
  int compared = 0;
  for_drawn_steps(200, 16, [&](const StepInputs& in) {
    if (in.layout.pp > 1) return;  // the rows are one stage's, and messages between stages are none
    const Moved moved = messages_of(spell_out(programs_of(in, fabric), true).schedule, in.layout.world());
    double counted = 0;
    for (const CollectiveCost& c : forecast(in, fabric, Method::estimate).collectives)
      counted += volume(c.request.size).value() * static_cast<double>(c.count) *
                 bus_factor(c.request.kind, c.request.group.size());
    CHECK(sum(moved.sent) == Approx(counted * in.layout.world()).epsilon(1e-6));
    ++compared;
  });
  CHECK(compared > (sanitized ? 0 : 10));
}
