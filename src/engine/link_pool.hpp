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

class LinkPool {
 public:
  void begin(Ticks now) {
    flows_.clear();
    moved_ = 0;
    rate_ = 0;
    since_ = now;
  }
  bool empty() const { return flows_.empty(); }
  std::size_t size() const { return flows_.size(); }

  void add(std::uint32_t flow, Grains to_go, Ticks now) {
    flows_.push_back({moved(now) + static_cast<Wrapped>(to_go), flow});
    rise(flows_.size() - 1);
  }
  void set_rate(Grains rate, Ticks now) {
    moved_ = moved(now);
    since_ = now;
    rate_ = rate;
  }
  Grains rate() const { return rate_; }

  std::uint32_t first() const { return flows_.front().flow; }
  /// What the first has to go.
  Grains to_go(Ticks now) const { return left(flows_.front(), moved(now)); }
  void drop_first() {
    std::size_t hole = 0;  // moved down to a leaf, then the last flow put there
    for (std::size_t child = 1; child < flows_.size(); child = 4 * hole + 1) {
      const std::size_t end = std::min(child + 4, flows_.size());
      for (std::size_t other = child + 1; other < end; ++other)
        child = is_before(flows_[other], flows_[child]) ? other : child;
      flows_[hole] = flows_[child];
      hole = child;
    }
    if (hole + 1 < flows_.size()) {
      flows_[hole] = flows_.back();
      rise(hole);
    }
    flows_.pop_back();
  }

  /// visit(flow, what it has to go) for all, in no particular order.
  template <class Visit>
  void for_each(Ticks now, Visit&& visit) const {
    const Wrapped moved_now = moved(now);
    for (const Entry& entry : flows_) visit(entry.flow, left(entry, moved_now));
  }

 private:
  /// Only differences count, so it may overflow.
  __extension__ using Wrapped = unsigned __int128;

  struct Entry {
    Wrapped ends = 0;  ///< value of `moved` at which the flow has left
    std::uint32_t flow = 0;
  };
  static bool is_before(const Entry& a, const Entry& b) { return static_cast<Grains>(a.ends - b.ends) < 0; }

  void rise(std::size_t place) {
    const Entry entry = flows_[place];
    for (; place > 0 && is_before(entry, flows_[(place - 1) / 4]); place = (place - 1) / 4)
      flows_[place] = flows_[(place - 1) / 4];
    flows_[place] = entry;
  }

  Wrapped moved(Ticks now) const { return moved_ + static_cast<Wrapped>(rate_ * (now - since_)); }
  static Grains left(const Entry& entry, Wrapped moved) { return static_cast<Grains>(entry.ends - moved); }

  std::vector<Entry> flows_;  ///< heap, four children a place
  Wrapped moved_ = 0;         ///< as of since_
  Grains rate_ = 0;           ///< of each flow
  Ticks since_ = 0;
};

}  // namespace collcast::engine
