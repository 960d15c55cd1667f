// NCCL's topology XML -> ForeignNode, with NCCL's own rules [src/graph/xml.cc, topo.cc of v2.28.9]: a PCI device's link
// is the one to its parent, width 0 is 16 lanes and an unknown speed 8 GT/s; all NVSwitches are one; a link to a device
// that is not visible goes to an NVSwitch; Broadcom switches that show as two levels are one; a NIC is what has a
// `net`, if anything has; a file without any `gpu` is the skeleton of a virtual machine, where classes tell devices
// apart.
//
// Left out: PCIe peer links between switches, NVLinks to processors; where one GPU or NIC has no GPUDirect RDMA, none
// has.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "collcast/base/text.hpp"
#include "collcast/exchange/machine.hpp"
#include "exchange/pci.hpp"
#include "exchange/unused_nics.hpp"
#include "exchange/xml.hpp"

namespace collcast::exchange {

namespace {

constexpr std::string_view hidden_device = "fffffff:ffff:ff";
constexpr std::size_t most_devices = 1024;  // of one kind, as machine files have
constexpr double nic_without_pci = 5000;    // GB/s; LOC_BW of NCCL's topo.h

struct Net {
  std::int64_t dev = 0;
  std::string name;
  Bandwidth rate{};
  std::optional<Seconds> latency;
  std::optional<bool> gpudirect, collnet;
  Location where;
};

struct Nvlink {
  std::string target;
  std::int64_t count = 0;
  std::uint64_t target_class = 0;
  Location where;
};

struct Gpu {
  std::int64_t dev = 0, sm = 0;
  std::vector<Nvlink> nvlinks;
  Bandwidth c2c{};
  std::optional<bool> gpudirect;
};

enum class Class { unknown, bridge, gpu, nic, nvswitch, other };

struct Pci {
  std::string busid;
  std::uint64_t order = 0;  ///< the bus id as a number
  Location where, class_where;
  Class device_class = Class::unknown;
  std::uint64_t identity = 0;  ///< vendor, device, subsystem vendor, subsystem device, 16 bits each
  Bandwidth rate{};
  std::string said;
  std::vector<Pci> children;
  std::optional<Gpu> gpu;
  std::vector<Net> nets;
};

struct Cpu {
  std::int64_t numa = 0;
  CpuFamily family = CpuFamily::unknown;
  std::string said;
  std::vector<Pci> children;
  std::vector<Net> nets;
};

/// The first place of each value that may be there once.
class Once {
 public:
  explicit Once(std::string what) : what_(std::move(what)) {}
  void see(XmlFile& xml, const std::string& value, const Location& where) {
    const auto [there, is_new] = seen_.emplace(value, where);
    if (!is_new)
      xml.error(where, fmt::format("{} '{}' is there twice", what_, shown(value)),
                fmt::format("the first is at {}", to_text(there->second)));
  }

 private:
  std::string what_;
  std::map<std::string, Location> seen_;
};

/// dddd:bb:dd.f as one number; nothing if it is none.
std::optional<std::uint64_t> bus_number(const std::string& text) {
  std::uint64_t out = 0;
  int fields = 0;
  const char *at = text.data(), *const end = at + text.size();
  for (; fields < 4; ++fields) {
    std::uint64_t value = 0;
    const auto [next, failed] = std::from_chars(at, end, value, 16);
    if (failed != std::errc{} || value > (fields == 0 ? 0xffffffffULL : 0xffULL)) return std::nullopt;
    out = out << 8 | value;
    at = next;
    if (at == end) break;
    if (*at != (fields < 2 ? ':' : '.')) return std::nullopt;
    ++at;
  }
  return fields == 3 && at == end ? std::optional(out) : std::nullopt;
}

/// As NCCL writes it.
std::string bus_text(std::uint64_t number) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", number >> 24, number >> 16 & 0xff, number >> 8 & 0xff, number & 0xff);
}

class Reading {
 public:
  explicit Reading(XmlFile& xml) : xml_(xml) {}

