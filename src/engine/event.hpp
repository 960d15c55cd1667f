// What happens in a simulation, and when.
#pragma once

#include <cstdint>

#include "engine/ticks.hpp"

namespace collcast::engine {

enum class EventKind : std::uint8_t {
  left,      ///< index: connection. The last byte of its message has left the sender
  arrived,   ///< index: counter of an exchange. One more message is there
  finished,  ///< index: operation; of programs a rank's stream, or behind these a group
  ready      ///< index: operation, or a rank's stream. All that it waits for is over
};

/// What happens at an instant that is known.
struct Due {
  std::uint64_t key = 0;  ///< kind (2 bits), index (32), version (28 in use)

  static constexpr std::uint32_t version_mask = (std::uint32_t{1} << 28) - 1;
  static Due of(EventKind kind, std::uint32_t index, std::uint32_t version = 0) {
    return {std::uint64_t(kind) << 62 | std::uint64_t(index) << 30 | (version & version_mask)};
  }
  EventKind kind() const { return static_cast<EventKind>(key >> 62); }
  std::uint32_t index() const { return static_cast<std::uint32_t>(key >> 30); }
  std::uint32_t version() const { return static_cast<std::uint32_t>(key) & version_mask; }
};

/// What happens then.
struct Event {
  Ticks time = 0;
  Due due;

  static Event at(Ticks time, EventKind kind, std::uint32_t index, std::uint32_t version = 0) {
    return {time, Due::of(kind, index, version)};
  }
};
static_assert(sizeof(Event) == 16);

}  // namespace collcast::engine
