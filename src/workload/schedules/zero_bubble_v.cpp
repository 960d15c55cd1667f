#include "workload/schedules/zero_bubble_v.hpp"

#include <algorithm>

#include "workload/schedules/turns_of_v.hpp"

namespace collcast::workload {

namespace {

int slices(int stages) { return 2 * stages; }

}  // namespace

std::vector<Turn> zero_bubble_v_order(int stages, int stage, int micro_batches) {
  const int all = std::max(micro_batches, slices(stages)), behind = stages - 1 - stage;
  TurnsOfV order(all, micro_batches);
  order.fill(behind, stage);
  for (int n = 0; n < all - stages; ++n) {
    order.backward(1);
    order.weights();
    order.forward(0);
    order.backward(0);
    order.weights();
    order.forward(1);
  }
  for (int n = 0; n <= stage; ++n) {
    order.backward(1);
    order.backward(0);
  }
  for (int n = 0; n < behind; ++n) {
    order.weights();
    order.backward(0);
  }
  while (order.waiting()) order.weights();
  return order.take();
}

std::optional<ChunkPlace> next_in_v(int stages, int stage, const Turn& turn) {
  const int slice = (turn.chunk == 0 ? stage : slices(stages) - 1 - stage) + (turn.backward ? -1 : 1);
  if (slice < 0 || slice == slices(stages)) return std::nullopt;
  return slice < stages ? ChunkPlace{slice, 0} : ChunkPlace{slices(stages) - 1 - slice, 1};
}

PipelineTerms zero_bubble_v_terms(const ChunkedStages& in, int micro_batches) {
  const StagesOfV of(in);
  PipelineTerms terms = of.terms();
  const auto& [f, b, w, saved] = of.others();
  const Seconds c = terms.transfers / 2;
  terms.ends = std::max({f / 2 + 5 * c, b / 2 + 5 * c, w / 2 + 3 * c, f - b / 2 + 3 * c, f - w + 4 * c,
                         (f + b) / 2 - w + 6 * c, b - w + 6 * c});
  terms.rest = micro_batches * terms.window_work + terms.ends - terms.work - 2 * terms.transfers;
  return terms;
}

}  // namespace collcast::workload
