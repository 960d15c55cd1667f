#include "workload/faults/period_run.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include "collcast/base/check.hpp"
#include "collcast/engine/slowed_work.hpp"

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
      const Picoseconds length = is_wait ? left_of(*wait, start) : length_from(op, start);
      if (is_wait) ++wait;
      if (length > clock_end - start.time_since_epoch()) return too_late(OpId(op));
      const SimTime finish = start + length;
      timeline_.ops[op] = {start, finish, finish};
      timeline_.finish = std::max(timeline_.finish, finish);
    }
    timeline_.counters.events = count;
    return std::move(timeline_);
  }

 protected:
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

  /// Of the launches, whatever else the pass has waited for since its begin.
  Picoseconds left_of(const LaunchWait& wait, SimTime now) const {
    return std::max(Picoseconds{}, timeline_.ops[wait.pass.value()].start + wait.launches - now);
  }

  /// What the engine says of its runs, at the place that it names.
  Diagnostic ended() const {
    return {in_simulation(), "the simulation was ended from outside", "nothing is known of its result"};
  }
  Diagnostic too_late(OpId op) const {
    return {in_simulation(),
            "'" + std::string(step_.schedule.name(op)) + "' would end after the simulation clock's 106 days",
            "check sizes, rates and durations"};
  }

  static Location in_simulation() { return {"simulation", 0, 0}; }

  const StepSchedule& step_;
  const PeriodTimes& times_;
  Timeline timeline_;
};

class SlowedRun : PeriodRun {
 public:
  SlowedRun(const StepSchedule& step, const PeriodTimes& times)
      : PeriodRun(step, times), waits_for_(step.schedule.size()), kernels_(step.compute.size()) {
    const auto count = static_cast<std::uint32_t>(step.schedule.size());
    index_classes(count);
    index_successors(count);
    for (const LaunchWait& wait : step.launch_waits) passes_.emplace_back(wait.pass.value(), wait.op.value());
    std::sort(passes_.begin(), passes_.end());
  }

  Result<Timeline> run(const EngineWatch& watch, std::vector<Picoseconds>* slowed) {
    constexpr std::uint64_t ask_every = 8'192;
    timeline_.ops.resize(step_.schedule.size());
    for (std::uint32_t op = 0; op < waits_for_.size(); ++op)
      if (waits_for_[op] == 0) start(op);
    for (std::size_t p = 0; p < times_.begins.size(); ++p)
      events_.push({times_.begins[p], Event::period_begins, static_cast<std::uint32_t>(p)});
    for (std::uint64_t events = 0; !events_.empty() && !too_late_; ++events) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      if (watch && events % ask_every == 0 && !watch({0, now_})) return ended();
      if (event.version == Event::period_begins)
        begin_period(event.op);
      else if (is_due(event))
        finish(event.op);
    }
    if (too_late_) return too_late(OpId(*too_late_));
    timeline_.counters.events = static_cast<std::int64_t>(timeline_.ops.size());
    if (slowed != nullptr) {
      slowed->clear();
      for (const Kernel& kernel : kernels_) slowed->push_back(kernel.slowed);
    }
    return std::move(timeline_);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Event {
    static constexpr std::uint32_t period_begins = ~std::uint32_t{0}, fixed = period_begins - 1;
    SimTime at;
    std::uint32_t version = fixed;  ///< of a kernel's end; else what it is
    std::uint32_t op = 0;
    friend bool operator<(const Event& a, const Event& b) {
      // The earliest is on top. What begins with a period is of that period.
      const bool a_later = a.version != period_begins, b_later = b.version != period_begins;
      return std::tie(a.at, a_later, a.op, a.version) > std::tie(b.at, b_later, b.op, b.version);
    }
  };
  /// What a class computes now, if that can be slowed.
  struct Kernel {
    std::uint32_t op = none, version = 0;
    SimTime begin, since;
    SlowedWork work;  ///< from `since` on
    int beside = 0;   ///< collectives that run
    Picoseconds slowed{};
    Picoseconds late{};  ///< what of it was seen, as no exchange ran beside the kernel for as long
  };

  void index_classes(std::uint32_t count) {
    class_of_stream_.assign(step_.schedule.streams().size(), none);
    for (std::size_t c = 0; c < step_.compute.size(); ++c)
      class_of_stream_[step_.compute[c].value()] = static_cast<std::uint32_t>(c);
    slowing_.assign(count, none);
    for (std::size_t s = 0; s < step_.slowings.size(); ++s)
      slowing_[step_.slowings[s].op.value()] = static_cast<std::uint32_t>(s);
  }

