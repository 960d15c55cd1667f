// How long what NCCL chose takes: the forecast of `--library nccl`.
//
// A channel is a block of threads that moves its share of the data chunk by chunk through the steps of its algorithm.
// The closed form of a run is
//   T = start + latency + data
// data is the busiest resource's time for its bytes: the channels' threads, a GPU's NVLinks or PCIe port, the NICs, the
// messages that a NIC's proxy posts. latency is what hops add beyond that: in rings per loop of chunks what one walk
// around takes longer than the data, in trees the way up and down. docs/nccl.md has the formulas; the constants are
// NCCL's own where it states them, else fitted, one value for all machines (src/nccl/run_constants.hpp).
//
// Times are of calls one after the other, as nccl-tests makes them: a broadcast's chain already works on the next call
// when the last rank still receives, so its time is that of the busiest rank.
#pragma once

#include <string>

#include "collcast/nccl/tuning.hpp"

namespace collcast::nccl {

struct Run {
  Seconds start{}, latency{}, data{};
  /// What `data` is the time of: "channels", "NVLink", "PCIe", "NIC", "PCIe to the NICs", "messages", "uplinks of
  /// leaves", or NCCL's own
  /// number: "NCCL's cap on a tree's channel", "NCCL's cap on an NVLS tree's head".
  std::string bound;
  Volume chunk{};    ///< payload that one step moves, at most
  double loops = 1;  ///< of chunks, on a channel
  Seconds time() const { return start + latency + data; }
};

/// Of a plan for this communicator. No time for zero bytes or one rank.
Run run(const Communicator&, CollectiveKind, Bytes size, const Plan&);

/// What the factors of a calibration may be at the most before links or NICs carry more than their line rate.
struct FactorsOfLineRate {
  double links, network;
};
FactorsOfLineRate factors_of_line_rate(const Communicator&);

}  // namespace collcast::nccl
