// Which layout of a model on these GPUs is the fastest, and what became of the others.
//
// All combinations of tp x pp x cp x dp = GPUs, expert parallelism, micro-batch, sequence parallelism, recomputation
// and optimizer sharding that the search space has are looked at. What does not divide or does not fit the GPU's memory
// is counted by its reason before any cost is computed; the others get the closed form of their step, and the best few
// a simulation. Combinations that a value makes no difference to are one layout (sequence parallelism with tp 1, a
// sharded optimizer with dp 1).
//
// On a machine with faults or a placement both are of the machine as it is, and beside them stand those of the machine
// as described: which layout suffers least is the question.
//
// Of a server (StepInputs::serving) tp x pp x replicas = GPUs, expert parallelism, the batch of a replica and its
// micro-batches are looked at: each that fits and keeps the limits gets the closed form of a batch served, and the
// objective ranks. The Pareto set is then of TPOT and tokens/s per GPU.
//
// The result does not depend on the number of threads. Assumed: what a single forecast assumes (docs/steps.md); a
// layout fits if its peak memory is at most the GPU's, with nothing set aside for what memory.hpp leaves out.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/planner/objection.hpp"
#include "collcast/workload/faulty_step.hpp"
#include "collcast/workload/gates.hpp"
#include "collcast/workload/search.hpp"

namespace collcast {

/// What layouts of a server are ranked by: output tokens, or a time, of which a run of requests has statistics, too.
struct ServingObjective {
  enum class Figure { tokens_per_s_per_gpu, tpot, ttft } figure = Figure::tokens_per_s_per_gpu;
  const TimeStatistic* statistic = nullptr;  ///< of time_statistics: of the requests of a run
};
/// "tokens_per_s_per_gpu", "tpot", "ttft.p99".
std::string to_string(const ServingObjective&);
/// All that there are; those with a statistic are of servers with a load.
std::vector<ServingObjective> serving_objectives();

struct PlanInputs {
  StepInputs base;  ///< all that a LayoutChoice does not say
  SearchSpace space;
  int gpus = 0;
  CollectivePolicy collectives;
  EngineOptions engine;
  MachineState machine = {};  ///< of whose faults and placement the times are
  ServingObjective objective = {};
  std::vector<Gate> limits = {};  ///< of servers: a layout that breaks one is rejected
};

struct PlanOptions {
  int threads = 0;                  ///< 0: as many as there are cores
  int simulate = 8;                 ///< the best so many by closed form are simulated
  std::function<bool()> stop = {};  ///< asked between pieces of work, by any thread; true: hand over what there is
  Bytes memory = unlimited_memory;  ///< for a collective's closed forms, and shared by the simulations of all threads
  std::function<void(const char* what, std::size_t done, std::size_t total)> progress = {};  ///< one call at a time
};

/// A layout on the machine as described.
struct LayoutAsDescribed {
  Seconds estimate{};
  std::optional<Seconds> simulate{};
  Seconds step() const { return simulate ? *simulate : estimate; }
};

/// What a server takes and gives, besides its step: a batch from its prompts to its last tokens.
struct ServerTimes {
  Seconds ttft{}, tpot{};
};
struct PlannedServer {
  ServerTimes estimate;
  std::optional<ServerTimes> simulate{};
  double tokens_per_s = 0;             ///< of all replicas while they decode
  Breakdown prefill, decode;           ///< of TTFT and of TPOT; of the simulation if there is one
  std::optional<LoadTimes> load = {};  ///< of a run of requests, as times()
  /// With all collectives as short, or as long, as a calibration has seen them; plan() leaves them out.
  std::optional<TimeRange> ttft_interval = {}, tpot_interval = {};
  const ServerTimes& times() const { return simulate ? *simulate : estimate; }
};

struct PlannedLayout {
  LayoutChoice choice;
  Seconds estimate{};
  std::optional<Seconds> simulate{};
  Breakdown breakdown;  ///< of the simulation if there is one, as `step`
  MemoryUse memory;
  StepRates rates;
  std::optional<LayoutAsDescribed> described = {};  ///< where the machine is not; simulated where this is
  /// Of step(), with all collectives as short, or as long, as a calibration has seen them; plan() leaves it out.
  std::optional<TimeRange> interval = {};
  std::optional<PlannedServer> server = {};

