// All answers to one question side by side.
#pragma once

#include <optional>

#include "collcast/cost/estimate.hpp"
#include "collcast/engine/engine.hpp"
#include "support/patterns.hpp"

namespace collcast::test {

struct Answers {
  Estimate estimate;
  double simulated = 0;
  double critical = 0;               ///< without contention
  std::optional<double> recurrence;  ///< where no link is shared
  double rounding = 0;               ///< what the engine's round-ups can add: 2 ps per message of the longest way
};

/// Messages one after another on the longest way through a pattern, at most.
double longest_way(const Pattern&);
Answers answers(const Fabric&, const Pattern&);

/// Full mesh: a cable between every two ranks.
Fabric dedicated_fabric(int ranks, Bandwidth, Seconds latency);
/// `nodes` nodes of `per_node` GPUs on a switch, a NIC per GPU, the NICs on one switch.
Fabric cluster_fabric(int nodes, int per_node, Bandwidth inside, Bandwidth across, Seconds latency);

}  // namespace collcast::test
