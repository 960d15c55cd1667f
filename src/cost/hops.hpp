// The hops of patterns with their routes, looked up once: all that does not depend on bytes or on the number of chunks.
//
// The links that are crossed are numbered anew, in the fabric's order, so that what is kept per link is as small as
// what is used. Of hops that cross more than eight million links nothing is kept: each is worked out when asked for,
// and links keep the fabric's numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collcast/cost/routed.hpp"

namespace collcast {

/// One send of a position, and its way.
struct Sent {
  Hop hop;
  std::span<const std::uint32_t> links;  ///< by Hops' numbers
  double latency = 0;                    ///< seconds, all links'
  double bandwidth = 0;                  ///< bytes per second of the slowest; infinite without links
};

class Hops {
 public:
  Hops(const Fabric&, std::span<const Pattern>, std::size_t most_kept = RoutedPatterns::most_kept);

  struct Lane {
    int pattern = 0;
    int size = 0;
    int route_lane = 0;
    std::size_t first_stage = 0, stages = 0;
    std::size_t first_position = 0;  ///< positions of all lanes are counted through
    std::vector<Rank> ranks;         ///< by position; empty where hops are kept
  };
  struct Stage {  ///< a phase of a lane
    Phase phase;
    std::size_t first_cell = 0;
  };
  struct Cell {  ///< a position in a stage
    std::uint32_t first_hop = 0;
    std::uint32_t first_slot = 0;  ///< of its receives, counted through; forwarding only
    int sends = 0, receives = 0;
  };
  struct LinkInfo {
    LinkId id{};
    double bandwidth = 0;
  };

  std::span<const Lane> lanes() const { return lanes_; }
  const Stage& stage(int lane, int phase) const {
    return stages_[lanes_[static_cast<std::size_t>(lane)].first_stage + static_cast<std::size_t>(phase)];
  }
  std::size_t cell_index(int lane, int phase, Position v) const {
    return stage(lane, phase).first_cell + static_cast<std::size_t>(v);
  }
  const Cell& cell(int lane, int phase, Position v) const { return cells_[cell_index(lane, phase, v)]; }
  std::span<const LinkInfo> links() const { return links_; }
  std::size_t patterns() const { return patterns_; }
  std::size_t most_phases() const { return most_phases_; }
  std::size_t positions() const { return positions_; }
  std::size_t stages() const { return stages_.size(); }
  std::size_t cells() const { return cells_.size(); }
  std::size_t slots() const { return slots_; }
  bool are_kept() const { return !kept_.empty(); }
  /// Links that the kept hops cross, all told.
  std::size_t kept() const { return route_links_.size(); }

  /// Room for a hop that is worked out.
  struct Scratch {
    std::vector<LinkId> route;
    std::vector<std::uint32_t> links;
  };
  /// All sends of a ring are alike: its hop 0. Good until the next hop is asked for with the same scratch.
  Sent sent(int lane, int phase, Position v, int j, Scratch& scratch) const {
    if (kept_.empty()) return worked_out(lane, phase, v, j, scratch);
    const std::size_t i = cell(lane, phase, v).first_hop + static_cast<std::size_t>(j);
    const Kept& hop = kept_[i];
    return {hop.hop, std::span(route_links_).subspan(hop.first_link, kept_[i + 1].first_link - hop.first_link),
            hop.latency, hop.bandwidth};
  }
  /// Hops of a position that differ.
  int different(const Stage& stage, const Cell& cell) const { return different_hops(stage.phase.flow, cell.sends); }

 private:
  struct Kept {
    Hop hop;
    std::uint32_t first_link = 0;
    double latency = 0, bandwidth = 0;
  };

 public:
  static constexpr std::size_t bytes_per_hop = sizeof(Kept);

 private:
  void add_lane(const Pattern&, const collcast::Lane&, int pattern);
  bool keep(std::size_t most);
  void number_links();
  Sent worked_out(int lane, int phase, Position v, int j, Scratch&) const;

  Fabric fabric_;
  std::vector<Lane> lanes_;
  std::vector<Stage> stages_;
  std::vector<Cell> cells_;
  std::vector<Kept> kept_;  // and one to end the last
  std::vector<std::uint32_t> route_links_;
  std::vector<LinkInfo> links_;
  std::size_t patterns_ = 0, most_phases_ = 0, positions_ = 0, slots_ = 0;
};

}  // namespace collcast
