// One simulation, from its first operation to its last.
#pragma once

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"
#include "engine/work.hpp"

namespace collcast::engine {

/// Events from one question of the watch to the next, at least.
inline constexpr std::int64_t ask_every = 1 << 13;
/// And within an instant that has more, whatever they lead to.
inline constexpr std::size_t ask_within = 1 << 10;

/// `Links` is how links are shared: MaxMinLinks, FifoLinks or UnsharedLinks. `Work` is what is to be done: Operations
/// of a Schedule, OnePattern, FoldedPatterns, ProgramRanks or SpelledThreads. Where Links knows connections that are
/// apart, these run without it. What is asked of both: work.hpp.
template <SharesLinks Links, DoesWork Work>
class Run {
 public:
  Run(const Fabric& fabric, const typename Work::Input& input, const EngineOptions& options)
      : fabric_(fabric),
        watch_(options.watch),
        connections_(fabric, Links::knows_apart),
        exchanges_(connections_, agenda_),
        work_(input, connections_, exchanges_, agenda_),
        links_(fabric.links(), connections_, agenda_) {
    if constexpr (Work::repeats)
      if (options.repeats) work_.repeat(fabric, [this](std::size_t link) { return links_.busy(link); });
  }

  Result<typename Work::Output> to_end();

 private:
  bool work_through_instant();
  bool begin_held();
  void look_ahead(std::size_t i);
  bool go_to_next_instant();
  bool is_ended();
  bool is_ended_within();
  bool is_outdated(Due event) const;
  void happen(Due event);
  /// True if the flow's next message is under way without a link given up.
  bool goes_on(std::uint32_t flow);
  std::int64_t messages_so_far() const;
  Diagnostic too_late(Due event) const;
  Diagnostic ended() const;
  Diagnostic no_way(const ConnectionName& name) const;
  typename Work::Output output();

  const Fabric& fabric_;
  const EngineWatch& watch_;
  Agenda agenda_;
  Connections connections_;
  Exchanges exchanges_;
  Work work_;
  Links links_;
  std::int64_t events_ = 0;
  std::int64_t followed_ = 0;  ///< what happened without an event, since nothing passed in time
  std::int64_t ask_at_ = 0;    ///< of both together
  std::int64_t told_ = 0;      ///< messages, to the watch
};

}  // namespace collcast::engine
