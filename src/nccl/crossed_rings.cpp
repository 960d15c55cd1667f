#include "nccl/crossed_rings.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "nccl/links_left.hpp"
#include "nccl/search_speeds.hpp"

namespace collcast::nccl {

namespace {

/// From device to device, one after the other, a NIC, the GPUs and a NIC; what leaves a GPU books more on PCIe. Nothing
/// where a link has no room, else the worst way between two GPUs.
std::optional<PathType> book(LinksLeft& links, const System& system, const std::vector<int>& devices, double speed) {
  PathType worst = PathType::loc;
  for (std::size_t i = 0; i + 1 < devices.size(); ++i) {
    const auto hop = way(system, devices[i], devices[i + 1]);
    const bool from_gpu = i > 0, between_gpus = from_gpu && i + 2 < devices.size();
    if (!hop || !links.book(*hop, speed, from_gpu ? pcie_booked(system, hop->type) : 1)) return std::nullopt;
    if (between_gpus) worst = std::max(worst, hop->type);
  }
  return worst;
}

PathType type_of_way(const System& system, int a, int b) {
  const auto found = way(system, a, b);
  return found ? found->type : PathType::dis;
}

/// Past all GPUs, those near the first one first, to one beside the other NIC. Empty if that has no other GPU.
std::vector<int> order_from(const System& system, std::vector<int> gpus, int first,
                            const std::vector<Nearest::Gpu>& beside_last) {
  const auto last = std::ranges::find_if(beside_last, [&](const Nearest::Gpu& one) { return one.gpu != first; });
  if (last == beside_last.end()) return {};
  const auto far = [&](int gpu) { return type_of_way(system, system.first_gpu + first, system.first_gpu + gpu); };
  std::ranges::stable_sort(gpus, [&](int a, int b) {
    if (a == first || b == first) return a == first && b != first;
    if (a == last->gpu || b == last->gpu) return b == last->gpu && a != b;
    return far(a) < far(b);
  });
  return gpus;
}

/// The other NICs, those that are farthest from the GPU first.
std::vector<int> nics_farthest_first(const System& system, const Nearest& near, int nic, int gpu) {
  std::vector<int> out;
  for (const auto& [other, ways] : near.gpus)
    if (other > nic) out.push_back(other);
  const auto far = [&](int other) { return type_of_way(system, system.first_gpu + gpu, system.first_nic + other); };
  std::ranges::stable_sort(out, [&](int a, int b) { return far(a) > far(b); });
  return out;
}

class CrossedPairs {
 public:
  CrossedPairs(const System& system, const std::vector<int>& gpus, const Nearest& near, double speed)
      : system_(system), gpus_(gpus), near_(near), speed_(speed), links_(system) {
    for (const auto& [nic, ways] : near.gpus) nics_[nic] = system.nic_speed;
  }

  Rings find() {
    for (bool more = true; more;) {
      more = false;
      for (const auto& [nic, ways] : near_.gpus) more = add_from(nic, ways.front().gpu) || more;
    }
    return std::move(out_);
  }

 private:
  bool add_from(int nic, int first) {
    for (const int other : nics_farthest_first(system_, near_, nic, first)) {
      if (out_.count + 2 > most_searched_channels || nics_[nic] < speed_ - slack || nics_[other] < speed_ - slack)
        continue;
      const std::vector<int> order = order_from(system_, gpus_, first, near_.gpus.at(other));
      if (!order.empty() && add(order, nic, other)) return true;
    }
    return false;
  }

  bool add(const std::vector<int>& order, int nic, int other) {
    std::vector<int> devices{system_.first_nic + nic};
    for (const int gpu : order) devices.push_back(system_.first_gpu + gpu);
    devices.push_back(system_.first_nic + other);
    LinksLeft then = links_;
    const auto there = book(then, system_, devices, speed_);
    std::reverse(devices.begin(), devices.end());
    const auto back = there ? book(then, system_, devices, speed_) : std::nullopt;
    if (!back) return false;
    const PathType worst = std::max(*there, *back);
    if (system_.cpu == CpuFamily::amd && worst >= PathType::sys) return false;
    links_ = std::move(then);
    nics_[nic] -= speed_;
    nics_[other] -= speed_;
    out_.order.push_back(order);
    out_.order.emplace_back(order.rbegin(), order.rend());
    out_.nics.push_back({nic, other, near_.type, near_.type});
    out_.nics.push_back({other, nic, near_.type, near_.type});
    out_.type = out_.count == 0 ? worst : std::max(out_.type, worst);
    out_.count += 2;
    return true;
  }

  const System& system_;
  const std::vector<int>& gpus_;
  const Nearest& near_;
  double speed_;
  LinksLeft links_;
  std::map<int, double> nics_;  ///< left on each, either way
  Rings out_;
};

}  // namespace

Rings crossed_over_pcie(const System& system, const std::vector<int>& gpus, const Nearest& near, double speed) {
  if (system.cross_nic == CrossNic::never || near.gpus.size() < 2 || gpus.size() < 2) return {};
  return CrossedPairs(system, gpus, near, speed).find();
}

}  // namespace collcast::nccl
