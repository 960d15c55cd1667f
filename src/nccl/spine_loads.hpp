// What a communicator's channels and pairs put on the links between leaves and spines.
#pragma once

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

/// Whether a leaf carries less upwards than its nodes send, or one link to a spine less than a NIC; `nics`: of a node.
bool has_thin_uplinks(const LeafSpineNetwork&, int nics);

/// Of a communicator that has its channels and pairs, whose simulations have the same routes. Nothing where uplinks
/// are not thin, where no network is on NICs, and where nothing passes a spine.
std::optional<SpineLoads> spine_loads(const Fabric&, const Group&, const Communicator&);

}  // namespace collcast::nccl
