#include "derive_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "collcast/base/words.hpp"
#include "collcast/nccl/communicator.hpp"
#include "collcast/topology/fabric.hpp"
#include "likeness.hpp"
#include "lines.hpp"

namespace collcast {

namespace derive {
namespace {

std::string gb(Bandwidth rate) { return fmt::format("{:.4g} Gb/s", rate.value() * 8 / 1e9); }

/// What a described node has.
std::string_view text_of(GpuLinks links) {
  if (links == GpuLinks::pcie) return "PCIe";
  return links == GpuLinks::switched ? "NVSwitch" : "NVLink without NVSwitch";
}

/// A machine on its way from the likest to the table's.
class Making {
 public:
  Making(const std::vector<TopologySpec>& all, const TopologySpec& likest, const MeasuredFacts& facts, Known known)
      : all_(all), facts_(facts), known_(std::move(known)), network_of_(&likest) {
    made_.spec = likest;
    made_.derivation.base = likest.name;
    name_ = likest.name;
  }

  DerivedMachine take() && {
    made_.spec.name = name_;
    if (!made_.derivation.changed.empty()) {
      made_.spec.systems.clear();
      made_.spec.nccl_versions.clear();
      made_.spec.title = "derived from " + made_.derivation.base;
    }
    return std::move(made_);
  }

  void set_gpu() {
    TopologySpec& spec = made_.spec;
    use("gpu", facts_.gpu);
    like_ = gpu_likeness(known_, spec);
    if (like_ == 3) return;
    change("gpu", fmt::format("GPU '{}' instead of {}", printable(facts_.gpu), spec.gpu.model),
           known_.gpu.chip + known_.gpu.memory);
    const auto before = nccl::compute_capability(spec.gpu.model);
    spec.gpu.model = printable(facts_.gpu);
    if (!known_.capability) return;
    const int generation = *known_.capability >= 90 ? 5 : *known_.capability >= 80 ? 4 : 3;
    // C2C joins modules with a Grace, whose names begin so.
    if (!known_.gpu.chip.starts_with("gh") && !known_.gpu.chip.starts_with("gb"))
      for (LinkGroup& link : spec.links)
        if (link.kind == LinkKind::c2c) {
          link.kind = LinkKind::pcie;
          link.bandwidth = *pcie_rate(generation);
        }
    if (like_ == 2 || !before || *before / 10 == *known_.capability / 10) return;
    // Another generation's slots, as that of its data sheets.
    if (known_.nvlink.pcie_generation == 0) known_.nvlink.pcie_generation = generation;
  }

  void set_count() {
    const int size = endpoints_of(made_.spec);
    if (known_.gpus > 0) use("gpus_per_node", fmt::format("{}", known_.gpus));
    const int wanted = std::max(known_.gpus, known_.per_node);
    if (known_.gpus == 0 && wanted <= size)
      return assume(fmt::format("gpus_per_node ({} has {})", made_.derivation.base, size));
    if (wanted == size) return;
    // A part of a larger host is a part of it: a virtual machine with two of eight GPUs, a tray of a rack.
    const bool part = wanted < size && links_of(made_.spec) != GpuLinks::straight && as_many_nics_a_gpu(wanted, size);
    if (part) return;
    resize(wanted);
    change("gpus_per_node", fmt::format("{} GPUs instead of {}", wanted, size), fmt::format("{}gpus", wanted));
  }

