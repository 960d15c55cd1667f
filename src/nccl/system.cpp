#include "nccl/system.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <span>
#include <string>

#include "collcast/nccl/links.hpp"
#include "collcast/topology/wiring.hpp"

namespace collcast::nccl {

namespace {

/// Of a port by its data-sheet rate in GB/s, whatever its generation and width. Generation 6 codes differently: 121
/// GB/s there are 96 here, up to 5 the rate is 128/130 of 16/12 of the speed.
double pcie_gb(double rate) { return rate > 100 ? rate * 96 / 121 : rate * 12 / 15.75; }

double socket_gb(CpuFamily cpu) {
  switch (cpu) {
    case CpuFamily::intel_broadwell:
    case CpuFamily::arm:
      return 6;
    case CpuFamily::intel_sapphire_rapids:
      return 22;
    case CpuFamily::intel_emerald_rapids:
      return 40;
    case CpuFamily::amd:
      return 16;
    case CpuFamily::power:
      return 32;
    case CpuFamily::unknown:
    case CpuFamily::intel_skylake:
      break;
  }
  return 10;
}

double in_gb(Bandwidth rate) { return rate.value() / 1e9; }

/// Straight NVLinks of a group of links.
void add_nvlinks(System& out, const LinkGroup& link, const std::vector<std::pair<int, int>>& pairs) {
  const NvlinkSpeed one = nvlink_speed(out.compute_capability);
  const double links = link.bandwidth.value() / one.data_sheet.value(), counted = links * in_gb(one.counted);
  for (const auto& [a, b] : pairs) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    out.nvlinks[i][j] += counted;
    out.nvlinks[j][i] += counted;
  }
}

/// Of straight NVLinks the GPU that has least of those that have any says what all have.
void put_straight(System& out, std::span<const int> gpus) {
  for (const int gpu : gpus) {
    const std::vector<double>& own = out.nvlinks[static_cast<std::size_t>(gpu)];
    const double speed = std::accumulate(own.begin(), own.end(), 0.0);
    if (speed > 0 && (speed < out.nvlink_speed || !out.has_nvlink())) out.nvlink_speed = speed;
  }
  const NvlinkSpeed one = nvlink_speed(out.compute_capability);
  out.nvlink_rate = out.nvlink_speed * 1e9 / one.counted.value() * one.data_sheet;
}

/// All NVSwitches of a node are one in NCCL, whatever joins them [src/graph/topo.cc, ncclTopoAddNvLinks]. The GPU that
/// has least says what all have of it; where one has nothing there is none.
void put_switch(System& out, const std::vector<Bandwidth>& to_switches) {
  const auto least = std::ranges::min_element(to_switches);
  if (least == to_switches.end() || !(least->value() > 0)) return;
  const NvlinkSpeed one = nvlink_speed(out.compute_capability);
  out.nvswitch = true;
  out.nvlink_rate = *least;
  out.nvlink_speed = least->value() / one.data_sheet.value() * in_gb(one.counted);
}

}  // namespace

NvlinkSpeed nvlink_speed(int compute_capability) {
  const auto speed = [](double counted, double data_sheet) {
    return NvlinkSpeed{Bandwidth(counted * 1e9), Bandwidth(data_sheet * 1e9)};
  };
  if (compute_capability >= 100) return speed(40.1, 50);
  if (compute_capability >= 90) return speed(20.6, 25);
  if (compute_capability == 86) return speed(12, 14.0625);
  if (compute_capability < 70) return speed(18, 20);
  return speed(20, 25);
}

Bandwidth pcie_speed(Bandwidth data_sheet) { return Bandwidth(pcie_gb(in_gb(data_sheet)) * 1e9); }
Bandwidth socket_speed(CpuFamily cpu) { return Bandwidth(socket_gb(cpu) * 1e9); }

