// Which flows are on which links now: the graph that max-min sharing is solved on.
//
// Every link lists its flows, every flow knows its place in each of these lists, so that coming and going take a
// constant time per link whatever else is under way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "engine/block_pool.hpp"
#include "engine/connections.hpp"

namespace collcast::engine {

class SharedLinks {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct OnLink {
    std::uint32_t flow;
    std::uint32_t crossing;  ///< its index in the table of crossings, to tell the flow when its place changes
  };
  struct LinkState {
    double capacity = 0;
    Ticks busy = 0;               ///< while flows are on it: less the time since when
    std::uint64_t looked_at = 0;  ///< instant at which it was last looked at as changed
    std::uint32_t count = 0;      ///< flows on it
    std::uint32_t entangled = 0;  ///< of those, flows that share another link as well
    std::uint32_t block = 0;      ///< where they are listed
    std::uint32_t room = 0;       ///< of the block
    std::uint32_t pool = none;

    /// Whether its share is worked out together with other links'; else one flow has it, or a pool.
    bool is_solved() const { return count > 1 && pool == none; }
  };

  explicit SharedLinks(Connections& connections) : connections_(connections) {}
  /// Before anything else, once.
  void begin(std::span<const Link> links) {
    links_.resize(links.size());
    for (std::size_t i = 0; i < links.size(); ++i) links_[i].capacity = links[i].bandwidth.value();
  }

  std::size_t size() const { return links_.size(); }
  LinkState& operator[](std::size_t link) { return links_[link]; }
  const LinkState& operator[](std::size_t link) const { return links_[link]; }
  std::span<const OnLink> flows_on(const LinkState& link) const { return lists_.block(link.block, link.count); }
  std::span<const Crossing> links_of(std::uint32_t flow) const { return connections_.crossings(flow); }
  std::uint16_t weight(std::uint32_t flow) const { return connections_.route(flow).weight; }
  int priority(std::uint32_t flow) const { return connections_.route(flow).priority; }

  /// The flow is on the link of that crossing of its route from now on.
  LinkState& enter(std::uint32_t flow, std::uint32_t index, Ticks now) {
    Crossing& crossing = connections_.crossing(index);
    LinkState& link = links_[crossing.link];
    if (link.count == 0) link.busy -= now;
    if (link.count == link.room) lists_.grow(link.block, link.room, link.count);
    crossing.place = link.count++;
    lists_[link.block + crossing.place] = {flow, index};
    return link;
  }
  LinkState& leave(const Crossing& crossing, Ticks now) {
    LinkState& link = links_[crossing.link];
    if (--link.count == 0) {
      link.busy += now;
      return link;
    }
    const OnLink moved = lists_[link.block + link.count];
    lists_[link.block + crossing.place] = moved;
    connections_.crossing(moved.crossing).place = crossing.place;
    return link;
  }

 private:
  Connections& connections_;
  std::vector<LinkState> links_;
  BlockPool<OnLink> lists_;
};

}  // namespace collcast::engine