  void set_links() {
    TopologySpec& spec = made_.spec;
    const NvlinkWords& said = known_.nvlink;
    const NvlinkWords words = parse_nvlink(facts_.nvlink);
    if (words.links != GpuLinks::unsaid || words.pcie_generation > 0) use("nvlink", facts_.nvlink);
    if (words.links == GpuLinks::unsaid && !facts_.nvlink.empty())
      assume(fmt::format("what joins a node's GPUs where nvlink is '{}' (taken: {})", printable(facts_.nvlink),
                         text_of(links_of(spec))));
    if (const auto rate = pcie_rate(said.pcie_generation)) {
      const Bandwidth before = rate_of(DeviceKind::gpu, LinkKind::pcie);
      if (before.value() > 0 && !near(before, *rate)) {
        for (LinkGroup& link : spec.links)
          if (link.kind == LinkKind::pcie && near(link.bandwidth, before)) link.bandwidth = *rate;
        set_host(said.pcie_generation);
        change("nvlink", fmt::format("PCI Express {}.0", said.pcie_generation),
               fmt::format("pcie{}", said.pcie_generation));
      }
    }
    const GpuLinks has = links_of(spec);
    if (has == GpuLinks::pcie) return;
    const double before = nvlink_of_gpu();
    const double wanted = wanted_nvlink();
    if (wanted > 0 && before > 0 && !near(before, wanted)) {
      for (LinkGroup& link : spec.links)
        if (link.kind == LinkKind::nvlink) link.bandwidth = link.bandwidth * (wanted / before);
      const double most = most_nvlink();
      const std::string beyond =
          wanted > most * 1.01 ? fmt::format(", where a '{}' has {:.4g} at most", printable(facts_.gpu), most / 1e9)
                               : "";
      change("nvlink",
             fmt::format("NVLink of {:.4g} GB/s per GPU instead of {:.4g}{}", wanted / 1e9, before / 1e9, beyond),
             fmt::format("nvlink{:.4g}", wanted / 1e9));
    }
    if (wanted <= 0) assume("the rate of NVLink");
  }

  /// Neighbours two by two, or as many as is said; others reach each other by PCIe.
  void set_bridges() {
    if (!known_.bridged) return;
    TopologySpec& spec = made_.spec;
    const NvlinkWords& said = known_.nvlink;
    const std::optional<BridgedCard> card = bridged_card(known_.gpu);
    const int size = endpoints_of(spec);
    const int together = std::min(said.together > 1 ? said.together : 2, size);
    if (together < 2) return;
    const std::optional<Bandwidth> link_rate = card ? Bandwidth(card->link_rate) : nvlink_rate(said.generation);
    const int links = said.count > 0 ? said.count : card ? card->links : 0;
    Bandwidth of_gpu = said.per_gpu ? *said.per_gpu : link_rate ? *link_rate * links : Bandwidth();
    if (!said.per_gpu && said.per_pair) of_gpu = of_gpu * static_cast<double>(together - 1);
    if (of_gpu.value() <= 0)
      return assume(fmt::format("what bridges '{}' has (none are known here: all by PCIe)", printable(facts_.gpu)));
    LinkGroup link;
    link.from = link.to = gpus_of(spec)->name;
    link.wiring = Wiring::pairs;
    for (int a = 0; a < size; ++a)
      for (int b = a + 1; b < size && b / together == a / together; ++b) link.pairs.emplace_back(a, b);
    link.kind = LinkKind::nvlink;
    link.bandwidth = of_gpu / static_cast<double>(together - 1);
    link.latency = Seconds(1e-6);  // as of straight NVLinks in the machines' files
    spec.links.push_back(std::move(link));
    const std::string each = together == 2 ? "two by two" : fmt::format("{} by {}", together, together);
    const double rate = of_gpu.value() / 1e9;
    change("nvlink", fmt::format("bridges of NVLink, {:.4g} GB/s per GPU, {}", rate, each),
           fmt::format("bridges{:.4g}x{}", rate, together));
    if (!said.per_gpu && said.count == 0)
      assume(
          fmt::format("the rate of NVLink's bridges (taken: the card's data sheet, {:.4g} GB/s per direction)", rate));
    if (said.together == 0 && size > 2) assume("which GPUs bridges join (taken: two by two, others by PCIe)");
  }

