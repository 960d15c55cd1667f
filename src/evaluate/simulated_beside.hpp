// The simulated time of a request, whatever the algorithm was chosen by.
#pragma once

#include "collcast/evaluate/evaluate.hpp"

namespace collcast {

/// Of the request's own group, while those alongside run beside it.
Result<Seconds> simulated_beside(const Fabric&, const CollectiveRequest&, const CollectiveOptions&,
                                 const EngineOptions&);

}  // namespace collcast
