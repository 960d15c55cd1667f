// What library nccl adds to reports: the search's result, and the whole table behind a choice.
#pragma once

#include <optional>

#include "collcast/nccl/run.hpp"
#include "collcast/report/documents.hpp"

namespace collcast {

/// The communicator, NCCL's table of algorithms and protocols at this size with the forecast of each, what was chosen,
/// and the terms of its run. `only`: of this algorithm alone.
Result<ExplainReport> explain(const Fabric&, const nccl::Communicator&, const CollectiveRequest&,
                              std::optional<nccl::Algorithm> only);

}  // namespace collcast
