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
  std::vector<Due> instant;             ///< happens now
  std::vector<Due> following;           ///< what that leads to without time passing
  std::vector<std::uint32_t> starting;  ///< flows that want their links, given at the end of the instant
  std::optional<std::string> failure;   ///< why the run cannot go on

  /// Sets the next message of a connected flow going.
  void send(std::uint32_t id, Connection& flow) {
    if (flow.immediate) {
      following.push_back(Due::of(EventKind::left, id, flow.version));
    } else if (flow.apart) {
      send_apart(id, flow, now);
    } else {
      starting.push_back(id);
    }
  }

  /// Of a flow that need not ask for its links: from then on.
  void send_apart(std::uint32_t id, Connection& flow, Ticks start) {
    flow.started = start;
    flow.is_unlisted = true;
    queue.push(Event::at(later(start, flow.alone), EventKind::left, id, flow.version));
  }

  void after(Ticks delay, EventKind kind, std::uint32_t index, std::uint32_t version = 0) {
    if (delay == 0)
      following.push_back(Due::of(kind, index, version));
    else
      queue.push(Event::at(later(now, delay), kind, index, version));
  }
};

}  // namespace collcast::engine
