// Variables that change what NCCL does on some machines, and that no forecast follows: what is warned of where they do.
#pragma once

#include "collcast/nccl/environment.hpp"

namespace collcast::nccl {

/// False: a variable of these that changes nothing on that machine, whatever the number of nodes, or with that value.
bool is_of_consequence(const Setting&, const TopologySpec&);

/// `has_alltoall`: calls may be of it.
void warn_of_not_modelled(const Environment&, int nodes, const TopologySpec&, bool has_alltoall, Diagnostics&);

}  // namespace collcast::nccl
