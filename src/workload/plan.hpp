// A step with every time put in: what the closed form adds up and the timeline runs.
//
// All ranks of one pipeline stage do the same at the same time, so a stage is one rank: TP 0, DP 0. Its
// micro-batches pass through units (embedding, layers, head), each a list of stretches that run one after the
// other, computing or communicating within the TP, CP or EP group. Collectives slow the kernels that they run beside
// (slowdown.hpp). Assumed: collectives of different kinds do not slow each other.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collcast/workload/step.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

/// Collectives that a time is made of, one after the other: by place in StagePlan::collectives, all of them so many
/// times.
struct Uses {
  static constexpr int none = -1;
  std::array<int, 4> collectives{none, none, none, none};
  int times = 1;
  bool any() const { return collectives[0] != none; }
  friend bool operator==(const Uses&, const Uses&) = default;
};

/// Of the stretch that ends a pass whose kernels are over before the CPU has launched them, or before the copies to its
/// memory or from there are as far as they have to be.
inline constexpr const char* launch_wait_name = "wait for launches";
inline constexpr const char* copy_wait_name = "wait for copies";

/// forward, backward and recompute run on the compute stream, tp, cp and ep on the group's.
struct Stretch {
  std::string name;
  Category category = Category::forward;
  Seconds time{};
  Seconds beside{};  ///< CP messages, experts' exchange or TP at the same time; the next stretch waits for both
  Category beside_is = Category::cp;
  Uses uses = {};    ///< of `time` where that is communication, else of `beside`; none where an exchange is spread out
  double rate = 1;   ///< of its kernels while a collective runs beside them (slowdown.hpp)
  Seconds slowed{};  ///< of `time`: by what it is longer for what runs beside it
  Seconds spared{};  ///< of a wait for the host: by what it is shorter, as slower ranks hold the pass up
  bool waits_for_host() const { return name == launch_wait_name || name == copy_wait_name; }
  bool computes() const { return category != Category::tp && category != Category::cp && category != Category::ep; }
  Seconds length() const { return std::max(time, beside); }
  Seconds exposed_cp() const { return exposed(Category::cp); }
  Seconds exposed_ep() const { return exposed(Category::ep); }
  Seconds exposed(Category of) const {
    if (category == of) return time;
    return beside_is == of ? length() - time : Seconds{};
  }
  /// All of it, hidden or not.
  Seconds spent(Category of) const {
    if (category == of) return time;
    return beside_is == of ? beside : Seconds{};
  }
};

/// Of a pass, one stretch after the other.
Seconds length(const std::vector<Stretch>& pass);

struct UnitWork {
  std::vector<Stretch> forward, backward;
  Seconds gather{}, reduce{};         ///< ZeRO-3: of its weights before a pass, of its gradients after the backward
  std::vector<Stretch> weights = {};  ///< zero bubble: weight gradients, else part of the backward
  /// DualPipe, DualPipeV: the same two of a whole backward, whose exchange of experts runs beside both; empty: no
  /// different.
  std::vector<Stretch> whole_backward = {}, whole_weights = {};
  Uses gather_uses = {}, reduce_uses = {};
  std::shared_ptr<const UnitWork> detail = {};  ///< a search's: the stretches that these are sums of
  const UnitWork& in_detail() const { return detail ? *detail : *this; }
  bool is_slowed() const;  ///< by a collective beside it
  /// A frozen embedding has none.
  bool has_backward() const { return !in_detail().backward.empty() || !in_detail().weights.empty(); }
  /// ZeRO-3: what a pass gathers first; for a backward that there is not, nothing.
  Seconds gather_before(bool of_backward) const { return of_backward && !has_backward() ? Seconds{} : gather; }
  const std::vector<Stretch>& backward_of(bool whole) const {
    return whole && !whole_backward.empty() ? whole_backward : backward;
  }
  const std::vector<Stretch>& weights_of(bool whole) const {
    return whole && !whole_weights.empty() ? whole_weights : weights;
  }
  Seconds forward_time() const;
  Seconds backward_time() const;
  Seconds weights_time() const;
  Seconds saved_time() const;  ///< by which a whole backward is shorter than both
  /// Those of a micro-batch; of DualPipe and DualPipeV its backward is a whole one.
  std::array<const std::vector<Stretch>*, 3> passes() const {
    return {&forward, &backward_of(true), &weights_of(true)};
  }
  /// Over the stretches of all passes.
  template <class Part>
  Seconds sum_of(Part part) const {
    Seconds total{};
    for (const std::vector<Stretch>* stretches : passes())
      for (const Stretch& s : *stretches) total += part(s);
    return total;
  }
};