  void set_network() {
    if (!known_.several_nodes) return;
    TopologySpec& spec = made_.spec;
    const int size = endpoints_of(spec);
    const bool has_network = !std::holds_alternative<std::monostate>(spec.network);
    const Bandwidth rate_before = network_rate(spec);
    if (!known_.nics.any()) {
      if (!has_network) {
        borrow_network({}, Bandwidth(), fmt::format("the network of {}", made_.derivation.base));
        widen_slots(network_rate(spec));
      }
      const std::string what =
          facts_.nics.empty() ? "nics_per_node"
                              : fmt::format("what joins nodes where nics_per_node is '{}'", printable(facts_.nics));
      assume(fmt::format("{} (taken: {} of {})", what, network_ports(made_.spec), gb(network_rate(made_.spec))));
      return assume_plugin();
    }
    use("nics_per_node", facts_.nics);
    const int of = facts_.gpus_per_node > 0 ? std::min(facts_.gpus_per_node, size) : size;
    Ports ports = joint_ports(known_.nics, of);
    if (ports.count > 0) ports.count = ports.count * std::max(1, size / of);
    if (ports.count == 0)
      assume(fmt::format("the number of NICs ({} has {})", made_.derivation.base, network_ports(spec)));
    const std::string kind = known_.nics.kind;
    const bool other_kind = !kind.empty() && kind != network_kind(spec);
    const Bandwidth rate = ports.rate ? *ports.rate : network_rate(spec);
    if (!has_network || other_kind) borrow_network(kind, rate, kind);
    if (!ports.rate)
      assume(fmt::format("the rate of a NIC (taken: {} of {})", gb(network_rate(spec)), network_of_->name));
    if (kind.empty()) {
      const std::string taken = network_kind(*network_of_);
      assume(fmt::format("a kind of NICs that is known here (taken: {} of {})", taken.empty() ? "that" : taken,
                         network_of_->name));
      assume_plugin();
    }
    if (ports.rate && !near(network_rate(spec), rate)) {
      change("nics_per_node", fmt::format("NICs of {} instead of {}", gb(rate), gb(network_rate(spec))),
             fmt::format("{:.4g}g", rate.value() * 8 / 1e9));
      set_network_rate(spec.network, rate);
    }
    // Whether it was set, or came with a borrowed network.
    if (!near(network_rate(spec), rate_before)) widen_slots(network_rate(spec));
    if (ports.count > 0 && ports.count != network_ports(spec)) {
      const int before = network_ports(spec);
      join_nics(ports.count);
      change("nics_per_node", fmt::format("{} NICs instead of {}", ports.count, before),
             fmt::format("{}nics", ports.count));
    }
  }

  /// NICs evenly over what carries them.
  void join_nics(int count) {
    TopologySpec& spec = made_.spec;
    DeviceGroup* nics = network_group(spec);
    if (nics == nullptr || nics->kind != DeviceKind::nic) return;
    nics->count = count;
    for (const DeviceGroup& group : spec.devices)
      if (count < group.count && stand_apart(group.name))
        gather(group.name, endpoints_of(spec) % count == 0 ? count : 1);
    for (LinkGroup& link : spec.links) {
      const bool outwards = link.from == nics->name;
      if (!outwards && link.to != nics->name) continue;
      if (!outwards) std::swap(link.from, link.to);
      const int carriers = group_of(spec, link.to)->count;
      link.pairs.clear();
      link.wiring = count == carriers ? Wiring::one_to_one : count > carriers ? Wiring::spread : Wiring::pairs;
      for (int nic = 0; count < carriers && nic < count; ++nic) link.pairs.emplace_back(nic, nic * carriers / count);
    }
  }

 private:
  void use(const std::string& field, const std::string& value) {
    if (value.empty()) return;
    made_.derivation.used.push_back(fmt::format("{} '{}'", field, printable(value)));
  }
  void assume(std::string what) { made_.derivation.assumed.push_back(std::move(what)); }
  void change(const char* field, const std::string& what, const std::string& short_name) {
    made_.derivation.changed.push_back(fmt::format("{} ({})", what, field));
    name_ += "_";
    for (const char c : lower(short_name))
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') name_ += c;
  }

  /// Intel's sockets came with their slots: generation 3 to Cascade Lake, 4 with Ice Lake, 5 with Sapphire Rapids
  /// [data sheets of Xeon Scalable].
  void set_host(int pcie_generation) {
    CpuFamily& cpu = made_.spec.host.cpu;
    const bool intel = cpu == CpuFamily::intel_broadwell || cpu == CpuFamily::intel_skylake ||
                       cpu == CpuFamily::intel_sapphire_rapids || cpu == CpuFamily::intel_emerald_rapids;
    if (intel) cpu = pcie_generation >= 5 ? CpuFamily::intel_sapphire_rapids : CpuFamily::intel_skylake;
  }

