// Pipeline schedules: the order of work on a stage, and the time of the whole in closed form.
//
// GPipe: all forwards, then all backwards in reverse. Two flow shops, in which the link between two stages is a machine
// too, as it passes one message after the other; exact for any times:
//   sum(F + B) + 2 sum(C) + (m-1) (max(F, C) + max(B, C))
// 1F1B: p-1-i forwards to warm up, then one forward and one backward in turn, then the remaining backwards.
// With asynchronous transfers of C, a window of n consecutive stages i..j passes n micro-batches per turn of
// its longest cycle, which takes sum(F + B) of its stages and 2 sum(C) of its inner boundaries. So
//   sum(F + B) + 2 sum(C) + max over windows of [(m-1) sum(F + B)/n + 2 mean(C) ((m-1) - ceil((m-1)/n))]
// For equal stages the window is the whole pipeline and this is m(F+B) + (p-1)(F+B) + 2C[(p-1) + (m-1) -
// floor((m+p-2)/p)], exact; without C the window is the slowest stage. For unequal stages or transfers it is an
// approximation, from 38 % too short to 20 % too long. So the order is gone through as well, a recurrence in
// (max, +) over m p turns without events, and what it says more or less is a term of its own (`order`): the sum is
// exact. Interleaved 1F1B: interleaved.hpp; zero bubble: zero_bubble.hpp,
// zero_bubble_v.hpp; DualPipe: dualpipe.hpp. The order of any schedule gone through: order_walk.hpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/workload/config.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "collcast/workload/terms.hpp"

namespace collcast::workload {

/// Of all schedules but a user's own and those that are made for times. With DualPipe `micro_batches` come from either
/// end.
std::vector<Turn> stage_order(PipelineSchedule, int stages, int stage, int micro_batches, int chunks = 1);

/// Whether there are whole backwards among others that leave out their weight gradients: DualPipe, DualPipeV,
/// or one's own.
bool has_whole_backwards(const ParallelLayout&);

struct ChunkPlace {
  int stage = 0, chunk = 0;
};
/// Where a turn's activations or gradients go on: to the stage's neighbour, between interleaved chunks round to the
/// other end, in a V down the stages and up again, with DualPipe on its way. None at an end of the model.
std::optional<ChunkPlace> next_place(PipelineSchedule, int stages, int chunks, int stage, const Turn&);

/// Whether a forward or backward waits for nobody: it is of the first slice of the model, or of the last.
bool begins(PipelineSchedule, int stages, int chunks, int stage, const Turn&);
/// Whether a turn's message goes the way from a stage to the next, and not that from a stage to the one before.
bool goes_on(PipelineSchedule, int stage, const ChunkPlace& to, const Turn&);

struct StageTime {
  Seconds forward{}, backward{};
  Seconds weights{};  ///< zero bubble: of the backward, what is a turn of its own
  Seconds saved{};    ///< DualPipe, DualPipeV: by which a whole backward is shorter than both
  Seconds whole_backward() const { return backward + weights - saved; }
  Seconds whole() const { return forward + whole_backward(); }
};
struct Pipeline {
  PipelineTerms terms;
  std::vector<Seconds> ahead;  ///< by stage: by how much its last backward ends before that of stage 0; exact
  std::vector<Seconds> later;  ///< with chunks, by chunk: of that, from the end of the chunk's last backward on
};
/// GPipe or 1F1B. `transfer[i]` is the time from stage i to i + 1 and back: one fewer than stages.
Pipeline run_pipeline(PipelineSchedule, std::span<const StageTime>, std::span<const Seconds> transfer,
                      int micro_batches);
inline PipelineTerms pipeline_terms(PipelineSchedule schedule, std::span<const StageTime> stages,
                                    std::span<const Seconds> transfer, int micro_batches) {
  return run_pipeline(schedule, stages, transfer, micro_batches).terms;
}

}  // namespace collcast::workload
