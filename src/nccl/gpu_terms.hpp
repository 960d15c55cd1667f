// What the links of a communicator's GPUs have, for the run.
#pragma once

#include <vector>

#include "collcast/nccl/communicator.hpp"
#include "nccl/groups_nodes.hpp"
#include "nccl/next_pairs.hpp"
#include "nccl/search.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

/// Where the group's first rank is, as root of a gather or scatter.
struct Root {
  int gpu = 0;
  const std::vector<int>& on_node;  ///< the group's GPUs there
};

/// Of a communicator that has its channels, and what its pairs do.
GpuTerms gpu_terms(const Communicator&, const Found&, const System&, const GroupsNodes&, const std::vector<NextOnNode>&,
                   const Root&);

}  // namespace collcast::nccl
