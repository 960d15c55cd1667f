// A step on a machine that is not as described, with faults or with its nodes elsewhere, beside the step on one that
// is: what that costs, and who waits for whom.
//
// Every rank is simulated, ranks that are alike once: a slow GPU holds up its TP group at every layer, its pipeline at
// every micro-batch, and all other replicas at the exchange of gradients. Collectives take what they take on the
// faulty links for the groups that come near one, and as without faults elsewhere, never less. The closed form is
// coarser: it has every replica as slow as the slowest one of each stage, and is an upper bound where several differ;
// of faults that come and go it takes the pace of each period, of jitter the means.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "collcast/topology/faults.hpp"
#include "collcast/topology/placement.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// Idle time of a rank by what ends it.
struct RankWaits {
  Seconds tp{}, cp{}, ep{};  ///< for the slowest of its group
  Seconds pipeline{};        ///< for messages, or its turn
  Seconds gradients{};       ///< for the other replicas' gradients
  Seconds norm{};            ///< for all gradients, before the optimizer
  Seconds end{};             ///< until the last rank is through
  Seconds total() const { return tp + cp + ep + pipeline + gradients + norm + end; }
};

/// Ranks that do the same at the same time.
struct RankClassTimes {
  int stage = 0;
  Rank first;
  int ranks = 1;
  double compute = 1;   ///< of their GPUs' speed
  Breakdown breakdown;  ///< as of a step; its bubble is the sum of the waits
  RankWaits waits;
};

/// What jitter costs, beside the same step with the same faults but none. Times of ranks are means over all of them, of
/// the first draw.
struct JitterEffect {
  Seconds without{};  ///< the step
  RankWaits waits_without, waits;
  Seconds busy_without{}, busy{};
  std::vector<Seconds> draws;  ///< steps, by seed: the first is as given, each further one with all seeds one higher
};

/// How a machine differs from its description.
struct MachineState {
  std::vector<MachineFault> faults;  ///< of the machine's GPUs and links, wherever the job's nodes are
  Placement placement = {};
  MachineState() = default;
  MachineState(std::vector<MachineFault> some, Placement nodes = {})
      : faults(std::move(some)), placement(std::move(nodes)) {}
  bool as_described() const { return faults.empty() && !placement.any(); }
};

/// Between the times at which faults begin or end.
struct FaultPeriod {
  Seconds begin{};
  std::vector<MachineFault> faults;  ///< that hold in it
  Seconds step{};                    ///< closed form of one that it would last all along
  double share = 0;                  ///< of the step that is done in it, by closed form; they sum to 1
};

struct FaultEffect {
  MachineState machine;
  Seconds step{}, estimate{};  ///< on the machine as described
  std::optional<Seconds> simulate{};
  Breakdown breakdown;
  int stage = 0;  ///< that it is of
  int ranks = 0;
  std::vector<RankClassTimes> classes;  ///< by stage, then by first rank; none without a simulation
  std::size_t slowest = 0;              ///< the class that the faulty step's breakdown is of
  StageTerms of_slowest;                ///< what that class does; of a simulation
  std::vector<FaultPeriod> periods;     ///< up to the one that the closed form ends in
  std::size_t worst = 0;                ///< the period that the closed form's terms are of
  double speed = 1;                     ///< of the slowest GPU of the stage that the result tells of
  std::optional<JitterEffect> jitter = {};
  bool is_undrawn = false;  ///< the watch ended the first draw: all times are without the jitter
};

struct FaultyStep {
  StepResult result;
  FaultEffect effect;
};

/// Steps that are drawn at most.
inline constexpr int most_draws = 10'000;

/// As forecast_step; `fabric` is the machine as described. With jitter the step is that of the first draw; where
/// the watch ends a later one, there are the draws before it, and where it ends the first, the step without. `goes_on`
/// ends closed forms.
Result<FaultyStep> forecast_faulty_step(const StepInputs&, const Fabric& fabric, const MachineState&,
                                        const CollectivePolicy&, Method, StepTimeline* timeline = nullptr,
                                        const EngineOptions& engine = {}, const Origins& origins = {}, int draws = 1,
                                        const GoesOn& goes_on = {});

/// What was known where the engine's watch or `goes_on` ended a forecast.
struct FaultyKnown {
  std::optional<FaultyStep> by_formula;    ///< the closed form
  std::optional<StepResult> as_described;  ///< that of the machine as described
};
/// By both methods.
struct FaultyAsFar {
  Result<FaultyStep> result;
  FaultyKnown known;
};
FaultyAsFar forecast_faulty_step_as_far(const StepInputs&, const Fabric& fabric, const MachineState&,
                                        const CollectivePolicy&, StepTimeline* timeline, const EngineOptions&,
                                        const Origins& = {}, int draws = 1, const GoesOn& goes_on = {});

}  // namespace collcast
