// Classes of positions and links that do the same at the same time.
//
// The coarsest partition in which two positions of a class, hop by hop, send as much to positions of the same class
// over links of the same classes, and receive from the same classes; and in which two links of a class have the same
// rate and latency and are crossed by the same classes of sends. It is found by refinement: every position and link has
// a colour, a new colour is worked out from the colours around it, until no class splits any more (Paige, Tarjan,
// "Three partition refinement algorithms", 1987; here by 64-bit hashes, and what they say is then checked send by
// send, so that two that coincide cost a folding, never a wrong time).
//
// One position of each class may stand for all if what it meets is what each of them meets: of the sends of a class a
// link carries at most one and a position receives at most one. So a class is as large as every class that it sends
// to, and its first member's message, put onto the first links of their classes, meets there one message each of those
// that any member meets. Where several of a class share a link (a tree's uplink, a root's NIC) there is no folding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collcast/engine/engine.hpp"

namespace collcast::engine {

struct Fold {
  /// By pattern, lane and position: the position of the same lane that stands for it.
  std::vector<std::vector<std::vector<std::uint32_t>>> first;
  std::vector<std::uint32_t> link;  ///< by link: the one that stands for it
  std::int64_t positions = 0, classes = 0;
  std::int64_t messages = 0;  ///< of all positions
};

/// Nothing where folding is not exact, not worth it, or has no room for what it looks at; nor if the watch ends it.
std::optional<Fold> fold(const Fabric&, std::span<const Pattern>, const EngineWatch&, Bytes room);

}  // namespace collcast::engine
