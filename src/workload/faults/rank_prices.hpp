// What every rank of a step takes on a machine with faults: how fast its GPU is, what its groups' collectives take,
// what its messages to the next stage take.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/faults/rank_classes.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

struct FaultyMachine {
  const Fabric* healthy = nullptr;
  std::vector<double> speed;     ///< of the GPU of each rank
  std::vector<bool> touched;     ///< nodes whose ranks' ways may differ; empty: none
  const CollectiveTime* time;    ///< on the faulty links
  bool is_placed = false;        ///< its ways are others, not only slower ones
  int varies = -1;               ///< a machine of the list, with one link slower or faster; its ranks' draws are own
  std::vector<bool> drawn = {};  ///< ranks whose times are random, so that they are like no other; empty: none
};

struct RankPrices {
  std::vector<Pace> paces;                      ///< by rank
  std::vector<StagePlan> plans;                 ///< one for ranks of equal times
  std::vector<std::size_t> stage_of_plan;       ///< by plan
  std::vector<std::size_t> plan_of;             ///< by rank
  std::vector<Seconds> transfer;                ///< by rank, to the next stage
  bool never_less = true;                       ///< than the base's
  std::vector<CollectiveCost> slowest_message;  ///< by boundary; empty: as the base's
};

/// Times of a plan, to tell equal ones.
std::vector<double> times_of(const StagePlan&);

/// `base` and `time`: without faults. Where `goes_on` says no it fails.
Result<RankPrices> price_ranks(const StepInputs&, const FaultyMachine&, const StepPlan& base, const RankJoins&,
                               const CollectiveTime& time, const GoesOn& goes_on = {});

}  // namespace collcast::workload
