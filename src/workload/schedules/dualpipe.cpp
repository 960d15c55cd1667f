#include "workload/schedules/dualpipe.hpp"

#include <algorithm>

#include "workload/schedules/dualpipe_v.hpp"

namespace collcast::workload {

std::vector<Turn> dualpipe_order(int stages, int stage, int passes) {
  check(stages % 2 == 0, "stages in pairs");
  return dualpipe_v_order(stages / 2, std::min(stage, stages - 1 - stage), passes);
}

bool goes_down(int stages, int stage, int chunk) { return (stage < stages / 2) == (chunk == 0); }

std::optional<ChunkPlace> next_in_dualpipe(int stages, int stage, const Turn& turn) {
  const bool down = goes_down(stages, stage, turn.chunk);
  const int slice = (down ? stage : stages - 1 - stage) + (turn.backward ? -1 : 1);
  if (slice < 0 || slice == stages) return std::nullopt;
  return ChunkPlace{down ? slice : stages - 1 - slice, slice < stages / 2 ? 0 : 1};
}

PipelineTerms dualpipe_terms(const ChunkedStages& in, int passes) {
  check(in.chunks == 2 && in.stages % 2 == 0, "both chunks of stages in pairs");
  const int half = in.stages / 2;
  ChunkedStages folded{half, 2, {}, {}, in.blocking};
  const auto transfer = [&](int i) { return in.transfer[static_cast<std::size_t>(i)]; };
  for (int i = 0; i < half; ++i) {
    const int twin = in.stages - 1 - i;
    const int slower = in.of(twin).whole() > in.of(i).whole() ? twin : i;
    for (int chunk = 0; chunk < 2; ++chunk) folded.times.push_back(in.of(slower, chunk));
    if (i + 1 < half) folded.transfer.push_back((transfer(i) + transfer(twin - 1)) / 2);
  }
  // Of the two in the middle each sends the other activations and gradients of its own way.
  const Seconds middle = transfer(half - 1);
  if (in.blocking) {
    folded.times.back().forward += middle;
    folded.times.back().backward += middle;
  }
  PipelineTerms terms = dualpipe_v_terms(folded, passes);
  if (in.blocking) return terms;
  terms.transfers += middle;
  terms.ends += middle;
  terms.rest -= middle;
  return terms;
}

}  // namespace collcast::workload
