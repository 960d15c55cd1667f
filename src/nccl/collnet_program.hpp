// CollNet, and NVLS over several nodes, as a pattern on the machine, with the network's reduction as further endpoints.
#pragma once

#include "nccl/channel_machine.hpp"

namespace collcast::nccl {

/// Fails for unlike numbers of ranks on the nodes.
Result<Program> collnet_program(const Question&);
/// Of one channel and head, chunks one after the other.
double collnet_chunks(const Question&);

}  // namespace collcast::nccl
