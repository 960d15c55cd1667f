#include "nccl/peer_level.hpp"

#include <algorithm>
#include <numeric>

#include "collcast/nccl/communicator.hpp"
#include "nccl/nvlink_ways.hpp"

namespace collcast::nccl {

namespace {

/// Over NVLink, also through a GPU of the node that has one to both, or over PCIe.
PathType path_of_pair(const System& system, const std::vector<int>& gpus, int a, int b) {
  if (system.nvswitch) return PathType::nvl;
  if (const NvlinkWay found = nvlink_way(system, gpus, a, b); over_nvlink(found.type)) return found.type;
  const auto over_pcie = way(system, system.first_gpu + a, system.first_gpu + b);
  return over_pcie ? over_pcie->type : PathType::dis;
}

}  // namespace

PeerAccess peer_access(const System& system, const std::vector<int>& gpus, PathType level) {
  constexpr PathType usual = PathType::pxb;
  bool same = true, any = false;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      const PathType path = path_of_pair(system, gpus, gpus[i], gpus[j]);
      same = same && (path <= level) == (path <= usual);
      any = any || path <= level;
    }
  return same ? PeerAccess::as_usual : any ? PeerAccess::of_others : PeerAccess::none;
}

PeerAccess peer_access(const TopologySpec& spec, const Environment& environment) {
  const auto capability = compute_capability(spec.gpu.model);
  if (!capability || !environment.peer_level) return PeerAccess::as_usual;
  const System system = system_of(spec, *capability, environment);
  std::vector<int> gpus(static_cast<std::size_t>(system.gpus));
  std::iota(gpus.begin(), gpus.end(), 0);
  return peer_access(system, gpus, *environment.peer_level);
}

}  // namespace collcast::nccl
