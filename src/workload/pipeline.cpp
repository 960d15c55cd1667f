#include "workload/pipeline.hpp"

#include <algorithm>
#include <cmath>

namespace collcast::workload {

std::vector<Turn> stage_order(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  std::vector<Turn> order;
  order.reserve(2 * static_cast<std::size_t>(micro_batches));
  if (schedule == PipelineSchedule::gpipe) {
    for (int k = 0; k < micro_batches; ++k) order.push_back({false, k});
    for (int k = micro_batches - 1; k >= 0; --k) order.push_back({true, k});
    return order;
  }
  const int warm_up = std::min(micro_batches, stages - 1 - stage);
  for (int k = 0; k < warm_up; ++k) order.push_back({false, k});
  for (int k = 0; k < micro_batches; ++k) {
    if (warm_up + k < micro_batches) order.push_back({false, warm_up + k});
    order.push_back({true, k});
  }
  return order;
}

namespace {

/// The m-1 micro-batches after the first, from the window of stages that is slowest.
void add_steady_1f1b(std::span<const StageTime> stages, std::span<const Seconds> transfer, int micro_batches,
                     PipelineTerms& terms) {
  const double more = micro_batches - 1;
  for (std::size_t first = 0; first < stages.size(); ++first) {
    Seconds work{}, wire{};
    for (std::size_t last = first; last < stages.size(); ++last) {
      work += stages[last].forward + stages[last].backward;
      if (last > first) wire += transfer[last - 1];
      const double n = static_cast<double>(last - first + 1);
      Seconds time = work * (more / n);
      if (n > 1) time += 2 * wire / (n - 1) * (more - std::ceil(more / n));
      if (time <= terms.rest) continue;
      terms.rest = time;
      terms.first = static_cast<int>(first);
      terms.last = static_cast<int>(last);
      terms.window_work = work;
      terms.window_transfers = wire;
    }
  }
}

}  // namespace

PipelineTerms pipeline_terms(PipelineSchedule schedule, std::span<const StageTime> stages,
                             std::span<const Seconds> transfer, int micro_batches) {
  check(!stages.empty() && transfer.size() + 1 == stages.size() && micro_batches >= 1,
        "one transfer between two stages");
  PipelineTerms terms;
  for (const StageTime& s : stages) {
    terms.work += s.forward + s.backward;
    terms.slowest_forward = std::max(terms.slowest_forward, s.forward);
    terms.slowest_backward = std::max(terms.slowest_backward, s.backward);
  }
  for (const Seconds c : transfer) terms.transfers += c;
  if (schedule == PipelineSchedule::gpipe)
    terms.rest = (terms.slowest_forward + terms.slowest_backward) * (micro_batches - 1);
  else
    add_steady_1f1b(stages, transfer, micro_batches, terms);
  return terms;
}

}  // namespace collcast::workload
