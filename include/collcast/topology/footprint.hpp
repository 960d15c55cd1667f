// How much memory a machine takes, before it is built.
#pragma once

#include <optional>

#include "collcast/topology/spec.hpp"

namespace collcast {

/// About how many bytes the machine's links take with so many nodes (0: the default), which is most of what it takes:
/// two for each cable. Nothing where the description cannot be, as Fabric::build tells.
std::optional<Bytes> footprint(const TopologySpec&, int nodes = 0);

}  // namespace collcast
