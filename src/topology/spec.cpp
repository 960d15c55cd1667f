// The words of the vocabulary that TopologySpec shares with files, reports and messages.
#include "collcast/topology/spec.hpp"

#include <algorithm>
#include <type_traits>

namespace collcast {

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu:
      return "gpu";
    case DeviceKind::host:
      return "host";
    case DeviceKind::nvswitch:
      return "nvswitch";
    case DeviceKind::pcie_switch:
      return "pcie_switch";
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::nic:
      return "nic";
  }
  check(false, "a device has one of the known kinds");
  return {};
}

std::string_view to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "nvlink";
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::socket:
      return "socket";
    case LinkKind::c2c:
      return "c2c";
    case LinkKind::nic_port:
      return "nic_port";
    case LinkKind::network:
      return "network";
    case LinkKind::direct:
      return "direct";
  }
  check(false, "a link has one of the known kinds");
  return {};
}

std::string_view to_string(CpuFamily family) {
  switch (family) {
    case CpuFamily::unknown:
      return "unknown";
    case CpuFamily::intel_broadwell:
      return "intel_broadwell";
    case CpuFamily::intel_skylake:
      return "intel_skylake";
    case CpuFamily::intel_sapphire_rapids:
      return "intel_sapphire_rapids";
    case CpuFamily::intel_emerald_rapids:
      return "intel_emerald_rapids";
    case CpuFamily::amd:
      return "amd";
    case CpuFamily::arm:
      return "arm";
    case CpuFamily::power:
      return "power";
  }
  check(false, "a processor is of one of the known families");
  return {};
}

Bandwidth network_rate(const NetworkSpec& network) {
  const auto rate = []<class Network>(const Network& one) {
    if constexpr (std::is_same_v<Network, std::monostate>)
      return Bandwidth{};
    else
      return one.bandwidth;
  };
  return std::visit(rate, network);
}

void set_network_rate(NetworkSpec& network, Bandwidth rate) {
  const auto set = [rate]<class Network>(Network& one) {
    if constexpr (!std::is_same_v<Network, std::monostate>) one.bandwidth = rate;
  };
  std::visit(set, network);
}

const DeviceGroup* network_group(const TopologySpec& spec) {
  const auto found = std::ranges::find(spec.devices, spec.network_devices, &DeviceGroup::name);
  return found == spec.devices.end() ? nullptr : &*found;
}

DeviceGroup* network_group(TopologySpec& spec) {
  const auto found = std::ranges::find(spec.devices, spec.network_devices, &DeviceGroup::name);
  return found == spec.devices.end() ? nullptr : &*found;
}

int network_ports(const TopologySpec& spec) {
  const DeviceGroup* group = network_group(spec);
  return group == nullptr ? 0 : group->count;
}

}  // namespace collcast
