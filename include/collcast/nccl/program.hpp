// What a run puts on the wire: the simulation's side of library nccl.
//
// The same numbers that the closed form of collcast/nccl/run.hpp counts with (chunks, loops, rates, latencies: one
// source, src/nccl/limits.hpp) as a Pattern on the machine as NCCL's channels see it: what a channel
// sends passes a drive, the rate of its threads, then the GPU's port, what its links reach together; NICs have the rate
// that the protocol reaches, and a step's latency is on the way. Rings run loop by loop on the GPU orders of the
// search, trees in chunks up and down the double tree, NVLS by way of the switch as further ranks of a node, PAT step
// by step, sends and receives all at once. What the closed form does not know and the simulation does: which NIC and
// which links each channel uses, and who shares them. docs/nccl.md says what is left out.
#pragma once

#include <cstdint>
#include <optional>

#include "collcast/nccl/tuning.hpp"

namespace collcast::nccl {

/// Into so many messages at most a tree's chunks are cut, half a second's simulation.
inline constexpr std::int64_t most_messages_of_trees = 500'000;

struct Program {
  Fabric machine;               ///< its ranks are the pattern's; with NVLS every node has further ones, of its switch
  Pattern pattern;              ///< from the first byte on
  std::optional<Pattern> less;  ///< chains: calls overlap, and one takes what pattern has beyond this one, by calls
  int calls = 1;                ///< that pattern has more than `less`
  Seconds start{};              ///< of a call, before its first byte
  Seconds host{};               ///< of a call at least
  bool coarse = false;          ///< of a tree's lines: in longer pieces than agree, as more messages take too long
};

/// Of a plan for the group that the communicator is of; `root` is an index into it. Fails, with the reason, where there
/// is no simulation: more than two million loops of chunks or twenty million messages, NICs that are the GPUs
/// themselves. At least two ranks and one byte.
Result<Program> program(const Fabric&, const Group&, const Communicator&, CollectiveKind, Bytes size, const Plan&,
                        int root = 0);

}  // namespace collcast::nccl
