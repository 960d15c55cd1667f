// A server's passes run: micro-batches on their way through the stages, as operations (serving.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "collcast/engine/engine.hpp"
#include "collcast/workload/step.hpp"
#include "workload/serving/serving_passes.hpp"

namespace collcast::workload {

struct SimulatedPasses {
  Seconds prompts{};
  SimulatedTokens tokens;
  std::int64_t operations = 0;
  std::optional<Seconds> full = {};  ///< several prompts of a load together
};

/// Prompts and two rounds behind them, and of tokens between and at the end of the answers two rounds each.
Result<SimulatedPasses> simulate_passes(const StepInputs&, const PricedPasses&, const Fabric&, const EngineOptions&,
                                        StepTimeline*);

}  // namespace collcast::workload
