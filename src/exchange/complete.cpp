// ForeignNode + a machine that is known -> TopologySpec.
//
// Wiring, PCIe rates, NVLinks, line rates and processors are the file's where it says them. GPU figures, latencies, the
// rate between sockets, the network between nodes, and NVLinks of a file that has none to say, are the other machine's.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "collcast/exchange/machine.hpp"
#include "collcast/nccl/communicator.hpp"
#include "collcast/nccl/links.hpp"
#include "collcast/topology/wiring.hpp"

namespace collcast::exchange {

namespace {

const DeviceGroup* group_named(const TopologySpec& spec, const std::string& name) {
  for (const DeviceGroup& group : spec.devices)
    if (group.name == name) return &group;
  return nullptr;
}

const DeviceGroup* group_of_kind(const TopologySpec& spec, DeviceKind kind) {
  for (const DeviceGroup& group : spec.devices)
    if (group.kind == kind) return &group;
  return nullptr;
}

const LinkGroup* link_of_kind(const TopologySpec& spec, LinkKind kind) {
  for (const LinkGroup& link : spec.links)
    if (link.kind == kind) return &link;
  return nullptr;
}

std::string in_bits(Bandwidth rate) { return fmt::format("{:g} Gb/s", rate.value() / 125e6); }

class Completion {
 public:
  Completion(const ForeignNode& node, const TopologySpec& like, Bandwidth nic_rate)
      : node_(node), like_(like), nic_rate_(nic_rate) {}

  Result<ImportedMachine> run(const std::string& name) {
    out_.warnings = node_.warnings;
    spec().name = name;
    spec().file = name;
    check_gpu();
    if (!errors_.empty()) return errors_;
    spec().gpu = like_.gpu;
    spec().title =
        fmt::format("{}x {}, as {} says, the rest as {}", node_.gpus.size(), like_.gpu.model, node_.file, like_.name);
    spec().sources = {fmt::format("{}: {}", node_.format, node_.file),
                      fmt::format("machine {}: {}", like_.name, like_.title)};
    devices();
    nvlinks();
    pcie("gpu", node_.gpus);
    c2c();
    pcie("nic", node_.nics);
    pcie("pcie", node_.switches);
    if (pcie_unsaid_) remark(fmt::format("PCIe rates: {}.", like_.name));
    sockets();
    network();
    host();
    if (!errors_.empty()) return errors_;
    remark(fmt::format("GPU figures and all latencies: {}.", like_.name));
    std::vector<std::string> head{fmt::format("Imported from {} ({}).", node_.file, node_.format), ""};
    out_.remarks.insert(out_.remarks.begin(), head.begin(), head.end());
    return std::move(out_);
  }

 private:
  TopologySpec& spec() { return out_.spec; }
  void error(const Location& where, std::string message, std::string hint) {
    errors_.push_back({where, std::move(message), std::move(hint)});
  }
  void warn(const Location& where, std::string message, std::string hint) {
    out_.warnings.push_back({where, std::move(message), std::move(hint)});
  }
  void remark(std::string text) { out_.remarks.push_back(std::move(text)); }

  void check_gpu() {
    const auto known = nccl::compute_capability(like_.gpu.model);
    if (like_.gpu.model.empty() || like_.teaching || group_of_kind(like_, DeviceKind::gpu) == nullptr)
      return error({}, fmt::format("{} has no GPUs whose figures could be taken", like_.name),
                   "expected --like of a machine with NVIDIA GPUs");
    const auto asked = node_.compute_capability  ? node_.compute_capability
                       : node_.gpu_model.empty() ? std::nullopt
                                                 : nccl::compute_capability(node_.gpu_model);
    capability_ = asked.value_or(known.value_or(0));
    if (asked && known && *asked != *known)
      return error(node_.gpu_where,
                   fmt::format("the GPUs of {} are of compute capability {}{}, those of {} ({}) of {}", node_.file,
                               *asked, node_.gpu_model.empty() ? "" : fmt::format(" ({})", node_.gpu_model), like_.name,
                               like_.gpu.model, *known),
                   "expected --like of a machine with the same GPUs");
    if (!node_.gpu_model.empty() && node_.gpu_model != like_.gpu.model)
      warn(node_.gpu_where,
           fmt::format("the GPU is {} by its PCI id, {} has {}", node_.gpu_model, like_.name, like_.gpu.model),
           "memory and compute rates are the latter's; expected --like of a machine with the former, if there is one");
    for (const unsigned id : node_.unknown_gpus)
      warn(node_.gpu_where,
           fmt::format("no GPU of PCI id 0x{:04x} is known: it counts as {}'s {}", id, like_.name, like_.gpu.model),
           "memory and compute rates are the latter's; expected --like of a machine with the same GPUs");
  }

