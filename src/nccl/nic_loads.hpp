// How busy channels have their NICs where these do not have as many each: each node's go by what its own search found,
// but all run as many as the node that found fewest.
#pragma once

#include <optional>

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

/// Of a communicator that has its channels; nothing where all NICs of like nodes have as many, or NICs are not said.
std::optional<UnevenNics> uneven_nics(const Fabric&, const Group&, const Communicator&);

}  // namespace collcast::nccl
