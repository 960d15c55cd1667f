// Orders of work that are made for the times of the stages: ZB-1p and ZB-2p (Qi et al. 2023, "Zero Bubble Pipeline
// Parallelism", section 3).
//
// What a stage may hold is given, in micro-batches whose activations it keeps: p, which is what the first stage of 1F1B
// holds, or 2p. Forwards without a backward, up to 2 (p - i) on stage i, count 1 each, backwards without weight
// gradients as much as what these need is of what a forward keeps; one may always wait for its weight gradients, also
// where these need more than all that a stage may hold, as they do when activations are recomputed. Within that each
// stage does at once what is there:
//   forwards until the first gradient is back, then one backward and one forward in turn;
//   a forward out of turn where no gradient is there and the next comes after its end;
//   weight gradients where the next of these is not there for as long as they take, or where the stage has waited
//   longer than any other; in the end the weight gradients that are left.
// Two questions have no answer that is always best: whether a forward is begun though the next gradient comes before
// its end, and whether weight gradients make room for a forward whose turn it is before the next gradient goes. All
// four answers are tried, and beside them H1 or H2 where that has room, and 1F1B with each backward's weight gradients
// behind it; taken is the one under which the longest of the stages, from its first turn to its last, is shortest (of
// equals the one that is over first). So no stage is longer than under these.
#pragma once

#include "workload/order_walk.hpp"

namespace collcast::workload {

/// Micro-batches whose activations a stage may hold, p or 2p; and how many forwards without a backward.
int most_held(PipelineSchedule, int stages);
int most_in_flight(PipelineSchedule, int stages, int stage, int micro_batches);

/// `kept[i]`: of what a forward of stage i keeps, what its weight gradients need. One chunk a stage.
Orders automatic_orders(PipelineSchedule, const ChunkedStages&, std::span<const double> kept, int micro_batches);

/// The closed form, without what the order adds: the work of the slowest stage behind the way to the last one.
PipelineTerms automatic_terms(const ChunkedStages&, int micro_batches);

}  // namespace collcast::workload
