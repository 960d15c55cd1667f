#include "nccl/gdr_level.hpp"

#include <algorithm>
#include <numeric>

#include "collcast/nccl/communicator.hpp"
#include "nccl/nearest_nics.hpp"

namespace collcast::nccl {

DirectAccess direct_access(const TopologySpec& spec, const Environment& environment) {
  const auto capability = compute_capability(spec.gpu.model);
  if (!capability || !spec.plugin.gpudirect || spec.plugin.sockets) return DirectAccess::as_usual;
  const PathType level = environment.gpudirect_level, usual = Environment{}.gpudirect_level;
  Environment without = environment;
  without.gpudirect_level = usual;
  const System system = system_of(spec, *capability, without);
  std::vector<int> gpus(static_cast<std::size_t>(system.gpus));
  std::iota(gpus.begin(), gpus.end(), 0);
  const Nearest near = nearest_nics(system, gpus);
  for (const int gpu : gpus) {
    PathType nearest = PathType::dis;
    for (int nic = 0; nic < system.nics; ++nic) nearest = std::min(nearest, way_to_nic(system, near, gpu, nic));
    if (nearest <= usual && nearest > level) return DirectAccess::of_fewer;
    // A level counts ways over processors only; what is passed on by a GPU (PXN) is that one's.
    if ((nearest == PathType::phb || nearest == PathType::sys) && nearest <= level) return DirectAccess::of_farther;
  }
  return DirectAccess::as_usual;
}

}  // namespace collcast::nccl
