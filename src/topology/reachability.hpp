// Whether every rank reaches every other. Nodes are equal and the network is regular, so two nodes stand for
// all: what node0 cannot reach inside itself or in node1 is all that can be missing.
#pragma once

#include <string>

#include "check_spec.hpp"
#include "network.hpp"
#include "node_routes.hpp"

namespace collcast::topology {

/// A Diagnostic per kind of gap, naming the first device or pair concerned and counting the others.
Diagnostics check_reachable(const TopologySpec&, const NodePlan&, const NodeRoutes&, const Network&, int nodes);

/// "node3.gpu5"; "gpu3" where a node is a single device.
std::string device_name(const TopologySpec&, const NodePlan&, int node, int device);

}  // namespace collcast::topology
