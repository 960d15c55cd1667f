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
#include <string>

#include "collcast/engine/folded.hpp"
#include "collcast/engine/watch.hpp"
#include "engine/describe.hpp"
#include "engine/fifo.hpp"
#include "engine/fold.hpp"
#include "engine/folded_patterns.hpp"
#include "engine/max_min.hpp"
#include "engine/one_pattern.hpp"
#include "engine/operations.hpp"
#include "engine/program_ranks.hpp"
#include "engine/spelled_threads.hpp"
#include "engine/unshared.hpp"

namespace collcast::engine {

template <SharesLinks Links, DoesWork Work>
Result<typename Work::Output> Run<Links, Work>::to_end() {
  work_.begin();
  do {
    if (is_ended()) return ended();
    if (!work_through_instant()) return ended();
    if (!connections_.joined().empty()) exchanges_.not_begun(connections_.joined());
    links_.settle();
  } while (go_to_next_instant());
  if (agenda_.failure) return simulation_error(*agenda_.failure);
  if (connections_.lost()) return no_way(*connections_.lost());
  for (Due event : agenda_.instant)  // what the clock does not reach
    if (!is_outdated(event)) return too_late(event);
  if (!work_.all_finished())
    return simulation_error(work_.left_over(), "nothing was left to happen; " + std::string(Work::unmatched));
  return output();
}

template <SharesLinks Links, DoesWork Work>
bool Run<Links, Work>::go_to_next_instant() {
  if (agenda_.queue.empty() || agenda_.failure || connections_.lost()) return false;
  agenda_.now = agenda_.queue.take(agenda_.instant);
  events_ += static_cast<std::int64_t>(agenda_.instant.size());
  return agenda_.now != never;
}

template <SharesLinks Links, DoesWork Work>
bool Run<Links, Work>::is_ended() {
  if (!watch_ || events_ + followed_ < ask_at_) return false;
  // How many messages have left is summed over the connections.
  ask_at_ = events_ + followed_ + std::max(ask_every, static_cast<std::int64_t>(connections_.size()));
  told_ = messages_so_far();
  return !watch_({told_, SimTime(Picoseconds(agenda_.now))});
}

/// Of an instant in which much begins at once: a rank that takes part may open as many connections as there are ranks.
/// What has left meanwhile is not added up.
template <SharesLinks Links, DoesWork Work>
bool Run<Links, Work>::is_ended_within() {
  return watch_ && !watch_({told_, SimTime(Picoseconds(agenda_.now))});
}

template <SharesLinks Links, DoesWork Work>
std::int64_t Run<Links, Work>::messages_so_far() const {
  std::int64_t sum = connections_.messages_so_far();
  if constexpr (Work::repeats) sum += work_.repeated();
  return sum;
}

template <SharesLinks Links, DoesWork Work>
bool Run<Links, Work>::begin_held() {
  if constexpr (Work::repeats)
    return work_.begin_held();
  else
    return false;
}

template <SharesLinks Links, DoesWork Work>
Diagnostic Run<Links, Work>::ended() const {
  return simulation_error(fmt::format("the simulation was ended from outside after {} messages", messages_so_far()),
                          "nothing is known of its result");
}

/// False if it was ended on the way: what takes no time may be without end for those who wait.
template <SharesLinks Links, DoesWork Work>
bool Run<Links, Work>::work_through_instant() {
  agenda_.following.reserve(agenda_.instant.size());  // rather than grow: an event seldom leads to two
  while (true) {
    const std::size_t count = agenda_.instant.size();
    for (std::size_t i = 0; i < count;) {
      for (const std::size_t end = std::min(count, i + ask_within); i < end; ++i) {
        look_ahead(i);
        happen(agenda_.instant[i]);
      }
      if (i < count && is_ended_within()) return false;
    }
    agenda_.instant.clear();
    if (agenda_.following.empty() && !begin_held()) return true;
    agenda_.instant.swap(agenda_.following);
    followed_ += static_cast<std::int64_t>(agenda_.instant.size());
    if (is_ended()) return false;
  }
}

/// Asks for the memory that the next events will touch. Where a hundred thousand ranks do the same at the same time
/// each touches other memory, and an event would wait for it twice in a row: for connection and send, then for the
/// walker.
template <SharesLinks Links, DoesWork Work>
void Run<Links, Work>::look_ahead(std::size_t i) {
  constexpr std::size_t step = 6;
  const std::size_t end = agenda_.instant.size();
  if (i + 2 * step < end) {
    Due event = agenda_.instant[i + 2 * step];
    if (event.kind() == EventKind::left) connections_.prefetch(event.index());
    exchanges_.prefetch(event);
  }
  if (i + step < end) exchanges_.prefetch_walker(agenda_.instant[i + step]);
}

template <SharesLinks Links, DoesWork Work>
bool Run<Links, Work>::is_outdated(Due event) const {
  if constexpr (Work::slows)
    if (event.kind() == EventKind::finished) return work_.is_outdated(event.index(), event.version());
  return event.kind() == EventKind::left && event.version() != connections_[event.index()].version;
}

template <SharesLinks Links, DoesWork Work>
void Run<Links, Work>::happen(Due event) {
  const std::uint32_t index = event.index();
  switch (event.kind()) {
    case EventKind::left: {
      Connection& connection = connections_[index];
      if (is_outdated(event) || goes_on(index)) return;
      if (!connection.immediate) links_.stop(index);
      ++connection.messages;
      if (connection.transfer)
        work_.left(index);
      else
        exchanges_.left(index);
      break;
    }
    case EventKind::arrived:
      exchanges_.arrived(index);
      break;
    case EventKind::finished:
      if (Work::slows && is_outdated(event)) return;
      work_.finished(index);
      break;
    case EventKind::ready:
      work_.ready(index);
      break;
  }
}

template <SharesLinks Links, DoesWork Work>
bool Run<Links, Work>::goes_on(std::uint32_t flow) {
  if constexpr (Links::pools && Work::chains) {
    Connection& connection = connections_[flow];
    if (!connection.transfer || connection.immediate || !links_.may_go_on(flow)) return false;
    const std::uint32_t next = work_.next_on(flow);
    if (next == Work::none) return false;
    ++connection.messages;
    work_.goes_on(flow, next);
    links_.go_on(flow);
    return true;
  } else {
    return false;
  }
}

template <SharesLinks Links, DoesWork Work>
Diagnostic Run<Links, Work>::no_way(const ConnectionName& name) const {
  return simulation_error(
      fmt::format("{}: no links join rank {} and rank {}", work_.describe(name.op), name.from.value(), name.to.value()),
      "check the machine's links, and which of them have failed");
}

template <SharesLinks Links, DoesWork Work>
Diagnostic Run<Links, Work>::too_late(Due event) const {
  const std::uint32_t index = event.kind() == EventKind::left      ? connections_.name(event.index()).op
                              : event.kind() == EventKind::arrived ? exchanges_.part_of(event.index())
                                                                   : event.index();
  return simulation_error(work_.describe(index) + " would end after the simulation clock's 106 days",
                          "check sizes, rates and durations");
}

template <SharesLinks Links, DoesWork Work>
typename Work::Output Run<Links, Work>::output() {
  agenda_ = {};  // nothing is to happen any more: room for the result
  exchanges_.clear();
  typename Work::Output output = work_.output();
  output.links.resize(fabric_.links().size());
  for (std::size_t i = 0; i < output.links.size(); ++i)
    output.links[i] = {Volume(connections_.carried(i)), Picoseconds(links_.busy(i))};
  output.counters = {events_, connections_.messages(), links_.rate_updates(), 0};
  if constexpr (Work::repeats) {
    work_.add_repeated(output.links);
    output.counters.repeated = work_.repeated();
    output.counters.messages += work_.repeated();
  }
  return output;
}

template <DoesWork Work>
Result<typename Work::Output> run(const Fabric& fabric, const typename Work::Input& input,
                                  const EngineOptions& options) {
  switch (options.sharing) {
    case Sharing::fifo:
      return Run<FifoLinks, Work>(fabric, input, options).to_end();
    case Sharing::none:
      return Run<UnsharedLinks, Work>(fabric, input, options).to_end();
    case Sharing::max_min:
      break;
  }
  return Run<MaxMinLinks, Work>(fabric, input, options).to_end();
}

}  // namespace collcast::engine

