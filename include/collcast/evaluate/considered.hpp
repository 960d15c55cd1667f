// What `auto` chooses from.
#pragma once

#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/collective/collective.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast {

/// The algorithms that `auto` looks at for this request, as the catalogue has them.
Result<std::vector<std::string>> considered(const Fabric&, const CollectiveRequest&);

}  // namespace collcast
