// Why one layout is slower or larger than the best, or cannot run: term by term, and the largest in words. Where none
// fits it stands alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/planner/plan.hpp"

namespace collcast {

/// What a person says of a layout; what is left open is taken from the best layout that agrees, else from the best.
struct LayoutQuestion {
  std::optional<int> tp = {}, pp = {}, dp = {}, micro_batch = {}, zero = {}, vpp = {}, cp = {}, ep = {}, batch = {};
  std::optional<bool> sequence_parallel = {};
  std::optional<Recompute> recompute = {};
};
/// A tp, pp and cp that are given decide dp, and that the micro-batch: the best's, or the largest below it that divides
/// a replica's sequences. Where nothing is ranked the nearest to the limits, or else the one that needs the least
/// memory, is in the place of the best, and where there is none of these a layout that splits nothing.
LayoutChoice complete(const LayoutQuestion&, const PlanResult&, const PlanInputs&);

/// One layout beside the best, by closed form.
struct WhyLayout {
  LayoutChoice choice;
  int rank = 0;                         ///< among the ranked; 0: not among them
  std::vector<std::string> objections;  ///< why it cannot run; empty: it can
  std::optional<MemoryUse> memory;      ///< nothing where degrees do not divide
  std::optional<Seconds> step;          ///< the same
  Breakdown breakdown;
  std::optional<PlannedServer> server = {};  ///< of a server, where there is a step
  double tokens_per_s_per_gpu = 0;
};
struct Why {
  WhyLayout asked;
  std::optional<WhyLayout> best;       ///< nothing: no layout fits
  std::optional<WhyLayout> runner_up;  ///< what the best is compared with, where it was asked about and is not alone
  std::vector<std::string> sentences;  ///< the largest differences to the best, largest first

  bool of_best() const { return asked.rank == 1; }
  /// What stands beside the best, or alone; nullptr: the best is the only layout.
  const WhyLayout* beside_best() const { return !of_best() ? &asked : runner_up ? &*runner_up : nullptr; }
};
/// Fails where a forecast fails.
Result<Why> why(const PlanInputs&, const Fabric&, const LayoutChoice& asked, const std::vector<PlannedLayout>& ranked);

}  // namespace collcast