  /// Of the first GPU, per direction.
  double nvlink_of_gpu() const {
    double out = 0;
    const TopologySpec& spec = made_.spec;
    for (const LinkGroup& link : spec.links) {
      if (link.kind != LinkKind::nvlink) continue;
      if (is_kind(spec, link.to, DeviceKind::nvswitch)) {
        out += link.bandwidth.value();
        continue;
      }
      if (link.wiring == Wiring::all) out += link.bandwidth.value() * (endpoints_of(spec) - 1);
      if (link.wiring == Wiring::ring) out += link.bandwidth.value() * 2;
      for (const auto& [a, b] : link.pairs) out += a == 0 || b == 0 ? link.bandwidth.value() : 0;
    }
    return out;
  }

  /// Of any module of the GPU's generation, by NVIDIA's data sheets; unlimited where it is not known.
  double most_nvlink() const {
    const int capability = known_.capability.value_or(0);
    if (capability >= 100) return 18 * 50e9;
    if (capability >= 90) return 18 * 25e9;
    if (capability >= 80) return 12 * 25e9;
    if (capability >= 70) return 6 * 25e9;
    return capability >= 60 ? 4 * 20e9 : std::numeric_limits<double>::infinity();
  }

  /// Said; 0: not said.
  double wanted_nvlink() const {
    const NvlinkWords& said = known_.nvlink;
    if (said.per_gpu) return said.per_gpu->value();
    const auto one = nvlink_rate(said.generation);
    if (one && said.count > 0)
      return one->value() * said.count *
             (said.per_pair ? std::max(1, (known_.gpus > 0 ? known_.gpus : endpoints_of(made_.spec)) - 1) : 1);
    // Of the same GPU the described machine has it; of another as many links as its generation's modules have.
    if (like_ == 3 || said.generation == 0) return nvlink_of_gpu();
    constexpr std::array links{4, 6, 12, 18, 18};
    return one ? one->value() * links[static_cast<std::size_t>(said.generation - 1)] : 0;
  }

  Bandwidth rate_of(DeviceKind end, LinkKind kind) const {
    for (const LinkGroup& link : made_.spec.links)
      if (link.kind == kind && (is_kind(made_.spec, link.from, end) || is_kind(made_.spec, link.to, end)))
        return link.bandwidth;
    return {};
  }

  bool as_many_nics_a_gpu(int wanted, int size) const {
    if (!known_.several_nodes || known_.nics.count == 0) return true;
    const Ports ports = joint_ports(known_.nics, wanted);
    return ports.count * size == network_ports(made_.spec) * wanted;
  }

  /// Another number of GPUs: what is one to one with them follows, what they are spread over thins out evenly, straight
  /// NVLinks join every pair with what a GPU has.
  void resize(int gpus) {
    TopologySpec& spec = made_.spec;
    DeviceGroup& group = *gpus_of(spec);
    const int before = group.count;
    const double nvlink = nvlink_of_gpu();
    group.count = gpus;
    std::erase_if(spec.links,
                  [&](const LinkGroup& link) { return link.from == group.name && link.to == group.name && gpus == 1; });
    bool joined = false;
    for (LinkGroup& link : spec.links) {
      if (link.from != group.name || link.to != group.name) continue;
      link.wiring = Wiring::all;
      link.pairs.clear();
      link.bandwidth = Bandwidth(joined ? 0 : nvlink / (gpus - 1));
      joined = true;
    }
    std::erase_if(spec.links, [](const LinkGroup& link) { return link.bandwidth.value() <= 0; });
    const std::string nics = spec.network_devices;
    const int nics_before = network_ports(spec);
    for (bool changed = true; changed;) {
      changed = false;
      for (LinkGroup& link : spec.links) {
        if (link.kind == LinkKind::nvlink || link.from == link.to || link.from == nics || link.to == nics) continue;
        changed = fit(link, before, gpus) || changed;
      }
    }
    std::erase_if(spec.links, [&](const LinkGroup& link) {
      return link.from == link.to && link.kind != LinkKind::nvlink && group_of(spec, link.from)->count == 1;
    });
    if (nics_before > 0 && nics != group.name) join_nics(std::max(1, nics_before * gpus / before));
  }