  void devices() {
    const auto add = [&](const char* name, DeviceKind kind, std::size_t count) {
      if (count > 0) spec().devices.push_back({name, kind, static_cast<int>(count), {}});
    };
    add("gpu", DeviceKind::gpu, node_.gpus.size());
    const bool like_has_switch = group_of_kind(like_, DeviceKind::nvswitch) != nullptr;
    const bool has_switch = node_.nvlinks.shape == Nvlinks::Shape::to_switch ||
                            (node_.nvlinks.shape == Nvlinks::Shape::unsaid && like_has_switch);
    add("nvswitch", DeviceKind::nvswitch, has_switch ? 1 : 0);
    add("pcie", DeviceKind::pcie_switch, node_.switches.size());
    add("cpu", DeviceKind::cpu, static_cast<std::size_t>(node_.sockets));
    add("nic", DeviceKind::nic, node_.nics.size());
  }

  /// Of the other machine's first link of a kind; without one what is asked for cannot be said.
  Seconds latency(LinkKind kind) {
    if (const LinkGroup* link = link_of_kind(like_, kind)) return link->latency;
    if (kind == LinkKind::direct || kind == LinkKind::c2c) return latency(LinkKind::pcie);
    if (missing_.insert(kind).second)
      error({},
            fmt::format("{} has no link of kind {}, whose latency {} needs", like_.name, to_string(kind), node_.file),
            "expected --like of a machine that has one");
    return {};
  }

  void link(std::string from, std::string to, std::vector<std::pair<int, int>> pairs, LinkKind kind, Bandwidth rate,
            std::string source) {
    LinkGroup out;
    out.from = std::move(from);
    out.to = std::move(to);
    out.kind = kind;
    out.bandwidth = rate;
    out.latency = latency(kind);
    out.source = std::move(source);
    std::sort(pairs.begin(), pairs.end());
    out.pairs = std::move(pairs);
    out.wiring = Wiring::pairs;
    simplify(out);
    spec().links.push_back(std::move(out));
  }

  /// A list of pairs as the regular wiring that it is.
  void simplify(LinkGroup& group) {
    const int from = group_named(spec(), group.from)->count, to = group_named(spec(), group.to)->count;
    const bool within = group.from == group.to;
    for (const Wiring wiring : {Wiring::one_to_one, Wiring::all, Wiring::spread}) {
      const bool fits = wiring == Wiring::one_to_one ? !within && from == to
                        : wiring == Wiring::spread   ? !within && from >= to
                                                     : !within || from > 1;
      LinkGroup regular = group;
      regular.wiring = wiring;
      if (!fits || wired_pairs(regular, from, to) != group.pairs) continue;
      group.wiring = wiring;
      group.pairs.clear();
      return;
    }
  }

  void nvlinks() {
    using Shape = Nvlinks::Shape;
    const auto gpus = static_cast<int>(node_.gpus.size());
    const Bandwidth one = nccl::nvlink_speed(capability_).data_sheet;
    if (node_.nvlinks.shape == Shape::unsaid) return nvlinks_of_like();
    check_nvlinks_of_a_gpu();
    if (node_.nvlinks.shape == Shape::to_switch) {
      std::vector<std::pair<int, int>> pairs;
      for (int i = 0; i < gpus; ++i) pairs.emplace_back(i, 0);
      return link("gpu", "nvswitch", pairs, LinkKind::nvlink, one * static_cast<double>(node_.nvlinks.links),
                  fmt::format("{}: {}, at the data sheet's rate of one. Latency: {}", node_.file, node_.nvlinks.said,
                              like_.name));
    }
    std::map<int, std::vector<std::pair<int, int>>, std::greater<>> by_count;
    for (int i = 0; i < gpus; ++i)
      for (int j = i + 1; j < gpus; ++j)
        if (const int count = node_.nvlinks.counts[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]; count > 0)
          by_count[count].emplace_back(i, j);
    for (const auto& [count, pairs] : by_count)
      link("gpu", "gpu", pairs, LinkKind::nvlink, one * static_cast<double>(count),
           fmt::format("{}: {} NVLink{} each, at the data sheet's rate of one. Latency: {}", node_.file, count,
                       count == 1 ? "" : "s", like_.name));
  }

