// What sends and receives between nodes of unlike GPUs put on NICs.
#pragma once

#include <map>

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

using LoadsByNic = std::map<int, double>;
double busiest(const LoadsByNic&);

/// Among all ranks of a group, each of which goes by `turns` of its nearest NICs in turn; `relays`: a node is left by
/// the receiver's rail where the group has a GPU beside its NIC. On a machine with NICs.
PairLoads pair_loads(const Fabric&, const Group&, int turns, bool relays);

}  // namespace collcast::nccl
