// The closed form of a Pattern on a Fabric.
//
// Every hop's first and last chunk are followed along what they wait for, across phases. With tau = chunk/beta,
// alpha = route latency, R rounds, c chunks, a hop on links of its own takes
//   circulating  max( R*c*tau + alpha at the slowest hop, alpha+tau summed over R hops around the ring
//                + (c-1)*max tau )                              = (R-1)*max(c*tau, tau+alpha) + c*tau + alpha
//   forwarding   tau for a chunk; the last is c-1 times the slowest tau of its way behind the first
//   sequential   c*tau, one after the other      concurrent   c*tau, all at once
// and where others are under way on its links as much longer as fair shares make it (src/cost/crossings.hpp). A phase
// takes at least as long as its busiest link: when its first byte can start, + all bytes of the phase that cross it
// over its bandwidth, + the least alpha of those bytes' routes. The cost is that of the hops and their routes, whatever
// the number of chunks. Exact where no two hops share a link and every ring is of like hops that begin together; else
// it is an approximation, and says so (docs/models.md: how near).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collcast/schedule/pattern.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

struct SlowestHop {
  Rank from, to;
  int route_lane = 0;
  Seconds latency{};
};

struct PhaseEstimate {
  std::string shape;
  Flow flow = Flow::forwarding;
  int rounds = 0;
  Volume chunk{};                     ///< largest message
  Seconds latency{};                  ///< largest alpha of a hop
  Bandwidth rate{};                   ///< smallest rate of a hop beside those that it shares links with
  std::optional<SlowestHop> slowest;  ///< of that rate; of several the one with the largest alpha
  // Both from when the phase before was over everywhere; ranks that are through with it have gone on by then.
  Seconds by_rounds{};            ///< along dependencies
  Seconds by_load{};              ///< of the busiest link
  std::optional<LinkId> busiest;  ///< link that sets by_load
  Volume busiest_bytes{};
  Seconds time{};  ///< max(by_rounds, by_load)
};

struct Estimate {
  Seconds total{};
  bool shared = false;  ///< two hops may use one link at once: the closed form is approximate
  bool drifts = false;  ///< a ring of unlike hops, or whose ranks begin apart: approximate (within 5 %)
  bool exact() const { return !shared && !drifts; }
  std::vector<PhaseEstimate> phases;
};

/// Whether a long closed form is to go on, asked every 32,768 hops that it looks at, and what it may take of memory,
/// asked before it takes much. Empty: nobody asks, and it takes what it needs.
class GoesOn {
 public:
  GoesOn() = default;
  template <class Ask>
  requires std::is_invocable_r_v<bool, const Ask&> GoesOn(Ask ask, std::function<Bytes()> room = {})
      : ask_(std::move(ask)), room_(std::move(room)) {}

  explicit operator bool() const { return ask_ != nullptr; }
  bool operator()() const { return ask_(); }
  /// As of now; nothing: as much as it needs.
  std::optional<Bytes> room() const { return room_ ? std::optional(room_()) : std::nullopt; }

 private:
  std::function<bool()> ask_;
  std::function<Bytes()> room_;
};

Estimate estimate(const Fabric&, const Pattern&);
/// Several patterns at once from time 0, sharing links; one Estimate each.
std::vector<Estimate> estimate(const Fabric&, std::span<const Pattern>);
/// The first of them alone, beside the others.
Estimate estimate_first(const Fabric&, std::span<const Pattern>);
/// At a tenth of the work and whatever the number of chunks: the first takes no less than this beside the others.
Seconds least_time(const Fabric&, std::span<const Pattern>);

}  // namespace collcast
