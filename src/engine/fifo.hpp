// Links taken in turn: a flow has all links of its route to itself, or waits for them.
//
// Every link keeps those that wait for it in one order that is the same on all links: priority, then time
// of asking, then who asks (ranks, lane, size, operation). A flow starts when it is first on every link of
// its route and all of them are free; a higher priority never interrupts. Because the order is the same
// everywhere, whoever is first of all waits only for flows that are under way, so nothing locks up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "engine/agenda.hpp"
#include "engine/block_pool.hpp"
#include "engine/connections.hpp"

namespace collcast::engine {

class FifoLinks {
 public:
  static constexpr bool knows_apart = false;
  static constexpr bool pools = false;
  FifoLinks(std::span<const Link> links, Connections& connections, Agenda& agenda)
      : connections_(connections), agenda_(agenda), links_(links.size()) {}

  void stop(std::uint32_t flow);
  void settle();

  Ticks busy(std::size_t link) const { return links_[link].busy; }
  std::int64_t rate_updates() const { return 0; }

 private:
  struct LinkState {
    Ticks busy = 0;
    std::uint32_t waiting = 0;
    std::uint32_t block = 0;  ///< heap of those that wait, the first at the top
    std::uint32_t room = 0;
    bool taken = false;
  };
  struct Request {
    Ticks asked = 0;
    bool waits = false;
  };

  bool before(std::uint32_t a, std::uint32_t b) const;
  void ask(std::uint32_t flow);
  void start_if_first(std::uint32_t flow);
  std::uint32_t first(const LinkState& link) const { return heaps_[link.block]; }

  Connections& connections_;
  Agenda& agenda_;
  std::vector<LinkState> links_;
  BlockPool<std::uint32_t> heaps_;
  std::vector<Request> requests_;          ///< by flow
  std::vector<std::uint32_t> candidates_;  ///< flows that may have become first
};

}  // namespace collcast::engine
