// The peer: a ring all-reduce in SimGrid's S4U, as a SimGrid user would write it.
#pragma once

#include <optional>

namespace bench {

struct PeerRun {
  double wall_s = 0;       ///< platform, actors and run
  double simulated_s = 0;  ///< the time that SimGrid says the collective takes
  double messages = 0;
};

/// `rounds` rounds of the ring among `ranks` hosts, each hop on its own link of `bandwidth` bytes/s and
/// `latency` seconds. In a process of its own, since SimGrid keeps one engine per process.
std::optional<PeerRun> simgrid_ring(int ranks, int rounds, double slice_bytes, double bandwidth, double latency);

}  // namespace bench
