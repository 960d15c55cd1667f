// A step spelled out as operations: per class of ranks a compute stream, a stream of its TP group, one for messages
// in each direction and one of its DP group; events order them. What classes do together is one operation, which waits
// for all of them, on a stream of the first.
#pragma once

#include <optional>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "collcast/schedule/schedule.hpp"
#include "workload/critical.hpp"
#include "workload/faults/classed_plan.hpp"

namespace collcast::workload {

/// What an operation stands for that has the time of communication: collectives of its stage, or a message.
struct Exchanged {
  Uses uses = {};
  bool beside = false;  ///< computing of the same stretch
  int to = -1;          ///< of a message: the stage that gets it
};

/// The end of a pass whose kernels are over before the host has launched them, or before the copies beside it are. A
/// run of classes (run_periods) waits until these are over, whatever has held the pass up.
struct LaunchWait {
  OpId op;
  OpId pass;               ///< its first operation
  Picoseconds launches{};  ///< what they take from its begin on; 0: they are never waited for
};

/// A collective of DP that slows the kernels of these classes while it runs (slowdown.hpp).
struct Slowing {
  OpId op;
  std::vector<std::size_t> classes;
};

/// A kernel that may be slowed, and the exchange that begins with it, behind which some of that is not seen.
struct Hidden {
  OpId kernel, exchange;
};

struct StepSchedule {
  Schedule schedule;
  std::vector<std::vector<OpId>> of_class;  ///< what each class (of a StepPlan: stage) does, and the messages it gets
  std::vector<Place> places;                ///< by OpId
  std::vector<Exchanged> exchanged;         ///< by OpId
  std::vector<LaunchWait> launch_waits;     ///< by their operations
  std::vector<StreamId> compute;            ///< by class: the stream
  std::vector<double> rates;                ///< by OpId: of kernels beside a collective of DP
  std::vector<Hidden> hidden;               ///< by their kernels
  std::vector<Slowing> slowings;            ///< by their operations; none where nothing is slowed
};
StepSchedule spell_out(const ClassedPlan&);
/// All ranks of a stage alike.
StepSchedule spell_out(const StepPlan&);
/// Nothing where the watch ends it: millions of operations take seconds.
std::optional<StepSchedule> spell_out(const ClassedPlan&, const EngineWatch&);
/// What is said of one that was.
Diagnostic spelling_ended();

}  // namespace collcast::workload
