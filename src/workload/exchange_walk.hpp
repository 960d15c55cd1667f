// The pipeline gone through turn by turn while gradients are exchanged beside it, which slows the kernels
// (slowdown.hpp).
//
// The stream of a stage's DP group takes one bucket after the other, each when it is full: whenever a kernel begins,
// that stream is busy from then on for a time that is known. So a turn's end follows from its begin and that time, and
// the order of work is gone through as without (order_walk.hpp), exactly: what a stage sends late the next one gets
// late. Only turns from the one that fills the first bucket on are gone through kernel by kernel.
#pragma once

#include <span>
#include <vector>

#include "workload/plan.hpp"

namespace collcast::workload {

/// What is longer where DP slows the kernels, and what is less of it exposed beside them.
struct SlowedParts {
  Seconds compute{};
  Seconds tp{}, cp{}, ep{};  ///< exposed less
  SlowedParts& operator+=(const SlowedParts&);
  friend SlowedParts operator*(int times, SlowedParts);
  /// By how much it takes longer.
  Seconds total() const { return compute - tp - cp - ep; }
};

/// The end of a pass: of its last stretch, and of what runs beside that.
struct PassEnd {
  Seconds last{}, all{};
  SlowedParts slowed;
};
/// A pass from `begin` on, while a collective of DP runs until `busy`. What it waits for launches it has been slowed by
/// as well.
PassEnd end_of_pass(const std::vector<Stretch>&, Seconds begin, Seconds busy);
/// While a stream of DP has something to do, and until then nothing.
struct Busy {
  Seconds begin{}, end{};
};
/// Beside what runs one after the other.
PassEnd end_of_pass(const std::vector<Stretch>&, Seconds begin, std::span<const Busy>);

/// Whether kernels of the plan are slowed by the exchange of gradients beside them.
bool slows_beside_exchange(const StepPlan&);

struct ExchangeWalk {
  Seconds end{};                         ///< of the last stage's last turn
  std::vector<GradientTerms> gradients;  ///< by stage
  std::vector<SlowedParts> slowed;       ///< by stage
};
/// ZeRO 0 to 2.
ExchangeWalk walk_beside_exchange(const StepPlan&);

}  // namespace collcast::workload
