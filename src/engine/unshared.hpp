// Links that nobody shares: every flow runs as if it were alone. What remains is the dependency chain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"

namespace collcast::engine {

class UnsharedLinks {
 public:
  static constexpr bool knows_apart = false;
  static constexpr bool pools = false;
  UnsharedLinks(std::span<const Link> links, Connections& connections, Agenda& agenda)
      : connections_(connections), agenda_(agenda), links_(links.size()) {}

  void stop(std::uint32_t flow);
  void settle();

  Ticks busy(std::size_t link) const { return links_[link].busy; }
  std::int64_t rate_updates() const { return 0; }

 private:
  struct LinkState {
    Ticks busy = 0;
    std::uint32_t count = 0;
  };

  Connections& connections_;
  Agenda& agenda_;
  std::vector<LinkState> links_;
};

}  // namespace collcast::engine