  std::vector<Cpu> system() {
    Element root = xml_.root();
    const auto version = root.integer("version", 1);
    if (!version && !root.has("version"))
      xml_.warn("<system> has no version", root.place(), "NCCL reads version 1 and nothing else; it is taken for that");
    if (version && *version > 2)
      xml_.warn(fmt::format("version of <system> is {}", *version), root.place_of("version"),
                "version 1 is known, and it is read as that");
    if (version == 2) root.error("version", "version is 2: RCCL's, of AMD GPUs", "expected a file of NCCL, version 1");
    root.finish();
    std::vector<Cpu> out;
    for (Element& child : root.children({"cpu"})) out.push_back(cpu(child));
    if (hosts_.size() > 1)
      xml_.error(root.place(), fmt::format("{} hosts in one file", hosts_.size()),
                 "expected one node: the file of a communicator within one host");
    return out;
  }

 private:
  /// A number that one element of a kind has; what is none has been said and is not held against others.
  std::int64_t once(Element& e, const char* attribute, std::int64_t least, Once& seen) {
    const auto value = e.required_integer(attribute, least);
    if (value) seen.see(xml_, std::to_string(*value), e.place_of(attribute));
    return value.value_or(0);
  }

  CpuFamily family_of(Element& e, std::string& said) {
    const std::string arch = e.text("arch"), vendor = e.text("vendor");
    const auto family = e.integer("familyid", 0), model = e.integer("modelid", 0);
    if (arch.empty()) return CpuFamily::unknown;
    said = arch + (vendor.empty() ? "" : " " + vendor) +
           (family && model ? fmt::format(", family {}, model {}", *family, *model) : "");
    if (arch == "arm64" || arch == "aarch64") return CpuFamily::arm;
    if (arch == "ppc64" || arch == "ppc64le") return CpuFamily::power;
    if (vendor == "AuthenticAMD") return CpuFamily::amd;
    if (vendor == "GenuineIntel" && family && model) {
      if (*family != 6 || *model < 0x55) return CpuFamily::intel_broadwell;
      if (*model < 0x8f) return CpuFamily::intel_skylake;
      return *model < 0xcf ? CpuFamily::intel_sapphire_rapids : CpuFamily::intel_emerald_rapids;
    }
    xml_.warn(fmt::format("processor '{}' is not known", shown(said)), e.place(),
              "the kind of processor is taken from the other machine");
    said.clear();
    return CpuFamily::unknown;
  }

  Cpu cpu(Element& e) {
    Cpu out;
    out.numa = once(e, "numaid", -1, numas_);
    out.family = family_of(e, out.said);
    hosts_.insert(e.text("host_hash"));
    e.ignore({"affinity"});
    e.finish();
    for (Element& child : e.children({"pci", "nic"})) {
      if (child.name() == "pci")
        out.children.push_back(pci(child));
      else
        nets(child, out.nets);
    }
    return out;
  }

  Class class_of(Element& e) {
    const auto value = e.hexadecimal("class");
    if (!value) return Class::unknown;
    if (*value >> 8 == 0x0604) return Class::bridge;
    if (*value >> 8 == 0x0680) return Class::nvswitch;
    if (*value >> 16 == 0x03) return Class::gpu;
    return *value >> 16 == 0x02 ? Class::nic : Class::other;
  }

  void link_of(Element& e, Pci& out) {
    const std::string speed = e.text("link_speed");
    const auto width = e.integer("link_width", 0, 32);
    auto transfers = parse_gigatransfers(speed);
    if (!transfers && !speed.empty() && !speed.starts_with("Unknown"))
      xml_.warn(fmt::format("link_speed '{}' is not known", shown(speed)), e.place_of("link_speed"),
                "NCCL counts 8 GT/s for it, and so it is here");
    const int lanes = width.value_or(0) == 0 ? 16 : static_cast<int>(*width);
    out.said = fmt::format("{} x{}", speed.empty() ? "no link_speed" : shown(speed),
                           width.value_or(0) == 0 ? "16 (no link_width)" : std::to_string(lanes));
    if (!transfers) out.said += ", counted as 8 GT/s";
    out.rate = pcie_rate(transfers.value_or(8), lanes);
  }

