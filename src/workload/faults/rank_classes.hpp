// Which ranks of a step are alike: partition refinement over their groups. See classed_plan.hpp for the idea.
#pragma once

#include <cstdint>
#include <vector>

#include "collcast/workload/groups.hpp"

namespace collcast::workload {

/// What every rank waits for, as a number of its group: equal numbers, one group. By rank.
struct RankJoins {
  std::vector<std::uint32_t> tp, cp, ep, dp, shard;
};
/// CP groups, EP groups (with those that share an expert), replicas, and the ranks that weights are split over, groups
/// that overlap joined to one.
RankJoins joins_of(const ParallelLayout&, int zero);

/// The classes, numbered in the order of their first ranks.
struct Folding {
  std::vector<std::uint32_t> class_of;  ///< by rank
  std::vector<Rank> first;              ///< by class
  std::vector<int> ranks;
};

/// `kind` by rank: what tells ranks apart before anybody looks at their groups, their stage included. `tied`: the first
/// and the last stage sum up gradients in pairs.
Folding fold(const ParallelLayout&, const RankJoins&, const std::vector<std::uint32_t>& kind, bool tied);
/// Every rank for itself.
Folding unfolded(const ParallelLayout&);

}  // namespace collcast::workload
