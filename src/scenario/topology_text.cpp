// TopologySpec -> topologies/*.yaml: what topology_file.cpp reads.
//
// Values are written in the largest unit in which they read back to the same bits.
#include <fmt/format.h>

#include <initializer_list>
#include <iterator>

#include "collcast/base/units.hpp"
#include "scenario/files.hpp"

namespace collcast {

namespace {

struct Unit {
  const char* name;
  double size;
};

template <class T, class Parse>
std::string exact(double value, std::initializer_list<Unit> units, Parse parse, T wanted) {
  for (const Unit& unit : units) {
    const double scaled = value / unit.size;
    std::string text = fmt::format("{:.12g}{}", scaled, unit.name);
    if (scaled < 1 || text.find('e') != std::string::npos) continue;
    if (const auto read = parse(text); read.ok && read.value == wanted) return text;
  }
  return fmt::format("{}{}", value, std::prev(units.end())->name);
}

std::string text_of(Bandwidth rate) {
  return exact(rate.value(), {{"GB/s", 1e9}, {"MB/s", 1e6}, {"B/s", 1}}, parse_bandwidth, rate);
}
std::string text_of_network(Bandwidth rate) {
  return exact(rate.value(), {{"Gb/s", 125e6}, {"Mb/s", 125e3}, {"B/s", 1}}, parse_bandwidth, rate);
}
std::string text_of(Seconds time) {
  if (time.count() == 0) return "0s";
  return exact(time.count(), {{"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}, {"s", 1}}, parse_seconds, time);
}
std::string text_of(FlopRate rate) {
  return exact(rate.value(), {{"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"FLOP/s", 1}}, parse_flop_rate, rate);
}
std::string text_of(Bytes size) {
  const auto parse = [](const std::string& text) { return parse_bytes(text); };
  const auto value = static_cast<double>(size.value());
  if (size.value() % 1'000'000'000 == 0) return exact(value, {{"GB", 1e9}, {"B", 1}}, parse, size);
  // 81090MiB, and not 79.189453125GiB.
  if (size.value() % (1 << 30) != 0) return exact(value, {{"MiB", 0x1p20}, {"B", 1}}, parse, size);
  return exact(value, {{"GiB", 0x1p30}, {"B", 1}}, parse, size);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// ", environment: {NCCL_PROTO: "Simple"}", or nothing.
std::string variables_text(const NetworkPlugin& plugin) {
  std::string out;
  for (const auto& [name, value] : plugin.environment)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", name, quoted(value));
  return out.empty() ? out : ", environment: {" + out + "}";
}

void write_list(std::string& out, const char* key, const std::vector<std::string>& items) {
  if (items.empty()) return;
  out += fmt::format("{}:\n", key);
  for (const std::string& item : items) out += fmt::format("  - {}\n", quoted(item));
}

void write_gpu(std::string& out, const GpuSpec& gpu) {
  if (gpu.model.empty()) return;
  out += fmt::format("\ngpu:\n  model: {}\n  memory: {}\n  memory_bandwidth: {}\n  peak: {{", quoted(gpu.model),
                     text_of(gpu.memory), text_of(gpu.memory_bandwidth));
  const char* separator = "";
  for (const std::string& precision : input::precisions()) {
    const auto found = gpu.peak.find(precision);
    if (found == gpu.peak.end()) continue;
    out += fmt::format("{}{}: {}", separator, precision, text_of(found->second));
    separator = ", ";
  }
  out += "}\n";
  if (!gpu.kernels.empty()) out += fmt::format("  kernels: {}\n", gpu.kernels);
  if (gpu.kernel_scale != 1) out += fmt::format("  kernel_scale: {}\n", gpu.kernel_scale);
  if (gpu.power_limit != 1) out += fmt::format("  power_limit: {}%\n", 100 * gpu.power_limit);
  out += fmt::format("  source: {}\n", quoted(gpu.source));
}

void write_link(std::string& out, const LinkGroup& link) {
  out += fmt::format("    - from: {}\n      to: {}\n", link.from, link.to);
  if (link.wiring != Wiring::all)
    out += fmt::format("      wiring: {}\n", input::wiring_words()[static_cast<std::size_t>(link.wiring)]);
  if (link.wiring == Wiring::pairs) {
    out += "      pairs: [";
    const char* separator = "";
    for (const auto& [a, b] : link.pairs) {
      out += fmt::format("{}[{}, {}]", separator, a, b);
      separator = ", ";
    }
    out += "]\n";
  }
  out += fmt::format("      kind: {}\n      bandwidth: {}\n      latency: {}\n      source: {}\n", to_string(link.kind),
                     text_of(link.bandwidth), text_of(link.latency), quoted(link.source));
}

/// The kind of a network and its own keys.
struct WriteNetwork {
  std::string& out;

  template <class Network>
  void link(const char* kind, const TopologySpec& spec, const Network& network) const {
    out += fmt::format("\nnetwork:\n  kind: {}\n  attach: {}\n  link: {{bandwidth: {}, latency: {}}}\n", kind,
                       spec.network_devices, text_of_network(network.bandwidth), text_of(network.latency));
  }
  void operator()(const TopologySpec&, const std::monostate&) const {}
  void operator()(const TopologySpec& spec, const StarNetwork& star) const { link("star", spec, star); }
  void operator()(const TopologySpec& spec, const TorusNetwork& grid) const {
    link(!grid.wrap ? "mesh" : grid.dims.empty() ? "ring" : "torus", spec, grid);
    if (!grid.dims.empty()) out += fmt::format("  dims: [{}]\n", fmt::join(grid.dims, ", "));
  }
  void operator()(const TopologySpec& spec, const LeafSpineNetwork& tree) const {
    link("leaf_spine", spec, tree);
    out += fmt::format("  rail_optimized: {}\n  nodes_per_leaf: {}\n  spines: {}\n  oversubscription: {}\n",
                       tree.rail_optimized, tree.nodes_per_leaf, tree.spines, tree.oversubscription);
    if (tree.spines > 0) out += fmt::format("  spine_latency: {}\n", text_of(tree.spine_latency));
  }
};

}  // namespace

std::string topology_text(const TopologySpec& spec, const std::vector<std::string>& remarks) {
  std::string out;
  for (const std::string& remark : remarks) out += remark.empty() ? "#\n" : fmt::format("# {}\n", remark);
  out += fmt::format("schema: collcast.topology.v1\nname: {}\n", spec.name);
  if (!spec.title.empty()) out += fmt::format("title: {}\n", quoted(spec.title));
  write_list(out, "systems", spec.systems);
  if (!spec.nccl_versions.empty()) out += "nccl_versions:\n";
  for (const auto& [system, version] : spec.nccl_versions)
    out += fmt::format("  {}: {}\n", quoted(system), quoted(version));
  write_list(out, "sources", spec.sources);
  if (spec.teaching) out += "teaching: true\n";
  out += fmt::format("\nnodes: {{default: {}", spec.default_nodes);
  out += spec.max_nodes > 0 ? fmt::format(", max: {}}}\n", spec.max_nodes) : "}\n";
  write_gpu(out, spec.gpu);
  if (spec.host.cpu != CpuFamily::unknown)
    out += fmt::format("\nhost: {{cpu: {}, source: {}}}\n", to_string(spec.host.cpu), quoted(spec.host.source));
  out += "\nnode:\n  devices:\n";
  for (const DeviceGroup& group : spec.devices)
    out += fmt::format("    {}: {{kind: {}, count: {}}}\n", group.name, to_string(group.kind), group.count);
  if (!spec.links.empty()) out += "  links:\n";
  for (const LinkGroup& link : spec.links) write_link(out, link);
  std::visit([&](const auto& network) { WriteNetwork{out}(spec, network); }, spec.network);
  if (!std::holds_alternative<std::monostate>(spec.network))
    out += fmt::format("  source: {}\n", quoted(spec.network_source));
  if (spec.plugin != NetworkPlugin())
    out += fmt::format("  plugin: {{latency: {}, gpudirect: {}{}{}{}}}\n", text_of(spec.plugin.latency),
                       spec.plugin.gpudirect, spec.plugin.sockets ? ", sockets: true" : "",
                       spec.plugin.collnet ? ", collnet: true" : "", variables_text(spec.plugin));
  return out;
}

}  // namespace collcast