  Pci pci(Element& e) {
    Pci out;
    out.where = e.place();
    out.busid = e.required_text("busid");
    if (!out.busid.empty()) {
      const auto number = bus_number(out.busid);
      if (!number)
        e.error("busid", fmt::format("busid is '{}'", shown(out.busid)), "expected dddd:bb:dd.f in hexadecimal digits");
      out.order = number.value_or(0);
      buses_.see(xml_, number ? bus_text(*number) : out.busid, e.place_of("busid"));
    }
    out.device_class = class_of(e);
    out.class_where = e.place_of("class");
    for (const char* part : {"vendor", "device", "subsystem_vendor", "subsystem_device"})
      out.identity = out.identity << 16 | (e.hexadecimal(part).value_or(0) & 0xffff);
    link_of(e, out);
    e.ignore({"numa_node"});
    e.finish();
    for (Element& child : e.children({"pci", "gpu", "nic", "pcilink"})) {
      if (child.name() == "pci") out.children.push_back(pci(child));
      if (child.name() == "gpu" && out.gpu)
        xml_.error(child.place(), fmt::format("PCI device '{}' has a second <gpu>", shown(out.busid)),
                   "expected one: a GPU is a device");
      else if (child.name() == "gpu")
        out.gpu = gpu(child);
      if (child.name() == "nic") nets(child, out.nets);
      if (child.name() == "pcilink")
        xml_.warn("<pcilink> is not read", child.place(), "peer links between PCIe switches are left out");
    }
    if (out.gpu && !out.nets.empty())
      xml_.error(out.where, fmt::format("PCI device '{}' is a GPU and a NIC", shown(out.busid)),
                 "expected one of them");
    return out;
  }

  std::optional<bool> gpudirect(Element& e) {
    const auto gdr = e.integer("gdr", 0);
    if (gdr && *gdr > 1)
      xml_.warn("a gdr that is neither 0 nor 1", e.place_of("gdr"), "it counts as 1: with GPUDirect RDMA");
    if (!gdr) return std::nullopt;
    return *gdr != 0;
  }

  Gpu gpu(Element& e) {
    Gpu out;
    out.dev = once(e, "dev", 0, devices_);
    out.sm = e.required_integer("sm", 30, 999).value_or(0);
    if (const auto rank = e.integer("rank", -1); rank && *rank >= 0)
      ranks_.see(xml_, std::to_string(*rank), e.place_of("rank"));
    out.gpudirect = gpudirect(e);
    e.ignore({"arch", "gcn"});
    e.finish();
    for (Element& child : e.children({"nvlink", "c2c"})) {
      if (child.name() == "nvlink") {
        out.nvlinks.push_back({child.required_text("target"), child.required_integer("count", 0, 1000).value_or(0),
                               child.hexadecimal("tclass").value_or(0), child.place()});
      } else {
        const double bandwidth = static_cast<double>(child.required_integer("bw", 0).value_or(0));  // MB/s
        out.c2c =
            Bandwidth(bandwidth * 1e6 * static_cast<double>(child.required_integer("count", 0, 1000).value_or(0)));
      }
      child.finish();
    }
    return out;
  }

  void nets(Element& e, std::vector<Net>& out) {
    e.finish();
    for (Element& child : e.children({"net"})) {
      Net net;
      net.where = child.place();
      net.dev = once(child, "dev", 0, nets_);
      net.name = child.text("name");
      const auto speed = child.integer("speed", -1);  // Mb/s
      if (speed && *speed <= 0)
        xml_.warn("a NIC's speed is not known", child.place_of("speed"),
                  "NCCL counts 10 Gb/s for it, and so it is here");
      net.rate = Bandwidth((speed && *speed > 0 ? static_cast<double>(*speed) : 10'000) * 125e3);
      constexpr double most_latency = 1e5;  // us: a tenth of a second, far beyond any NIC's
      if (const auto latency = child.number("latency", 0, most_latency)) net.latency = Seconds(*latency * 1e-6);
      net.gpudirect = gpudirect(child);
      if (const auto coll = child.integer("coll", 0)) net.collnet = *coll != 0;
      child.ignore({"port", "guid", "maxconn", "keep", "net", "gin", "numa_node"});
      child.finish();
      out.push_back(net);
    }
  }

  XmlFile& xml_;
  Once numas_{"numaid"}, buses_{"busid"}, devices_{"gpu dev"}, ranks_{"rank"}, nets_{"net dev"};
  std::set<std::string> hosts_;
};

/// Generation of a Broadcom switch that shows as two levels of bridges; 0: none.
int broadcom(const Pci& device, std::uint64_t level) {
  const std::uint64_t family = device.identity & 0xfffffffffffff000;
  if (family == 0x1000c0101000a000) return 4;
  return family == (0x1000c03010000000 | level * 0x1000) ? 5 : 0;
}

/// Its two levels as one, whose ports all have full rate.
void flatten(std::vector<Pci>& devices) {
  for (Pci& device : devices) {
    if (const int generation = broadcom(device, 0); generation != 0) {
      std::vector<Pci> below;
      for (Pci& child : device.children) {
        const bool part = !child.children.empty() && broadcom(child, 1) == generation;
        if (part)
          std::move(child.children.begin(), child.children.end(), std::back_inserter(below));
        else
          below.push_back(std::move(child));
      }
      device.children = std::move(below);
    }
    flatten(device.children);
  }
}

/// What is there, in the order of the tree.
struct Found {
  struct At {
    const Pci* device;
    Up up;
  };
  struct NetAt {
    const Net* net;
    const Pci* device;  ///< none: of a socket
    Up up;
  };
  std::vector<At> switches, gpus, nics, unclassed;
  std::vector<NetAt> nets;
  bool skeleton = true;
};

bool has_gpu_element(const std::vector<Pci>& devices) {
  return std::any_of(devices.begin(), devices.end(), [](const Pci& d) { return d.gpu || has_gpu_element(d.children); });
}
bool has_net_element(const std::vector<Pci>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const Pci& d) { return !d.nets.empty() || has_net_element(d.children); });
}

class Walk {
 public:
  Walk(XmlFile& xml, const std::vector<Cpu>& cpus) : xml_(xml) {
    bool nets = false;
    for (const Cpu& cpu : cpus) {
      out_.skeleton = out_.skeleton && !has_gpu_element(cpu.children);
      nets = nets || !cpu.nets.empty() || has_net_element(cpu.children);
    }
    nets_ = nets;
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      const Up up{false, static_cast<int>(i)};
      for (const Net& net : cpus[i].nets) out_.nets.push_back({&net, nullptr, up});
      for (const Pci& device : cpus[i].children) visit(device, up);
    }
  }
  Found take() { return std::move(out_); }

