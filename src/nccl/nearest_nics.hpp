// The NICs that a group's GPUs have nearest, and what they and the ways to them have room for: where the search's
// channels across nodes come in and go out.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "nccl/search_speeds.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

/// What a flow that begins at a GPU books on PCIe for each GB/s: through an Intel root complex more than it moves
/// [search.cc, followPath; of ways that cross none but one processor].
double pcie_booked(const System&, PathType);

/// NICs that are nearest to any of the GPUs, and how near.
struct Nearest {
  struct Gpu {
    int gpu = 0;
    double speed = 0, rate = 0;  ///< of the way: as NCCL counts it, by the data sheet
    std::optional<int> by_host;  ///< of Nearest::links: data pass it up to the host, and again down
  };
  struct Link {
    std::pair<int, int> hop;
    double speed = 0, rate = 0;
  };
  PathType type = PathType::dis;
  std::map<int, std::vector<Gpu>> gpus;  ///< by NIC
  std::vector<Link> links;               ///< of switches to processors, where there is no GPUDirect RDMA
};

Nearest nearest_nics(const System&, const std::vector<int>& gpus);

/// What lies between a GPU and a NIC: where the host does, and NVLink joins the GPU to one that is beside the NIC, that
/// one passes data on (PXN) [src/graph/paths.cc, ncclTopoComputePaths].
PathType way_to_nic(const System&, const Nearest&, int gpu, int nic);

/// GB/s of channels that the nearest NICs, and the ways between them and their GPUs, have room for.
struct Room {
  std::map<int, double> nics, ports;  ///< by NIC; by GPU
  std::vector<double> links;          ///< of Nearest, of a channel in and out
};
Room room_of(const System&, const Nearest&);

/// What sends and receives between nodes go by, where all GPUs of a node have some at once: a GPU's channels
/// take in turn as many of its own nearest NICs as there are for each of the GPUs that are as near to them, and begin
/// at the GPU's number, by which two of a group may meet at one of several NICs [src/graph/topo.cc,
/// ncclTopoGetLocalNet]; a GPU that has none takes all in turn that it reaches by PXN.
struct PairNics {
  double nics = 0;   ///< of a node; where some have more than others, as many as move all at the pace of the busiest
  int of_gpu = 1;    ///< that each GPU has, or the one that has most
  bool even = true;  ///< all have as many, and of however many that are taken each NIC has as many GPUs
  double nic_rate = 0, gpu_rate = 0;  ///< GB/s of one NIC and its slot; of a GPU's way to its NICs
};
PairNics pair_nics(const System&, const Nearest&, const std::vector<int>& gpus);
/// Those of one of these GPUs, in the order in which its pairs' channels take them.
std::vector<int> nics_of_pairs(const System&, const Nearest&, const std::vector<int>& gpus, int gpu);
/// No NIC is nearer to the GPU, but for those that it reaches by PXN.
bool is_beside(const System&, int gpu, int nic);
/// NICs that the GPU sends to for others (PXN).
std::vector<int> relayed_nics(const System&, int gpu);

/// GB/s that each of `nics` of these moves: no more than its line rate, than its own links, or than its part of the
/// ways to GPUs.
double rate_of_nics(const System&, const Nearest&, int nics);

}  // namespace collcast::nccl
