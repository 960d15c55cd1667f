// The time of one phase of one lane along its dependencies, given the rate and latency of every hop.
//
// With tau = chunk/rate, alpha = latency, c chunks (pattern.hpp has the rules that these solve):
//   circulating  a chunk may stay at the slowest hop for all R rounds, R*c*tau + alpha, or walk R hops around
//                the ring, sum (tau+alpha) + (c-1)*max tau; the longer counts. Exact for equal hops; leaves
//                out paths that walk a little and then stay.
//   forwarding   exact: the longest path through hops is known for one chunk (`one`), and for c of them a path
//                repeats its slowest hop c-1 times more (`all`).
//   sequential   every sender's messages one after the other
//   concurrent   the longest message
#pragma once

#include <variant>
#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast {

/// A hop as the fabric serves it.
struct ServedHop {
  Position from = 0;
  Hop hop;
  double tau = 0;    ///< seconds for one chunk
  double alpha = 0;  ///< seconds
};

// add() takes the hops in ascending rounds (of a circulating phase, one per position) and returns when the hop's
// first chunk starts; time() is that of the phase.

class CirculatingTime {
 public:
  CirculatingTime(const Phase&, int positions, int chunks);
  double add(const ServedHop&);
  double time() const;

 private:
  double walk(const std::vector<Position>& path, bool closed) const;

  int rounds_, chunks_;
  std::vector<ServedHop> hops_;  // by position; chunk time and latency of its only connection
  std::vector<bool> sends_;
};

class ForwardingTime {
 public:
  ForwardingTime(const Phase&, int positions, int chunks);
  double add(const ServedHop&);
  double time() const { return latest_; }

 private:
  struct Path {
    double one = 0, all = 0;
    void join(const Path& other);
  };
  int chunks_;
  std::vector<Path> left_;            // by position: its previous hop
  std::vector<std::size_t> receive_;  // by position: its first receive in arrived_
  std::vector<Path> arrived_;
  double latest_ = 0;
};

class SequentialTime {
 public:
  SequentialTime(int positions, int chunks);
  double add(const ServedHop&);
  double time() const { return latest_; }

 private:
  struct Sum {  // equal terms as a product, so that (k-1) of them are exact
    double before = 0, term = 0;
    int times = 0;
    double total() const { return before + term * times; }
  };
  int chunks_;
  std::vector<Sum> busy_;
  double latest_ = 0;
};

class ConcurrentTime {
 public:
  explicit ConcurrentTime(int chunks) : chunks_(chunks) {}
  double add(const ServedHop&);
  double time() const { return latest_; }

 private:
  int chunks_;
  double latest_ = 0;
};

using FlowTime = std::variant<CirculatingTime, ForwardingTime, SequentialTime, ConcurrentTime>;
FlowTime flow_time(const Phase&, int positions, int chunks);

}  // namespace collcast
