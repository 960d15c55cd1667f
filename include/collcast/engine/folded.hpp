// Patterns at once of which many positions do the same at the same time: of each class one is simulated.
//
// Partition refinement (src/engine/fold.hpp) finds positions and links that the machine and the patterns cannot tell
// apart. What one of a class does all do, to the picosecond, so that a simulation of one each is that of all. A
// straggler among the links splits the classes around it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collcast/engine/engine.hpp"

namespace collcast {

struct FoldedRun {
  std::vector<SimTime> finish;  ///< by pattern
  std::int64_t messages = 0;    ///< of all positions
  std::int64_t stepped = 0;     ///< of those that were simulated
  std::int64_t positions = 0;   ///< of all lanes and patterns
  std::int64_t classes = 0;     ///< of positions
};

/// All patterns from time 0, links shared max-min fairly or not at all: `simulate`, to the last picosecond. Nothing
/// where it does not pay (fewer than four positions a class, or more sends than are worth looking at) or where
/// positions that are alike meet each other on a link. Fails where `simulate` does.
///
/// Few messages that fail are left to `simulate`, so that it names whom it would; of many the one that is named stands
/// for all that do the same, and the error says so.
std::optional<Result<FoldedRun>> simulate_folded(const Fabric&, std::span<const Pattern>, const EngineOptions& = {});

/// How many messages that steps one by one; nothing where it does not fold.
std::optional<std::int64_t> messages_stepped_folded(const Fabric&, std::span<const Pattern>, const EngineOptions& = {});

}  // namespace collcast
