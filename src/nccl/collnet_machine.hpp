// The network's reduction as further endpoints of a machine: one where each NIC of a node ends.
#pragma once

#include "collcast/topology/spec.hpp"

namespace collcast::nccl {

/// Gives every node as many further ranks as it has NICs, the last of its endpoints, in the NICs' order. What their
/// NIC's link to the network carried is on the way to them, with `way` seconds there and back; among each other they
/// are beyond it, where nothing is waited for, as each switch sends on no more than what one NIC has.
void add_network_members(TopologySpec&, double way);

}  // namespace collcast::nccl