  Seconds step() const { return simulate ? *simulate : estimate; }
  Bytes headroom() const { return memory.capacity - memory.peak(); }
};
/// Of a server's layout, in seconds or tokens/s per GPU; `load` where the objective is a percentile.
double value_of(const ServingObjective&, const PlannedLayout&);
double value_of(const ServingObjective&, double tokens_per_s_per_gpu, const PlannedServer&);

/// The layout that needs the least memory of those that need too much.
struct SmallestRejected {
  LayoutChoice choice;
  MemoryUse memory;
  bool at_most = false;  ///< memory is a bound: of an order that is made for times, which nobody has asked for
};

/// The layout that fits the memory and breaks the limits by the least: `excess` times the worst of them.
struct NearestToLimits {
  PlannedLayout layout;
  double excess = 1;
};

/// What would make a layout fit where none does.
enum class NearMissKind {
  all_values,   ///< of what the search was kept to: a search of all
  zero,         ///< ZeRO-2 or 3, which are looked at only where they are asked for
  host_states,  ///< optimizer states in the host's memory between updates, which are nowhere unless asked for
  /// Twice as many, or 4, 8 ... 64 times: the fewest of these. Where no degrees divide, the nearest: on a node any
  /// number, beyond it whole nodes, 256 of either at most.
  more_gpus,
  /// The nearest of these where no degrees divide, and where no whole nodes do of rounder numbers (multiples of powers
  /// of two); else of the next eight above half as many.
  fewer_gpus,
  smaller_batch  ///< of servers: the largest below those that were looked at
};
std::string_view to_string(NearMissKind);
/// The layout that then needs the least.
struct NearMiss {
  NearMissKind kind;
  int gpus = 0;
  int nodes = 0;            ///< that so many GPUs fill
  bool more_nodes = false;  ///< than the plan's machine has
  LayoutChoice choice;
  MemoryUse memory;
  bool at_most = false;  ///< as of SmallestRejected
};

struct Rejection {
  std::string reason;  ///< in words
  std::int64_t count = 0;
  ObjectionKind kind;  ///< of reason
  /// Of a limit: the value of these layouts that comes nearest to it.
  std::optional<GateResult> nearest = {};
};

/// Layouts of the best that could not be simulated, and keep their closed form.
struct Unsimulated {
  int count = 0;
  std::string reason;  ///< of the first
};

struct PlanResult {
  std::int64_t evaluated = 0;  ///< layouts whose cost was computed or which cannot run, with the reason
  std::int64_t feasible = 0;   ///< of these, with a cost
  std::vector<PlannedLayout>
      ranked;  ///< all feasible: the simulated ones by simulation, then the others by closed form; if partial by time
  /// Faster or smaller than any other by closed form, or by simulation where all were simulated; fastest first. Of
  /// servers: of shorter TPOT or more tokens/s per GPU; the shortest TPOT first.
  std::vector<PlannedLayout> pareto;
  std::vector<Rejection> rejected;  ///< most frequent first
  std::optional<SmallestRejected> smallest;
  std::optional<NearestToLimits> nearest = {};
  std::vector<NearMiss> near_misses = {};  ///< where memory, or what degrees divide, lets no layout fit
  std::optional<Unsimulated> unsimulated;  ///< none where all were, or nothing but the end of the search kept them
  bool partial = false;                    ///< stopped before the end
  bool all_seen = true;  ///< every layout was looked at; if partial, then the best were not all simulated
};

/// What SearchValues::all would have and this search has not: "CP above 1", "ZeRO-2 and 3".
std::vector<std::string> left_out(const PlanInputs&);
/// What a search of all values leaves out as the base rules it out, whatever the layout: "CP above 1: cp 2 has no place
/// in the order tp-pp-dp; use order: tp-cp-ep-dp-pp".
std::vector<std::string> ruled_out(const PlanInputs&);

/// Fails where the base itself cannot run on this machine, whatever its layout, and where the faults or the placement
/// are not of this machine; `origins` as for check_step.
Result<PlanResult> plan(const PlanInputs&, const Fabric&, const PlanOptions&, const Origins& origins);

}  // namespace collcast
