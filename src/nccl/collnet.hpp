// What CollNet cuts its data into and what bounds it: said once, for the closed form and for the simulation.
//
// In a node the data are added up at heads, GPUs beside NICs: direct sends each head its part of all others; a chain
// passes a channel's data on from GPU to GPU; NVLS adds up in the switch. A head sends its sum to the network, which
// adds up over the nodes and sends the result to every one, whose heads hand it on the way that it came. all_gather is
// the second half alone, reduce_scatter the first.
//
// Chunks follow one another, and later ones go up while one is away; with the first one's whole way, and every stage
// busy or waiting for the slowest, or a GPU's threads and links busy with both ways from the first chunk to the last,
//   T = start + max(hops + x + first chunk's stages + (chunks - 1) slowest, ends + chunks both)
// Rough: nothing was measured. Threads, links and hops are those of rings under Simple, NVLS in a node is that of one
// node, a NIC reaches fitted::collnet_nic of its line, the switches add up as fast as NICs send, and the network's
// latency, there and back, is that of a message between two nodes. A connection's slots are not counted.
#pragma once

#include "nccl/collnet_tuning.hpp"
#include "nccl/limits.hpp"

namespace collcast::nccl {

/// Seconds, bytes. T = start + latency + data.
struct CollnetRun {
  double start = 0, latency = 0;
  Load data{};             ///< all chunks in the slowest stage
  double chunk = 0;        ///< of one channel, and head
  double count = 1;        ///< chunks that follow one another
  double hop = 0;          ///< inside a node
  double network_hop = 0;  ///< from head to head
  double inside = 0;       ///< what a GPU's threads or links take for a chunk, both ways
  double network = 0;      ///< what the busiest NIC takes for a chunk, the busier way
  double nic_load = 0;     ///< bytes that the busiest NIC sends or receives
  double in_switch = 0;    ///< of NVLS: until the first chunk moves and the node's pipe is full, beyond its stages
};
CollnetRun collnet_run(const Communicator&, CollectiveKind, Bytes size, const Plan&);

/// By which NIC of the node the `head`-th of collnet_heads sends, or a chain's channel.
int collnet_nic(const Communicator&, const Plan&, int head);
/// Channels of the graph whose heads differ, by collnet_heads.
std::vector<int> collnet_head_channels(const Communicator&, Algorithm);

}  // namespace collcast::nccl
