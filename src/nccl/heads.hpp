// GPUs of one of several nodes that are heads: of NVLS, and of CollNet direct.
#pragma once

#include <vector>

#include "nccl/nearest_nics.hpp"

namespace collcast::nccl {

struct Head {
  int gpu = 0, nic = 0;
};

/// A GPU for each NIC that has `speed` for it, and none twice [src/graph/search.cc, ncclTopoSearchRecNet].
std::vector<Head> heads_of(const System&, const Nearest&, double speed);

}  // namespace collcast::nccl
