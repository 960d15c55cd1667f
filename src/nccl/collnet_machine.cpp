#include "nccl/collnet_machine.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

/// What a NIC's link to the network carried; from now on it carries everything, at once.
Bandwidth taken_from(NetworkSpec& network) {
  Bandwidth out{};
  std::visit(
      [&](auto& one) {
        using Network = std::decay_t<decltype(one)>;
        if constexpr (!std::is_same_v<Network, std::monostate>) {
          out = std::exchange(one.bandwidth, Bandwidth(unlimited));
          one.latency = Seconds(0);
        }
        if constexpr (std::is_same_v<Network, LeafSpineNetwork>) one.spine_latency = Seconds(0);
      },
      network);
  return out;
}

LinkGroup joined(const std::string& from, const std::string& to, int first, int count, Bandwidth rate, Seconds latency,
                 const TopologySpec& spec) {
  LinkGroup out{from, to, Wiring::pairs, {}, LinkKind::direct, rate, latency, "the network's reduction", spec.where};
  for (int i = 0; i < count; ++i) out.pairs.emplace_back(first + i, i);
  return out;
}

}  // namespace

void add_network_members(TopologySpec& spec, double way) {
  const auto gpus = std::ranges::find(spec.devices, DeviceKind::gpu, &DeviceGroup::kind);
  DeviceGroup* nics = network_group(spec);
  const std::string members = gpus->name, nic = nics->name, leaf = nic + "-leaf";
  const int first = gpus->count, count = nics->count;
  const Bandwidth rate = taken_from(spec.network);
  gpus->count += count;
  nics->kind = DeviceKind::pcie_switch;  // data pass it on their way to the member behind it
  spec.links.push_back(joined(members, nic, first, count, rate, Seconds(way / 2), spec));
  spec.links.push_back(joined(members, leaf, first, count, Bandwidth(unlimited), Seconds(0), spec));
  spec.links.push_back(joined(nic, leaf, 0, count, rate, Seconds(0), spec));
  spec.devices.push_back({leaf, DeviceKind::nic, count, spec.where});
  spec.network_devices = leaf;
}

}  // namespace collcast::nccl
