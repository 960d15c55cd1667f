// A step of ranks that are not all alike, folded: ranks that do the same at the same time are one class.
//
// A rank waits for others at the collectives of its groups (TP, CP, EP, its replicas) and for messages of the stage
// before and after it. It ends an operation when the last of those it waits for does, so of a group only the set of
// classes in it matters. The classes are the coarsest partition in which ranks of one class have the same times and,
// group by group, the same set of classes (partition refinement): a step of one rank per class is the step of all, to
// the last picosecond. The tests hold it against the partition of every rank for itself.
#pragma once

#include <vector>

#include "workload/plan.hpp"

namespace collcast::workload {

struct RankClass {
  int stage = 0;
  Rank first;  ///< of its ranks
  int ranks = 1;
  double speed = 1;      ///< of its GPUs
  std::size_t plan = 0;  ///< of ClassedPlan::plans
};

/// Classes of one stage that wait for each other, ascending.
using Join = std::vector<std::size_t>;

struct StageClasses {
  std::vector<std::size_t> classes;
  std::vector<Join> tp, cp, ep;
  std::vector<Join> dp;     ///< gradients
  std::vector<Join> shard;  ///< weights that are split over them
  struct Message {
    std::size_t to = 0;  ///< of the next stage's tp
    Seconds time{};
  };
  std::vector<Message> next;  ///< by tp; empty where nothing follows
};

struct ClassedPlan {
  StepPlan plan;                 ///< each stage as the slowest of its classes: what the closed form sees
  std::vector<StagePlan> plans;  ///< alike in all but their times
  std::vector<RankClass> classes;
  std::vector<StageClasses> stages;
  struct Tied {
    std::size_t front = 0, back = 0;  ///< classes of the first and the last stage
    Seconds time{};
  };
  std::vector<Tied> tied;  ///< sums of the gradients of embeddings that both ends have

  const StagePlan& of(std::size_t c) const { return plans[classes[c].plan]; }
};

/// One class per stage.
ClassedPlan as_classes(const StepPlan&);

}  // namespace collcast::workload
