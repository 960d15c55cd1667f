#include "exchange/unused_nics.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "collcast/nccl/graph.hpp"
#include "collcast/nccl/links.hpp"

namespace collcast::exchange {

namespace {

Bandwidth counted(const Attached& one) { return one.kind == LinkKind::pcie ? nccl::pcie_speed(one.rate) : one.rate; }

/// From a device up to its socket: links as NCCL counts them, each with what it leads to.
struct Upward {
  std::vector<std::pair<Up, Bandwidth>> hops;
};
Upward upward(const ForeignNode& node, const Attached& device) {
  Upward out;
  for (const Attached* at = &device;; at = &node.switches[static_cast<std::size_t>(at->up.index)]) {
    out.hops.emplace_back(at->up, counted(*at));
    if (!at->up.is_switch) return out;
  }
}

struct WayToNic {
  Bandwidth speed{};
  nccl::PathType type = nccl::PathType::dis;
  bool operator==(const WayToNic&) const = default;
  bool before(const WayToNic& other) const { return speed != other.speed ? speed > other.speed : type < other.type; }
};
WayToNic way_between(const ForeignNode& node, const Upward& gpu, const Upward& nic, Bandwidth line_rate) {
  using nccl::PathType;
  WayToNic out{line_rate, PathType::sys};
  std::size_t hops = 0;
  for (const auto& [up, speed] : gpu.hops) {
    ++hops;
    out.speed = std::min(out.speed, speed);
    const auto joined = std::ranges::find(nic.hops, up, &std::pair<Up, Bandwidth>::first);
    if (joined == nic.hops.end()) continue;
    for (auto hop = nic.hops.begin(); hop <= joined; ++hop) out.speed = std::min(out.speed, hop->second);
    const bool one_switch = hops == 1 && joined == nic.hops.begin();
    out.type = !up.is_switch ? PathType::phb : one_switch ? PathType::pix : PathType::pxb;
    return out;
  }
  for (const auto& hop : nic.hops) out.speed = std::min(out.speed, hop.second);
  out.speed = std::min(out.speed, nccl::socket_speed(node.cpu));
  return out;
}

}  // namespace

std::vector<bool> unused_nics(const ForeignNode& node, const std::vector<Bandwidth>& rates) {
  std::vector<bool> out(node.nics.size(), false);
  if (rates.empty()) return out;
  const auto [slowest, fastest] = std::minmax_element(rates.begin(), rates.end());
  if (*slowest == *fastest) return out;
  std::vector<Upward> ways;
  for (std::size_t i = 0; i < out.size(); ++i) {
    ways.push_back(upward(node, node.nics[i]));
    out[i] = rates[i] < *fastest;
  }
  for (const Attached& one : node.gpus) {
    const Upward gpu = upward(node, one);
    std::vector<WayToNic> all;
    for (std::size_t i = 0; i < ways.size(); ++i) all.push_back(way_between(node, gpu, ways[i], rates[i]));
    const WayToNic best = *std::ranges::min_element(all, [](const auto& a, const auto& b) { return a.before(b); });
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] == best) out[i] = false;
  }
  return out;
}

void leave_out(ForeignNode& node, const std::vector<bool>& nics) {
  std::vector<Attached> kept;
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    if (!nics[i]) kept.push_back(std::move(node.nics[i]));
  node.nics = std::move(kept);
  std::vector<bool> holds(node.switches.size(), false);
  for (const auto* devices : {&node.gpus, &node.nics})
    for (const Attached& device : *devices)
      for (Up up = device.up; up.is_switch; up = node.switches[static_cast<std::size_t>(up.index)].up)
        holds[static_cast<std::size_t>(up.index)] = true;
  std::vector<int> number(holds.size(), 0);
  std::vector<Attached> switches;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    number[i] = static_cast<int>(switches.size());
    if (holds[i]) switches.push_back(std::move(node.switches[i]));
  }
  node.switches = std::move(switches);
  for (auto* devices : {&node.gpus, &node.nics, &node.switches})
    for (Attached& device : *devices)
      if (device.up.is_switch) device.up.index = number[static_cast<std::size_t>(device.up.index)];
}

}  // namespace collcast::exchange
