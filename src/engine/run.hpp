// One simulation, from its first operation to its last.
#pragma once

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"
#include "engine/operations.hpp"

namespace collcast::engine {

/// `Links` is how links are shared: MaxMinLinks, FifoLinks or UnsharedLinks.
template <class Links>
class Run {
 public:
  Run(const Fabric& fabric, const Schedule& schedule)
      : schedule_(schedule),
        connections_(fabric),
        exchanges_(schedule, connections_, agenda_),
        operations_(schedule, connections_, exchanges_, agenda_),
        links_(fabric.links(), connections_, agenda_) {}

  Result<Timeline> to_end();

 private:
  void work_through_instant();
  bool go_to_next_instant();
  bool is_outdated(const Event& event) const;
  void happen(const Event& event);
  Diagnostic too_late(const Event& event) const;
  Diagnostic left_over() const;
  Timeline timeline();

  const Schedule& schedule_;
  Agenda agenda_;
  Connections connections_;
  Exchanges exchanges_;
  Operations operations_;
  Links links_;
  std::int64_t events_ = 0;
};

}  // namespace collcast::engine
