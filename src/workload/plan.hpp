// A step with every time put in: what the closed form adds up and the timeline runs.
//
// All ranks of one pipeline stage do the same at the same time, so a stage is one rank: TP 0, DP 0. Its
// micro-batches pass through units (embedding, layers, head), each a list of stretches that run one after the
// other, computing or communicating within the TP group. Assumed: TP communication is never hidden under the
// computation of its own layer, and collectives of different kinds do not slow each other or the kernels.
#pragma once

#include <string>
#include <vector>

#include "collcast/workload/step.hpp"
#include "workload/pipeline.hpp"

namespace collcast::workload {

/// `category`: forward, backward, recompute or optimizer run on the compute stream, tp on the group's.
struct Stretch {
  std::string name;
  std::string category;
  Seconds time{};
  bool computes() const { return category != "tp"; }
};

struct UnitWork {
  std::vector<Stretch> forward, backward;
  double gradients = 0;  ///< bytes that are ready when the backward is over
  Seconds forward_time() const;
  Seconds backward_time() const;
};

/// Units of a stage in forward order; equal layers share their work.
struct Unit {
  std::string label;  ///< "L5", "embedding", "head"
  std::size_t work = 0;
};

/// A gradient bucket: complete once the backward of `unit` (and of all units above it) is over.
struct Bucket {
  std::size_t unit = 0;
  Seconds time{};
};

struct StagePlan {
  Rank rank;
  std::vector<UnitWork> works;
  std::vector<Unit> units;
  std::vector<Bucket> buckets;  ///< in the order they fill: last unit first
  Seconds tied_embedding{};     ///< sum of the two copies' gradients, on the end stages only
  std::vector<Operation> optimizer;
  Seconds gather{};                         ///< updated parameters, with a distributed optimizer
  std::vector<CollectiveCost> collectives;  ///< of this stage's ranks, each kind and size once

  const UnitWork& work(const Unit& unit) const { return works[unit.work]; }
  StageTime time() const;        ///< of one micro-batch
  Seconds compute_time() const;  ///< of that, computing
  Seconds tp_time() const;       ///< and communicating within the TP group
  Seconds optimizer_time() const;
};

struct StepPlan {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int micro_batches = 1;
  bool overlap_dp = true, overlap_pp = true;
  std::vector<StagePlan> stages;
  std::vector<Seconds> transfer;  ///< activations from stage i to i + 1, and gradients back

  /// The stage with the most work; the first of equals.
  std::size_t slowest() const;
  /// Operations of its timeline, about: stretches of all micro-batches and buckets.
  double operations() const;
};

/// `inputs` has passed check_step.
Result<StepPlan> make_plan(const StepInputs& inputs, const Fabric&, const CollectiveTime&);

/// Groups of the same dimension with a rank on a node of `group`, without `group`: they communicate at the
/// same time over the same links.
std::vector<Group> groups_alongside(const ParallelLayout&, const Fabric&, Dimension, const Group& group);

/// One message of every rank of `stage` to its peer of the next, all at once: the slowest, with the links of
/// each route shared by all the messages that use them.
Seconds stage_transfer(const ParallelLayout&, const Fabric&, int stage, Volume message);

}  // namespace collcast::workload
