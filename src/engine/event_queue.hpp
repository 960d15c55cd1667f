// Pending events: 16 bytes each, taken instant by instant in the order (time, kind, index, version).
//
// A radix heap with digits of five bits. Time never goes back, so an event is filed by the highest digit in which its
// time differs from the present one, and by what that digit is: the lowest digit in use, and there the lowest value,
// holds the next events. When the present is used up, these are filed again relative to the earliest of them, or, once
// they are few, sorted: an event moves down a few times and is never compared with all others. It costs the same
// whether a thousand or ten million are pending, and many events of one instant cost least. An event that no longer
// holds (its message was given another rate) is not searched for: it carries the version it was made for and is dropped
// when it is taken.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/event.hpp"
#include "engine/event_blocks.hpp"

namespace collcast::engine {

class EventQueue {
 public:
  /// Not before the instant that was taken last.
  void push(const Event& event) {
    ++size_;
    if (event.time < near_end_)
      push_near(event);
    else
      file(event);
  }

  bool empty() const { return size_ == 0; }

  /// Moves all events of the earliest instant to `instant`, which is empty, and returns their time.
  Ticks take(std::vector<Due>& instant) {
    if (near_.empty() || !at_present_.empty()) {
      if (at_present_.capacity() < instant.capacity() && at_present_.empty())
        at_present_.swap(instant);  // for its memory
      while (near_.empty() && at_present_.empty()) file_next();
    }
    if (at_present_.empty()) {
      present_ = near_.back().time;
      do {
        instant.push_back(near_.back().due);
        near_.pop_back();
        --size_;
      } while (!near_.empty() && near_.back().time == present_);
    } else {
      instant.swap(at_present_);
      const auto by_key = [](Due a, Due b) { return a.key < b.key; };
      if (!std::is_sorted(instant.begin(), instant.end(), by_key)) std::sort(instant.begin(), instant.end(), by_key);
      size_ -= instant.size();
    }
    return present_;
  }

 private:
  static constexpr unsigned bits = 5;     ///< of a digit
  static constexpr std::size_t few = 48;  ///< events that are kept in order rather than filed

  static bool is_later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.due.key > b.due.key;
  }

  void file(const Event& event) {
    const auto difference = static_cast<std::uint64_t>(event.time ^ present_);
    if (difference == 0) {
      at_present_.push_back(event.due);
      return;
    }
    const auto digit = (static_cast<unsigned>(std::bit_width(difference)) - 1) / bits;
    const auto value = static_cast<unsigned>(event.time >> (digit * bits)) & 31U;
    Digit& d = digits_[digit];
    d.in_use |= 1U << value;
    in_use_ |= 1U << digit;
    blocks_.append(d.buckets[value], event);
  }

  void file_next() {
    const auto digit = static_cast<unsigned>(std::countr_zero(in_use_));
    Digit& lowest = digits_[digit];
    const auto value = static_cast<unsigned>(std::countr_zero(lowest.in_use));
    lowest.in_use &= lowest.in_use - 1;
    if (lowest.in_use == 0) in_use_ &= in_use_ - 1;
    EventBlocks::Chain& next = lowest.buckets[value];
    if (next.count <= few) {
      take_near(next, digit * bits);
      present_ = near_.back().time;
      const auto end = ((static_cast<std::uint64_t>(present_) >> (digit * bits)) + 1) << (digit * bits);
      near_end_ = static_cast<Ticks>(std::min(end, static_cast<std::uint64_t>(never)));
    } else {
      near_end_ = 0;
      Ticks earliest = never;
      blocks_.for_each(next, [&](const Event& event) { earliest = std::min(earliest, event.time); });
      present_ = earliest;
      blocks_.empty(next, [this](const Event& event) { file(event); });  // all to lower digits
    }
  }

  /// In order, all of a chain whose times are the same but for the last `differ` bits.
  ///
  /// The place of each is how many are later: that many comparisons go through without a branch to be guessed, four at
  /// a time. They are of the leading bits of what differs, and of the place in the chain; few are left to be put right.
  void take_near(EventBlocks::Chain& chain, unsigned differ) {
    constexpr unsigned leading = 25, number = 6;  // bits
    static_assert(few <= std::size_t{1} << number);
    const unsigned shift = differ > leading ? differ - leading : 0;
    const std::uint64_t mask = (std::uint64_t{1} << differ) - 1;
    std::size_t count = 0;
    blocks_.empty(chain, [&](const Event& event) {
      unordered_[count] = event;
      const std::uint64_t code = (static_cast<std::uint64_t>(event.time) & mask) >> shift << number | count;
      codes_[count++] = static_cast<std::int32_t>(code);
    });
    const std::size_t padded = (count + 7) / 8 * 8;
    for (std::size_t i = count; i < padded; ++i) codes_[i] = -1;
    near_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t code = codes_[i];
      std::int32_t later = 0;
      for (std::size_t j = 0; j < padded; ++j) later += codes_[j] > code ? 1 : 0;
      near_[static_cast<std::size_t>(later)] = unordered_[i];
    }
    for (std::size_t i = 1; i < count; ++i)
      if (is_later(near_[i], near_[i - 1])) put_in_place(i, Event(near_[i]));
  }
  /// `event` belongs there or before; the events before it are in order, latest first.
  void put_in_place(std::size_t place, const Event& event) {
    for (; place > 0 && is_later(event, near_[place - 1]); --place) near_[place] = near_[place - 1];
    near_[place].time = event.time;  // word by word, as it was made
    near_[place].due.key = event.due.key;
  }

  void push_near(const Event& event) {
    near_.emplace_back();
    put_in_place(near_.size() - 1, event);
    if (near_.size() <= few) return;
    // Too many to keep in order.
    near_end_ = 0;
    for (const Event& e : near_) file(e);
    near_.clear();
  }

  struct Digit {
    std::array<EventBlocks::Chain, 1U << bits> buckets;
    std::uint32_t in_use = 0;  ///< bit v: bucket v has events
  };

  Ticks present_ = 0;
  std::size_t size_ = 0;
  std::vector<Due> at_present_;
  std::vector<Event> near_;           ///< before near_end_, in order, latest first; all others are later
  std::array<Event, few> unordered_;  ///< scratch, and so is the next
  std::array<std::int32_t, few> codes_{};
  Ticks near_end_ = 0;
  std::uint32_t in_use_ = 0;      ///< bit d: digit d has events
  std::array<Digit, 13> digits_;  ///< 63 bits
  EventBlocks blocks_;
};

}  // namespace collcast::engine
