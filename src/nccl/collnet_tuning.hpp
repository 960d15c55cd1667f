// CollNet's part of NCCL's tuning model [src/graph/tuning.cc, src/enqueue.cc of v2.28.9]: when it is available, what it
// is believed to reach, and how many channels it is worth. Older versions count as that one.
#pragma once

#include <string>

#include "collcast/nccl/tuning.hpp"

namespace collcast::nccl {

constexpr bool is_collnet(Algorithm a) { return a == Algorithm::collnet_direct || a == Algorithm::collnet_chain; }
/// NVLS in the nodes, and the network's reduction between them.
inline bool is_nvls_over_network(const Communicator& c, Algorithm a) { return a == Algorithm::nvls && c.nodes > 1; }

/// GPUs of a node that have a part of the data each, which the network adds up over the nodes; of an algorithm that is
/// available.
int collnet_heads(const Communicator&, Algorithm);

/// Why CollNet, or NVLS over several nodes, cannot be taken on this machine; empty: it can.
std::string collnet_refusal(const Communicator&, CollectiveKind, Algorithm);

/// GB/s, size over time.
double collnet_bandwidth(const Communicator&, CollectiveKind, Algorithm);
/// Microseconds, of hops inside a node and between nodes.
double collnet_latency(const Communicator&, Algorithm, double hop_in, double hop_out);

/// Channels and threads that a size is worth.
void reduce_collnet_work(const Communicator&, Bytes size, Plan&);

}  // namespace collcast::nccl