  /// To NVSwitches, or to all other GPUs together.
  void check_nvlinks_of_a_gpu() {
    int links = node_.nvlinks.shape == Nvlinks::Shape::to_switch ? node_.nvlinks.links : 0;
    if (node_.nvlinks.shape == Nvlinks::Shape::straight)
      for (const std::vector<int>& to : node_.nvlinks.counts)
        links = std::max(links, std::accumulate(to.begin(), to.end(), 0));
    const int most = capability_ >= 90 ? 18 : capability_ >= 80 ? 12 : 6;
    if (links > most)
      warn(node_.gpu_where, fmt::format("{} NVLinks of a GPU, where {} has {} at most", links, like_.gpu.model, most),
           "is --like a machine with these GPUs?");
  }

  void nvlinks_of_like() {
    const DeviceGroup& gpus = *group_of_kind(like_, DeviceKind::gpu);
    for (const LinkGroup& one : like_.links) {
      if (one.kind != LinkKind::nvlink) continue;
      const bool straight = one.from == gpus.name && one.to == gpus.name;
      if (straight && gpus.count != static_cast<int>(node_.gpus.size()))
        return error(node_.gpu_where,
                     fmt::format("{} says nothing of NVLinks, and those of {} are of {} GPUs, not {}", node_.file,
                                 like_.name, gpus.count, node_.gpus.size()),
                     "expected --like of a machine with as many GPUs, or a full dump (NCCL_TOPO_DUMP_FILE)");
      LinkGroup copy = one;
      copy.from = "gpu";
      copy.to = straight ? "gpu" : "nvswitch";
      copy.where = {};
      copy.source = fmt::format("{} says nothing of NVLinks; as {}: {}", node_.file, like_.name, one.source);
      spec().links.push_back(std::move(copy));
    }
    remark(fmt::format("NVLinks: {}.", like_.name));
  }

  void pcie(const std::string& from, const std::vector<Attached>& devices) {
    struct Key {
      bool to_switch;
      LinkKind kind;
      double rate;
      std::string said;
      auto operator<=>(const Key&) const = default;
    };
    std::map<Key, std::vector<std::pair<int, int>>> groups;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const Attached& one = devices[i];
      groups[{one.up.is_switch, one.kind, one.rate.value(), one.said}].emplace_back(static_cast<int>(i), one.up.index);
    }
    for (const auto& [key, pairs] : groups) {
      const bool stated = key.rate > 0;
      pcie_unsaid_ = pcie_unsaid_ || !stated;
      const Bandwidth rate = stated ? Bandwidth(key.rate) : pcie_of_like(from);
      link(from, key.to_switch ? "pcie" : "cpu", pairs, key.kind, rate,
           stated ? fmt::format("{}: {}. Latency: {}", node_.file, key.said, like_.name)
                  : fmt::format("{}: the wiring. Rate and latency: {}", node_.file, like_.name));
    }
  }

  /// Of GPUs that have PCIe too.
  void c2c() {
    std::map<double, std::vector<std::pair<int, int>>> by_rate;
    for (std::size_t i = 0; i < node_.gpus.size(); ++i) {
      const Attached& gpu = node_.gpus[i];
      Up up = gpu.up;
      while (up.is_switch) up = node_.switches[static_cast<std::size_t>(up.index)].up;
      if (gpu.c2c.value() > 0) by_rate[gpu.c2c.value()].emplace_back(static_cast<int>(i), up.index);
    }
    for (const auto& [rate, pairs] : by_rate)
      link("gpu", "cpu", pairs, LinkKind::c2c, Bandwidth(rate),
           fmt::format("{}: <c2c>. Latency: {}", node_.file, like_.name));
  }

  /// Of the other machine's GPUs, NICs or switches, whichever has PCIe.
  Bandwidth pcie_of_like(const std::string& from) {
    const DeviceKind kind = from == "gpu" ? DeviceKind::gpu : from == "nic" ? DeviceKind::nic : DeviceKind::pcie_switch;
    const LinkGroup* any = nullptr;
    for (const LinkGroup& one : like_.links) {
      if (one.kind != LinkKind::pcie) continue;
      if (any == nullptr) any = &one;
      const DeviceGroup* group = group_named(like_, one.from);
      if (group != nullptr && group->kind == kind) return one.bandwidth;
    }
    return any == nullptr ? Bandwidth(1) : any->bandwidth;  // latency() has said that there is none
  }

