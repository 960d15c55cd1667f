// Several NVSwitches in a node.
//
// Hardware spreads what a GPU sends over all its NVLinks, whichever NVSwitch each leads to (HGX boards have 2, 4 or 6
// of them, and every GPU links to every one). A route takes one way. So switches that are all alike to the GPUs are
// one with the sum of the links, and of others it is said that routes take one.
#pragma once

#include <string>

#include "collcast/topology/spec.hpp"

namespace collcast {

/// All NVSwitches of the node as one, with the sum of each GPU's links to them, where every GPU has links of the same
/// kind and latency to every one, as much in sum as every other GPU, and nothing else is linked to them. Otherwise,
/// and where there is one, the machine as it is.
TopologySpec with_switches_joined(TopologySpec);

/// "4 NVSwitches count as one ..." of switches that were joined; empty: none were.
std::string joined_switches_text(const TopologySpec&);

/// A warning where two GPUs have several NVSwitches in common, of which their route takes one.
Diagnostics switches_apart(const TopologySpec&);

}  // namespace collcast
