// Sharded data parallelism (ZeRO-2 and 3) in a pipeline: what each turn of a stage gathers and reduces, and the order
// of work gone through with that.
//
// A turn begins when the one before it is over, with all that it exchanged, and when its input is there; its message
// leaves when it has computed. So whatever else happens it takes as long as any other like it:
//   ZeRO-2  the buckets of its chunk fill as its weight gradients are computed, and the turn is over with the last one
//   ZeRO-3  units as in sharded.hpp: passes of c_j, g_j gathers, r_j reductions,
//           sent = g_0 + sum over j of max(c_j, r_{j-1} + g_{j+1}), over = sent + r_last; without overlap all of them
// With DualPipe the two stages that hold the same slices exchange with each other: both do the same turns, and each
// gather and reduction begins when both have come to it, which one of them may then be kept waiting by. Their order of
// work is one of DualPipeV, so that no two pairs wait for each other.
// Forwards gather, backwards gather again unless weights stay whole (reshard), turns with weight gradients reduce, of
// `no_sync` the last of each chunk only.
// Weights that are not split again stay whole from the first forward of their chunk to its last backward, as there is
// a micro-batch that needs them nearly all the time (PyTorch's pipeline stages: set_reshard_after_backward(False) until
// the last backward), and are gathered once. With overlap that begins with the step, unit after unit in the order of
// the first forwards, each of which waits for what it needs. All of that is over before the first backward of the
// stage, whose micro-batch has been through all of its chunks.
#pragma once

#include <span>
#include <vector>

#include "workload/exchange_walk.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

/// Whether each backward, a whole one, is right behind its forward on this stage: the unit between them is not gathered
/// again. Of one's own schedule its order says so, as it does of the built-in one that it may be written from.
bool turns_back(const StepPlan&, std::size_t stage);
bool turns_back(const StepInputs&, int stage);
/// Whether a chunk's weights that are not split again stay whole for the step; else for a micro-batch, as on one stage
/// that turns back.
bool stays_whole(const StepPlan&);
bool stays_whole(const StepInputs&);

/// Whether they are gathered from the begin of the step on.
bool gathers_ahead(const StepPlan&);
/// The units of a stage in the order in which their first forwards come.
std::vector<std::size_t> units_in_first_use(const StagePlan&, std::span<const Turn> order);

/// Stages that exchange with each other turn by turn: with ZeRO-2 and 3 those of DualPipe that hold the same slices.
std::vector<Team> teams_of(const StepPlan&);

/// What a turn does of a step that splits gradients or weights.
struct TurnExchange {
  bool gathers = false;      ///< the weights of its forward, or its backward,
  bool first_stays = false;  ///< but those of its first unit, which are there
  bool reduces = false;      ///< the gradients of its weights
  friend bool operator==(const TurnExchange&, const TurnExchange&) = default;
};

/// The turns of a stage, asked one after the other in its order.
class TurnExchanges {
 public:
  TurnExchanges(const StepPlan&, std::size_t stage, std::span<const Turn> order);
  TurnExchange next(const Turn&);

 private:
  bool makes_gradients(const Turn&) const;

  bool gathers_, reshards_, once_, turns_back_, no_sync_, splits_;
  std::vector<int> to_come_;    ///< turns with weight gradients, by chunk
  std::vector<bool> gathered_;  ///< chunks
};

/// Whether it is exchanged turn by turn: all but one stage that does a backward behind each forward, whose
/// micro-batches are alike.
bool exchanges_by_turns(const StepPlan&);

struct ShardedWalk {
  Seconds end{};                    ///< of the last turn with what it exchanges, and of the tied embedding's exchange
  std::vector<SlowedParts> slowed;  ///< by stage
};
/// Of a plan that exchanges by turns; `slows`: what it exchanges slows the kernels beside it.
ShardedWalk walk_sharded(const StepPlan&, bool slows);
/// In the place of its own orders.
ShardedWalk walk_sharded(const StepPlan&, const Orders&, bool slows);

/// Whether what a plan exchanges by turns slows kernels beside it.
bool slows_beside_turns(const StepPlan&);

/// What each turn takes of its stage with what it exchanges of every micro-batch: where a plan of one chunk a stage
/// that splits its backwards exchanges by turns. What is exchanged once a step is not in it.
ChunkedStages exchanging_times(const StepPlan&);

}  // namespace collcast::workload