  void sockets() {
    if (node_.sockets < 2) return;
    const LinkGroup* socket = link_of_kind(like_, LinkKind::socket);
    const DeviceGroup* theirs = group_of_kind(like_, DeviceKind::cpu);
    if (socket == nullptr && theirs != nullptr && theirs->count > 1)
      return remark(fmt::format("Sockets are not joined, as in {}.", like_.name));
    std::vector<std::pair<int, int>> pairs;
    for (int i = 0; i < node_.sockets; ++i)
      for (int j = i + 1; j < node_.sockets; ++j) pairs.emplace_back(i, j);
    link("cpu", "cpu", pairs, LinkKind::socket, socket == nullptr ? Bandwidth(1) : socket->bandwidth,
         socket == nullptr ? "" : fmt::format("as {}: {}", like_.name, socket->source));
    remark(fmt::format("Rate between sockets: {}.", like_.name));
  }

  void network() {
    if (node_.nics.empty()) {
      spec().max_nodes = 1;
      return remark("There is no NIC in it: one node.");
    }
    const Bandwidth theirs = network_rate(like_.network);
    const DeviceGroup* nics = network_group(like_);
    if (theirs.value() <= 0 || nics == nullptr || nics->kind != DeviceKind::nic) {
      warn({}, fmt::format("{} has no network that NICs attach to: one node", like_.name),
           "expected --like of a machine with NICs");
      spec().max_nodes = 1;
      return;
    }
    const auto count = static_cast<double>(node_.nics.size());
    const bool ports = node_.nics.size() > static_cast<std::size_t>(nics->count);
    Bandwidth rate = ports ? theirs * (nics->count / count) : theirs;
    std::string said = fmt::format("{}: its {} of {}", like_.name,
                                   nics->count == 1 ? "NIC" : fmt::format("{} NICs", nics->count), in_bits(theirs));
    if (ports) said += fmt::format(" are the {} of {}", node_.nics.size(), node_.file);
    if (node_.nic_rate.value() > 0) {
      rate = node_.nic_rate;
      said = fmt::format("{}: {}", node_.file, node_.nic_said);
    }
    if (nic_rate_.value() > 0) {
      rate = nic_rate_;
      said = "--nic-rate";
    } else if (node_.nic_rate.value() <= 0) {
      warn(node_.where, fmt::format("the rate of a NIC is not said: {} of {}", in_bits(rate), said),
           "--nic-rate 100Gb/s says it");
    }
    // A grid's nodes are the product of its dimensions.
    spec().default_nodes = like_.default_nodes;
    spec().max_nodes = like_.max_nodes;
    spec().network = like_.network;
    set_network_rate(spec().network, rate);
    spec().network_devices = "nic";
    spec().network_source =
        fmt::format("Rate of a NIC: {}. Shape and latency as {}: {}", said, like_.name, like_.network_source);
    remark(fmt::format("Network between nodes, its shape and latencies: {}.", like_.name));
    spec().plugin = like_.plugin;
    if (node_.nic_latency) spec().plugin.latency = *node_.nic_latency;
    if (node_.gpudirect) spec().plugin.gpudirect = *node_.gpudirect;
    if (node_.collnet) spec().plugin.collnet = *node_.collnet && !spec().plugin.sockets;
  }

  void host() {
    if (node_.cpu != CpuFamily::unknown) {
      spec().host = {node_.cpu, fmt::format("{}: {}", node_.file, node_.cpu_said)};
    } else if (like_.host.cpu != CpuFamily::unknown) {
      spec().host = {like_.host.cpu, fmt::format("as {}: {}", like_.name, like_.host.source)};
      remark(fmt::format("Processors: {}.", like_.name));
    }
  }

  const ForeignNode& node_;
  const TopologySpec& like_;
  const Bandwidth nic_rate_;
  int capability_ = 0;
  bool pcie_unsaid_ = false;
  ImportedMachine out_;
  Diagnostics errors_;
  std::set<LinkKind> missing_;
};

}  // namespace

Result<ImportedMachine> complete(const ForeignNode& node, const TopologySpec& like, const std::string& name,
                                 Bandwidth nic_rate) {
  return Completion(node, like, nic_rate).run(name);
}

}  // namespace collcast::exchange
