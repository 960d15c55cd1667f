// NVLS and its tree as a pattern on the machine, with the switch as further endpoints of every node.
#pragma once

#include "nccl/channel_machine.hpp"

namespace collcast::nccl {

Result<Program> switch_program(const Question&);
/// Of one channel and head, chunks one after the other.
double switch_loops(const Question&);

}  // namespace collcast::nccl
