// TopologySpec -> one node as NCCL_TOPO_DUMP_FILE has it.
//
// NCCL's file is a tree: sockets, switches below them, GPUs and NICs as leaves, each with the link to its parent. A
// machine is any graph, so every device hangs below the socket that is nearest to it; what joins it to a second switch
// or socket, or two switches of one socket, is left out and said. Bus ids are made up; rates become the nearest PCI
// Express speed and width.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <pugixml.hpp>
#include <sstream>

#include "collcast/base/units.hpp"
#include "collcast/exchange/machine.hpp"
#include "collcast/nccl/communicator.hpp"
#include "collcast/nccl/links.hpp"
#include "collcast/topology/wiring.hpp"
#include "exchange/pci.hpp"

namespace collcast::exchange {

namespace {

/// As NCCL tells processors apart [src/graph/topo.cc]: a model of each generation.
struct Processor {
  const char *arch, *vendor;
  int family, model;
};
std::optional<Processor> processor_of(CpuFamily cpu) {
  switch (cpu) {
    case CpuFamily::intel_broadwell:
      return Processor{"x86_64", "GenuineIntel", 6, 79};
    case CpuFamily::intel_skylake:
      return Processor{"x86_64", "GenuineIntel", 6, 85};
    case CpuFamily::intel_sapphire_rapids:
      return Processor{"x86_64", "GenuineIntel", 6, 143};
    case CpuFamily::intel_emerald_rapids:
      return Processor{"x86_64", "GenuineIntel", 6, 207};
    case CpuFamily::amd:
      return Processor{"x86_64", "AuthenticAMD", 23, 49};
    case CpuFamily::arm:
      return Processor{"arm64", "", 0, 0};
    case CpuFamily::power:
      return Processor{"ppc64", "", 0, 0};
    case CpuFamily::unknown:
      break;
  }
  return std::nullopt;
}

class Writing {
 public:
  Writing(const TopologySpec& spec, int capability) : spec_(spec), capability_(capability) {
    for (const DeviceGroup& group : spec.devices) {
      first_[group.name] = static_cast<int>(devices_.size());
      for (int i = 0; i < group.count; ++i) devices_.push_back({&group, i, {}, nullptr, {}});
    }
    for (const LinkGroup& link : spec.links) join(link);
  }

  Result<WrittenTopology> run() {
    for (const Device& device : devices_)
      if (device.group->kind == DeviceKind::cpu) ++sockets_;
    hang();
    if (const Diagnostics alone = unreached(); !alone.empty()) return alone;
    pugi::xml_node system = document_.append_child("system");
    system.append_attribute("version") = 1;
    if (sockets_ == 0) write_socket(system, 0, nullptr);
    int numa = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].group->kind == DeviceKind::cpu) write_socket(system, numa++, &devices_[i]);
    std::ostringstream out;
    document_.save(out, "  ", pugi::format_default | pugi::format_no_declaration);
    return WrittenTopology{out.str(), left_out()};
  }

 private:
  struct Edge {
    int to;
    const LinkGroup* link;
  };
  struct Device {
    const DeviceGroup* group;
    int number;
    std::vector<Edge> edges;  ///< but NVLinks
    const LinkGroup* up;
    std::vector<int> children;
  };

  void join(const LinkGroup& link) {
    const int from = first_.at(link.from), to = first_.at(link.to);
    const DeviceGroup &a = *devices_[static_cast<std::size_t>(from)].group,
                      &b = *devices_[static_cast<std::size_t>(to)].group;
    for (const auto& [i, j] : wired_pairs(link, a.count, b.count)) {
      const int one = from + i, other = to + j;
      if (link.kind == LinkKind::nvlink) {
        nvlinks_.push_back({one, other, link.bandwidth});
      } else {
        devices_[static_cast<std::size_t>(one)].edges.push_back({other, &link});
        devices_[static_cast<std::size_t>(other)].edges.push_back({one, &link});
      }
    }
  }

  Device& device(int index) { return devices_[static_cast<std::size_t>(index)]; }
  static bool is_leaf(DeviceKind kind) { return kind == DeviceKind::gpu || kind == DeviceKind::nic; }