  /// Counts of what a link joins, after one of them has changed; whether that changed another.
  bool fit(LinkGroup& link, int before, int now) {
    DeviceGroup &from = *group_of(made_.spec, link.from), &to = *group_of(made_.spec, link.to);
    // More GPUs do not bring more sockets, which nothing would join.
    if (link.wiring == Wiring::one_to_one && to.kind == DeviceKind::cpu && to.count == 1) link.wiring = Wiring::spread;
    if (link.wiring == Wiring::one_to_one) {
      if (from.count == to.count) return false;
      to.count = from.count;
      return true;
    }
    if (link.wiring == Wiring::pairs) {
      link.wiring = Wiring::spread;
      link.pairs.clear();
    }
    if (link.wiring != Wiring::spread) return false;
    const bool of_gpus = from.kind == DeviceKind::gpu;
    const int most = of_gpus && !thinned_ ? std::max(1, (to.count * now + before - 1) / before) : to.count;
    if (of_gpus) thinned_ = true;
    const int count = std::min({to.count, from.count, now > before ? to.count : most});
    if (count == to.count) return false;
    to.count = count;
    return true;
  }

  /// Sockets that nothing joins to each other: a NIC of one is out of reach of another's GPUs.
  bool stand_apart(const std::string& group) const {
    return is_kind(made_.spec, group, DeviceKind::cpu) &&
           std::ranges::none_of(made_.spec.links,
                                [&](const LinkGroup& link) { return link.from == group && link.to == group; });
  }

  void gather(const std::string& group, int count) {
    group_of(made_.spec, group)->count = count;
    for (LinkGroup& link : made_.spec.links)
      if (link.to == group && link.from != made_.spec.network_devices) link.wiring = Wiring::spread;
  }

  /// A slot that is narrower than its NIC is not what was built.
  void widen_slots(Bandwidth rate) {
    for (LinkGroup& link : made_.spec.links) {
      const bool of_nic =
          is_kind(made_.spec, link.from, DeviceKind::nic) || is_kind(made_.spec, link.to, DeviceKind::nic);
      if (of_nic && link.kind == LinkKind::pcie && link.bandwidth.value() < rate.value())
        link.bandwidth = rate * (63.0 / 50);
    }
  }

  /// Where nobody said what the NICs are: whose plugin NCCL is taken to have, with what it sets.
  void assume_plugin() {
    const NetworkPlugin& plugin = made_.spec.plugin;
    if (plugin == NetworkPlugin()) return;
    std::string sets;
    for (const auto& [name, value] : plugin.environment) sets += fmt::format(" {}={}", name, value);
    assume(fmt::format("NCCL's network plugin (that of {}{}{})", network_of_->name, sets.empty() ? "" : ", which sets",
                       sets));
  }

  /// The network of the described machine whose NICs are of that kind, and nearest in rate, with NCCL's plugin for it.
  void borrow_network(const std::string& kind, Bandwidth rate, const std::string& what) {
    TopologySpec& spec = made_.spec;
    const TopologySpec* best = nullptr;
    const auto distance = [&](const TopologySpec& one) {
      return rate.value() > 0 ? std::abs(std::log(network_rate(one).value() / rate.value())) : 0;
    };
    for (const TopologySpec& one : all_) {
      if (one.teaching || one.gpu.model.empty() || std::holds_alternative<std::monostate>(one.network)) continue;
      if (!is_kind(one, one.network_devices, DeviceKind::nic)) continue;
      if (kind.empty() ? one.plugin != NetworkPlugin() : network_kind(one) != kind) continue;
      if (best == nullptr || distance(one) < distance(*best)) best = &one;
    }
    if (best == nullptr) {
      // What the likest's plugin says and sets is of its own NICs.
      spec.plugin = NetworkPlugin();
      spec.plugin.sockets = kind == "tcp";
      return assume(fmt::format("the latency of {}", kind));
    }
    if (spec.network_devices.empty()) add_nics();
    spec.network = best->network;
    spec.plugin = best->plugin;
    made_.derivation.network = best->name;
    network_of_ = best;
    change("nics_per_node",
           fmt::format("the network of {}{}", best->name, what == kind && !kind.empty() ? ": " + kind : ""),
           (kind.empty() ? "network" : kind) + best->name);
  }

