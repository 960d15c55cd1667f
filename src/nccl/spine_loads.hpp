// What a communicator's channels and pairs put on the links between leaves and spines.
#pragma once

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

/// Of a communicator that has its channels and pairs, whose simulations have the same routes. Nothing where leaves
/// carry upwards what their nodes send, where no network is on NICs, and where nothing passes a spine.
std::optional<SpineLoads> spine_loads(const Fabric&, const Group&, const Communicator&);

}  // namespace collcast::nccl
