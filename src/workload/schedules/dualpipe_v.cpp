#include "workload/schedules/dualpipe_v.hpp"

#include <algorithm>

#include "workload/schedules/turns_of_v.hpp"

namespace collcast::workload {

std::vector<Turn> dualpipe_v_order(int stages, int stage, int micro_batches) {
  const int all = std::max(micro_batches, 2 * stages), behind = stages - 1 - stage;
  TurnsOfV order(all, micro_batches);
  order.fill(behind, stage);
  for (int n = 0; n < all - 2 * stages + stage + 1; ++n) {
    order.pair(0, 1);
    order.pair(1, 0);
  }
  for (int n = 0; n < behind; ++n) {
    order.whole_backward(1);
    order.pair(1, 0);
  }
  // Of the 2 (i+1) backwards the last i+1.
  for (int n = 0; n < 2 * (stage + 1); ++n) {
    const int chunk = n % 2 == 0 ? 1 : 0;
    if (n > stage)
      order.backward(chunk);
    else
      order.whole_backward(chunk);
  }
  for (int n = 0; n < behind; ++n) {
    order.weights();
    order.backward(0);
  }
  while (order.waiting()) order.weights();
  return order.take();
}

PipelineTerms dualpipe_v_terms(const ChunkedStages& in, int micro_batches) {
  const StagesOfV of(in);
  PipelineTerms terms = of.terms();
  const auto& [f, b, w, saved] = of.others();
  terms.ends = std::max({(f + 2 * b - w) / 2 - saved, (2 * f + b - w) / 2 - saved, f}) + terms.transfers;
  terms.rest = micro_batches * terms.window_work + terms.ends - terms.work - 2 * terms.transfers;
  return terms;
}

}  // namespace collcast::workload
