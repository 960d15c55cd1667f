// The search among layouts of a server: what is tried, what there is against it, and what its times are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/planner/why.hpp"
#include "planner/pieces.hpp"

namespace collcast::planner {

/// Layouts that differ in their micro-batches alone.
struct ServerFamily {
  LayoutChoice choice;                          ///< without these
  std::optional<ObjectionKind> objection = {};  ///< to the degrees
  std::vector<int> micro_batch;
};
/// In ascending order of tp, pp, sequence parallelism, ep and batch.
std::vector<ServerFamily> server_families(const PlanInputs&);

/// One for each family. What they refer to outlives them.
std::vector<SearchPiece> server_pieces(const PlanInputs&, const Fabric&, const CollectiveTime& prices);

/// Puts what was forecast into a layout that is a server.
void take_server(const StepResult&, PlannedLayout&);

/// "ttft_s is above its limit, 500 ms"; nothing: all limits are kept.
std::optional<BrokenLimit> broken_limit(const PlanInputs&, const StepResult&);
/// Each limit that is broken, with the value: "ttft.p99_s is 3.1 s, above its limit, 2 s".
std::vector<std::string> broken_limits(const PlanInputs&, const StepResult&);

/// Of a server that divides; nothing if it fits.
std::optional<ObjectionKind> server_memory_objection(const MemoryUse&);
/// As objections() (families.hpp), but for the limits: those need times.
std::vector<std::string> server_objections(const PlanInputs&, const LayoutChoice&, int gpus_per_node);

/// As complete() (why.hpp).
LayoutChoice complete_server(const LayoutQuestion&, LayoutChoice best, const PlanInputs&);

}  // namespace collcast::planner
