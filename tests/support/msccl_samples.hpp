// Algorithms spelled out as MSCCL has them, made for any number of ranks, and the XML of them.
#pragma once

#include <string>

#include "collcast/collective/msccl.hpp"

namespace collcast::test {

/// One thread block per rank on channel 0: a copy, k-1 messages around.
msccl::Algorithm msccl_ring_all_gather(int ranks);
/// In place: sums go around once, results once more; `channels` rings, each with its own thread block and chunks.
msccl::Algorithm msccl_ring_all_reduce(int ranks, int channels = 1);
/// Down a chain: one thread block of a rank receives, another, that waits for it, sends on; `chunks` one by one.
msccl::Algorithm msccl_chain_broadcast(int ranks, int chunks);
/// Every rank to every other, a thread block for each.
msccl::Algorithm msccl_direct_alltoall(int ranks);

std::string to_xml(const msccl::Algorithm&);

}  // namespace collcast::test
