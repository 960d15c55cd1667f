// Max-min fair rates with strict priorities: the arithmetic, apart from who asks for it.
//
// Progressive filling: all flows grow together; when a link is full, the flows on it have their rate.
// Priorities are served class by class, each on what the classes before left. Within a class:
//
//   share(l) = left(l) / flows(l)           for every link l with flows of the class
//   s = min share;  F = flows that cross a link whose share is s
//   rate(f) = s                             for f in F
//   left(l) -= |F on l| * s;  share(l) = max(share(l), left(l) / flows(l))       for the links of F
//
// A flow of weight w counts as w flows, and has w shares; one that a link of its own stops has all of that.
// until no flow is left. Links with equal shares fill together and each subtraction is one product, so
// the result depends on sets and counts only, never on an order; a set of flows that shares no link with
// the others gets the same doubles whether it is solved alone or with them. The max() keeps a rounding
// error from lowering a share, so that shares only grow and a heap of them may be stale. Between classes
// a link with less than 1e-12 of its capacity left is full: that much is rounding.
// Source: Bertsekas and Gallager, Data Networks, 6.5.2.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "collcast/schedule/traffic_class.hpp"

namespace collcast::engine {

class WaterFilling {
 public:
  void clear();
  /// Links and flows are numbered from 0 in the order they are added.
  std::uint32_t add_link(double capacity);
  void add_flow(TrafficClass traffic);
  /// The flow that was added last crosses `link`.
  void cross(std::uint32_t link) { crossings_.push_back(link); }
  /// It may not have more than `rate`: the same as a link of that capacity which it crosses alone.
  void limit(double rate) { flows_.back().limit = rate; }

  void fill();
  /// Infinite for a flow that crosses nothing.
  double rate(std::size_t flow) const { return flows_[flow].rate; }
  /// Of the flows that the link stopped; infinite if it stopped none.
  double level(std::uint32_t link) const { return links_[link].level; }
  /// One priority and no weights: rates follow from levels.
  bool is_plain() const { return priorities_.size() < 2 && !has_weights_; }

 private:
  struct Link {
    double capacity = 0, left = 0, share = 0;
    double level = std::numeric_limits<double>::infinity();
    std::uint64_t growing = 0;     ///< weights of flows of the class that have no rate yet
    std::uint64_t stopping = 0;    ///< of those, of the flows that stop at this level
    std::uint32_t first_flow = 0;  ///< in on_link_
  };
  struct FlowState {
    std::uint32_t first_crossing = 0;
    TrafficClass traffic;
    double limit = 0;
    double rate = 0;
    bool growing = false;
  };
  struct Level {  ///< where a link is full, or a flow at its limit
    double share = 0;
    std::uint32_t index = 0;
    bool is_flow = false;
  };
  struct Higher {
    bool operator()(const Level& a, const Level& b) const { return a.share > b.share; }
  };

  std::uint32_t end_of(std::size_t flow) const;
  void list_flows_by_link();
  void fill_class(int priority);
  /// Brings the smallest share to the top of levels_.
  bool has_bottleneck();
  void drop_lowest();
  void stop_flows_of(std::uint32_t link, int priority, double share);
  void stop(std::uint32_t flow, double share);
  void lower_capacities(double share);

  std::vector<Link> links_;
  std::vector<FlowState> flows_;
  std::vector<std::uint32_t> crossings_;
  std::vector<std::uint32_t> on_link_;
  std::vector<int> priorities_;
  bool has_weights_ = false;
  std::vector<Level> levels_;  ///< heap, smallest share first; entries may be too low
  std::vector<std::uint32_t> touched_;
};

}  // namespace collcast::engine
