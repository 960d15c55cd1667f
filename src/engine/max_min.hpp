// Links shared max-min fairly by all flows at once.
//
// Every link lists its flows. A flow that is alone on all its links runs at its bandwidth and takes the
// time worked out when it was connected. Where flows meet, the links that gained or lost a flow in this
// instant are starting points: everything reachable from them through flows on common links is solved
// again, once, and nothing else is touched. A link with one flow leads nowhere; it only limits that flow.
// A flow's remaining bytes and its event change only if its rate changes, bit for bit; otherwise the
// earlier event still holds.
// Flows that meet on one link only, of one priority and with none that another link holds back, have equal rates and
// nobody else to ask: they are a pool (link_pool.hpp), in which a start or an end touches no other flow. Since progress
// is counted exactly, it makes no difference when a pool is made and when it is taken apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/block_pool.hpp"
#include "engine/connections.hpp"
#include "engine/link_pool.hpp"
#include "engine/water_filling.hpp"

namespace collcast::engine {

class MaxMinLinks {
 public:
  MaxMinLinks(std::span<const Link> links, Connections& connections, Agenda& agenda);

  /// The flow's present message has left.
  void stop(std::uint32_t flow);
  /// Gives agenda.starting their links and every flow its rate, for the instant that ends here.
  void settle();

  void prefetch(std::uint32_t link) const { __builtin_prefetch(&links_[link]); }
  Ticks busy(std::size_t link) const { return links_[link].busy; }
  std::int64_t rate_updates() const { return rate_updates_; }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct OnLink {
    std::uint32_t flow;
    std::uint32_t crossing;  ///< its index in the flow table, to tell the flow when its place changes
  };
  struct LinkState {
    double capacity = 0;
    Ticks busy = 0;               ///< while flows are on it: less the time since when
    std::uint64_t solved = 0;     ///< solution it was last part of
    std::uint64_t looked_at = 0;  ///< instant at which it was last looked at as changed
    std::uint32_t count = 0;      ///< flows on it
    std::uint32_t entangled = 0;  ///< of those, flows that share another link as well
    std::uint32_t block = 0;      ///< where they are listed
    std::uint32_t room = 0;       ///< of the block
    std::uint32_t number = 0;     ///< in that solution
    std::uint32_t pool = none;
  };
  struct FlowState {
    std::uint64_t solved = 0;  ///< solution it was last part of
    std::uint32_t shared = 0;  ///< links of its route that it shares
    std::uint32_t pool = none;
  };
  struct Pool {
    LinkPool flows;
    double others = 0;              ///< smallest capacity of another link of any flow that has joined
    std::uint32_t expected = none;  ///< the flow whose event is in the queue
  };

  void join(std::uint32_t flow);
  void list(std::uint32_t flow, std::uint32_t crossing);
  void unlist(const Crossing& crossing);
  void share(std::uint32_t flow, int change);
  void run_alone(std::uint32_t flow);

  void look_at_changes();
  /// Several flows, and none of them shares another link.
  static bool is_apart(const LinkState& link) { return link.count > 1 && link.entangled == 0; }
  /// True if the flows of the link are a pool from now on.
  bool pool_up(std::uint32_t link);
  void enter(std::uint32_t pool, std::uint32_t flow);
  void leave_pool(std::uint32_t flow);
  void take_apart(std::uint32_t link);
  void set_pool_rate(std::uint32_t link);
  double smallest_other(const Connection& flow, std::uint32_t link) const;

  void solve();
  void reach(std::uint32_t link);
  void add_flow(std::uint32_t flow);
  void set_rate(std::uint32_t flow, double rate);

  Connections& connections_;
  Agenda& agenda_;
  std::vector<LinkState> links_;
  BlockPool<OnLink> lists_;
  std::vector<std::uint32_t> changed_;   ///< links on which flows met or parted in this instant
  std::vector<std::uint32_t> unsolved_;  ///< of those, the ones whose flows are no pool
  std::vector<Pool> pools_;
  std::vector<std::uint32_t> free_pools_;
  std::uint64_t instant_ = 0, solution_ = 0;
  std::vector<std::uint32_t> reached_links_, reached_flows_;
  std::vector<FlowState> flows_;  ///< by flow
  WaterFilling filling_;
  std::int64_t rate_updates_ = 0;
};

}  // namespace collcast::engine
