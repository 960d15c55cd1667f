#include "likeness.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <type_traits>
#include <variant>

#include "collcast/base/words.hpp"
#include "collcast/nccl/communicator.hpp"
#include "derive_machine.hpp"

namespace collcast::derive {

namespace {

/// Cards have no NVLink unless it is said; modules (SXM) do.
GpuLinks links_of_form(const GpuName& gpu) {
  if (gpu.form == "pci") return GpuLinks::pcie;
  return gpu.form == "sxm" ? GpuLinks::nvlink : GpuLinks::unsaid;
}

/// Ada and the workstation cards of Blackwell came without any NVLink [their data sheets].
bool never_has_nvlink(const Known& known) {
  constexpr std::array without{89, 120};
  return std::find(without.begin(), without.end(), known.capability) != without.end();
}

bool compatible(GpuLinks said, GpuLinks has) {
  if (said == GpuLinks::unsaid || said == has) return true;
  return said == GpuLinks::nvlink && has != GpuLinks::pcie;
}

/// Cards have bridges to their neighbours, where modules have NVSwitches or NVLinks on their board.
bool joined_by_bridges(const GpuName& gpu, const NvlinkWords& said) {
  if (said.links != GpuLinks::nvlink && said.links != GpuLinks::straight) return false;
  if (gpu.form == "sxm") return false;
  const std::optional<BridgedCard> card = bridged_card(gpu);
  return said.bridges || gpu.form == "pci" || gpu.chip.starts_with("rtx") || (card && !card->has_modules);
}

}  // namespace

Known known_of(const MeasuredFacts& facts, int per_node) {
  Known out;
  out.gpu = parse_gpu(facts.gpu);
  out.capability = nccl::compute_capability(facts.gpu);
  out.nvlink = parse_nvlink(facts.nvlink);
  if (out.nvlink.links == GpuLinks::unsaid && lower(facts.gpu).find("no nvlink") != std::string::npos)
    out.nvlink.links = GpuLinks::pcie;
  if (out.nvlink.links == GpuLinks::unsaid) out.nvlink.links = links_of_form(out.gpu);
  if (out.nvlink.pcie_generation == 0) out.nvlink.pcie_generation = parse_nvlink(facts.gpu).pcie_generation;
  out.bridged = joined_by_bridges(out.gpu, out.nvlink);
  if (out.bridged) out.nvlink.links = GpuLinks::pcie;
  out.nics = parse_nics(facts.nics);
  out.gpus = facts.nvlink_domain > 0 ? facts.nvlink_domain : facts.gpus_per_node;
  out.per_node = per_node;
  out.several_nodes = facts.nodes > 1;
  return out;
}

bool is_kind(const TopologySpec& spec, const std::string& name, DeviceKind kind) {
  const DeviceGroup* group = group_of(spec, name);
  return group != nullptr && group->kind == kind;
}

GpuLinks links_of(const TopologySpec& spec) {
  GpuLinks out = GpuLinks::pcie;
  for (const LinkGroup& link : spec.links) {
    if (link.kind != LinkKind::nvlink) continue;
    const bool to_switch =
        is_kind(spec, link.to, DeviceKind::nvswitch) || is_kind(spec, link.from, DeviceKind::nvswitch);
    out = to_switch ? GpuLinks::switched : GpuLinks::straight;
  }
  return out;
}

Bandwidth network_rate(const TopologySpec& spec) { return collcast::network_rate(spec.network); }

std::string network_kind(const TopologySpec& spec) { return parse_nics(spec.title).kind; }

bool near(double a, double b) { return b > 0 && std::abs(a / b - 1) < 0.1; }
bool near(Bandwidth a, Bandwidth b) { return near(a.value(), b.value()); }

int gpu_likeness(const Known& known, const TopologySpec& spec) {
  const GpuName of_spec = parse_gpu(spec.gpu.model);
  if (same_gpu(known.gpu, of_spec)) return 3;
  if (!known.gpu.chip.empty() && known.gpu.chip == of_spec.chip) return 2;
  const auto capability = nccl::compute_capability(spec.gpu.model);
  if (!known.capability || !capability) return 0;
  return *known.capability / 10 == *capability / 10 ? 1 : 0;
}

Ports joint_ports(const NicWords& nics, int gpus) {
  if (gpus == 0 || nics.count <= gpus || nics.count % gpus != 0) return {nics.count, nics.rate};
  const int together = nics.count / gpus;
  Ports out{gpus, nics.rate};
  if (out.rate) out.rate = *out.rate * static_cast<double>(together);
  return out;
}

namespace {

/// Larger is liker, in this order; nothing where it cannot be made into the table's machine.
using Likeness = std::array<int, 7>;
std::optional<Likeness> likeness(const Known& known, const TopologySpec& spec) {
  if (spec.teaching || spec.gpu.model.empty()) return std::nullopt;
  const GpuLinks has = links_of(spec);
  if (!compatible(known.nvlink.links, has)) return std::nullopt;
  const bool has_nvlink =
      known.bridged || (known.nvlink.links != GpuLinks::pcie && known.nvlink.links != GpuLinks::unsaid);
  if (has_nvlink && never_has_nvlink(known)) return std::nullopt;
  const int gpu = gpu_likeness(known, spec);
  if (gpu < 3 && !known.capability) return std::nullopt;
  // Of a GPU that no file has, nothing says NVLink: then it is a card.
  if (gpu < 2 && known.nvlink.links == GpuLinks::unsaid && has != GpuLinks::pcie) return std::nullopt;
  const int size = endpoints_of(spec);
  const int wanted = known.gpus > 0 ? known.gpus : known.per_node;
  const int distance =
      known.capability ? std::abs(*known.capability - nccl::compute_capability(spec.gpu.model).value_or(0)) : 0;
  int network = 0;
  if (known.several_nodes && !std::holds_alternative<std::monostate>(spec.network)) {
    const Ports ports = joint_ports(known.nics, size);
    if (ports.rate && ports.count > 0 &&
        near(network_rate(spec).value() * network_ports(spec), ports.rate->value() * ports.count))
      network += 2;
    if (ports.rate && near(network_rate(spec), *ports.rate)) network += 1;
    if (!known.nics.kind.empty() && network_kind(spec) == known.nics.kind) network += 2;
    if (!ports.rate && ports.count > 0 && ports.count == network_ports(spec)) network += 1;
    if (!known.nics.any()) network += 1;
  }
  const int count = known.gpus == 0 ? (size >= wanted ? 1 : 0) : size == wanted ? 2 : size > wanted ? 1 : 0;
  const int switched = known.nvlink.links == GpuLinks::nvlink && has == GpuLinks::switched ? 1 : 0;
  return Likeness{gpu >= 2 ? 1 : 0, count == 2 ? 1 : 0, -distance, network, gpu, count, switched};
}

/// Of a NIC's link to the network.
Seconds network_latency(const TopologySpec& spec) {
  return std::visit(
      [](const auto& network) {
        if constexpr (std::is_same_v<std::decay_t<decltype(network)>, std::monostate>)
          return Seconds{};
        else
          return network.latency;
      },
      spec.network);
}

bool is_vendors(const TopologySpec& spec) { return spec.title.starts_with("NVIDIA"); }

/// Of machines that are equally likely the vendor's own system, else the one whose network is neither the quickest nor
/// the slowest: the middle of their latencies, and of as many on both sides the quicker.
const TopologySpec& most_usual(std::vector<const TopologySpec*> equals) {
  const auto vendors = std::find_if(equals.begin(), equals.end(), [](const TopologySpec* s) { return is_vendors(*s); });
  if (vendors != equals.end()) return **vendors;
  std::stable_sort(equals.begin(), equals.end(), [](const TopologySpec* a, const TopologySpec* b) {
    return network_latency(*a) < network_latency(*b);
  });
  return *equals[(equals.size() - 1) / 2];
}

}  // namespace

std::optional<Likest> likest_of(const std::vector<TopologySpec>& all, const Known& known) {
  Likeness most{};
  std::vector<const TopologySpec*> likest;
  for (const TopologySpec& spec : all) {
    const std::optional<Likeness> one = known.gpu.chip.empty() ? std::nullopt : likeness(known, spec);
    if (!one || (!likest.empty() && *one < most)) continue;
    if (likest.empty() || *one > most) likest.clear();
    most = *one;
    likest.push_back(&spec);
  }
  if (likest.empty()) return std::nullopt;
  Likest out{&most_usual(likest), {}};
  for (const TopologySpec* one : likest)
    if (one != out.machine) out.equals.push_back(one->name);
  return out;
}

}  // namespace collcast::derive
