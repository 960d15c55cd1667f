// One loop around a ring and what comes before the first: said once, for the closed form and for the simulation.
#pragma once

#include "nccl/limits.hpp"

namespace collcast::nccl {

/// Every rank has a chunk for each position. R hops of a chunk, R + 1 operations of a block, as the last one only
/// receives. A step waits for the first slice of the chunk before, so that a loop takes the longer of its data and one
/// walk around with a slice's data.
struct RingLoop {
  Load data;                     ///< with the gaps between messages
  Seconds latency{};             ///< of all hops
  Seconds bytes{}, gaps{};       ///< the data's time by ring_load() alone, and that of the gaps
  Seconds walk{}, later_walk{};  ///< the latter of a loop behind others
  Seconds without_gaps{};        ///< the longest of all but the gaps, of a first loop
};
/// With chunks of `chunk` bytes, of a run whose longest has `longest`.
RingLoop ring_loop(const Communicator&, CollectiveKind, const Plan&, const Limits&, double chunk, double longest);

/// Before a ring's loops run on without gaps: until the first chunk has come round, or the first slice where that is
/// sooner, what the first slice of a hop takes, and, over the host's bridge, until the last channel's first message is
/// posted. Where the gaps are what the first loop takes, what they leave idle hides as much.
Seconds until_first_round(const Communicator&, CollectiveKind, const Plan&, const Limits&, const RingLoop& first);

}  // namespace collcast::nccl
