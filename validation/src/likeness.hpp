// Which described machine is the likest to a table's, by what its sidecar says; and what is asked of either on the way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/check.hpp"
#include "collcast/topology/spec.hpp"
#include "collcast/validation/measured_table.hpp"
#include "gpu_name.hpp"
#include "hardware_words.hpp"

namespace collcast::derive {

/// What is known of a node, by field.
struct Known {
  GpuName gpu;
  std::optional<int> capability;
  NvlinkWords nvlink;
  bool bridged = false;  ///< cards that NVLink's bridges join; `nvlink.links` is what they have else: PCIe
  NicWords nics;
  int gpus = 0;  ///< of a node, or of an NVLink domain of several; 0: not said
  int per_node = 0;
  bool several_nodes = false;
};

Known known_of(const MeasuredFacts&, int per_node);

template <class Spec>
auto group_of(Spec& spec, std::string_view name) -> decltype(spec.devices.data()) {
  for (auto& group : spec.devices)
    if (group.name == name) return &group;
  return nullptr;
}
template <class Spec>
auto gpus_of(Spec& spec) -> decltype(spec.devices.data()) {
  for (auto& group : spec.devices)
    if (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host) return &group;
  check(false, "a machine has one group of endpoints");
  return nullptr;
}

bool is_kind(const TopologySpec&, const std::string& name, DeviceKind);

/// How the GPUs of a described machine are joined.
GpuLinks links_of(const TopologySpec&);

/// Of one NIC; 0: no network.
Bandwidth network_rate(const TopologySpec&);
/// A file says what its NICs are in its title.
std::string network_kind(const TopologySpec&);

/// Within a tenth.
bool near(double, double);
bool near(Bandwidth, Bandwidth);

/// 0 to 3: another generation of GPU, the same generation, the same chip, the same GPU.
int gpu_likeness(const Known&, const TopologySpec&);

/// NICs of a node after those that serve one GPU together are taken as one (docs/decisions/0002-rails-and-lanes.md).
struct Ports {
  int count = 0;
  std::optional<Bandwidth> rate;
};
Ports joint_ports(const NicWords&, int gpus);

struct Likest {
  const TopologySpec* machine = nullptr;
  std::vector<std::string> equals;  ///< names of others that are as like
};
/// Nothing where none can be made into the table's machine.
std::optional<Likest> likest_of(const std::vector<TopologySpec>&, const Known&);

}  // namespace collcast::derive
