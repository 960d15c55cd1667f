// A step with every time put in: what the closed form adds up and the timeline runs.
//
// All ranks of one pipeline stage do the same at the same time, so a stage is one rank: TP 0, DP 0. Its
// micro-batches pass through units (embedding, layers, head), each a list of stretches that run one after the
// other, computing or communicating within the TP group. Assumed: TP communication is never hidden under the
// computation of its own layer, and collectives of different kinds do not slow each other or the kernels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collcast/workload/step.hpp"
#include "workload/pipeline.hpp"

namespace collcast::workload {

/// forward, backward and recompute run on the compute stream, tp on the group's.
struct Stretch {
  std::string name;
  Category category = Category::forward;
  Seconds time{};
  bool computes() const { return category != Category::tp; }
};

struct UnitWork {
  std::vector<Stretch> forward, backward;
  double gradients = 0;  ///< bytes that are ready when the backward is over
  Seconds forward_time() const;
  Seconds backward_time() const;
};

/// Units of a stage in forward order; equal layers share their work.
enum class UnitKind { embedding, layer, head };
struct Unit {
  UnitKind kind = UnitKind::layer;
  std::string label;  ///< "L5", "embedding", "head"
  std::size_t work = 0;
  int chunk = 0;
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
  StageTime time() const;  ///< of one micro-batch
  StageTime time(int chunk) const;
  Seconds compute_time() const;  ///< of that, computing
  Seconds tp_time() const;       ///< and communicating within the TP group
  Seconds optimizer_time() const;
};

struct StepPlan {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int micro_batches = 1;
  int chunks = 1;  ///< of a stage's units; interleaved
  bool overlap_dp = true, overlap_pp = true;
  std::vector<StagePlan> stages;
  std::vector<Seconds> transfer;  ///< activations from stage i to i + 1, and gradients back; with chunks also round

  /// The stage with the most work; the first of equals.
  std::size_t slowest() const;
  /// Operations of its timeline, about: stretches of all micro-batches and buckets.
  double operations() const;
};

/// `inputs` has passed check_step.
Result<StepPlan> make_plan(const StepInputs& inputs, const Fabric&, const CollectiveTime&);

/// Rounded up to what a request can say.
Bytes whole(double bytes);

/// Bytes of the collectives of a step: a TP collective of a layer (w T h), each of the loss's reductions (fp32 per
/// token), a message between stages, the sum of tied embeddings' gradients, the gather of a stage's parameters.
double tp_bytes(const StepInputs&);
double loss_bytes(const StepInputs&);
double stage_message_bytes(const StepInputs&);
double tied_bytes(const StepInputs&);
double gathered_bytes(const StepInputs&, int stage);

/// How the gradients of a stage (bytes by unit, in forward order) fill buckets of `size` bytes: for each bucket the
/// unit that completes it, last unit first. The last bucket holds `rest` bytes if that is above 0.
struct BucketFill {
  std::vector<std::size_t> unit;
  std::int64_t full = 0;
  double rest = 0;
};
BucketFill fill_buckets(std::span<const double> gradients, double size);

/// Groups of the same dimension with a rank on a node of `group`, without `group`: they communicate at the
/// same time over the same links.
std::vector<Group> groups_alongside(const ParallelLayout&, const Fabric&, Dimension, const Group& group);

/// The messages of the first replica's ranks of `stage` to their peers of the next (of the last stage: of the first),
/// one request per TP rank. Each
/// pair sends both ways at once (activations on, gradients back), as it does in the steady state of 1F1B, and
/// beside it all pairs of this boundary with a rank on the same nodes.
std::vector<CollectiveRequest> stage_messages(const ParallelLayout&, const Fabric&, int stage, Bytes message);

}  // namespace collcast::workload
