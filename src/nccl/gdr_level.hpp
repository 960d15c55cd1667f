// What NCCL_NET_GDR_LEVEL changes: which NICs read and write the memory of GPUs.
//
// NCCL has them do so along paths that are no worse than a level, PXB unless the variable has another
// [src/graph/paths.cc, ncclTopoCheckGdr]. NICs that it takes this from count as over the host; those that it gives it
// to, beyond a processor, do so still, which is warned of.
#pragma once

#include "collcast/nccl/environment.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast::nccl {

enum class DirectAccess { as_usual, of_fewer, of_farther };

/// To the NICs that GPUs of a node have nearest; as usual where there are none, or where the machine has no GPUDirect
/// RDMA at all.
DirectAccess direct_access(const TopologySpec&, const Environment&);

}  // namespace collcast::nccl
