// Small machines for tests, spelled out in C++ with round numbers, and readers of their routes.
#pragma once

#include <string>
#include <vector>

#include "collcast/topology/fabric.hpp"

namespace collcast::test {

constexpr Bandwidth gb_per_s(double value) { return Bandwidth(value * 1e9); }
constexpr Seconds ns(double value) { return Seconds(value * 1e-9); }

/// One endpoint per node, no links inside it: `network` joins the endpoints themselves.
TopologySpec teaching(NetworkSpec network);
TorusNetwork torus(std::vector<int> dims, bool wrap);
StarNetwork star();
LeafSpineNetwork rails(int nodes_per_leaf, int spines, double oversubscription);
LeafSpineNetwork plain_leaves(int nodes_per_leaf, int spines, double oversubscription);

/// 8 GPUs and 8 NICs in pairs under 4 PCIe switches on 2 sockets, an NVSwitch beside: NVLink 300 GB/s and
/// 250 ns, PCIe 25 GB/s and 300 ns, sockets 20 GB/s and 100 ns.
TopologySpec dgx(NetworkSpec network);
/// 4 GPUs and 2 NICs on 2 sockets, PCIe only.
TopologySpec pcie_box(NetworkSpec network);
/// GPU i with NIC i on PCIe switch i, all GPUs on an NVSwitch; no way from a GPU to another's NIC.
TopologySpec isolated_rails(int gpus, NetworkSpec network);

Fabric build(const TopologySpec& spec, int nodes);

std::vector<LinkId> links_of(const Fabric&, int from, int to, int lane = 0);
/// The devices that a route passes, by name, first to last; fails the test where a link does not start
/// where the one before it ended.
std::vector<std::string> stops(const Fabric&, int from, int to, int lane = 0);
/// The two names of "a -> b".
std::pair<std::string, std::string> ends_of(const Fabric&, LinkId);

/// The diagnostics of a spec that must not build.
Diagnostics refused(const TopologySpec& spec, int nodes = 1);

}  // namespace collcast::test