  /// One adapter beside the first socket of a machine that was described without a network.
  void add_nics() {
    TopologySpec& spec = made_.spec;
    const auto carrier = std::find_if(spec.devices.begin(), spec.devices.end(), [](const DeviceGroup& group) {
      return group.kind == DeviceKind::pcie_switch || group.kind == DeviceKind::cpu;
    });
    if (carrier == spec.devices.end()) return;
    LinkGroup link;
    link.from = "nic";
    link.to = carrier->name;
    link.wiring = Wiring::pairs;
    link.pairs = {{0, 0}};
    link.kind = LinkKind::pcie;
    link.bandwidth = rate_of(DeviceKind::gpu, LinkKind::pcie);
    link.latency = Seconds(250e-9);
    spec.links.push_back(std::move(link));
    spec.devices.push_back({"nic", DeviceKind::nic, 1, {}});
    spec.network_devices = "nic";
  }

  const std::vector<TopologySpec>& all_;
  const MeasuredFacts& facts_;
  Known known_;
  const TopologySpec* network_of_;  ///< the likest, or whose network was borrowed
  DerivedMachine made_;
  std::string name_;
  int like_ = 3;  ///< of the GPU
  bool thinned_ = false;
};

/// Why nothing is like it, and what would help.
Diagnostic nothing_like(const MeasuredFacts& facts, const Known& known) {
  const char* const hint = "name its machine with --topology";
  if (facts.gpu.empty() && facts.system.empty()) return {{}, "it names neither a system nor a GPU", hint};
  const std::string system =
      facts.system.empty() ? "" : fmt::format("no machine lists the system '{}', and ", printable(facts.system));
  if (facts.gpu.empty() || lower(facts.gpu) == "unknown" || lower(facts.gpu) == "none")
    return {{}, system + "its sidecar names no GPU ('gpu:') to derive one from", hint};
  if (!known.capability)
    return {{}, fmt::format("{}its GPU '{}' is none that NCCL is known to run on", system, printable(facts.gpu)), hint};
  return {{},
          fmt::format("{}nothing that is described can be made into a node of '{}' and '{}'", system,
                      printable(facts.gpu), printable(facts.nvlink)),
          hint};
}

}  // namespace
}  // namespace derive

int endpoints_of(const TopologySpec& spec) { return derive::gpus_of(spec)->count; }

TopologySpec with_ports(const TopologySpec& spec, int ports) {
  const std::vector<TopologySpec> none;
  const MeasuredFacts unsaid;
  derive::Making making(none, spec, unsaid, {});
  making.join_nics(ports);
  return std::move(making).take().spec;
}

Result<DerivedMachine> derive_machine(const std::vector<TopologySpec>& all, const MeasuredFacts& facts, int per_node) {
  const derive::Known known = derive::known_of(facts, per_node);
  const std::optional<derive::Likest> likest = derive::likest_of(all, known);
  if (!likest) return derive::nothing_like(facts, known);
  derive::Making making(all, *likest->machine, facts, known);
  making.set_gpu();
  making.set_links();
  making.set_count();
  making.set_bridges();
  making.set_network();
  DerivedMachine out = std::move(making).take();
  out.derivation.equals = likest->equals;
  const Result<Fabric> built = Fabric::build(out.spec, facts.nodes > 1 ? 2 : 1);
  if (!built)
    return Diagnostic{
        {},
        fmt::format("a machine derived from {} cannot be: {}", out.derivation.base, built.errors().front().message),
        "name its machine with --topology"};
  return out;
}

}  // namespace collcast
