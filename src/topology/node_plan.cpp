// Spells out one node: groups become devices, wirings become cables.
#include "node_plan.hpp"

namespace collcast {

std::vector<std::pair<int, int>> wired_pairs(const LinkGroup& group, int from_count, int to_count) {
  std::vector<std::pair<int, int>> pairs;
  const bool within = group.from == group.to;
  switch (group.wiring) {
    case Wiring::all:
      for (int i = 0; i < from_count; ++i)
        for (int j = within ? i + 1 : 0; j < to_count; ++j) pairs.emplace_back(i, j);
      break;
    case Wiring::one_to_one:
      for (int i = 0; i < from_count; ++i) pairs.emplace_back(i, i);
      break;
    case Wiring::spread:
      for (int i = 0; i < from_count; ++i) pairs.emplace_back(i, i * to_count / from_count);
      break;
    case Wiring::ring:
      for (int i = 0; i < from_count; ++i) pairs.emplace_back(i, (i + 1) % from_count);
      break;
    case Wiring::pairs:
      pairs = group.pairs;
      break;
  }
  return pairs;
}

}  // namespace collcast

namespace collcast::topology {

namespace {

DeviceRange range_of(const TopologySpec& spec, const std::string& name) {
  int first = 0;
  for (const DeviceGroup& group : spec.devices) {
    if (group.name == name) return {first, group.count};
    first += group.count;
  }
  check(false, "a checked spec names only its own device groups");
  return {};
}

}  // namespace

NodePlan plan_node(const TopologySpec& spec) {
  NodePlan node;
  for (std::size_t g = 0; g < spec.devices.size(); ++g) {
    const DeviceGroup& group = spec.devices[g];
    if (is_endpoint(group.kind)) node.endpoints = range_of(spec, group.name);
    for (int i = 0; i < group.count; ++i) node.devices.push_back({group.kind, static_cast<int>(g), i});
  }
  for (const LinkGroup& group : spec.links) {
    const DeviceRange from = range_of(spec, group.from), to = range_of(spec, group.to);
    for (const auto& [i, j] : wired_pairs(group, from.count, to.count))
      node.cables.push_back({from.first + i, to.first + j, {group.bandwidth, group.latency, group.kind}});
  }
  if (!std::holds_alternative<std::monostate>(spec.network)) node.ports = range_of(spec, spec.network_devices);
  return node;
}

}  // namespace collcast::topology
