// How busy channels have their NICs where these have unlike numbers of them: each node's go by what its own search
// found, but all run as many as the node that found fewest.
#pragma once

#include <optional>

#include "collcast/nccl/communicator.hpp"

namespace collcast::nccl {

/// Of a communicator that has its channels; nothing where like nodes' NICs have as many channels each, or NICs are
/// not said.
std::optional<UnlikeNics> unlike_nics(const Fabric&, const Group&, const Communicator&);

}  // namespace collcast::nccl
