// The time that a ring of hops takes to come round.
//
// With tau = chunk/rate, alpha = latency, c chunks: a chunk may stay at the slowest hop for all R rounds,
// R*c*tau + alpha, or walk R hops around the ring, sum (tau+alpha) + (c-1)*max tau; the longer counts. Exact for
// equal hops; leaves out paths that walk a little and then stay.
#pragma once

#include <span>
#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast {

class RoundTrip {
 public:
  struct Leg {
    Position from = 0, to = 0;
    double tau = 0;    ///< seconds for one chunk
    double walk = 0;   ///< seconds for one chunk that finds the links free
    double alpha = 0;  ///< seconds
  };
  void clear() { legs_.clear(); }
  void add(const Leg& leg) { legs_.push_back(leg); }
  double time(int rounds, int chunks) const;
  /// Whether all legs take the same time on free links: then the time is exact.
  bool alike() const;

 private:
  bool in_order() const;
  static double walk(std::span<const Leg> path, bool closed, int rounds, int chunks);
  std::vector<Leg> legs_;
};

}  // namespace collcast
