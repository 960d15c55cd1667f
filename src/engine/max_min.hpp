// Links shared max-min fairly by all flows at once.
//
// Every link lists its flows. A flow that is alone on all its links runs at its bandwidth and takes the
// time worked out when it was connected. Where flows meet, the links that gained or lost a flow in this
// instant are starting points: everything reachable from them through flows on common links is solved
// again, once, and nothing else is touched. A link with one flow leads nowhere; it only limits that flow.
// A flow's remaining bytes and its event change only if its rate changes, bit for bit; otherwise the
// earlier event still holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/block_pool.hpp"
#include "engine/connections.hpp"
#include "engine/water_filling.hpp"

namespace collcast::engine {

class MaxMinLinks {
 public:
  MaxMinLinks(std::span<const Link> links, Connections& connections, Agenda& agenda);

  /// The flow's present message has left.
  void stop(std::uint32_t flow);
  /// Gives agenda.starting their links and every flow its rate, for the instant that ends here.
  void settle();

  Ticks busy(std::size_t link) const { return links_[link].busy; }
  std::int64_t rate_updates() const { return rate_updates_; }

 private:
  struct OnLink {
    std::uint32_t flow;
    std::uint32_t crossing;  ///< its index in the flow table, to tell the flow when its place changes
  };
  struct LinkState {
    double capacity = 0;
    Ticks busy = 0;            ///< while flows are on it: less the time since when
    std::uint64_t solved = 0;  ///< solution it was last part of
    std::uint32_t count = 0;   ///< flows on it
    std::uint32_t block = 0;   ///< where they are listed
    std::uint32_t room = 0;    ///< of the block
    std::uint32_t number = 0;  ///< in that solution
  };

  void join(std::uint32_t flow);
  bool is_alone(const Connection& flow) const;
  void run_alone(std::uint32_t flow);
  void solve();
  void reach(std::uint32_t link);
  void add_flow(std::uint32_t flow);
  void set_rate(std::uint32_t flow, double rate);

  Connections& connections_;
  Agenda& agenda_;
  std::vector<LinkState> links_;
  BlockPool<OnLink> lists_;
  std::vector<std::uint32_t> changed_;  ///< links on which flows met or parted in this instant
  std::uint64_t solution_ = 0;
  std::vector<std::uint32_t> reached_links_, reached_flows_;
  std::vector<std::uint64_t> flow_solved_;  ///< by flow
  WaterFilling filling_;
  std::int64_t rate_updates_ = 0;
};

}  // namespace collcast::engine