/// Units of a stage in forward order; equal layers share their work, and drafts (drafts.hpp). From `layer` on one for
/// each kind of layer.
enum class UnitKind { embedding, head, draft, layer };
inline constexpr std::size_t unit_kinds = 3 + 8 * layer_shapes.size();
UnitKind unit_of(LayerKind);
/// Of a layer.
LayerKind layer_of(UnitKind);
constexpr bool is_layer(UnitKind kind) { return kind >= UnitKind::layer; }
inline bool is_windowed(UnitKind kind) { return is_layer(kind) && layer_of(kind).windowed; }
/// A layer that meets more keys with every token.
inline bool attends_to_keys(UnitKind kind) { return is_layer(kind) && layer_of(kind).shape.attends(); }
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
  Uses uses = {};
};

struct StagePlan {
  Rank rank;
  std::vector<UnitWork> works;
  std::vector<Unit> units;
  std::vector<Bucket> buckets;  ///< in the order they fill: last unit first
  Seconds tied_embedding{};     ///< sum of the two copies' gradients, on the end stages only
  std::vector<Operation> optimizer;
  Seconds gather{};       ///< updated parameters, with a distributed optimizer
  double dispatched = 1;  ///< of the bytes of all experts' rows, what dispatch and combine send
  Uses tied_uses, gather_uses;
  std::vector<CollectiveCost> collectives;  ///< of this stage's ranks, each kind and size once

  const UnitWork& work(const Unit& unit) const { return works[unit.work]; }
  StageTime time() const;  ///< of one micro-batch
  StageTime time(int chunk) const;
  Seconds compute_time() const;       ///< of that, computing
  Seconds tp_time() const;            ///< and communicating within the TP group, as far as nothing hides it
  Seconds cp_time() const;            ///< and within the CP group, as far as nothing hides it
  Seconds ep_time() const;            ///< and between experts, as far as nothing hides it
  Seconds slowed_by(Category) const;  ///< of the computing, what is for collectives of this kind beside it
  Seconds optimizer_time() const;
};

/// The layer of a stage that is shown for all (parameters.hpp: shown_kind); nothing: it has none.
const Unit* shown_layer(const StagePlan&);

struct StepPlan {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int micro_batches = 1;  ///< that pass each unit: with DualPipe those of one way, half of the pipeline's
  int chunks = 1;         ///< of a stage's units; interleaved, V
  bool overlap_dp = true, overlap_pp = true;
  bool align_gradients = false;  ///< with overlap_dp, where that is something else (aligned.hpp)
  int zero = 0;                  ///< from 2 on gradients are reduced after every micro-batch
  bool reshard = true;           ///< ZeRO-3: weights are gathered for the forward and again for the backward
  bool no_sync = false;          ///< ZeRO-3: gradients are reduced in the last backward of a chunk only
  bool delayed = false;          ///< the gradients that are exchanged are those of the step before
  std::vector<StagePlan> stages;
  std::vector<Seconds> transfer;  ///< a message from stage i to i + 1 and back, and where the model goes round also
                                  ///< from the last to the first

  /// Chunks follow each other from the last stage to the first.
  bool goes_round() const { return chunks > 1 && !goes_in_v(schedule); }

  /// What each stage does, turn by turn.
  Orders orders() const;
  Orders own_orders;  ///< where the schedule alone does not say that; add_orders
  /// Of a schedule that is made for times; of others nothing.
  Orders made() const { return made_for_times(schedule) ? own_orders : Orders(); }

  /// Times and messages, a chunk for itself.
  ChunkedStages chunked() const;

  /// The stage with the most work; the first of equals.
  std::size_t slowest() const;
  /// Operations of its timeline, about: stretches of all micro-batches and buckets.
  double operations() const;
};
/// Those with slowest_groups: of that stage, then of the others.
std::vector<CollectiveCost> uneven_collectives(const StepPlan&, std::size_t first);
/// The stage, or where it has not the layer that is shown for the model the first that has.
const StagePlan& with_shown_layer(const StepPlan&, std::size_t stage);

/// `inputs` has passed check_step.
Result<StepPlan> make_plan(const StepInputs& inputs, const Fabric&, const CollectiveTime&);
/// All of it but the orders of its schedule: its times.
Result<StepPlan> make_priced_plan(const StepInputs& inputs, const Fabric&, const CollectiveTime&);

/// Its stages' units alone: what a micro-batch takes, without messages and what is exchanged between replicas.
Result<StepPlan> make_units(const StepInputs& inputs, const Fabric&, const CollectiveTime&);

/// The orders of a schedule that is made for the times of the stages (automatic_order.hpp), or is the user's own.
void add_orders(StepPlan&, const StepInputs&);

