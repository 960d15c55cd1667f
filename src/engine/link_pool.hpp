// Flows that share one link and nothing else, all at the same rate: a start or an end costs the logarithm of their
// number.
//
// The virtual time of fair queueing: `moved` is what every flow of the pool has moved since the pool began, as if it
// had been there all along. A flow with r grains to go that joins when `moved` is m has left when `moved` is m + r,
// whatever the rate is until then; so flows wait in one heap by that number, and only the first of them has an event.
// Source: Demers, Keshav, Shenker, "Analysis and simulation of a fair queueing algorithm", 1989 (there bit by bit in
// rounds).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/progress.hpp"

namespace collcast::engine {

/// `anew`: once 2^anew grains have been moved they are counted from nothing. Only a test has another number.
template <int anew = 126>
class LinkPoolOf {
 public:
  void begin(Ticks now) {
    heap_.clear();
    ends_.clear();
    free_.clear();
    moved_ = 0;
    rate_ = 0;
    since_ = now;
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  void add(std::uint32_t flow, Grains to_go, Ticks now) {
    if (moved(now) >> anew != 0) begin_anew(now);
    const Moved ends = moved(now) + static_cast<Moved>(to_go);
    auto slot = static_cast<std::uint32_t>(ends_.size());
    if (free_.empty()) {
      ends_.push_back(ends);
    } else {
      slot = free_.back();
      free_.pop_back();
      ends_[slot] = ends;
    }
    heap_.push_back({key(ends), flow, slot});
    rise(heap_.size() - 1, heap_.back());
  }
  void set_rate(Grains rate, Ticks now) {
    moved_ = moved(now);
    since_ = now;
    rate_ = rate;
  }
  Grains rate() const { return rate_; }

  std::uint32_t first() const { return heap_.front().flow; }
  /// What the first has to go.
  Grains to_go(Ticks now) const { return left(heap_.front(), moved(now)); }
  void drop_first() {
    free_.push_back(heap_.front().slot);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) put_first(last);
  }
  /// The first has left, and as its last byte went it has so much to go again: it gives up no place.
  void renew_first(Grains to_go, Ticks now) {
    if (moved(now) >> anew != 0) begin_anew(now);
    Entry entry = heap_.front();
    const Moved ends = moved(now) + static_cast<Moved>(to_go);
    ends_[entry.slot] = ends;
    entry.key = key(ends);
    put_first(entry);
  }

  /// visit(flow, what it has to go) for all, in no particular order.
  template <class Visit>
  void for_each(Ticks now, Visit&& visit) const {
    const Moved moved_now = moved(now);
    for (const Entry& entry : heap_) visit(entry.flow, left(entry, moved_now));
  }

 private:
  /// Never negative. A message is at most 1.5 * 2^126 grains, so whatever is added while less than 2^126 have been
  /// moved fits.
  __extension__ using Moved = unsigned __int128;

  /// In two words: a number just worked out in two is read back as one of 128 bits only when both have been written.
  struct Ends {
    std::uint64_t low = 0, high = 0;
    Ends(Moved value) : low(static_cast<std::uint64_t>(value)), high(static_cast<std::uint64_t>(value >> 64)) {}
    Moved value() const { return static_cast<Moved>(high) << 64 | low; }
  };
  struct Entry {
    std::uint64_t key = 0;  ///< the leading bits of when the flow has left, which nearly always tell
    std::uint32_t flow = 0;
    std::uint32_t slot = 0;  ///< in ends_
  };

  /// To 2^-24 bytes, up to 2^40 bytes; all beyond have one key.
  static std::uint64_t key(Moved ends) {
    const Moved leading = ends >> 40;
    return leading >> 64 == 0 ? static_cast<std::uint64_t>(leading) : ~std::uint64_t{0};
  }
  bool is_before(const Entry& a, const Entry& b) const {
    return a.key != b.key ? a.key < b.key : ends_[a.slot].value() < ends_[b.slot].value();
  }
  bool is_before(std::size_t a, std::size_t b) const { return is_before(heap_[a], heap_[b]); }

  /// Counts what is moved from now on.
  void begin_anew(Ticks now) {
    const Moved moved_now = moved(now);
    for (Entry& entry : heap_) {
      const Moved ends = ends_[entry.slot].value();
      ends_[entry.slot] = ends > moved_now ? ends - moved_now : 0;
      entry.key = key(ends_[entry.slot].value());
    }
    moved_ = 0;
    since_ = now;
  }

  /// Which of the four places from there on is before the others. Without branches, which would be guessed wrong every
  /// other time, and with no more than one load after the other.
  std::size_t first_of_four(std::size_t place) const {
    const Entry* at = &heap_[place];
    const std::uint64_t a = at[0].key, b = at[1].key, c = at[2].key, d = at[3].key;
    const std::size_t is_b = b < a, is_d = d < c;
    const std::uint64_t left = a ^ ((a ^ b) & -std::uint64_t{is_b}), right = c ^ ((c ^ d) & -std::uint64_t{is_d});
    const bool alike = (a == b) | (c == d) | (left == right);
    if (alike) [[unlikely]]
      return first_of_four_alike(place);
    const std::size_t is_right = right < left;
    return is_b ^ ((is_b ^ (2 + is_d)) & -is_right);
  }
  std::size_t first_of_four_alike(std::size_t place) const {
    std::size_t first = 0;
    for (std::size_t other = 1; other < 4; ++other) first = is_before(place + other, place + first) ? other : first;
    return first;
  }

  /// In place of the first: its place is moved down to a leaf, which nearly always is about where `entry` belongs.
  void put_first(const Entry& entry) {
    const std::size_t count = heap_.size();
    std::size_t hole = 0;
    for (std::size_t child = 1; child + 3 < count; child = 4 * hole + 1) {
      child += first_of_four(child);
      heap_[hole] = heap_[child];
      hole = child;
    }
    if (std::size_t child = 4 * hole + 1; child < count) {  // fewer than four
      for (std::size_t other = child + 1; other < count; ++other) child = is_before(other, child) ? other : child;
      heap_[hole] = heap_[child];
      hole = child;
    }
    rise(hole, entry);
  }

  void rise(std::size_t place, const Entry entry) {
    for (; place > 0 && is_before(entry, heap_[(place - 1) / 4]); place = (place - 1) / 4)
      heap_[place] = heap_[(place - 1) / 4];
    heap_[place] = entry;
  }

  Moved moved(Ticks now) const { return moved_ + static_cast<Moved>(rate_ * (now - since_)); }
  Grains left(const Entry& entry, Moved moved) const { return static_cast<Grains>(ends_[entry.slot].value() - moved); }

  std::vector<Entry> heap_;          ///< four children a place
  std::vector<Ends> ends_;           ///< value of `moved` at which a flow has left
  std::vector<std::uint32_t> free_;  ///< slots
  Moved moved_ = 0;                  ///< as of since_
  Grains rate_ = 0;                  ///< of each flow
  Ticks since_ = 0;
};
using LinkPool = LinkPoolOf<>;

}  // namespace collcast::engine
