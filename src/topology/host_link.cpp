#include "collcast/topology/host_link.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include "check_spec.hpp"

namespace collcast {

namespace {

using topology::NodePlan;

/// Cables by device, without those of NVLink.
std::vector<std::vector<std::size_t>> cables_to_hosts(const NodePlan& node) {
  std::vector<std::vector<std::size_t>> of(node.devices.size());
  for (std::size_t c = 0; c < node.cables.size(); ++c) {
    if (node.cables[c].link.kind == LinkKind::nvlink) continue;
    of[static_cast<std::size_t>(node.cables[c].from)].push_back(c);
    of[static_cast<std::size_t>(node.cables[c].to)].push_back(c);
  }
  return of;
}

/// The cables from a GPU to the nearest CPU; empty: there is no way.
std::vector<std::size_t> way_to_host(const NodePlan& node, const std::vector<std::vector<std::size_t>>& cables,
                                     std::size_t gpu) {
  constexpr auto unseen = static_cast<std::size_t>(-1);
  std::vector<std::size_t> by(node.devices.size(), unseen);  // the cable that a device was reached by
  const auto other_end = [&](std::size_t cable, std::size_t device) {
    const auto from = static_cast<std::size_t>(node.cables[cable].from);
    return from == device ? static_cast<std::size_t>(node.cables[cable].to) : from;
  };
  std::deque<std::size_t> open{gpu};
  while (!open.empty()) {
    const std::size_t device = open.front();
    open.pop_front();
    if (node.devices[device].kind == DeviceKind::cpu) {
      std::vector<std::size_t> way;
      for (std::size_t at = device; at != gpu; at = other_end(by[at], at)) way.push_back(by[at]);
      return way;
    }
    if (device != gpu && !topology::is_transit(node.devices[device].kind)) continue;
    for (const std::size_t cable : cables[device]) {
      const std::size_t next = other_end(cable, device);
      if (next == gpu || by[next] != unseen) continue;
      by[next] = cable;
      open.push_back(next);
    }
  }
  return {};
}

}  // namespace

std::optional<Bandwidth> host_bandwidth(const TopologySpec& spec) {
  if (!topology::check_form(spec, spec.default_nodes, {}).empty()) return std::nullopt;
  const NodePlan node = topology::plan_node(spec);
  const auto cables = cables_to_hosts(node);
  std::vector<int> users(node.cables.size(), 0);
  for (int e = 0; e < node.endpoints.count; ++e) {
    const auto gpu = static_cast<std::size_t>(node.endpoints.first + e);
    if (node.devices[gpu].kind != DeviceKind::gpu) return std::nullopt;
    const std::vector<std::size_t> way = way_to_host(node, cables, gpu);
    if (way.empty()) return std::nullopt;
    for (const std::size_t cable : way) ++users[cable];
  }
  std::optional<Bandwidth> slowest;
  for (std::size_t c = 0; c < node.cables.size(); ++c) {
    if (users[c] == 0) continue;
    const Bandwidth each = node.cables[c].link.bandwidth / static_cast<double>(users[c]);
    slowest = slowest ? std::min(*slowest, each) : each;
  }
  return slowest;
}

}  // namespace collcast
