// The time of work that is spelled out, without simulating links that are shared.
#pragma once

#include "collcast/engine/engine.hpp"
#include "collcast/schedule/spelled_out.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

/// No run is faster: the longer of the longest chain of steps, each alone on its links, and of the bytes over the link
/// that they keep busy longest. The run's time where no two messages meet on a link. Fails where a run would: threads
/// that wait for what does not come, a clock at its end, a watch that ends it.
Result<Seconds> lower_bound(const Fabric&, const SpelledOut&, const EngineWatch& = {});

}  // namespace collcast
