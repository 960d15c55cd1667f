// A step whose faults begin and end, cut into periods: the machine of each, and the closed form through all of them.
#pragma once

#include <span>
#include <vector>

#include "collcast/workload/faulty_step.hpp"
#include "workload/estimate_step.hpp"
#include "workload/faults/classed_plan.hpp"
#include "workload/faults/link_jitter.hpp"
#include "workload/faults/rank_prices.hpp"

namespace collcast::workload {

/// Between the times at which faults begin and end.
struct Period {
  Seconds begin{};
  Fabric fabric;
  FaultyMachine machine;
};

/// The times from 0 on at which any of them begins or ends; several faults' errors at once, each once.
Result<std::vector<Period>> periods_of(int ranks, const Fabric& as_described, const MachineState&);

/// Jitter of the job's ranks; none where it spreads nothing.
std::vector<RankJitter> jitters_of(int ranks, const Fabric&, std::span<const MachineFault>, std::span<const Period>);

/// Jitter of links, with the machines that it is priced on: as a period's, with the link slower and faster.
struct LinkVariants {
  std::vector<LinkJitter> jitters;
  std::vector<Period> machines;
};
Result<LinkVariants> link_variants_of(int ranks, const Fabric& as_described, const MachineState&,
                                      std::span<const Period>);

/// The closed form goes through the step at the pace of each period: of a period as long as a step would take that is
/// all of it, of one half as long a half.
struct PacedEstimate {
  Seconds total{};
  Breakdown breakdown;
  std::vector<StepEstimate> by_period;  ///< as if it lasted all the step long; of those that begin before the end
  std::vector<double> shares;           ///< of the step that is done in each
};

PacedEstimate paced_estimate(const std::vector<ClassedPlan>&, std::span<const Period>);

/// The faults that hold at a time.
std::vector<MachineFault> faults_at(std::span<const MachineFault>, Seconds);

/// Of the periods that begin before `end`, the one whose step would be the longest.
std::size_t worst_period(const std::vector<ClassedPlan>&, std::span<const Period>, Seconds end);

}  // namespace collcast::workload
