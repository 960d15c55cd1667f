// The passes of a server, priced by one method, and how they grow with the context (serving.hpp).
#pragma once

#include <optional>

#include "collcast/workload/step.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

/// All kinds of passes, priced by one method.
struct PricedPasses {
  StepPlan prompts, tokens;  ///< the tokens behind the prompts: the shortest context
  Seconds back{};
  std::optional<StepPlan> full = {};  ///< several prompts together, of a load
  double operations() const { return prompts.operations() + 2 * tokens.operations() + (full ? full->operations() : 0); }
};
Result<PricedPasses> price_passes(const StepInputs&, const Fabric&, const CollectiveTime&);

/// By how much a layer takes longer with `context` than with the prompts alone.
class ContextGrowth {
 public:
  explicit ContextGrowth(const StepInputs&);
  LongerContext at(int context);

 private:
  LongerContext cores(int context);

  StepInputs pass_, draft_;
  bool full_ = false, windowed_ = false, drafts_, draft_windowed_;
  LongerContext first_;
};
/// Of that, what is a unit's of this kind.
Seconds longer_of(const LongerContext&, UnitKind);

}  // namespace collcast::workload
