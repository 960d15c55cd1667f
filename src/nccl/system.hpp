// One node with link speeds as NCCL counts them [src/graph/topo.h, topo.cc].
//
// NVLink per link and direction: 20 GB/s before Hopper (data sheet 25), 20.6 on Hopper (25), 40.1 on Blackwell (50), 12
// on the workstation cards of compute capability 8.6. PCIe x16: 12 GB/s in generation 3, doubled per generation (data
// sheet 15.75). NIC: its line rate. Between sockets: Intel 6, 10, 22, 40 by generation, AMD 16, Arm 6, Power 32. C2C:
// the data sheet's.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "collcast/nccl/communicator.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast::nccl {

/// Speeds in GB/s of one direction.
struct System {
  struct Edge {
    int to = 0;
    double speed = 0, rate = 0;  ///< rate: the data sheet's
    LinkKind kind = LinkKind::pcie;
  };
  int compute_capability = 0;
  CpuFamily cpu = CpuFamily::unknown;
  int gpus = 0, nics = 0;
  int first_gpu = 0, first_nic = 0;  ///< device numbers
  std::vector<DeviceKind> kinds;     ///< by device
  std::vector<std::vector<Edge>> edges;
  bool nvswitch = false;
  std::vector<std::vector<double>> nvlinks;  ///< straight between two GPUs
  double nvlink_speed = 0;                   ///< all NVLinks of a GPU, of the group's that have any the least
  Bandwidth nvlink_rate{};                   ///< the same by the data sheet
  double nic_speed = 0;
  PathType gpudirect = PathType::pxb;  ///< NICs that are farther from a GPU move its data by the host; loc: all do
  bool relays = true;                  ///< over NVLink a GPU reaches the NIC beside another one (PXN)
  CrossNic cross_nic = CrossNic::if_needed;
  bool through_gpus = true;  ///< GPUs without an NVLink between them send through one that has one to both (NVB)

  bool has_nvlink() const { return nvlink_speed > 0; }
};

/// As the variables have it: no NVLink (NCCL_P2P_DISABLE), GPUDirect RDMA (NCCL_NET_GDR_LEVEL), NCCL_CROSS_NIC, PXN.
/// `of_gpus`: the group's, on any node; none: all.
System system_of(const TopologySpec&, int compute_capability, const Environment&,
                 std::optional<std::vector<int>> of_gpus = std::nullopt);

/// Over PCIe and sockets, the fewest hops; nothing where there is no way.
struct Way {
  PathType type = PathType::dis;
  double speed = 0, rate = 0;             ///< of the slowest hop, as NCCL counts it and by the data sheet
  std::vector<std::pair<int, int>> hops;  ///< device to device
  std::vector<LinkKind> kinds;            ///< of the hops
};
std::optional<Way> way(const System&, int from, int to);

}  // namespace collcast::nccl
