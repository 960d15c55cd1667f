// Which algorithm, protocol, channels and threads NCCL takes [src/graph/tuning.cc, src/enqueue.cc of v2.28.9].
//
// T = latency + size / bandwidth for every algorithm and protocol that is available; the least is taken. T is what NCCL
// believes, not the forecast: that is run() in collcast/nccl/run.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

/// NCCL's belief about one algorithm and protocol at one size.
struct Candidate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  bool available = false;
  std::string reason;     ///< why it is not available
  Seconds latency{};      ///< with the plateau of rings over several nodes
  Bandwidth bandwidth{};  ///< size over time beyond the latency, with the trees' factor of the size
  Seconds time{};
};

/// All of NCCL's algorithms with all protocols, in the order of its scan. Kinds that are sent point to point
/// (alltoall, sendrecv, gather, scatter) have none.
std::vector<Candidate> tuning_table(const Communicator&, CollectiveKind, Bytes size);

/// What is run.
struct Plan {
  bool point_to_point = false;  ///< pairs of send and receive: no algorithm, and channels are per peer
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  int channels = 1, threads = 512;
  Seconds believed{};      ///< the tuning model's time
  int tuner_line = 0;      ///< of the tuner's file, if that decided
  int tuner_channels = 0;  ///< that it asks for, of which `channels` are there; 0: as many as the size is worth

  /// Point to point, of pairs on different nodes; `protocol` and `channels` are of those on one, where there are any.
  Protocol protocol_between = Protocol::simple;
  int channels_between = 1;
};
/// As it is shown: "LL+Simple" where pairs on one node take LL and those on different ones Simple.
std::string protocols_text(const Plan&);
/// The least believed time; `only`: of this algorithm. Fails where the environment or `only` leaves nothing.
Result<Plan> plan(const Communicator&, CollectiveKind, Bytes size, std::optional<Algorithm> only = {});
/// Of a candidate that is available.
Plan plan_of(const Communicator&, CollectiveKind, Bytes size, const Candidate&);

bool is_point_to_point(CollectiveKind);
/// Whether NCCL has the algorithm for that collective, on whatever machine.
bool does(Algorithm, CollectiveKind);

}  // namespace collcast::nccl
