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
//
// Where turns exchange gradients or weights of every micro-batch (ZeRO-2 and 3, sharded_walk.hpp), what they take of a
// stage is more than what they compute, by other parts on other stages. Then the answers are tried with both, and taken
// is the order under which the pipeline with all of its exchanges is over first; ZB-2p tries what ZB-1p does and
// H1, too. So it is never over later than under H1 or, of 2p, under ZB-1p and H2, where these have room.
#pragma once

#include <functional>

#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

/// Micro-batches whose activations a stage may hold, p or 2p; and how many forwards without a backward.
int most_held(PipelineSchedule, int stages);
int most_in_flight(PipelineSchedule, int stages, int stage, int micro_batches);

/// `kept[i]`: of what a forward of stage i keeps, what its weight gradients need. One chunk a stage.
Orders automatic_orders(PipelineSchedule, const ChunkedStages&, std::span<const double> kept, int micro_batches);

/// Turns that exchange something of every micro-batch: what they take of their stages with that, and when a pipeline of
/// theirs is over.
struct ExchangingTurns {
  ChunkedStages times;
  std::function<Seconds(const Orders&)> end;
};
/// `computing`: the same turns for themselves.
Orders automatic_orders(PipelineSchedule, const ChunkedStages& computing, const ExchangingTurns&,
                        std::span<const double> kept, int micro_batches);

/// The closed form, without what the order adds: the work of the slowest stage behind the way to the last one.
PipelineTerms automatic_terms(const ChunkedStages&, int micro_batches);

}  // namespace collcast::workload
