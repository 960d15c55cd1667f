// Pending events: 16 bytes each, taken instant by instant in the order (time, kind, index, version).
//
// A radix heap. Time never goes back, so an event is filed by the highest bit in which its time differs
// from the present one: bucket 0 holds the present instant, and the first bucket in use holds the next.
// When the present is used up, that bucket is filed again relative to its earliest time; each event thus
// moves down a few times and is never compared with all others. An event costs the same whether a
// thousand or ten million are pending, and many events of one instant cost least.
// An event that no longer holds (its message was given another rate) is not searched for: it carries the
// version it was made for and is dropped when it is taken.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/ticks.hpp"

namespace collcast::engine {

enum class EventKind : std::uint8_t {
  left,      ///< index: connection. The last byte of its message has left the sender
  arrived,   ///< index: counter of an exchange. One more message is there
  finished,  ///< index: operation
  ready      ///< index: operation. All that it waits for is over
};

struct Event {
  Ticks time = 0;
  std::uint64_t key = 0;  ///< kind (2 bits), index (32), version (30)

  static constexpr std::uint32_t version_mask = (std::uint32_t{1} << 30) - 1;
  static Event at(Ticks time, EventKind kind, std::uint32_t index, std::uint32_t version = 0) {
    return {time, std::uint64_t(kind) << 62 | std::uint64_t(index) << 30 | (version & version_mask)};
  }
  EventKind kind() const { return static_cast<EventKind>(key >> 62); }
  std::uint32_t index() const { return static_cast<std::uint32_t>(key >> 30); }
  std::uint32_t version() const { return static_cast<std::uint32_t>(key) & version_mask; }
};

class EventQueue {
 public:
  /// Not before the instant that was taken last.
  void push(const Event& event) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(event.time ^ present_)));
    buckets_[bucket].push_back(event);
    in_use_ |= std::uint64_t{1} << bucket;
  }

  bool empty() const { return in_use_ == 0; }

  /// Moves all events of the earliest instant to `instant`, which is empty, and returns their time.
  Ticks take(std::vector<Event>& instant) {
    if ((in_use_ & 1) == 0) file_next();
    in_use_ &= ~std::uint64_t{1};
    instant.swap(buckets_[0]);
    const auto by_key = [](const Event& a, const Event& b) { return a.key < b.key; };
    if (!std::is_sorted(instant.begin(), instant.end(), by_key)) std::sort(instant.begin(), instant.end(), by_key);
    return present_;
  }

 private:
  void file_next() {
    const auto bucket = static_cast<std::size_t>(std::countr_zero(in_use_));
    in_use_ &= in_use_ - 1;
    std::vector<Event>& next = buckets_[bucket];
    present_ = next.front().time;
    for (const Event& event : next) present_ = std::min(present_, event.time);
    for (const Event& event : next) push(event);
    next.clear();
  }

  Ticks present_ = 0;
  std::uint64_t in_use_ = 0;  ///< bit b: bucket b has events
  std::array<std::vector<Event>, 64> buckets_;
};

}  // namespace collcast::engine