namespace collcast {

Result<Timeline> simulate(const Fabric& fabric, const Schedule& schedule, const EngineOptions& options) {
  return engine::run<engine::Operations>(fabric, schedule, options);
}

Result<ProgramsTimeline> simulate(const Fabric& fabric, const Programs& programs, const EngineOptions& options) {
  return engine::run<engine::ProgramRanks>(fabric, programs, options);
}

Result<Timeline> simulate(const Fabric& fabric, const Pattern& pattern, const EngineOptions& options) {
  return engine::run<engine::OnePattern>(fabric, pattern, options);
}

std::optional<Result<FoldedRun>> simulate_folded(const Fabric& fabric, std::span<const Pattern> patterns,
                                                 const EngineOptions& options) {
  if (options.sharing == Sharing::fifo) return std::nullopt;  // who is asked first of those alike is no matter of class
  const auto fold = engine::fold(fabric, patterns, options.watch, options.memory);
  if (!fold) return std::nullopt;
  bool is_ended = false;
  EngineOptions own = options;
  own.watch = telling_end(options.watch, is_ended);
  auto run = engine::run<engine::FoldedPatterns>(fabric, {patterns, *fold}, own);
  if (!run) {
    constexpr std::int64_t few = 2'000'000;  // messages: about a second
    if (!is_ended && fold->messages <= few) return std::nullopt;
    Diagnostics errors = run.errors();
    if (!is_ended)
      for (Diagnostic& error : errors) error.message += " (each rank that is named stands for all that do the same)";
    return Result<FoldedRun>(std::move(errors));
  }
  return Result<FoldedRun>({run->finish, fold->messages, run->counters.messages, fold->positions, fold->classes});
}

std::optional<std::int64_t> messages_stepped_folded(const Fabric& fabric, std::span<const Pattern> patterns,
                                                    const EngineOptions& options) {
  if (options.sharing == Sharing::fifo) return std::nullopt;
  const auto fold = engine::fold(fabric, patterns, options.watch, options.memory);
  if (!fold) return std::nullopt;
  std::int64_t stepped = 0;
  for (std::size_t p = 0; p < patterns.size(); ++p)
    for (std::size_t l = 0; l < patterns[p].lanes.size(); ++l)
      for (const Phase& phase : patterns[p].lanes[l].phases)
        for (Position v = 0; v < patterns[p].size(); ++v)
          if (fold->first[p][l][static_cast<std::size_t>(v)] == static_cast<std::uint32_t>(v))
            stepped += std::int64_t{phase.shape->sends(phase, v)} * patterns[p].chunks;
  return stepped;
}

Result<Timeline> simulate(const Fabric& fabric, const SpelledOut& spelled, const EngineOptions& options) {
  return engine::run<engine::SpelledThreads>(fabric, spelled, options);
}

}  // namespace collcast