  /// Sockets first, then what is one link further, and so on; without sockets the first switch, else the NVSwitch.
  void hang() {
    std::deque<int> queue;
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].group->kind == DeviceKind::cpu || (sockets_ == 0 && devices_[i].edges.empty()))
        queue.push_back(static_cast<int>(i));
    if (sockets_ == 0)
      for (std::size_t i = 0; i < devices_.size(); ++i)
        if (devices_[i].group->kind == DeviceKind::pcie_switch) {
          queue.push_back(static_cast<int>(i));
          break;
        }
    std::vector<bool> seen(devices_.size(), false);
    for (const int root : queue) {
      seen[static_cast<std::size_t>(root)] = true;
      if (device(root).group->kind != DeviceKind::cpu) roots_.push_back(root);
    }
    spread(queue, seen, false);
    // What is only joined by NVLink-C2C.
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (seen[i] && devices_[i].group->kind == DeviceKind::cpu) queue.push_back(static_cast<int>(i));
    spread(queue, seen, true);
    seen_ = std::move(seen);
  }

  void spread(std::deque<int>& queue, std::vector<bool>& seen, bool c2c) {
    for (; !queue.empty(); queue.pop_front()) {
      const int at = queue.front();
      if (is_leaf(device(at).group->kind)) continue;
      for (const Edge& edge : device(at).edges) {
        if (seen[static_cast<std::size_t>(edge.to)] || (edge.link->kind == LinkKind::c2c) != c2c) continue;
        seen[static_cast<std::size_t>(edge.to)] = true;
        device(edge.to).up = edge.link;
        device(at).children.push_back(edge.to);
        queue.push_back(edge.to);
      }
    }
  }

  Diagnostics unreached() const {
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (!seen_[i] && is_leaf(devices_[i].group->kind))
        return {{{},
                 fmt::format("{}{} of {} is joined to no socket and no switch", devices_[i].group->name,
                             devices_[i].number, spec_.name),
                 "NCCL's topology hangs every GPU and NIC below a socket; expected a link of kind pcie or c2c there"}};
    return {};
  }

  std::string name_of(int index) const {
    const Device& one = devices_[static_cast<std::size_t>(index)];
    return fmt::format("{}{}", one.group->name, one.number);
  }
  bool is_below(int child, int parent) const {
    return std::ranges::count(devices_[static_cast<std::size_t>(parent)].children, child) > 0;
  }
  /// Sockets are joined by what NCCL knows of their processors, a GPU's C2C stands beside its PCIe link.
  bool has_place(int a, int b, const LinkGroup& link) const {
    return link.kind == LinkKind::socket || link.kind == LinkKind::c2c || is_below(a, b) || is_below(b, a);
  }

  int whole_nvlinks(Bandwidth bandwidth) const {
    return std::max(
        1, static_cast<int>(std::lround(bandwidth.value() / nccl::nvlink_speed(capability_).data_sheet.value())));
  }

  /// NVLinks whose rate is not that of a whole number, but for rounding.
  void warn_of_rounded_nvlinks(Diagnostics& out) const {
    const Bandwidth one = nccl::nvlink_speed(capability_).data_sheet;
    for (const LinkGroup& link : spec_.links) {
      if (link.kind != LinkKind::nvlink) continue;
      const int links = whole_nvlinks(link.bandwidth);
      const Bandwidth written = one * static_cast<double>(links);
      if (std::abs(link.bandwidth.value() / written.value() - 1) < 0.01) continue;
      out.push_back({link.where,
                     fmt::format("NVLinks {} - {} of {} are written as {}, which is {}", link.from, link.to,
                                 format_bandwidth(link.bandwidth), links == 1 ? "one" : fmt::format("{}", links),
                                 format_bandwidth(written)),
                     fmt::format("NCCL's file counts links, of {} each", format_bandwidth(one))});
    }
  }

  /// Of each group of links those that are none of the tree's, with the first by name, and rates that are rounded.
  Diagnostics left_out() const {
    struct Count {
      int all = 0, out = 0;
      std::string first;
    };
    std::map<const LinkGroup*, Count> counts;
    for (std::size_t i = 0; i < devices_.size(); ++i)
      for (const Edge& edge : devices_[i].edges) {
        const int from = static_cast<int>(i);
        if (devices_[i].group->name != edge.link->from || (edge.link->from == edge.link->to && edge.to < from))
          continue;
        Count& count = counts[edge.link];
        ++count.all;
        if (has_place(from, edge.to, *edge.link)) continue;
        if (count.out++ == 0) count.first = fmt::format("{} - {}", name_of(from), name_of(edge.to));
      }
    Diagnostics out;
    for (const LinkGroup& link : spec_.links)
      if (const Count& count = counts[&link]; count.out > 0)
        out.push_back({link.where,
                       fmt::format("{} of {} links {} - {} are left out, such as {}", count.out, count.all, link.from,
                                   link.to, count.first),
                       "in NCCL's file each GPU, NIC and switch hangs below one switch or socket: the one that is "
                       "nearest to a socket, of equals the first"});
    warn_of_rounded_nvlinks(out);
    return out;
  }

  std::string busid(int index) const { return fmt::format("{:04x}:{:02x}:00.0", (index + 1) >> 8, (index + 1) & 0xff); }

  void write_socket(pugi::xml_node system, int numa, const Device* cpu) {
    pugi::xml_node node = system.append_child("cpu");
    node.append_attribute("numaid") = numa;
    if (const auto processor = processor_of(spec_.host.cpu)) {
      node.append_attribute("arch") = processor->arch;
      if (*processor->vendor != '\0') {
        node.append_attribute("vendor") = processor->vendor;
        node.append_attribute("familyid") = processor->family;
        node.append_attribute("modelid") = processor->model;
      }
    }
    const std::vector<int>& below = cpu == nullptr ? roots_ : cpu->children;
    for (const int child : below) write(node, child);
  }

  void write(pugi::xml_node parent, int index) {
    const Device& one = device(index);
    const DeviceKind kind = one.group->kind;
    if (kind == DeviceKind::nvswitch || kind == DeviceKind::cpu || kind == DeviceKind::host) return;
    if (kind == DeviceKind::nic && one.up != nullptr && one.up->kind == LinkKind::direct) return write_nic(parent, one);
    pugi::xml_node node = parent.append_child("pci");
    node.append_attribute("busid") = busid(index).c_str();
    node.append_attribute("class") = kind == DeviceKind::gpu   ? "0x030200"
                                     : kind == DeviceKind::nic ? "0x020000"
                                                               : "0x060400";
    if (const auto id = kind == DeviceKind::gpu ? device_of(spec_.gpu.model) : std::nullopt) {
      node.append_attribute("vendor") = "0x10de";
      node.append_attribute("device") = fmt::format("0x{:04x}", *id).c_str();
    }
    const bool pcie = one.up != nullptr && one.up->kind != LinkKind::c2c;
    const PcieLink link = pcie ? pcie_link(one.up->bandwidth) : PcieLink{"", 0};
    node.append_attribute("link_speed") = link.speed.c_str();
    node.append_attribute("link_width") = link.width;
    if (kind == DeviceKind::gpu) write_gpu(node, index);
    if (kind == DeviceKind::nic) write_nic(node, one);
    for (const int child : one.children) write(node, child);
  }

  void write_gpu(pugi::xml_node parent, int index) {
    const Device& one = device(index);
    pugi::xml_node node = parent.append_child("gpu");
    node.append_attribute("dev") = one.number;
    node.append_attribute("sm") = capability_;
    node.append_attribute("rank") = one.number;
    node.append_attribute("gdr") = 1;
    for (const auto& [a, b, bandwidth] : nvlinks_) {
      if (a != index && b != index) continue;
      const int other = a == index ? b : a;
      const int links = whole_nvlinks(bandwidth);
      const bool to_gpu = device(other).group->kind == DeviceKind::gpu;
      pugi::xml_node link = node.append_child("nvlink");
      link.append_attribute("target") = busid(other).c_str();
      link.append_attribute("count") = links;
      link.append_attribute("tclass") = to_gpu ? "0x030200" : "0x068000";
    }
    for (const Edge& edge : one.edges) {
      if (edge.link->kind != LinkKind::c2c) continue;
      pugi::xml_node c2c = node.append_child("c2c");
      c2c.append_attribute("bw") = std::llround(edge.link->bandwidth.value() / 1e6);
      c2c.append_attribute("count") = 1;
    }
  }

  void write_nic(pugi::xml_node parent, const Device& one) {
    if (one.group->name != spec_.network_devices) return;
    const Bandwidth rate = network_rate(spec_.network);
    pugi::xml_node net = parent.append_child("nic").append_child("net");
    net.append_attribute("name") = fmt::format("{}{}", one.group->name, one.number).c_str();
    net.append_attribute("dev") = one.number;
    net.append_attribute("speed") = std::llround(rate.value() / 125e3);
    net.append_attribute("port") = 1;
    net.append_attribute("latency") = fmt::format("{:f}", spec_.plugin.latency.count() * 1e6).c_str();
    net.append_attribute("guid") = fmt::format("0x{:x}", one.number + 1).c_str();
    net.append_attribute("maxconn") = 131072;
    net.append_attribute("gdr") = spec_.plugin.gpudirect ? 1 : 0;
    if (spec_.plugin.collnet) net.append_attribute("coll") = 1;
  }

  struct Nvlink {
    int a, b;
    Bandwidth bandwidth;
  };
  const TopologySpec& spec_;
  const int capability_;
  std::map<std::string, int> first_;
  std::vector<Device> devices_;
  std::vector<Nvlink> nvlinks_;
  std::vector<int> roots_;  ///< without sockets
  std::vector<bool> seen_;
  int sockets_ = 0;
  pugi::xml_document document_;
};

}  // namespace

Result<WrittenTopology> nccl_topology_xml(const TopologySpec& spec) {
  const auto capability = nccl::compute_capability(spec.gpu.model);
  if (!capability)
    return Diagnostic{{},
                      fmt::format("{} is no machine for NCCL: {}", spec.name,
                                  spec.gpu.model.empty()
                                      ? "it has no GPUs"
                                      : fmt::format("the compute capability of '{}' is not known", spec.gpu.model)),
                      "expected a machine with NVIDIA GPUs"};
  return Writing(spec, *capability).run();
}

}  // namespace collcast::exchange
