// What happens next: the clock, the events to come, and the work of the present instant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/connections.hpp"
#include "engine/event_queue.hpp"

namespace collcast::engine {

struct Agenda {
  Ticks now = 0;
  EventQueue queue;
  std::vector<Event> instant;           ///< happens now; grows while the instant is worked through
  std::vector<std::uint32_t> starting;  ///< flows that want their links, given at the end of the instant
  std::optional<std::string> failure;   ///< why the run cannot go on

  /// Sets the next message of a connected flow going.
  void send(std::uint32_t id, Connection& flow) {
    if (flow.immediate) {
      instant.push_back(Event::at(now, EventKind::left, id, flow.version));
    } else if (flow.apart) {  // nobody to ask
      flow.started = now;
      flow.is_unlisted = true;
      queue.push(Event::at(later(now, flow.alone), EventKind::left, id, flow.version));
    } else {
      starting.push_back(id);
    }
  }

  void after(Ticks delay, EventKind kind, std::uint32_t index) {
    const Event event = Event::at(later(now, delay), kind, index);
    if (delay == 0)
      instant.push_back(event);
    else
      queue.push(event);
  }
};

}  // namespace collcast::engine