System system_of(const TopologySpec& spec, int compute_capability, const Environment& environment,
                 std::optional<std::vector<int>> of_gpus) {
  const bool nvlink = environment.peer_access;
  System out;
  out.relays = environment.relays();
  out.cross_nic = environment.cross_nic;
  out.through_gpus = environment.sends_through_gpus();
  out.gpudirect = spec.plugin.gpudirect ? environment.gpudirect_level : PathType::loc;
  out.compute_capability = compute_capability;
  out.cpu = spec.host.cpu == CpuFamily::unknown ? CpuFamily::intel_skylake : spec.host.cpu;
  std::map<std::string, std::pair<int, const DeviceGroup*>> groups;
  for (const DeviceGroup& group : spec.devices) {
    const int first = static_cast<int>(out.kinds.size());
    groups[group.name] = {first, &group};
    out.kinds.insert(out.kinds.end(), static_cast<std::size_t>(group.count), group.kind);
    if (group.kind == DeviceKind::gpu) {
      out.first_gpu = first;
      out.gpus = group.count;
    }
    if (group.name == spec.network_devices) {
      out.first_nic = first;
      out.nics = group.count;
    }
  }
  out.edges.resize(out.kinds.size());
  const auto gpus = static_cast<std::size_t>(out.gpus);
  out.nvlinks.assign(gpus, std::vector<double>(gpus, 0));
  out.nic_speed = in_gb(network_rate(spec.network));
  std::vector<Bandwidth> to_switches(gpus);
  for (const LinkGroup& link : spec.links) {
    const auto [from, from_group] = groups.at(link.from);
    const auto [to, to_group] = groups.at(link.to);
    const auto pairs = wired_pairs(link, from_group->count, to_group->count);
    if (link.kind == LinkKind::nvlink) {
      const bool of_switch = from_group->kind == DeviceKind::nvswitch || to_group->kind == DeviceKind::nvswitch;
      if (nvlink && !of_switch) add_nvlinks(out, link, pairs);
      for (const auto& [a, b] : pairs) {
        if (!nvlink || !of_switch) break;
        if (from_group->kind == DeviceKind::gpu) to_switches[static_cast<std::size_t>(a)] += link.bandwidth;
        if (to_group->kind == DeviceKind::gpu) to_switches[static_cast<std::size_t>(b)] += link.bandwidth;
      }
      continue;
    }
    const double rate = in_gb(link.bandwidth);
    const double speed = link.kind == LinkKind::pcie     ? pcie_gb(rate)
                         : link.kind == LinkKind::socket ? socket_gb(out.cpu)
                                                         : rate;
    for (const auto& [a, b] : pairs) {
      const int one = from + a, other = to + b;
      out.edges[static_cast<std::size_t>(one)].push_back({other, speed, rate, link.kind});
      out.edges[static_cast<std::size_t>(other)].push_back({one, speed, rate, link.kind});
    }
  }
  if (!of_gpus) {
    of_gpus.emplace(gpus);
    std::iota(of_gpus->begin(), of_gpus->end(), 0);
  }
  put_straight(out, *of_gpus);
  put_switch(out, to_switches);
  return out;
}

std::optional<Way> way(const System& system, int from, int to) {
  struct Step {
    int before = -1;
    const System::Edge* by = nullptr;
  };
  std::map<int, Step> seen{{from, {}}};
  std::deque<int> queue{from};
  while (!queue.empty() && seen.count(to) == 0) {
    const int at = queue.front();
    queue.pop_front();
    for (const System::Edge& edge : system.edges[static_cast<std::size_t>(at)]) {
      const DeviceKind kind = system.kinds[static_cast<std::size_t>(edge.to)];
      const bool end = kind == DeviceKind::gpu || kind == DeviceKind::nic;
      if ((end && edge.to != to) || !seen.emplace(edge.to, Step{at, &edge}).second) continue;
      queue.push_back(edge.to);
    }
  }
  if (seen.count(to) == 0) return std::nullopt;
  Way out;
  out.speed = out.rate = 5000;  // of a device with itself
  int switches = 0, cpus = 0;
  bool c2c = false;
  for (int at = to; at != from;) {
    const Step& step = seen.at(at);
    out.hops.emplace_back(step.before, at);
    out.kinds.push_back(step.by->kind);
    out.speed = std::min(out.speed, step.by->speed);
    out.rate = std::min(out.rate, step.by->rate);
    c2c = c2c || step.by->kind == LinkKind::c2c;
    at = step.before;
    if (at == from) break;
    const DeviceKind kind = system.kinds[static_cast<std::size_t>(at)];
    switches += kind == DeviceKind::pcie_switch ? 1 : 0;
    cpus += kind == DeviceKind::cpu ? 1 : 0;
  }
  std::reverse(out.hops.begin(), out.hops.end());
  std::reverse(out.kinds.begin(), out.kinds.end());
  out.type = out.hops.empty()   ? PathType::loc
             : cpus == 1 && c2c ? PathType::p2c
             : cpus == 1        ? PathType::phb
             : cpus > 1         ? PathType::sys
             : switches > 1     ? PathType::pxb
                                : PathType::pix;
  return out;
}

}  // namespace collcast::nccl
