// The closed form of a Pattern on a Fabric.
//
// Per phase two times are formed and the larger counts; phases add up (a barrier per position):
//   rounds  the dependency path with each hop at the rate its route gives it in its own round, the hops of
//           that round sharing links: with tau = chunk/beta, alpha = route latency, R rounds, c chunks
//             circulating  max( R*c*tau + alpha at the slowest hop, alpha+tau summed over R hops around
//                          the ring + (c-1)*max tau )          = (R-1)*max(c*tau, tau+alpha) + c*tau + alpha
//             forwarding   longest path of hops, sum (tau+alpha) of one chunk + (c-1)*max tau on it
//             sequential   per sender sum of c*tau, + alpha      concurrent  max of c*tau + alpha
//   load    the busiest link: when its first byte can start, + all bytes of the phase that cross it over its
//           bandwidth, + alpha
// Exact where no two hops share a link; where they do it is an approximation, and says so.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collcast/schedule/pattern.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

struct PhaseEstimate {
  std::string shape;
  Flow flow = Flow::forwarding;
  int rounds = 0;
  Volume chunk{};     ///< largest message
  Seconds latency{};  ///< largest alpha of a hop
  Bandwidth rate{};   ///< smallest rate of a hop, after sharing within its round
  Seconds by_rounds{};
  Seconds by_load{};
  std::optional<LinkId> busiest;  ///< link that sets by_load
  Volume busiest_bytes{};
  Seconds time{};  ///< max(by_rounds, by_load)
};

struct Estimate {
  Seconds total{};
  bool shared = false;  ///< two hops may use one link at once: the closed form is approximate
  std::vector<PhaseEstimate> phases;
};

Estimate estimate(const Fabric&, const Pattern&);
/// Several patterns at once from time 0, sharing links; one Estimate each.
std::vector<Estimate> estimate(const Fabric&, std::span<const Pattern>);

}  // namespace collcast
