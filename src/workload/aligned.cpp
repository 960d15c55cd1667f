#include "workload/aligned.hpp"

#include <utility>

#include "workload/gradient_exchange.hpp"

namespace collcast::workload {

bool aligns_gradients(const StepPlan& plan) {
  return plan.align_gradients && plan.overlap_dp && !plan.delayed && plan.zero < 2 && plan.stages.size() > 1 &&
         can_align_gradients(plan.schedule);
}

bool fills_in_backward(const StepPlan& plan, std::size_t stage) {
  if (!plan.overlap_dp) return false;
  return !aligns_gradients(plan) || (stage == 0 && plan.schedule != PipelineSchedule::interleaved);
}

GradientLaunches::GradientLaunches(const StepPlan& plan, std::size_t stage, std::span<const Turn> order)
    : after_(static_cast<std::size_t>(plan.chunks)) {
  int backwards = 0;
  for (const Turn& turn : order)
    if (turn.backward) after_[static_cast<std::size_t>(turn.chunk)] = ++backwards;
  const bool interleaved = plan.schedule == PipelineSchedule::interleaved;
  for (int& after : after_) after += interleaved ? static_cast<int>(stage) : backwards;
}

std::vector<int> GradientLaunches::behind(const Turn& turn) {
  std::vector<int> chunks;
  if (!turn.backward) return chunks;
  ++backwards_;
  for (std::size_t c = 0; c < after_.size(); ++c)
    if (after_[c] == backwards_) {
      chunks.push_back(static_cast<int>(c));
      after_[c] = -1;
    }
  return chunks;
}

std::vector<int> GradientLaunches::left() const {
  std::vector<int> chunks;
  for (std::size_t c = 0; c < after_.size(); ++c)
    if (after_[c] >= 0) chunks.push_back(static_cast<int>(c));
  return chunks;
}

}  // namespace collcast::workload

namespace collcast {

bool can_align_gradients(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::one_f_one_b || schedule == PipelineSchedule::gpipe ||
         schedule == PipelineSchedule::interleaved;
}

bool aligns_gradients(const StepInputs& in) {
  const TrainingOptions& o = in.options;
  return o.align_grad_reduce && o.overlap_dp && !o.delayed_all_reduce && workload::sharding_stage(in) < 2 &&
         in.layout.pp > 1 && can_align_gradients(in.layout.schedule) && workload::exchanges_gradients(in);
}

}  // namespace collcast
