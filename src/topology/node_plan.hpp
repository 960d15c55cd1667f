// One node of a checked TopologySpec, spelled out: its devices, numbered group by group in the order of the
// file, and its cables. Nodes are equal, so there is one plan whatever the number of nodes.
#pragma once

#include <utility>
#include <vector>

#include "collcast/topology/fabric.hpp"
#include "collcast/topology/wiring.hpp"

namespace collcast::topology {

struct Device {
  DeviceKind kind = DeviceKind::gpu;
  int group = 0;  ///< index into TopologySpec::devices
  int index = 0;  ///< within the group
};

/// Two directed links with equal numbers: link 2c from `from` to `to`, link 2c+1 back.
struct Cable {
  int from = 0, to = 0;  ///< devices of the node
  Link link;
};

/// Consecutive devices of a node.
struct DeviceRange {
  int first = 0, count = 0;
};

struct NodePlan {
  std::vector<Device> devices;
  std::vector<Cable> cables;
  DeviceRange endpoints;
  DeviceRange ports;  ///< the devices that the network attaches to; none without a network
};

/// Ranks are devices of this kind; a node has one group of them.
constexpr bool is_endpoint(DeviceKind kind) { return kind == DeviceKind::gpu || kind == DeviceKind::host; }
/// Traffic of others passes through switches and sockets only, never through a GPU, a host or a NIC.
constexpr bool is_transit(DeviceKind kind) { return !is_endpoint(kind) && kind != DeviceKind::nic; }

NodePlan plan_node(const TopologySpec&);

}  // namespace collcast::topology
