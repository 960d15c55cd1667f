#include "workload/schedules/zero_bubble.hpp"

#include <algorithm>

namespace collcast::workload {

namespace {

int depth(PipelineSchedule schedule) { return schedule == PipelineSchedule::zb_h2 ? 2 : 1; }

}  // namespace

std::vector<Turn> zero_bubble_order(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  const int warm_up = std::min(micro_batches, depth(schedule) * (stages - 1 - stage)), lag = depth(schedule) * stage;
  std::vector<Turn> order;
  order.reserve(3 * static_cast<std::size_t>(micro_batches));
  for (int k = 0; k < warm_up; ++k) order.push_back({false, k, 0});
  int weights = 0;
  for (int k = 0; k < micro_batches; ++k) {
    if (warm_up + k < micro_batches) order.push_back({false, warm_up + k, 0});
    order.push_back({true, k, 0});
    if (k >= lag) order.push_back({true, weights++, 0, true});
  }
  while (weights < micro_batches) order.push_back({true, weights++, 0, true});
  return order;
}

PipelineTerms zero_bubble_terms(PipelineSchedule schedule, const ChunkedStages& in, int micro_batches) {
  std::vector<StageTime> stages = in.times;
  PipelineTerms terms;
  for (std::size_t i = 0; i < in.transfer.size(); ++i) {
    if (in.blocking) {
      stages[i].forward += in.transfer[i];
      stages[i + 1].backward += in.transfer[i];
    } else {
      terms.transfers += in.transfer[i];
    }
  }
  Seconds fill{};  // of the bubble, by the weight gradients of the others
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    terms.work += stages[i].whole();
    if (stages[i].whole() > stages[slowest].whole()) slowest = i;
  }
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (i != slowest) fill += (depth(schedule) + 1) * stages[i].weights;
  terms.first = terms.last = static_cast<int>(slowest);
  terms.window_work = stages[slowest].whole();
  terms.filled = fill;
  const Seconds messages = (schedule == PipelineSchedule::zb_h1 ? 4 : 2) * terms.transfers;
  const Seconds bubble = std::max(terms.work - terms.window_work - fill + messages, Seconds{});
  terms.rest = micro_batches * terms.window_work + bubble - terms.work - 2 * terms.transfers;
  return terms;
}

}  // namespace collcast::workload