  void index_successors(std::uint32_t count) {
    first_.assign(count + std::size_t{1}, 0);
    for (std::uint32_t op = 0; op < count; ++op)
      for (const After& edge : step_.schedule.after(OpId(op))) ++first_[edge.op.value() + std::size_t{1}];
    for (std::uint32_t op = 0; op < count; ++op) first_[op + std::size_t{1}] += first_[op];
    successors_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t op = 0; op < count; ++op)
      for (const After& edge : step_.schedule.after(OpId(op))) {
        successors_[next[edge.op.value()]++] = op;
        ++waits_for_[op];
      }
  }

  std::uint32_t class_of(std::uint32_t op) const {
    const std::optional<StreamId> stream = step_.schedule.stream(OpId(op));
    return stream ? class_of_stream_[stream->value()] : none;
  }

  void start(std::uint32_t op) {
    timeline_.ops[op].start = now_;
    remember_passes(op);
    if (slowing_[op] != none)
      for (const std::size_t c : step_.slowings[slowing_[op]].classes)
        if (++kernels_[c].beside == 1) change(c, true);
    if (step_.rates[op] < 1) return start_kernel(op);
    const auto wait = std::lower_bound(step_.launch_waits.begin(), step_.launch_waits.end(), op,
                                       [](const LaunchWait& w, std::uint32_t o) { return w.op.value() < o; });
    const bool is_wait = wait != step_.launch_waits.end() && wait->op.value() == op;
    ends_at(op, Event::fixed, is_wait ? left_to_wait(*wait) : length_from(op, now_));
  }

  void start_kernel(std::uint32_t op) {
    Kernel& kernel = kernels_[class_of(op)];
    kernel.op = op;
    kernel.begin = kernel.since = now_;
    kernel.work = {times_.of[period_at(now_)][op],
                   kernel.beside > 0 ? SlowedWork::rate_of(step_.rates[op]) : SlowedWork::one};
    ends_at(op, ++kernel.version, kernel.work.rest());
  }

  void ends_at(std::uint32_t op, std::uint32_t version, Picoseconds after) {
    if (after > clock_end - now_.time_since_epoch()) {
      too_late_ = op;
      return;
    }
    events_.push({now_ + after, version, op});
  }

  /// What the kernel has done until now.
  void settle(Kernel& kernel) {
    kernel.work.go_on(now_ - kernel.since);
    kernel.since = now_;
  }

  void change(std::size_t c, bool beside) {
    Kernel& kernel = kernels_[c];
    if (kernel.op == none) return;
    settle(kernel);
    kernel.work.set_rate(beside ? SlowedWork::rate_of(step_.rates[kernel.op]) : SlowedWork::one);
    ends_at(kernel.op, ++kernel.version, kernel.work.rest());
  }

  void begin_period(std::uint32_t number) {
    for (Kernel& kernel : kernels_) {
      if (kernel.op == none) continue;
      settle(kernel);
      const Picoseconds left = kernel.work.left();
      if (left == Picoseconds{}) continue;
      kernel.work.set_left(rescaled(left, times_.of[number][kernel.op], times_.of[number + 1][kernel.op]));
      ends_at(kernel.op, ++kernel.version, kernel.work.rest());
    }
  }

  bool is_due(const Event& event) const {
    if (event.version == Event::fixed) return true;
    const Kernel& kernel = kernels_[class_of(event.op)];
    return kernel.op == event.op && kernel.version == event.version;
  }

  void finish(std::uint32_t op) {
    Interval& times = timeline_.ops[op];
    times = {times.start, now_, now_};
    timeline_.finish = std::max(timeline_.finish, now_);
    if (step_.rates[op] < 1) {
      Kernel& kernel = kernels_[class_of(op)];
      settle(kernel);
      kernel.slowed += kernel.work.lost();
      kernel.late += std::min(kernel.work.lost(), alone(op));
      kernel.op = none;
    }
    if (slowing_[op] != none)
      for (const std::size_t c : step_.slowings[slowing_[op]].classes)
        if (--kernels_[c].beside == 0) change(c, false);
    for (std::uint32_t s = first_[op]; s < first_[op + std::size_t{1}]; ++s)
      if (--waits_for_[successors_[s]] == 0) start(successors_[s]);
  }

  /// For how long the kernel that ends now has run without the exchange that began with it.
  Picoseconds alone(std::uint32_t op) const {
    const auto at = std::lower_bound(step_.hidden.begin(), step_.hidden.end(), op,
                                     [](const Hidden& h, std::uint32_t o) { return h.kernel.value() < o; });
    if (at == step_.hidden.end() || at->kernel.value() != op) return Picoseconds::max();
    const SimTime finish = timeline_.ops[at->exchange.value()].finish;
    return finish > timeline_.ops[at->exchange.value()].start ? now_ - finish : Picoseconds{};
  }

  /// How late the classes have been made when passes begin that end with a wait for launches.
  void remember_passes(std::uint32_t op) {
    for (auto pass = std::lower_bound(passes_.begin(), passes_.end(), std::pair(op, std::uint32_t{0}));
         pass != passes_.end() && pass->first == op; ++pass)
      late_before_[pass->second] = kernels_[class_of(pass->second)].late;
  }
  Picoseconds left_to_wait(const LaunchWait& wait) {
    Kernel& kernel = kernels_[class_of(wait.op.value())];
    const Picoseconds lost = kernel.late - late_before_[wait.op.value()];
    kernel.slowed -= std::min(lost, left_of(wait, now_ - lost));
    return left_of(wait, now_);
  }

  std::vector<std::uint32_t> waits_for_;           ///< operations to come, by OpId
  std::vector<std::uint32_t> first_, successors_;  ///< by OpId
  std::vector<std::uint32_t> class_of_stream_, slowing_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> passes_;  ///< first operation and wait
  std::unordered_map<std::uint32_t, Picoseconds> late_before_;   ///< by wait; only looked up
  std::vector<Kernel> kernels_;                                  ///< by class
  std::priority_queue<Event> events_;
  SimTime now_{};
  std::optional<std::uint32_t> too_late_;
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

void add_launches(StepSchedule& step, const StepSchedule& here) {
  check(step.launch_waits.size() == here.launch_waits.size(), "a step's passes are the same in all periods");
  for (std::size_t w = 0; w < step.launch_waits.size(); ++w)
    step.launch_waits[w].launches = std::max(step.launch_waits[w].launches, here.launch_waits[w].launches);
}

Result<Timeline> run_periods(const StepSchedule& step, const PeriodTimes& times, const EngineWatch& watch,
                             std::vector<Picoseconds>* slowed) {
  if (!step.slowings.empty()) return SlowedRun(step, times).run(watch, slowed);
  if (slowed != nullptr) slowed->assign(step.of_class.size(), {});
  return PeriodRun(step, times).run(watch);
}

}  // namespace collcast::workload
