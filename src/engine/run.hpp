// One simulation, from its first operation to its last.
#pragma once

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"
#include "engine/operations.hpp"

namespace collcast::engine {

/// Events from one question of the watch to the next.
inline constexpr std::int64_t ask_every = 1 << 13;

/// `Links` is how links are shared: MaxMinLinks, FifoLinks or UnsharedLinks. Where it knows connections that are apart,
/// these run without it.
template <class Links>
class Run {
 public:
  Run(const Fabric& fabric, const Schedule& schedule, const EngineWatch& watch)
      : fabric_(fabric),
        schedule_(schedule),
        watch_(watch),
        connections_(fabric, Links::knows_apart),
        exchanges_(schedule, connections_, agenda_),
        operations_(schedule, connections_, exchanges_, agenda_),
        links_(fabric.links(), connections_, agenda_) {}

  Result<Timeline> to_end();

 private:
  void work_through_instant();
  bool go_to_next_instant();
  bool is_ended();
  bool is_outdated(const Event& event) const;
  void happen(const Event& event);
  Diagnostic too_late(const Event& event) const;
  Diagnostic left_over() const;
  Diagnostic ended() const;
  Timeline timeline();

  const Fabric& fabric_;
  const Schedule& schedule_;
  const EngineWatch& watch_;
  Agenda agenda_;
  Connections connections_;
  Exchanges exchanges_;
  Operations operations_;
  Links links_;
  std::int64_t events_ = 0;
  std::int64_t asked_at_ = -ask_every;  ///< events then
};

}  // namespace collcast::engine
