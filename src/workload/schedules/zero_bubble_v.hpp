// Zero-bubble schedule V (Qi et al., "Zero Bubble Pipeline Parallelism", ZB-V): the model goes down the p stages and up
// again. Stage i holds its slices i and 2p-1-i as chunks 0 and 1, so the first stage has both ends of the model, and
// the last one goes from chunk to chunk without a message. The paper has a scheduler that is given times; here it is an
// order that knows of none.
//
// Order of stage i, with Fc, Bc the next forward and backward of chunk c, and W the weight gradients of the oldest
// backward that has had none:
//   2 (p-1-i) times F0, i+1 times F0 F1, p-1-i times B1 W F1
//   m-p times B1 W F0 B0 W F1, the last of them without F0, as there are none left
//   i+1 times B1 B0, p-1-i times W B0, then each W that is left
// Every stage begins with 2p forwards and never holds more than 2p micro-batches of a chunk each, those that wait for W
// among them: what the first stage of 1F1B holds, on all stages alike. With fewer than 2p micro-batches it is the order
// of 2p without the turns of those that are not there; as a micro-batch waits for itself only, no order can wait for
// itself that way.
//
// Closed form, with F, B and W of both chunks of a stage, X all three of the slowest, sums over the others and over the
// transfers C between two stages:
//   m X + max(sum(F) / 2 + 5 sum(C), sum(B) / 2 + 5 sum(C), sum(W) / 2 + 3 sum(C), sum(F - B/2) + 3 sum(C),
//             sum(F - W) + 4 sum(C), sum((F+B)/2 - W) + 6 sum(C), sum(B - W) + 6 sum(C))
// Exact for equal stages with m of at least 2p, as long as a message is not what the steady state waits for. Without
// messages and F = B = W every stage is busy from its first turn to its last, and the pipeline takes (p-1) F/2 longer
// than its work: until the last stage has the first micro-batch. Else the order is gone through, as for H1 and H2, and
// the rest is PipelineTerms::order, with which the sum is exact.
#pragma once

#include <optional>

#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

std::vector<Turn> zero_bubble_v_order(int stages, int stage, int micro_batches);

/// As next_place; on the last stage a turn goes on to the other chunk of its own.
std::optional<ChunkPlace> next_in_v(int stages, int stage, const Turn&);

/// The closed form, without what the order adds; blocking messages are part of their sender's turns.
PipelineTerms zero_bubble_v_terms(const ChunkedStages&, int micro_batches);

}  // namespace collcast::workload
