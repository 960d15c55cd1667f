// Rings over PCIe between nodes that come in by one NIC and go out by another, in pairs: of two NICs beside unlike
// sockets each way between the sockets has one of the two rings, where a ring that goes back to its NIC has both.
#pragma once

#include <vector>

#include "nccl/paths_to_nics.hpp"

namespace collcast::nccl {

/// The first ring of a pair passes the GPUs from those near its NIC on, the second the same ones backwards [search.cc:
/// ncclTopoSearchRecNet, ncclTopoCompute tries crossNic at each speed]. Each books its speed on all links of PCIe and
/// between sockets that it takes. None where rings must not cross, and none across the sockets of AMD's processors,
/// where NCCL lets no two channels pass the GPUs in unlike orders.
Rings crossed_over_pcie(const System&, const std::vector<int>& gpus, const Nearest&, double speed);

}  // namespace collcast::nccl
