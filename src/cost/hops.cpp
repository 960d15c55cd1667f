#include "cost/hops.hpp"

#include <algorithm>
#include <limits>

namespace collcast {

Hops::Hops(const Fabric& fabric, std::span<const Pattern> patterns, std::size_t most_kept)
    : fabric_(fabric), patterns_(patterns.size()) {
  for (std::size_t p = 0; p < patterns.size(); ++p)
    for (const collcast::Lane& lane : patterns[p].lanes) add_lane(patterns[p], lane, static_cast<int>(p));
  if (keep(most_kept)) {
    number_links();
    for (Lane& lane : lanes_) lane.ranks = {};
    return;
  }
  kept_ = {};
  route_links_ = {};
  for (std::uint32_t i = 0; i < fabric.links().size(); ++i)
    links_.push_back({LinkId(i), fabric.links()[i].bandwidth.value()});
}

void Hops::add_lane(const Pattern& pattern, const collcast::Lane& lane, int number) {
  Lane added{number, pattern.size(), lane.route_lane, stages_.size(), lane.phases.size(), positions_, {}};
  added.ranks.reserve(static_cast<std::size_t>(pattern.size()));
  for (Position v = 0; v < pattern.size(); ++v) added.ranks.push_back(pattern.rank(lane, v));
  positions_ += added.ranks.size();
  most_phases_ = std::max(most_phases_, lane.phases.size());
  for (const Phase& phase : lane.phases) {
    stages_.push_back({phase, cells_.size()});
    for (Position v = 0; v < pattern.size(); ++v) {
      const Cell cell{0, static_cast<std::uint32_t>(slots_), phase.shape->sends(phase, v),
                      phase.shape->receives(phase, v)};
      if (phase.flow == Flow::forwarding) slots_ += static_cast<std::size_t>(cell.receives);
      cells_.push_back(cell);
    }
  }
  lanes_.push_back(std::move(added));
}

/// False: they are too many.
bool Hops::keep(std::size_t most) {
  std::size_t hops = 0;
  for (const Lane& lane : lanes_)
    for (std::size_t s = lane.first_stage; s < lane.first_stage + lane.stages; ++s)
      for (Position v = 0; v < lane.size; ++v) {
        Cell& cell = cells_[stages_[s].first_cell + static_cast<std::size_t>(v)];
        cell.first_hop = static_cast<std::uint32_t>(hops);
        hops += static_cast<std::size_t>(different(stages_[s], cell));
        if (hops > most) return false;
      }
  kept_.reserve(hops + 1);
  std::vector<LinkId> route;
  for (const Lane& lane : lanes_)
    for (std::size_t s = lane.first_stage; s < lane.first_stage + lane.stages; ++s) {
      const Stage& stage = stages_[s];
      for (Position v = 0; v < lane.size; ++v)
        for (int j = 0; j < different(stage, cells_[stage.first_cell + static_cast<std::size_t>(v)]); ++j) {
          const Hop hop = stage.phase.shape->send(stage.phase, v, j);
          route.clear();
          fabric_.route(lane.ranks[static_cast<std::size_t>(v)], lane.ranks[static_cast<std::size_t>(hop.peer)],
                        lane.route_lane, route);
          kept_.push_back({hop, static_cast<std::uint32_t>(route_links_.size()), 0, 0});
          for (const LinkId link : route) route_links_.push_back(link.value());
          if (route_links_.size() > most) return false;
        }
    }
  kept_.push_back({{}, static_cast<std::uint32_t>(route_links_.size()), 0, 0});
  return true;
}

void Hops::number_links() {
  const std::span<const Link> all = fabric_.links();
  for (std::size_t i = 0; i + 1 < kept_.size(); ++i) {
    kept_[i].bandwidth = std::numeric_limits<double>::infinity();
    for (std::size_t l = kept_[i].first_link; l < kept_[i + 1].first_link; ++l) {
      const Link& link = all[route_links_[l]];
      kept_[i].latency += link.latency.count();
      kept_[i].bandwidth = std::min(kept_[i].bandwidth, link.bandwidth.value());
    }
  }
  std::vector<std::uint32_t> number(all.size());
  for (const std::uint32_t link : route_links_) number[link] = 1;
  for (std::uint32_t i = 0; i < number.size(); ++i)
    if (number[i] != 0) {
      number[i] = static_cast<std::uint32_t>(links_.size());
      links_.push_back({LinkId(i), all[i].bandwidth.value()});
    }
  for (std::uint32_t& link : route_links_) link = number[link];
}

Sent Hops::worked_out(int lane_number, int phase_number, Position v, int j, Scratch& scratch) const {
  const Lane& lane = lanes_[static_cast<std::size_t>(lane_number)];
  const Phase& phase = stage(lane_number, phase_number).phase;
  Sent out{phase.shape->send(phase, v, j), {}, 0, std::numeric_limits<double>::infinity()};
  scratch.route.clear();
  scratch.links.clear();
  fabric_.route(lane.ranks[static_cast<std::size_t>(v)], lane.ranks[static_cast<std::size_t>(out.hop.peer)],
                lane.route_lane, scratch.route);
  for (const LinkId id : scratch.route) {
    const Link& link = fabric_.links()[id.value()];
    out.latency += link.latency.count();
    out.bandwidth = std::min(out.bandwidth, link.bandwidth.value());
    scratch.links.push_back(id.value());
  }
  out.links = scratch.links;
  return out;
}

}  // namespace collcast
