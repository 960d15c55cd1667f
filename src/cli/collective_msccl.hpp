// collcast collective --algorithm msccl:FILE.
#pragma once

#include "cli/collective_options.hpp"
#include "collcast/report/documents.hpp"

namespace collcast::cli {

/// One row per size and group of the algorithm that the user brought, once it is proved; or why it is none.
Result<CollectiveReport> price_msccl(const CollectiveQuestion&, const Session&, bool links);

}  // namespace collcast::cli
