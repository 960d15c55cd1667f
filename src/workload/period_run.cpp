#include "workload/period_run.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "collcast/base/check.hpp"

namespace collcast::workload {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr Picoseconds clock_end{std::numeric_limits<std::int64_t>::max()};

/// left * to / from, rounded up.
Picoseconds rescaled(Picoseconds left, Picoseconds from, Picoseconds to) {
  if (from == to) return left;
  const auto divisor = static_cast<Wide>(from.count());
  const Wide scaled = static_cast<Wide>(left.count()) * static_cast<Wide>(to.count()) + (divisor - 1);
  return std::min(
      clock_end,
      Picoseconds(static_cast<std::int64_t>(std::min(scaled / divisor, static_cast<Wide>(clock_end.count())))));
}

class PeriodRun {
 public:
  PeriodRun(const StepSchedule& step, const PeriodTimes& times) : step_(step), times_(times) {
    check(times_.of.size() == times_.begins.size() + 1, "every period has times");
  }

  Result<Timeline> run(const EngineWatch& watch) {
    constexpr std::uint32_t ask_every = 8'192;
    const auto count = static_cast<std::uint32_t>(step_.schedule.size());
    timeline_.ops.resize(count);
    auto wait = step_.launch_waits.begin();
    for (std::uint32_t op = 0; op < count; ++op) {
      if (watch && op % ask_every == 0 && !watch({0, timeline_.finish})) return ended();
      const bool is_wait = wait != step_.launch_waits.end() && wait->op == OpId(op);
      const SimTime start = ready(OpId(op));
      const Picoseconds length = is_wait ? launch_wait(*wait, start) : length_from(op, start);
      if (is_wait) ++wait;
      if (length > clock_end - start.time_since_epoch()) return too_late(OpId(op));
      const SimTime finish = start + length;
      timeline_.ops[op] = {start, finish, finish};
      timeline_.finish = std::max(timeline_.finish, finish);
    }
    timeline_.counters.events = count;
    return std::move(timeline_);
  }

 private:
  SimTime ready(OpId op) const {
    SimTime at{};
    for (const After& edge : step_.schedule.after(op)) at = std::max(at, timeline_.ops[edge.op.value()].finish);
    return at;
  }

  std::size_t period_at(SimTime at) const {
    return static_cast<std::size_t>(std::upper_bound(times_.begins.begin(), times_.begins.end(), at) -
                                    times_.begins.begin());
  }

  Picoseconds length_from(std::uint32_t op, SimTime start) const {
    std::size_t period = period_at(start);
    SimTime now = start;
    Picoseconds left = times_.of[period][op];
    while (period < times_.begins.size() && left > times_.begins[period] - now) {
      left -= times_.begins[period] - now;
      now = times_.begins[period];
      left = rescaled(left, times_.of[period][op], times_.of[period + 1][op]);
      ++period;
    }
    return left > clock_end - (now - start) ? clock_end : left + (now - start);
  }

  Picoseconds launch_wait(const LaunchWait& wait, SimTime start) const {
    Picoseconds most{};
    for (std::size_t p = period_at(timeline_.ops[wait.pass.value()].start); p <= period_at(start); ++p)
      most = std::max(most, times_.of[p][wait.op.value()]);
    return most;
  }

  Diagnostic ended() const { return {{}, "the simulation was ended from outside", "nothing is known of its result"}; }
  Diagnostic too_late(OpId op) const {
    return {{},
            "'" + std::string(step_.schedule.name(op)) + "' would end after the simulation clock's 106 days",
            "check sizes, rates and durations"};
  }

  const StepSchedule& step_;
  const PeriodTimes& times_;
  Timeline timeline_;
};

}  // namespace

std::vector<Picoseconds> times_of(const Schedule& schedule) {
  std::vector<Picoseconds> out;
  out.reserve(schedule.size());
  for (std::uint32_t op = 0; op < schedule.size(); ++op) {
    const Work& work = schedule.work(OpId(op));
    const auto* compute = std::get_if<Compute>(&work);
    out.push_back(to_picoseconds(compute != nullptr ? compute->duration : std::get<Delay>(work).duration));
  }
  return out;
}

Result<Timeline> run_periods(const StepSchedule& step, const PeriodTimes& times, const EngineWatch& watch) {
  return PeriodRun(step, times).run(watch);
}

}  // namespace collcast::workload
