// What a node's GPUs have to the memory of their host.
#pragma once

#include <optional>

#include "collcast/topology/spec.hpp"

namespace collcast {

/// Bytes a second that every GPU of a node moves to the memory of its nearest CPU, or from there, while all of them do
/// so: by the way of fewest links, without NVLink, whose links all GPUs that pass them share alike. The slowest GPU's;
/// nothing where one reaches no CPU, or the description cannot be. Line rates; the CPU's own memory is left out.
std::optional<Bandwidth> host_bandwidth(const TopologySpec&);

}  // namespace collcast
