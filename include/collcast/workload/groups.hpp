// Process groups: which ranks talk to which, in each rank order.
#pragma once

#include <string_view>

#include "collcast/schedule/group.hpp"
#include "collcast/workload/config.hpp"

namespace collcast {

/// A rank's place in each dimension.
struct Coordinates {
  int tp = 0, pp = 0, dp = 0, cp = 0, ep = 0;
};
/// tp-pp-dp: rank = tp + TP*(pp + PP*dp), experts are spread over neighbours in dp. tp-cp-ep-dp-pp (Megatron): rank =
/// tp + TP*(cp + CP*(dp + DP*pp)); experts cut the ranks of a stage anew, as etp + ETP*(ep + EP*replica of the
/// experts), so that with etp = tp an EP group is neighbours in CP and then DP. dp-pp-tp: rank = dp + DP*(pp + PP*tp),
/// as far apart as a TP group can be: what a launcher gives that deals ranks out to the nodes in turn.
Coordinates coordinates(const ParallelLayout&, Rank);
Rank rank_at(const ParallelLayout&, const Coordinates&);

struct RankGroups {
  Rank rank;
  Group tp, pp, dp, cp, ep;  ///< each contains `rank`
};
RankGroups groups_of(const ParallelLayout&, Rank);

/// The ranks with the same parameters: DP and CP together, and with DualPipe those of the other stage that holds the
/// same slices, by number.
Group replica_group(const ParallelLayout&, Rank);
/// With ZeRO: the ranks that `rank`'s states are split over, neighbours in DP and all of CP (with DualPipe of both
/// stages), and those that hold the same part as it.
Group shard_group(const ParallelLayout&, Rank);
Group shard_copies(const ParallelLayout&, Rank);

/// The ranks that share each expert of `rank`, and those that have the same part of the same experts.
Group expert_tp_group(const ParallelLayout&, Rank);
Group expert_replica_group(const ParallelLayout&, Rank);
/// Whether the ranks of a stage that `dp_shard` makes a shard have every expert between them, each as often: what is
/// split with ZeRO needs it (check_step), and without it the four below are not to be asked.
bool shards_have_all_experts(const ParallelLayout&);
/// With ZeRO: ranks that a state of experts is split over, of the replicas of a shard those that have the same ones,
/// and copies of each part.
int expert_shards(const ParallelLayout&);
int expert_shard_copies(const ParallelLayout&);
Group expert_shard_group(const ParallelLayout&, Rank);
Group expert_copies_group(const ParallelLayout&, Rank);

enum class Dimension { tp, pp, dp, cp, ep };
std::string_view to_string(Dimension);

}  // namespace collcast
