// What sends and receives between nodes put on NICs where GPUs are unlike, or have them unevenly.
#pragma once

#include <map>
#include <vector>

#include "collcast/nccl/communicator.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

using LoadsByNic = std::map<int, double>;
double busiest(const LoadsByNic&);

/// NICs by which each rank of the group's pairs go in turn (nics_of_pairs() of its node), `most` of them at most.
std::vector<std::vector<int>> nics_of_ranks(const System&, const Fabric&, const Group&, int most);

/// Among all ranks of a group, each of which goes by one of its NICs, by up to two, ... up to `most`; `relays`: a node
/// is left by the receiver's rail where the group has a GPU beside its NIC. On a machine with NICs.
std::vector<PairLoads> pair_loads(const System&, const Fabric&, const Group&, int most, bool relays);

}  // namespace collcast::nccl