 private:
  bool is_gpu(const Pci& d) const { return out_.skeleton ? d.device_class == Class::gpu : d.gpu.has_value(); }
  bool is_nic(const Pci& d) const { return nets_ ? !d.nets.empty() : d.device_class == Class::nic; }
  bool used(const Pci& d) const {
    return is_gpu(d) || is_nic(d) ||
           std::any_of(d.children.begin(), d.children.end(), [&](const Pci& c) { return used(c); });
  }

  void visit(const Pci& device, Up up) {
    if (is_gpu(device)) {
      out_.gpus.push_back({&device, up});
    } else if (is_nic(device)) {
      if (!nets_) out_.nics.push_back({&device, up});
      for (const Net& net : device.nets) out_.nets.push_back({&net, &device, up});
    } else if (device.children.empty()) {
      unused(device, up);
    }
    if (device.children.empty() || !used(device)) return;
    Up below = up;
    if (!is_gpu(device) && !is_nic(device)) {
      below = {true, static_cast<int>(out_.switches.size())};
      out_.switches.push_back({&device, up});
    }
    for (const Pci& child : device.children) visit(child, below);
  }

  void unused(const Pci& device, Up up) {
    if (device.device_class == Class::unknown) out_.unclassed.push_back({&device, up});
    if (device.device_class == Class::gpu)
      xml_.warn("a GPU without <gpu> is left out", device.where, "others in this file have one: NCCL uses those");
    if (device.device_class == Class::nic)
      xml_.warn("a network device without <net> is left out", device.where,
                "others in this file have one: NCCL uses those");
  }

  XmlFile& xml_;
  bool nets_ = false;
  Found out_;
};