/// How fast a rank computes, of what its GPU can: itself, and the slowest of those that it waits for in a pass.
struct Pace {
  double own = 1, slowest = 1;
};
/// The group of a rank, of one kind.
using GroupOf = Group (*)(const ParallelLayout&, Rank);

/// What a collective of a stage asks for, whichever of its ranks asks; all ranks of a group ask for the same.
struct StageRequest {
  GroupOf group_of = nullptr;
  std::function<CollectiveRequest(Rank)> of;
};
/// Those of a stage, and what the slowest of the ways in which its groups lie takes.
struct StageRequests {
  std::vector<StageRequest> requests;
  std::vector<CollectiveCost> usual;  ///< one each, in the same order
};
Result<StageRequests> stage_requests(const StepInputs&, const Fabric&, const CollectiveTime&, int stage);

/// Of a rank with a pace of its own, whose collectives take what `costs` says, in the order of stage_requests.
StagePlan make_stage(const StepInputs&, const Fabric&, int stage, Rank, Pace, const std::vector<CollectiveCost>& costs);

/// What the messages between a rank's TP group and that of the next stage take, with the one that takes longest.
struct Transfer {
  Seconds time{};
  CollectiveCost message;
};
/// Of the rank `of`, else of the plan's.
Result<Transfer> make_transfer(const StepInputs&, const Fabric&, const CollectiveTime& time, int stage,
                               std::optional<Rank> of = {});

/// Rounded up to what a request can say.
Bytes whole(double bytes);
/// A sum of a few such sizes still fits 64 bits.
inline constexpr double most_bytes = 0x1p60;

/// Bytes of the collectives of a step: a TP collective of a layer (w T h), each of the loss's reductions (fp32 per
/// token), a message between stages (w T h/t), the sum of tied embeddings' gradients, the gather of a stage's
/// parameters.
double tp_bytes(const StepInputs&);
double loss_bytes(const StepInputs&);
double stage_message_bytes(const StepInputs&);
/// The gather of such messages among the TP group of a stage: that of the rank `of`, else of the first replica.
CollectiveRequest message_gather_request(const StepInputs&, const Fabric&, int stage, std::optional<Rank> of = {});
/// Whether each TP rank sends its share of the activations and the receivers gather them: without sequence parallelism,
/// which has them in shares anyway (Narayanan et al. 2021, section 4.1).
bool gathers_messages(const StepInputs&);
bool sums_tied_gradients(const StepInputs&);
double tied_bytes(const StepInputs&);
double gathered_bytes(const StepInputs&, int stage);
/// The same of experts that go their own way, which `gathered_bytes` leaves out.
double gathered_expert_bytes(const StepInputs&, int stage);

/// The stage of ZeRO that a timeline sees: without replicas there is nothing to split.
int sharding_stage(const StepInputs&);
/// ZeRO-3: whether weights are gathered once a step, else for each pass.
bool gathers_once(const StepInputs&);
/// Per rank and step: how often a stage's gradients are reduced, and with ZeRO-3 the weights of a unit gathered.
std::int64_t reductions(const StepInputs&);
std::int64_t unit_gathers(const StepInputs&, int stage, bool last_unit, bool has_backward);

/// How gradients of a stage (bytes by unit, in forward order) fill buckets of `size` bytes: for each bucket the
/// unit that completes it, last unit first. The last bucket holds `rest` bytes if that is above 0.
struct BucketFill {
  double size = 0;
  std::vector<std::size_t> unit;
  std::int64_t full = 0;
  double rest = 0;
};
BucketFill fill_buckets(std::span<const double> gradients, double size);
/// Those of a stage. Where gradients are reduced after each backward (ZeRO-2) the buckets of a chunk are its own.
std::vector<BucketFill> stage_buckets(const StepInputs&, int stage, double UnitParameters::*parameters);

GroupOf groups_along(Dimension);

/// Groups of the same kind with a rank on a node of `group`, without `group`: they communicate at the same time over
/// the same links.
std::vector<Group> groups_alongside(const ParallelLayout&, const Fabric&, GroupOf, const Group& group);

/// The messages of a TP group of `stage`, that of the rank `of` (else the first replica's), to their peers of the next
/// (of the last stage: of the first), one request per TP rank. Each pair sends both ways at once (activations on,
/// gradients back), as it does in the steady state of 1F1B, and beside it all pairs of this boundary with a rank on the
/// same nodes.
std::vector<CollectiveRequest> stage_messages(const ParallelLayout&, const Fabric&, int stage, Bytes message,
                                              std::optional<Rank> of = {});

}  // namespace collcast::workload
