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
    std::push_heap(flows_.begin(), flows_.end(), Later());
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
    std::pop_heap(flows_.begin(), flows_.end(), Later());
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
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return static_cast<Grains>(a.ends - b.ends) > 0; }
  };

  Wrapped moved(Ticks now) const { return moved_ + static_cast<Wrapped>(rate_ * (now - since_)); }
  static Grains left(const Entry& entry, Wrapped moved) { return static_cast<Grains>(entry.ends - moved); }

  std::vector<Entry> flows_;  ///< heap
  Wrapped moved_ = 0;         ///< as of since_
  Grains rate_ = 0;           ///< of each flow
  Ticks since_ = 0;
};

}  // namespace collcast::engine
