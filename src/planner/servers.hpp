// The search among layouts of a server: what is tried, what there is against it, and what its times are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/planner/why.hpp"
#include "planner/pieces.hpp"

namespace collcast::planner {

inline constexpr const char* server_batch_does_not_divide = "batch is not a multiple of micro_batch";
inline constexpr const char* too_many_sequences = "batch x dp are more than 1 G sequences";
inline constexpr const char* weights_do_not_fit = "weights do not fit the GPU";
inline constexpr const char* cache_does_not_fit = "keys and values do not fit the GPU beside the weights";
inline constexpr const char* passes_do_not_fit = "activations and buffers do not fit the GPU beside weights and cache";
inline constexpr const char* server_runtime_does_not_fit =
    "CUDA's context, NCCL's buffers and the allocator's fragments do not fit the GPU beside what is served";

/// Layouts that differ in their micro-batches alone.
struct ServerFamily {
  LayoutChoice choice;              ///< without these
  const char* objection = nullptr;  ///< to the degrees; nullptr: none
  std::vector<int> micro_batch;
};
/// In ascending order of tp, pp, sequence parallelism, ep and batch.
std::vector<ServerFamily> server_families(const PlanInputs&);

/// One for each family. What they refer to outlives them.
std::vector<SearchPiece> server_pieces(const PlanInputs&, const Fabric&, const CollectiveTime& prices);

/// Puts what was forecast into a layout that is a server.
void take_server(const StepResult&, PlannedLayout&);

/// "ttft_s is above its limit, 500 ms"; nothing: all limits are kept.
std::optional<std::string> broken_limit(const PlanInputs&, const StepResult&);

/// Of a server that divides; nullptr if it fits.
const char* server_memory_objection(const MemoryUse&);
/// As objections() (families.hpp), but for the limits: those need times.
std::vector<std::string> server_objections(const PlanInputs&, const LayoutChoice&, int gpus_per_node);

/// As complete() (why.hpp).
LayoutChoice complete_server(const LayoutQuestion&, LayoutChoice best, const PlanInputs&);

}  // namespace collcast::planner
