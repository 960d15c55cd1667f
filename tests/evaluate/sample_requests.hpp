// Small machines of every kind of network, and requests on them.
#pragma once

#include <vector>

#include "collcast/evaluate/evaluate.hpp"

namespace collcast::test {

/// Nodes of 4 GPUs on a switch, a NIC per two GPUs, in pods of 3 nodes.
Fabric pods(int nodes, bool rails, int spines);

std::vector<Fabric> machines();

/// Strided and listed groups, alone and beside others, of many sizes.
std::vector<CollectiveRequest> requests(const Fabric&, int count);

}  // namespace collcast::test
