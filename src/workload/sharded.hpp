// One micro-batch of fully sharded data parallelism (ZeRO-3: Rajbhandari et al. 2020; FSDP: Zhao et al. 2023).
//
// A pass is the forward or the backward of a unit: c computing (with its TP), g gathering its weights before, r
// reducing its gradients after it. Beside a pass the gradients of the one before are reduced and then the weights of
// the next gathered, one after the other on the stream of the DP group. Two units are whole at a time and no more, so
// a pass begins when the one before and all that ran beside it are over:
//   micro-batch = g_0 + sum over j of max(c_j, r_{j-1} + g_{j+1}) + r_last
// which the timeline is, exactly; c_j is slowed by what runs beside it (slowdown.hpp). Without overlap: sum(g + c + r).
// Weights of the unit that ends the forward stay for the backward. A micro-batch begins with nothing gathered and ends
// with everything reduced.
#pragma once

#include <span>
#include <vector>

#include "workload/exchange_walk.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

struct ShardedPass {
  Seconds compute{}, gather{}, reduce{};
  SlowedParts slowed;  ///< in `compute`, for what runs beside it
};
/// Forward of all units, then their backward.
std::vector<ShardedPass> sharded_passes(const StagePlan&, bool reshard, bool overlap);

/// What a micro-batch takes beyond computing.
ShardingTerms sharding_terms(std::span<const ShardedPass>, bool overlap);

}  // namespace collcast::workload