/// Of the GPUs in their final order.
Nvlinks nvlinks_of(XmlFile& xml, const std::vector<const Pci*>& gpus) {
  Nvlinks out;
  std::map<std::optional<std::uint64_t>, std::size_t> index;  // by bus id, as a number: NCCL's busIdToInt64
  for (std::size_t i = 0; i < gpus.size(); ++i) index[gpus[i]->order] = i;
  std::vector<std::int64_t> to_switch(gpus.size(), 0);
  out.counts.assign(gpus.size(), std::vector<int>(gpus.size(), 0));
  bool straight = false;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (const Nvlink& link : gpus[i]->gpu->nvlinks) {
      const auto target = index.find(bus_number(link.target));
      const std::uint64_t kind = link.target_class >> 8;
      if (link.target_class == 0x068001) {
        xml.warn("an NVLink to a processor is left out", link.where, "");
      } else if (kind == 0x0680 || link.target == hidden_device) {
        to_switch[i] += link.count;
      } else if (target == index.end()) {
        xml.warn("an NVLink to a device that this file does not have is left out", link.where,
                 "expected the busid of a GPU, or a tclass of 0x068000 for NVSwitches");
      } else if (target->second == i) {
        xml.warn("an NVLink of a GPU to itself is left out", link.where,
                 "virtual machines that hide the other end have such; NCCL finds no way over it");
      } else {
        out.counts[i][target->second] += static_cast<int>(link.count);
        straight = true;
      }
    }
  const auto [least, most] = std::minmax_element(to_switch.begin(), to_switch.end());
  if (*most > 0) {
    if (straight || *least != *most)
      xml.warn("GPUs have unlike NVLinks", gpus[static_cast<std::size_t>(least - to_switch.begin())]->where,
               "each counts with as many links to the NVSwitches as the one with fewest");
    out.shape = *least > 0 ? Nvlinks::Shape::to_switch : Nvlinks::Shape::none;
    out.links = static_cast<int>(*least);
    out.said = fmt::format("{} NVLinks to NVSwitches", *least);
    return out;
  }
  out.shape = straight ? Nvlinks::Shape::straight : Nvlinks::Shape::none;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      int &a = out.counts[i][j], &b = out.counts[j][i];
      if (a == b) continue;
      xml.warn("two GPUs list unlike numbers of NVLinks to each other", gpus[i]->where, "the smaller above 0 counts");
      a = b = a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
    }
  return out;
}

Attached attached(const Pci& device, Up up) { return {up, LinkKind::pcie, device.rate, device.said, {}}; }

void add_gpus(XmlFile& xml, const Found& found, ForeignNode& out) {
  std::vector<Found::At> gpus = found.gpus;
  std::sort(gpus.begin(), gpus.end(), [&](const Found::At& a, const Found::At& b) {
    return found.skeleton ? a.device->order < b.device->order : a.device->gpu->dev < b.device->gpu->dev;
  });
  std::vector<const Pci*> devices;
  std::set<std::string_view> models;
  out.gpu_where = gpus.front().device->where;
  for (const Found::At& at : gpus) {
    const Pci& device = *at.device;
    devices.push_back(&device);
    Attached one = attached(device, at.up);
    if (device.gpu && at.up.is_switch) one.c2c = device.gpu->c2c;
    if (device.gpu && !at.up.is_switch && device.gpu->c2c.value() > 0)
      one = {at.up, LinkKind::c2c, device.gpu->c2c, "<c2c>", {}};
    out.gpus.push_back(std::move(one));
    if (device.identity >> 48 == 0x10de) {
      const auto id = static_cast<unsigned>(device.identity >> 32 & 0xffff);
      models.insert(gpu_model_of(id));
      const bool is_new = std::ranges::find(out.unknown_gpus, id) == out.unknown_gpus.end();
      if (gpu_model_of(id).empty() && is_new) out.unknown_gpus.push_back(id);
    }
    if (!device.gpu) continue;
    if (device.gpu->gpudirect) out.gpudirect = out.gpudirect.value_or(true) && *device.gpu->gpudirect;
    const int sm = static_cast<int>(device.gpu->sm);
    if (out.compute_capability && *out.compute_capability != sm)
      xml.warn("GPUs of unlike compute capability", device.where, "the lowest counts, as in NCCL");
    out.compute_capability = std::min(out.compute_capability.value_or(sm), sm);
  }
  if (models.size() == 1) out.gpu_model = *models.begin();
  if (models.size() > 1) xml.warn("GPUs of unlike models", out.gpu_where, "all count as those of the other machine");
  if (!found.skeleton) out.nvlinks = nvlinks_of(xml, devices);
}

