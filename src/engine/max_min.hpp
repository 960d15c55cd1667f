// Links shared max-min fairly by all flows at once.
//
// A flow none of whose links another connection has, now or at any other time, is on no list: it takes the time worked
// out once for its connection. It is listed when another one gets a link of its own. A flow that is alone on all its
// links runs at its bandwidth and takes that time, too. Where flows meet, rates follow from
// the levels of their links (levels.hpp), which are settled once at the end of an instant, from the links that gained
// or lost a flow on. Where flows of several priorities meet, or where a change reaches so far that this is not worth
// it, everything that can be reached from those links through flows on common links is solved from nothing
// (water_filling.hpp): the same doubles. A flow's remaining bytes and its event change only if its rate changes, bit
// for bit; otherwise the earlier event still holds. Flows that meet on one link only, of one priority and with none
// that another link holds back, have equal rates and nobody else to ask: they are a pool (link_pool.hpp), in which a
// start or an end touches no other flow; a message that begins on the links of the one that leaves, in its instant,
// keeps their places (go_on). Since progress is counted exactly, it makes no difference when a pool is made and when it
// is taken apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/levels.hpp"
#include "engine/link_pool.hpp"
#include "engine/shared_links.hpp"
#include "engine/water_filling.hpp"

namespace collcast::engine {

class MaxMinLinks {
 public:
  static constexpr bool knows_apart = true;
  static constexpr bool pools = true;  ///< may_go_on, go_on
  MaxMinLinks(std::span<const Link> links, Connections& connections, Agenda& agenda)
      : connections_(connections), agenda_(agenda), given_(links), links_(connections), levels_(links_) {}

  /// The flow's present message has left.
  void stop(std::uint32_t flow) {
    Connection& connection = connections_[flow];
    if (!connection.is_unlisted) return unlist(flow);
    connection.is_unlisted = false;
    if (!connection.apart) connections_.left_unlisted(flow);
  }
  /// Whether a flow whose message has left may begin its next one, at the same instant and on the same links, without
  /// giving them up; it does so by go_on.
  bool may_go_on(std::uint32_t flow) const {
    if (connections_[flow].is_unlisted) return false;
    const std::uint32_t pool = flows_[flow].pool;
    return pool != none && pools_[pool].expected == flow;
  }
  /// The connection has been renewed.
  void go_on(std::uint32_t flow);
  /// Gives agenda.starting their links and every flow its rate, for the instant that ends here.
  void settle();

  Ticks busy(std::size_t link) const {
    return (links_.size() > 0 ? links_[link].busy : 0) + connections_.busy_unlisted(link);
  }
  std::int64_t rate_updates() const { return rate_updates_; }

 private:
  static constexpr std::uint32_t none = SharedLinks::none;
  using LinkState = SharedLinks::LinkState;

  struct FlowState {
    Grains remaining = 0;  ///< as of `since`
    double rate = 0;       ///< bytes per second from `since` on; 0: not flowing
    Ticks since = 0;
    std::uint64_t solved = 0;  ///< full solution it was last part of
    std::uint32_t shared = 0;  ///< links of its route that it shares
    std::uint32_t pool = none;
  };
  struct Pool {
    LinkPool flows;
    std::uint32_t link = 0;
    std::uint32_t expected = none;  ///< the flow whose event is in the queue
    std::uint32_t next = none;      ///< of the same link, for another weight
    std::uint16_t weight = 1;       ///< of each flow
    double share = -1;              ///< of the link, for one of weight 1, that the rate of `flows` is of
    /// Of a link's first pool: the smallest capacity of another link of any flow that has joined, over its weight.
    double others = 0;
    /// Likewise: the weights of all flows on the link when it was last divided, and its share for a weight of 1.
    std::uint64_t weights = 0;
    double per_weight = 0;
  };
  /// Pools of one link: looking for a flow's is a walk along them. With more, levels do it.
  static constexpr int most_weights = 8;

  void begin();
  void join(std::uint32_t flow);
  void unlist(std::uint32_t flow);
  void share(std::uint32_t flow, int change);
  void list_late(std::uint32_t flow);
  void run_alone(std::uint32_t flow);

  void look_at_changes();
  /// Several flows, and none of them shares another link.
  static bool is_apart(const LinkState& link) { return link.count > 1 && link.entangled == 0; }
  /// True if the flows of the link are in pools from now on.
  bool pool_up(std::uint32_t link);
  std::uint32_t pool_of(std::uint32_t link, std::uint16_t weight);
  std::uint32_t new_pool(std::uint32_t link);
  void enter(std::uint32_t pool, std::uint32_t flow);
  void leave_pool(std::uint32_t flow);
  void take_out_those_that_left(Pool& pool);
  void take_apart(std::uint32_t link);
  void set_pool_rates(std::uint32_t link, double share);
  double smallest_other(std::uint32_t flow, std::uint32_t link) const;

  void solve();
  void solve_anew();
  void reach(std::uint32_t link);
  void add_flow(std::uint32_t flow);
  void bring_up_to_date(std::uint32_t flow);
  void set_rate(std::uint32_t flow, double rate);
  void check_share(std::uint32_t flow) const;

  Connections& connections_;
  Agenda& agenda_;
  std::span<const Link> given_;
  SharedLinks links_;  ///< begun when first a flow is listed
  Levels levels_;
  std::vector<std::uint32_t> changed_;   ///< links on which flows met or parted in this instant
  std::vector<std::uint32_t> unsolved_;  ///< of those, the ones whose flows are no pool
  std::vector<std::uint32_t> fresh_;     ///< flows without a rate that share links
  std::vector<Pool> pools_;
  std::vector<std::uint32_t> free_pools_;
  std::uint64_t instant_ = 0, solution_ = 0;
  struct Reached {
    std::uint64_t solution = 0;
    std::uint32_t number = 0;  ///< in it
  };
  std::vector<Reached> reached_;  ///< by link
  std::vector<std::uint32_t> reached_links_, reached_flows_;
  std::vector<FlowState> flows_;  ///< by flow
  WaterFilling filling_;
  std::int64_t rate_updates_ = 0;

 public:
  static constexpr std::size_t bytes_per_flow = sizeof(FlowState) + sizeof(std::uint64_t),
                               bytes_per_link = sizeof(Reached) + Levels::bytes_per_link;
};

}  // namespace collcast::engine
