#include "nccl/named_nics.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace collcast::nccl {

bool is_rack(const TopologySpec& spec) {
  constexpr int most_of_a_server = 16;
  return std::any_of(spec.devices.begin(), spec.devices.end(), [](const DeviceGroup& group) {
    return group.kind == DeviceKind::gpu && group.count > most_of_a_server;
  });
}

int named_nics(std::string_view list) {
  if (list.starts_with("^")) return 0;
  const bool exact = list.starts_with("=");
  if (exact) list.remove_prefix(1);
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string name(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    std::erase_if(name, [](unsigned char c) { return std::isspace(c) != 0; });
    if (name.empty()) continue;
    // A NIC's name may be followed by its port; a driver's is what the names of all its NICs begin with.
    const std::string nic = name.substr(0, name.find(':'));
    const bool numbered = std::isdigit(static_cast<unsigned char>(nic.empty() ? ' ' : nic.back())) != 0;
    if (!exact && (!numbered || nic == "mlx4" || nic == "mlx5")) return 0;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return static_cast<int>(names.size());
}

bool names_fewer_nics(const Setting& setting, const TopologySpec& spec) {
  // It is of NCCL's own verbs: who brings a plugin with a latency or variables of its own (EFA, TCPX) does not read it.
  const bool own_plugin = spec.plugin.sockets || !spec.plugin.environment.empty() || spec.plugin.latency > Seconds{};
  if (setting.name != nics_variable || own_plugin || is_rack(spec)) return false;
  const int named = named_nics(setting.value);
  const DeviceGroup* nics = network_group(spec);
  return named > 0 && nics != nullptr && nics->kind == DeviceKind::nic && named < nics->count;
}

}  // namespace collcast::nccl