void add_nics(XmlFile& xml, const Found& found, ForeignNode& out) {
  std::vector<Found::At> nics = found.nics;
  std::sort(nics.begin(), nics.end(), [](const auto& a, const auto& b) { return a.device->order < b.device->order; });
  for (const Found::At& nic : nics) out.nics.push_back(attached(*nic.device, nic.up));
  std::vector<Found::NetAt> nets = found.nets;
  std::sort(nets.begin(), nets.end(), [](const auto& a, const auto& b) { return a.net->dev < b.net->dev; });
  std::vector<Bandwidth> rates;
  for (const Found::NetAt& net : nets) {
    rates.push_back(net.net->rate);
    if (net.device != nullptr)
      out.nics.push_back(attached(*net.device, net.up));
    else
      out.nics.push_back({net.up,
                          LinkKind::direct,
                          Bandwidth(nic_without_pci * 1e9),
                          "a NIC that is no PCI device, as NCCL counts it",
                          {}});
  }
  const std::vector<bool> unused = unused_nics(out, rates);
  std::set<const Pci*> adapters;
  for (std::size_t i = 0; i < nets.size(); ++i) {
    const Net& net = *nets[i].net;
    if (unused[i]) {
      xml.warn(fmt::format("NIC {} of {:g} Gb/s is left out",
                           net.name.empty() ? std::to_string(net.dev) : "'" + shown(net.name) + "'",
                           net.rate.value() / 125e6),
               net.where, "every GPU has a faster way to another one, and NCCL's search takes that");
      continue;
    }
    if (net.latency) out.nic_latency = std::max(out.nic_latency.value_or(Seconds()), *net.latency);
    if (net.gpudirect) out.gpudirect = out.gpudirect.value_or(true) && *net.gpudirect;
    if (net.collnet) out.collnet = out.collnet.value_or(true) && *net.collnet;
    if (nets[i].device != nullptr && !adapters.insert(nets[i].device).second)
      xml.warn("several <net> of one adapter: each is a NIC here", net.where,
               "as NCCL counts them; that they share the adapter's PCIe link is left out");
    if (out.nic_rate.value() > 0 && out.nic_rate != net.rate)
      xml.warn("NICs of unlike speed", net.where, "all count with the lowest");
    out.nic_rate = out.nic_rate.value() > 0 ? std::min(out.nic_rate, net.rate) : net.rate;
  }
  if (nets.empty()) return;
  leave_out(out, unused);
  out.nic_said = fmt::format("speed of its <net>, {:g} Mb/s", out.nic_rate.value() / 125e3);
}

void check_counts(XmlFile& xml, const Found& found, const Location& root) {
  if (found.gpus.empty()) {
    if (!found.unclassed.empty())
      xml.error(
          found.unclassed.front().device->where,
          fmt::format("{} PCI devices have no class, so none is known to be a GPU", found.unclassed.size()),
          "NCCL asks the machine itself for what is missing; expected the file that NCCL_TOPO_DUMP_FILE=FILE writes "
          "there, or a class (0x030200: a GPU, 0x020000: a NIC) for each");
    else
      xml.error(root, "there is no GPU in this file", "expected PCI devices with <gpu>, or of class 0x0302");
  } else if (!found.unclassed.empty()) {
    xml.warn("a PCI device without a class is left out", found.unclassed.front().device->where,
             "NCCL asks the machine itself for what is missing");
  }
  for (const auto& [count, what] :
       {std::pair(found.gpus.size(), "GPUs"), std::pair(found.switches.size(), "PCIe switches"),
        std::pair(found.nics.size() + found.nets.size(), "NICs")})
    if (count > most_devices)
      xml.error(root, fmt::format("{} {}", count, what), fmt::format("up to {} are read", most_devices));
}

}  // namespace

Result<ForeignNode> read_nccl_topology(std::string_view text, const std::string& file) {
  auto parsed = XmlFile::parse(text, file, "system", "NCCL's topology (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE)");
  if (!parsed) return parsed.errors();
  XmlFile& xml = **parsed;
  std::vector<Cpu> cpus = Reading(xml).system();
  std::stable_sort(cpus.begin(), cpus.end(), [](const Cpu& a, const Cpu& b) { return a.numa < b.numa; });
  for (Cpu& cpu : cpus) flatten(cpu.children);
  const Found found = Walk(xml, cpus).take();
  const Location root = xml.root().place();
  check_counts(xml, found, root);
  if (!xml.errors().empty()) return xml.errors();

  ForeignNode out;
  out.file = shown(std::filesystem::path(file).filename().string());
  out.format = "NCCL topology XML";
  out.where = root;
  out.sockets = static_cast<int>(cpus.size());
  out.cpu = cpus.front().family;
  out.cpu_said = cpus.front().said;
  for (const Found::At& at : found.switches) out.switches.push_back(attached(*at.device, at.up));
  add_gpus(xml, found, out);
  add_nics(xml, found, out);
  out.warnings = xml.warnings();
  return out;
}

}  // namespace collcast::exchange
