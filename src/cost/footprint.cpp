// The memory of a closed form, counted from the same numbers that it is set up from (hops.hpp, lane_walk.hpp,
// loads.hpp). Left out: what several hops leave on a link that they cross at different moments, where hops are kept,
// which is known only once they have been followed.
#include <algorithm>

#include "collcast/cost/routed.hpp"
#include "cost/crossings.hpp"
#include "cost/hops.hpp"
#include "cost/lane_walk.hpp"
#include "cost/loads.hpp"

namespace collcast {

namespace {

struct Counts {
  double positions = 0, cells = 0, hops = 0, slots = 0, phases = 0;
  double circulating = 0;  ///< of the hops
};

Counts count(std::span<const Pattern> patterns) {
  Counts all;
  for (const Pattern& pattern : patterns)
    for (const Lane& lane : pattern.lanes) {
      all.positions += pattern.size();
      all.cells += static_cast<double>(pattern.size()) * static_cast<double>(lane.phases.size());
      all.phases = std::max(all.phases, static_cast<double>(lane.phases.size()));
      for (const Phase& phase : lane.phases)
        for (Position v = 0; v < pattern.size(); ++v) {
          const int ways = phase.ways(v);
          all.hops += ways;
          if (phase.flow == Flow::circulating) all.circulating += ways;
          if (phase.flow == Flow::forwarding) all.slots += phase.shape->receives(phase, v);
        }
    }
  return all;
}

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

}  // namespace

ClosedFormSize closed_form_size(const Fabric& fabric, std::span<const Pattern> patterns, std::int64_t crossings,
                                std::size_t most) {
  const Counts n = count(patterns);
  const auto crossed = static_cast<double>(crossings), all_links = static_cast<double>(fabric.links().size());
  const bool keeps = n.hops <= static_cast<double>(most) && crossed <= static_cast<double>(most);
  const double links = keeps ? std::min(all_links, crossed) : all_links;
  double kept = n.cells * sizeof(Hops::Cell) + links * sizeof(Hops::LinkInfo);
  kept += keeps ? n.hops * Hops::bytes_per_hop + crossed * sizeof(std::uint32_t) : n.positions * sizeof(Rank);
  double beside = n.positions * LaneWalk::bytes_per_position + n.cells * LaneWalk::bytes_per_cell +
                  n.slots * LaneWalk::bytes_per_slot;
  beside += links * (Loads::bytes_per_link + n.phases * Loads::bytes_per_link_and_phase);
  if (!keeps) {
    beside += links * sizeof(Crossings);
    // A link's hops of several rounds begin at different moments; those of a ring, whose rounds are one hop, at one.
    if (n.phases > 1 || n.slots > 0)
      beside +=
          std::max(0.0, crossed * (1 - n.circulating / std::max(1.0, n.hops)) - links) * Crossings::bytes_per_moment;
  }
  return {whole(kept), whole(beside)};
}

}  // namespace collcast
