// Machines whose leaves' uplinks are thin.
#pragma once

#include <catch2/catch.hpp>

#include <utility>

#include "collcast/topology/fabric.hpp"

namespace collcast::test {

/// Hosts of one rank each, so many to a leaf, whose way to the spines has a part of their rate.
inline Fabric leaves(int hosts, int per_leaf, double oversubscription, Seconds to_spines = {}) {
  TopologySpec spec;
  spec.name = "leaves";
  spec.file = "test.yaml";
  spec.devices = {{"host", DeviceKind::host, 1, {}}};
  spec.network_devices = "host";
  LeafSpineNetwork net;
  net.rail_optimized = false;
  net.bandwidth = Bandwidth(25e9);
  net.latency = Seconds(1e-6);
  net.spine_latency = to_spines;
  net.nodes_per_leaf = per_leaf;
  net.spines = 2;
  net.oversubscription = oversubscription;
  spec.network = net;
  Result<Fabric> fabric = Fabric::build(spec, hosts);
  INFO(to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  return std::move(fabric).value();
}

}  // namespace collcast::test
