#include "engine/spelled_threads.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/check.hpp"
#include "engine/standstill.hpp"

namespace collcast::engine {

SpelledThreads::SpelledThreads(const SpelledOut& spelled, Connections& connections, Exchanges& /*exchanges*/,
                               Agenda& agenda)
    : spelled_(spelled), connections_(connections), agenda_(agenda), states_(spelled.threads.size()) {
  check(spelled.threads.size() < none && spelled.steps.size() < none, "threads and steps are numbered in 32 bits");
  check(spelled.loops > 0, "what is spelled out is done once at least");
  for (const SpelledThread& thread : spelled.threads) {
    check(std::size_t{thread.first} + thread.count <= spelled.steps.size(), "a thread's steps are there");
    check(thread.to == none || thread.to < spelled.threads.size(), "a thread sends to another");
  }
}

void SpelledThreads::begin() {
  for (std::uint32_t t = 0; t < states_.size(); ++t) {
    const SpelledThread& thread = spelled_.threads[t];
    if (thread.count == 0) {
      states_[t].loop = spelled_.loops;
      continue;
    }
    ++unfinished_;
    if (thread.to == none) continue;
    const std::uint32_t flow = states_[t].flow = connections_.acquire();
    const ConnectionName name{thread.rank, spelled_.threads[thread.to].rank, thread.lane, t, 0, 0};
    connections_.connect(flow, name, spelled_.unit, {});
    connections_[flow].transfer = true;
  }
  for (std::uint32_t t = 0; t < states_.size(); ++t) agenda_.after(0, EventKind::ready, t);
}

void SpelledThreads::go_on(std::uint32_t thread) {
  State& state = states_[thread];
  while (!state.is_sending && !is_through(thread)) {
    const SpelledStep& step = row(thread);
    if (!may_start(thread, step)) return;
    if (step.receives) {
      --state.arrived;
      --unread_;
    }
    if (step.sends) return send(thread, step);
    step_over(thread);
  }
}

bool SpelledThreads::may_start(std::uint32_t thread, const SpelledStep& step) {
  const State& state = states_[thread];
  if (step.after_thread != none && !is_over(step.after_thread, state.loop, step.after_step)) {
    wait_for(step.after_thread, thread);
    return false;
  }
  return !step.receives || state.arrived > 0;
}

void SpelledThreads::wait_for(std::uint32_t other, std::uint32_t thread) {
  State& state = states_[thread];
  if (state.is_waiting) return;
  state.is_waiting = true;
  state.next = states_[other].waiters;
  states_[other].waiters = thread;
}

void SpelledThreads::send(std::uint32_t thread, const SpelledStep& step) {
  State& state = states_[thread];
  check(state.flow != none, "a thread that sends says to whom");
  state.is_sending = true;
  connections_.renew(state.flow, thread, spelled_.unit * static_cast<double>(step.units));
  connections_[state.flow].started = agenda_.now;
  agenda_.send(state.flow, connections_[state.flow]);
}

void SpelledThreads::left(std::uint32_t flow) {
  const std::uint32_t thread = connections_.name(flow).op;
  states_[thread].is_sending = false;
  ++unread_;
  agenda_.after(connections_[flow].latency, EventKind::finished, spelled_.threads[thread].to);
  step_over(thread);
  go_on(thread);
}

void SpelledThreads::finished(std::uint32_t thread) {
  ++states_[thread].arrived;
  go_on(thread);
}

/// Those that wait for it look again.
void SpelledThreads::step_over(std::uint32_t thread) {
  State& state = states_[thread];
  if (++state.step == spelled_.threads[thread].count) {
    state.step = 0;
    if (++state.loop == spelled_.loops) {
      state.finish = agenda_.now;
      --unfinished_;
    }
  }
  std::uint32_t still = none;
  for (std::uint32_t waiter = state.waiters; waiter != none;) {
    State& other = states_[waiter];
    const std::uint32_t next = other.next;
    if (is_over(thread, other.loop, row(waiter).after_step)) {
      other.is_waiting = false;
      agenda_.after(0, EventKind::ready, waiter);
    } else {
      other.next = still;
      still = waiter;
    }
    waiter = next;
  }
  state.waiters = still;
}

std::string SpelledThreads::describe(std::uint32_t thread) const {
  return fmt::format("thread {} of rank {}", thread, spelled_.threads[thread].rank.value());
}

std::string SpelledThreads::waits_for(std::uint32_t thread) const {
  const SpelledStep& step = row(thread);
  std::string text = fmt::format("{} never finished its step {}", describe(thread), states_[thread].step);
  if (spelled_.loops > 1) text += fmt::format(" of loop {}", states_[thread].loop);
  if (states_[thread].is_waiting)
    return text + fmt::format(": it waits for step {} of {}", step.after_step, describe(step.after_thread));
  const std::uint32_t sender = sender_to(thread);
  return text + (sender == none ? std::string(": it waits for a message, which nobody is left to send")
                                : fmt::format(": it waits for a message of {}", describe(sender)));
}

/// A thread that is not through and sends to this one; none: there is none.
std::uint32_t SpelledThreads::sender_to(std::uint32_t thread) const {
  for (std::uint32_t t = 0; t < states_.size(); ++t)
    if (spelled_.threads[t].to == thread && !is_through(t)) return t;
  return none;
}

std::string SpelledThreads::left_over() const {
  if (unfinished_ == 0) {
    const auto unread = std::find_if(states_.begin(), states_.end(), [](const State& s) { return s.arrived > 0; });
    return fmt::format("{} messages for {} are received by nobody", unread->arrived,
                       describe(static_cast<std::uint32_t>(unread - states_.begin())));
  }
  std::string text;
  std::vector<std::uint32_t> circle;
  int named = 0;
  for (std::uint32_t t = 0; t < states_.size() && named < most_named; ++t) {
    if (is_through(t)) continue;
    if (named++ > 0) text += "; ";
    text += waits_for(t);
    if (circle.empty())
      circle = circle_from(
          t, none, [this](std::uint32_t at) { return states_[at].is_waiting ? row(at).after_thread : sender_to(at); });
  }
  if (unfinished_ > static_cast<std::size_t>(named))
    text += fmt::format("; and {} more", unfinished_ - static_cast<std::size_t>(named));
  if (circle.empty()) return text;
  text += "; in a circle: ";
  for (const std::uint32_t t : circle) text += describe(t) + " waits for ";
  return text + describe(circle.front());
}

Timeline SpelledThreads::output() {
  Timeline timeline;
  timeline.ops.reserve(states_.size());
  for (const State& state : states_) {
    const SimTime at{Picoseconds(state.finish)};
    timeline.ops.push_back({SimTime{}, at, at});
    timeline.finish = std::max(timeline.finish, at);
    if (state.flow != none) connections_.release(state.flow);  // which books what it has carried
  }
  return timeline;
}

}  // namespace collcast::engine
