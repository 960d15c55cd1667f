// What passes the PCIe links and sockets of a node whose GPUs have no NVLink to each other.
//
// NCCL's search counts a link by what it is (system.hpp): between sockets it books a number of its own for the
// processor, whatever joins them, and of ways to NICs it sees their slowest link, not who shares it. What a run moves
// passes the links that are described: the busiest of all channels, or of all pairs at once, takes its time, too.
#pragma once

#include <vector>

#include "collcast/nccl/communicator.hpp"
#include "nccl/next_pairs.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

/// Of a communicator that has its channels and what its pairs do, on the busiest of nodes with each of these sets of
/// GPUs; `root`: the group's first rank, on a node with the GPUs `on_node`.
PcieLoads pcie_loads(const Communicator&, const System&, const std::vector<std::vector<int>>& unlike,
                     const std::vector<NextOnNode>&, int root, const std::vector<int>& on_node);

}  // namespace collcast::nccl
