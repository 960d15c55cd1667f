#include "nccl/nvlink_ways.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "nccl/search_speeds.hpp"

namespace collcast::nccl {

NvlinkWay nvlink_way(const System& system, const std::vector<int>& gpus, int from, int to) {
  const auto link = [&](int a, int b) {
    return system.nvlinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  };
  if (const double own = link(from, to); own > 0) return {PathType::nvl, own, {{from, to}}};
  if (!system.through_gpus) return {};
  // Found from the receiver: its wider links first, then by number.
  std::vector<int> near;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(near), [&](int gpu) { return link(gpu, to) > 0; });
  std::stable_sort(near.begin(), near.end(), [&](int a, int b) { return link(a, to) > link(b, to); });
  NvlinkWay out;
  for (const int between : near) {
    const double speed = std::min(link(from, between), link(between, to));
    if (speed > out.speed) out = {PathType::nvb, speed, {{from, between}, {between, to}}};
  }
  return out;
}

NvlinkWays::NvlinkWays(const System& system, const std::vector<int>& gpus) : gpus_(system.nvlinks.size()) {
  ways_.resize(gpus_ * gpus_);
  for (const std::vector<double>& of_gpu : system.nvlinks) left_.insert(left_.end(), of_gpu.begin(), of_gpu.end());
  for (const int a : gpus)
    for (const int b : gpus)
      if (a != b)
        ways_[static_cast<std::size_t>(a) * gpus_ + static_cast<std::size_t>(b)] = nvlink_way(system, gpus, a, b);
}

const NvlinkWay& NvlinkWays::way(int from, int to) const {
  return ways_[static_cast<std::size_t>(from) * gpus_ + static_cast<std::size_t>(to)];
}

double& NvlinkWays::left(std::pair<int, int> hop) {
  return left_[static_cast<std::size_t>(hop.first) * gpus_ + static_cast<std::size_t>(hop.second)];
}

double NvlinkWays::left(std::pair<int, int> hop) const {
  return left_[static_cast<std::size_t>(hop.first) * gpus_ + static_cast<std::size_t>(hop.second)];
}

double NvlinkWays::room(int from, int to, PathType worst) const {
  const NvlinkWay& found = way(from, to);
  if (found.type > worst) return 0;
  double least = found.speed;
  for (const auto& hop : found.hops) least = std::min(least, left(hop));
  return least;
}

void NvlinkWays::book(int from, int to, double speed) {
  for (const auto& hop : way(from, to).hops) left(hop) -= speed;
}

std::vector<int> NvlinkWays::onward(int from, std::vector<int> gpus, double speed, PathType worst) const {
  std::erase_if(gpus, [&](int gpu) { return room(from, gpu, worst) < speed - slack; });
  const auto rank = [&](int gpu) {
    const NvlinkWay& found = way(from, gpu);
    return std::tuple(-found.speed, found.hops.size(), -room(from, gpu, worst));
  };
  std::stable_sort(gpus.begin(), gpus.end(), [&](int a, int b) { return rank(a) < rank(b); });
  return gpus;
}

}  // namespace collcast::nccl
