// What NCCL would run for a measured row, on the communicator of its table.
#pragma once

#include "collcast/nccl/tuning.hpp"
#include "collcast/validation/machines.hpp"

namespace collcast {

/// What NCCL takes for a request of a table: the algorithm that ran, where the table names one that NCCL has.
Result<nccl::Plan> nccl_plan(const nccl::Communicator&, const PlacedTable&, const CollectiveRequest&);

}  // namespace collcast
