// NICs that NCCL's channels go by none of, such as a slow one for storage beside those of the GPUs.
#pragma once

#include <vector>

#include "collcast/exchange/machine.hpp"

namespace collcast::exchange {

/// Of `node.nics`, each of a line rate: those slower than the fastest that no GPU takes. A GPU takes what the fastest
/// way leads to, its line rate included, and of several such the nearest [NCCL's src/graph/topo.cc,
/// ncclTopoGetLocal].
std::vector<bool> unused_nics(const ForeignNode& node, const std::vector<Bandwidth>& rates);

/// Takes out these, and switches that have nothing below them then.
void leave_out(ForeignNode& node, const std::vector<bool>& nics);

}  // namespace collcast::exchange
