// The run loop: instant by instant until nothing is left to happen.
//
//   1. everything due at the instant is taken from the queue: bytes that have left, messages that have
//      arrived, operations that are over (a flow's outdated event is dropped)
//   2. what follows from it without time passing is worked through to the end: operations become ready,
//      positions enter phases, messages without bytes leave and arrive. From here on it is fixed which
//      flows want links at this instant.
//   3. links are given out once, with all that started and ended known; finish events go into the queue
//
// Steps 1 and 2 only count and mark, so the order within an instant changes nothing; step 3 sees sets.
// Hence the result does not depend on how operations or positions are numbered, except that fifo decides
// between equal requests by who asks.
//
// Left out: failures, jitter, processors that are shared (a Compute runs beside others of its rank unless
// a stream orders them), switch buffers and packets (a route is a fluid pipe with a latency).
#include "engine/run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/describe.hpp"
#include "engine/fifo.hpp"
#include "engine/max_min.hpp"
#include "engine/unshared.hpp"

namespace collcast::engine {

template <class Links>
Result<Timeline> Run<Links>::to_end() {
  operations_.begin();
  do {
    if (is_ended()) return ended();
    work_through_instant();
    links_.settle();
  } while (go_to_next_instant());
  if (agenda_.failure) return simulation_error(*agenda_.failure);
  for (const Event& event : agenda_.instant)  // what the clock does not reach
    if (!is_outdated(event)) return too_late(event);
  if (!operations_.all_finished()) return left_over();
  return timeline();
}

template <class Links>
bool Run<Links>::go_to_next_instant() {
  if (agenda_.queue.empty() || agenda_.failure) return false;
  agenda_.now = agenda_.queue.take(agenda_.instant);
  events_ += static_cast<std::int64_t>(agenda_.instant.size());
  return agenda_.now != never;
}

template <class Links>
bool Run<Links>::is_ended() {
  if (!watch_ || events_ - asked_at_ < ask_every) return false;
  asked_at_ = events_;
  return !watch_({connections_.messages_so_far(), SimTime(Picoseconds(agenda_.now))});
}

template <class Links>
Diagnostic Run<Links>::ended() const {
  return simulation_error(
      fmt::format("the simulation was ended from outside after {} messages", connections_.messages_so_far()),
      "nothing is known of its result");
}

template <class Links>
void Run<Links>::work_through_instant() {
  for (std::size_t i = 0; i < agenda_.instant.size(); ++i) happen(Event(agenda_.instant[i]));
  agenda_.instant.clear();
}

template <class Links>
bool Run<Links>::is_outdated(const Event& event) const {
  return event.kind() == EventKind::left &&
         event.version() != (connections_[event.index()].version & Event::version_mask);
}

template <class Links>
void Run<Links>::happen(const Event& event) {
  const std::uint32_t index = event.index();
  switch (event.kind()) {
    case EventKind::left: {
      Connection& connection = connections_[index];
      if (is_outdated(event)) return;
      if (!connection.immediate) links_.stop(index);
      ++connection.messages;
      if (connection.transfer)
        operations_.left(index);
      else
        exchanges_.left(index);
      break;
    }
    case EventKind::arrived:
      exchanges_.arrived(index);
      break;
    case EventKind::finished:
      operations_.finished(index);
      break;
    case EventKind::ready:
      operations_.ready(index);
      break;
  }
}

template <class Links>
Diagnostic Run<Links>::too_late(const Event& event) const {
  const std::uint32_t op = event.kind() == EventKind::left      ? connections_.name(event.index()).op
                           : event.kind() == EventKind::arrived ? exchanges_.part_of(event.index())
                                                                : event.index();
  return simulation_error(describe(schedule_, OpId(op)) + " would end after the simulation clock's 106 days",
                          "check sizes, rates and durations");
}

template <class Links>
Diagnostic Run<Links>::left_over() const {
  std::uint32_t op = 0;
  while (operations_.is_finished(op)) ++op;
  std::string text = describe(schedule_, OpId(op)) + " never finished";
  if (const auto* part = std::get_if<Part>(&schedule_.work(OpId(op)))) text += exchanges_.waits_for(*part);
  return simulation_error(text, "nothing was left to happen; the pattern's sends and receives do not match");
}

template <class Links>
Timeline Run<Links>::timeline() {
  Timeline timeline;
  timeline.ops = operations_.take_intervals();
  for (const Interval& op : timeline.ops) timeline.finish = std::max(timeline.finish, op.finish);
  timeline.links.resize(fabric_.links().size());
  for (std::size_t i = 0; i < timeline.links.size(); ++i)
    timeline.links[i] = {Volume(connections_.carried(i)), Picoseconds(links_.busy(i))};
  timeline.counters = {events_, connections_.messages(), links_.rate_updates()};
  return timeline;
}

}  // namespace collcast::engine

namespace collcast {

Result<Timeline> simulate(const Fabric& fabric, const Schedule& schedule, const EngineOptions& options) {
  switch (options.sharing) {
    case Sharing::fifo:
      return engine::Run<engine::FifoLinks>(fabric, schedule, options.watch).to_end();
    case Sharing::none:
      return engine::Run<engine::UnsharedLinks>(fabric, schedule, options.watch).to_end();
    case Sharing::max_min:
      break;
  }
  return engine::Run<engine::MaxMinLinks>(fabric, schedule, options.watch).to_end();
}

Result<Timeline> simulate(const Fabric& fabric, const Pattern& pattern, const EngineOptions& options) {
  Schedule schedule;
  schedule.add_exchange(pattern);
  return simulate(fabric, schedule, options);
}

}  // namespace collcast
