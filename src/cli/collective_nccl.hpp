// collcast collective --library nccl.
#pragma once

#include "cli/collective_options.hpp"
#include "collcast/report/documents.hpp"

namespace collcast::cli {

/// One row per size and group: what NCCL takes, or with --algorithm all everything that it could.
Result<CollectiveReport> price_nccl(const CollectiveQuestion&, const Session&);

}  // namespace collcast::cli
