// The time of work that is spelled out, without simulating it.
#pragma once

#include "collcast/schedule/schedule.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

/// No run is faster: the longer of the longest chain of operations, each alone on its links, and of the bytes over the
/// link that they keep busy longest. The run's time where no two transfers meet on a link.
Seconds lower_bound(const Fabric&, const Schedule&);

}  // namespace collcast
