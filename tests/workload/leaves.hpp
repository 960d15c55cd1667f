// Machines whose leaves' uplinks are thin.
#pragma once

#include <catch2/catch.hpp>

#include <utility>

#include "collcast/topology/fabric.hpp"

namespace collcast::test {

/// So many nodes without rails, with NICs of 25 GB/s.
inline Fabric on_leaves(TopologySpec spec, int nodes, LeafSpineNetwork net) {
  net.rail_optimized = false;
  net.bandwidth = Bandwidth(25e9);
  spec.network = net;
  Result<Fabric> fabric = Fabric::build(spec, nodes);
  INFO(to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  return std::move(fabric).value();
}

/// Hosts of one rank each, so many to a leaf, whose way to the spines has a part of their rate.
inline Fabric leaves(int hosts, int per_leaf, double oversubscription, Seconds to_spines = {}) {
  TopologySpec spec;
  spec.name = "leaves";
  spec.file = "test.yaml";
  spec.devices = {{"host", DeviceKind::host, 1, {}}};
  spec.network_devices = "host";
  LeafSpineNetwork net;
  net.latency = Seconds(1e-6);
  net.spine_latency = to_spines;
  net.nodes_per_leaf = per_leaf;
  net.spines = 2;
  net.oversubscription = oversubscription;
  return on_leaves(std::move(spec), hosts, net);
}

}  // namespace collcast::test
