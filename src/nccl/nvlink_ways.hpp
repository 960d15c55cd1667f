// Ways between GPUs of a node over straight NVLinks: a pair's own, or through one GPU that has one to both.
//
// A pair without an NVLink goes through one GPU of the group (NCCL 2.9 and newer, path NVB): the way of the most
// bandwidth, of equal ones the first that NCCL finds [src/graph/paths.cc, ncclTopoSetPaths]. The sender writes to that
// GPU's memory, the receiver reads from there, so both links carry the message and the GPU between does nothing. A GPU
// outside the group is none of its topology [src/graph/topo.cc, ncclTopoTrimXml].
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "nccl/system.hpp"

namespace collcast::nccl {

/// What a way inside a node may have at the worst, in the order in which the search tries it before PCIe.
inline constexpr std::array nvlink_types{PathType::nvl, PathType::nvb};

/// Both ends of a node's way are on NVLink, straight or through a GPU.
inline bool over_nvlink(PathType type) { return type == PathType::nvl || type == PathType::nvb; }

struct NvlinkWay {
  PathType type = PathType::dis;  ///< NVL, NVB, or DIS: none
  double speed = 0;               ///< GB/s of the narrower link, as NCCL counts it
  std::vector<std::pair<int, int>> hops;
};
/// Between two of these GPUs, by their numbers in the node.
NvlinkWay nvlink_way(const System&, const std::vector<int>& gpus, int from, int to);

/// Of these GPUs all ways, and what the links have left while channels are booked on them.
class NvlinkWays {
 public:
  NvlinkWays(const System&, const std::vector<int>& gpus);

  const NvlinkWay& way(int from, int to) const;
  /// Of the busiest of its links; 0 where there is no way of this type or a better one.
  double room(int from, int to, PathType worst) const;
  /// Takes `speed` from every link of the way, or gives it back where it is negative.
  void book(int from, int to, double speed);
  /// Of `gpus` those that a channel of this speed may go on to: wide ways first, then straight ones, then those with
  /// most left.
  std::vector<int> onward(int from, std::vector<int> gpus, double speed, PathType worst) const;

 private:
  double& left(std::pair<int, int> hop);
  double left(std::pair<int, int> hop) const;

  std::size_t gpus_ = 0;
  std::vector<NvlinkWay> ways_;
  std::vector<double> left_;
};

}  // namespace collcast::nccl
